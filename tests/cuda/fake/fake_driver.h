/* A fake of the CUDA driver with its semantics, put in the place of the real one's table. Work stays pending until something
 * waits for it or the test runs it. Everything called is recorded. */
#ifndef STRATA_TESTS_CUDA_FAKE_DRIVER_H
#define STRATA_TESTS_CUDA_FAKE_DRIVER_H

#include "platform/cuda/cuda.h"
#include "platform/cuda/driver/cuda_api.h"

#define FAKE_DEVICES 2
#define FAKE_GRANULE (UINT64_C(2) << 20)

/* The plan of a test: set after fake_reset(), before the device is opened. */
typedef struct fake_options {
    int devices; /* 2 */
    int driver_version; /* 13000 */
    uint64_t memory; /* bytes of a device: 1 GiB */
    uint64_t address_space; /* bytes to reserve: 1 TiB */
    uint64_t mappings_max; /* 64 */
    uint64_t pinned_alignment; /* 4096 */
    bool contents; /* memory of the device is the host's, and holds bytes */
    bool no_managed, no_concurrent, no_pools, no_virtual, no_fd, no_register; /* attributes that are 0 */
    CUresult init_code; /* what cuInit answers */
    bool deinitialised; /* every call answers 4 */
    CUresult unknown_stream; /* what a call that names a destroyed stream answers: 400 */
    CUresult sticky[FAKE_DEVICES]; /* every call in this device's context answers so */
} fake_options_t;

extern fake_options_t fake_options;

/* Puts everything back, and a fresh fake in the driver's place. */
void fake_reset(void);
/* gpu:0, which closes where the scope ends; on a fresh fake, or on the one that there is. */
#define FAKE_DEVICE(device)                                                                                                        \
    fake_reset();                                                                                                                  \
    OPEN_DEVICE(device)
#define OPEN_DEVICE(device)                                                                                                        \
    strata_device_t *device CLOSED_BY(fake_device_close) = NULL;                                                                   \
    ASSERT_OK(strata_cuda_open(0, &device))
static inline void fake_device_close(strata_device_t **device) {
    if (*device) strata_device_close(*device);
}
/* The fake's table, for tests that leave entries out and give it to strata_cuda_set_table_for_tests(). */
strata_cuda_driver_t fake_table(void);
/* cuGetProcAddress_v2 over the fake; `fake_omitted` is not there, which `fake_omission` (NOT_FOUND) says; what was asked is counted
 * by its flags. */
CUresult fake_get_proc(const char *symbol, void **function, int version, uint64_t flags, CUdriverProcAddressQueryResult *found);
extern const char *fake_omitted;
extern CUresult fake_omission;
extern uint64_t fake_asked_plain, fake_asked_otherwise;

/* ---- what was recorded ---- */
typedef struct fake_call {
    const char *name; /* the table's field: "MemAlloc" */
    uint64_t value; /* its first telling argument */
    uint64_t extra; /* its second */
    int device; /* of the current context, or -1 */
    uint64_t pending; /* work of that device not done when the call began */
    CUstreamCaptureMode mode; /* of the calling thread */
} fake_call_t;

uint64_t fake_calls(void); /* so far */
const fake_call_t *fake_call_at(uint64_t i);
uint64_t fake_count(const char *name); /* calls of this name */
const fake_call_t *fake_last(const char *name); /* NULL: none */
/* The k-th call of `name` from now on (1 = the next; NULL: of any) answers `code` and does nothing. */
void fake_fail(const char *name, uint64_t k, CUresult code);
bool fake_failed(void); /* that call has come */

/* ---- the world ---- */
CUcontext fake_current(void);
size_t fake_depth(void);
CUstreamCaptureMode fake_mode(void);
CUcontext fake_context(int device);
int fake_retains(int device);
uint64_t fake_used(int device); /* physical bytes */
uint64_t fake_pending(int device);
void fake_run(CUstream stream); /* its work is done; NULL: all work of all devices */
void fake_submit(CUstream stream); /* one piece of work by the program */
uint64_t fake_live_objects(void); /* streams, events, graphs, instances, pools, allocations, handles, mappings, ranges */
CUstreamCaptureStatus fake_capture_of(CUstream stream);
uint64_t fake_bytes_reachable(CUdeviceptr address); /* 1 when device 0 may use the mapped address */
uint64_t fake_peer_reachable(CUdeviceptr address, int device);

#endif
