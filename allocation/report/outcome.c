#include "allocation/report/outcome.h"

#include "platform/status.h"

static void note(const strata_request_t *request, strata_refusal_t refusal) {
    strata_outcome_t *outcome = strata_outcome_of(request);
    if (outcome) outcome->refusal = refusal;
}

void strata_refused_by_device(const strata_request_t *request, uint64_t asked) {
    note(request, (strata_refusal_t){.by = STRATA_REFUSED_BY_DEVICE, .asked = asked});
}

void strata_refused_for_good(const strata_request_t *request, uint64_t asked) {
    note(request, (strata_refusal_t){.by = STRATA_REFUSED_BY_DEVICE, .asked = asked, .for_good = true});
}

void strata_refused_by_place(const strata_request_t *request, uint64_t asked, uint64_t used, uint64_t limit) {
    note(request, (strata_refusal_t){.by = STRATA_REFUSED_BY_PLACE, .asked = asked, .used = used, .limit = limit});
}

strata_status_t strata_refuse_by_bound(const strata_layer_t *layer, const strata_request_t *request, const char *option,
                                       uint64_t asked, uint64_t used, uint64_t limit) {
    note(
        request,
        (strata_refusal_t){
            .by = STRATA_REFUSED_BY_BOUND, .asked = asked, .used = used, .limit = limit, .layer = layer->number, .option = option});
    return strata_fail(STRATA_E_NO_MEMORY, 0, "%s.%s: requested %llu bytes with %llu in use, above the limit of %llu",
                       layer->type->name, option, (unsigned long long)asked, (unsigned long long)used, (unsigned long long)limit);
}

void strata_refused_piece(const strata_request_t *request, uint64_t whole, uint64_t got) {
    strata_outcome_t *outcome = strata_outcome_of(request);
    if (!outcome || outcome->refusal.by == STRATA_REFUSED_BY_OTHERS) return;
    outcome->refusal.asked = outcome->refusal.by == STRATA_REFUSED_BY_DEVICE ? whole : whole - got;
}
