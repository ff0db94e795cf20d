/* Lists and restores the live blocks of a pool. Restoring frees the blocks that are live now and were not
 * then. It allocates the blocks that were live then and are not now, each at its old address.
 *
 * All steps that could fail are checked first. The pool is not open, so no request is served from it. Other
 * threads may free blocks, which only makes more room. So a change that passed the checks remains possible,
 * and no step has to be undone. */
#include <stdlib.h>

#include "allocation/domain/layer.h"
#include "allocation/graphs/graphs.h"
#include "allocation/stack/direct.h"
#include "allocation/uses/record_notes.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"
#include "platform/text/pointer.h"

void strata_graph_blocks_delete(strata_graph_blocks_t *blocks) {
    strata_host_delete(blocks->all);
    *blocks = (strata_graph_blocks_t){.count = 0};
}

static uint64_t address_of(const strata_graph_block_t *block) { return (uint64_t)(uintptr_t)block->block.ptr; }

/* ---- list live blocks ---- */

typedef struct collecting {
    strata_graph_blocks_t *blocks;
    size_t room;
    bool supported;
} collecting_t;

/* Hits must skip the layers above the cache, because their work for a request must not be repeated. */
static bool can_set_back(const strata_stack_t *serving_stack) {
    const strata_layer_type_t *type = serving_stack->cache ? serving_stack->cache->type : NULL;
    return type && STRATA_LAYER_HAS(type, hit_at) && STRATA_LAYER_HAS(type, find);
}

static void collect_one(const strata_record_t *record, void *context) {
    collecting_t *collecting = context;
    strata_graph_blocks_t *blocks = collecting->blocks;
    const strata_stack_t *serving_stack = strata_stack_of(record->stack);
    if (record->size == 0) return;
    collecting->supported = collecting->supported && can_set_back(serving_stack);
    if (blocks->count < collecting->room)
        blocks->all[blocks->count] = (strata_graph_block_t){
            .block = {.ptr = (void *)(uintptr_t)record->ptr, .size = record->size, .ref = strata_ref_of(record)},
            .requested = strata_record_requested(record),
            .life = serving_stack->life,
            .stream = serving_stack->stream,
            .serving_stack = record->stack};
    blocks->count++;
}

static void collect(strata_graph_pool_t *pool, collecting_t *collecting) {
    collecting->blocks->count = 0;
    collecting->supported = true;
    STRATA_DOMAIN_EACH_OF(pool->group->domain, pool->group, stack) strata_stack_walk_live(stack, collect_one, collecting);
}

static int by_address(const void *a, const void *b) {
    uint64_t one = address_of(a), other = address_of(b);
    return (one > other) - (one < other);
}

strata_status_t strata_graph_pool_live(strata_graph_pool_t *pool, strata_graph_blocks_t *live) {
    collecting_t collecting = {.blocks = live};
    *live = (strata_graph_blocks_t){.count = 0};
    collect(pool, &collecting);
    collecting.room = live->count;
    live->all = strata_host_new(strata_max(collecting.room, 1), sizeof *live->all);
    if (!live->all) return STRATA_E_HOST_MEMORY;
    collect(pool, &collecting);
    live->count = strata_min(live->count, collecting.room);
    qsort(live->all, live->count, sizeof *live->all, by_address);
    if (collecting.supported) return STRATA_OK;
    strata_graph_blocks_delete(live);
    return strata_fail(
        STRATA_E_UNSUPPORTED, 0,
        "a layer of this pool takes part in every request, or its cache cannot serve a given address: the live blocks cannot "
        "be restored");
}

/* ---- compute the changes ---- */

typedef struct change {
    strata_graph_pool_t *pool;
    strata_graph_blocks_t now;
    strata_graph_block_t *frees, *makes; /* parts of one array */
    size_t free_count, make_count;
    size_t entered; /* the servers of the first `entered` makes are kept from ending */
} change_t;

/* Both lists are sorted by address. */
static void compare(change_t *change, const strata_graph_blocks_t *then) {
    const strata_graph_block_t *now = change->now.all, *old = then->all;
    const strata_graph_block_t *now_end = now + change->now.count, *old_end = old + then->count;
    while (now < now_end || old < old_end) {
        bool both = now < now_end && old < old_end;
        if (both && address_of(now) == address_of(old) && now->block.size == old->block.size) {
            now++;
            old++;
        } else if (old == old_end || (now < now_end && address_of(now) <= address_of(old))) {
            change->frees[change->free_count++] = *now++;
        } else {
            change->makes[change->make_count] = *old++;
            change->makes[change->make_count++].is_restored = true;
        }
    }
}

/* ---- check the changes ---- */

static strata_status_t cannot_free(const strata_graph_block_t *block, const char *why) {
    return strata_fail(STRATA_E_BUSY, 0, "the block of %zu bytes at %s, which was not live at the checkpoint, %s",
                       block->block.size, strata_pointer_text(block->block.ptr).text, why);
}

/* The free must remove the ref's only owner, and must not wait for a stream. A block that another thread
 * has freed is not an obstacle. */
static strata_status_t check_free(const change_t *change, const strata_graph_block_t *block) {
    strata_call_t call;
    strata_record_t *record;
    if (strata_record_find(change->pool->group->domain->facade, block->block.ref, &call, &record) != STRATA_OK) return STRATA_OK;
    bool shared = strata_record_is_shared(&call, record) || strata_record_has_unknown_use(&call, record);
    bool borrowed = strata_record_is_borrowed(record);
    bool used_up = record->generation + 1 >= STRATA_GENERATION_LAST;
    (void)strata_call_unlock(&call);
    if (shared) return cannot_free(block, "has other owners");
    if (borrowed) return cannot_free(block, "is borrowed by other streams");
    return used_up ? strata_fail(STRATA_E_LIMIT, 0, "a slot's generations are exhausted") : STRATA_OK;
}

static bool is_to_be_freed(const change_t *change, const strata_record_t *record) {
    const strata_graph_block_t key = {.block = {.ptr = (void *)(uintptr_t)record->ptr}};
    return change->free_count && bsearch(&key, change->frees, change->free_count, sizeof *change->frees, by_address) != NULL;
}

/* Checks that all memory from `record` up to an address is free, or will be. The lock of the cache is held. */
static strata_status_t check_run(const change_t *change, const strata_slab_t *slab, const strata_record_t *record, uint64_t end) {
    for (; record->ptr < end; record = strata_slab_record(slab, record->next)) {
        bool free_now = record->state == STRATA_RECORD_FREE;
        bool freed = record->state == STRATA_RECORD_LIVE && is_to_be_freed(change, record);
        if (!free_now && !freed)
            return strata_fail(STRATA_E_BUSY, 0, "%s",
                               record->state == STRATA_RECORD_DEFERRED
                                   ? "a block that was live at the checkpoint was freed and is still in use by other streams"
                                   : "memory that was live at the checkpoint is in use by others");
        if (record->ptr + record->size >= end) return STRATA_OK;
        if (record->next == 0) break;
    }
    return strata_fail(STRATA_E_STALE, 0, "memory that was live at the checkpoint is no longer contiguous");
}

/* Returns the cache's block that contains an address, or NULL. `known`, if not NULL, is a block before it
 * in its chunk, from which the search starts. */
static const strata_record_t *block_at(strata_layer_t *cache, const strata_record_t *known, uint64_t address) {
    const strata_slab_t *slab = &cache->stack->slab;
    while (known && known->ptr + known->size <= address) known = known->next ? strata_slab_record(slab, known->next) : NULL;
    return known && known->ptr <= address ? known : cache->type->find(cache, address);
}

static bool is_served_by(const strata_stack_t *serving_stack, const strata_graph_block_t *block) {
    return serving_stack->number == block->serving_stack && serving_stack->life == block->life &&
           serving_stack->stream == block->stream;
}

/* Checks the blocks from change->entered on that one stack served, and keeps that stack from ending.
 * Splitting a block out of a free one takes at most two more slots. */
static strata_status_t check_makes(change_t *change) {
    strata_stack_t *serving_stack = strata_stack_of(change->makes[change->entered].serving_stack);
    const strata_record_t *known = NULL;
    strata_status_t status = STRATA_OK;
    strata_stack_lock(serving_stack);
    bool there = serving_stack->open && serving_stack->group == change->pool->group &&
                 is_served_by(serving_stack, &change->makes[change->entered]);
    if (!there) status = strata_fail(STRATA_E_STALE, 0, "the stream's stack in the pool was closed, or serves another stream");
    while (status == STRATA_OK && change->entered < change->make_count &&
           is_served_by(serving_stack, &change->makes[change->entered])) {
        const strata_graph_block_t *block = &change->makes[change->entered];
        known = block_at(serving_stack->cache, known, address_of(block));
        if (known) status = check_run(change, &serving_stack->cache->stack->slab, known, address_of(block) + block->block.size);
        else status = strata_fail(STRATA_E_STALE, 0, "memory that was live at the checkpoint has gone back to the device");
        serving_stack->holds.calls++;
        change->entered++;
    }
    const strata_slab_t *slab = there ? &serving_stack->cache->stack->slab : NULL;
    uint64_t slots = there ? strata_slab_slots_for(slab, (uint32_t)strata_min(2 * change->make_count, UINT32_MAX)) : 0;
    strata_stack_unlock(serving_stack);
    return status == STRATA_OK ? strata_slab_reserve(slab, slots) : status;
}

/* ---- carry the changes out ---- */

static strata_status_t make_one(strata_graph_block_t *block) {
    strata_stack_t *serving_stack = strata_stack_of(block->serving_stack);
    strata_stack_lock(serving_stack);
    const strata_stack_t *home = atomic_load(&serving_stack->home);
    strata_record_t *record = serving_stack->cache->type->hit_at(serving_stack->cache, &block->block, block->requested,
                                                                 serving_stack);
    if (record) {
        strata_direct_serve(serving_stack, home, record);
        block->block.ref = strata_ref_of(record);
    }
    strata_stack_unlock(serving_stack);
    if (record) return STRATA_OK;
    return strata_fail(STRATA_E_CORRUPT, 0, "the block of %zu bytes at %s could not be restored", block->block.size,
                       strata_pointer_text(block->block.ptr).text);
}

strata_status_t strata_graph_pool_set_live(strata_graph_pool_t *pool, const strata_graph_blocks_t *then,
                                           strata_graph_blocks_t *changes) {
    change_t change = {.pool = pool};
    *changes = (strata_graph_blocks_t){.count = 0};
    strata_graph_pool_poll(pool);
    strata_status_t status = strata_graph_pool_live(pool, &change.now);
    if (status != STRATA_OK) return status;
    changes->all = strata_host_new(strata_max(change.now.count + then->count, 1), sizeof *changes->all);
    if (changes->all) {
        change.frees = changes->all;
        change.makes = changes->all + change.now.count;
        compare(&change, then);
        for (size_t i = 0; i < change.free_count && status == STRATA_OK; i++) status = check_free(&change, &change.frees[i]);
        while (status == STRATA_OK && change.entered < change.make_count) status = check_makes(&change);
        for (size_t i = 0; i < change.free_count && status == STRATA_OK; i++) {
            strata_call_t call;
            strata_record_t *record;
            if (strata_record_find(pool->group->domain->facade, change.frees[i].block.ref, &call, &record) == STRATA_OK)
                strata_record_free(&call, record);
        }
        for (size_t i = 0; i < change.make_count && status == STRATA_OK; i++) status = make_one(&change.makes[i]);
        for (size_t i = 0; i < change.entered; i++) strata_stack_exit(strata_stack_of(change.makes[i].serving_stack));
    } else {
        status = STRATA_E_HOST_MEMORY;
    }
    strata_graph_blocks_delete(&change.now);
    if (status == STRATA_OK) {
        for (size_t i = 0; i < change.make_count; i++) changes->all[change.free_count + i] = change.makes[i];
        changes->count = change.free_count + change.make_count;
    } else {
        strata_graph_blocks_delete(changes);
    }
    return status;
}
