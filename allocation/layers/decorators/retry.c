/* retry: recovers from out of memory. If the layers below refuse a request for lack of memory, it polls,
 * waits, releases idle chunks, and calls the program's callbacks. After each step that gave memory it tries
 * the layers below again (docs/contracts.md §3). */
#include "allocation/domain/layer.h"
#include "allocation/options/option.h"
#include "allocation/reclaim/recovery.h"

static const strata_option_row_t options[] = {
    {"timeout", STRATA_OPTION_TIME, offsetof(strata_reclaim_t, timeout), "10s", 0, 0, NULL,
     "max wait of a request while memory can still become free; 0 to never wait (with `steps: all` the ladder runs once)"},
    {"wait_first", STRATA_OPTION_BOOL, offsetof(strata_reclaim_t, wait_first), "false", 0, 0, NULL,
     "wait for pending frees that could serve the request before releasing idle chunks"},
    {"patience", STRATA_OPTION_BOOL, offsetof(strata_reclaim_t, patience), "false", 0, 0, NULL,
     "before growing a cache, wait for freed memory that the GPU still uses, if the GPU loses no time"},
    {"depth", STRATA_OPTION_COUNT, offsetof(strata_reclaim_t, depth), "2", 1, 1000, NULL,
     "patience: min blocks of the request's size that must be pending on its stream before it waits for one"},
    {"deepest", STRATA_OPTION_COUNT, offsetof(strata_reclaim_t, deepest), "8", 1, 1000, NULL,
     "patience: max of `depth`, which grows by one after each wait that may have drained the stream, from the second within "
     "a second on"},
    {"slack", STRATA_OPTION_FRACTION, offsetof(strata_reclaim_t, slack), "0.02", 0, 10000000, NULL,
     "patience: growth up to (1 + slack) x peak requested bytes never waits"},
    {"steps", STRATA_OPTION_CHOICE, offsetof(strata_reclaim_t, steps), "all", 0, 0, "all|wait",
     "`all`: the whole ladder; `wait`: only wait for frees and retry, as TensorFlow's AllocatorRetry, with nothing given back"},
    {0},
};

static const strata_option_dependency_t dependencies[] = {{"depth", "patience", "true"},
                                                          {"deepest", "patience", "true"},
                                                          {"slack", "patience", "true"},
                                                          {"wait_first", "steps", "all"},
                                                          {0}};

static strata_status_t check(const void *filled, strata_place_kind_t place, const char **option) {
    (void)place;
    return strata_option_check_dependencies(options, dependencies, filled, option);
}

static strata_status_t allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_outcome_t *outcome = strata_outcome_of(request);
    const strata_reclaim_t *around = outcome ? outcome->reclaim : NULL;
    if (outcome) outcome->reclaim = self->options;
    strata_status_t status = strata_below_allocate(self, request, record);
    if (status == STRATA_E_NO_MEMORY) status = strata_reclaim_for(self->below[0], self->options, request, record);
    if (outcome) outcome->reclaim = around;
    return status;
}

const strata_layer_type_t strata_retry_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "retry",
    .doc = "retries requests that fail for memory: it polls, waits, releases idle chunks, asks the program and waits for "
           "frees. `out_of_memory:` beside a stack is the same layer",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_NONE,
    .gives = STRATA_TRAIT_WAITS,
    .passes = ~0u,
    .idle = true,
    .state_size = sizeof(strata_layer_t),
    .options_size = sizeof(strata_reclaim_t),
    .options = options,
    .create = strata_layer_create_nothing,
    .destroy = strata_layer_destroy_nothing,
    .allocate = allocate,
    .free = strata_layer_free_below,
    .check = check,
};
