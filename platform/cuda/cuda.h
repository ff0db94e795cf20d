/* The CUDA device, over the driver's entry points (libcuda.so.1 by dlopen; no cudart). */
#ifndef STRATA_PLATFORM_CUDA_CUDA_H
#define STRATA_PLATFORM_CUDA_CUDA_H

#include "platform/device.h"

/* How many devices the driver shows. E_NO_DEVICE with the driver's code and text when there is no usable driver. */
strata_status_t strata_cuda_count(uint32_t *count);
/* Opens device `ordinal` in its retained primary context; opens no other. */
strata_status_t strata_cuda_open(uint32_t ordinal, strata_device_t **device);
/* The primary context in which a device works, as the driver's handle; NULL: it is no CUDA device. */
void *strata_cuda_context(const strata_device_t *device);

#endif
