/* The regions of bfc: how blocks coalesce in them, and which of them may go back. */
#include "allocation/cache/policies/bfc/bfc_state.h"

#define HOT  inline __attribute__((always_inline))
#define COLD __attribute__((noinline))

/* ---- blocks ---- */

static bool is_safe_by_frontier(const bfc_t *self, const strata_record_t *block) {
    return bfc_stamp_of(block) != 0 || !strata_last_users_uses(&self->last, block);
}

static HOT bool may_merge(void *owner, uint32_t low, uint32_t high) {
    const bfc_t *self = owner;
    return bfc_stamp_of(bfc_block(self, low)) == 0 && bfc_stamp_of(bfc_block(self, high)) == 0;
}

/* A block without a count may join one with a count only if the host need not wait for its users. */
static HOT bool may_merge_counted(void *owner, uint32_t low, uint32_t high) {
    const bfc_t *self = owner;
    return may_merge(owner, low, high) ||
           (is_safe_by_frontier(self, bfc_block(self, low)) && is_safe_by_frontier(self, bfc_block(self, high)));
}

static HOT void remove_free(void *owner, uint32_t slot) { strata_bfc_unindex(owner, slot); }

static HOT void merge_notes(void *owner, uint32_t low, uint32_t high) {
    bfc_t *self = owner;
    strata_mark_merge(bfc_block(self, low), bfc_block(self, high), self->last.waited);
    strata_bfc_merge_stamps(self, bfc_block(self, low), bfc_block(self, high));
    strata_chunks_pass_last(&self->chunks, low, high);
}

static const strata_coalesce_t coalesce = {.remove = remove_free, .may_merge = may_merge, .on_merge = merge_notes};
static const strata_coalesce_t coalesce_counted = {.remove = remove_free, .may_merge = may_merge_counted, .on_merge = merge_notes};

static COLD uint32_t coalesce_all(bfc_t *self, uint32_t slot) {
    return strata_block_list_coalesce(bfc_slab(self), slot, self, &coalesce_counted);
}

uint32_t strata_bfc_coalesce(bfc_t *self, uint32_t slot, bool all) {
    return all ? coalesce_all(self, slot) : strata_block_list_coalesce(bfc_slab(self), slot, self, &coalesce);
}

void strata_bfc_free_block(bfc_t *self, strata_record_t *block) {
    uint32_t slot = strata_slab_slot(bfc_slab(self), block);
    if (block->generation >= STRATA_GENERATION_LAST) {
        slot = strata_chunks_move_block(&self->chunks, slot);
        if (slot == 0) {
            /* The block stays unused. It still counts as live, so its region stays until the cache is
             * destroyed. */
            block->state = STRATA_RECORD_DEFERRED;
            return;
        }
        block = bfc_block(self, slot);
    }
    self->used_bytes -= block->size;
    bfc_region_at(self, block->chunk)->live--;
    strata_last_users_mark(&self->last, block, block->user);
    block->free_word = 0;
    block->state = STRATA_RECORD_FREE;
    if (self->history) strata_bfc_note(self, block, false);
    if (bfc_options_of(self)->timestamps && strata_bfc_stamp(self, block)) strata_bfc_index(self, slot);
    else strata_bfc_index(self, strata_bfc_coalesce(self, slot, false));
}

/* Memory that was allocated in stream order may serve another stream only after a wait. */
uint32_t strata_bfc_mark_region(bfc_t *self, uint32_t region, uint32_t user) {
    uint32_t slot = strata_chunk_at(&self->chunks, region)->last;
    strata_mark(bfc_block(self, slot), self->chunks.ordered ? ++self->last.frees : 0, user);
    return slot;
}

/* ---- giving regions back ---- */

uint64_t strata_bfc_releasable(const bfc_t *self) {
    uint64_t bytes = 0;
    STRATA_EACH_CHUNK(&self->chunks, node)
        if (bfc_region_at(self, node)->live == 0) bytes += bfc_region_at(self, node)->chunk.size;
    return bytes;
}

/* The free blocks may be several, because counts keep some of them separate. */
static bool may_release(const strata_layer_t *base, const strata_chunk_t *chunk) {
    return ((const bfc_t *)base)->captures == 0 && ((const bfc_region_t *)chunk)->live == 0;
}

static bool is_in_use(const strata_layer_t *base, const strata_chunk_t *chunk) {
    const bfc_t *self = (const bfc_t *)base;
    for (uint32_t slot = chunk->first; slot; slot = bfc_block(self, slot)->next)
        if (strata_last_users_uses(&self->last, bfc_block(self, slot))) return true;
    return false;
}

static void unindex_chunk(strata_layer_t *base, const strata_chunk_t *chunk) {
    bfc_t *self = (bfc_t *)base;
    for (uint32_t slot = chunk->first; slot; slot = bfc_block(self, slot)->next) {
        strata_bfc_unindex(self, slot);
        strata_bfc_unstamp(self, bfc_block(self, slot));
    }
}

static void wait_for_users(strata_layer_t *base, strata_call_t *call) {
    (void)strata_last_users_wait(&((bfc_t *)base)->last, base->domain, call);
}

/* ---- at a given address ---- */

static void index_remove(strata_layer_t *base, uint32_t slot) { strata_bfc_unindex((bfc_t *)base, slot); }

static void index_insert(strata_layer_t *base, uint32_t slot) { strata_bfc_index((bfc_t *)base, slot); }

static bool on_split(strata_layer_t *base, const strata_record_t *block, strata_record_t *rest) {
    strata_mark(rest, strata_mark_count(block), strata_mark_stream(block));
    return strata_bfc_stamp_rest((bfc_t *)base, block, rest);
}

static void on_absorb(strata_layer_t *base, strata_record_t *rest) { strata_bfc_unstamp((bfc_t *)base, rest); }

const strata_chunk_policy_t strata_bfc_policy = {.may_release = may_release,
                                                 .unindex_chunk = unindex_chunk,
                                                 .is_in_use = is_in_use,
                                                 .wait = wait_for_users,
                                                 .index_remove = index_remove,
                                                 .index_insert = index_insert,
                                                 .on_split = on_split,
                                                 .on_absorb = on_absorb};
