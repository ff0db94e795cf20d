/* The segments of caching: how freed blocks are coalesced in them, and when they are given back. */
#include "allocation/cache/policies/caching/caching_state.h"

#include <string.h>

#include "platform/arithmetic.h"

#define HOT inline __attribute__((always_inline))

/* ---- blocks ---- */

typedef struct putting {
    caching_t *self;
    strata_tree_t *idle;
} putting_t;

static HOT void remove_free(void *owner, uint32_t slot) {
    putting_t *putting = owner;
    strata_tree_quick_remove(putting->idle, caching_slab(putting->self), slot);
}

/* Without streams, the mark is the last user of the block and the time of its free. */
static HOT void merge_marks(void *owner, uint32_t low, uint32_t high) {
    caching_t *self = ((putting_t *)owner)->self;
    if (caching_ignores_streams(self)) strata_mark_merge(caching_block(self, low), caching_block(self, high), self->last.waited);
}

static const strata_coalesce_t coalesce = {.remove = remove_free, .on_merge = merge_marks};

void strata_caching_free_block(caching_t *self, strata_record_t *block) {
    strata_slab_t *slab = caching_slab(self);
    uint32_t own = strata_slab_slot(slab, block);
    uint64_t size = block->size;
    putting_t putting = {self, caching_tree_of(self, block)};
    if (caching_ignores_streams(self)) strata_last_users_mark(&self->last, block, block->user);
    uint32_t slot = strata_block_list_coalesce(slab, own, &putting, &coalesce);
    if (slot == own && block->generation >= STRATA_GENERATION_LAST && (slot = strata_chunks_move_block(&self->chunks, own)) == 0) {
        block->state = STRATA_RECORD_DEFERRED;
        self->used_bytes += block->size - size; /* includes the neighbor that it absorbed */
        return;
    }
    /* With streams, the mark is the number of searches when the block became idle, so it dates its age. */
    if (!caching_ignores_streams(self)) strata_mark(caching_block(self, slot), self->searches, 0);
    self->used_bytes -= size;
    caching_block(self, slot)->state = STRATA_RECORD_FREE;
    strata_tree_quick_insert(putting.idle, slab, slot);
}

/* ---- giving segments back ---- */

static void unindex_chunk(strata_layer_t *base, const strata_chunk_t *chunk) {
    caching_t *self = (caching_t *)base;
    uint32_t bank = ((const caching_segment_t *)chunk)->bank;
    const strata_record_t *block = caching_block(self, chunk->first);
    strata_tree_quick_remove(caching_tree_of(self, block), caching_slab(self), chunk->first);
    caching_bank_at(self, bank)->segments--;
    strata_caching_bank_end_if_empty(self, bank);
}

static bool is_in_use(const strata_layer_t *base, const strata_chunk_t *chunk) {
    return strata_last_users_uses(&((const caching_t *)base)->last, caching_block((const caching_t *)base, chunk->first));
}

static bool may_release(const strata_layer_t *base, const strata_chunk_t *chunk) {
    const caching_t *self = (const caching_t *)base;
    return self->uses.captures == 0 && strata_chunk_is_idle(base, chunk);
}

/* May open the lock. Chunks that are still in use stay. */
static void wait_for_users(strata_layer_t *base, strata_call_t *call) {
    (void)strata_last_users_wait(&((caching_t *)base)->last, base->domain, call);
}

static void index_remove(strata_layer_t *base, uint32_t slot) {
    caching_t *self = (caching_t *)base;
    strata_tree_quick_remove(caching_tree_of(self, caching_block(self, slot)), caching_slab(self), slot);
}

static void index_insert(strata_layer_t *base, uint32_t slot) {
    caching_t *self = (caching_t *)base;
    strata_tree_quick_insert(caching_tree_of(self, caching_block(self, slot)), caching_slab(self), slot);
}

static bool on_split(strata_layer_t *base, const strata_record_t *block, strata_record_t *rest) {
    (void)base;
    rest->pool = block->pool;
    strata_mark(rest, strata_mark_count(block), strata_mark_stream(block));
    return true;
}

const strata_chunk_policy_t strata_caching_policy = {.may_release = may_release,
                                                     .unindex_chunk = unindex_chunk,
                                                     .is_in_use = is_in_use,
                                                     .wait = wait_for_users,
                                                     .index_remove = index_remove,
                                                     .index_insert = index_insert,
                                                     .on_split = on_split};

/* Returns true if the segment of a free block may go. */
static bool is_releasable(caching_t *self, const strata_record_t *block) {
    return !strata_chunks_are_pinned(&self->chunks) && !caching_is_split(block) &&
           !(self->chunks.ordered && strata_last_users_uses(&self->last, block));
}

static void detach(caching_t *self, uint32_t slot, strata_detached_t *leaving) {
    strata_chunks_detach(&self->chunks, caching_block(self, slot)->chunk, leaving);
}

/* ---- idle segments in order of stream, size, address ---- */

static void set_walk_bank(strata_caching_walk_t *walk, const strata_order_key_t *bank) {
    walk->bank = *bank;
    walk->size = walk->ptr = 0;
}

uint32_t strata_caching_next_idle(caching_t *self, strata_caching_walk_t *walk,
                                  bool (*wanted)(caching_t *self, const strata_record_t *block)) {
    for (uint32_t node; (node = strata_order_from(&self->bank_order, &walk->bank)) != 0;) {
        caching_bank_t *bank = caching_bank_at(self, node);
        if (memcmp(&bank->link.key, &walk->bank, sizeof walk->bank) != 0) set_walk_bank(walk, &bank->link.key);
        const strata_tree_t *tree = &bank->idle[walk->kind];
        for (uint32_t slot; (slot = strata_tree_after(tree, caching_slab(self), walk->size, walk->ptr)) != 0;) {
            walk->size = caching_block(self, slot)->size;
            walk->ptr = caching_block(self, slot)->ptr;
            if (wanted(self, caching_block(self, slot))) return slot;
        }
        set_walk_bank(walk, &(strata_order_key_t){.first = walk->bank.first, .second = walk->bank.second + 1});
    }
    return 0;
}

/* Returns the next block that lets its segment go, or 0. */
static uint32_t next_idle(caching_t *self, strata_caching_walk_t *walk) {
    return strata_caching_next_idle(self, walk, is_releasable);
}

static void release_kind(caching_t *self, uint32_t kind, strata_detached_t *leaving) {
    strata_caching_walk_t walk = {.kind = kind};
    for (uint32_t slot; (slot = next_idle(self, &walk)) != 0;) detach(self, slot, leaving);
}

uint64_t strata_caching_release_all(caching_t *self, strata_call_t *call) {
    strata_detached_t leaving = {0};
    if (self->uses.captures > 0) return 0;
    strata_chunks_wait_for_users(&self->chunks, call);
    release_kind(self, STRATA_CACHING_LARGE, &leaving);
    release_kind(self, STRATA_CACHING_SMALL, &leaving);
    return strata_chunks_give_back(&self->chunks, &leaving, call);
}

/* ---- out of memory ---- */

/* If a single block is large enough, only that one goes. Otherwise the blocks that may not be split go, the
 * largest first, until they are enough together. */
bool strata_caching_release_oversize(caching_t *self, uint32_t bank, uint32_t kind, uint64_t rounded, strata_call_t *call) {
    strata_slab_t *slab = caching_slab(self);
    const strata_tree_t *tree = &caching_bank_at(self, bank)->idle[kind];
    uint64_t least = caching_options_of(self)->max_split_size, key = strata_max(rounded, least);
    uint64_t size = UINT64_MAX, ptr = UINT64_MAX;
    strata_detached_t leaving = {0};
    strata_chunks_wait_for_users(&self->chunks, call);
    uint32_t slot = strata_tree_find(tree, slab, key);
    if (slot && is_releasable(self, caching_block(self, slot))) detach(self, slot, &leaving);
    while (leaving.bytes < key && (slot = strata_tree_before(tree, slab, size, ptr)) != 0) {
        size = caching_block(self, slot)->size;
        if (size < least) break;
        ptr = caching_block(self, slot)->ptr;
        if (is_releasable(self, caching_block(self, slot))) detach(self, slot, &leaving);
    }
    return strata_chunks_give_back(&self->chunks, &leaving, call) >= key;
}

static uint64_t age_of(const caching_t *self, const strata_record_t *block) {
    return (self->searches - strata_mark_count(block)) & ((1ull << 48) - 1);
}

void strata_caching_collect(caching_t *self, strata_call_t *call) {
    if (self->chunks.held <= self->collect_above) return;
    uint64_t target = self->chunks.held - self->collect_above;
    strata_detached_t leaving = {0};
    double ages = 0;
    uint32_t count = 0;
    strata_caching_walk_t walk = {.kind = STRATA_CACHING_LARGE};
    for (uint32_t slot; (slot = next_idle(self, &walk)) != 0; count++) ages += (double)age_of(self, caching_block(self, slot));
    for (bool some = true; some && leaving.bytes < target && count > 0;) {
        double mean = ages / count;
        walk = (strata_caching_walk_t){.kind = STRATA_CACHING_LARGE};
        some = false;
        for (uint32_t slot; (slot = next_idle(self, &walk)) != 0;) {
            uint64_t age = age_of(self, caching_block(self, slot));
            if ((double)age < mean) continue;
            some = true;
            ages -= (double)age;
            count -= count > 0;
            detach(self, slot, &leaving);
        }
    }
    self->collected_bytes += strata_chunks_give_back(&self->chunks, &leaving, call);
}
