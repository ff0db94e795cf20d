/* What a checked run finds after its last row: layers that keep what is not theirs, memory that no device got back. */
#include <stdio.h>

#include "allocation/domain/layer.h"
#include "allocation/stack/stack.h"
#include "config/config.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/replay/support/helpers.h"

/* ---- a router with a fault ---- */

typedef enum fault { SOUND, TO_ANOTHER_STACK, TO_NOBODY } fault_t;
static fault_t fault; /* of the frees */

static strata_status_t lost_allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    return strata_layer_allocate(self->below[request->size > 1000], request, record);
}

static void lost_free(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    if (fault == TO_NOBODY) return;
    if (fault == SOUND || record->size > 1000) {
        strata_below_free(record, call);
        return;
    }
    strata_layer_t *other = self->below[1]->below[0]; /* the cache below the added stream_safe */
    other->type->free(other, record, call);
}

static strata_status_t create_second(strata_layer_t *self) { return self->below_count == 2 ? STRATA_OK : STRATA_E_INVALID; }

static const strata_layer_type_t lost_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "test_lost",
    .doc = "loses its way back",
    .role = STRATA_ROUTER,
    .scope = STRATA_SCOPE_STREAM,
    .passes = ~(uint32_t)STRATA_TRAIT_ANY_MEMORY,
    .guarded = true,
    .state_size = sizeof(strata_layer_t),
    .create = create_second,
    .destroy = strata_layer_destroy_nothing,
    .allocate = lost_allocate,
    .free = lost_free,
};

static strata_run_result_t run_lost(const char *branch, fault_t how, bool check) {
    static const char rows[] = COLUMNS "alloc,1,512,0,0\nalloc,2,2048,0,1\nfree,1,,0,2\nalloc,3,512,0,3\nfree,2,,0,4\n";
    const strata_layer_type_t *type = &lost_type;
    char text[300];
    EXPECT_OK(strata_layers_register(&type, 1, true));
    snprintf(text, sizeof text, "stack: [test_lost: {stacks: [[%s], [%s]]}]\n", branch, branch);
    fault = how;
    return replay_text(rows, text, (strata_run_options_t){.check = check});
}

TEST(run_ended, a_router_that_frees_to_the_wrong_stack_is_found) {
    strata_run_result_t r = run_lost("auto_growth, system", TO_ANOTHER_STACK, true);
    EXPECT_EQ(r.figures.failed_operations, 0);
    EXPECT_CONTAINS(r.ended.unsound, "auto_growth");
    EXPECT_STREQ(run_lost("auto_growth, system", TO_ANOTHER_STACK, false).ended.unsound, ""); /* nobody asked */
}

/* Three requests of 3,072 bytes in all, each got for itself; a block that its layer does not free is neither live nor idle. */
TEST(run_ended, memory_that_never_went_back_is_told_by_place) {
    strata_run_result_t r = run_lost("system", TO_NOBODY, true);
    EXPECT_EQ(r.figures.failed_operations, 0);
    EXPECT_STREQ(r.ended.leaked, "3072 lost bytes of gpu:0, neither live nor cached");
    EXPECT_STREQ(run_lost("system", TO_NOBODY, false).ended.leaked, "");
}

/* Every preset gives back all that nobody has, but for what it keeps for the next request. */
TEST(run_ended, no_preset_loses_memory) {
    static const char *const traces[] = {"alexnet-training.csv.gz", "tinytorch-mnist.csv"};
    const char *preset;
    for (size_t k = 0; k < sizeof traces / sizeof *traces; k++) {
        strata_trace_t *trace CLOSED_BY(trace_cleanup) = project_trace(traces[k]);
        for (size_t i = 0; (preset = strata_preset_name(i)) != NULL; i++) {
            strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = strategy_of(preset, NULL);
            strata_run_options_t options = {.timeline = {.lag_ns = LAG}, .check = true};
            strata_run_result_t result = replay_with(trace, strategy, options);
            if (*result.ended.unsound || *result.ended.leaked || *result.ended.close_error)
                FAIL_TEST("%s under %s: %s%s%s", traces[k], preset, result.ended.unsound, result.ended.leaked,
                          result.ended.close_error);
        }
    }
}

TEST(run_ended, what_is_sound_tells_nothing) {
    static const char *const branches[] = {"auto_growth, system", "system", "caching, system"};
    for (size_t i = 0; i < sizeof branches / sizeof *branches; i++) {
        strata_run_result_t r = run_lost(branches[i], SOUND, true); /* id 3 is live at the end: that is the program's own matter */
        EXPECT_EQ(r.figures.live_at_end, 1);
        EXPECT_STREQ(r.ended.unsound, "");
        EXPECT_STREQ(r.ended.leaked, "");
        EXPECT_STREQ(r.ended.close_error, "");
    }
}
