#include "allocation/mechanism/block_list.h"

#include "platform/status.h"

uint32_t strata_block_list_begin(strata_slab_t *slab, uint32_t chunk, uint64_t ptr, uint64_t size) {
    uint32_t slot = strata_slab_acquire(slab);
    if (slot == 0) return 0;
    strata_record_t *block = strata_slab_record(slab, slot);
    *block = (strata_record_t){.ptr = ptr,
                               .size = size,
                               .generation = block->generation,
                               .home = slab->home,
                               .stack = slab->home,
                               .chunk = chunk,
                               .state = STRATA_RECORD_FREE};
    return slot;
}

uint32_t strata_block_list_move(strata_slab_t *slab, uint32_t old_slot) {
    uint32_t slot = strata_slab_acquire(slab);
    if (slot == 0) return 0;
    const strata_record_t *old = strata_slab_record(slab, old_slot);
    strata_record_t *fresh = strata_slab_record(slab, slot);
    uint32_t generation = fresh->generation;
    *fresh = *old;
    fresh->generation = generation;
    strata_slab_record(slab, old->prev)->next = slot;
    strata_slab_record(slab, old->next)->prev = slot;
    strata_slab_retire(slab, old_slot);
    return slot;
}

static strata_status_t corrupt(const char *layer, const char *what, uint32_t slot) {
    return strata_fail(STRATA_E_CORRUPT, 0, "%s: %s (slot %u)", layer, what, slot);
}

static bool is_bound(const strata_slab_t *slab, uint32_t slot, uint64_t at) {
    const strata_record_t *bound = strata_slab_record(slab, slot);
    bool ends = bound->ptr == at && bound->size == 0 && (bound->prev == 0 || bound->next == 0);
    return ends && bound->state == STRATA_RECORD_DEFERRED && !strata_slab_is_idle(slab, slot);
}

strata_status_t strata_block_list_validate(const char *layer, const strata_slab_t *slab, uint32_t first, uint32_t chunk,
                                           uint64_t ptr, uint64_t size, strata_block_list_tally_t *tally) {
    uint64_t at = ptr;
    uint32_t previous = tally->bounds[0];
    bool was_free = false;
    for (uint32_t slot = first; slot != tally->bounds[1]; slot = strata_slab_record(slab, slot)->next) {
        if (slot == 0 || slot >= slab->used) return corrupt(layer, "a link leads out of the slab", previous);
        const strata_record_t *block = strata_slab_record(slab, slot);
        if (block->ptr != at) return corrupt(layer, "a block does not begin where the one before it ends", slot);
        if (block->prev != previous) return corrupt(layer, "a block's link back is wrong", slot);
        if (block->chunk != chunk) return corrupt(layer, "a block names the wrong chunk", slot);
        if (block->size == 0 || block->size > ptr + size - at) return corrupt(layer, "a block's size is wrong", slot);
        if (block->state == STRATA_RECORD_UNUSED) return corrupt(layer, "an unused slot is linked", slot);
        bool is_free = block->state == STRATA_RECORD_FREE;
        if (is_free != strata_slab_is_idle(slab, slot)) return corrupt(layer, "a block's bit and its state differ", slot);
        if (is_free && was_free && !tally->may_be_adjacent) return corrupt(layer, "two free blocks were not merged", slot);
        tally->free_bytes += is_free ? block->size : 0;
        tally->free_blocks += is_free;
        at += block->size;
        was_free = is_free;
        previous = slot;
    }
    if (at != ptr + size) return corrupt(layer, "the blocks do not fill their chunk", previous);
    bool bound = tally->bounds[1] == 0 || (is_bound(slab, tally->bounds[0], ptr) && is_bound(slab, tally->bounds[1], at) &&
                                           strata_slab_record(slab, tally->bounds[1])->prev == previous);
    return bound ? STRATA_OK : corrupt(layer, "the bounds of a chunk's blocks are wrong", tally->bounds[1]);
}
