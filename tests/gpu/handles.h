/* Programs over virtual memory that look into what their blocks hold: on a GPU, and the same on a simulated device. */
#ifndef STRATA_TESTS_GPU_HANDLES_H
#define STRATA_TESTS_GPU_HANDLES_H

#include "platform/device.h"

/* The device has contents; it is open before and after. Each opens and closes a facade over it. */
void handles_keep_contents_while_they_are_joined(strata_device_t *device);
void handles_join_beside_running_work(strata_device_t *device);
void handles_go_back_to_the_device(strata_device_t *device);
void handles_are_fit_to_be_registered(strata_device_t *device);
void handles_are_imported_beside_their_block(strata_device_t *device);

#endif
