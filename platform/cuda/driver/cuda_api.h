/* The driver's entry points: one table of function pointers, generated from one list. Every call to the driver goes through
 * it; tests put a fake in its place. Internal to platform/cuda and its tests. */
#ifndef STRATA_PLATFORM_CUDA_API_H
#define STRATA_PLATFORM_CUDA_API_H

#include <stdbool.h>
#include <stdint.h>

#include "platform/cuda/driver/cuda_entries.h"
#include "platform/cuda/driver/cuda_types.h"

#include "platform/cuda/driver/cuda_layouts.h"
#include "platform/status.h"

/* What a set of entries is for. BASE is mandatory; without all entries of another group its capability is off. */
typedef enum strata_cuda_group {
    STRATA_CUDA_BASE,
    STRATA_CUDA_TEXT, /* names and texts of codes */
    STRATA_CUDA_MANAGED,
    STRATA_CUDA_POOLS,
    STRATA_CUDA_VIRTUAL,
    STRATA_CUDA_SHARE,
    STRATA_CUDA_CAPTURE,
    STRATA_CUDA_GRAPH_EDGES,
    STRATA_CUDA_GRAPH_MEMORY, /* trimming of graphs' own memory */
    STRATA_CUDA_IDS,
    STRATA_CUDA_PEERS,
    STRATA_CUDA_WORK,
    STRATA_CUDA_PREFETCH, /* place named by a device */
    STRATA_CUDA_REGISTER, /* pinning of memory that is already mapped */
    STRATA_CUDA_PREFETCH_AT, /* place named by a location: the newer form of the same two calls */
    STRATA_CUDA_GROUPS
} strata_cuda_group_t;

typedef struct strata_cuda_driver {
#define STRATA_CUDA_FIELD(field, name, version, group, arguments) CUresult(*field) arguments;
    STRATA_CUDA_ENTRY_MAP(STRATA_CUDA_FIELD)
#undef STRATA_CUDA_FIELD
} strata_cuda_driver_t;

typedef CUresult(*strata_cuda_get_proc_t) STRATA_CUDA_GET_PROC;

/* The table of the driver, initialised (cuInit). E_NO_DEVICE: there is none, with the reason; E_FORKED in a child of the process
 * that initialised it; E_SHUTDOWN once it is shutting down, when no call is made. Any thread; the table lives for ever. */
strata_status_t strata_cuda_driver_get(const strata_cuda_driver_t **driver);
/* Whether all entries of `group` are there. */
bool strata_cuda_driver_has(const strata_cuda_driver_t *driver, strata_cuda_group_t group);
/* Fills the table by `get_proc` (cuGetProcAddress_v2). E_NO_DEVICE when an entry of BASE is missing. */
strata_status_t strata_cuda_driver_fill(strata_cuda_get_proc_t get_proc, strata_cuda_driver_t *driver);

/* The number of this process, counted by forks since the driver was first asked for. */
uint32_t strata_cuda_generation(void);
/* The driver has said that it is shutting down: no more calls are made. */
bool strata_cuda_is_shut_down(void);
void strata_cuda_note_shutdown(void);

/* For tests: `driver` replaces the driver; NULL goes back to the real one. Fork and shutdown are forgotten. */
void strata_cuda_set_table_for_tests(const strata_cuda_driver_t *driver);

/* The status of a code once the device is open. */
strata_status_t strata_cuda_status(CUresult code);
/* Fails with "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory". `driver` may be NULL: the texts known here. */
strata_status_t strata_cuda_fail(const strata_cuda_driver_t *driver, strata_status_t status, const char *call, CUresult code);
/* The same while looking for a device: what would be E_DEVICE or E_DEVICE_LOST on an open device is E_NO_DEVICE. */
strata_status_t strata_cuda_fail_init(const strata_cuda_driver_t *driver, const char *call, CUresult code);

#endif
