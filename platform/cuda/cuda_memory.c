/* Device, managed, pinned and host memory. */
#include <stdlib.h>

#include "platform/arithmetic.h"
#include "platform/cuda/cuda_device.h"

strata_status_t strata_cuda_malloc(strata_device_t *self, strata_memory_t memory, uint64_t size, strata_address_t *address) {
    if (size == 0 || (memory != STRATA_MEMORY_DEVICE && memory != STRATA_MEMORY_MANAGED))
        return strata_fail(STRATA_E_INVALID, 0, "malloc serves more than 0 bytes of device or managed memory");
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return status;
    CUdeviceptr got = 0;
    if (memory == STRATA_MEMORY_DEVICE) status = CUDA_CALL(scope.device, MemAlloc, &got, size);
    else if (self->capabilities.managed) status = CUDA_CALL(scope.device, MemAllocManaged, &got, size, CU_MEM_ATTACH_GLOBAL);
    else status = strata_fail(STRATA_E_UNSUPPORTED, 0, "gpu:%u has no managed memory", self->ordinal);
    if (status == STRATA_OK) *address = got;
    return strata_cuda_exit(&scope, status);
}

/* NVIDIA's header documents only that cuMemFree may wait for the device. The contract requires a wait,
 * so we wait ourselves. Since that would invalidate a capture, the driver's own wait, which its guide
 * describes, must be enough if one may be under way. */
strata_status_t strata_cuda_free(strata_device_t *self, strata_memory_t memory, strata_address_t address) {
    if (address == 0 || (memory != STRATA_MEMORY_DEVICE && memory != STRATA_MEMORY_MANAGED))
        return strata_fail(STRATA_E_INVALID, 0, "free accepts only device or managed memory");
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return strata_cuda_ignore_shutdown(status);
    if (!strata_cuda_capture_possible(scope.device)) status = CUDA_CALL(scope.device, CtxSynchronize);
    if (status == STRATA_OK || status == STRATA_E_CAPTURE) status = CUDA_CALL(scope.device, MemFree, address);
    return strata_cuda_ignore_shutdown(strata_cuda_exit(&scope, status));
}

static strata_status_t host_alloc(uint64_t size, uint64_t alignment, strata_address_t *address) {
    void *memory = NULL;
    if (posix_memalign(&memory, alignment, size) != 0)
        return strata_fail(STRATA_E_HOST_MEMORY, 0, "out of host memory: %llu bytes aligned to %llu", (unsigned long long)size,
                           (unsigned long long)alignment);
    *address = (strata_address_t)(uintptr_t)memory;
    return STRATA_OK;
}

/* The driver promises no more alignment of pinned memory than malloc does, though it returns whole
 * pages. If the alignment does not fit, more is allocated and the address is moved up. */
static strata_status_t pin_shifted(strata_cuda_device_t *device, uint64_t size, uint64_t alignment, uint32_t flags,
                                   strata_address_t *address) {
    uint64_t larger;
    if (!strata_add(size, alignment, &larger)) return strata_fail(STRATA_E_NO_MEMORY, 0, "size and alignment are too large");
    strata_status_t status = strata_cuda_table_claim(&device->shifted, &device->lock);
    if (status != STRATA_OK) return status;
    void *memory = NULL;
    status = CUDA_CALL(device, MemHostAlloc, &memory, larger, flags);
    uint64_t aligned = ((uint64_t)(uintptr_t)memory + alignment - 1) & ~(alignment - 1);
    strata_lock(&device->lock);
    if (status == STRATA_OK) {
        strata_cuda_table_insert(&device->shifted, aligned, (uint64_t)(uintptr_t)memory);
        atomic_store(&device->shifted_count, device->shifted.count);
        *address = aligned;
    } else {
        strata_cuda_table_unclaim(&device->shifted);
    }
    strata_unlock(&device->lock);
    return status;
}

static strata_status_t pin(strata_cuda_device_t *device, uint64_t size, uint64_t alignment, uint32_t flags,
                           strata_address_t *address) {
    void *memory = NULL;
    strata_status_t status = CUDA_CALL(device, MemHostAlloc, &memory, size, flags);
    if (status != STRATA_OK) return status;
    if (((uint64_t)(uintptr_t)memory & (alignment - 1)) == 0) {
        *address = (strata_address_t)(uintptr_t)memory;
        return STRATA_OK;
    }
    status = CUDA_CALL(device, MemFreeHost, memory);
    return status == STRATA_OK ? pin_shifted(device, size, alignment, flags, address) : status;
}

strata_status_t strata_cuda_host_alloc(strata_device_t *self, strata_memory_t memory, uint64_t size, uint64_t alignment,
                                       uint32_t flags, strata_address_t *address) {
    if (size == 0 || alignment < 64 || !strata_is_power_of_two(alignment) ||
        (memory != STRATA_MEMORY_PINNED && memory != STRATA_MEMORY_HOST))
        return strata_fail(STRATA_E_INVALID, 0,
                           "host_alloc serves at least 1 byte of pinned or host memory, aligned to a power of two of at least "
                           "64");
    bool on_node = strata_host_flags_name_node(flags);
    if (memory == STRATA_MEMORY_HOST) {
        strata_status_t usable = strata_cuda_usable(strata_cuda_of(self));
        if (usable != STRATA_OK) return usable;
        return on_node ? strata_cuda_node_alloc(strata_cuda_of(self), memory, size, alignment, flags, address)
                       : host_alloc(size, alignment, address);
    }
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return status;
    status = on_node ? strata_cuda_node_alloc(scope.device, memory, size, alignment, flags, address)
                     : pin(scope.device, size, alignment, flags, address);
    return strata_cuda_exit(&scope, status);
}

static strata_status_t unpin(strata_cuda_device_t *device, strata_address_t address) {
    uint64_t given = address;
    bool shifted = false;
    if (atomic_load(&device->shifted_count)) {
        strata_lock(&device->lock);
        shifted = strata_cuda_table_remove_claimed(&device->shifted, address, &given);
        strata_unlock(&device->lock);
    }
    strata_status_t status = CUDA_CALL(device, MemFreeHost, (void *)(uintptr_t)given);
    if (!shifted) return status;
    strata_lock(&device->lock);
    if (status == STRATA_OK) strata_cuda_table_unclaim(&device->shifted);
    else strata_cuda_table_insert(&device->shifted, address, given);
    atomic_store(&device->shifted_count, device->shifted.count);
    strata_unlock(&device->lock);
    return status;
}

strata_status_t strata_cuda_host_free(strata_device_t *self, strata_memory_t memory, strata_address_t address) {
    if (address == 0 || (memory != STRATA_MEMORY_PINNED && memory != STRATA_MEMORY_HOST))
        return strata_fail(STRATA_E_INVALID, 0, "host_free accepts only pinned or host memory");
    if (memory == STRATA_MEMORY_HOST) { /* unknown to the driver, so it outlives the driver's shutdown */
        strata_status_t given = STRATA_OK;
        if (strata_cuda_of(self)->generation != strata_cuda_generation()) return strata_cuda_usable(strata_cuda_of(self));
        if (!strata_cuda_node_free(strata_cuda_of(self), address, &given)) free((void *)(uintptr_t)address);
        return given;
    }
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return strata_cuda_ignore_shutdown(status);
    if (!strata_cuda_node_free(scope.device, address, &status)) status = unpin(scope.device, address);
    return strata_cuda_ignore_shutdown(strata_cuda_exit(&scope, status));
}

strata_status_t strata_cuda_mem_info(strata_device_t *self, uint64_t *free_bytes, uint64_t *total) {
    strata_cuda_scope_t scope;
    strata_status_t status = strata_cuda_enter(self, STRATA_CUDA_RELAXED, &scope);
    if (status != STRATA_OK) return status;
    size_t left = 0, all = 0;
    status = CUDA_CALL(scope.device, MemGetInfo, &left, &all);
    if (status == STRATA_OK) {
        *free_bytes = left;
        *total = all;
    }
    return strata_cuda_exit(&scope, status);
}
