/* stable_addresses: a program that repeats its steps gets the same addresses from the third one on, whatever it keeps over the end of
 * a step, and in whatever order it frees. */
#include <stdio.h>
#include <stdlib.h>

#include "lab/replay/run/figures.h"
#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "tests/replay/support/helpers.h"

enum { REPEATS = 6 };

typedef struct kept {
    const char *name, *strategy;
    const char *set[2];
} kept_t;

static const kept_t caches[] = {
    {"strata-malloc", "strata-malloc", {"auto_growth.stable_addresses=true", NULL}},
    {"paddle", "paddle", {"auto_growth.stable_addresses=true", NULL}},
    {"pools", "stack: [auto_growth: {small_pool_size: 1MiB, stable_addresses: true}, system]\n", {NULL}},
    {"pytorch", "pytorch", {"caching.stable_addresses=true", NULL}},
    {"ignoring_streams", "stack: [caching: {streams: ignored, stable_addresses: true}, system]\n", {NULL}},
    {"tensorflow", "tensorflow", {"bfc.stable_addresses=true", NULL}},
    {"naive_best_fit", "stack: [naive_best_fit: {fraction: 0.4, stable_addresses: true}, system]\n", {NULL}},
    {"thread_local", "stack: [thread_local: {fraction: 0.4, stable_addresses: true}, system]\n", {NULL}},
    {"cache_over_cache",
     "stack: [auto_growth: {stable_addresses: true}, auto_growth: {chunk_size: 64MiB, stable_addresses: true}, system]\n",
     {NULL}},
};

/* ---- a recorded program again and again ---- */

typedef struct writing {
    char *text;
    size_t length, capacity;
    const strata_trace_t *trace;
    uint32_t state; /* of the order of frees; 0: as recorded */
    uint64_t time;
} writing_t;

static void put(writing_t *w, const char *op, uint64_t id, uint64_t size) {
    if (w->length + 128 > w->capacity) w->text = realloc(w->text, w->capacity = 2 * w->capacity + 4096);
    if (!w->text) abort();
    bool step = op[0] == 's', alloc = op[0] == 'a';
    char number[32] = "", bytes[32] = "";
    if (!step) snprintf(number, sizeof number, "%llu", (unsigned long long)id);
    if (alloc) snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)size);
    w->length += (size_t)snprintf(w->text + w->length, 128, "%s,%s,%s,%s,%llu\n", op, number, bytes, step ? "" : "0",
                                  (unsigned long long)w->time++);
}

static uint32_t draw(writing_t *w, uint32_t below) {
    w->state = w->state * 1664525u + 1013904223u;
    return (w->state >> 8) % below;
}

/* The frees of rows from .. to, which have nothing between them. */
static void put_frees(writing_t *w, size_t from, size_t to, uint64_t base) {
    uint32_t count = (uint32_t)(to - from), *order = calloc(count + 1u, sizeof *order);
    if (!order) abort();
    for (uint32_t i = 0; i < count; i++) {
        uint32_t k = w->state ? draw(w, i + 1) : i;
        order[i] = order[k];
        order[k] = i;
    }
    for (uint32_t i = 0; i < count; i++) put(w, "free", base + w->trace->events[from + order[i]].id, 0);
    free(order);
}

static size_t end_of_frees(const strata_trace_t *trace, size_t row, size_t end) {
    while (row < end && trace->events[row].op == STRATA_TRACE_free) row++;
    return row;
}

/* Rows from .. end of one repeat. */
static void put_rows(writing_t *w, size_t from, size_t end, uint64_t base) {
    for (size_t row = from; row < end;) {
        const strata_trace_event_t *event = &w->trace->events[row];
        size_t next = end_of_frees(w->trace, row, end);
        if (next > row) put_frees(w, row, next, base);
        else put(w, "alloc", base + event->id, event->value);
        row = next > row ? next : row + 1;
    }
}

/* What the program never frees. */
static void put_rest(writing_t *w, uint64_t base) {
    unsigned char *freed = calloc(w->trace->lifetimes + 1u, 1);
    if (!freed) abort();
    for (size_t row = 0; row < w->trace->count; row++)
        if (w->trace->events[row].op == STRATA_TRACE_free) freed[w->trace->events[row].id] = 1;
    for (uint32_t i = 0; i < w->trace->lifetimes; i++)
        if (!freed[i]) put(w, "free", base + i, 0);
    free(freed);
}

/* A step ends after `percent` of the program's rows: what is live there lives on into the next step. */
static strata_trace_t *repeated(const char *name, unsigned percent, bool mixed) {
    strata_trace_t *once = project_trace(name);
    writing_t w = {.trace = once, .state = mixed ? 7 : 0};
    if (!once) return NULL;
    size_t cut = once->count * percent / 100;
    w.text = calloc(1, w.capacity = 4096);
    if (!w.text) abort();
    w.length = (size_t)snprintf(w.text, w.capacity, "%s", COLUMNS);
    for (uint64_t k = 0; k < REPEATS; k++) {
        put_rows(&w, 0, cut, k * once->lifetimes);
        if (k > 0) put(&w, "step", 0, 0);
        put_rows(&w, cut, once->count, k * once->lifetimes);
        put_rest(&w, k * once->lifetimes);
    }
    strata_trace_t *trace = trace_of(w.text);
    free(w.text);
    strata_trace_delete(once);
    return trace;
}

static void expect_no_change(const kept_t *kept, const char *name, unsigned percent, bool mixed) {
    strata_trace_t *trace = repeated(name, percent, mixed);
    strata_strategy_t *strategy = strategy_of(kept->strategy, kept->set);
    strata_run_result_t r = replay_trace(trace, strategy, 0, LAG);
    EXPECT_EQ(r.figures.pointer_changes, 0);
    EXPECT_EQ(r.figures.failed_operations, 0);
    if (r.figures.pointer_changes) FAIL_TEST("%s, a step after %u %%%s", name, percent, mixed ? ", frees mixed" : "");
    strata_trace_delete(trace);
    strata_strategy_delete(strategy);
}

TEST_EACH(stable, a_repeating_program_keeps_its_addresses, kept_t, caches) {
    static const char *const names[] = {"alexnet-training.csv.gz", "lm-small-bf16-forward.csv.gz", "lm-benchmark-step.csv.gz"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (unsigned percent = 0; percent < 100; percent += 40)
            for (int mixed = 0; mixed < 2; mixed++) expect_no_change(row, names[i], percent, mixed);
}

typedef struct acting {
    const char *name, *options;
} acting_t;

static const acting_t acting[] = {
    {"auto_growth", "chunk_size: 2MiB, "}, {"caching", ""}, {"bfc", ""}, {"naive_best_fit", "fraction: 0.1, "},
    {"thread_local", "fraction: 0.1, "},
};

static uint64_t changes_with(const acting_t *cache, bool stable, const char *rows) {
    char text[256];
    snprintf(text, sizeof text, "stack: [%s: {%sstable_addresses: %s}, system]\n", cache->name, cache->options,
             stable ? "true" : "false");
    return replay_text(rows, text, (strata_run_options_t){.timeline = {.lag_ns = LAG}}).figures.pointer_changes;
}

/* After two steps a block of 400 KB goes, whose place is a better fit for what each step asks for. */
TEST_EACH(stable, a_better_place_moves_nothing, acting_t, acting) {
    static const char rows[] = COLUMNS "alloc,1,400000,0,0\nalloc,2,1000,0,0\nstep,,,,0\n"
                                       "alloc,3,300000,0,0\nfree,3,,0,0\nfree,1,,0,0\nstep,,,,0\n"
                                       "alloc,4,300000,0,0\nfree,4,,0,0\nstep,,,,0\n"
                                       "alloc,5,300000,0,0\nfree,5,,0,0\nstep,,,,0\n";
    EXPECT_EQ(changes_with(row, false, rows), 1);
    EXPECT_EQ(changes_with(row, true, rows), 0);
}

/* On three streams, with borrows; the GPU is in time. */
TEST(stable, so_does_one_of_several_streams) {
    const char *const set[] = {"auto_growth.stable_addresses=true", NULL};
    strata_run_result_t with = replay_named("streams-sharded-training.csv.gz", "strata-malloc", set, 0, LAG);
    strata_run_result_t without = replay_named("streams-sharded-training.csv.gz", "strata-malloc", NULL, 0, LAG);
    EXPECT_EQ(with.figures.pointer_changes, 0);
    EXPECT_GT(without.figures.pointer_changes, 0);
    EXPECT_LE(with.figures.peak_reserved_bytes, without.figures.peak_reserved_bytes);
}
