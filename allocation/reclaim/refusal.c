#include "allocation/reclaim/refusal.h"

#include "allocation/stack/layer.h"

static _Thread_local strata_refusal_t last;

void strata_refusal_begin(void) { last = (strata_refusal_t){.by = STRATA_REFUSED_BY_OTHERS}; }

void strata_refusal_note(const strata_refusal_t *refusal) { last = *refusal; }

strata_refusal_t strata_refusal_last(void) { return last; }

void strata_refusal_of_piece(uint64_t whole, uint64_t got) {
    if (last.by != STRATA_REFUSED_BY_OTHERS) last.asked = last.by == STRATA_REFUSED_BY_DEVICE ? whole : whole - got;
}

strata_status_t strata_refuse_by_bound(const strata_layer_t *layer, const char *option, uint64_t asked, uint64_t used,
                                       uint64_t limit) {
    last = (strata_refusal_t){
        .by = STRATA_REFUSED_BY_BOUND, .asked = asked, .used = used, .limit = limit, .layer = layer->number, .option = option};
    return strata_fail(STRATA_E_NO_MEMORY, 0, "%s.%s: %llu bytes beside %llu are above the %llu allowed", layer->type->name, option,
                       (unsigned long long)asked, (unsigned long long)used, (unsigned long long)limit);
}
