/* retry: climbs the domain's reclaim ladder when the layers below are out of memory, and wakes those who wait at a free. */
#include "allocation/options/option.h"
#include "allocation/reclaim/ladder.h"
#include "allocation/stack/layer.h"

typedef struct retry_options {
    uint64_t timeout;
    uint32_t steps;
    bool wait_first;
    bool patience;
    strata_patience_t patient;
} retry_options_t;

enum { STEPS_ALL, STEPS_WAIT };

static const strata_option_row_t options[] = {
    {"timeout", STRATA_OPTION_TIME, offsetof(retry_options_t, timeout), "10s", 0, 0, NULL,
     "how long a request may wait for memory; 0: it climbs the ladder once and does not wait"},
    {"wait_first", STRATA_OPTION_BOOL, offsetof(retry_options_t, wait_first), "false", 0, 0, NULL,
     "wait for pending frees that could serve the request before idle chunks are released"},
    {"patience", STRATA_OPTION_BOOL, offsetof(retry_options_t, patience), "false", 0, 0, NULL,
     "before a cache grows, wait for memory that is freed already and only waits for the GPU, where that costs the GPU nothing"},
    {"depth", STRATA_OPTION_COUNT, offsetof(retry_options_t, patient.depth), "2", 1, 1000, NULL,
     "patience: how many blocks of the request's size its stream must have on the way before it waits for one"},
    {"slack", STRATA_OPTION_FRACTION, offsetof(retry_options_t, patient.slack), "0.02", 0, 10000000, NULL,
     "patience: growth up to (1 + slack) x the most that was requested so far never waits"},
    {"steps", STRATA_OPTION_CHOICE, offsetof(retry_options_t, steps), "all", 0, 0, "all|wait",
     "`all`: the whole ladder; `wait`: wait for frees and try again, as TensorFlow's AllocatorRetry: nothing is given back"},
    {0},
};

static const strata_option_want_t wants[] = {
    {"depth", "patience", "true"}, {"slack", "patience", "true"}, {"wait_first", "steps", "all"}, {0}};

static strata_status_t check(const void *filled, strata_place_kind_t place, const char **option) {
    (void)place;
    return strata_option_check_wants(options, wants, filled, option);
}

typedef struct attempt {
    strata_layer_t *self;
    const strata_request_t *request;
    strata_record_t *record;
} attempt_t;

static uint64_t turn_of(const strata_layer_t *self) { return UINT64_C(1) << (self->number & 63); }

static strata_status_t try_below(void *context, uint32_t extra_flags) {
    attempt_t *attempt = context;
    strata_request_t request = *attempt->request;
    request.flags |= extra_flags;
    return strata_below_allocate(attempt->self, &request, &attempt->record);
}

/* A try in which the cache may answer that growth should wait, and then the wait; growth is due when that did not help. */
static strata_status_t try_patiently(attempt_t *attempt) {
    const retry_options_t *o = attempt->self->options;
    strata_call_t *call = attempt->request->call;
    call->patience = &o->patient;
    strata_status_t status = try_below(attempt, 0);
    if (status == STRATA_E_NO_MEMORY && call->held_back) {
        strata_ladder_t ladder = {.domain = attempt->self->domain,
                                  .stack = call->stack,
                                  .size = attempt->request->size,
                                  .timeout = o->timeout,
                                  .try_again = try_below,
                                  .context = attempt};
        status = strata_ladder_be_patient(&ladder);
    }
    call->patience = NULL;
    return status == STRATA_E_NO_MEMORY && call->held_back ? try_below(attempt, 0) : status;
}

static strata_status_t climb(attempt_t *attempt) {
    strata_layer_t *self = attempt->self;
    const retry_options_t *o = self->options;
    strata_ladder_t ladder = {.domain = self->domain,
                              .stack = attempt->request->call->stack,
                              .size = attempt->request->size,
                              .timeout = o->timeout,
                              .wait_first = o->wait_first,
                              .wait_only = o->steps == STEPS_WAIT,
                              .waiter = self->attention ? self->attention : STRATA_ATTENTION_CORE,
                              .try_again = try_below,
                              .context = attempt};
    attempt->request->call->turns |= turn_of(self);
    return strata_ladder_climb(&ladder);
}

static strata_status_t allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    const retry_options_t *o = self->options;
    attempt_t attempt = {.self = self, .request = request};
    bool had_turn = (request->call->turns & turn_of(self)) != 0;
    bool has_turn = !had_turn && (o->steps == STEPS_ALL || o->timeout > 0);
    bool may_wait = !(request->flags & (STRATA_NO_RETRY | STRATA_NO_GROW));
    strata_status_t status = o->patience && may_wait && !had_turn ? try_patiently(&attempt) : try_below(&attempt, 0);
    if (status == STRATA_E_NO_MEMORY && has_turn && may_wait) status = climb(&attempt);
    else if (status == STRATA_E_NO_MEMORY && has_turn) request->call->turn_due = true;
    if (status == STRATA_OK) *record = attempt.record;
    return status;
}

/* Below first, so that whoever wakes finds the memory there; with its last block a forgotten stream's stack, and this layer, may
 * end. The core comes here only while somebody waits, or when a layer below has work at this free. */
static void free_record(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    strata_domain_t *domain = self->domain;
    strata_below_free(record, call);
    strata_domain_wake(domain);
}

const strata_layer_type_t strata_retry_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "retry",
    .doc = "on out-of-memory climbs the ladder: polls, waits, releases, asks the program, waits for frees",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_NONE,
    .gives = STRATA_TRAIT_WAITS,
    .passes = ~0u,
    .idle = true,
    .state_size = sizeof(strata_layer_t),
    .options_size = sizeof(retry_options_t),
    .options = options,
    .create = strata_layer_create_nothing,
    .destroy = strata_layer_destroy_nothing,
    .allocate = allocate,
    .free = free_record,
    .check = check,
};
