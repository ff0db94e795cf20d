#include "allocation/mechanism/buddy.h"

#include "platform/arithmetic.h"

void strata_buddy_init(strata_buddy_t *buddy, uint64_t unit, uint64_t header) {
    *buddy = (strata_buddy_t){.unit = unit, .header = header};
}

bool strata_buddy_round(const strata_buddy_t *buddy, uint64_t size, uint64_t *rounded) {
    uint64_t sum;
    return strata_add(size, buddy->header, &sum) && strata_round_up(sum, buddy->unit, rounded);
}

uint32_t strata_buddy_find(const strata_buddy_t *buddy, const strata_slab_t *slab, uint64_t rounded) {
    return strata_tree_find(&buddy->idle, slab, rounded);
}

bool strata_buddy_allocate(strata_buddy_t *buddy, strata_slab_t *slab, uint32_t slot, uint64_t rounded) {
    strata_record_t *block = strata_slab_record(slab, slot);
    strata_tree_remove(&buddy->idle, slab, slot);
    if (block->size - rounded <= buddy->header) return true;
    uint32_t after = strata_block_list_split(slab, slot, rounded);
    if (after == 0) {
        strata_tree_insert(&buddy->idle, slab, slot);
        return false;
    }
    strata_mark(strata_slab_record(slab, after), strata_mark_count(block), strata_mark_stream(block));
    strata_tree_insert(&buddy->idle, slab, after);
    return true;
}

typedef struct freeing {
    strata_buddy_t *buddy;
    strata_slab_t *slab;
    uint64_t waited;
} freeing_t;

static void remove_free(void *owner, uint32_t slot) {
    freeing_t *freeing = owner;
    strata_tree_remove(&freeing->buddy->idle, freeing->slab, slot);
}

static void merge_marks(void *owner, uint32_t low, uint32_t high) {
    freeing_t *freeing = owner;
    strata_mark_merge(strata_slab_record(freeing->slab, low), strata_slab_record(freeing->slab, high), freeing->waited);
}

static const strata_coalesce_t coalesce = {.remove = remove_free, .on_merge = merge_marks};

uint32_t strata_buddy_free(strata_buddy_t *buddy, strata_slab_t *slab, uint32_t slot, uint64_t waited) {
    strata_record_t *block = strata_slab_record(slab, slot);
    uint32_t own = slot;
    slot = strata_block_list_coalesce(slab, slot, &(freeing_t){buddy, slab, waited}, &coalesce);
    if (slot == own && block->generation >= STRATA_GENERATION_LAST && (slot = strata_block_list_move(slab, slot)) == 0) {
        block->state = STRATA_RECORD_DEFERRED;
        return 0;
    }
    strata_slab_record(slab, slot)->state = STRATA_RECORD_FREE;
    strata_tree_insert(&buddy->idle, slab, slot);
    return slot;
}

strata_status_t strata_buddy_validate(const char *layer, const strata_buddy_t *buddy, const strata_slab_t *slab,
                                      const strata_block_list_tally_t *tally) {
    if (buddy->idle.count != tally->free_blocks || buddy->idle.bytes != tally->free_bytes)
        return strata_fail(STRATA_E_CORRUPT, 0, "%s: the index does not match the free blocks", layer);
    return strata_tree_validate(&buddy->idle, slab);
}
