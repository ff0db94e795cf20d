/* The CUDA device, over the driver's entry points (libcuda.so.1 by dlopen, without cudart). */
#ifndef STRATA_PLATFORM_CUDA_CUDA_H
#define STRATA_PLATFORM_CUDA_CUDA_H

#include "platform/device.h"

/* Sets *count to the number of devices that the driver shows. Fails with E_NO_DEVICE and the driver's
 * code and text if there is no usable driver. */
strata_status_t strata_cuda_count(uint32_t *count);
/* Opens device `ordinal` in its retained primary context, and opens no other. */
strata_status_t strata_cuda_open(uint32_t ordinal, strata_device_t **device);
/* Returns the driver's handle of the primary context in which a device works, or NULL if it is not a
 * CUDA device. */
void *strata_cuda_context(const strata_device_t *device);

#endif
