/* What the preset `strata` reserves, and in what device time, on every recorded trace; beside every other preset. */
#include <stdio.h>
#include <stdlib.h>

#include "config/config.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/replay/support/helpers.h"

#define ROOM (80 * GIB)

typedef struct point {
    double held, device_ms; /* what the device holds at its peak over what was requested; calls and the host's waits in them */
    double reserved, end_ms;
    uint64_t failed;
} point_t;

static point_t point_of(const strata_run_result_t *result) {
    const strata_figures_t *f = &result->figures;
    double requested = (double)f->peak_requested_bytes;
    return (point_t){.held = (double)f->peak_device_used_bytes / requested,
                     .reserved = (double)f->peak_reserved_bytes / requested,
                     .device_ms = f->device_call_ms + f->stall_ms,
                     .end_ms = f->end_ms,
                     .failed = f->failed_operations};
}

static point_t replay_point(const strata_trace_t *trace, const char *preset, bool check, uint64_t *hazards) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = strategy_of(preset, NULL);
    strata_run_options_t options = {.target = {.capacity = ROOM}, .timeline = {.lag_ns = LAG}, .check = check};
    strata_run_result_t result = replay_with(trace, strategy, options);
    if (hazards) *hazards = result.figures.hazards;
    return point_of(&result);
}

/* ---- how much, and at what price ---- */

/* The most that may be reserved over what is requested: less from 2 GiB up; where several streams keep blocks from one another, more. */
static const struct {
    const char *name;
    double most;
} traces[] = {{"tinytorch-mnist.csv", 1.06},
              {"alexnet-training.csv.gz", 1.06},
              {"lm-small-bf16-forward.csv.gz", 1.06},
              {"lm-medium-ctx512-inference.csv.gz", 1.06},
              {"lm-medium-ctx256-training.csv.gz", 1.03},
              {"lm-benchmark-step.csv.gz", 1.03},
              {"ddp-2rank-v100.csv.gz", 1.03},
              {"streams-prefetch.csv.gz", 1.05},
              {"streams-serving.csv.gz", 1.05},
              {"streams-sharded-training.csv.gz", 1.12}};

TEST(frontier, strata_reserves_little_more_than_is_requested) {
    for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
        strata_trace_t *trace CLOSED_BY(trace_cleanup) = project_trace(traces[i].name);
        point_t p = replay_point(trace, "strata", false, NULL);
        printf("%s: reserved %.4f, device %.3f ms\n", traces[i].name, p.reserved, p.device_ms);
        EXPECT_LE(p.reserved, traces[i].most);
        EXPECT_EQ(p.failed, 0);
    }
}

/* In programs of one stream: at most twice what PyTorch's allocator takes, or half a percent of the program. */
TEST(frontier, in_twice_the_device_time_of_pytorch) {
    for (size_t i = 0; i < sizeof traces / sizeof *traces && traces[i].name[0] != 's'; i++) {
        strata_trace_t *trace CLOSED_BY(trace_cleanup) = project_trace(traces[i].name);
        point_t ours = replay_point(trace, "strata", false, NULL), theirs = replay_point(trace, "pytorch", false, NULL);
        double half = 0.005 * ours.end_ms, twice = 2 * theirs.device_ms;
        printf("%s: device %.3f ms, pytorch %.3f\n", traces[i].name, ours.device_ms, theirs.device_ms);
        EXPECT_LE(ours.device_ms, half > twice ? half : twice);
    }
}

/* A program that fetches all its layers before the GPU has anything to do begins as early as over chunks, where a GiB costs less: one handle
 * more costs 0.04 ms. */
TEST(frontier, a_program_of_many_layers_ends_as_early_as_over_chunks) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = project_trace("streams-sharded-training.csv.gz");
    point_t ours = replay_point(trace, "strata", false, NULL), chunks = replay_point(trace, "strata-malloc", false, NULL);
    printf("ends at %.3f ms, over chunks at %.3f\n", ours.end_ms, chunks.end_ms);
    EXPECT_LE(ours.end_ms, chunks.end_ms + 0.03);
}

/* ---- nobody is better in both ---- */

/* What serves memory again that is in use holds less by that, so a preset with hazards is no match. */
static bool is_better(const strata_trace_t *trace, const point_t *ours, const char *preset) {
    uint64_t hazards;
    point_t p = replay_point(trace, preset, false, NULL);
    bool matches = p.failed == 0 && p.held <= ours->held && p.device_ms <= ours->device_ms;
    if (!matches || (p.held == ours->held && p.device_ms == ours->device_ms)) return false;
    (void)replay_point(trace, preset, true, &hazards);
    return hazards == 0;
}

TEST(frontier, no_preset_is_better_in_both) {
    const char *preset;
    for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
        strata_trace_t *trace CLOSED_BY(trace_cleanup) = project_trace(traces[i].name);
        point_t ours = replay_point(trace, "strata", false, NULL);
        for (size_t n = 0; (preset = strata_preset_name(n)) != NULL; n++)
            if (is_better(trace, &ours, preset)) FAIL_TEST("%s: %s holds less in less device time", traces[i].name, preset);
    }
}

/* ---- at rest ---- */

typedef struct repeats {
    char *text;
    size_t used, size;
    bool *live; /* by id of the trace */
} repeats_t;

static void add_row(repeats_t *r, const char *op, uint64_t id, uint64_t size, uint64_t time_us) {
    r->used += (size_t)snprintf(r->text + r->used, r->size - r->used, "%s,%llu,%llu,0,%llu\n", op, (unsigned long long)id,
                                (unsigned long long)size, (unsigned long long)time_us);
}

/* What it leaves live is freed at its end. */
static void add_run(repeats_t *r, const strata_trace_t *trace, uint64_t run, uint64_t span) {
    uint64_t first = run * trace->lifetimes;
    for (size_t i = 0; i < trace->count; i++) {
        const strata_trace_event_t *e = &trace->events[i];
        bool allocates = e->op == STRATA_TRACE_alloc;
        if (!allocates && e->op != STRATA_TRACE_free) continue;
        r->live[e->id] = allocates;
        add_row(r, allocates ? "alloc" : "free", first + e->id, allocates ? e->value : 0, run * span + e->time_us);
    }
    for (uint32_t id = 0; id < trace->lifetimes; id++) {
        if (r->live[id]) add_row(r, "free", first + id, 0, run * span + span - 1);
        r->live[id] = false;
    }
}

/* `times` runs of a trace of one stream, one after the other. */
static strata_trace_t *repeated(const strata_trace_t *trace, uint32_t times) {
    enum { LONGEST_ROW = 64 };
    repeats_t r = {.size = times * (trace->count + trace->lifetimes) * LONGEST_ROW + sizeof COLUMNS};
    uint64_t span = trace->events[trace->count - 1].time_us + 1;
    r.text = malloc(r.size);
    r.live = calloc(trace->lifetimes, sizeof *r.live);
    r.used = (size_t)snprintf(r.text, r.size, "%s", COLUMNS);
    for (uint32_t run = 0; run < times; run++) add_run(&r, trace, run, span);
    strata_trace_t *made = trace_of(r.text);
    free(r.live);
    free(r.text);
    return made;
}

/* A program that repeats itself asks the device for nothing in the end. */
TEST(frontier, repeated_programs_come_to_rest) {
    static const char *const names[] = {"tinytorch-mnist.csv", "ddp-2rank-v100.csv.gz"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        strata_trace_t *trace CLOSED_BY(trace_cleanup) = project_trace(names[i]);
        strata_trace_t *five CLOSED_BY(trace_cleanup) = repeated(trace, 5);
        strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = strategy_of("strata", NULL);
        strata_run_result_t r = replay_trace(five, strategy, ROOM, LAG);
        EXPECT_EQ(r.figures.failed_operations, 0);
        EXPECT_EQ(r.figures.steady_device_ms, 0);
        EXPECT_EQ(r.figures.stall_ms, 0);
    }
}
