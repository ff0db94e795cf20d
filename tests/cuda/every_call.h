/* Each call of the device contract once, with arguments that it takes. */
#ifndef STRATA_TESTS_CUDA_EVERY_CALL_H
#define STRATA_TESTS_CUDA_EVERY_CALL_H

#include "tests/cuda/fake/fake_driver.h"
#include "tests/harness/test.h"

#define EVERY_SENTINEL UINT64_C(0xABABABABABABABAB)

/* What the calls work on, and what they answer. */
typedef struct every_call {
    strata_device_t *device;
    strata_handle_t stream, other_stream, event, pool, graph;
    strata_address_t address, managed, pinned, pool_address, range, mapped, spare_range;
    strata_physical_t handle, mapped_handle, shared_handle;
    int descriptor;
    uint64_t out, out2; /* EVERY_SENTINEL until a call answers */
    strata_handle_t out_handle;
    int out_descriptor; /* -7 until then */
} every_call_t;

/* Opens gpu:0 of the fake and makes what `call` needs; a failure is the running test's. */
bool every_call_prepare(every_call_t *things, strata_device_call_t call);
/* Likewise on a fresh fake, for a test that ends where it fails; the device closes where the scope ends. */
#define EVERY_CALL(things, call)                                                                                                   \
    every_call_t things CLOSED_BY(every_call_close) = {0};                                                                         \
    fake_reset();                                                                                                                  \
    if (!every_call_prepare(&things, call)) return
static inline void every_call_close(every_call_t *things) {
    if (things->device) strata_device_close(things->device);
}
strata_status_t every_call_make(every_call_t *things, strata_device_call_t call);
/* Whether the call has written an answer. */
bool every_call_answered(const every_call_t *things);
/* Whether the call gives something back, and so succeeds after the driver's end. */
bool every_call_releases(strata_device_call_t call);
/* Calls of the graph's callback so far. */
extern int every_call_callbacks;
/* Forgets the answers, and closes descriptors. */
void every_call_clear(every_call_t *things);

#endif
