/* Pinned and plain host memory. It is real memory, since programs touch it, in worlds with contents or
 * without. */
#include <stdlib.h>

#include "platform/host/host_nodes.h"
#include "platform/sim/world/checker_hooks.h"

/* Memory of at least this size is mapped, so that it costs nothing until it is touched. */
#define MAP_FROM      (UINT64_C(1) << 20)
#define ALIGNMENT_MAX (UINT64_C(1) << 30)

static void *host_in_order(strata_sim_t *world, uint64_t alignment, uint64_t span) {
    uint64_t address;
    if (!strata_round_up(world->host_next, strata_max(alignment, 4096), &address)) return NULL;
    void *memory = strata_host_map_at(address, span);
    if (memory) world->host_next = address + span;
    return memory;
}

static void *host_new(strata_sim_t *world, uint64_t size, uint64_t alignment, uint64_t *span) {
    void *memory = NULL;
    *span = 0;
    if (world->host_next) return strata_round_up(size, 4096, span) ? host_in_order(world, alignment, *span) : NULL;
    if (size < MAP_FROM) return posix_memalign(&memory, alignment, size) == 0 ? memory : NULL;
    if (!strata_round_up(size, 4096, span)) return NULL;
    return strata_host_map(*span, strata_max(alignment, 4096));
}

static void host_drop(void *memory, uint64_t span) {
    if (span) strata_host_unmap(memory, span);
    else free(memory);
}

static strata_status_t host_alloc(sim_device_t *device, strata_memory_t memory, uint64_t size, uint64_t alignment, uint32_t flags,
                                  strata_address_t *address) {
    uint64_t span;
    bool pinned = memory == STRATA_MEMORY_PINNED;
    if (pinned) sim_charge(device, &device->world->profile.host_alloc, size);
    void *host = host_new(device->world, size, alignment, &span);
    if (!host)
        return strata_fail(STRATA_E_NO_MEMORY, SIM_CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY: the host has no %llu bytes left",
                           (unsigned long long)size);
    sim_region_t *region = sim_region_new(device, pinned ? SIM_REGION_PINNED : SIM_REGION_HOST, (uintptr_t)host, size);
    if (!region) {
        host_drop(host, span);
        return sim_no_host_memory();
    }
    region->span = span;
    region->host = host;
    region->on_node = flags >> 8;
    *address = (uintptr_t)host;
    check_on_memory(device, *address, size, NULL);
    return STRATA_OK;
}

/* The model has two nodes, and ignores where the memory really is. */
static strata_status_t check_node(const sim_device_t *device, uint32_t flags) {
    if (!strata_host_flags_name_node(flags)) return STRATA_OK;
    uint32_t node = strata_host_flags_node(flags);
    if (node < STRATA_HOST_NODES && (device->base.capabilities.host_nodes >> node & 1) && !(flags & STRATA_HOST_WRITE_COMBINED))
        return STRATA_OK;
    return strata_fail(STRATA_E_UNSUPPORTED, 0, "%s cannot provide %smemory of the host's NUMA node %u", device->base.name,
                       flags & STRATA_HOST_WRITE_COMBINED ? "write-combined " : "", node);
}

strata_status_t sim_op_host_alloc(strata_device_t *base, strata_memory_t memory, uint64_t size, uint64_t alignment, uint32_t flags,
                                  strata_address_t *address) {
    sim_device_t *device = sim_of(base);
    const uint32_t known = STRATA_HOST_PORTABLE | STRATA_HOST_MAPPED | STRATA_HOST_WRITE_COMBINED;
    bool kind = memory == STRATA_MEMORY_PINNED || memory == STRATA_MEMORY_HOST;
    bool aligned = strata_is_power_of_two(alignment) && alignment >= 64 && alignment <= ALIGNMENT_MAX;
    if (!kind || !aligned || size == 0 || (flags & 0xff & ~known))
        return strata_fail(STRATA_E_INVALID, SIM_CU_INVALID_VALUE,
                           "CUDA_ERROR_INVALID_VALUE: host memory of %llu bytes, alignment %llu, kind %d, flags %u",
                           (unsigned long long)size, (unsigned long long)alignment, (int)memory, flags);
    strata_status_t status = check_node(device, flags);
    if (status == STRATA_OK) status = sim_begin(device, STRATA_CALL_host_alloc);
    if (status != STRATA_OK) return status;
    return sim_end(device, host_alloc(device, memory, size, alignment, flags, address));
}

void sim_host_end(sim_region_t *region) {
    host_drop(region->host, region->span);
    sim_region_drop(region);
}

static strata_status_t host_free(sim_device_t *device, strata_memory_t memory, strata_address_t address) {
    sim_region_t *region = sim_region_find(device, address);
    if (!region) return STRATA_E_DEVICE;
    sim_region_kind_t wanted = memory == STRATA_MEMORY_PINNED ? SIM_REGION_PINNED : SIM_REGION_HOST;
    if (region->kind != wanted)
        return strata_fail(STRATA_E_DEVICE, SIM_CU_INVALID_VALUE,
                           "CUDA_ERROR_INVALID_VALUE: 0x%llx is a different kind of "
                           "memory",
                           (unsigned long long)address);
    /* The wait costs time only. The device contract promises no wait here, so it is no order that an
     * allocator may rely on. */
    if (memory == STRATA_MEMORY_PINNED) {
        (void)sim_free_wait(device);
        sim_charge(device, &device->world->profile.host_free, region->size);
    }
    check_on_memory_freed(device, address, region->size, NULL);
    sim_host_end(region);
    return STRATA_OK;
}

strata_status_t sim_op_host_free(strata_device_t *base, strata_memory_t memory, strata_address_t address) {
    sim_device_t *device = sim_of(base);
    if (memory != STRATA_MEMORY_PINNED && memory != STRATA_MEMORY_HOST)
        return strata_fail(STRATA_E_INVALID, SIM_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE: host_free of kind %d", (int)memory);
    strata_status_t status = sim_begin(device, STRATA_CALL_host_free);
    if (status != STRATA_OK) return status;
    return sim_end(device, host_free(device, memory, address));
}

int strata_sim_host_node(strata_device_t *base, strata_address_t address) {
    sim_device_t *device = sim_of(base);
    strata_lock(&device->world->lock);
    const sim_region_t *region = sim_region_find(device, address);
    bool host = region && (region->kind == SIM_REGION_PINNED || region->kind == SIM_REGION_HOST);
    int node = host ? (int)region->on_node - 1 : -1;
    strata_unlock(&device->world->lock);
    return node;
}
