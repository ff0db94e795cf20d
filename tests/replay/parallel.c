/* Several candidates at once: nothing but the host's time depends on how many threads there are. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "lab/replay/compare/jobs.h"
#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/replay/support/helpers.h"

enum { CANDIDATES = 5, REPEATS = 2, JOBS = 200 };

static const char *const presets[CANDIDATES] = {"strata", "paddle", "pytorch", "system", "tensorflow"};

static char *json_of(const strata_figures_t *figures, size_t count) {
    char path[512];
    size_t length = 0;
    strata_output_t *out = NULL;
    snprintf(path, sizeof path, "%s", temporary("parallel.json"));
    EXPECT_OK(strata_output_open(path, &out));
    if (!out) return NULL;
    strata_figures_json(out, figures, count);
    EXPECT_OK(strata_output_finish(out));
    char *text = read_bytes(path, &length);
    if (text) text[length] = '\0';
    return text;
}

static void free_all(strata_strategy_t **strategies) {
    for (size_t i = 0; i < CANDIDATES; i++) strata_strategy_delete(strategies[i]);
}

/* All figures as JSON, without the host's time. */
static char *figures_with(const char *name, uint64_t capacity, uint32_t threads) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = project_trace(name);
    strata_strategy_t *strategies[CANDIDATES];
    strata_candidate_t candidates[CANDIDATES] = {{.label = NULL}};
    strata_run_result_t *results = calloc(CANDIDATES, sizeof *results);
    strata_figures_t figures[CANDIDATES];
    for (size_t i = 0; i < CANDIDATES; i++) {
        strategies[i] = strategy_of(presets[i], NULL);
        candidates[i] = (strata_candidate_t){.label = presets[i],
                                             .strategy = strategies[i],
                                             .target = {.profile = strata_sim_profile("h100"), .capacity = capacity}};
    }
    strata_comparison_t comparison = {
        .candidates = candidates, .candidate_count = CANDIDATES, .timeline = {.lag_ns = LAG}, .repeat = REPEATS, .threads = threads};
    EXPECT_OK(strata_compare(&comparison, trace, results));
    for (size_t i = 0; i < CANDIDATES; i++) {
        figures[i] = results[i].figures;
        EXPECT_EQ(figures[i].host_ns_per_op.count, REPEATS);
        figures[i].host_ns_per_op = (strata_figure_spread_t){.count = 0};
    }
    char *text = json_of(figures, CANDIDATES);
    free_all(strategies);
    free(results);
    return text;
}

/* The small capacity makes requests wait, by the clock of a program that is alone. */
TEST(parallel, figures_are_those_of_one_after_another) {
    static const struct {
        const char *trace;
        uint64_t capacity;
    } cases[] = {
        {"streams-sharded-training.csv.gz", 12 * GIB}, {"streams-serving.csv.gz", 0}, {"alexnet-training.csv.gz", 2 * GIB}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *one CLOSED_BY(text_cleanup) = figures_with(cases[i].trace, cases[i].capacity, 1);
        char *many CLOSED_BY(text_cleanup) = figures_with(cases[i].trace, cases[i].capacity, CANDIDATES);
        EXPECT_STREQ(one, many);
    }
}

typedef struct counted {
    _Atomic uint32_t done[JOBS];
    size_t first_failing;
} counted_t;

/* Jobs from one on fail, each with its number. */
static strata_status_t count_job(void *context, size_t job) {
    counted_t *counted = context;
    atomic_fetch_add(&counted->done[job], 1);
    return job < counted->first_failing ? STRATA_OK : strata_fail(STRATA_E_INVALID, 0, "job %zu", job);
}

TEST(parallel, each_job_is_done_once) {
    for (size_t threads = 0; threads <= 8; threads++) {
        counted_t counted = {.first_failing = JOBS};
        ASSERT_OK(strata_jobs_run(JOBS, threads, count_job, &counted));
        for (size_t i = 0; i < JOBS; i++) EXPECT_EQ(counted.done[i], 1);
    }
    EXPECT_OK(strata_jobs_run(0, 4, count_job, NULL));
}

TEST(parallel, the_first_failure_in_their_order_is_reported) {
    for (size_t threads = 0; threads <= 8; threads++) {
        counted_t counted = {.first_failing = 77};
        EXPECT_SAYS(STRATA_E_INVALID, strata_jobs_run(JOBS, threads, count_job, &counted), "job 77");
        for (size_t i = 0; i <= 77; i++) EXPECT_EQ(counted.done[i], 1);
    }
}
