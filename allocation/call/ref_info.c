#include "allocation/call/ref_info.h"

#include "allocation/domain/domain.h"

void strata_ref_info_of(strata_ref_t ref, strata_ref_info_t *info) {
    *info = (strata_ref_info_t){.stack_is_open = false};
    strata_stack_t *home = strata_stack_of(strata_ref_home(ref));
    uint32_t slot = strata_ref_slot(ref), generation = strata_ref_generation(ref);
    if (!home) return;
    strata_stack_lock_own(home);
    if (home->open) {
        *info = (strata_ref_info_t){.stack_is_open = true,
                                    .facade = home->facade,
                                    .place = home->domain->place,
                                    .stream = home->stream,
                                    .owned = !home->ownerless && !home->is_shared,
                                    .orphan = home->forgotten.orphan};
    }
    if (home->open && slot != 0 && slot < home->slab.used) {
        const strata_record_t *record = strata_slab_record(&home->slab, slot);
        info->live = record->generation == generation && record->state == STRATA_RECORD_LIVE;
        info->freed = generation >= home->slab.first_generation && generation < record->generation;
        info->deferred = record->generation == generation + 1 && record->state == STRATA_RECORD_DEFERRED;
        if (info->live) info->ptr = record->ptr;
        if (info->live) info->size = record->size;
        const strata_record_notes_t *notes = strata_record_notes_find(home, slot, generation);
        if (notes) info->note = notes->note;
    }
    strata_unlock(&home->lock);
}
