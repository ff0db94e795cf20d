/* Contents of memory: fill, the host's view, managed memory's prefetch and advice. */
#include "platform/cuda/cuda_device.h"

strata_status_t strata_cuda_fill(strata_device_t *self, strata_address_t address, uint8_t byte, uint64_t size,
                                 strata_handle_t stream) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter_stream(self, STRATA_CUDA_PLAIN, stream, &scope);
    if (status != STRATA_OK) return status;
    status = STREAM_CALL(scope.device, stream, MemsetD8Async, address, byte, size, (CUstream)stream);
    return strata_cuda_exit(&scope, status);
}

strata_status_t strata_cuda_copy(strata_device_t *self, strata_address_t address, void *host, uint64_t size, bool to_host,
                                 strata_handle_t stream) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter_stream(self, STRATA_CUDA_PLAIN, stream, &scope);
    if (status != STRATA_OK) return status;
    status = to_host ? STREAM_CALL(scope.device, stream, MemcpyDtoHAsync, host, address, size, (CUstream)stream)
                     : STREAM_CALL(scope.device, stream, MemcpyHtoDAsync, address, host, size, (CUstream)stream);
    return strata_cuda_exit(&scope, status);
}

/* Called with the context current. An error of the driver is no failure here. */
static void *view(const strata_device_t *self, const strata_cuda_driver_t *driver, strata_address_t address) {
    unsigned int kind = 0, managed = 0;
    CUresult code = driver->PointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    if (code == CUDA_ERROR_INVALID_VALUE) return (void *)(uintptr_t)address; /* unknown to the driver, so it is host memory */
    if (code != CUDA_SUCCESS) return NULL;
    if (driver->PointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) != CUDA_SUCCESS) return NULL;
    bool seen = managed ? self->capabilities.concurrent_managed : kind == CU_MEMORYTYPE_HOST;
    return seen ? (void *)(uintptr_t)address : NULL;
}

void *strata_cuda_host_view(strata_device_t *self, strata_address_t address, uint64_t size) {
    (void)size;
    strata_cuda_scope_t scope;
    if (address == 0 || strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope) != STRATA_OK) return NULL;
    void *seen = view(self, scope.device->driver, address);
    strata_cuda_exit(&scope, STRATA_OK);
    return seen;
}

static CUmemLocation place(const strata_cuda_device_t *device, bool host) {
    CUmemLocation location = {0};
    location.type = host ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = host ? 0 : device->handle;
    return location;
}

/* Both forms of the call do the same. Each driver has at least one. */
strata_status_t strata_cuda_prefetch(strata_device_t *self, strata_address_t address, uint64_t size, bool to_host,
                                     strata_handle_t stream) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter_stream(self, STRATA_CUDA_PLAIN, stream, &scope);
    if (status != STRATA_OK) return status;
    strata_cuda_device_t *device = scope.device;
    CUdevice to = to_host ? CU_DEVICE_CPU : device->handle;
    if (!device->driver->MemPrefetchAsync)
        status = STREAM_CALL(device, stream, MemPrefetchAsyncAt, address, size, place(device, to_host), 0, (CUstream)stream);
    else status = STREAM_CALL(device, stream, MemPrefetchAsync, address, size, to, (CUstream)stream);
    return strata_cuda_exit(&scope, status);
}

strata_status_t strata_cuda_advise(strata_device_t *self, strata_address_t address, uint64_t size, strata_advice_t advice,
                                   bool host) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return status;
    strata_cuda_device_t *device = scope.device;
    CUdevice about = host ? CU_DEVICE_CPU : device->handle;
    if (!device->driver->MemAdvise)
        status = CUDA_CALL(device, MemAdviseAt, address, size, (CUmem_advise)advice, place(device, host));
    else status = CUDA_CALL(device, MemAdvise, address, size, (CUmem_advise)advice, about);
    return strata_cuda_exit(&scope, status);
}
