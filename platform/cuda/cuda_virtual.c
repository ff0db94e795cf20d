/* Virtual memory, peers and sharing. */
#include "platform/cuda/cuda_device.h"

static CUmemAllocationProp properties_of(const strata_cuda_device_t *device, bool shareable) {
    CUmemAllocationProp properties = {0};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = shareable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device->handle;
    properties.allocFlags.gpuDirectRDMACapable = device->rdma;
    return properties;
}

strata_status_t strata_cuda_granularity(strata_cuda_device_t *device, uint64_t *granularity) {
    CUmemAllocationProp properties = properties_of(device, false);
    size_t unit = 0;
    strata_status_t status = CUDA_CALL(device, MemGetAllocationGranularity, &unit, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    if (status == STRATA_OK) *granularity = unit;
    return status;
}

/* The driver also returns "out of memory" for exhausted address space and mappings (about 524,288 of
 * them). Releasing cached memory helps there too, but the message should name the exhausted resource. */
static strata_status_t check_space(strata_cuda_device_t *device, const char *what, strata_status_t status) {
    if (status != STRATA_E_NO_MEMORY) return status;
    size_t left = 0, all = 0;
    if (device->driver->MemGetInfo(&left, &all) != CUDA_SUCCESS) return status;
    if (left < 2 * device->base.capabilities.granularity) return status;
    return strata_fail_context("gpu:%u has %zu bytes free, so it ran out of %s", device->base.ordinal, left, what);
}

strata_status_t strata_cuda_reserve(strata_device_t *self, uint64_t size, uint64_t alignment, strata_address_t *address) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return status;
    CUdeviceptr got = 0;
    status = CUDA_CALL(scope.device, MemAddressReserve, &got, size, alignment, 0, 0);
    status = check_space(scope.device, "address space", status);
    if (status == STRATA_OK) *address = got;
    return strata_cuda_exit(&scope, status);
}

strata_status_t strata_cuda_unreserve(strata_device_t *self, strata_address_t address, uint64_t size) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return strata_cuda_ignore_shutdown(status);
    return strata_cuda_ignore_shutdown(strata_cuda_exit(&scope, CUDA_CALL(scope.device, MemAddressFree, address, size)));
}

strata_status_t strata_cuda_create(strata_device_t *self, uint64_t size, bool shareable, strata_physical_t *handle) {
    if (shareable && !self->capabilities.share)
        return strata_fail(STRATA_E_UNSUPPORTED, 0, "gpu:%u cannot share memory by file descriptors", self->ordinal);
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return status;
    CUmemAllocationProp properties = properties_of(scope.device, shareable);
    CUmemGenericAllocationHandle made = 0;
    status = CUDA_CALL(scope.device, MemCreate, &made, size, &properties, 0);
    if (status == STRATA_OK) *handle = made;
    return strata_cuda_exit(&scope, status);
}

strata_status_t strata_cuda_release(strata_device_t *self, strata_physical_t handle) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return strata_cuda_ignore_shutdown(status);
    return strata_cuda_ignore_shutdown(strata_cuda_exit(&scope, CUDA_CALL(scope.device, MemRelease, handle)));
}

strata_status_t strata_cuda_map(strata_device_t *self, strata_address_t address, uint64_t size, strata_physical_t handle) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return status;
    status = CUDA_CALL(scope.device, MemMap, address, size, 0, handle, 0);
    return strata_cuda_exit(&scope, check_space(scope.device, "mappings", status));
}

strata_status_t strata_cuda_unmap(strata_device_t *self, strata_address_t address, uint64_t size) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return strata_cuda_ignore_shutdown(status);
    return strata_cuda_ignore_shutdown(strata_cuda_exit(&scope, CUDA_CALL(scope.device, MemUnmap, address, size)));
}

strata_status_t strata_cuda_set_access(strata_device_t *self, strata_address_t address, uint64_t size, const uint32_t *peers,
                                       size_t peer_count) {
    CUmemAccessDesc access[STRATA_CUDA_DEVICES_MAX + 1] = {0};
    if (peer_count > STRATA_CUDA_DEVICES_MAX)
        return strata_fail(STRATA_E_INVALID, 0, "%zu peers exceed the maximum of %u", peer_count, STRATA_CUDA_DEVICES_MAX);
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return status;
    for (size_t i = 0; i <= peer_count; i++) {
        access[i].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        access[i].location.id = i == 0 ? scope.device->handle : (int)peers[i - 1];
        access[i].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    }
    status = CUDA_CALL(scope.device, MemSetAccess, address, size, access, peer_count + 1);
    return strata_cuda_exit(&scope, check_space(scope.device, "mappings", status));
}

strata_status_t strata_cuda_export_memory(strata_device_t *self, strata_physical_t handle, int *descriptor) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return status;
    int made = -1;
    status = CUDA_CALL(scope.device, MemExportToShareableHandle, &made, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (status == STRATA_OK) *descriptor = made;
    return strata_cuda_exit(&scope, status);
}

strata_status_t strata_cuda_import_memory(strata_device_t *self, int descriptor, strata_physical_t *handle) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return status;
    CUmemGenericAllocationHandle made = 0;
    status = CUDA_CALL(scope.device, MemImportFromShareableHandle, &made, (void *)(intptr_t)descriptor,
                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (status == STRATA_OK) *handle = made;
    return strata_cuda_exit(&scope, status);
}

strata_status_t strata_cuda_can_access_peer(strata_device_t *self, uint32_t peer, bool *can) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return status;
    CUdevice other = 0;
    int answer = 0;
    status = CUDA_CALL(scope.device, DeviceGet, &other, (int)peer);
    if (status == STRATA_OK) status = CUDA_CALL(scope.device, DeviceCanAccessPeer, &answer, scope.device->handle, other);
    if (status == STRATA_OK) *can = answer != 0;
    return strata_cuda_exit(&scope, status);
}

/* Opens the peer's primary context, which the driver's call needs, and keeps it until the device is closed. */
static strata_status_t enable_peer(strata_cuda_device_t *device, uint32_t peer) {
    CUdevice other = 0;
    CUcontext context = NULL;
    strata_status_t status = CUDA_CALL(device, DeviceGet, &other, (int)peer);
    if (status == STRATA_OK) status = CUDA_CALL(device, DevicePrimaryCtxRetain, &context, other);
    if (status != STRATA_OK) return status;
    CUresult code = device->driver->CtxEnablePeerAccess(context, 0);
    if (code != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) status = strata_cuda_check(device, "cuCtxEnablePeerAccess", code);
    if (status == STRATA_OK) device->peers[peer] = context;
    else if (status != STRATA_E_SHUTDOWN && status != STRATA_E_DEVICE_LOST) device->driver->DevicePrimaryCtxRelease(other);
    return status;
}

strata_status_t strata_cuda_enable_peer(strata_device_t *self, uint32_t peer) {
    if (!self->capabilities.peers) return strata_fail(STRATA_E_UNSUPPORTED, 0, "gpu:%u cannot access peers", self->ordinal);
    if (peer >= strata_cuda_of(self)->device_count || peer == self->ordinal)
        return strata_fail(STRATA_E_INVALID, 0, "gpu:%u is not a peer of gpu:%u", peer, self->ordinal);
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return status;
    strata_lock(&scope.device->slow_lock);
    if (!scope.device->peers[peer]) status = enable_peer(scope.device, peer);
    strata_unlock(&scope.device->slow_lock);
    return strata_cuda_exit(&scope, status);
}
