/* The CUDA device of a library that was built without the Toolkit's headers. */
#include "platform/cuda/cuda.h"

static strata_status_t absent(void) {
    return strata_fail(STRATA_E_NO_DEVICE, 0,
                       "this library was built without CUDA (no CUDA Toolkit was found, or STRATA_CUDA=OFF)");
}

strata_status_t strata_cuda_count(uint32_t *count) {
    (void)count;
    return absent();
}

strata_status_t strata_cuda_open(uint32_t ordinal, strata_device_t **device) {
    (void)ordinal;
    (void)device;
    return absent();
}
