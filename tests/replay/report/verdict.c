/* Tests the rule that orders strategies, its limits, and its sentences. */
#include "lab/replay/compare/verdict.h"

#include <stdio.h>
#include <string.h>

#include "lab/replay/compare/same.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/replay/support/helpers.h"

enum { MOST = 4 };

typedef struct given {
    const char *label;
    const char *strategy; /* NULL: same as the label */
    double end_ms;
    uint64_t used;
    uint64_t failed, needed;
} given_t;

static strata_run_result_t result_of(const given_t *given) {
    strata_figures_t figures = {.trace = "t.csv",
                                .label = given->label,
                                .strategy = given->strategy ? given->strategy : given->label,
                                .end_ms = given->end_ms,
                                .operations = 100,
                                .failed_operations = given->failed,
                                .oom_count = given->failed,
                                .capacity_bytes = 10 * GIB,
                                .peak_requested_bytes = MIB,
                                .peak_reserved_bytes = 7, /* the rule must ignore it */
                                .peak_device_used_bytes = given->used,
                                .pinned_requested_bytes = STRATA_FIGURE_NULL,
                                .pinned_reserved_bytes = STRATA_FIGURE_NULL,
                                .host_requested_bytes = STRATA_FIGURE_NULL,
                                .host_reserved_bytes = STRATA_FIGURE_NULL,
                                .smallest_device_bytes = STRATA_FIGURE_NULL};
    return (strata_run_result_t){.figures = figures, .needed_bytes = given->needed ? given->needed : STRATA_FIGURE_NULL};
}

static const strata_trace_t device_trace = {.count = 9, .lifetimes = 4, .places = 1u << STRATA_PLACE_GPU};

static strata_verdict_t verdict_of(const given_t *given, size_t count, const size_t *stands_for) {
    static strata_run_result_t results[MOST];
    strata_verdict_t verdict;
    for (size_t i = 0; i < count; i++) results[i] = result_of(&given[i]);
    strata_verdict_make(
        &(strata_verdict_subject_t){.trace = &device_trace, .results = results, .stands_for = stands_for, .count = count},
        &verdict);
    return verdict;
}

typedef struct ranking {
    const char *name;
    given_t given[MOST];
    const char *order; /* the labels, best first */
    const char *text; /* a part of the verdict */
} ranking_t;

static const ranking_t rankings[] = {
    {"serving_comes_first",
     {{"a", .end_ms = 1, .used = MIB, .failed = 1}, {"b", .end_ms = 100, .used = GIB}},
     "b a",
     "t.csv: only b serves every request: peak 1.00 GiB. The program itself needs 1.00 MiB. a fails 1 operation."},
    {"an_end_exactly_one_percent_later_is_in_time",
     {{"a", .end_ms = 100, .used = 2 * GIB}, {"b", .end_ms = 101, .used = GIB}},
     "b a",
     "t.csv: b used the least memory at equal run time: peak 1.00 GiB, 50.0 % below a."},
    {"an_end_a_nanosecond_later_is_not",
     {{"a", .end_ms = 100, .used = 2 * GIB}, {"b", .end_ms = 101.000001, .used = GIB}},
     "a b",
     "t.csv: with a the program ends first, after 100.0 ms, 1.0 % before b; peak 2.00 GiB, 100.0 % above b. The program itself "
     "needs 1.00 MiB. b needs less, 1.00 GiB, but the program ends 1.0 % later."},
    {"the_earliest_end_of_those_that_serve_counts",
     {{"a", .end_ms = 1, .used = MIB, .failed = 3}, {"b", .end_ms = 100, .used = 2 * GIB}, {"c", .end_ms = 100.5, .used = GIB}},
     "c b a",
     "c used the least memory"},
    {"ties_prefer_strata",
     {{"a", .end_ms = 100, .used = GIB}, {"mine", "strata", .end_ms = 101, .used = GIB}},
     "mine a",
     "t.csv: mine used no more memory than any other at equal run time: peak 1.00 GiB, the same as a."},
    {"a_byte_less_is_no_tie",
     {{"a", .end_ms = 101, .used = GIB - 1}, {"strata", .end_ms = 100, .used = GIB}},
     "a strata",
     "a used the least memory at equal run time"},
    {"other_ties_keep_the_given_order", {{"b", .end_ms = 5, .used = 9}, {"a", .end_ms = 5, .used = 9}}, "b a", "b used no more"},
    {"of_failing_ones_the_fewest_failures",
     {{"a", .end_ms = 1, .used = 1, .failed = 3}, {"b", .end_ms = 9, .used = 9, .failed = 2, .needed = 12 * GIB}},
     "b a",
     "t.csv: no strategy serves every request. The nearest is b, which fails 2 of 100 operations and needs a capacity of 12.00 GiB; "
     "it had 10.00 GiB. a fails 3 operations."},
    {"then_the_least_capacity",
     {{"strata", .used = 1, .failed = 2, .needed = 13 * GIB}, {"b", .used = 9, .failed = 2, .needed = 12 * GIB}},
     "b strata",
     "The nearest is b"},
    {"then_strata",
     {{"a", .used = 1, .failed = 2, .needed = 12 * GIB}, {"strata", .used = 9, .failed = 2, .needed = 12 * GIB}},
     "strata a",
     "The nearest is strata"},
    {"a_capacity_that_is_not_known_is_last",
     {{"a", .failed = 2}, {"b", .failed = 2, .needed = 12 * GIB}},
     "b a",
     "The nearest is b"},
    {"a_single_one_that_serves", {{"a", .end_ms = 1, .used = MIB}}, "a", "t.csv: a serves every request: peak 1.00 MiB."},
    {"a_single_one_that_fails",
     {{"a", .failed = 1, .needed = 12 * GIB}},
     "a",
     "t.csv: a fails 1 of 100 operations and needs a capacity of 12.00 GiB; it had 10.00 GiB."},
    {"the_first_given_is_what_others_are_held_against",
     {{"theirs", .end_ms = 100, .used = 4 * GIB}, {"b", .end_ms = 100, .used = 2 * GIB}, {"c", .end_ms = 100, .used = GIB}},
     "c b theirs",
     "peak 1.00 GiB, 75.0 % below theirs."},
    {"one_that_ends_later_is_named_with_its_end",
     {{"theirs", .end_ms = 200, .used = 4 * GIB}, {"b", .end_ms = 100, .used = 2 * GIB}, {"c", .end_ms = 100, .used = GIB}},
     "c b theirs",
     "75.0 % below theirs. The program ends 50.0 % before theirs."},
};

TEST_EACH(ranking, of, ranking_t, rankings) {
    size_t count = 0;
    while (count < MOST && row->given[count].label) count++;
    strata_verdict_t verdict = verdict_of(row->given, count, NULL);
    char order[64] = "";
    for (size_t i = 0; i < verdict.count; i++)
        sprintf(order + strlen(order), "%s%s", i ? " " : "", row->given[verdict.order[i]].label);
    EXPECT_STREQ(order, row->order);
    EXPECT_CONTAINS(verdict.text, row->text);
    EXPECT_EQ(verdict.serves, row->given[verdict.order[0]].failed == 0);
}

/* ---- whole texts ---- */

typedef struct whole {
    const char *name;
    given_t given[2];
    uint64_t smallest[2]; /* 0: it was not looked for */
    uint64_t others; /* failures of the best for other reasons than memory; all of them: none was for memory */
    const char *text;
} whole_t;

#define NEEDS "The program itself needs 1.00 MiB."
#define FIRST "t.csv: with a the program ends first, after 100.0 ms, 50.0 % before b; peak 1.00 GiB, the same as b. " NEEDS
#define EQUAL "t.csv: a used no more memory than any other at equal run time: peak 1.00 GiB, the same as b. " NEEDS
#define SECOND                                                                                                                     \
    "t.csv: cuda_malloc_async used the least memory at equal run time: peak 1.00 MiB, 99.9 % below a. " NEEDS                      \
    " In PyTorch: PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync."

static const whole_t wholes[] = {
    {"as_much_and_later_is_not_less", {{"a", .end_ms = 100, .used = GIB}, {"b", .end_ms = 200, .used = GIB}}, .text = FIRST},
    {"the_first_of_equal_capacities",
     {{"a", .end_ms = 100, .used = GIB}, {"b", .end_ms = 100, .used = GIB}},
     {GIB, GIB},
     .text = EQUAL " The minimum capacity that serves every request is 1.00 GiB, with a."},
    {"a_smaller_capacity_of_the_second",
     {{"a", .end_ms = 100, .used = GIB}, {"b", .end_ms = 100, .used = GIB}},
     {GIB, GIB - MIB},
     .text = EQUAL " The minimum capacity that serves every request is 1023.0 MiB, with b; a needs 1.00 GiB."},
    {"the_setting_that_the_program_had_is_not_told",
     {{"cuda_malloc_async", .end_ms = 100, .used = MIB}},
     .text = "t.csv: cuda_malloc_async serves every request: peak 1.00 MiB. " NEEDS},
    {"the_setting_of_another_is",
     {{"a", .end_ms = 100, .used = GIB}, {"cuda_malloc_async", .end_ms = 100, .used = MIB}},
     .text = SECOND},
    {"failures_for_memory_alone", {{"a", .failed = 2}}, .text = "t.csv: a fails 2 of 100 operations."},
    {"failures_for_other_reasons_too",
     {{"a", .failed = 2}},
     .others = 1,
     .text = "t.csv: a fails 2 of 100 operations, not all of them for lack of memory."},
    {"failures_for_other_reasons_alone",
     {{"a", .failed = 2}},
     .others = 2,
     .text = "t.csv: a fails 2 of 100 operations, none of them for lack of memory."},
};

TEST_EACH(ranking, says_no_more_than, whole_t, wholes) {
    strata_run_result_t results[2];
    strata_verdict_t verdict;
    size_t count = 0;
    for (; count < 2 && row->given[count].label; count++) {
        results[count] = result_of(&row->given[count]);
        results[count].figures.oom_count -= row->others;
        if (row->smallest[count]) results[count].figures.smallest_device_bytes = row->smallest[count];
    }
    strata_verdict_make(&(strata_verdict_subject_t){.trace = &device_trace, .results = results, .count = count}, &verdict);
    EXPECT_STREQ(verdict.text, row->text);
}

/* ---- strategies with equal stacks ---- */

TEST(ranking, one_candidate_stands_for_its_equals) {
    static const given_t given[] = {{"b", .end_ms = 1, .used = 9}, {"a", .end_ms = 1, .used = 5}, {"c", .end_ms = 1, .used = 5}};
    static const size_t stands_for[] = {0, 2, 2};
    strata_verdict_t verdict = verdict_of(given, 3, stands_for);
    EXPECT_EQ(verdict.count, 2);
    EXPECT_EQ(verdict.order[0], 2);
    EXPECT_EQ(verdict.order[1], 0);
    EXPECT_CONTAINS(verdict.text, "c used the least memory");
    EXPECT_CONTAINS(verdict.text, "a has the same stacks as c for this trace.");
}

static void expect_same(const char *trace, const char *const *strategies, const char *const *set, size_t count,
                        const size_t *expected) {
    strata_trace_t *rows CLOSED_BY(trace_cleanup) = trace_of(trace);
    strata_strategy_t *loaded[MOST] = {0};
    strata_candidate_t candidates[MOST];
    size_t stands_for[MOST];
    for (size_t i = 0; i < count; i++) {
        const char *const one[] = {set ? set[i] : NULL, NULL};
        loaded[i] = strategy_of(strategies[i], one);
        candidates[i] = (strata_candidate_t){
            .label = strategies[i], .strategy = loaded[i], .target = {.profile = strata_sim_profile("h100")}};
    }
    EXPECT_OK(strata_candidates_same(candidates, count, rows, stands_for));
    for (size_t i = 0; i < count; i++) {
        EXPECT_EQ(stands_for[i], expected[i]);
        strata_strategy_delete(loaded[i]);
    }
}

#define PLACE_COLUMNS "op,id,size,stream,time_us,place\n"

TEST(same, presets_are_compared_by_what_the_trace_uses) {
    static const char *const presets[] = {"pinned_near", "strata", "host_huge", "strata-malloc"};
    expect_same(COLUMNS "alloc,1,100,0,0\n", presets, NULL, 4, (size_t[]){1, 1, 1, 3});
    expect_same(PLACE_COLUMNS "alloc,1,100,0,0,pinned\n", presets, NULL, 4, (size_t[]){0, 1, 1, 1});
    expect_same(PLACE_COLUMNS "alloc,1,100,0,0,gpu\nalloc,2,100,0,0,host\n", presets, NULL, 4, (size_t[]){1, 1, 2, 3});
}

TEST(same, values_set_by_hand_count_where_they_act) {
    static const char *const twice[] = {"strata", "strata", "strata"};
    static const char *const set[] = {"stream_safe.poll=block", NULL, "stream_safe.poll=seldom"};
    static const char *const pinned[] = {NULL, "pinned.auto_growth.chunk_size=16MiB", NULL};
    expect_same(COLUMNS "alloc,1,100,0,0\n", twice, set, 3, (size_t[]){0, 1, 1});
    expect_same(COLUMNS "alloc,1,100,0,0\n", twice, pinned, 3, (size_t[]){0, 0, 0});
    expect_same(PLACE_COLUMNS "alloc,1,100,0,0,pinned\n", twice, pinned, 3, (size_t[]){0, 1, 0});
}

/* A pool of the strategy matters only for a trace with that pool. */
TEST(same, pools_count_where_the_trace_has_them) {
    static const char *const strategies[] = {"stack: [stream_safe, auto_growth, system]\n",
                                             "stack: [stream_safe, auto_growth, system]\npools: {7: {stack: [system]}}\n"};
    expect_same(COLUMNS "alloc,1,100,0,0\n", strategies, NULL, 2, (size_t[]){0, 0});
    expect_same("op,id,size,stream,time_us,pool\nalloc,1,100,0,0,8\n", strategies, NULL, 2, (size_t[]){0, 0});
    expect_same("op,id,size,stream,time_us,pool\nalloc,1,100,0,0,7\n", strategies, NULL, 2, (size_t[]){0, 1});
}

TEST(same, devices_and_capacities_count) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = trace_of(COLUMNS "alloc,1,100,0,0\n");
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = strategy_of("system", NULL);
    strata_candidate_t candidates[MOST] = {
        {.label = "a", .strategy = strategy, .target = {.profile = strata_sim_profile("h100")}},
        {.label = "b", .strategy = strategy, .target = {.profile = strata_sim_profile("a100")}},
        {.label = "c", .strategy = strategy, .target = {.profile = strata_sim_profile("h100"), .capacity = GIB}},
        {.label = "d", .strategy = strategy, .target = {.profile = strata_sim_profile("h100")}}};
    size_t stands_for[MOST];
    ASSERT_OK(strata_candidates_same(candidates, MOST, trace, stands_for));
    EXPECT_EQ(stands_for[1], 1);
    EXPECT_EQ(stands_for[2], 2);
    EXPECT_EQ(stands_for[3], 0);
}

/* ---- traces without device memory ---- */

typedef struct quiet {
    const char *name, *rows, *text;
} quiet_t;

static const quiet_t quiets[] = {
    {"no_row", COLUMNS, "the trace has no rows, so there is nothing to compare."},
    {"no_alloc", COLUMNS "step,,,0,0\nrelease,,,0,1\nsync,,,0,2\n",
     "the trace requests no memory, so there is nothing to compare."},
    {"pinned", PLACE_COLUMNS "alloc,1,1000,0,0,pinned\nfree,1,,0,1,\n",
     "the trace requests no device memory, only pinned memory (at most 1000 B). strata used no more pinned and host memory than any "
     "other at equal run time: peak 8.00 MiB, the same as pinned_near. The program itself needs 1000 B."},
    {"host", PLACE_COLUMNS "alloc,1,1000,0,0,host\n", "only host memory (at most 1000 B). "},
    {"both", PLACE_COLUMNS "alloc,1,1000,0,0,pinned\nalloc,2,24,0,0,host\n",
     "only pinned memory (at most 1000 B) and host memory (at most 24 B). "},
};

TEST_EACH(ranking, reports_traces_without_device_memory, quiet_t, quiets) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = trace_of(row->rows);
    strata_strategy_t *near CLOSED_BY(strategy_cleanup) = strategy_of("pinned_near", NULL);
    strata_strategy_t *usual CLOSED_BY(strategy_cleanup) = strategy_of("strata", NULL);
    strata_target_t target = {.profile = strata_sim_profile("h100")};
    strata_candidate_t candidates[2] = {{.label = "pinned_near", .strategy = near, .target = target},
                                        {.label = "strata", .strategy = usual, .target = target}};
    strata_comparison_t comparison = {.candidates = candidates, .candidate_count = 2, .repeat = 1};
    strata_run_result_t results[2];
    strata_verdict_t verdict;
    ASSERT_OK(strata_compare(&comparison, trace, results));
    strata_verdict_make(&(strata_verdict_subject_t){.trace = trace, .results = results, .count = 2}, &verdict);
    EXPECT_CONTAINS(verdict.text, row->text);
    EXPECT_EQ(verdict.requests, trace->lifetimes > 0);
    EXPECT_EQ(results[1].figures.pinned_requested_bytes == STRATA_FIGURE_NULL, (trace->places & 1u << STRATA_PLACE_PINNED) == 0);
    EXPECT_EQ(results[1].figures.host_requested_bytes == STRATA_FIGURE_NULL, (trace->places & 1u << STRATA_PLACE_HOST) == 0);
}

static const ranking_t quiet_rankings[] = {
    {"only",
     {{"a", .end_ms = 1, .used = MIB, .failed = 1}, {"b", .end_ms = 100, .used = GIB}},
     .text = "(at most 1000 B). Only b serves every request: peak 1.00 GiB. "},
    {"with",
     {{"a", .end_ms = 100, .used = GIB}, {"b", .end_ms = 200, .used = GIB}},
     .text = "(at most 1000 B). With a the program ends first, after 100.0 ms, "},
    {"no",
     {{"a", .end_ms = 1, .failed = 1}, {"b", .end_ms = 1, .failed = 2}},
     .text = "(at most 1000 B). No strategy serves every request. The nearest is a, "},
};

TEST_EACH(ranking, a_finding_after_a_sentence_begins_with_a_capital, ranking_t, quiet_rankings) {
    static const strata_trace_t pinned_trace = {.count = 9, .lifetimes = 4, .places = 1u << STRATA_PLACE_PINNED};
    strata_run_result_t results[2];
    strata_verdict_t verdict;
    for (size_t i = 0; i < 2; i++) {
        results[i] = result_of(&row->given[i]);
        results[i].figures.pinned_requested_bytes = 1000;
        results[i].figures.pinned_reserved_bytes = row->given[i].used;
    }
    strata_verdict_make(&(strata_verdict_subject_t){.trace = &pinned_trace, .results = results, .count = 2}, &verdict);
    EXPECT_CONTAINS(verdict.text, row->text);
}

/* On a real device the used memory is unknown, so reserved bytes decide. */
TEST(ranking, reserved_bytes_replace_unknown_used_bytes) {
    strata_run_result_t results[2];
    static const given_t given[] = {{"a", .end_ms = 5, .used = 1}, {"b", .end_ms = 5, .used = 2}};
    for (size_t i = 0; i < 2; i++) results[i] = result_of(&given[i]);
    results[0].figures.peak_reserved_bytes = 2 * MIB;
    results[1].figures.peak_reserved_bytes = MIB;
    results[1].figures.peak_device_used_bytes = STRATA_FIGURE_NULL;
    strata_verdict_t verdict;
    strata_verdict_make(&(strata_verdict_subject_t){.trace = &device_trace, .results = results, .count = 2}, &verdict);
    EXPECT_EQ(verdict.order[0], 1);
    EXPECT_CONTAINS(verdict.text, "b used the least memory at equal run time: peak 1.00 MiB, 50.0 % below a.");
}

/* ---- pinned and host figures ---- */

TEST(figures, of_pinned_and_host_memory_are_exact) {
    strata_run_result_t r;
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = trace_of(
        PLACE_COLUMNS "alloc,1,1000,0,0,pinned\nalloc,2,500,1,1,pinned\nfree,1,,0,2,\nalloc,3,700,0,3,pinned\nalloc,4,24,0,4,host\n"
                      "free,4,,0,5,\nalloc,5,20,0,6,host\n");
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = strategy_of("strata", NULL);
    r = replay_trace(trace, strategy, 0, LAG);
    EXPECT_EQ(r.figures.pinned_requested_bytes, 1500);
    EXPECT_EQ(r.figures.pinned_reserved_bytes, 8 * MIB);
    EXPECT_EQ(r.figures.host_requested_bytes, 24);
    EXPECT_EQ(r.figures.host_reserved_bytes, 8 * MIB);
    EXPECT_EQ(r.figures.peak_requested_bytes, 0);
}
