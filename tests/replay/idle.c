/* `idle:` in a replay: between two rows time passes, and what lies idle goes back meanwhile. */
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/replay/support/helpers.h"

#define CHUNKS "stack: [stream_safe, auto_growth: {chunk_size: 2MiB}, system]\n"
#define VMM    "stack: [stream_safe, auto_growth_vmm, vmm]\n"
#define IDLE   "idle: {after: 1s, keep: 0}\n"
/* 100 MiB are used for a second, and again after ten. */
#define BURSTS                                                                                                                     \
    "alloc,1,104857600,0,0\nfree,1,,0,1000000\n"                                                                                   \
    "alloc,2,104857600,0,11000000\nfree,2,,0,12000000\n"

static strata_run_result_t run_text(const char *text, const char *strategy_text) {
    return replay_text(text, strategy_text, (strata_run_options_t){.timeline = {.lag_ns = LAG}, .check = true});
}

/* Held for 2 and 0.875 of 12 seconds, instead of 12. */
TEST(idle_replay, what_lies_idle_goes_back_between_two_rows) {
    static const char *const stacks[] = {CHUNKS, VMM}, *const idle[] = {CHUNKS IDLE, VMM IDLE};
    for (int i = 0; i < 2; i++) {
        strata_run_result_t without = run_text(COLUMNS BURSTS, stacks[i]), with = run_text(COLUMNS BURSTS, idle[i]);
        EXPECT_NEAR((double)without.figures.mean_reserved_bytes, 100.0 * (double)MIB, (double)MIB);
        EXPECT_NEAR((double)with.figures.mean_reserved_bytes, 100.0 * (double)MIB * 2.875 / 12, (double)MIB);
        EXPECT_EQ(with.figures.peak_reserved_bytes, without.figures.peak_reserved_bytes);
        EXPECT_EQ(with.figures.hazards, 0);
        EXPECT_NEAR(with.figures.stall_ms, 0, 1e-9);
        EXPECT_NEAR(with.figures.end_ms, without.figures.end_ms, 0.5);
        strata_run_result_t again = run_text(COLUMNS BURSTS, idle[i]);
        EXPECT_EQ(again.figures.mean_reserved_bytes, with.figures.mean_reserved_bytes);
        EXPECT_NEAR(again.figures.end_ms, with.figures.end_ms, 0);
    }
}

/* The trace's kernel runs for five seconds: the free of a chunk would wait for it. */
TEST(idle_replay, nothing_goes_while_the_trace_works) {
    strata_run_result_t r = run_text(WORK_COLUMNS "alloc,1,104857600,0,0,,\nalloc,2,1048576,0,0,,\nwork,2,,0,10,5000000,\n"
                                                  "free,1,,0,1000,,\nalloc,3,1048576,0,5500000,,\n",
                                     CHUNKS IDLE);
    EXPECT_NEAR((double)r.figures.mean_reserved_bytes, 102.0 * (double)MIB - 100.0 * (double)MIB * 0.5 / 5.5, 8.0 * (double)MIB);
    EXPECT_GT(r.figures.mean_reserved_bytes, 92 * MIB);
    EXPECT_NEAR(r.figures.stall_ms, 0, 1e-9);
}
