/* A real GPU for a test, or a visible skip with the driver's own reason. */
#ifndef STRATA_TESTS_GPU_GPU_H
#define STRATA_TESTS_GPU_GPU_H

#include "platform/cuda/cuda.h"
#include "platform/device.h"
#include "tests/harness/test.h"

/* NULL with the reason in `why` (256 bytes) where gpu:`ordinal` cannot be used. */
strata_device_t *gpu_open(uint32_t ordinal, char *why);

/* GPU_OR_SKIP(device): declares it, opens gpu:0, or skips the test. */
#define GPU_OR_SKIP(device)                                                                                                        \
    char device##_why[256];                                                                                                        \
    strata_device_t *device = gpu_open(0, device##_why);                                                                           \
    if (!device) TEST_SKIP(device##_why)
/* Skips when the device lacks a capability; closes it. */
#define GPU_NEEDS(device, capability)                                                                                              \
    do {                                                                                                                           \
        if (!(device)->capabilities.capability) {                                                                                  \
            strata_device_close(device);                                                                                           \
            TEST_SKIP("this device has no " #capability);                                                                          \
        }                                                                                                                          \
    } while (0)

/* Goes by 1 each time the callback of a graph has run. */
void gpu_count_up(void *counter);

#endif
