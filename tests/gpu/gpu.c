#include "tests/gpu/gpu.h"

#include <stdatomic.h>
#include <stdio.h>

strata_device_t *gpu_open(uint32_t ordinal, char *why) {
    uint32_t count = 0;
    strata_device_t *device = NULL;
    strata_status_t status = strata_cuda_count(&count);
    if (status == STRATA_OK && ordinal >= count) {
        snprintf(why, 256, "no gpu:%u, the driver reports %u devices", ordinal, count);
        return NULL;
    }
    if (status == STRATA_OK) status = strata_cuda_open(ordinal, &device);
    if (status == STRATA_OK) return device;
    snprintf(why, 256, "%.240s", strata_last_error()->text);
    /* A driver that shows devices has to open them. */
    if (count) FAIL_TEST("%s", why);
    return NULL;
}

void gpu_count_up(void *counter) { atomic_fetch_add((_Atomic int *)counter, 1); }
