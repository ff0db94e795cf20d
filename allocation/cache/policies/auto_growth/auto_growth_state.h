/* What the files of auto_growth share: options, pools and the state of an instance.
 *
 *     auto_growth.c         the type: its options, a request that misses, its life
 *     auto_growth_blocks.c  blocks are served from what is free, and come back
 *     auto_growth_grow.c    which chunk is asked from below, and when
 *     auto_growth_at.c      requests that are served at a given address
 *     auto_growth_check.c   the check of the whole structure
 */
#ifndef STRATA_ALLOCATION_LAYER_AUTO_GROWTH_STATE_H
#define STRATA_ALLOCATION_LAYER_AUTO_GROWTH_STATE_H

#include "allocation/cache/apart.h"
#include "allocation/cache/serve.h"
#include "allocation/mechanism/bins.h"
#include "allocation/mechanism/tree.h"
#include "allocation/stack/direct.h"

enum {
    STRATA_AUTO_GROWTH_CHUNKS = 1 << 20, /* of one instance */
    STRATA_AUTO_GROWTH_POOLS = 2
};

enum { STRATA_AUTO_GROWTH_BY_ADDRESS, STRATA_AUTO_GROWTH_ANY_ORDER };
/* Of a hit and its free: with one pool, no padding, no warm-up and no stable addresses they need not ask for the pool, nor whether
 * a block may be cut. */
enum { STRATA_AUTO_GROWTH_PLAIN, STRATA_AUTO_GROWTH_PLAIN_BY_ADDRESS, STRATA_AUTO_GROWTH_AS_SAID };
enum { STRATA_AUTO_GROWTH_RECLAIM_OWN, STRATA_AUTO_GROWTH_RECLAIM_LADDER };

typedef struct auto_growth_options {
    uint64_t chunk_size;
    uint64_t alignment;
    uint64_t small_pool_size;
    uint64_t small_chunk_size;
    uint64_t preallocate;
    uint64_t small_preallocate;
    uint64_t warm_up_steps;
    uint64_t padding;
    uint32_t order;
    uint32_t reclaim;
    bool free_idle_chunk;
    bool free_when_no_cache_hit;
    bool smaller_growth;
    bool split_pools;
    bool stable_addresses;
} auto_growth_options_t;

/* Chunks that serve some requests and not others: the index of their free blocks. `growth` is the least that is asked from
 * below for it; 0: the rounded request. A block's record names its pool. */
typedef struct auto_growth_pool {
    uint64_t growth;
    strata_tree_t tree;
    strata_bins_t bins;
} auto_growth_pool_t;

typedef struct auto_growth {
    union {
        strata_layer_t base;
        strata_chunks_t chunks; /* their unit is the alignment */
    };
    uint64_t used_bytes; /* of the chunks, what is not in an index */
    uint8_t road;
    bool by_address;
    bool gives_idle_back; /* free_idle_chunk */
    bool cuts_low; /* of a free block the low end serves: that of auto_growth_vmm, whose chunks grow at their high end */
    bool warming_up; /* until steps == warm_up_steps: a free block serves its own size alone, misses grow exactly */
    bool spills; /* what pool 0 cannot serve, pool 1 may */
    uint64_t first_up_to; /* rounded requests up to this are pool 0's; UINT64_MAX: there is no other */
    uint64_t steps;
    auto_growth_pool_t pools[STRATA_AUTO_GROWTH_POOLS];
} auto_growth_t;

static inline const auto_growth_options_t *strata_auto_growth_options(const auto_growth_t *self) { return self->base.options; }

static inline strata_slab_t *slab_of(auto_growth_t *self) { return &self->base.stack->slab; }

/* Bytes of the chunks that are in no block in use. */
static inline uint64_t strata_auto_growth_idle(const auto_growth_t *self) { return self->chunks.bytes - self->used_bytes; }

/* Whether there is more than one pool. */
static inline bool strata_auto_growth_is_divided(const auto_growth_t *self) { return self->first_up_to != UINT64_MAX; }
static inline uint32_t strata_auto_growth_pools(const auto_growth_t *self) {
    return strata_auto_growth_is_divided(self) ? STRATA_AUTO_GROWTH_POOLS : 1;
}

static inline uint8_t strata_auto_growth_road(const auto_growth_t *self) {
    bool padded = strata_auto_growth_options(self)->padding > 0;
    if (self->warming_up || padded || strata_repeats_are_on(&self->chunks.repeats) || strata_auto_growth_is_divided(self))
        return STRATA_AUTO_GROWTH_AS_SAID;
    return self->by_address ? STRATA_AUTO_GROWTH_PLAIN_BY_ADDRESS : STRATA_AUTO_GROWTH_PLAIN;
}

/* The pool that a request of so many rounded bytes asks first, and grows. */
static inline uint32_t strata_auto_growth_pool_for(const auto_growth_t *self, uint64_t rounded) {
    return rounded > self->first_up_to;
}

/* ---- the index of free blocks ----
 *
 * `by_address` is self->by_address and `pool` the block's; a caller that knows them leaves only one way to the compiler. */

static inline void strata_auto_growth_insert(auto_growth_t *self, uint32_t slot, bool by_address, uint32_t pool) {
    if (by_address) strata_tree_insert(&self->pools[pool].tree, slab_of(self), slot);
    else strata_bins_insert(&self->pools[pool].bins, slab_of(self), slot);
}

static inline void strata_auto_growth_remove(auto_growth_t *self, uint32_t slot, bool by_address, uint32_t pool) {
    if (by_address) strata_tree_remove(&self->pools[pool].tree, slab_of(self), slot);
    else strata_bins_remove(&self->pools[pool].bins, slab_of(self), slot);
}

/* ---- all under the stack's lock ---- */

/* These are `growth_size` and `grow` of the policy. With `reclaim: own`, grow gives idle chunks back first, or after a refusal. */
uint64_t strata_auto_growth_size(const strata_layer_t *base, const strata_lookup_t *lookup);
strata_status_t strata_auto_growth_grow(strata_layer_t *base, strata_lookup_t *lookup, uint64_t size, strata_record_t **record);
/* The chunks that the options ask for before the first request. No lock is held. */
strata_status_t strata_auto_growth_preallocate(auto_growth_t *self);

/* The direct way of a hit and of its free. The block that was freed last stands apart. */
strata_record_t *strata_auto_growth_hit(strata_layer_t *base, size_t size, const strata_stack_t *stack);
bool strata_auto_growth_quick_free(strata_layer_t *base, strata_record_t *block);
extern const strata_direct_t strata_auto_growth_direct;
/* A block that counts as used is free, and merges with its free neighbours. The slot of the free block that contains it; 0: its slot is
 * used up, and it stays out of use. */
uint32_t strata_auto_growth_put_back(auto_growth_t *self, strata_record_t *block);
/* The block that was freed last merges with its neighbours, so that all that is free is in an index. */
void strata_auto_growth_join_apart(auto_growth_t *self);
/* A rounded request is served at a place; NULL: it cannot be. */
strata_record_t *strata_auto_growth_take_at(auto_growth_t *self, const strata_extent_t *place, uint64_t rounded, uint64_t size);
extern const strata_chunk_policy_t strata_auto_growth_policy;

/* ---- what auto_growth_vmm shares: everything but how a miss is served ---- */

strata_record_t *strata_auto_growth_hit_low(strata_layer_t *base, size_t size, const strata_stack_t *stack);
bool strata_auto_growth_quick_free_low(strata_layer_t *base, strata_record_t *block);
extern const strata_direct_t strata_auto_growth_direct_low;
/* Serves a rounded request from what is free; no fitting block is missed. `exact`: by a block of that size alone. NULL: none fits, or
 * the slab is full. */
strata_record_t *strata_auto_growth_serve(auto_growth_t *self, uint64_t rounded, uint64_t size, bool exact);
/* From one pool alone, whatever sizes it is for. */
strata_record_t *strata_auto_growth_serve_from_pool(auto_growth_t *self, uint64_t rounded, uint64_t size, uint32_t pool);
/* A free block that is in no index comes into it, merged with its free neighbours. */
void strata_auto_growth_put_in(auto_growth_t *self, uint32_t slot);
/* Two pools of blocks of `alignment`, `any` order: up to `first_up_to` bytes, and larger ones. The chunks have been made. */
void strata_auto_growth_begin_low(auto_growth_t *self, uint64_t alignment, uint64_t first_up_to);
strata_record_t *strata_auto_growth_serve_at(strata_layer_t *base, const strata_block_t *at, size_t requested,
                                             const strata_stack_t *stack);
uint64_t strata_auto_growth_idle_bytes(strata_layer_t *base);
void strata_auto_growth_walk(strata_layer_t *base, strata_walk_fn visit, void *context);

/* Every chunk is filled by its blocks, the sums and the indices are right. E_CORRUPT. Under the lock. */
strata_status_t strata_auto_growth_validate(strata_layer_t *base);

#endif
