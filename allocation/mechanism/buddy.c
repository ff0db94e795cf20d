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

bool strata_buddy_take(strata_buddy_t *buddy, strata_slab_t *slab, uint32_t slot, uint64_t rounded) {
    strata_record_t *block = strata_slab_record(slab, slot);
    strata_tree_remove(&buddy->idle, slab, slot);
    if (block->size - rounded <= buddy->header) return true;
    uint32_t after = strata_pieces_cut(slab, slot, rounded);
    if (after == 0) {
        strata_tree_insert(&buddy->idle, slab, slot);
        return false;
    }
    strata_mark(strata_slab_record(slab, after), strata_mark_count(block), strata_mark_stream(block));
    strata_tree_insert(&buddy->idle, slab, after);
    return true;
}

uint32_t strata_buddy_give(strata_buddy_t *buddy, strata_slab_t *slab, uint32_t slot, uint64_t waited) {
    strata_record_t *block = strata_slab_record(slab, slot);
    uint32_t low = block->prev;
    if (strata_slab_is_idle(slab, block->next)) {
        strata_tree_remove(&buddy->idle, slab, block->next);
        strata_mark_merge(block, strata_slab_record(slab, block->next), waited);
        strata_pieces_join(slab, slot);
    }
    if (strata_slab_is_idle(slab, low)) {
        strata_tree_remove(&buddy->idle, slab, low);
        strata_mark_merge(strata_slab_record(slab, low), block, waited);
        strata_pieces_join(slab, low);
        slot = low;
    } else if (block->generation >= STRATA_GENERATION_LAST) {
        uint32_t fresh = strata_pieces_move(slab, slot);
        if (fresh == 0) {
            block->state = STRATA_RECORD_DEFERRED;
            return 0;
        }
        slot = fresh;
    }
    block = strata_slab_record(slab, slot);
    block->state = STRATA_RECORD_FREE;
    strata_tree_insert(&buddy->idle, slab, slot);
    return slot;
}

strata_status_t strata_buddy_validate(const char *layer, const strata_buddy_t *buddy, const strata_slab_t *slab,
                                      const strata_pieces_tally_t *tally) {
    if (buddy->idle.count != tally->free_blocks || buddy->idle.bytes != tally->free_bytes)
        return strata_fail(STRATA_E_CORRUPT, 0, "%s: the index does not have the free blocks", layer);
    return strata_tree_validate(&buddy->idle, slab);
}
