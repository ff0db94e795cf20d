/* For which stack a ladder is climbed, and what the thread knows of it afterwards. */
#include "allocation/reclaim/ladder.h"
#include "allocation/stack/layer.h"
#include "platform/arguments.h"
#include "platform/ranges/ranges.h"

/* ---- what was given: the thread's last request ---- */

static _Thread_local strata_climbed_t last;

strata_climbed_t strata_ladder_last(void) { return last; }

void strata_ladder_restore(const strata_climbed_t *climbed) { last = *climbed; }

void strata_ladder_begin(uint64_t given_bytes) { last = (strata_climbed_t){.given_before = given_bytes}; }

void strata_ladder_note(strata_climbed_t climbed) {
    climbed.given_before = last.given_before;
    climbed.own = last.own;
    climbed.own_gave = last.own_gave;
    last = climbed;
}

void strata_layer_has_reclaimed(const strata_layer_t *self) {
    STRATA_REFUSE_NULL_AS(self, "self", );
    last.own = self;
    last.own_gave = atomic_load(&self->domain->given_bytes) - last.given_before;
}

/* ---- one more try ---- */

typedef struct attempt {
    strata_layer_t *first;
    const strata_request_t *request;
    strata_record_t **record;
} attempt_t;

/* Nobody else climbs meanwhile, nor waits instead of growing. */
static strata_status_t try_again(void *context, uint32_t extra_flags) {
    const attempt_t *attempt = context;
    strata_request_t request = *attempt->request;
    request.flags |= extra_flags | STRATA_NO_RETRY;
    return strata_layer_allocate(attempt->first, &request, attempt->record);
}

/* ---- whether there is anything to climb for ---- */

/* A source of handles keeps nothing but what the device refused to take back. */
static bool keeps_or_defers(const strata_group_t *group, const strata_layer_t *but) {
    for (uint32_t n = 1; n <= group->plan->count; n++) {
        const strata_layer_type_t *type = group->plan->nodes[n].type;
        bool same = group == but->stack->group && n == but->number;
        bool keeps = type->release && !(type->gives & STRATA_TRAIT_HANDLE_SOURCE);
        if (!same && (keeps || type->poll)) return true;
    }
    return false;
}

/* Whether a layer's own steps have left nothing that a ladder could find: no other layer of the domain keeps or defers anything. */
static bool is_all_reclaimed(strata_domain_t *domain, const strata_layer_t *own) {
    if (!own || strata_sent_has_limbo(&domain->sent)) return false;
    for (strata_group_t *group = NULL; (group = strata_domain_next_group(domain, group)) != NULL;)
        if (keeps_or_defers(group, own)) return false;
    return true;
}

static bool has_a_ladder(const strata_layer_t *first, const strata_request_t *request) {
    const strata_plan_node_t *node = &first->stack->group->plan->nodes[first->number];
    bool forbidden = request->flags & (STRATA_NO_RETRY | STRATA_NO_GROW);
    if (!node->climbs || forbidden || request->call->purpose == STRATA_FOR_CHUNK) return false;
    if (node->reclaim) return node->reclaim->steps == STRATA_RECLAIM_ALL || node->reclaim->timeout > 0;
    return !last.climbed && !is_all_reclaimed(first->domain, last.own);
}

strata_status_t strata_reclaim_for(strata_layer_t *first, const strata_request_t *request, strata_record_t **record) {
    static const strata_reclaim_t once = {.timeout = 0};
    if (!has_a_ladder(first, request)) return STRATA_E_NO_MEMORY;
    const strata_reclaim_t *says = first->stack->group->plan->nodes[first->number].reclaim;
    attempt_t attempt = {.first = first, .request = request, .record = record};
    strata_ladder_t ladder = {.stack = request->call->stack,
                              .size = request->size,
                              .says = says ? says : &once,
                              .try_again = try_again,
                              .context = &attempt};
    strata_range_begin(STRATA_RANGE_out_of_memory, request->size);
    strata_status_t status = strata_ladder_climb(&ladder);
    strata_range_end();
    return status;
}
