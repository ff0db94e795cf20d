/* Virtual memory: reservations, physical handles, mappings, access.
 *
 * A mapping is a handle at one place of a reservation. Nothing here is ordered with streams. Unmapping
 * memory that running work touches (as far as work() named it) destroys the bytes, and the device then
 * returns "illegal address" from every call. */
#include <stdlib.h>
#include <unistd.h>

#include "platform/sim/world/checker_hooks.h"

static strata_status_t wrong(const char *what, uint64_t address, uint64_t size) {
    return strata_fail(STRATA_E_DEVICE, SIM_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE: %s (0x%llx, %llu bytes)", what,
                       (unsigned long long)address, (unsigned long long)size);
}

static bool whole(const sim_device_t *device, uint64_t value) { return (value & (device->world->profile.granule_bytes - 1)) == 0; }

/* ---- address space ---- */

static uint64_t charged(uint64_t size) { return strata_min(size, STRATA_SIM_RANGE_CHARGED); }

static strata_status_t reserve(sim_device_t *device, uint64_t size, uint64_t alignment, strata_address_t *address) {
    uint64_t granule = device->world->profile.granule_bytes, sum;
    if (size == 0 || !whole(device, size)) return wrong("reserve needs whole granules", 0, size);
    if (alignment && !strata_is_power_of_two(alignment)) return wrong("alignment is not a power of two", alignment, size);
    bool fits = strata_add(device->reserved_addresses, size, &sum) && sum <= device->world->profile.address_bytes;
    sim_charge(device, &device->world->profile.reserve, fits ? charged(size) : 0);
    if (!fits) return sim_out_of_memory(device, "cuMemAddressReserve", size);
    strata_address_t begin = sim_address(device, size, strata_max(alignment, granule));
    if (!begin) return sim_out_of_memory(device, "cuMemAddressReserve", size);
    uint8_t *host;
    if (!sim_contents_reserve(device->world, size, &host)) return sim_no_host_memory();
    sim_region_t *region = sim_region_new(device, SIM_REGION_RESERVATION, begin, size);
    if (!region) {
        sim_contents_drop(host, size);
        return sim_no_host_memory();
    }
    region->span = size;
    region->host = host;
    device->reserved_addresses = sum;
    *address = begin;
    return STRATA_OK;
}

strata_status_t sim_op_reserve(strata_device_t *base, uint64_t size, uint64_t alignment, strata_address_t *address) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_reserve);
    if (status != STRATA_OK) return status;
    return sim_end(device, reserve(device, size, alignment, address));
}

static void reservation_end(sim_region_t *region) {
    sim_contents_drop(region->host, region->span);
    region->device->reserved_addresses -= region->size;
    sim_region_drop(region);
}

static strata_status_t unreserve(sim_device_t *device, strata_address_t address, uint64_t size) {
    sim_region_t *region = sim_region_find(device, address);
    if (!region) return STRATA_E_DEVICE;
    if (region->kind != SIM_REGION_RESERVATION || region->size != size)
        return wrong("unreserve needs the exact range from reserve", address, size);
    if (region->mappings.count) return wrong("the range is still mapped", address, size);
    sim_charge(device, &device->world->profile.unreserve, charged(size));
    reservation_end(region);
    return STRATA_OK;
}

strata_status_t sim_op_unreserve(strata_device_t *base, strata_address_t address, uint64_t size) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_unreserve);
    if (status != STRATA_OK) return status;
    return sim_end(device, unreserve(device, address, size));
}

/* ---- physical handles ---- */

void sim_physical_free_unused(strata_sim_t *world, sim_physical_t *physical) {
    if (physical->handles || physical->mappings) return;
    check_physical_end(physical);
    if (physical->device) sim_unclaim(physical->device, physical->size);
    if (physical->file >= 0) close(physical->file);
    else if (world->contents) sim_contents_punch(world, physical->file_offset, physical->size);
    if (physical->shareable) sim_tree_remove(&world->shared, &physical->node);
    free(physical);
}

static strata_status_t create(sim_device_t *device, uint64_t size, bool shareable, strata_physical_t *handle) {
    strata_sim_t *world = device->world;
    if (size == 0 || !whole(device, size)) return wrong("create needs whole granules", 0, size);
    sim_charge(device, &world->profile.create, size);
    if (!sim_claim(device, size)) return sim_out_of_memory(device, "cuMemCreate", size);
    sim_physical_t *physical = calloc(1, sizeof *physical);
    if (!physical || !sim_contents_file(world, size, &physical->file_offset) ||
        !sim_handle_new(device, SIM_PHYSICAL, physical, handle)) {
        free(physical);
        sim_unclaim(device, size);
        return sim_no_host_memory();
    }
    physical->device = device;
    physical->size = size;
    physical->handles = 1;
    physical->file = -1;
    physical->shareable = shareable;
    physical->node.key = ++world->next_physical;
    if (shareable) sim_tree_insert(&world->shared, &physical->node);
    return STRATA_OK;
}

strata_status_t sim_op_create(strata_device_t *base, uint64_t size, bool shareable, strata_physical_t *handle) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_create);
    if (status != STRATA_OK) return status;
    return sim_end(device, create(device, size, shareable, handle));
}

sim_physical_t *sim_physical(sim_device_t *device, strata_physical_t handle) {
    return sim_handle_find(device, SIM_PHYSICAL, handle, STRATA_E_DEVICE);
}

strata_status_t sim_op_release(strata_device_t *base, strata_physical_t handle) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_release);
    if (status != STRATA_OK) return status;
    sim_physical_t *physical = sim_physical(device, handle);
    if (!physical) return sim_end(device, STRATA_E_DEVICE);
    sim_charge(device, &device->world->profile.release, physical->size);
    sim_handle_drop(device, SIM_PHYSICAL, handle);
    physical->handles--;
    sim_physical_free_unused(device->world, physical);
    return sim_end(device, STRATA_OK);
}

/* ---- mappings ---- */

/* Returns this device's reservation that contains a whole range of whole granules, or NULL with the
 * error set. */
static sim_region_t *reservation_of(sim_device_t *device, strata_address_t address, uint64_t size) {
    sim_region_t *region = sim_region_at(device->world, address);
    if (region && region->device == device && region->kind == SIM_REGION_RESERVATION && size && whole(device, size) &&
        whole(device, address) && size <= region->size - (address - region->node.key))
        return region;
    wrong("the range is not in a reservation of this device, or not of whole granules", address, size);
    return NULL;
}

static bool taken(const sim_region_t *region, uint64_t address, uint64_t size) {
    const sim_mapping_t *last = (const sim_mapping_t *)sim_tree_floor(&region->mappings, address + size - 1);
    return last && last->node.key + last->size > address;
}

static strata_status_t map(sim_device_t *device, strata_address_t address, uint64_t size, strata_physical_t handle) {
    sim_physical_t *physical = sim_physical(device, handle);
    sim_region_t *region = physical ? reservation_of(device, address, size) : NULL;
    if (!region) return STRATA_E_DEVICE;
    if (size != physical->size) return wrong("map needs a whole handle", address, size);
    if (taken(region, address, size)) return wrong("the range is already mapped", address, size);
    sim_charge(device, &device->world->profile.map, size);
    if (device->mappings >= device->world->profile.mappings_max)
        return strata_fail(STRATA_E_NO_MEMORY, SIM_CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY: all %llu mappings are in use",
                           (unsigned long long)device->mappings);
    sim_mapping_t *mapping = calloc(1, sizeof *mapping);
    if (!mapping) return sim_no_host_memory();
    uint8_t *host = region->host ? region->host + (address - region->node.key) : NULL;
    if (!sim_contents_map(physical->file >= 0 ? physical->file : device->world->file, host, size, physical->file_offset)) {
        free(mapping);
        return sim_no_host_memory();
    }
    mapping->node.key = address;
    mapping->size = size;
    mapping->physical = physical;
    physical->mappings++;
    device->mappings++;
    sim_tree_insert(&region->mappings, &mapping->node);
    check_on_map(device, mapping);
    mapping->next = physical->mapped;
    physical->mapped = mapping;
    return STRATA_OK;
}

strata_status_t sim_op_map(strata_device_t *base, strata_address_t address, uint64_t size, strata_physical_t handle) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_map);
    if (status != STRATA_OK) return status;
    return sim_end(device, map(device, address, size, handle));
}

/* Returns the first of the mappings that fill [address, address + size) without gaps and end with it,
 * or NULL with the error set. */
static sim_mapping_t *run(sim_region_t *region, strata_address_t address, uint64_t size) {
    sim_mapping_t *first = (sim_mapping_t *)sim_tree_ceiling(&region->mappings, address, 0), *mapping = first;
    uint64_t at = address, end = address + size;
    while (mapping && mapping->node.key == at && mapping->size <= end - at) {
        at += mapping->size;
        if (at == end) return first;
        mapping = (sim_mapping_t *)sim_tree_next(&region->mappings, &mapping->node);
    }
    wrong("the range is not a run of whole mappings", address, size);
    return NULL;
}

static void forget(sim_mapping_t *mapping) {
    sim_mapping_t **at = &mapping->physical->mapped;
    while (*at != mapping) at = &(*at)->next;
    *at = mapping->next;
}

static void mapping_end(sim_region_t *region, sim_mapping_t *mapping) {
    forget(mapping);
    if (region->host) sim_contents_unmap(region->host + (mapping->node.key - region->node.key), mapping->size);
    sim_tree_remove(&region->mappings, &mapping->node);
    region->device->mappings--;
    mapping->physical->mappings--;
    sim_physical_free_unused(region->device->world, mapping->physical);
    free(mapping);
}

static void unmap_one(sim_device_t *device, sim_region_t *region, sim_mapping_t *mapping) {
    if (mapping->busy_until > sim_now(device)) {
        sim_mark_lost(device, SIM_CU_ILLEGAL_ADDRESS);
        if (region->host) sim_contents_kill(region->host + (mapping->node.key - region->node.key), mapping->size);
    }
    check_on_unmap(device, mapping);
    sim_charge(device, &device->world->profile.unmap, mapping->size);
    mapping_end(region, mapping);
}

static strata_status_t unmap(sim_device_t *device, strata_address_t address, uint64_t size) {
    sim_region_t *region = reservation_of(device, address, size);
    sim_mapping_t *mapping = region ? run(region, address, size) : NULL;
    if (!mapping) return STRATA_E_DEVICE;
    while (mapping && mapping->node.key - address < size) {
        sim_mapping_t *next = (sim_mapping_t *)sim_tree_next(&region->mappings, &mapping->node);
        unmap_one(device, region, mapping);
        mapping = next;
    }
    return STRATA_OK;
}

strata_status_t sim_op_unmap(strata_device_t *base, strata_address_t address, uint64_t size) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_unmap);
    if (status != STRATA_OK) return status;
    return sim_end(device, unmap(device, address, size));
}

static strata_status_t access_mask(sim_device_t *device, const uint32_t *peers, size_t count, uint32_t *mask) {
    *mask = UINT32_C(1) << device->base.ordinal;
    for (size_t i = 0; i < count; i++) {
        if (peers[i] >= device->world->devices)
            return strata_fail(STRATA_E_DEVICE, SIM_CU_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE: no peer %u", peers[i]);
        *mask |= UINT32_C(1) << peers[i];
    }
    return STRATA_OK;
}

static strata_status_t set_access(sim_device_t *device, strata_address_t address, uint64_t size, const uint32_t *peers,
                                  size_t count) {
    uint32_t mask;
    strata_status_t status = access_mask(device, peers, count, &mask);
    if (status != STRATA_OK) return status;
    sim_region_t *region = reservation_of(device, address, size);
    sim_mapping_t *mapping = region ? run(region, address, size) : NULL;
    if (!mapping) return STRATA_E_DEVICE;
    while (mapping && mapping->node.key - address < size) {
        sim_charge(device, &device->world->profile.set_access, mapping->size);
        mapping->access |= mask;
        mapping = (sim_mapping_t *)sim_tree_next(&region->mappings, &mapping->node);
    }
    return STRATA_OK;
}

strata_status_t sim_op_set_access(strata_device_t *base, strata_address_t address, uint64_t size, const uint32_t *peers,
                                  size_t count) {
    sim_device_t *device = sim_of(base);
    if (count && !peers) return strata_fail(STRATA_E_INVALID, SIM_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE: no peers");
    strata_status_t status = sim_begin(device, STRATA_CALL_set_access);
    if (status != STRATA_OK) return status;
    return sim_end(device, set_access(device, address, size, peers, count));
}

/* ---- closing a device ---- */

static void reservations_end(sim_device_t *device) {
    sim_tree_t *regions = &device->world->regions;
    for (sim_node_t *node = sim_tree_ceiling(regions, 0, 0), *next; node; node = next) {
        sim_region_t *region = (sim_region_t *)node;
        next = sim_tree_next(regions, node);
        if (region->device != device || region->kind != SIM_REGION_RESERVATION) continue;
        while (region->mappings.root) mapping_end(region, (sim_mapping_t *)region->mappings.root);
        reservation_end(region);
    }
}

/* Physical memory that other devices still hold or map outlives its device. It is then counted nowhere. */
static void disown(sim_device_t *device) {
    strata_sim_t *world = device->world;
    for (sim_node_t *node = sim_tree_ceiling(&world->shared, 0, 0); node; node = sim_tree_next(&world->shared, node))
        if (((sim_physical_t *)node)->device == device) ((sim_physical_t *)node)->device = NULL;
}

void sim_vmm_end(sim_device_t *device) {
    reservations_end(device);
    sim_slots_t *slots = &device->slots[SIM_PHYSICAL];
    for (uint32_t i = 0; i < slots->count; i++) {
        sim_physical_t *physical = slots->items[i];
        if (!physical) continue;
        slots->items[i] = NULL;
        physical->handles--;
        sim_physical_free_unused(device->world, physical);
    }
    disown(device);
}
