/* Planted faults of graph pools: random programs that capture find each, by what the checker sees. A layer that passes everything
 * on plants them where it is made: in the device's calls, or in its own group of stacks. */
#include <stdio.h>

#include "allocation/domain/layer.h"
#include "allocation/graphs/graphs.h"
#include "lab/torture/campaign.h"
#include "tests/harness/test.h"

/* X(name, what is wrong) */
#define FAULT_MAP(X)                                                                                                               \
    X(NONE, "nothing")                                                                                                             \
    X(UNPINNED, "a pool is not pinned while its graph lives")                                                                      \
    X(ENDS_EARLY, "a pool ends with the program's last hold, whatever graphs there are")                                           \
    X(SERVES_OTHERS, "a pool that is begun serves streams outside its capture")

typedef enum fault {
#define FAULT_ENUM(name, what) FAULT_##name,
    FAULT_MAP(FAULT_ENUM)
#undef FAULT_ENUM
        FAULTS
} fault_t;

static const char *const whats[] = {
#define FAULT_WHAT(name, what) what,
    FAULT_MAP(FAULT_WHAT)
#undef FAULT_WHAT
};

static fault_t chosen;

/* ---- the device's calls, bent ---- */

static const strata_device_operations_t *real;

static strata_status_t on_destroy_at_once(strata_device_t *device, strata_handle_t stream, void (*call)(void *), void *context) {
    (void)device;
    (void)stream;
    call(context);
    return STRATA_OK;
}

static void bend(strata_device_t *device) {
    static strata_device_operations_t bent;
    if (device->operations == &bent) return;
    real = device->operations;
    bent = *real;
    bent.graph_on_destroy = on_destroy_at_once;
    device->operations = &bent;
}

/* ---- the layer ---- */

static strata_status_t create(strata_layer_t *self) {
    if (chosen == FAULT_ENDS_EARLY) bend(self->domain->device);
    return STRATA_OK;
}

static bool is_anybody(strata_stream_t stream, void *context) {
    const strata_graph_pool_t *pool = context;
    strata_capture_status_t capture = STRATA_CAPTURE_NONE;
    uint64_t id;
    (void)strata_device_capture_status(pool->group->domain->device, stream, &capture, &id);
    return stream == pool->window.stream || capture == STRATA_CAPTURE_NONE;
}

static void open_to_all(strata_graph_pool_t *pool) {
    strata_captures_t *captures = pool->group->domain->captures;
    strata_lock(&captures->lock);
    /* Streams of its capture are known by that, and no longer by their window. */
    if (pool->capture) pool->window.filter = is_anybody;
    pool->window.context = pool;
    strata_unlock(&captures->lock);
}

static strata_status_t allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    if (chosen == FAULT_UNPINNED) atomic_store(&self->stack->group->pinned, false);
    if (chosen == FAULT_SERVES_OTHERS && self->stack->group->graph) open_to_all(self->stack->group->graph);
    return strata_below_allocate(self, request, record);
}

static const strata_layer_type_t planted = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "test_plants",
    .doc = "plants faults of graph pools",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_NONE,
    .passes = ~0u,
    .state_size = sizeof(strata_layer_t),
    .create = create,
    .destroy = strata_layer_destroy_nothing,
    .allocate = allocate,
    .free = strata_layer_free_below,
};

/* ---- the search ---- */

enum { MOST = 1500, WITHOUT = 100 };

#define STACK  "stack: [stream_safe, test_plants, auto_growth: {chunk_size: 2MiB, free_idle_chunk: true}, system]\n"
#define SHARED "stack: [stream_safe, test_plants, caching: {streams: ignored}, system]\n" /* by all streams of a pool */

typedef struct search {
    torture_strategies_t list;
    torture_verdict_t verdict;
} search_t;

static bool play(void *context, const torture_run_t *run, const torture_program_t *well_formed) {
    search_t *search = context;
    torture_play(well_formed, search->list.all[run->strategy].strategy, false, run->mode, &search->verdict);
    return search->verdict.fault == TORTURE_FAULT_NONE;
}

/* Programs until one fails; 0: none of `most` does. */
static uint64_t programs_until_found(search_t *search, fault_t fault, uint64_t most) {
    const strata_layer_type_t *type = &planted;
    torture_campaign_t campaign = {.strategies = &search->list, .seed = 3};
    uint64_t found = 0;
    chosen = fault;
    EXPECT_OK(strata_layers_register(&type, 1, true));
    EXPECT_OK(torture_add_text(&search->list, "planted", fault == FAULT_SERVES_OTHERS ? SHARED : STACK));
    for (uint64_t i = 0; i < most && !found; i++) {
        torture_each_run(&campaign, i, play, search);
        if (search->verdict.fault) found = i + 1;
    }
    torture_strategies_delete(&search->list);
    return found;
}

TEST(torture_graphs, every_planted_fault_of_pools_is_a_hazard) {
    for (int fault = FAULT_NONE + 1; fault < FAULTS; fault++) {
        static search_t search;
        search = (search_t){.list = {0}};
        uint64_t found = programs_until_found(&search, (fault_t)fault, MOST);
        printf("%3llu programs: %s: %s\n", (unsigned long long)found, whats[fault], torture_fault_text(search.verdict.fault));
        if (found == 0) FAIL_TEST("not found: %s", whats[fault]);
        else EXPECT_EQ(search.verdict.fault, TORTURE_FAULT_HAZARD);
        if (search.verdict.fault != TORTURE_FAULT_HAZARD) printf("%s\n", search.verdict.text);
    }
}

TEST(torture_graphs, without_a_fault_nothing_is_found) {
    static search_t search;
    EXPECT_EQ(programs_until_found(&search, FAULT_NONE, WITHOUT), 0);
}
