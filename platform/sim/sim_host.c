/* Pinned and plain host memory: real memory, since programs touch it, with contents or without. */
#include <stdlib.h>
#include <sys/mman.h>

#include "platform/sim/checker_hooks.h"

/* From here on memory is mapped: untouched, it costs nothing. */
#define MAP_FROM (UINT64_C(1) << 20)
#define ALIGNMENT_MAX (UINT64_C(1) << 30)

static void *map_aligned(uint64_t size, uint64_t alignment) {
    uint64_t room;
    if (!strata_add(size, alignment, &room)) return NULL;
    uint8_t *all = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) return NULL;
    uint64_t before = (alignment - ((uintptr_t)all & (alignment - 1))) & (alignment - 1);
    if (before) munmap(all, before);
    if (room - before > size) munmap(all + before + size, room - before - size);
    return all + before;
}

static void *host_new(uint64_t size, uint64_t alignment, uint64_t *span) {
    void *memory = NULL;
    *span = 0;
    if (size < MAP_FROM) return posix_memalign(&memory, alignment, size) == 0 ? memory : NULL;
    if (!strata_round_up(size, 4096, span)) return NULL;
    return map_aligned(*span, strata_max(alignment, 4096));
}

static void host_drop(void *memory, uint64_t span) {
    if (span)
        munmap(memory, span);
    else
        free(memory);
}

static strata_status_t host_alloc(sim_device_t *device, strata_memory_t memory, uint64_t size, uint64_t alignment,
                                  strata_address_t *address) {
    uint64_t span;
    bool pinned = memory == STRATA_MEMORY_PINNED;
    if (pinned) sim_charge(device, &device->world->profile.host_alloc, size);
    void *host = host_new(size, alignment, &span);
    if (!host)
        return strata_fail(STRATA_E_NO_MEMORY, SIM_CU_OUT_OF_MEMORY,
                           "CUDA_ERROR_OUT_OF_MEMORY: the host has no %llu bytes to give", (unsigned long long)size);
    sim_region_t *region = sim_region_new(device, pinned ? SIM_REGION_PINNED : SIM_REGION_HOST, (uintptr_t)host, size);
    if (!region) {
        host_drop(host, span);
        return sim_no_host_memory();
    }
    region->span = span;
    region->host = host;
    *address = (uintptr_t)host;
    check_on_memory(device, *address, size, NULL);
    return STRATA_OK;
}

strata_status_t sim_op_host_alloc(strata_device_t *base, strata_memory_t memory, uint64_t size, uint64_t alignment,
                                  uint32_t flags, strata_address_t *address) {
    sim_device_t *device = sim_of(base);
    const uint32_t known = STRATA_HOST_PORTABLE | STRATA_HOST_MAPPED | STRATA_HOST_WRITE_COMBINED;
    bool kind = memory == STRATA_MEMORY_PINNED || memory == STRATA_MEMORY_HOST;
    bool aligned = strata_is_power_of_two(alignment) && alignment >= 64 && alignment <= ALIGNMENT_MAX;
    if (!kind || !aligned || size == 0 || (flags & ~known))
        return strata_fail(STRATA_E_INVALID, SIM_CU_INVALID_VALUE,
                           "CUDA_ERROR_INVALID_VALUE: host memory of %llu bytes, alignment %llu, kind %d, flags %u",
                           (unsigned long long)size, (unsigned long long)alignment, (int)memory, flags);
    strata_status_t status = sim_begin(device, STRATA_CALL_host_alloc);
    if (status != STRATA_OK) return status;
    return sim_end(device, host_alloc(device, memory, size, alignment, address));
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
        return strata_fail(STRATA_E_DEVICE, SIM_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE: 0x%llx is other memory",
                           (unsigned long long)address);
    if (memory == STRATA_MEMORY_PINNED) sim_charge(device, &device->world->profile.host_free, region->size);
    check_on_memory_gone(device, address, region->size, NULL);
    sim_host_end(region);
    return STRATA_OK;
}

strata_status_t sim_op_host_free(strata_device_t *base, strata_memory_t memory, strata_address_t address) {
    sim_device_t *device = sim_of(base);
    if (memory != STRATA_MEMORY_PINNED && memory != STRATA_MEMORY_HOST)
        return strata_fail(STRATA_E_INVALID, SIM_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE: host_free of kind %d",
                           (int)memory);
    strata_status_t status = sim_begin(device, STRATA_CALL_host_free);
    if (status != STRATA_OK) return status;
    return sim_end(device, host_free(device, memory, address));
}
