/* The state of auto_growth, a best-fit cache over chunks (auto_growth.c), and what its files share with auto_growth_vmm.
 *
 *     auto_growth.c         the type: options, the serve policy, create and destroy
 *     auto_growth_blocks.c  serves free blocks, and coalesces freed ones
 *     auto_growth_grow.c    decides which chunk to request from below, and when
 *     auto_growth_at.c      serves requests at a given address
 *     auto_growth_check.c   validates the whole structure */
#ifndef STRATA_ALLOCATION_LAYER_AUTO_GROWTH_STATE_H
#define STRATA_ALLOCATION_LAYER_AUTO_GROWTH_STATE_H

#include "allocation/cache/last_freed.h"
#include "allocation/cache/serve.h"
#include "allocation/mechanism/bins.h"
#include "allocation/mechanism/tree.h"
#include "allocation/stack/direct.h"

enum {
    STRATA_AUTO_GROWTH_CHUNKS = 1 << 20, /* of one instance */
    STRATA_AUTO_GROWTH_POOLS = 2
};

enum { STRATA_AUTO_GROWTH_BY_ADDRESS, STRATA_AUTO_GROWTH_ANY_ORDER };
/* The mode of a hit and its free. In the PLAIN modes there is one pool, and no padding, warm-up or stable
 * addresses. Then they check neither the pool nor if a block may be split. */
enum { STRATA_AUTO_GROWTH_PLAIN, STRATA_AUTO_GROWTH_PLAIN_BY_ADDRESS, STRATA_AUTO_GROWTH_GENERAL };
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

/* The chunks for one group of requests, and the index of their free blocks. A growth of the pool requests at
 * least `growth` bytes from below, or the rounded request if that is 0. A block's record has the number of its
 * pool. */
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
    uint64_t used_bytes; /* bytes of all blocks that are not in an index */
    uint8_t hit_mode;
    bool by_address;
    bool frees_idle_chunks; /* free_idle_chunk */
    /* the low end of a free block serves a request. auto_growth_vmm sets it, because its chunks grow at their
     * high end. */
    bool splits_low;
    bool warming_up; /* until steps == warm_up_steps: a free block serves only its own size, and misses grow exactly */
    bool spills; /* pool 1 may serve requests that pool 0 cannot */
    uint64_t first_up_to; /* pool 0 serves rounded requests up to this; UINT64_MAX if it is the only pool */
    uint64_t steps;
    auto_growth_pool_t pools[STRATA_AUTO_GROWTH_POOLS];
} auto_growth_t;

static inline const auto_growth_options_t *strata_auto_growth_options(const auto_growth_t *self) { return self->base.options; }

static inline strata_slab_t *slab_of(auto_growth_t *self) { return &self->base.stack->slab; }

/* Returns the bytes of the chunks that are in no used block. */
static inline uint64_t strata_auto_growth_idle(const auto_growth_t *self) { return self->chunks.bytes - self->used_bytes; }

/* Returns true if there is more than one pool. */
static inline bool strata_auto_growth_has_two_pools(const auto_growth_t *self) { return self->first_up_to != UINT64_MAX; }
static inline uint32_t strata_auto_growth_pools(const auto_growth_t *self) {
    return strata_auto_growth_has_two_pools(self) ? STRATA_AUTO_GROWTH_POOLS : 1;
}

static inline uint8_t strata_auto_growth_hit_mode(const auto_growth_t *self) {
    bool padded = strata_auto_growth_options(self)->padding > 0;
    if (self->warming_up || padded || strata_repeats_are_on(&self->chunks.repeats) || strata_auto_growth_has_two_pools(self))
        return STRATA_AUTO_GROWTH_GENERAL;
    return self->by_address ? STRATA_AUTO_GROWTH_PLAIN_BY_ADDRESS : STRATA_AUTO_GROWTH_PLAIN;
}

/* Returns the pool that a request of `rounded` bytes searches first, and grows. */
static inline uint32_t strata_auto_growth_pool_for(const auto_growth_t *self, uint64_t rounded) {
    return rounded > self->first_up_to;
}

/* ---- the index of free blocks ----
 *
 * `by_address` is self->by_address and `pool` the block's. A caller that passes constants lets the compiler drop the
 * other branch. */

static inline void strata_auto_growth_insert(auto_growth_t *self, uint32_t slot, bool by_address, uint32_t pool) {
    if (by_address) strata_tree_insert(&self->pools[pool].tree, slab_of(self), slot);
    else strata_bins_insert(&self->pools[pool].bins, slab_of(self), slot);
}

static inline void strata_auto_growth_remove(auto_growth_t *self, uint32_t slot, bool by_address, uint32_t pool) {
    if (by_address) strata_tree_remove(&self->pools[pool].tree, slab_of(self), slot);
    else strata_bins_remove(&self->pools[pool].bins, slab_of(self), slot);
}

/* ---- functions under the stack's lock ---- */

/* The `growth_size` and `grow` of the policy. With `reclaim: own`, grow gives idle chunks back first, or after
 * a refusal. */
uint64_t strata_auto_growth_size(const strata_layer_t *base, const strata_lookup_t *lookup);
strata_status_t strata_auto_growth_grow(strata_layer_t *base, strata_lookup_t *lookup, uint64_t size, strata_record_t **record);
/* Allocates the chunks that the options request before the first request. No lock is held. */
strata_status_t strata_auto_growth_preallocate(auto_growth_t *self);

/* The fast path of a hit and of its free. They use the last-freed block. */
strata_record_t *strata_auto_growth_hit(strata_layer_t *base, size_t size, const strata_stack_t *stack);
bool strata_auto_growth_quick_free(strata_layer_t *base, strata_record_t *block);
extern const strata_direct_t strata_auto_growth_direct;
/* Frees a block that counts as used, and coalesces it with its free neighbors. Returns the slot of the free
 * block that contains it. Returns 0 if its slot's generations are exhausted and no other slot is free. The
 * block then stays unused. */
uint32_t strata_auto_growth_free_block(auto_growth_t *self, strata_record_t *block);
/* Coalesces the last-freed block, so that all free blocks are in an index. */
void strata_auto_growth_flush_last_freed(auto_growth_t *self);
/* Serves a rounded request at a place. Returns NULL if that is not possible. */
strata_record_t *strata_auto_growth_serve_extent(auto_growth_t *self, const strata_extent_t *place, uint64_t rounded,
                                                 uint64_t size);
extern const strata_chunk_policy_t strata_auto_growth_policy;

/* ---- shared with auto_growth_vmm: all but the serving of a miss ---- */

strata_record_t *strata_auto_growth_hit_low(strata_layer_t *base, size_t size, const strata_stack_t *stack);
bool strata_auto_growth_quick_free_low(strata_layer_t *base, strata_record_t *block);
extern const strata_direct_t strata_auto_growth_direct_low;
/* The `search` of the policy. It misses no block that fits. During the warm-up only a block of the rounded size
 * serves. Returns E_NO_MEMORY if none fits or the slab is full. */
strata_status_t strata_auto_growth_search(strata_layer_t *base, strata_lookup_t *lookup, strata_record_t **record);
/* Serves a rounded request from a free block of one pool, whatever sizes that is for. Returns NULL if none fits or the
 * slab is full. */
strata_record_t *strata_auto_growth_serve_from_pool(auto_growth_t *self, uint64_t rounded, uint64_t size, uint32_t pool);
/* Sets up two pools of blocks of `alignment` in `any` order, one up to `first_up_to` bytes and one for larger
 * blocks. Must be called after strata_chunks_init(). */
void strata_auto_growth_init_low(auto_growth_t *self, uint64_t alignment, uint64_t first_up_to);
strata_record_t *strata_auto_growth_serve_at(strata_layer_t *base, const strata_block_t *at, size_t requested,
                                             const strata_stack_t *stack);
uint64_t strata_auto_growth_idle_bytes(strata_layer_t *base);
void strata_auto_growth_walk(strata_layer_t *base, strata_walk_fn visit, void *context);

/* Checks that each chunk is filled by its blocks, and that the sums and the indexes are right. Runs under the
 * lock. Fails with E_CORRUPT. */
strata_status_t strata_auto_growth_validate(strata_layer_t *base);

#endif
