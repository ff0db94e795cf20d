/* The driver's entry points, in one table of function pointers generated from one list. Every call to
 * the driver uses this table; tests put a fake in its place. Internal to platform/cuda and its tests. */
#ifndef STRATA_PLATFORM_CUDA_API_H
#define STRATA_PLATFORM_CUDA_API_H

#include <stdbool.h>
#include <stdint.h>

#include "platform/cuda/driver/cuda_entries.h"
#include "platform/cuda/driver/cuda_types.h"

#include "platform/cuda/driver/cuda_layouts.h"
#include "platform/status.h"

/* The purpose of a set of entries. BASE is mandatory. If an entry of another group is missing, its
 * capability is off. */
typedef enum strata_cuda_group {
    STRATA_CUDA_BASE,
    STRATA_CUDA_TEXT, /* names and texts of error codes */
    STRATA_CUDA_MANAGED,
    STRATA_CUDA_POOLS,
    STRATA_CUDA_VIRTUAL,
    STRATA_CUDA_SHARE,
    STRATA_CUDA_CAPTURE,
    STRATA_CUDA_GRAPH_EDGES,
    STRATA_CUDA_GRAPH_MEMORY, /* trimming of the memory that graphs own */
    STRATA_CUDA_IDS,
    STRATA_CUDA_PEERS,
    STRATA_CUDA_WORK,
    STRATA_CUDA_PREFETCH, /* the place is a device */
    STRATA_CUDA_REGISTER, /* pinning of memory that is already mapped */
    STRATA_CUDA_PREFETCH_AT, /* the place is a location, in the newer form of the same two calls */
    STRATA_CUDA_GROUPS
} strata_cuda_group_t;

typedef struct strata_cuda_driver {
#define STRATA_CUDA_FIELD(field, name, version, group, arguments) CUresult(*field) arguments;
    STRATA_CUDA_ENTRY_MAP(STRATA_CUDA_FIELD)
#undef STRATA_CUDA_FIELD
} strata_cuda_driver_t;

typedef CUresult(*strata_cuda_get_proc_t) STRATA_CUDA_GET_PROC;

/* Returns the table of the driver, initialized (cuInit). Fails with E_NO_DEVICE and the reason if there
 * is no driver, and with E_FORKED in a child of the process that initialized it. Fails with E_SHUTDOWN,
 * without any call, once it is shutting down. Any thread may call. The table is valid forever. */
strata_status_t strata_cuda_driver_get(const strata_cuda_driver_t **driver);
/* Returns true if the driver has all entries of `group`. */
bool strata_cuda_driver_has(const strata_cuda_driver_t *driver, strata_cuda_group_t group);
/* Fills the table by `get_proc` (cuGetProcAddress_v2). Fails with E_NO_DEVICE if an entry of BASE is
 * missing. */
strata_status_t strata_cuda_driver_fill(strata_cuda_get_proc_t get_proc, strata_cuda_driver_t *driver);

/* Returns the number of this process, which increases with each fork since the driver was first requested. */
uint32_t strata_cuda_generation(void);
/* Returns true once the driver has reported its shutdown. No more calls are made then. */
bool strata_cuda_is_shut_down(void);
void strata_cuda_note_shutdown(void);

/* For tests: replaces the driver by `driver`, or restores the real one if that is NULL. Clears the
 * state of fork and shutdown. */
void strata_cuda_set_table_for_tests(const strata_cuda_driver_t *driver);

/* Returns the status of a code for an open device. */
strata_status_t strata_cuda_status(CUresult code);
/* Fails with "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory". If `driver` is NULL, the texts
 * are those known here. */
strata_status_t strata_cuda_fail(const strata_cuda_driver_t *driver, strata_status_t status, const char *call, CUresult code);
/* Fails in the same way while there is no open device. E_DEVICE and E_DEVICE_LOST become E_NO_DEVICE. */
strata_status_t strata_cuda_fail_init(const strata_cuda_driver_t *driver, const char *call, CUresult code);

#endif
