/* Prints what counting and opening answer in this process, with the driver that its environment gives it. */
#include <inttypes.h>
#include <stdio.h>

#include "platform/cuda/cuda.h"

static void print(const char *call, strata_status_t status) {
    const strata_error_t *error = strata_last_error();
    printf("%s %s %" PRId64 " %s\n", call, strata_status_name(status), error->device_code, status == STRATA_OK ? "" : error->text);
}

int main(void) {
    uint32_t count = 77;
    strata_status_t status = strata_cuda_count(&count);
    print("count", status);
    if (status == STRATA_OK) printf("devices %u\n", count);
    strata_device_t *device;
    status = strata_cuda_open(0, &device);
    print("open", status);
    if (status == STRATA_OK) strata_device_close(device);
    return 0;
}
