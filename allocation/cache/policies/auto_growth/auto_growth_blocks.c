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
    uint32_t slot = strata_slab_take(slab);
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
    uint32_t slot = strata_slab_take(slab);
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

/* Sets the fields of a record that a hit hands out: an empty route and no borrows. */
static inline void hand_out(strata_record_t *block, uint64_t slack, uint32_t pool) {
    block->route = 0;
    block->attention = 0;
    block->slack = (uint32_t)slack;
    block->borrows = 0;
    block->pool = (uint8_t)pool;
    block->state = STRATA_RECORD_LIVE;
}

/* Serves `rounded` bytes from the free block `slot`. Returns NULL if the slab is full. */
static HOT strata_record_t *serve_from(auto_growth_t *self, uint32_t slot, uint64_t rounded, uint64_t size, bool by_address,
                                       uint32_t pool, bool low) {
    strata_record_t *block = strata_slab_record(slab_of(self), slot);
    if (block->size == rounded) {
        strata_auto_growth_remove(self, slot, by_address, pool);
    } else {
        block = low ? split_low(self, slot, rounded, pool) : split(self, slot, rounded, by_address, pool);
        if (__builtin_expect(!block, 0)) return NULL;
    }
    self->used_bytes += rounded;
    hand_out(block, rounded - size, pool);
    return block;
}

/* The serve loop counts its own hits, because a block from a new chunk is not a hit. */
static HOT strata_record_t *counted(auto_growth_t *self, strata_record_t *block) {
    if (__builtin_expect(block != NULL, 1)) self->base.stack->figures.cache_hits++;
    return block;
}

static inline uint64_t rounded_size(const auto_growth_t *self, size_t size) {
    return (size + self->chunks.unit - 1) & ~(self->chunks.unit - 1);
}

/* Returns a free block of a pool that fits, or 0. A hit searches only a part of the request's bin; with
 * `whole`, all of it is searched. */
static inline uint32_t find_in(auto_growth_t *self, uint64_t rounded, bool by_address, bool whole, uint32_t pool) {
    auto_growth_pool_t *p = &self->pools[pool];
    if (by_address) return strata_tree_find(&p->tree, slab_of(self), rounded);
    return whole ? strata_bins_find_any(&p->bins, slab_of(self), rounded) : strata_bins_find(&p->bins, slab_of(self), rounded);
}

/* `divided` is true if there are two pools. With `exact`, no block is split. */
static HOT strata_record_t *serve_as(auto_growth_t *self, uint64_t rounded, uint64_t size, bool by_address, bool divided,
                                     bool whole, bool exact) {
    uint32_t pool = divided ? strata_auto_growth_pool_for(self, rounded) : 0;
    uint32_t slot = find_in(self, rounded, by_address, whole, pool);
    if (divided && slot == 0 && pool == 0 && self->spills) slot = find_in(self, rounded, by_address, whole, pool = 1);
    if (slot == 0 || (exact && strata_slab_record(slab_of(self), slot)->size != rounded)) return NULL;
    return serve_from(self, slot, rounded, size, by_address, pool, self->cuts_low);
}

static COLD strata_record_t *hit_by_address(auto_growth_t *self, size_t size) {
    return counted(self, serve_as(self, rounded_size(self, size), size, true, false, false, false));
}

static COLD strata_record_t *hit_as_said(auto_growth_t *self, size_t size) {
    uint64_t rounded = rounded_size(self, size + strata_auto_growth_options(self)->padding);
    if (self->warming_up || strata_repeats_are_on(&self->chunks.repeats)) return NULL;
    return counted(self, self->by_address ? serve_as(self, rounded, size, true, true, false, false)
                                          : serve_as(self, rounded, size, false, true, false, false));
}

static COLD strata_record_t *hit_otherwise(auto_growth_t *self, size_t size) {
    return self->road == STRATA_AUTO_GROWTH_PLAIN_BY_ADDRESS ? hit_by_address(self, size) : hit_as_said(self, size);
}

static strata_record_t *hit(strata_layer_t *base, size_t size, const strata_stack_t *stack) {
    auto_growth_t *self = (auto_growth_t *)base;
    (void)stack;
    if (__builtin_expect(self->road != STRATA_AUTO_GROWTH_PLAIN, 0)) return hit_otherwise(self, size);
    uint64_t rounded = rounded_size(self, size);
    uint32_t slot = find_in(self, rounded, false, false, 0);
    return __builtin_expect(slot != 0, 1) ? counted(self, serve_from(self, slot, rounded, size, false, 0, false)) : NULL;
}

static HOT strata_record_t *hit_low_in(auto_growth_t *self, uint64_t rounded, size_t size, uint32_t pool) {
    uint32_t slot = find_in(self, rounded, false, false, pool);
    return __builtin_expect(slot != 0, 1) ? counted(self, serve_from(self, slot, rounded, size, false, pool, true)) : NULL;
}

/* Written out for each pool, so that the address of the index is a compile-time offset. */
static HOT strata_record_t *hit_low(strata_layer_t *base, size_t size, const strata_stack_t *stack) {
    auto_growth_t *self = (auto_growth_t *)base;
    (void)stack;
    uint64_t rounded = rounded_size(self, size);
    return rounded > self->first_up_to ? hit_low_in(self, rounded, size, 1) : hit_low_in(self, rounded, size, 0);
}

strata_record_t *strata_auto_growth_serve_from_pool(auto_growth_t *self, uint64_t rounded, uint64_t size, uint32_t pool) {
    uint32_t slot = find_in(self, rounded, self->by_address, true, pool);
    return slot ? serve_from(self, slot, rounded, size, self->by_address, pool, self->cuts_low) : NULL;
}

strata_status_t strata_auto_growth_search(strata_layer_t *base, strata_lookup_t *lookup, strata_record_t **record) {
    auto_growth_t *self = (auto_growth_t *)base;
    /* The layer below may grant more than was requested. A chunk that was allocated for this request serves it,
     * even during the warm-up. */
    bool exact = self->warming_up && !lookup->grown;
    strata_auto_growth_join_apart(self);
    *record = self->by_address ? serve_as(self, lookup->rounded, lookup->size, true, true, true, exact)
                               : serve_as(self, lookup->rounded, lookup->size, false, true, true, exact);
    return *record ? STRATA_OK : STRATA_E_NO_MEMORY;
}

/* ---- free ---- */

/* Moves a block to another slot, because the generations of its own are exhausted. */
static COLD uint32_t move_to_new_slot(auto_growth_t *self, uint32_t slot) { return strata_chunks_move_block(&self->chunks, slot); }

/* Inserts a block that was not coalesced with the one below it. Returns its slot, or 0 if the slot's
 * generations are exhausted and no other slot is free. The block then stays unused until its chunk is freed. */
static HOT uint32_t stand_alone(auto_growth_t *self, strata_record_t *block, uint32_t slot, bool by_address, uint32_t pool) {
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

typedef struct putting {
    auto_growth_t *self;
    bool by_address;
    uint32_t pool;
} putting_t;

static HOT void remove_free(void *owner, uint32_t slot) {
    const putting_t *putting = owner;
    strata_auto_growth_remove(putting->self, slot, putting->by_address, putting->pool);
}

static HOT void resize_free(void *owner, uint32_t slot, uint64_t size) {
    const putting_t *putting = owner;
    index_resize(putting->self, slot, size, putting->by_address, putting->pool);
}

static const strata_coalesce_t coalesce = {.remove = remove_free, .resize = resize_free};

/* Frees a block and coalesces it with its free neighbors. Returns the slot of the free block that contains it,
 * or 0 as stand_alone() does. */
static HOT uint32_t put_back(auto_growth_t *self, strata_record_t *block, bool by_address, uint32_t pool) {
    strata_slab_t *slab = slab_of(self);
    uint32_t own = strata_slab_slot(slab, block);
    putting_t putting = {self, by_address, pool};
    self->used_bytes -= block->size;
    uint32_t slot = strata_pieces_coalesce(slab, own, &putting, &coalesce);
    return slot == own ? stand_alone(self, block, own, by_address, pool) : slot;
}

static COLD uint32_t put_back_by_address(auto_growth_t *self, strata_record_t *block) { return put_back(self, block, true, 0); }

uint32_t strata_auto_growth_put_back(auto_growth_t *self, strata_record_t *block) {
    uint32_t pool = block->pool;
    return self->by_address ? put_back(self, block, true, pool) : put_back(self, block, false, pool);
}

static COLD uint32_t put_back_otherwise(auto_growth_t *self, strata_record_t *block) {
    return self->road == STRATA_AUTO_GROWTH_PLAIN_BY_ADDRESS ? put_back_by_address(self, block)
                                                             : strata_auto_growth_put_back(self, block);
}

static bool quick_free(strata_layer_t *base, strata_record_t *block) {
    auto_growth_t *self = (auto_growth_t *)base;
    if (__builtin_expect(self->gives_idle_back, 0)) return false;
    if (__builtin_expect(self->road != STRATA_AUTO_GROWTH_PLAIN, 0)) (void)put_back_otherwise(self, block);
    else (void)put_back(self, block, false, 0);
    return true;
}

static COLD bool merge_low(strata_layer_t *base, strata_record_t *block) {
    if (block->pool) (void)put_back((auto_growth_t *)base, block, false, 1);
    else (void)put_back((auto_growth_t *)base, block, false, 0);
    return true;
}

/* ---- the last-freed block (allocation/cache/last_freed.h) ---- */

void strata_auto_growth_join_apart(auto_growth_t *self) {
    uint32_t slot = self->chunks.apart;
    if (slot == 0) return;
    self->chunks.apart = 0;
    (void)strata_auto_growth_put_back(self, strata_slab_record(slab_of(self), slot));
}

/* `low` is true for auto_growth_vmm, which always has two pools and the same mode. */
static HOT void join_last(auto_growth_t *self, bool low) {
    strata_record_t *block = strata_chunks_apart(&self->chunks, self->base.stack);
    self->chunks.apart = 0;
    if (low) (void)merge_low(&self->base, block);
    else (void)put_back(self, block, false, 0);
}

/* Searches the index, because the last-freed block has another size. */
static HOT strata_record_t *search_as(strata_layer_t *base, size_t size, const strata_stack_t *stack, bool low) {
    auto_growth_t *self = (auto_growth_t *)base;
    if (self->chunks.apart) join_last(self, low);
    return low ? hit_low(base, size, stack) : hit(base, size, stack);
}

/* A last-freed block of the same size serves the request, from either pool. */
static HOT strata_record_t *hit_apart_as(strata_layer_t *base, size_t size, const strata_stack_t *stack, bool low) {
    auto_growth_t *self = (auto_growth_t *)base;
    strata_record_t *block = strata_chunks_apart(&self->chunks, self->base.stack);
    uint64_t rounded = rounded_size(self, size);
    if (!self->chunks.apart || block->size != rounded) return search_as(base, size, stack, low);
    strata_chunks_serve_apart(&self->chunks, self->base.stack, block, rounded - size);
    return block;
}

static HOT strata_record_t *hit_apart_low(strata_layer_t *base, size_t size, const strata_stack_t *stack) {
    return hit_apart_as(base, size, stack, true);
}

strata_record_t *strata_auto_growth_hit_low(strata_layer_t *base, size_t size, const strata_stack_t *stack) {
    return hit_apart_low(base, size, stack);
}

static HOT strata_record_t *hit_apart(strata_layer_t *base, size_t size, const strata_stack_t *stack) {
    return hit_apart_as(base, size, stack, false);
}

static HOT bool free_apart_as(strata_layer_t *base, strata_record_t *block, bool low) {
    auto_growth_t *self = (auto_growth_t *)base;
    uint32_t until = low ? STRATA_GENERATION_LAST : self->chunks.apart_until;
    if (__builtin_expect(block->generation >= until, 0)) return low ? merge_low(base, block) : quick_free(base, block);
    if (self->chunks.apart) join_last(self, low);
    strata_chunks_set_apart(&self->chunks, block, strata_slab_slot(slab_of(self), block));
    return true;
}

static HOT bool free_apart_low(strata_layer_t *base, strata_record_t *block) { return free_apart_as(base, block, true); }

bool strata_auto_growth_quick_free_low(strata_layer_t *base, strata_record_t *block) { return free_apart_low(base, block); }

static HOT bool free_apart(strata_layer_t *base, strata_record_t *block) { return free_apart_as(base, block, false); }

strata_record_t *strata_auto_growth_hit(strata_layer_t *base, size_t size, const strata_stack_t *stack) {
    return hit_apart(base, size, stack);
}

bool strata_auto_growth_quick_free(strata_layer_t *base, strata_record_t *block) { return free_apart(base, block); }

/* The shortest versions of both, which do nothing but use or set the last-freed block. Otherwise they return
 * NULL or false. */
static HOT strata_record_t *quick_hit(strata_layer_t *base, size_t size, strata_stack_t *stack) {
    auto_growth_t *self = (auto_growth_t *)base;
    strata_record_t *block = strata_chunks_apart(&self->chunks, stack);
    uint64_t rounded = rounded_size(self, size);
    if (__builtin_expect(!self->chunks.apart || block->size != rounded, 0)) return NULL;
    strata_chunks_serve_apart(&self->chunks, stack, block, rounded - size);
    return block;
}

static HOT bool quick_free_as(strata_layer_t *base, strata_record_t *block, strata_stack_t *stack, bool low) {
    auto_growth_t *self = (auto_growth_t *)base;
    uint32_t until = low ? STRATA_GENERATION_LAST : self->chunks.apart_until;
    if (__builtin_expect(self->chunks.apart || block->generation >= until, 0)) return false;
    strata_chunks_set_apart(&self->chunks, block, strata_slab_slot(&stack->slab, block));
    return true;
}

static HOT bool quick_free_plain(strata_layer_t *base, strata_record_t *block, strata_stack_t *stack) {
    return quick_free_as(base, block, stack, false);
}
static HOT bool quick_free_low(strata_layer_t *base, strata_record_t *block, strata_stack_t *stack) {
    return quick_free_as(base, block, stack, true);
}

static HOT strata_record_t *search(strata_layer_t *base, size_t size, const strata_stack_t *stack) {
    return search_as(base, size, stack, false);
}
static HOT strata_record_t *search_low(strata_layer_t *base, size_t size, const strata_stack_t *stack) {
    return search_as(base, size, stack, true);
}

/* Only the plain mode permits magazines. Best fit by address follows the peers, which have no per-thread
 * caches. */
static bool may_magazines(const strata_layer_t *base) {
    const auto_growth_t *self = (const auto_growth_t *)base;
    return self->road == STRATA_AUTO_GROWTH_PLAIN && !self->gives_idle_back;
}

static bool may_magazines_low(const strata_layer_t *base) {
    (void)base;
    return true;
}

STRATA_DIRECT_WAY(strata_auto_growth_direct, quick_hit, quick_free_plain, search, free_apart, may_magazines);
STRATA_DIRECT_WAY(strata_auto_growth_direct_low, quick_hit, quick_free_low, search_low, free_apart_low, may_magazines_low);
