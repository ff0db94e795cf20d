/* retry: climbs the domain's reclaim ladder when the layers below are out of memory, and wakes those who wait at a free. */
#include "allocation/ladder.h"
#include "allocation/layer.h"

typedef struct retry_options {
    uint64_t timeout;
    bool wait_first;
} retry_options_t;

static const strata_option_row_t options[] = {
    {"timeout", STRATA_OPTION_TIME, offsetof(retry_options_t, timeout), "10s", 0, 0, NULL,
     "how long a request may wait for memory; 0: it climbs the ladder once and does not wait"},
    {"wait_first", STRATA_OPTION_BOOL, offsetof(retry_options_t, wait_first), "false", 0, 0, NULL,
     "wait for pending frees that could serve the request before idle chunks are released"},
    {0},
};

static strata_status_t create(strata_layer_t *self) {
    (void)self;
    return STRATA_OK;
}

static void destroy(strata_layer_t *self) {
    (void)self;
}

typedef struct attempt {
    strata_layer_t *self;
    const strata_request_t *request;
    strata_record_t *record;
} attempt_t;

static strata_status_t try_below(void *context, uint32_t extra_flags) {
    attempt_t *attempt = context;
    strata_request_t request = *attempt->request;
    request.flags |= extra_flags;
    return strata_below_allocate(attempt->self, &request, &attempt->record);
}

static strata_status_t allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    const retry_options_t *o = self->options;
    attempt_t attempt = {.self = self, .request = request};
    strata_status_t status = try_below(&attempt, 0);
    if (status == STRATA_E_NO_MEMORY && !(request->flags & (STRATA_NO_RETRY | STRATA_NO_GROW))) {
        strata_ladder_t ladder = {.domain = self->domain, .stack = request->path->stack, .size = request->size,
                                  .timeout = o->timeout, .wait_first = o->wait_first, .waiter = self->attention,
                                  .try_again = try_below, .context = &attempt};
        status = strata_ladder_climb(&ladder);
    }
    if (status == STRATA_OK) *record = attempt.record;
    return status;
}

/* Below first, so that whoever wakes finds the memory there; with its last block a forgotten stream's stack, and this layer, may
 * end. The core comes here only while somebody waits, or when a layer
 * below has work at this free. */
static void free_record(strata_layer_t *self, strata_record_t *record, strata_path_t *path) {
    strata_domain_t *domain = self->domain;
    strata_below_free(record, path);
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
    .create = create,
    .destroy = destroy,
    .allocate = allocate,
    .free = free_record,
};
