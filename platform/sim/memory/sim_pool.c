#include "platform/sim/memory/sim_pool.h"

#include <stddef.h>
#include <stdlib.h>

static sim_block_t *of_size_node(sim_node_t *node) {
    return node ? (sim_block_t *)((char *)node - offsetof(sim_block_t, by_size)) : NULL;
}

/* ---- idle blocks ---- */

static void shelve(sim_pool_t *pool, sim_block_t *block) {
    block->by_size.key = block->size;
    block->by_size.tie = block->region.node.key;
    sim_tree_insert(&pool->idle, &block->by_size);
    pool->owned += block->stream_id != 0;
}

static void unshelve(sim_pool_t *pool, sim_block_t *block) {
    sim_tree_remove(&pool->idle, &block->by_size);
    pool->owned -= block->stream_id != 0;
}

/* Merges an idle block with the next one. Both belong to the same stream or to none, and neither is shelved. */
static void absorb(sim_block_t *block, sim_block_t *after) {
    block->size += after->size;
    block->operations = strata_max(block->operations, after->operations);
    block->ready = strata_max(block->ready, after->ready);
    block->after = after->after;
    if (after->after) after->after->before = block;
    free(after);
}

static bool fits_beside(const sim_block_t *block, const sim_block_t *other) {
    return other && !other->live && other->stream_id == block->stream_id;
}

static void shelve_merged(sim_pool_t *pool, sim_block_t *block) {
    if (fits_beside(block, block->after)) {
        unshelve(pool, block->after);
        absorb(block, block->after);
    }
    if (fits_beside(block, block->before)) {
        sim_block_t *before = block->before;
        unshelve(pool, before);
        absorb(before, block);
        block = before;
    }
    shelve(pool, block);
}

void sim_pool_observe(sim_pool_t *pool) {
    if (!pool->owned) return;
    uint64_t now = sim_now(pool->device);
    for (sim_chunk_t *chunk = pool->chunks; chunk; chunk = chunk->next) {
        for (sim_block_t *block = chunk->first; block; block = block->after) {
            if (block->live || !block->stream_id || block->ready > now) continue;
            unshelve(pool, block);
            block->stream_id = 0;
            sim_block_t *before = block->before;
            bool joins = fits_beside(block, before);
            shelve_merged(pool, block);
            if (joins) block = before;
        }
    }
}

/* ---- chunks ---- */

static bool chunk_new(sim_pool_t *pool, uint64_t size) {
    sim_device_t *device = pool->device;
    sim_chunk_t *chunk = calloc(1, sizeof *chunk);
    sim_block_t *block = calloc(1, sizeof *block);
    strata_address_t address = sim_address(device, size, device->world->profile.granule_bytes);
    if (!chunk || !block || !address || !sim_contents_new(device->world, size, &chunk->host)) {
        free(chunk);
        free(block);
        return false;
    }
    chunk->pool = pool;
    chunk->size = block->size = size;
    chunk->first = block;
    chunk->next = pool->chunks;
    pool->chunks = chunk;
    block->chunk = chunk;
    block->region.node.key = address;
    pool->reserved += size;
    pool->reserved_high = strata_max(pool->reserved_high, pool->reserved);
    shelve(pool, block);
    return true;
}

uint64_t sim_pools_taken_until(const sim_device_t *device, uint64_t begin, uint64_t end) {
    for (const sim_pool_t *pool = device->pools; pool; pool = pool->next)
        for (const sim_chunk_t *chunk = pool->chunks; chunk; chunk = chunk->next) {
            uint64_t from = chunk->first->region.node.key;
            if (from < end && from + chunk->size > begin) return from + chunk->size;
        }
    return 0;
}

/* Frees a chunk that is one idle block. */
static void chunk_drop(sim_pool_t *pool, sim_chunk_t **link) {
    sim_chunk_t *chunk = *link;
    *link = chunk->next;
    unshelve(pool, chunk->first);
    free(chunk->first);
    sim_contents_drop(chunk->host, chunk->size);
    sim_unclaim(pool->device, chunk->size);
    pool->reserved -= chunk->size;
    free(chunk);
}

static bool grow_by(sim_pool_t *pool, uint64_t size) {
    if (pool->max_size && (pool->reserved > pool->max_size || size > pool->max_size - pool->reserved)) return false;
    if (!sim_claim(pool->device, size)) return false;
    sim_charge(pool->device, &pool->device->world->profile.pool_grow, size);
    if (chunk_new(pool, size)) return true;
    sim_unclaim(pool->device, size);
    return false;
}

static bool grow(sim_pool_t *pool, uint64_t need) {
    uint64_t least, usual;
    if (!sim_granules(pool->device, need, &least)) return false;
    if (!sim_granules(pool->device, pool->device->world->profile.pool_chunk_bytes, &usual)) return false;
    return (usual > least && grow_by(pool, usual)) || grow_by(pool, least);
}

void sim_pool_shrink(sim_pool_t *pool, uint64_t keep) {
    uint64_t now = sim_now(pool->device);
    for (sim_chunk_t **link = &pool->chunks; *link && pool->reserved > keep;) {
        const sim_block_t *block = (*link)->first;
        if (block->live || block->after || block->ready > now) {
            link = &(*link)->next;
            continue;
        }
        sim_charge(pool->device, &pool->device->world->profile.pool_shrink, (*link)->size);
        chunk_drop(pool, link);
    }
}

/* ---- blocks ---- */

static bool may_have(const sim_pool_t *pool, const sim_block_t *block, const sim_stream_t *stream) {
    if (!block->stream_id || (stream && block->stream_id == stream->id)) return true;
    if (pool->opportunistic && block->ready <= sim_now(pool->device)) return true;
    for (size_t i = 0; pool->follow && stream && i < SIM_FOLLOWED; i++)
        if (stream->followed[i].stream_id == block->stream_id) return stream->followed[i].operations >= block->operations;
    return false;
}

static sim_block_t *search(sim_pool_t *pool, uint64_t need, const sim_stream_t *stream, bool any) {
    sim_block_t *block = of_size_node(sim_tree_ceiling(&pool->idle, need, 0));
    while (block && !any && !may_have(pool, block, stream)) block = of_size_node(sim_tree_next(&pool->idle, &block->by_size));
    return block;
}

/* Makes the rest of an idle block a separate block. If there is no host memory for it, the whole block
 * is served. */
static void split(sim_pool_t *pool, sim_block_t *block, uint64_t need) {
    if (block->size - need < SIM_ALIGNMENT) return;
    sim_block_t *rest = calloc(1, sizeof *rest);
    if (!rest) return;
    *rest = (sim_block_t){.chunk = block->chunk,
                          .before = block,
                          .after = block->after,
                          .size = block->size - need,
                          .stream_id = block->stream_id,
                          .operations = block->operations,
                          .ready = block->ready};
    rest->region.node.key = block->region.node.key + need;
    if (block->after) block->after->before = rest;
    block->after = rest;
    block->size = need;
    shelve(pool, rest);
}

static void serve(sim_pool_t *pool, sim_block_t *block, uint64_t need, uint64_t size) {
    unshelve(pool, block);
    split(pool, block, need);
    block->live = true;
    block->region.kind = SIM_REGION_BLOCK;
    block->region.device = pool->device;
    block->region.size = size;
    uint64_t begin = block->chunk->first->region.node.key;
    block->region.host = block->chunk->host ? block->chunk->host + (block->region.node.key - begin) : NULL;
    sim_tree_insert(&pool->device->world->regions, &block->region.node);
    pool->live++;
    pool->used += block->size;
    pool->used_high = strata_max(pool->used_high, pool->used);
}

strata_status_t sim_pool_allocate_block(sim_pool_t *pool, uint64_t size, sim_stream_t *stream, sim_block_t **out) {
    uint64_t need;
    if (!strata_round_up(size, SIM_ALIGNMENT, &need)) return sim_out_of_memory(pool->device, "cudaMallocAsync", size);
    sim_block_t *block = search(pool, need, stream, false);
    if (!block && pool->opportunistic && pool->owned) {
        sim_pool_observe(pool);
        block = search(pool, need, stream, false);
    }
    if (!block && grow(pool, need)) block = search(pool, need, stream, false);
    if (!block && pool->internal && stream && (block = search(pool, need, stream, true)) != NULL)
        sim_stream_extend(stream, block->ready);
    if (!block) return sim_out_of_memory(pool->device, "cudaMallocAsync", size);
    serve(pool, block, need, size);
    *out = block;
    return STRATA_OK;
}

void sim_pool_free_block(sim_block_t *block, sim_stream_t *stream) {
    sim_pool_t *pool = block->chunk->pool;
    sim_tree_remove(&pool->device->world->regions, &block->region.node);
    block->live = block->freed_inside = false;
    block->graph = 0;
    block->stream_id = stream ? stream->id : 0;
    block->operations = stream ? ++stream->operations : 0;
    block->ready = stream ? strata_max(sim_stream_order(stream), sim_now(pool->device)) : 0;
    pool->used -= block->size;
    pool->live--;
    shelve_merged(pool, block);
    if (pool->destroyed && !pool->live) sim_pool_drop(pool);
}

/* ---- pools ---- */

sim_pool_t *sim_pool_new(sim_device_t *device, uint64_t max_size, bool shareable) {
    sim_pool_t *pool = calloc(1, sizeof *pool);
    if (!pool) return NULL;
    pool->device = device;
    pool->max_size = max_size;
    pool->shareable = shareable;
    pool->follow = pool->opportunistic = pool->internal = true;
    pool->next = device->pools;
    device->pools = pool;
    return pool;
}

static void coalesce_all(sim_pool_t *pool, sim_chunk_t *chunk) {
    for (sim_block_t *block = chunk->first; block->after;) {
        unshelve(pool, block->after);
        unshelve(pool, block);
        absorb(block, block->after);
        shelve(pool, block);
    }
}

void sim_pool_drop(sim_pool_t *pool) {
    while (pool->chunks) {
        coalesce_all(pool, pool->chunks);
        chunk_drop(pool, &pool->chunks);
    }
    for (sim_pool_t **link = &pool->device->pools; *link; link = &(*link)->next) {
        if (*link != pool) continue;
        *link = pool->next;
        break;
    }
    free(pool);
}

bool sim_pool_allows(const sim_region_t *region, const sim_device_t *device) {
    return ((const sim_block_t *)region)->chunk->pool->access & UINT32_C(1) << device->base.ordinal;
}

void sim_pools_synchronised(sim_device_t *device) {
    uint64_t before = device->device_call_ns;
    for (sim_pool_t *pool = device->pools; pool; pool = pool->next) {
        sim_pool_observe(pool);
        if (!pool->shareable) sim_pool_shrink(pool, pool->threshold);
    }
    device->pool_return_ns += device->device_call_ns - before;
}
