/* Pinned and plain host memory of a named node. The driver's own pinning follows the thread's policy.
 * So the memory is mapped here, the kernel is given its node, and the driver pins it in place. */
#include "platform/arithmetic.h"
#include "platform/cuda/cuda_device.h"
#include "platform/host/host_nodes.h"

enum { PAGE = 4096, PINNED_BIT = 1 };

static strata_status_t check(const strata_cuda_device_t *device, uint32_t flags) {
    uint32_t node = strata_host_flags_node(flags);
    if (node >= STRATA_HOST_NODES || !(device->base.capabilities.host_nodes >> node & 1))
        return strata_fail(STRATA_E_UNSUPPORTED, 0, "gpu:%u cannot have memory of the host's NUMA node %u", device->base.ordinal,
                           node);
    if (flags & STRATA_HOST_WRITE_COMBINED)
        return strata_fail(STRATA_E_UNSUPPORTED, 0, "the driver has no write-combined memory of a NUMA node");
    return STRATA_OK;
}

static strata_status_t map(uint64_t size, uint64_t alignment, uint32_t node, void **memory) {
    void *mapped = strata_host_map(size, strata_max(alignment, PAGE));
    if (!mapped) return strata_fail(STRATA_E_HOST_MEMORY, 0, "out of host memory: %llu bytes", (unsigned long long)size);
    if (strata_host_prefer_node(mapped, size, node)) {
        *memory = mapped;
        return STRATA_OK;
    }
    strata_host_unmap(mapped, size);
    return strata_fail(STRATA_E_UNSUPPORTED, 0, "the kernel does not let this process choose the host's NUMA node %u", node);
}

strata_status_t strata_cuda_node_alloc(strata_cuda_device_t *device, strata_memory_t memory, uint64_t size, uint64_t alignment,
                                       uint32_t flags, strata_address_t *address) {
    void *mapped = NULL;
    bool pinned = memory == STRATA_MEMORY_PINNED;
    strata_status_t status = check(device, flags);
    if (status != STRATA_OK) return status;
    if (!strata_round_up(size, PAGE, &size)) return strata_fail(STRATA_E_NO_MEMORY, 0, "the size is too large");
    status = strata_cuda_table_claim(&device->on_node, &device->lock);
    if (status != STRATA_OK) return status;
    status = map(size, alignment, strata_host_flags_node(flags), &mapped);
    /* The driver's flags for registering have the same numbers as those for allocating. */
    if (status == STRATA_OK && pinned)
        status = CUDA_CALL(device, MemHostRegister, mapped, size, flags & (STRATA_HOST_PORTABLE | STRATA_HOST_MAPPED));
    if (status != STRATA_OK && mapped) strata_host_unmap(mapped, size);
    strata_lock(&device->lock);
    if (status == STRATA_OK)
        strata_cuda_table_insert(&device->on_node, (uint64_t)(uintptr_t)mapped, size | (pinned ? PINNED_BIT : 0));
    else strata_cuda_table_unclaim(&device->on_node);
    atomic_store(&device->on_node_count, device->on_node.count);
    strata_unlock(&device->lock);
    if (status == STRATA_OK) *address = (strata_address_t)(uintptr_t)mapped;
    return status;
}

bool strata_cuda_node_free(strata_cuda_device_t *device, strata_address_t address, strata_status_t *status) {
    uint64_t size = 0;
    if (atomic_load(&device->on_node_count) == 0) return false;
    strata_lock(&device->lock);
    bool found = strata_cuda_table_remove_claimed(&device->on_node, address, &size);
    strata_unlock(&device->lock);
    if (!found) return false;
    *status = size & PINNED_BIT ? CUDA_CALL(device, MemHostUnregister, (void *)(uintptr_t)address) : STRATA_OK;
    if (*status == STRATA_OK) strata_host_unmap((void *)(uintptr_t)address, size & ~(uint64_t)PINNED_BIT);
    strata_lock(&device->lock);
    if (*status == STRATA_OK) strata_cuda_table_unclaim(&device->on_node);
    else strata_cuda_table_insert(&device->on_node, address, size);
    atomic_store(&device->on_node_count, device->on_node.count);
    strata_unlock(&device->lock);
    return true;
}
