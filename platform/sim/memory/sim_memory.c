/* cudaMalloc and managed memory: physical granules and ascending addresses. */
#include <stdlib.h>

#include "platform/sim/memory/sim_pool.h"
#include "platform/sim/world/checker_hooks.h"

uint64_t sim_used(const sim_device_t *device) {
    return device->used + strata_min(device->managed, device->capacity - device->used);
}

static void note_peaks(sim_device_t *device) {
    device->peak_used = strata_max(device->peak_used, sim_used(device));
    uint64_t room = device->capacity - device->used;
    if (device->managed > room) device->peak_oversubscribed = strata_max(device->peak_oversubscribed, device->managed - room);
}

bool sim_claim(sim_device_t *device, uint64_t bytes) {
    if (bytes > device->capacity - device->used) return false;
    device->used += bytes;
    note_peaks(device);
    return true;
}

void sim_unclaim(sim_device_t *device, uint64_t bytes) { device->used -= bytes; }

bool sim_granules(const sim_device_t *device, uint64_t size, uint64_t *bytes) {
    return strata_round_up(size, device->world->profile.granule_bytes, bytes);
}

/* Returns the address range of the live owner of a region: the region itself, its window, or its chunk. */
static void whole_of(const sim_region_t *region, uint64_t *begin, uint64_t *size) {
    *begin = region->node.key;
    *size = region->span;
    if (region->kind == SIM_REGION_PIECE) {
        *begin = region->granule->address;
        *size = 2 * region->device->world->profile.granule_bytes;
    }
}

/* Returns the end of a live range of the device that overlaps [begin, end), or 0 if there is none. */
static uint64_t taken_until(sim_device_t *device, uint64_t begin, uint64_t end) {
    sim_tree_t *regions = &device->world->regions;
    sim_node_t *near[2] = {sim_tree_floor(regions, begin), sim_tree_ceiling(regions, begin, 0)};
    for (int i = 0; i < 2; i++) {
        uint64_t from, size;
        if (!near[i] || ((sim_region_t *)near[i])->kind == SIM_REGION_BLOCK) continue;
        whole_of((sim_region_t *)near[i], &from, &size);
        if (from < end && from + size > begin) return from + size;
    }
    return sim_pools_taken_until(device, begin, end);
}

/* Returns ascending addresses. They restart, past live ranges, only after a device used all of its 4
 * PiB. So a freed address is not reused soon, and a use after free is detected. */
strata_address_t sim_address(sim_device_t *device, uint64_t span, uint64_t alignment) {
    uint64_t first = SIM_BASE + device->base.ordinal * SIM_DEVICE_SPAN, limit = first + SIM_DEVICE_SPAN;
    uint64_t granule = device->world->profile.granule_bytes, begin = device->next_address, end, taken;
    for (bool again = false;;) {
        bool fits = strata_round_up(begin, alignment, &begin) && strata_add(begin, span, &end) && strata_add(end, granule, &end) &&
                    end <= limit;
        if (!fits && again) return 0;
        if (!fits) {
            again = device->addresses_reused = true;
            begin = first;
            continue;
        }
        taken = device->addresses_reused ? taken_until(device, begin, end) : 0;
        if (!taken) break;
        begin = taken + granule;
    }
    device->next_address = end;
    return begin;
}

sim_region_t *sim_region_new(sim_device_t *device, sim_region_kind_t kind, strata_address_t address, uint64_t size) {
    sim_region_t *region = calloc(1, sizeof *region);
    if (!region) return NULL;
    region->node.key = address;
    region->size = size;
    region->kind = kind;
    region->device = device;
    sim_tree_insert(&device->world->regions, &region->node);
    return region;
}

void sim_region_drop(sim_region_t *region) {
    sim_tree_remove(&region->device->world->regions, &region->node);
    free(region);
}

sim_region_t *sim_region_at(strata_sim_t *world, strata_address_t address) {
    sim_region_t *region = (sim_region_t *)sim_tree_floor(&world->regions, address);
    return region && address - region->node.key < region->size ? region : NULL;
}

sim_region_t *sim_region_find(sim_device_t *device, strata_address_t address) {
    sim_region_t *region = (sim_region_t *)sim_tree_floor(&device->world->regions, address);
    if (region && region->node.key == address && region->device == device) return region;
    strata_fail(STRATA_E_DEVICE, SIM_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE: no allocation of %s:%u begins at 0x%llx",
                device->base.name, device->base.ordinal, (unsigned long long)address);
    return NULL;
}

static void granule_drop(sim_device_t *device, sim_granule_t *granule) {
    uint64_t bytes = device->world->profile.granule_bytes;
    sim_contents_drop(granule->host, 2 * bytes);
    sim_unclaim(device, bytes);
    device->granules--;
    if (device->open == granule) device->open = NULL;
    free(granule);
}

/* Creates a granule. The caller accounts for its physical bytes. */
static strata_status_t granule_new(sim_device_t *device, uint64_t size, sim_granule_t **out) {
    uint64_t bytes = device->world->profile.granule_bytes;
    sim_granule_t *granule = calloc(1, sizeof *granule);
    if (!granule || !sim_contents_new(device->world, 2 * bytes, &granule->host)) {
        free(granule);
        return sim_no_host_memory();
    }
    granule->address = sim_address(device, 2 * bytes, bytes);
    if (!granule->address) {
        sim_contents_drop(granule->host, 2 * bytes);
        free(granule);
        return sim_out_of_memory(device, "address space", size);
    }
    device->granules++;
    device->open = *out = granule;
    return STRATA_OK;
}

/* Returns a granule with `need` bytes left: the open one, or a new one. */
static strata_status_t granule_for(sim_device_t *device, uint64_t need, uint64_t size, sim_granule_t **out) {
    uint64_t bytes = device->world->profile.granule_bytes;
    if (device->open && device->open->taken + need <= bytes) {
        *out = device->open;
        return STRATA_OK;
    }
    if (!sim_claim(device, bytes)) return sim_out_of_memory(device, "cudaMalloc", size);
    strata_status_t status = granule_new(device, size, out);
    if (status != STRATA_OK) sim_unclaim(device, bytes);
    return status;
}

static strata_status_t malloc_piece(sim_device_t *device, uint64_t size, strata_address_t *address) {
    uint64_t need = (size + SIM_ALIGNMENT - 1) & ~(uint64_t)(SIM_ALIGNMENT - 1);
    sim_granule_t *granule = NULL;
    strata_status_t status = granule_for(device, need, size, &granule);
    if (status != STRATA_OK) return status;
    sim_region_t *region = sim_region_new(device, SIM_REGION_PIECE, granule->address + granule->next, size);
    if (!region) {
        if (!granule->pieces) granule_drop(device, granule);
        return sim_no_host_memory();
    }
    region->granule = granule;
    region->host = granule->host ? granule->host + granule->next : NULL;
    granule->taken += need;
    granule->next += need + SIM_ALIGNMENT;
    granule->pieces++;
    *address = region->node.key;
    return STRATA_OK;
}

/* Allocates whole granules at an address of their own. The caller accounts for the physical bytes. */
static strata_status_t malloc_span(sim_device_t *device, sim_region_kind_t kind, uint64_t size, uint64_t span,
                                   strata_address_t *address) {
    uint8_t *host = NULL;
    strata_address_t begin = sim_address(device, span, device->world->profile.granule_bytes);
    if (!begin) return sim_out_of_memory(device, "address space", size);
    if (!sim_contents_new(device->world, span, &host)) return sim_no_host_memory();
    sim_region_t *region = sim_region_new(device, kind, begin, size);
    if (!region) {
        sim_contents_drop(host, span);
        return sim_no_host_memory();
    }
    region->span = span;
    region->host = host;
    *address = begin;
    return STRATA_OK;
}

static strata_status_t malloc_device(sim_device_t *device, uint64_t size, strata_address_t *address) {
    uint64_t span;
    sim_charge(device, &device->world->profile.malloc, size);
    if (size < device->world->profile.pack_below_bytes) return malloc_piece(device, size, address);
    if (!sim_granules(device, size, &span) || !sim_claim(device, span)) return sim_out_of_memory(device, "cudaMalloc", size);
    strata_status_t status = malloc_span(device, SIM_REGION_MALLOC, size, span, address);
    if (status != STRATA_OK) sim_unclaim(device, span);
    return status;
}

static strata_status_t malloc_managed(sim_device_t *device, uint64_t size, strata_address_t *address) {
    uint64_t span, sum;
    sim_charge(device, &device->world->profile.managed_malloc, size);
    if (!sim_granules(device, size, &span) || !strata_add(device->managed, span, &sum) ||
        sum > device->world->profile.address_bytes)
        return sim_out_of_memory(device, "cudaMallocManaged", size);
    strata_status_t status = malloc_span(device, SIM_REGION_MANAGED, size, span, address);
    if (status != STRATA_OK) return status;
    device->managed = sum;
    note_peaks(device);
    return STRATA_OK;
}

strata_status_t sim_op_malloc(strata_device_t *base, strata_memory_t memory, uint64_t size, strata_address_t *address) {
    sim_device_t *device = sim_of(base);
    if (size == 0 || (memory != STRATA_MEMORY_DEVICE && memory != STRATA_MEMORY_MANAGED))
        return strata_fail(STRATA_E_INVALID, SIM_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE: malloc of %llu bytes of kind %d",
                           (unsigned long long)size, (int)memory);
    strata_status_t status = sim_begin(device, STRATA_CALL_malloc);
    if (status != STRATA_OK) return status;
    status = memory == STRATA_MEMORY_DEVICE ? malloc_device(device, size, address) : malloc_managed(device, size, address);
    if (status == STRATA_OK) check_on_memory(device, *address, size, NULL);
    return sim_end(device, status);
}

void sim_region_end(sim_region_t *region) {
    sim_device_t *device = region->device;
    if (region->kind == SIM_REGION_PIECE) {
        if (--region->granule->pieces == 0) granule_drop(device, region->granule);
    } else {
        sim_contents_drop(region->host, region->span);
        if (region->kind == SIM_REGION_MANAGED) device->managed -= region->span;
        else sim_unclaim(device, region->span);
    }
    sim_region_drop(region);
}

static strata_status_t free_region(sim_device_t *device, strata_memory_t memory, strata_address_t address) {
    sim_region_t *region = sim_region_find(device, address);
    if (!region) return STRATA_E_DEVICE;
    bool managed = region->kind == SIM_REGION_MANAGED;
    bool pooled = region->kind == SIM_REGION_BLOCK;
    bool device_memory = pooled || region->kind == SIM_REGION_MALLOC || region->kind == SIM_REGION_PIECE;
    if (memory == STRATA_MEMORY_MANAGED ? !managed : !device_memory)
        return strata_fail(STRATA_E_DEVICE, SIM_CU_INVALID_VALUE,
                           "CUDA_ERROR_INVALID_VALUE: 0x%llx is a different kind of "
                           "memory",
                           (unsigned long long)address);
    if (pooled && !sim_pool_may_free(region)) return STRATA_E_DEVICE;
    if (sim_free_wait(device)) check_on_device_done(device);
    if (!pooled) check_on_memory_freed(device, address, region->size, NULL);
    const strata_sim_profile_t *profile = &device->world->profile;
    sim_charge(device, managed ? &profile->managed_free : &profile->free, region->size);
    if (pooled) return sim_pool_free(region);
    sim_region_end(region);
    return STRATA_OK;
}

strata_status_t sim_op_free(strata_device_t *base, strata_memory_t memory, strata_address_t address) {
    sim_device_t *device = sim_of(base);
    if (memory != STRATA_MEMORY_DEVICE && memory != STRATA_MEMORY_MANAGED)
        return strata_fail(STRATA_E_INVALID, SIM_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE: free of kind %d", (int)memory);
    strata_status_t status = sim_begin(device, STRATA_CALL_free);
    if (status != STRATA_OK) return status;
    return sim_end(device, free_region(device, memory, address));
}

strata_status_t sim_op_mem_info(strata_device_t *base, uint64_t *free_bytes, uint64_t *total) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_mem_info);
    if (status != STRATA_OK) return status;
    const strata_sim_profile_t *profile = &device->world->profile;
    sim_charge(device, &profile->mem_info, 0);
    *free_bytes = device->capacity - sim_used(device);
    if (!strata_add(device->capacity, profile->context_bytes + profile->foreign_bytes, total)) *total = UINT64_MAX;
    return sim_end(device, STRATA_OK);
}

void sim_memory_end(sim_device_t *device) {
    strata_sim_t *world = device->world;
    sim_node_t *node = sim_tree_ceiling(&world->regions, 0, 0);
    while (node) {
        sim_region_t *region = (sim_region_t *)node;
        node = sim_tree_next(&world->regions, node);
        if (region->device != device) continue;
        if (region->kind == SIM_REGION_PINNED || region->kind == SIM_REGION_HOST) sim_host_end(region);
        else if (region->kind != SIM_REGION_RESERVATION) sim_region_end(region);
    }
}
