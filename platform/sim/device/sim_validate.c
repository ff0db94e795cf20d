/* Checks the consistency of the structures of a world with each other. */
#include "platform/sim/memory/sim_pool.h"

static strata_status_t corrupt(const char *what) { return strata_fail(STRATA_E_CORRUPT, 0, "simulated device: %s", what); }

typedef struct tally {
    uint64_t used, managed, reserved, mappings, blocks;
} tally_t;

static strata_status_t count_mappings(const sim_region_t *region, tally_t *tally) {
    if (!sim_tree_valid(&region->mappings)) return corrupt("the mappings are out of order");
    uint64_t after = region->node.key, end = region->node.key + region->size;
    for (sim_node_t *node = sim_tree_ceiling(&region->mappings, 0, 0); node; node = sim_tree_next(&region->mappings, node)) {
        const sim_mapping_t *mapping = (const sim_mapping_t *)node;
        if (node->key < after || mapping->size > end - node->key) return corrupt("mappings overlap or leave their range");
        if (!mapping->physical->mappings || mapping->physical->size != mapping->size)
            return corrupt("a mapping does not fit its handle");
        after = node->key + mapping->size;
        tally->mappings++;
    }
    return STRATA_OK;
}

static strata_status_t count_region(const sim_region_t *region, tally_t *tallies) {
    tally_t *tally = &tallies[region->device->base.ordinal];
    switch (region->kind) {
    case SIM_REGION_MALLOC: tally->used += region->span; break;
    case SIM_REGION_MANAGED: tally->managed += region->span; break;
    case SIM_REGION_PIECE:
        if (!region->granule->pieces) return corrupt("a piece is in a granule without pieces");
        break;
    case SIM_REGION_RESERVATION: tally->reserved += region->size; return count_mappings(region, tally);
    case SIM_REGION_BLOCK: tally->blocks += ((const sim_block_t *)region)->size; break;
    default: break;
    }
    return STRATA_OK;
}

static strata_status_t count_regions(strata_sim_t *world, tally_t *tallies) {
    if (!sim_tree_valid(&world->regions)) return corrupt("the regions are out of order");
    uint64_t after = 0;
    for (sim_node_t *node = sim_tree_ceiling(&world->regions, 0, 0); node; node = sim_tree_next(&world->regions, node)) {
        const sim_region_t *region = (const sim_region_t *)node;
        if (node->key < after) return corrupt("regions overlap");
        after = node->key + region->size;
        strata_status_t status = count_region(region, tallies);
        if (status != STRATA_OK) return status;
    }
    return STRATA_OK;
}

static bool slots_valid(const sim_slots_t *slots) {
    uint32_t empty = 0;
    for (uint32_t i = 0; i < slots->count; i++) empty += !slots->items[i];
    return empty == slots->free_count && slots->count <= slots->room;
}

typedef struct pool_tally {
    uint64_t reserved, used, idle, live, owned;
} pool_tally_t;

static bool chunk_valid(const sim_chunk_t *chunk, pool_tally_t *tally) {
    uint64_t at = chunk->first->region.node.key, begin = at;
    const sim_block_t *before = NULL;
    for (const sim_block_t *block = chunk->first; block; before = block, block = block->after) {
        if (block->region.node.key != at || block->before != before || block->chunk != chunk) return false;
        at += block->size;
        tally->used += block->live ? block->size : 0;
        tally->live += block->live;
        tally->idle += !block->live;
        tally->owned += !block->live && block->stream_id;
    }
    tally->reserved += chunk->size;
    return at - begin == chunk->size;
}

static strata_status_t check_pools(const sim_device_t *device, uint64_t *reserved, uint64_t *used) {
    *reserved = *used = 0;
    for (const sim_pool_t *pool = device->pools; pool; pool = pool->next) {
        pool_tally_t tally = {0};
        for (const sim_chunk_t *chunk = pool->chunks; chunk; chunk = chunk->next)
            if (!chunk_valid(chunk, &tally)) return corrupt("the blocks of a pool's chunk do not fill it");
        if (tally.reserved != pool->reserved || tally.used != pool->used || tally.live != pool->live ||
            tally.owned != pool->owned || tally.idle != pool->idle.count || !sim_tree_valid(&pool->idle))
            return corrupt("a pool is miscounted");
        *reserved += pool->reserved;
        *used += pool->used;
    }
    return STRATA_OK;
}

/* Returns the physical memory of handles. Memory that only another device still maps is not seen, so
 * the sum is a lower bound. */
static uint64_t handle_bytes(const sim_device_t *device) {
    uint64_t bytes = 0;
    const sim_slots_t *slots = &device->slots[SIM_PHYSICAL];
    for (uint32_t i = 0; i < slots->count; i++) {
        const sim_physical_t *physical = slots->items[i];
        if (physical && physical->device == device && physical->handles == 1) bytes += physical->size;
    }
    return bytes;
}

static strata_status_t check_device(const sim_device_t *device, const tally_t *tally) {
    uint64_t granules = device->granules * device->world->profile.granule_bytes, reserved, used;
    strata_status_t status = check_pools(device, &reserved, &used);
    if (status != STRATA_OK) return status;
    if (used != tally->blocks) return corrupt("the blocks of pools are miscounted");
    if (device->used > device->capacity) return corrupt("used memory exceeds capacity");
    if (device->used < tally->used + granules + reserved + handle_bytes(device)) return corrupt("regions exceed the counted bytes");
    if (device->managed != tally->managed) return corrupt("managed memory is miscounted");
    if (device->reserved_addresses != tally->reserved) return corrupt("reserved addresses are miscounted");
    if (device->mappings != tally->mappings) return corrupt("mappings are miscounted");
    if (device->blocking_end > device->end) return corrupt("a stream ends after its device");
    for (int kind = 0; kind < SIM_HANDLE_KINDS; kind++)
        if (!slots_valid(&device->slots[kind])) return corrupt("a table of handles is miscounted");
    return STRATA_OK;
}

strata_status_t strata_sim_validate(strata_sim_t *world) {
    tally_t tallies[SIM_DEVICES_MAX] = {{0}};
    strata_lock(&world->lock);
    strata_status_t status = count_regions(world, tallies);
    for (uint32_t i = 0; i < world->devices && status == STRATA_OK; i++)
        if (world->device[i]) status = check_device(world->device[i], &tallies[i]);
    strata_unlock(&world->lock);
    return status;
}
