/* Serves free blocks by search, at a place or from the last-freed block, and coalesces freed blocks. */
#include "allocation/cache/policies/auto_growth/auto_growth_state.h"

#include "allocation/stack/direct.h"
#include "platform/arithmetic.h"

#define HOT  inline __attribute__((always_inline))
#define COLD __attribute__((noinline))

/* Sets the size of a free block in the index. */
static inline void index_resize(auto_growth_t *self, uint32_t slot, uint64_t size, bool by_address, uint32_t pool) {
    if (by_address) {
        strata_tree_remove(&self->pools[pool].tree, slab_of(self), slot);
        strata_slab_record(slab_of(self), slot)->size = size;
        strata_tree_insert(&self->pools[pool].tree, slab_of(self), slot);
    } else {
        strata_bins_resize(&self->pools[pool].bins, slab_of(self), slot, size);
    }
}

/* ---- hit ---- */

/* Splits the high end off the free block `low`. Returns its record, or NULL if the slab is full. */
static inline strata_record_t *split(auto_growth_t *self, uint32_t low, uint64_t size, bool by_address, uint32_t pool) {
    strata_slab_t *slab = slab_of(self);
    strata_record_t *rest = strata_slab_record(slab, low);
    uint32_t next = rest->next;
    uint32_t slot = strata_slab_acquire(slab);
    if (__builtin_expect(slot == 0, 0)) return NULL;
    strata_record_t *piece = strata_slab_record(slab, slot);
    uint64_t left = rest->size - size;
    piece->ptr = rest->ptr + left;
    piece->size = size;
    piece->prev = low;
    piece->next = next;
    piece->chunk = rest->chunk;
    strata_slab_record(slab, next)->prev = slot;
    rest->next = slot;
    index_resize(self, low, left, by_address, pool);
    return piece;
}

/* Splits off the low end instead. Used where the first block of a chunk may change at any time
 * (allocation/cache/runs.h). */
static inline strata_record_t *split_low(auto_growth_t *self, uint32_t high, uint64_t size, uint32_t pool) {
    strata_slab_t *slab = slab_of(self);
    strata_record_t *rest = strata_slab_record(slab, high);
    uint32_t prev = rest->prev;
    uint32_t slot = strata_slab_acquire(slab);
    if (__builtin_expect(slot == 0, 0)) return NULL;
    strata_record_t *piece = strata_slab_record(slab, slot);
    piece->ptr = rest->ptr;
    piece->size = size;
    piece->prev = prev;
    piece->next = high;
    piece->chunk = rest->chunk;
    strata_slab_record(slab, prev)->next = slot;
    rest->prev = slot;
    rest->ptr += size;
    index_resize(self, high, rest->size - size, false, pool);
    return piece;
}

/* Serves `rounded` bytes from the free block `slot`. The record gets an empty route and no borrows. Returns
 * NULL if the slab is full. */
static HOT strata_record_t *serve_block(auto_growth_t *self, uint32_t slot, uint64_t rounded, uint64_t size, bool by_address,
                                        uint32_t pool, bool low) {
    strata_record_t *block = strata_slab_record(slab_of(self), slot);
    if (block->size == rounded) {
        strata_auto_growth_remove(self, slot, by_address, pool);
    } else {
        block = low ? split_low(self, slot, rounded, pool) : split(self, slot, rounded, by_address, pool);
        if (__builtin_expect(!block, 0)) return NULL;
    }
    self->used_bytes += rounded;
    block->route = 0;
    block->attention = 0;
    block->slack = (uint32_t)(rounded - size);
    block->borrows = 0;
    block->pool = (uint8_t)pool;
    block->state = STRATA_RECORD_LIVE;
    return block;
}

/* The serve loop counts its own hits, because a block from a new chunk is not a hit. */
static HOT strata_record_t *count_hit(auto_growth_t *self, strata_record_t *block) {
    if (__builtin_expect(block != NULL, 1)) self->base.stack->figures.cache_hits++;
    return block;
}

static inline uint64_t rounded_size(const auto_growth_t *self, size_t size) {
    return (size + self->chunks.unit - 1) & ~(self->chunks.unit - 1);
}

/* Returns a free block of a pool that fits, or 0. A hit searches only a part of the request's bin; with
 * `whole`, all of it is searched. */
static inline uint32_t find_in_pool(auto_growth_t *self, uint64_t rounded, bool by_address, bool whole, uint32_t pool) {
    auto_growth_pool_t *p = &self->pools[pool];
    if (by_address) return strata_tree_find(&p->tree, slab_of(self), rounded);
    return whole ? strata_bins_find_any(&p->bins, slab_of(self), rounded) : strata_bins_find(&p->bins, slab_of(self), rounded);
}

/* `two_pools` is true if there are two pools. With `exact`, no block is split. */
static HOT strata_record_t *serve_by_search(auto_growth_t *self, uint64_t rounded, uint64_t size, bool by_address, bool two_pools,
                                            bool whole, bool exact) {
    uint32_t pool = two_pools ? strata_auto_growth_pool_for(self, rounded) : 0;
    uint32_t slot = find_in_pool(self, rounded, by_address, whole, pool);
    if (two_pools && slot == 0 && pool == 0 && self->spills) slot = find_in_pool(self, rounded, by_address, whole, pool = 1);
    if (slot == 0 || (exact && strata_slab_record(slab_of(self), slot)->size != rounded)) return NULL;
    return serve_block(self, slot, rounded, size, by_address, pool, self->splits_low);
}

static COLD strata_record_t *hit_by_address(auto_growth_t *self, size_t size) {
    return count_hit(self, serve_by_search(self, rounded_size(self, size), size, true, false, false, false));
}

static COLD strata_record_t *hit_general(auto_growth_t *self, size_t size) {
    uint64_t rounded = rounded_size(self, size + strata_auto_growth_options(self)->padding);
    if (self->warming_up || strata_repeats_are_on(&self->chunks.repeats)) return NULL;
    return count_hit(self, self->by_address ? serve_by_search(self, rounded, size, true, true, false, false)
                                            : serve_by_search(self, rounded, size, false, true, false, false));
}

static COLD strata_record_t *hit_not_plain(auto_growth_t *self, size_t size) {
    return self->hit_mode == STRATA_AUTO_GROWTH_PLAIN_BY_ADDRESS ? hit_by_address(self, size) : hit_general(self, size);
}

static strata_record_t *hit(strata_layer_t *base, size_t size, const strata_stack_t *stack) {
    auto_growth_t *self = (auto_growth_t *)base;
    (void)stack;
    if (__builtin_expect(self->hit_mode != STRATA_AUTO_GROWTH_PLAIN, 0)) return hit_not_plain(self, size);
    uint64_t rounded = rounded_size(self, size);
    uint32_t slot = find_in_pool(self, rounded, false, false, 0);
    return __builtin_expect(slot != 0, 1) ? count_hit(self, serve_block(self, slot, rounded, size, false, 0, false)) : NULL;
}

static HOT strata_record_t *hit_low_in_pool(auto_growth_t *self, uint64_t rounded, size_t size, uint32_t pool) {
    uint32_t slot = find_in_pool(self, rounded, false, false, pool);
    return __builtin_expect(slot != 0, 1) ? count_hit(self, serve_block(self, slot, rounded, size, false, pool, true)) : NULL;
}

/* Written out for each pool, so that the address of the index is a compile-time offset. */
static HOT strata_record_t *hit_low(strata_layer_t *base, size_t size, const strata_stack_t *stack) {
    auto_growth_t *self = (auto_growth_t *)base;
    (void)stack;
    uint64_t rounded = rounded_size(self, size);
    return rounded > self->first_up_to ? hit_low_in_pool(self, rounded, size, 1) : hit_low_in_pool(self, rounded, size, 0);
}

strata_record_t *strata_auto_growth_serve_from_pool(auto_growth_t *self, uint64_t rounded, uint64_t size, uint32_t pool) {
    uint32_t slot = find_in_pool(self, rounded, self->by_address, true, pool);
    return slot ? serve_block(self, slot, rounded, size, self->by_address, pool, self->splits_low) : NULL;
}

strata_status_t strata_auto_growth_search(strata_layer_t *base, strata_lookup_t *lookup, strata_record_t **record) {
    auto_growth_t *self = (auto_growth_t *)base;
    /* The layer below may grant more than was requested. A chunk that was allocated for this request serves it,
     * even during the warm-up. */
    bool exact = self->warming_up && !lookup->grown;
    strata_auto_growth_flush_last_freed(self);
    *record = self->by_address ? serve_by_search(self, lookup->rounded, lookup->size, true, true, true, exact)
                               : serve_by_search(self, lookup->rounded, lookup->size, false, true, true, exact);
    return *record ? STRATA_OK : STRATA_E_NO_MEMORY;
}

/* ---- free ---- */

/* Moves a block to another slot, because the generations of its own are exhausted. */
static COLD uint32_t move_to_new_slot(auto_growth_t *self, uint32_t slot) { return strata_chunks_move_block(&self->chunks, slot); }

/* Inserts a block that was not coalesced with the one below it. Returns its slot, or 0 if the slot's
 * generations are exhausted and no other slot is free. The block then stays unused until its chunk is freed. */
static HOT uint32_t insert_unmerged(auto_growth_t *self, strata_record_t *block, uint32_t slot, bool by_address, uint32_t pool) {
    if (__builtin_expect(block->generation >= STRATA_GENERATION_LAST, 0)) {
        uint32_t fresh = move_to_new_slot(self, slot);
        if (fresh == 0) {
            block->state = STRATA_RECORD_DEFERRED;
            self->used_bytes += block->size;
            return 0;
        }
        slot = fresh;
        block = strata_slab_record(slab_of(self), slot);
    }
    block->slack = 0;
    strata_auto_growth_insert(self, slot, by_address, pool);
    block->state = STRATA_RECORD_FREE;
    return slot;
}

typedef struct key {
    auto_growth_t *self;
    bool by_address;
    uint32_t pool;
} index_key_t;

static HOT void remove_free(void *owner, uint32_t slot) {
    const index_key_t *key = owner;
    strata_auto_growth_remove(key->self, slot, key->by_address, key->pool);
}

static HOT void resize_free(void *owner, uint32_t slot, uint64_t size) {
    const index_key_t *key = owner;
    index_resize(key->self, slot, size, key->by_address, key->pool);
}

static const strata_coalesce_t coalesce = {.remove = remove_free, .resize = resize_free};

/* Frees a block and coalesces it with its free neighbors. Returns the slot of the free block that contains it,
 * or 0 as insert_unmerged() does. */
static HOT uint32_t free_block(auto_growth_t *self, strata_record_t *block, bool by_address, uint32_t pool) {
    strata_slab_t *slab = slab_of(self);
    uint32_t own = strata_slab_slot(slab, block);
    index_key_t key = {self, by_address, pool};
    self->used_bytes -= block->size;
    uint32_t slot = strata_block_list_coalesce(slab, own, &key, &coalesce);
    return slot == own ? insert_unmerged(self, block, own, by_address, pool) : slot;
}

uint32_t strata_auto_growth_free_block(auto_growth_t *self, strata_record_t *block) {
    uint32_t pool = block->pool;
    return self->by_address ? free_block(self, block, true, pool) : free_block(self, block, false, pool);
}

static COLD uint32_t free_block_not_plain(auto_growth_t *self, strata_record_t *block) {
    return self->hit_mode == STRATA_AUTO_GROWTH_PLAIN_BY_ADDRESS ? free_block(self, block, true, 0)
                                                                 : strata_auto_growth_free_block(self, block);
}

static bool quick_free(strata_layer_t *base, strata_record_t *block) {
    auto_growth_t *self = (auto_growth_t *)base;
    if (__builtin_expect(self->frees_idle_chunks, 0)) return false;
    if (__builtin_expect(self->hit_mode != STRATA_AUTO_GROWTH_PLAIN, 0)) (void)free_block_not_plain(self, block);
    else (void)free_block(self, block, false, 0);
    return true;
}

static COLD bool free_block_low(strata_layer_t *base, strata_record_t *block) {
    if (block->pool) (void)free_block((auto_growth_t *)base, block, false, 1);
    else (void)free_block((auto_growth_t *)base, block, false, 0);
    return true;
}

/* ---- the last-freed block (allocation/cache/last_freed.h) ---- */

void strata_auto_growth_flush_last_freed(auto_growth_t *self) {
    uint32_t slot = self->chunks.last_freed;
    if (slot == 0) return;
    self->chunks.last_freed = 0;
    (void)strata_auto_growth_free_block(self, strata_slab_record(slab_of(self), slot));
}

/* `low` is true for auto_growth_vmm, which always has two pools and the same mode. */
static HOT void flush_last_freed(auto_growth_t *self, bool low) {
    strata_record_t *block = strata_chunks_last_freed(&self->chunks, self->base.stack);
    self->chunks.last_freed = 0;
    if (low) (void)free_block_low(&self->base, block);
    else (void)free_block(self, block, false, 0);
}

/* Searches the index, because the last-freed block has another size. */
static HOT strata_record_t *search_index(strata_layer_t *base, size_t size, const strata_stack_t *stack, bool low) {
    auto_growth_t *self = (auto_growth_t *)base;
    if (self->chunks.last_freed) flush_last_freed(self, low);
    return low ? hit_low(base, size, stack) : hit(base, size, stack);
}

/* A last-freed block of the same size serves the request, from either pool. */
static HOT strata_record_t *hit_last_freed_as(strata_layer_t *base, size_t size, const strata_stack_t *stack, bool low) {
    auto_growth_t *self = (auto_growth_t *)base;
    strata_record_t *block = strata_chunks_last_freed(&self->chunks, self->base.stack);
    uint64_t rounded = rounded_size(self, size);
    if (!self->chunks.last_freed || block->size != rounded) return search_index(base, size, stack, low);
    strata_chunks_serve_last_freed(&self->chunks, self->base.stack, block, rounded - size);
    return block;
}

strata_record_t *strata_auto_growth_hit_low(strata_layer_t *base, size_t size, const strata_stack_t *stack) {
    return hit_last_freed_as(base, size, stack, true);
}

static HOT bool free_as_last_freed_in(strata_layer_t *base, strata_record_t *block, bool low) {
    auto_growth_t *self = (auto_growth_t *)base;
    uint32_t until = low ? STRATA_GENERATION_LAST : self->chunks.last_freed_until;
    if (__builtin_expect(block->generation >= until, 0)) return low ? free_block_low(base, block) : quick_free(base, block);
    if (self->chunks.last_freed) flush_last_freed(self, low);
    strata_chunks_set_last_freed(&self->chunks, block, strata_slab_slot(slab_of(self), block));
    return true;
}

static HOT bool free_as_last_freed_low(strata_layer_t *base, strata_record_t *block) {
    return free_as_last_freed_in(base, block, true);
}

bool strata_auto_growth_quick_free_low(strata_layer_t *base, strata_record_t *block) { return free_as_last_freed_low(base, block); }

static HOT bool free_as_last_freed(strata_layer_t *base, strata_record_t *block) {
    return free_as_last_freed_in(base, block, false);
}

strata_record_t *strata_auto_growth_hit(strata_layer_t *base, size_t size, const strata_stack_t *stack) {
    return hit_last_freed_as(base, size, stack, false);
}

bool strata_auto_growth_quick_free(strata_layer_t *base, strata_record_t *block) { return free_as_last_freed(base, block); }

/* The shortest versions of both, which do nothing but use or set the last-freed block. Otherwise they return
 * NULL or false. */
static HOT strata_record_t *quick_hit(strata_layer_t *base, size_t size, strata_stack_t *stack) {
    auto_growth_t *self = (auto_growth_t *)base;
    strata_record_t *block = strata_chunks_last_freed(&self->chunks, stack);
    uint64_t rounded = rounded_size(self, size);
    if (__builtin_expect(!self->chunks.last_freed || block->size != rounded, 0)) return NULL;
    strata_chunks_serve_last_freed(&self->chunks, stack, block, rounded - size);
    return block;
}

static HOT bool quick_free_as(strata_layer_t *base, strata_record_t *block, strata_stack_t *stack, bool low) {
    auto_growth_t *self = (auto_growth_t *)base;
    uint32_t until = low ? STRATA_GENERATION_LAST : self->chunks.last_freed_until;
    if (__builtin_expect(self->chunks.last_freed || block->generation >= until, 0)) return false;
    strata_chunks_set_last_freed(&self->chunks, block, strata_slab_slot(&stack->slab, block));
    return true;
}

static HOT bool quick_free_plain(strata_layer_t *base, strata_record_t *block, strata_stack_t *stack) {
    return quick_free_as(base, block, stack, false);
}
static HOT bool quick_free_low(strata_layer_t *base, strata_record_t *block, strata_stack_t *stack) {
    return quick_free_as(base, block, stack, true);
}

static HOT strata_record_t *search(strata_layer_t *base, size_t size, const strata_stack_t *stack) {
    return search_index(base, size, stack, false);
}
static HOT strata_record_t *search_low(strata_layer_t *base, size_t size, const strata_stack_t *stack) {
    return search_index(base, size, stack, true);
}

/* Only the plain mode permits magazines. Best fit by address follows the peers, which have no per-thread
 * caches. */
static bool may_magazines(const strata_layer_t *base) {
    const auto_growth_t *self = (const auto_growth_t *)base;
    return self->hit_mode == STRATA_AUTO_GROWTH_PLAIN && !self->frees_idle_chunks;
}

static bool may_magazines_low(const strata_layer_t *base) {
    (void)base;
    return true;
}

STRATA_DIRECT_PATH(strata_auto_growth_direct, quick_hit, quick_free_plain, search, free_as_last_freed, may_magazines);
STRATA_DIRECT_PATH(strata_auto_growth_direct_low, quick_hit, quick_free_low, search_low, free_as_last_freed_low, may_magazines_low);
