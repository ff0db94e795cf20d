/* Memory in stream order: the driver's pools. */
#include "platform/cuda/cuda_device.h"

static CUmemoryPool pool_of(const strata_cuda_device_t *device, strata_handle_t pool) {
    return pool ? (CUmemoryPool)pool : device->default_pool;
}

strata_status_t strata_cuda_malloc_async(strata_device_t *self, strata_handle_t pool, uint64_t size, strata_handle_t stream,
                                         strata_address_t *address) {
    if (size == 0) return strata_fail(STRATA_E_INVALID, 0, "malloc_async serves more than 0 bytes");
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter_stream(self, STRATA_CUDA_RELAXED, stream, &scope);
    if (status != STRATA_OK) return status;
    CUdeviceptr got = 0;
    /* Uses the named pool, because cuMemAllocAsync uses whichever pool the program has made current. */
    status = STREAM_CALL(scope.device, stream, MemAllocFromPoolAsync, &got, size, pool_of(scope.device, pool), (CUstream)stream);
    if (status == STRATA_OK) *address = got;
    return strata_cuda_exit(&scope, status);
}

strata_status_t strata_cuda_free_async(strata_device_t *self, strata_address_t address, strata_handle_t stream) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter_stream(self, STRATA_CUDA_RELAXED, stream, &scope);
    if (status != STRATA_OK) return strata_cuda_ignore_shutdown(status);
    status = STREAM_CALL(scope.device, stream, MemFreeAsync, address, (CUstream)stream);
    return strata_cuda_ignore_shutdown(strata_cuda_exit(&scope, status));
}

strata_status_t strata_cuda_pool_create(strata_device_t *self, uint64_t max_size, bool shareable, strata_handle_t *pool) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return status;
    CUmemPoolProps properties = {0};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.handleTypes = shareable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = scope.device->handle;
    properties.maxSize = max_size;
    if (max_size != 0 && scope.device->driver_version < 12020)
        status = strata_fail(STRATA_E_UNSUPPORTED, 0, "a maximum pool size needs a driver of CUDA 12.2 or newer");
    CUmemoryPool made = NULL;
    if (status == STRATA_OK) status = CUDA_CALL(scope.device, MemPoolCreate, &made, &properties);
    if (status == STRATA_OK) *pool = made;
    return strata_cuda_exit(&scope, status);
}

strata_status_t strata_cuda_pool_destroy(strata_device_t *self, strata_handle_t pool) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return strata_cuda_ignore_shutdown(status);
    status = pool == NULL || (CUmemoryPool)pool == scope.device->default_pool
                 ? strata_fail(STRATA_E_INVALID, 0, "the default pool cannot be destroyed")
                 : CUDA_CALL(scope.device, MemPoolDestroy, (CUmemoryPool)pool);
    return strata_cuda_ignore_shutdown(strata_cuda_exit(&scope, status));
}

strata_status_t strata_cuda_pool_default(strata_device_t *self, strata_handle_t *pool) {
    strata_status_t status = strata_cuda_usable(strata_cuda_of(self));
    if (status != STRATA_OK) return status;
    if (!self->capabilities.pools) return strata_fail(STRATA_E_UNSUPPORTED, 0, "gpu:%u has no memory pools", self->ordinal);
    *pool = strata_cuda_of(self)->default_pool;
    return STRATA_OK;
}

/* Reuse policies are an int to the driver. All sizes are 64 bits wide. */
static bool is_policy(strata_pool_attribute_t attribute) { return attribute < STRATA_POOL_RELEASE_THRESHOLD; }

strata_status_t strata_cuda_pool_set(strata_device_t *self, strata_handle_t pool, strata_pool_attribute_t attribute,
                                     uint64_t value) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return status;
    int policy = value != 0;
    uint64_t size = value;
    void *given = is_policy(attribute) ? (void *)&policy : (void *)&size;
    status = CUDA_CALL(scope.device, MemPoolSetAttribute, pool_of(scope.device, pool), (CUmemPool_attribute)attribute, given);
    return strata_cuda_exit(&scope, status);
}

strata_status_t strata_cuda_pool_get(strata_device_t *self, strata_handle_t pool, strata_pool_attribute_t attribute,
                                     uint64_t *value) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return status;
    int policy = 0;
    uint64_t size = 0;
    void *got = is_policy(attribute) ? (void *)&policy : (void *)&size;
    status = CUDA_CALL(scope.device, MemPoolGetAttribute, pool_of(scope.device, pool), (CUmemPool_attribute)attribute, got);
    if (status == STRATA_OK) *value = is_policy(attribute) ? (uint64_t)(policy != 0) : size;
    return strata_cuda_exit(&scope, status);
}

/* Memory of graphs is in a separate pool that no attribute reaches, so it is trimmed with the default pool. */
strata_status_t strata_cuda_pool_trim(strata_device_t *self, strata_handle_t pool, uint64_t keep) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return status;
    strata_cuda_device_t *device = scope.device;
    status = CUDA_CALL(device, MemPoolTrimTo, pool_of(device, pool), keep);
    if (status == STRATA_OK && pool_of(device, pool) == device->default_pool && device->driver->DeviceGraphMemTrim)
        status = CUDA_CALL(device, DeviceGraphMemTrim, device->handle);
    return strata_cuda_exit(&scope, status);
}

strata_status_t strata_cuda_pool_set_access(strata_device_t *self, strata_handle_t pool, uint32_t peer) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return status;
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    access.location.id = (int)peer;
    status = CUDA_CALL(scope.device, MemPoolSetAccess, pool_of(scope.device, pool), &access, 1);
    return strata_cuda_exit(&scope, status);
}
