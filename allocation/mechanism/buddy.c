#include "allocation/mechanism/buddy.h"

#include "platform/arithmetic.h"

void strata_buddy_init(strata_buddy_t *buddy, uint64_t unit, uint64_t header) {
    /* The mark of several users is above `clean` from the beginning. */
    *buddy = (strata_buddy_t){.unit = unit, .header = header, .several = 1, .last = 1};
}

bool strata_buddy_round(const strata_buddy_t *buddy, uint64_t size, uint64_t *rounded) {
    uint64_t sum;
    return strata_add(size, buddy->header, &sum) && strata_round_up(sum, buddy->unit, rounded);
}

static void set_mark(strata_record_t *block, uint64_t mark) {
    block->slack = (uint32_t)(mark >> 32);
    block->borrows = (uint32_t)mark;
}

uint32_t strata_buddy_find(const strata_buddy_t *buddy, const strata_slab_t *slab, uint64_t rounded) {
    return strata_tree_find(&buddy->idle, slab, rounded);
}

bool strata_buddy_take(strata_buddy_t *buddy, strata_slab_t *slab, uint32_t slot, uint64_t rounded) {
    strata_record_t *block = strata_slab_record(slab, slot);
    uint64_t mark = strata_buddy_mark(block);
    strata_tree_remove(&buddy->idle, slab, slot);
    if (block->size - rounded <= buddy->header) return true;
    uint32_t behind = strata_pieces_cut(slab, slot, rounded);
    if (behind == 0) {
        strata_tree_insert(&buddy->idle, slab, slot);
        return false;
    }
    set_mark(strata_slab_record(slab, behind), mark);
    strata_tree_insert(&buddy->idle, slab, behind);
    return true;
}

/* Of a block made of two. */
static uint64_t merged(const strata_buddy_t *buddy, uint64_t a, uint64_t b) {
    if (a <= buddy->clean || a == b) return b;
    return b <= buddy->clean ? a : buddy->several;
}

uint32_t strata_buddy_give(strata_buddy_t *buddy, strata_slab_t *slab, uint32_t slot, uint64_t mark) {
    strata_record_t *block = strata_slab_record(slab, slot);
    uint32_t low = block->prev;
    if (strata_slab_is_idle(slab, block->next)) {
        strata_tree_remove(&buddy->idle, slab, block->next);
        mark = merged(buddy, mark, strata_buddy_mark(strata_slab_record(slab, block->next)));
        strata_pieces_join(slab, slot);
    }
    if (strata_slab_is_idle(slab, low)) {
        strata_tree_remove(&buddy->idle, slab, low);
        mark = merged(buddy, mark, strata_buddy_mark(strata_slab_record(slab, low)));
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
    set_mark(block, mark);
    block->state = STRATA_RECORD_FREE;
    strata_tree_insert(&buddy->idle, slab, slot);
    return slot;
}

static strata_status_t corrupt(const char *layer, const char *what, uint32_t slot) {
    return strata_fail(STRATA_E_CORRUPT, 0, "%s: %s (slot %u)", layer, what, slot);
}

/* In the order of the tree. */
static strata_status_t validate_marks(const char *layer, const strata_buddy_t *buddy, const strata_slab_t *slab) {
    uint64_t size = 0, ptr = 0;
    for (uint32_t slot; (slot = strata_tree_after(&buddy->idle, slab, size, ptr)) != 0;) {
        const strata_record_t *block = strata_slab_record(slab, slot);
        if (strata_buddy_mark(block) > buddy->last) return corrupt(layer, "a free block has a mark that was never made", slot);
        size = block->size;
        ptr = block->ptr;
    }
    return STRATA_OK;
}

strata_status_t strata_buddy_validate(const char *layer, const strata_buddy_t *buddy, const strata_slab_t *slab,
                                      const strata_pieces_tally_t *tally) {
    if (buddy->clean > buddy->last || buddy->several > buddy->last) return corrupt(layer, "the order of marks is wrong", 0);
    if (buddy->idle.count != tally->free_blocks || buddy->idle.bytes != tally->free_bytes)
        return corrupt(layer, "the index does not have the free blocks", 0);
    strata_status_t status = strata_tree_validate(&buddy->idle, slab);
    return status == STRATA_OK ? validate_marks(layer, buddy, slab) : status;
}
