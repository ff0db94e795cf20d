/* Decides which requests are recovered after a refusal, and how they are tried again. */
#include "allocation/domain/layer.h"
#include "allocation/reclaim/recovery.h"
#include "platform/arguments.h"
#include "platform/ranges/ranges.h"

typedef struct attempt {
    strata_layer_t *first;
    const strata_request_t *request;
    strata_record_t **record;
} attempt_t;

/* The flags keep the layers below from recovering, and from waiting instead of growing. */
static strata_status_t try_again(void *context, uint32_t extra_flags) {
    const attempt_t *attempt = context;
    strata_request_t request = *attempt->request;
    request.flags |= extra_flags | STRATA_NO_RETRY;
    return strata_layer_allocate(attempt->first, &request, attempt->record);
}

static strata_status_t recover(strata_layer_t *first, const strata_reclaim_t *config, const strata_request_t *request,
                               strata_record_t **record) {
    strata_outcome_t *outcome = strata_outcome_of(request);
    attempt_t attempt = {.first = first, .request = request, .record = record};
    strata_recovery_t recovery = {.stack = request->call->stack,
                                  .size = request->size,
                                  .config = config,
                                  .try_again = try_again,
                                  .context = &attempt,
                                  .given = outcome ? &outcome->recovery : NULL};
    strata_range_begin(STRATA_RANGE_out_of_memory, request->size);
    strata_status_t status = strata_recovery_run(&recovery);
    strata_range_end();
    return status;
}

/* Other threads wait for the chunk that a cache requested, so such a request does not wait. If a request is larger than
 * its device, all idle memory would be released and nothing gained. */
static bool is_forbidden(const strata_request_t *request) {
    return request->flags & (STRATA_NO_RETRY | STRATA_NO_GROW) || request->call->purpose == STRATA_FOR_CHUNK ||
           strata_is_refused_for_good(strata_outcome_of(request));
}

strata_status_t strata_reclaim_for(strata_layer_t *first, const strata_reclaim_t *config, const strata_request_t *request,
                                   strata_record_t **record) {
    strata_outcome_t *outcome = strata_outcome_of(request);
    if (is_forbidden(request)) return STRATA_E_NO_MEMORY;
    if (outcome) outcome->decided = true;
    bool does_nothing = config->steps == STRATA_RECLAIM_WAIT && config->timeout == 0;
    return does_nothing ? STRATA_E_NO_MEMORY : recover(first, config, request, record);
}

/* Returns whether a layer's own steps have left nothing for a recovery to find: no other layer of the
 * domain keeps or defers memory. A source of handles keeps only memory that the device refused to take back. A layer
 * that the builder added defers frees only in captures. */
static bool is_all_reclaimed(strata_domain_t *domain, const strata_layer_t *own) {
    if (!own || strata_sent_has_limbo(&domain->sent)) return false;
    for (strata_group_t *group = NULL; (group = strata_domain_next_group(domain, group)) != NULL;) {
        for (uint32_t n = 1; n <= group->plan->count; n++) {
            const strata_layer_type_t *type = group->plan->nodes[n].type;
            bool same = group->plan->nodes[n].number == 0 || (group == own->stack->group && n == own->number);
            bool keeps = type->release && !(type->gives & STRATA_TRAIT_HANDLE_SOURCE);
            if (!same && (keeps || type->poll)) return false;
        }
    }
    return true;
}

strata_status_t strata_reclaim_once(strata_layer_t *top, const strata_request_t *request, strata_record_t **record) {
    static const strata_reclaim_t once = {.timeout = 0};
    const strata_outcome_t *outcome = request->outcome;
    if (is_forbidden(request) || outcome->decided || is_all_reclaimed(top->domain, outcome->own)) return STRATA_E_NO_MEMORY;
    return recover(top, &once, request, record);
}

void strata_layer_note_reclaimed(const strata_layer_t *self, const strata_request_t *request) {
    STRATA_REFUSE_NULL_AS(self, "self", );
    STRATA_REFUSE_NULL_AS(request, "request", );
    strata_outcome_t *outcome = strata_outcome_of(request);
    if (!outcome) return;
    outcome->own = self;
    outcome->own_released = atomic_load(&self->domain->returned_bytes) - outcome->returned_before;
}
