/* Checks for every strategy and every trace that live <= allocated <= reserved <= capacity in device memory, after each row and at the end.
 * Each pair runs with the whole device. All except the longest traces also run with too little memory. */
#include <math.h>
#include <stdio.h>

#include "facade/registry/facade.h"
#include "platform/arithmetic.h"
#include "platform/place.h"
#include "strategy/presets.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/replay/support/helpers.h"

enum {
    LOOK_ROWS = 512, /* rows between checks of every layer; small stacks are also checked after each change of a chunk */
    MANY_ROWS = 50000 /* longer traces run only with the whole device */
};

static const char *const traces[] = {"alexnet-training.csv.gz",           "ddp-2rank-v100.csv.gz",
                                     "lm-benchmark-step.csv.gz",          "lm-medium-ctx256-training.csv.gz",
                                     "lm-medium-ctx512-inference.csv.gz", "lm-small-bf16-forward.csv.gz",
                                     "streams-prefetch.csv.gz",           "streams-serving.csv.gz",
                                     "streams-sharded-training.csv.gz",   "tinytorch-mnist.csv"};
enum { TRACES = sizeof traces / sizeof *traces };

typedef struct bounded {
    uint64_t capacity; /* of all devices */
    uint64_t of_device;
    uint64_t row; /* the current row */
} bounded_t;

static void expect_order(const bounded_t *bounded, const char *where, uint64_t requested, uint64_t allocated, uint64_t reserved,
                         uint64_t capacity) {
    if (requested <= allocated && allocated <= reserved && reserved <= capacity) return;
    FAIL_TEST("row %llu, %s: requested %llu, allocated %llu, reserved %llu, capacity %llu", (unsigned long long)bounded->row, where,
              (unsigned long long)requested, (unsigned long long)allocated, (unsigned long long)reserved,
              (unsigned long long)capacity);
}

static void expect_at_most(const bounded_t *bounded, const char *name, uint64_t value, uint64_t bound) {
    if (value > bound)
        FAIL_TEST("row %llu: %s is %llu, above %llu", (unsigned long long)bounded->row, name, (unsigned long long)value,
                  (unsigned long long)bound);
}

static void expect_row(void *context, const strata_series_sample_t *sample) {
    bounded_t *bounded = context;
    bounded->row = sample->row;
    if (strata_test_has_failed()) return;
    const uint64_t *sides[] = {sample->low, sample->high};
    for (int i = 0; i < 2; i++) {
        const uint64_t *curves = sides[i];
        expect_order(bounded, i ? "within it" : "after it", curves[STRATA_SERIES_requested], curves[STRATA_SERIES_allocated],
                     curves[STRATA_SERIES_reserved], bounded->capacity);
        expect_at_most(bounded, "deferred", curves[STRATA_SERIES_deferred], curves[STRATA_SERIES_reserved]);
        expect_at_most(bounded, "allocated and deferred", curves[STRATA_SERIES_allocated] + curves[STRATA_SERIES_deferred],
                       curves[STRATA_SERIES_reserved]);
    }
}

static void ignore_refused(void *context, size_t row, uint64_t time_ns, const strata_trace_event_t *event, const char *text) {
    (void)context;
    (void)row;
    (void)time_ns;
    (void)event;
    (void)text;
}

static void expect_figure(const strata_layer_figure_t *figure, void *context) {
    const bounded_t *bounded = context;
    char name[128];
    /* Limits, sizes of future requests, and sums over time are not held memory. */
    static const char *const others[] = {"limit_bytes", "next_region", "collected_bytes"};
    bool memory = strcmp(figure->unit, "bytes") == 0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) memory = memory && strcmp(figure->name, others[i]) != 0;
    if (!memory || strata_test_has_failed()) return;
    snprintf(name, sizeof name, "%s.%s", figure->type, figure->name);
    expect_at_most(bounded, name, figure->value, bounded->of_device);
}

static void expect_place(bounded_t *bounded, strata_t facade, strata_place_t place) {
    strata_statistics_t f = {.struct_size = sizeof f};
    strata_mem_info_t info = {.struct_size = sizeof info};
    ASSERT_OK(strata_statistics_all(facade, place, &f));
    ASSERT_OK(strata_mem_info(facade, place, &info));
    expect_order(bounded, "of the place", f.requested_bytes, f.allocated_bytes, f.reserved_bytes, bounded->of_device);
    expect_order(bounded, "peaks of the place", f.peak_requested_bytes, f.peak_allocated_bytes, f.peak_reserved_bytes,
                 bounded->of_device);
    expect_at_most(bounded, "reserved", f.reserved_bytes, f.peak_reserved_bytes);
    expect_at_most(bounded, "allocated and deferred", f.allocated_bytes + f.deferred_bytes, f.reserved_bytes);
    expect_at_most(bounded, "allocated and cached", f.allocated_bytes + info.cached, f.reserved_bytes);
    expect_at_most(bounded, "free", info.free, info.total);
    ASSERT_OK(strata_layer_figures(facade, place, expect_figure, bounded));
}

static void expect_moment(void *context, const strata_run_moment_t *moment, bool chunks) {
    bounded_t *bounded = context;
    uint32_t index = 0;
    strata_domain_t *domain;
    if (strata_test_has_failed() || (moment->rows % LOOK_ROWS != 0 && (!chunks || moment->trace->count > 8 * LOOK_ROWS))) return;
    while ((domain = strata_facade_next_domain(strata_facade_of(moment->facade), &index)) != NULL)
        if (strata_place_kind(domain->place) == STRATA_PLACE_GPU) expect_place(bounded, moment->facade, domain->place);
}

static strata_run_result_t run_bounded(const strata_trace_t *trace, const strata_strategy_t *strategy, uint64_t capacity) {
    bounded_t bounded = {.of_device = capacity, .capacity = capacity * strata_max(1, trace->devices)};
    strata_run_follow_t follow = {.row = expect_row, .refused = ignore_refused, .moment = expect_moment, .context = &bounded};
    strata_run_options_t options = {.target = {.capacity = capacity}, .timeline = {.lag_ns = LAG}, .follow = &follow};
    strata_run_result_t result = replay_with(trace, strategy, options);
    const strata_figures_t *f = &result.figures;
    if (f->capacity_bytes != capacity) FAIL_TEST("the run had %llu bytes", (unsigned long long)f->capacity_bytes);
    expect_order(&bounded, "peaks", f->peak_requested_bytes, f->peak_allocated_bytes, f->peak_reserved_bytes, bounded.capacity);
    expect_at_most(&bounded, "mean_reserved_bytes", f->mean_reserved_bytes, f->peak_reserved_bytes);
    expect_at_most(&bounded, "deferred_peak_bytes", f->deferred_peak_bytes, f->peak_reserved_bytes);
    expect_at_most(&bounded, "peak_device_used_bytes", f->peak_device_used_bytes, bounded.capacity);
    EXPECT_TRUE(isnan(f->fragmentation) || (f->fragmentation >= 0 && f->fragmentation <= 1));
    return result;
}

typedef struct pair {
    const char *trace, *preset;
} pair_t;

static void expect_bounds(const void *context) {
    const pair_t *pair = context;
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = project_trace(pair->trace);
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = strategy_of(pair->preset, NULL);
    ASSERT_TRUE(trace && strategy);
    strata_run_result_t whole = run_bounded(trace, strategy, 80 * GIB);
    if (strata_test_has_failed()) return;
    EXPECT_EQ(whole.figures.failed_operations, 0);
    if (trace->count > MANY_ROWS) return;
    /* Some traces have work after the borrow, which paddle's events do not cover. If memory is short, it is unmapped under that work. */
    static const char *const covered[] = {"stream_safe.event=free", NULL};
    bool uncovered = strncmp(pair->preset, "paddle", 6) == 0;
    strata_strategy_t *safe CLOSED_BY(strategy_cleanup) = strategy_of(pair->preset, uncovered ? covered : NULL);
    ASSERT_TRUE(safe);
    strata_run_result_t refused = run_bounded(trace, safe, whole.figures.peak_requested_bytes / 100 * 97);
    EXPECT_GT(refused.figures.oom_count, 0);
}

/* ---- memory that the driver's pool reuses before its free completes ------------------------------------------------------- */

/* Two streams work in turn on blocks that are freed at once, with the host far ahead of both. */
static strata_trace_t *far_ahead(uint64_t size, int blocks) {
    char *text CLOSED_BY(text_cleanup) = malloc(256 * (size_t)blocks + 64), *at = text;
    at += sprintf(at, WORK_COLUMNS);
    for (int i = 1, t = 0; i <= blocks; i++, t += 12) {
        at += sprintf(at, "alloc,%d,%llu,1,%d,,\nwork,%d,,1,%d,100,\nwait,,,0,%d,,1\n", i, (unsigned long long)size, t, i, t + 2,
                      t + 4);
        at += sprintf(at, "borrow,%d,,0,%d,,\nwork,%d,,0,%d,1000,\nfree,%d,,1,%d,,\n", i, t + 6, i, t + 8, i, t + 10);
    }
    return trace_of(text);
}

/* At most 80 % of the device may be live or pending. So the pool grows at most one block beyond that, and then reuses pending memory. */
TEST(bounds, reused_memory_counts_once) {
    static const uint64_t sizes[] = {GIB, 3 * GIB, 700 * MIB + 1000};
    for (int i = 0; i < 3; i++) {
        strata_trace_t *trace CLOSED_BY(trace_cleanup) = far_ahead(sizes[i], 200);
        strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = strategy_of("cuda_malloc_async", NULL);
        ASSERT_TRUE(trace && strategy);
        strata_figures_t f = run_bounded(trace, strategy, 80 * GIB).figures;
        EXPECT_EQ(f.failed_operations, 0);
        EXPECT_EQ(f.peak_requested_bytes, sizes[i]);
        EXPECT_EQ(f.deferred_peak_bytes, f.peak_reserved_bytes);
        EXPECT_GE(f.peak_reserved_bytes, 60 * GIB);
        EXPECT_EQ(f.deferred_frees, 200);
        if (sizes[i] % MIB == 0) EXPECT_EQ(f.peak_device_used_bytes, f.peak_reserved_bytes);
    }
}

__attribute__((constructor)) static void register_pairs(void) {
    static pair_t pairs[TRACES * 64];
    size_t count = 0;
    for (const strata_preset_text_t *preset = strata_preset_texts; preset->name; preset++)
        for (size_t i = 0; i < TRACES; i++) {
            char name[128];
            pair_t *pair = &pairs[count++];
            *pair = (pair_t){.trace = traces[i], .preset = preset->name};
            snprintf(name, sizeof name, "%s_%.*s", preset->name, (int)strcspn(traces[i], "."), traces[i]);
            for (char *at = name; *at; at++)
                if (*at == '-' || *at == '.') *at = '_';
            strata_test_register_of("bounds", name, __FILE__, __LINE__, expect_bounds, pair);
        }
}
