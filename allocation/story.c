#include "allocation/story.h"

#include "allocation/domain.h"

/* Under the lock of `home`. */
static void tell_allocation(const strata_stack_t *home, strata_ref_t ref, strata_story_t *story) {
    uint32_t slot = strata_ref_slot(ref), generation = strata_ref_generation(ref);
    if (slot == 0 || slot >= home->slab.used) return;
    const strata_record_t *record = strata_slab_record(&home->slab, slot);
    story->live = record->generation == generation && record->state == STRATA_RECORD_LIVE;
    story->freed = generation >= home->slab.first_generation && generation < record->generation;
    story->deferred = record->generation == generation + 1 && record->state == STRATA_RECORD_DEFERRED;
    if (story->live) story->ptr = record->ptr;
    if (story->live) story->size = record->size;
    const strata_side_t *side = strata_side_noted(home, slot, generation);
    if (side) story->note = side->note;
}

void strata_story_of(strata_ref_t ref, strata_story_t *story) {
    *story = (strata_story_t){.stack_is_open = false};
    strata_stack_t *home = strata_stack_of(strata_ref_home(ref));
    if (!home) return;
    strata_lock(&home->lock);
    if (home->open) {
        *story = (strata_story_t){.stack_is_open = true, .facade = home->facade, .place = home->domain->place,
                                  .stream = home->stream, .owned = !home->ownerless && !home->trunk, .orphan = home->orphan};
        tell_allocation(home, ref, story);
    }
    strata_unlock(&home->lock);
}
