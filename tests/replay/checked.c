/* The happens-before checker's verdict on every preset over every recorded trace. */
#include <stdio.h>

#include "config/config.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/replay/support/helpers.h"

static strata_run_result_t replay_checked(const strata_trace_t *trace, const strata_strategy_t *strategy, uint64_t capacity) {
    strata_run_options_t options = {.target = {.capacity = capacity}, .timeline = {.lag_ns = LAG}, .check = true};
    return replay_with(trace, strategy, options);
}

static strata_run_result_t check_named(const char *trace, const char *preset, const char *const *set, uint64_t capacity) {
    strata_trace_t *loaded = project_trace(trace);
    strata_strategy_t *strategy = strategy_of(preset, set);
    strata_run_result_t result = replay_checked(loaded, strategy, capacity);
    strata_trace_delete(loaded);
    strata_strategy_delete(strategy);
    return result;
}

static strata_run_result_t check_text(const char *text, const char *preset) {
    return replay_text(text, preset, (strata_run_options_t){.timeline = {.lag_ns = LAG}, .check = true});
}

/* What was not served has no hazard either: where there is memory enough all of it is, else most. */
static void expect_served(const char *trace, const char *preset, const strata_run_result_t *r, bool ample) {
    unsigned long long all = r->figures.operations, failed = r->figures.failed_operations;
    if (all > 0 && (ample ? failed == 0 : failed < all / 2)) return;
    FAIL_TEST("%s under %s: %llu of %llu operations failed; the first: %s", trace, preset, failed, all, r->first_failure);
}

static void expect_safe(const char *trace, uint64_t capacity, bool ample) {
    const char *preset;
    for (size_t i = 0; (preset = strata_preset_name(i)) != NULL; i++) {
        bool paddles_fault = strcmp(trace, "streams-prefetch.csv.gz") == 0 && strncmp(preset, "paddle", 6) == 0;
        strata_run_result_t r = check_named(trace, preset, NULL, capacity);
        expect_served(trace, preset, &r, ample);
        if (r.figures.hazards == 0 || paddles_fault) continue;
        FAIL_TEST("%s under %s: %llu hazards; the first: %s", trace, preset, (unsigned long long)r.figures.hazards,
                  r.first_hazards);
    }
}

TEST(checked, no_preset_has_a_hazard_in_one_stream) {
    static const char *const traces[] = {
        "tinytorch-mnist.csv",      "lm-medium-ctx256-training.csv.gz", "lm-medium-ctx512-inference.csv.gz",
        "lm-benchmark-step.csv.gz", "lm-small-bf16-forward.csv.gz",     "ddp-2rank-v100.csv.gz",
        "alexnet-training.csv.gz"};
    for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) expect_safe(traces[i], 80 * GIB, true);
}

TEST(checked, no_preset_has_a_hazard_in_several_streams) {
    expect_safe("streams-prefetch.csv.gz", 80 * GIB, true);
    expect_safe("streams-serving.csv.gz", 80 * GIB, true);
    expect_safe("streams-sharded-training.csv.gz", 80 * GIB, true);
}

/* Where memory is short it goes through the ladder: deferred frees are waited for, chunks go back. */
TEST(checked, little_memory_makes_no_hazard) {
    expect_safe("streams-sharded-training.csv.gz", 24 * GIB, false);
    expect_safe("streams-sharded-training.csv.gz", 14 * GIB, false);
}

/* The one true exception: batches are borrowed before their work is submitted, freed at once and fetched anew into the same
 * memory. Paddle's event, taken at the borrow, covers nothing of that: a hazard a step but the first. */
TEST(checked, paddle_is_unsafe_where_borrows_come_first) {
    strata_run_result_t r = check_named("streams-prefetch.csv.gz", "paddle", NULL, 80 * GIB);
    EXPECT_EQ(r.figures.hazards, 79);
    static const char *const parts[] = {
        "hazard 1: a new owner uses memory", "(rule 7)", "by stream 1",       "borrowed by stream 0 (",
        "used by work on stream 0 (",        "<- this",  "freed on stream 1", "line "};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) EXPECT_CONTAINS(r.first_hazards, parts[i]);
    static const char *const at_free[] = {"stream_safe.event=free", NULL};
    r = check_named("streams-prefetch.csv.gz", "paddle", at_free, 80 * GIB);
    EXPECT_EQ(r.figures.hazards, 0);
    r = check_named("streams-prefetch.csv.gz", "strata", NULL, 80 * GIB);
    EXPECT_EQ(r.figures.hazards, 0);
}

/* Without work a block is in use until its free, and on its borrowers until then. */
TEST(checked, a_trace_without_work_is_checked_by_its_borrows) {
    static const char text[] = COLUMNS "alloc,1,4194304,0,0\nborrow,1,0,1,10\nfree,1,0,0,20\nalloc,2,4194304,0,30\n"
                                       "free,2,0,0,40\n";
    EXPECT_EQ(check_text(text, "paddle").figures.hazards, 1);
    EXPECT_EQ(check_text(text, "strata").figures.hazards, 0);
}

static void expect_none(const char *text) {
    static const char *const presets[] = {"strata", "system", "cuda_malloc_async"};
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        strata_run_result_t r = check_text(text, presets[i]);
        EXPECT_EQ(r.figures.failed_operations, 0);
        if (r.figures.hazards) FAIL_TEST("%s: %s", presets[i], r.first_hazards);
    }
}

TEST(checked, every_place_and_operation) {
    /* Pinned memory has no owner: who was served first is a borrower. A borrow is taken back; a free says where the last use was. */
    expect_none("op,id,size,stream,time_us,place\nalloc,1,1048576,0,0,pinned\nborrow,1,0,1,5,pinned\nfree,1,0,0,9,pinned\n"
                "alloc,2,1048576,2,12,pinned\nfree,2,0,2,14,pinned\nalloc,3,1048576,1,15,host\nfree,3,0,1,19,host\n"
                "alloc,4,1048576,0,20,managed\nborrow,4,0,1,21,managed\nunborrow,4,0,1,22,managed\nfree,4,0,1,23,managed\n"
                "alloc,5,1048576,0,24,managed\nfree,5,0,0,25,managed\n");
    /* Two devices, each with a stream 0 and a stream 1. */
    expect_none("op,id,size,stream,time_us,device,dur_us,other\nalloc,1,1048576,0,0,0,,\nalloc,2,1048576,0,1,1,,\n"
                "work,1,0,0,2,0,900,\nwait,,0,1,3,0,,0\nborrow,1,0,1,4,0,,\nwork,1,0,1,5,0,900,\nfree,1,0,0,6,0,,\n"
                "work,2,0,0,7,1,900,\nfree,2,0,0,8,1,,\nalloc,3,1048576,0,9,0,,\nwork,3,0,0,10,0,10,\n"
                "alloc,4,1048576,1,11,1,,\nwork,4,0,1,12,1,10,\nsync,,0,all,13,1,,\nfree,3,0,0,14,0,,\n");
}

/* Where stream 0 is the legacy one, whose handle says "no stream", it is the first borrower all the same. It is one until the
 * free: what came before the taking back of its borrow a trace without work does not tell. */
TEST(checked, the_first_borrower_of_memory_without_an_owner) {
    static const struct {
        const char *rows;
        bool legacy;
    } well_formed[] = {
        {"alloc,1,1048576,0,0,pinned\nfree,1,0,0,9,pinned\nalloc,2,1048576,1,12,pinned\nfree,2,0,1,14,pinned\n", true},
        {"alloc,2,0,0,0,host\nalloc,1,1048576,0,0,host\nfree,2,0,0,1,host\nborrow,1,0,1,5,host\nfree,1,0,1,9,host\n", true},
        {"alloc,1,1048576,0,0,pinned\nunborrow,1,0,0,5,pinned\nfree,1,0,0,9,pinned\n", false}};
    static const char *const presets[] = {"strata", "system"};
    for (size_t i = 0; i < sizeof well_formed / sizeof *well_formed * 2; i++) {
        char text[400];
        snprintf(text, sizeof text, "op,id,size,stream,time_us,place\n%s", well_formed[i / 2].rows);
        strata_timeline_options_t timeline = {.lag_ns = LAG, .legacy_default = well_formed[i / 2].legacy};
        strata_run_options_t options = {.timeline = timeline, .check = true};
        strata_run_result_t result = replay_text(text, presets[i % 2], options);
        if (result.figures.hazards) FAIL_TEST("%zu, %s: %s", i / 2, presets[i % 2], result.first_hazards);
        EXPECT_EQ(result.figures.failed_operations, 0);
        EXPECT_EQ(result.figures.borrows_waited, i == 3 ? 1 : 0); /* `system` does not know the borrow of the trace */
    }
}

/* The program's own fault: stream 1 works on a block of stream 0 and nobody says so. */
TEST(checked, a_free_that_covers_too_little) {
    static const char text[] = WORK_COLUMNS "alloc,1,4194304,0,0,,\nwork,1,0,1,5,900,\nfree,1,0,0,8,,\n";
    strata_run_result_t r = check_text(text, "strata");
    EXPECT_EQ(r.figures.hazards, 1);
    EXPECT_CONTAINS(r.first_hazards, "neither covered by a borrow nor ordered");
    EXPECT_CONTAINS(r.first_hazards, "line 4");
}

/* What keeps `system` safe is that a device free waits, which CUDA promises nowhere. */
TEST(checked, where_a_device_free_does_not_wait_system_is_unsafe) {
    strata_sim_profile_t profile = *strata_sim_profile("h100");
    profile.free_waits = false;
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = project_trace("alexnet-training.csv.gz");
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = strategy_of("system", NULL);
    strata_run_options_t options = {.target = {.profile = &profile}, .timeline = {.lag_ns = LAG}, .check = true};
    strata_run_result_t result = replay_with(trace, strategy, options);
    EXPECT_GT(result.figures.hazards, 0);
    EXPECT_CONTAINS(result.first_hazards, "under running work");
}

/* The checker's own time is in a watched run, which so tells none of the allocator's. */
TEST(checked, a_checked_run_gives_no_host_time) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = trace_of(COLUMNS "alloc,1,256,0,0\nfree,1,0,0,1\n");
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = strategy_of("strata", NULL);
    strata_candidate_t candidates[2] = {{.label = "x", .strategy = strategy, .target = {.profile = strata_sim_profile("h100")}}};
    candidates[1] = candidates[0];
    strata_comparison_t comparison = {.candidates = candidates, .candidate_count = 2, .repeat = 1, .check = true};
    for (; comparison.repeat <= 3; comparison.repeat++) {
        strata_run_result_t results[2];
        ASSERT_OK(strata_compare(&comparison, trace, results));
        for (int i = 0; i < 2; i++) {
            EXPECT_EQ(results[i].figures.hazards, 0);
            EXPECT_EQ(results[i].figures.host_ns_per_op.count, comparison.repeat - 1);
        }
    }
}

TEST(checked, a_check_changes_no_other_figure) {
    strata_run_result_t with = check_named("streams-serving.csv.gz", "strata", NULL, 16 * GIB);
    strata_run_result_t without = replay_named("streams-serving.csv.gz", "strata", NULL, 16 * GIB, LAG);
    EXPECT_EQ(without.figures.hazards, STRATA_FIGURE_NULL);
    EXPECT_EQ(with.figures.hazards, 0);
    EXPECT_EQ(with.figures.peak_reserved_bytes, without.figures.peak_reserved_bytes);
    EXPECT_EQ(with.figures.operations, without.figures.operations);
    EXPECT_TRUE(with.figures.end_ms >= without.figures.end_ms && with.figures.end_ms <= without.figures.end_ms);
    EXPECT_EQ(memcmp(&with.figures.device_calls, &without.figures.device_calls, sizeof with.figures.device_calls), 0);
}
