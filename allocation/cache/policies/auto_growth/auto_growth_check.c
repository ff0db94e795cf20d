/* Validates the whole structure of auto_growth, by the rules that its files state. */
#include "allocation/cache/policies/auto_growth/auto_growth_state.h"

static strata_status_t corrupt(const char *what, uint32_t slot) {
    return strata_fail(STRATA_E_CORRUPT, 0, "auto_growth: %s (slot %u)", what, slot);
}

typedef struct tally {
    uint64_t bytes;
    uint32_t blocks;
} tally_t;

/* Sums the free blocks of each pool. All blocks of a chunk must have the same pool. */
static strata_status_t sum_pools(auto_growth_t *self, tally_t free[STRATA_AUTO_GROWTH_POOLS]) {
    STRATA_EACH_CHUNK(&self->chunks, number) {
        uint32_t first = strata_chunk_at(&self->chunks, number)->first, pool = strata_slab_record(slab_of(self), first)->pool;
        if (pool >= strata_auto_growth_pools(self)) return corrupt("a chunk names an unknown pool", first);
        STRATA_EACH_BLOCK(&self->chunks, number, slot) {
            const strata_record_t *block = strata_slab_record(slab_of(self), slot);
            if (block->pool != pool) return corrupt("a block and its chunk name different pools", slot);
            free[pool].bytes += block->state == STRATA_RECORD_FREE ? block->size : 0;
            free[pool].blocks += block->state == STRATA_RECORD_FREE;
        }
    }
    return STRATA_OK;
}

/* Checks the fields that the fast path reads instead of the options. */
static strata_status_t validate_rules(const auto_growth_t *self) {
    const auto_growth_options_t *o = strata_auto_growth_options(self);
    bool two_pools = o->small_pool_size > 0 || o->split_pools;
    bool warming_up = self->steps < o->warm_up_steps;
    if (two_pools != strata_auto_growth_has_two_pools(self) || self->spills != o->split_pools)
        return corrupt("the chunks are not divided as the options require", 0);
    if (strata_repeats_are_on(&self->chunks.repeats) != o->stable_addresses)
        return corrupt("addresses are not kept as the options require", 0);
    if (self->warming_up != warming_up) return corrupt("the warm-up state does not match the steps", 0);
    if (self->hit_mode != strata_auto_growth_hit_mode(self)) return corrupt("the hit path is wrong", 0);
    return STRATA_OK;
}

static strata_status_t validate_pool(auto_growth_t *self, uint32_t number, const tally_t *free) {
    auto_growth_pool_t *pool = &self->pools[number];
    if (!self->by_address) return strata_bins_validate(&pool->bins, slab_of(self), free->blocks, free->bytes);
    if (free->blocks != pool->tree.count || free->bytes != pool->tree.bytes) return corrupt("the sum of a tree is wrong", 0);
    return strata_tree_validate(&pool->tree, slab_of(self));
}

strata_status_t strata_auto_growth_validate(strata_layer_t *base) {
    auto_growth_t *self = (auto_growth_t *)base;
    strata_block_list_tally_t pieces = {0};
    tally_t free[STRATA_AUTO_GROWTH_POOLS] = {0};
    strata_status_t status = validate_rules(self);
    if (status == STRATA_OK) status = strata_chunks_validate(&self->chunks, &pieces);
    if (status == STRATA_OK) status = sum_pools(self, free);
    for (uint32_t pool = 0; pool < strata_auto_growth_pools(self) && status == STRATA_OK; pool++)
        status = validate_pool(self, pool, &free[pool]);
    if (status != STRATA_OK) return status;
    return pieces.free_bytes == strata_auto_growth_idle(self) ? STRATA_OK : corrupt("the sum of free blocks is wrong", 0);
}
