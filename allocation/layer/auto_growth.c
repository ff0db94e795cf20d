/* auto_growth: best fit over chunks got from below, one chunk more whenever nothing fits.
 *
 * The rules are those of Paddle's auto_growth_best_fit (v1, 2025-01): a request takes the high end of the smallest free block
 * that fits, by (size, address); the remainder, however small, stays low; freed blocks merge with free neighbours of their
 * chunk; a chunk is max(request, chunk_size). What the peer lacks is an option, off by default; so are the pools and the
 * warm-up that it has since.
 *
 * The remainder and the merged block keep the lower block's slot: so the first slot of a chunk never changes.
 */
#include "allocation/layer/auto_growth_state.h"

#include "allocation/reclaim/patience.h"
#include "allocation/stack/direct.h"
#include "platform/arithmetic.h"

#define HOT  inline __attribute__((always_inline))
#define COLD __attribute__((noinline))

static const strata_option_row_t options[] = {
    {"chunk_size", STRATA_OPTION_SIZE, offsetof(auto_growth_options_t, chunk_size), "0", 0, 1ull << 44, NULL,
     "the least that is asked from the layer below; 0: the rounded request"},
    {"alignment", STRATA_OPTION_SIZE, offsetof(auto_growth_options_t, alignment), "256", 64, 1ull << 21, NULL,
     "blocks begin at multiples of this power of two, and sizes are rounded to them; device memory at more than 256 needs "
     "`aligned` "
     "below"},
    {"order", STRATA_OPTION_CHOICE, offsetof(auto_growth_options_t, order), "address", 0, 0, "address|any",
     "among free blocks: `address`: exactly the smallest, then the lowest; `any`: a near smallest one, much faster"},
    {"reclaim", STRATA_OPTION_CHOICE, offsetof(auto_growth_options_t, reclaim), "own", 0, 0, "own|ladder",
     "when the layer below is out of memory: `own`: free the idle chunks of this stack and ask once more; `ladder`: leave it to "
     "the domain's ladder"},
    {"free_idle_chunk", STRATA_OPTION_BOOL, offsetof(auto_growth_options_t, free_idle_chunk), "false", 0, 0, NULL,
     "give a chunk back as soon as nothing in it is used"},
    {"free_when_no_cache_hit", STRATA_OPTION_BOOL, offsetof(auto_growth_options_t, free_when_no_cache_hit), "false", 0, 0, NULL,
     "give all idle chunks back before growing"},
    {"smaller_growth", STRATA_OPTION_BOOL, offsetof(auto_growth_options_t, smaller_growth), "false", 0, 0, NULL,
     "on out-of-memory grow by the rounded request alone when a whole chunk cannot be had"},
    {"split_pools", STRATA_OPTION_BOOL, offsetof(auto_growth_options_t, split_pools), "false", 0, 0, NULL,
     "chunks larger than `chunk_size` serve smaller requests only when no other chunk can"},
    {"small_pool_size", STRATA_OPTION_SIZE, offsetof(auto_growth_options_t, small_pool_size), "0", 0, 1ull << 44, NULL,
     "rounded requests up to this are served from chunks of their own; 0: all from the same chunks"},
    {"small_chunk_size", STRATA_OPTION_SIZE, offsetof(auto_growth_options_t, small_chunk_size), "0", 0, 1ull << 44, NULL,
     "`chunk_size` of the small pool; 0: the rounded request"},
    {"preallocate", STRATA_OPTION_SIZE, offsetof(auto_growth_options_t, preallocate), "0", 0, 1ull << 44, NULL,
     "a chunk of this size is allocated when the stack of the default stream is made (strata_open), which fails without it; 0: "
     "none"},
    {"small_preallocate", STRATA_OPTION_SIZE, offsetof(auto_growth_options_t, small_preallocate), "0", 0, 1ull << 44, NULL,
     "`preallocate` of the small pool"},
    {"warm_up_steps", STRATA_OPTION_COUNT, offsetof(auto_growth_options_t, warm_up_steps), "0", 0, 1ull << 32, NULL,
     "until so many steps of the program (strata_step) have ended, each miss grows by exactly the rounded request and a free "
     "block serves only its own size; then idle chunks go back and the other options' rules begin; 0: no warm-up"},
    {"padding", STRATA_OPTION_SIZE, offsetof(auto_growth_options_t, padding), "0", 0, 1ull << 30, NULL,
     "bytes that each block has beyond its request, before rounding (Paddle's extra_padding_size)"},
    {"stable_addresses", STRATA_OPTION_BOOL, offsetof(auto_growth_options_t, stable_addresses), "false", 0, 0, NULL,
     STRATA_STABLE_ADDRESSES},
    {0},
};

/* A free block in the index becomes `size` bytes long. */
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

/* Cuts the high end off the free block `low`: the piece's record, or NULL if the slab is full. */
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

/* Cuts off the low end instead, where the first block of a chunk may be another one at any time (allocation/chunks/runs.h). */
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

/* Fields of the record that a hit hands out: an empty route, nothing borrowed. */
static inline void hand_out(strata_record_t *block, uint64_t slack, uint32_t pool) {
    block->route = 0;
    block->attention = 0;
    block->slack = (uint32_t)slack;
    block->borrows = 0;
    block->pool = (uint8_t)pool;
    block->state = STRATA_RECORD_LIVE;
}

/* Serves `rounded` bytes from the free block `slot`; NULL if the slab is full. */
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
    self->base.stack->figures.cache_hits++;
    hand_out(block, rounded - size, pool);
    return block;
}

static inline uint64_t rounded_size(const auto_growth_t *self, size_t size) {
    return (size + self->chunks.unit - 1) & ~(self->chunks.unit - 1);
}

/* A free block of a pool that fits; `whole`: the bin that a hit searches in part is searched as a whole. */
static inline uint32_t find_in(auto_growth_t *self, uint64_t rounded, bool by_address, bool whole, uint32_t pool) {
    auto_growth_pool_t *p = &self->pools[pool];
    if (by_address) return strata_tree_find(&p->tree, slab_of(self), rounded);
    return whole ? strata_bins_find_any(&p->bins, slab_of(self), rounded) : strata_bins_find(&p->bins, slab_of(self), rounded);
}

/* `divided`: there are two pools; `exact`: no block is cut. */
static HOT strata_record_t *serve_as(auto_growth_t *self, uint64_t rounded, uint64_t size, bool by_address, bool divided,
                                     bool whole, bool exact) {
    uint32_t pool = divided ? strata_auto_growth_pool_for(self, rounded) : 0;
    uint32_t slot = find_in(self, rounded, by_address, whole, pool);
    if (divided && slot == 0 && pool == 0 && self->spills) slot = find_in(self, rounded, by_address, whole, pool = 1);
    if (slot == 0 || (exact && strata_slab_record(slab_of(self), slot)->size != rounded)) return NULL;
    return serve_from(self, slot, rounded, size, by_address, pool, self->cuts_low);
}

static COLD strata_record_t *hit_by_address(auto_growth_t *self, size_t size) {
    return serve_as(self, rounded_size(self, size), size, true, false, false, false);
}

static COLD strata_record_t *hit_as_said(auto_growth_t *self, size_t size) {
    uint64_t rounded = rounded_size(self, size + strata_auto_growth_options(self)->padding);
    if (self->warming_up || strata_repeats_are_on(&self->repeats)) return NULL;
    return self->by_address ? serve_as(self, rounded, size, true, true, false, false)
                            : serve_as(self, rounded, size, false, true, false, false);
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
    return __builtin_expect(slot != 0, 1) ? serve_from(self, slot, rounded, size, false, 0, false) : NULL;
}

static HOT strata_record_t *hit_low_in(auto_growth_t *self, uint64_t rounded, size_t size, uint32_t pool) {
    uint32_t slot = find_in(self, rounded, false, false, pool);
    return __builtin_expect(slot != 0, 1) ? serve_from(self, slot, rounded, size, false, pool, true) : NULL;
}

/* Written out for each pool, so that the compiler knows where its index is. */
strata_record_t *strata_auto_growth_hit_low(strata_layer_t *base, size_t size, const strata_stack_t *stack) {
    auto_growth_t *self = (auto_growth_t *)base;
    (void)stack;
    uint64_t rounded = rounded_size(self, size);
    return rounded > self->first_up_to ? hit_low_in(self, rounded, size, 1) : hit_low_in(self, rounded, size, 0);
}

strata_record_t *strata_auto_growth_serve_from_pool(auto_growth_t *self, uint64_t rounded, uint64_t size, uint32_t pool) {
    uint32_t slot = find_in(self, rounded, self->by_address, true, pool);
    return slot ? serve_from(self, slot, rounded, size, self->by_address, pool, self->cuts_low) : NULL;
}

strata_record_t *strata_auto_growth_serve(auto_growth_t *self, uint64_t rounded, uint64_t size, bool exact) {
    strata_auto_growth_join_apart(self);
    return self->by_address ? serve_as(self, rounded, size, true, true, true, exact)
                            : serve_as(self, rounded, size, false, true, true, exact);
}

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    auto_growth_t *self = (auto_growth_t *)base;
    uint64_t rounded;
    bool grown = false;
    strata_patience_t patience = {0};
    if (request->alignment > self->chunks.unit)
        return strata_fail(STRATA_E_UNSUPPORTED, 0, "auto_growth serves alignments up to %llu",
                           (unsigned long long)self->chunks.unit);
    if (!strata_add(request->size, strata_auto_growth_options(self)->padding, &rounded) ||
        !strata_round_up(rounded, self->chunks.unit, &rounded))
        return strata_fail(STRATA_E_INVALID, 0, "the size is too large");
    uint32_t pool = strata_auto_growth_pool_for(self, rounded);
    *record = strata_auto_growth_again(self, rounded, request);
    /* Below may have granted more than was asked: a chunk that came for this request serves it, warm-up or not. */
    while (!*record && (*record = strata_auto_growth_serve(self, rounded, request->size, self->warming_up && !grown)) == NULL) {
        uint64_t size = strata_auto_growth_size(self, rounded, pool, request->flags);
        if (size == 0)
            return strata_fail(STRATA_E_NO_MEMORY, 0, "no free block of %llu bytes, and no growth is allowed",
                               (unsigned long long)rounded);
        if (!self->chunks.growing && strata_patience_waited(&patience, base, request, &(strata_growth_asked_t){.bytes = size}))
            continue;
        if (!strata_chunks_begin_growth(&self->chunks, &self->chunks.growing, request->call)) continue;
        strata_status_t status = strata_auto_growth_grow(self, size, pool, request);
        strata_chunks_end_growth(&self->chunks, &self->chunks.growing);
        if (status != STRATA_OK) return status;
        grown = true;
    }
    (*record)->stack = request->call->stack->number;
    if (grown) base->stack->figures.cache_hits--;
    strata_repeats_note(&self->repeats, slab_of(self), 0, rounded, *record);
    return STRATA_OK;
}

/* ---- free ---- */

/* The slot's generations are used up. Without another slot the block stays unused until its chunk goes. */
static COLD uint32_t move_to_new_slot(auto_growth_t *self, uint32_t slot) { return strata_chunks_move_block(&self->chunks, slot); }

/* A block that did not merge with the one below it goes into the index; its slot, or 0 if a used-up slot loses it. */
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

/* Puts a block back and merges it with its free neighbours. Returns the slot of the free block that contains it now; 0 if a used-up
 * slot loses it. The sentinel in slot 0 is never free, so missing neighbours need no check. */
static HOT uint32_t put_back(auto_growth_t *self, strata_record_t *block, bool by_address, uint32_t pool) {
    strata_slab_t *slab = slab_of(self);
    uint32_t slot = strata_slab_slot(slab, block), low = block->prev, high = block->next;
    strata_record_t *prev = strata_slab_record(slab, low);
    uint64_t size = block->size;
    bool joins = strata_slab_is_idle(slab, low);
    if (joins) __builtin_prefetch(prev, 1); /* both neighbours may be cache misses: they are loaded together */
    self->used_bytes -= size;
    if (strata_slab_is_idle(slab, high)) {
        uint32_t gone = high;
        const strata_record_t *next = strata_slab_record(slab, high);
        size += next->size;
        high = next->next;
        strata_auto_growth_remove(self, gone, by_address, pool);
        block->size = size;
        block->next = high;
        strata_slab_record(slab, high)->prev = slot;
        strata_slab_give(slab, gone);
    }
    if (!joins) return stand_alone(self, block, slot, by_address, pool);
    prev->next = high;
    strata_slab_record(slab, high)->prev = low;
    index_resize(self, low, prev->size + size, by_address, pool);
    strata_slab_give(slab, slot);
    return low;
}

static COLD uint32_t put_back_by_address(auto_growth_t *self, strata_record_t *block) { return put_back(self, block, true, 0); }

static COLD uint32_t put_back_as_said(auto_growth_t *self, strata_record_t *block) {
    uint32_t pool = block->pool;
    return self->by_address ? put_back(self, block, true, pool) : put_back(self, block, false, pool);
}

static COLD uint32_t put_back_otherwise(auto_growth_t *self, strata_record_t *block) {
    return self->road == STRATA_AUTO_GROWTH_PLAIN_BY_ADDRESS ? put_back_by_address(self, block) : put_back_as_said(self, block);
}

static bool quick_free(strata_layer_t *base, strata_record_t *block) {
    auto_growth_t *self = (auto_growth_t *)base;
    if (__builtin_expect(self->gives_idle_back, 0)) return false;
    if (__builtin_expect(self->road != STRATA_AUTO_GROWTH_PLAIN, 0)) (void)put_back_otherwise(self, block);
    else (void)put_back(self, block, false, 0);
    return true;
}

bool strata_auto_growth_quick_free_low(strata_layer_t *base, strata_record_t *block) {
    if (block->pool) (void)put_back((auto_growth_t *)base, block, false, 1);
    else (void)put_back((auto_growth_t *)base, block, false, 0);
    return true;
}

static void free_block(strata_layer_t *base, strata_record_t *block, strata_call_t *call) {
    auto_growth_t *self = (auto_growth_t *)base;
    strata_leaving_t leaving = {0};
    uint32_t number = block->chunk;
    uint32_t slot = put_back_as_said(self, block);
    if (slot == 0 || !self->gives_idle_back || !strata_chunks_goes(&self->chunks, strata_chunk_at(&self->chunks, number))) return;
    strata_chunks_detach(&self->chunks, number, &leaving);
    (void)strata_chunks_give_back(&self->chunks, &leaving, call);
}

/* ---- the block that was freed last ----
 *
 * Programs give a block back and ask for as much again. So the one that was freed last stays apart: in no index, and not merged with its
 * neighbours, until the next request or free. Is that a request of its size, it is served as it is. Whatever needs to know all that is
 * free joins it first. While it is apart its bytes count as used. */

void strata_auto_growth_put_in(auto_growth_t *self, uint32_t slot) {
    strata_record_t *block = strata_slab_record(slab_of(self), slot);
    self->used_bytes += block->size;
    (void)put_back_as_said(self, block);
}

void strata_auto_growth_join_apart(auto_growth_t *self) {
    uint32_t slot = self->apart;
    if (slot == 0) return;
    self->apart = 0;
    (void)put_back_as_said(self, strata_slab_record(slab_of(self), slot));
}

/* `low`: that of auto_growth_vmm, which has two pools and no other ways. */
static inline void join_last(auto_growth_t *self, bool low) {
    strata_record_t *block = strata_slab_record(slab_of(self), self->apart);
    self->apart = 0;
    if (low) (void)strata_auto_growth_quick_free_low(&self->base, block);
    else (void)put_back(self, block, false, 0);
}

/* A block of the same size will do, of whichever pool it is. */
static HOT strata_record_t *hit_apart_as(strata_layer_t *base, size_t size, const strata_stack_t *stack, bool low) {
    auto_growth_t *self = (auto_growth_t *)base;
    if (self->apart) {
        strata_record_t *block = strata_slab_record(slab_of(self), self->apart);
        uint64_t rounded = rounded_size(self, size);
        if (__builtin_expect(block->size == rounded, 1)) {
            self->apart = 0;
            base->stack->figures.cache_hits++;
            hand_out(block, rounded - size, block->pool);
            return block;
        }
        join_last(self, low);
    }
    return low ? strata_auto_growth_hit_low(base, size, stack) : hit(base, size, stack);
}

static HOT strata_record_t *hit_apart_low(strata_layer_t *base, size_t size, const strata_stack_t *stack) {
    return hit_apart_as(base, size, stack, true);
}

strata_record_t *strata_auto_growth_hit_apart_low(strata_layer_t *base, size_t size, const strata_stack_t *stack) {
    return hit_apart_low(base, size, stack);
}

static HOT strata_record_t *hit_apart(strata_layer_t *base, size_t size, const strata_stack_t *stack) {
    return hit_apart_as(base, size, stack, false);
}

static HOT bool free_apart_as(strata_layer_t *base, strata_record_t *block, bool low) {
    auto_growth_t *self = (auto_growth_t *)base;
    bool plain = low || (self->road == STRATA_AUTO_GROWTH_PLAIN && !self->gives_idle_back);
    if (__builtin_expect(!plain || block->generation >= STRATA_GENERATION_LAST, 0))
        return low ? strata_auto_growth_quick_free_low(base, block) : quick_free(base, block);
    if (self->apart) join_last(self, low);
    block->slack = 0;
    block->state = STRATA_RECORD_FREE;
    self->apart = strata_slab_slot(slab_of(self), block);
    return true;
}

static HOT bool free_apart_low(strata_layer_t *base, strata_record_t *block) { return free_apart_as(base, block, true); }

bool strata_auto_growth_free_apart_low(strata_layer_t *base, strata_record_t *block) { return free_apart_low(base, block); }

static HOT bool free_apart(strata_layer_t *base, strata_record_t *block) { return free_apart_as(base, block, false); }

static STRATA_DIRECT_WAY(direct, hit_apart, free_apart);
static STRATA_DIRECT_FUNCTIONS(low, hit_apart_low, free_apart_low) const strata_direct_t strata_auto_growth_direct_low = {
    .allocate = low_allocate, .free = low_free};

/* ---- what needs all free memory in one piece ---- */

static uint64_t release(strata_layer_t *base, strata_call_t *call) {
    strata_auto_growth_join_apart((auto_growth_t *)base);
    return strata_chunks_release(base, call);
}

static uint64_t trim(strata_layer_t *base, uint64_t keep, strata_call_t *call) {
    strata_auto_growth_join_apart((auto_growth_t *)base);
    return strata_chunks_trim(base, keep, call);
}

static strata_status_t validate(strata_layer_t *base) {
    strata_auto_growth_join_apart((auto_growth_t *)base);
    return strata_auto_growth_validate(base);
}

void strata_auto_growth_walk(strata_layer_t *base, strata_walk_fn visit, void *context) {
    strata_auto_growth_join_apart((auto_growth_t *)base);
    strata_chunks_walk(base, visit, context);
}

/* ---- life ---- */

static strata_status_t check_pools(const auto_growth_options_t *o, const char **option) {
    if (o->small_pool_size > 0 && o->split_pools) {
        *option = "split_pools";
        return strata_fail(STRATA_E_STRATEGY, 0,
                           "split_pools and small_pool_size are two ways to divide the chunks; write one "
                           "of them");
    }
    if (o->small_pool_size > 0 || (o->small_chunk_size == 0 && o->small_preallocate == 0)) return STRATA_OK;
    *option = o->small_chunk_size > 0 ? "small_chunk_size" : "small_preallocate";
    return strata_fail(STRATA_E_STRATEGY, 0,
                       "there is no small pool; write small_pool_size: 1MiB, for requests up to that "
                       "size, beside it");
}

static strata_status_t check(const void *options_given, strata_place_kind_t place, const char **option) {
    const auto_growth_options_t *o = options_given;
    unsigned least = (unsigned)strata_place_alignment(place);
    if (strata_is_power_of_two(o->alignment) && o->alignment >= least) return check_pools(o, option);
    *option = "alignment";
    return strata_fail(STRATA_E_STRATEGY, 0,
                       "%llu is no alignment that this place can be served with; write a power of two of at "
                       "least %u",
                       (unsigned long long)o->alignment, least);
}

/* Blocks begin where their chunk does, or so many units after it. */
static uint64_t alignment(const void *options_given, strata_place_kind_t place, uint64_t below, uint64_t *wanted) {
    (void)place, (void)below;
    return *wanted = ((const auto_growth_options_t *)options_given)->alignment;
}

static uint64_t rounded_up(const auto_growth_t *self, uint64_t size) {
    return strata_round_down(size + self->chunks.unit - 1, self->chunks.unit);
}

/* From the options and the steps that have ended. */
static void set_rules(auto_growth_t *self) {
    self->warming_up = self->steps < strata_auto_growth_options(self)->warm_up_steps;
    self->road = strata_auto_growth_road(self);
}

/* A split by chunk_size: larger requests ask for chunks of their own size; smaller ones may have what is free of them. */
static void set_pools(auto_growth_t *self, const auto_growth_options_t *o) {
    uint64_t chunk_size = rounded_up(self, o->chunk_size);
    bool has_small = o->small_pool_size > 0;
    self->spills = o->split_pools;
    self->first_up_to = has_small ? o->small_pool_size : o->split_pools ? chunk_size : UINT64_MAX;
    self->pools[0].growth = has_small ? rounded_up(self, o->small_chunk_size) : chunk_size;
    self->pools[1].growth = chunk_size;
    for (uint32_t pool = 0; pool < strata_auto_growth_pools(self); pool++)
        strata_bins_init(&self->pools[pool].bins, (uint32_t)__builtin_ctzll(self->chunks.unit));
}

void strata_auto_growth_begin_low(auto_growth_t *self, uint64_t alignment, uint64_t first_up_to) {
    self->chunks.unit = alignment;
    self->first_up_to = first_up_to;
    self->cuts_low = true;
    self->knows_near = self->chunks.sole;
    self->road = STRATA_AUTO_GROWTH_AS_SAID;
    for (uint32_t pool = 0; pool < STRATA_AUTO_GROWTH_POOLS; pool++)
        strata_bins_init(&self->pools[pool].bins, (uint32_t)__builtin_ctzll(alignment));
}

static void destroy(strata_layer_t *base) {
    strata_chunks_destroy(base);
    strata_repeats_destroy(&((auto_growth_t *)base)->repeats);
}

static strata_status_t create(strata_layer_t *base) {
    auto_growth_t *self = (auto_growth_t *)base;
    const auto_growth_options_t *o = base->options;
    strata_status_t status = strata_chunks_init(base, &strata_auto_growth_policy, sizeof(strata_chunk_t),
                                                STRATA_AUTO_GROWTH_CHUNKS);
    if (status != STRATA_OK) return status;
    self->chunks.unit = o->alignment;
    /* Where nothing is known yet, the same free memory gives the same address. */
    self->by_address = o->order == STRATA_AUTO_GROWTH_BY_ADDRESS || o->stable_addresses;
    self->gives_idle_back = o->free_idle_chunk;
    set_pools(self, o);
    if (o->stable_addresses) status = strata_repeats_init(&self->repeats);
    set_rules(self);
    if (status == STRATA_OK) status = strata_auto_growth_preallocate(self);
    if (status != STRATA_OK) destroy(base);
    return status;
}

/* The warm-up ends with one of the program's steps. */
static void step(strata_layer_t *base, strata_call_t *call) {
    auto_growth_t *self = (auto_growth_t *)base;
    strata_repeats_step(&self->repeats);
    if (!self->warming_up) return;
    self->steps++;
    set_rules(self);
    if (!self->warming_up) (void)release(base, call);
}

/* Whatever became of a slot that somebody knew: what is idle and has the place is the block. */
static HOT bool has_place(const strata_slab_t *slab, uint32_t slot, uint64_t ptr, uint64_t size) {
    const strata_record_t *block = strata_slab_record(slab, slot);
    uint64_t low = ptr - block->ptr;
    return strata_slab_is_idle(slab, slot) && low < block->size && size <= block->size - low;
}

/* The free block that has the place, if it is the one after that of the slot that is known, or that one; 0: neither is. */
static HOT uint32_t free_near(const strata_slab_t *slab, uint32_t known, uint64_t ptr, uint64_t size) {
    uint32_t next = strata_slab_record(slab, known)->next;
    if (has_place(slab, next, ptr, size)) return next;
    return has_place(slab, known, ptr, size) ? known : 0;
}

static COLD strata_record_t *serve_inside(auto_growth_t *self, uint32_t slot, const strata_block_t *at, size_t requested) {
    const strata_extent_t place = strata_extent_of(at);
    return slot ? strata_auto_growth_take_from(self, slot, &place, requested)
                : strata_auto_growth_take_at(self, &place, place.size, requested);
}

strata_record_t *strata_auto_growth_serve_at(strata_layer_t *base, const strata_block_t *at, size_t requested,
                                             const strata_stack_t *stack) {
    auto_growth_t *self = (auto_growth_t *)base;
    const strata_slab_t *slab = slab_of(self);
    uint64_t ptr = (uintptr_t)at->ptr, size = at->size;
    uint32_t known = strata_ref_slot(at->ref), slot = 0;
    if (self->knows_near && known < slab->used) slot = free_near(slab, known, ptr, size);
    strata_record_t *block = strata_slab_record(slab, slot);
    if (__builtin_expect(slot == 0 || block->ptr != ptr, 0)) block = serve_inside(self, slot, at, requested);
    else
        block = block->pool ? serve_from(self, slot, size, requested, false, 1, true)
                            : serve_from(self, slot, size, requested, false, 0, true);
    if (block) block->stack = stack->number;
    return block;
}

uint64_t strata_auto_growth_idle_bytes(strata_layer_t *base) {
    strata_auto_growth_join_apart((auto_growth_t *)base);
    return strata_auto_growth_idle((auto_growth_t *)base);
}

const strata_layer_type_t strata_auto_growth_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "auto_growth",
    .doc = "best fit over chunks, one more chunk whenever nothing fits (Paddle's auto_growth_best_fit)",
    .role = STRATA_CACHE,
    .scope = STRATA_SCOPE_STREAM,
    .gives = STRATA_TRAIT_STREAM_ORDERED | STRATA_TRAIT_SUB_ALLOCATES | STRATA_TRAIT_SINGLE_STREAM | STRATA_TRAIT_PLACES,
    .guarded = true,
    .state_size = sizeof(auto_growth_t),
    .options_size = sizeof(auto_growth_options_t),
    .options = options,
    .create = create,
    .destroy = destroy,
    .allocate = allocate,
    .free = free_block,
    .hit = hit_apart,
    .quick_free = free_apart,
    .direct = &direct,
    .release = release,
    .step = step,
    .trim = trim,
    .find = strata_chunks_find,
    .walk = strata_auto_growth_walk,
    .chunk_of = strata_chunks_chunk_of,
    .idle_bytes = strata_auto_growth_idle_bytes,
    .validate = validate,
    .check = check,
    .alignment = alignment,
    .take_at = strata_auto_growth_serve_at,
};
