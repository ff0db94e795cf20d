/* A trace that is replayed while it is read: the figures are those of the whole trace, whenever its rows come. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/replay/support/helpers.h"

enum { ROWS = 40000, FIRST = 20480, LIVE = 200, BYTES = 4 << 20, CANDIDATES = 6, REPEATS = 2 };

static const char *const presets[CANDIDATES] = {"strata", "pytorch", "cuda_malloc_async", "system", "paddle-vmm", "tensorflow"};

/* ---- programs ---------------------------------------------------------------------------------------------------------- */

typedef struct text {
    char *bytes;
    size_t count;
    size_t rows, first; /* bytes of the first FIRST rows */
    size_t id, time_us;
} text_t;

static STRATA_PRINTF(2, 3) void add(text_t *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    text->count += (size_t)vsnprintf(text->bytes + text->count, BYTES - text->count, format, arguments);
    va_end(arguments);
    if (++text->rows == FIRST) text->first = text->count;
    text->time_us += 3;
}

static text_t begin(void) {
    text_t text = {.bytes = malloc(BYTES)};
    text.count = (size_t)sprintf(text.bytes, "op,id,size,stream,time_us,dur_us,other,device,place,pool\n");
    return text;
}

static size_t stream_of(size_t id) { return id / 64 % 3; }

/* The oldest is freed when there are enough. */
static void add_block(text_t *text) {
    size_t id = text->id++, size = id % 50 ? 512 * (1 + id * 7919 % 977) : 20 << 20;
    add(text, "alloc,%zu,%zu,%zu,%zu,,,,,\n", id, size, stream_of(id), text->time_us);
    if (id >= LIVE) add(text, "free,%zu,,%zu,%zu,,,,,\n", id - LIVE, stream_of(id - LIVE), text->time_us);
}

/* Streams borrow from each other, steps end. */
static text_t lending(size_t rows) {
    text_t text = begin();
    add(&text, "step,,,,%zu,,,,,\n", text.time_us);
    while (text.rows < rows) {
        add_block(&text);
        if (text.id % 7 == 0) add(&text, "borrow,%zu,,%zu,%zu,,,,,\n", text.id - 1, (stream_of(text.id) + 1) % 3, text.time_us);
        if (text.id % 900 == 0) add(&text, "step,,,,%zu,,,,,\n", text.time_us);
    }
    return text;
}

/* Kernels of one row and of many, one of them with rows on both sides of where pieces end. */
static text_t working(size_t rows) {
    text_t text = begin();
    while (text.rows < rows) {
        add_block(&text);
        add(&text, "work,%zu,,%zu,%zu,40,,,,\n", text.id - 1, stream_of(text.id), text.time_us);
        if (text.id % 50 == 0) add(&text, "wait,,,%d,%zu,,%d,,,\n", 0, text.time_us, 1);
        if (text.rows < 16000 || text.rows > 16004) continue;
        for (size_t at = text.time_us, i = 0; i < 9000; i++) add(&text, "work,%zu,,0,%zu,5000,,,,\n", text.id - 1 - i % 100, at);
    }
    return text;
}

/* ---- reading slowly ---------------------------------------------------------------------------------------------------- */

/* The first rows come at once, the others when some of these have been carried out. */
typedef struct source {
    const text_t *text;
    int pipe;
    atomic_bool go, over;
} source_t;

static bool give(source_t *source, size_t from, size_t to) {
    while (from < to) {
        ssize_t written = write(source->pipe, source->text->bytes + from, to - from);
        if (written > 0) from += (size_t)written;
        else if (atomic_load(&source->over)) return false;
        else sched_yield();
    }
    return true;
}

static void *give_all(void *context) {
    source_t *source = context;
    size_t first = source->text->first;
    bool good = give(source, 0, first);
    while (good && !atomic_load(&source->go) && !atomic_load(&source->over)) sched_yield();
    if (good) good = give(source, first, source->text->count);
    close(source->pipe);
    return good ? source : NULL;
}

static void see(void *context, const char *what, const char *label, uint64_t done, uint64_t all) {
    source_t *source = context;
    (void)what, (void)label, (void)all;
    if (done > 0) atomic_store(&source->go, true);
}

typedef struct slow {
    source_t source;
    pthread_t thread;
    strata_trace_feed_t *feed;
} slow_t;

static void slow_begin(slow_t *slow, const text_t *text) {
    char path[512];
    snprintf(path, sizeof path, "%s", temporary("slow"));
    ASSERT_EQ(mkfifo(path, 0600), 0);
    slow->source = (source_t){.text = text, .pipe = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)};
    ASSERT_EQ(pthread_create(&slow->thread, NULL, give_all, &slow->source), 0);
    EXPECT_OK(strata_trace_feed_begin(path, &slow->feed));
}

static void slow_end(slow_t *slow) {
    void *good;
    atomic_store(&slow->source.over, true);
    pthread_join(slow->thread, &good);
    EXPECT_NE(good, NULL);
    EXPECT_EQ(unlink(temporary("slow")), 0);
}

/* ---- comparing --------------------------------------------------------------------------------------------------------- */

typedef struct comparing {
    strata_strategy_t *strategies[CANDIDATES];
    strata_candidate_t candidates[CANDIDATES];
    strata_comparison_t comparison;
    strata_run_result_t results[CANDIDATES];
} comparing_t;

static comparing_t *comparing_begin(uint32_t threads) {
    comparing_t *made = calloc(1, sizeof *made);
    for (size_t i = 0; i < CANDIDATES; i++) {
        made->strategies[i] = strategy_of(presets[i], NULL);
        made->candidates[i] = (strata_candidate_t){
            .label = presets[i], .strategy = made->strategies[i], .target = {.profile = strata_sim_profile("h100")}};
    }
    made->comparison = (strata_comparison_t){.candidates = made->candidates,
                                             .candidate_count = CANDIDATES,
                                             .timeline = {.lag_ns = LAG},
                                             .repeat = REPEATS,
                                             .threads = threads};
    EXPECT_TRUE(strata_compare_may_feed(&made->comparison));
    return made;
}

static void comparing_cleanup(comparing_t **comparing) {
    for (size_t i = 0; i < CANDIDATES; i++) strata_strategy_delete((*comparing)->strategies[i]);
    free(*comparing);
}

/* All but the host's time, and the name of the file. */
static char *json_of(const comparing_t *comparing) {
    char path[512];
    size_t length = 0;
    strata_figures_t figures[CANDIDATES];
    strata_output_t *out = NULL;
    for (size_t i = 0; i < CANDIDATES; i++) {
        figures[i] = comparing->results[i].figures;
        EXPECT_EQ(figures[i].host_ns_per_op.count, REPEATS);
        figures[i].host_ns_per_op = (strata_figure_spread_t){.count = 0};
        figures[i].trace = "";
    }
    snprintf(path, sizeof path, "%s", temporary("fed.json"));
    EXPECT_OK(strata_output_open(path, &out));
    if (!out) return NULL;
    strata_figures_json(out, figures, CANDIDATES);
    EXPECT_OK(strata_output_finish(out));
    char *text = read_bytes(path, &length);
    if (text) text[length] = '\0';
    return text;
}

static char *figures_of_whole(const text_t *text) {
    comparing_t *comparing CLOSED_BY(comparing_cleanup) = comparing_begin(1);
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = NULL;
    EXPECT_OK(strata_trace_load(write_file("whole.csv", text->bytes, text->count), &trace));
    EXPECT_OK(strata_compare(&comparing->comparison, trace, comparing->results));
    return json_of(comparing);
}

static char *figures_of_file(uint32_t threads) {
    comparing_t *comparing CLOSED_BY(comparing_cleanup) = comparing_begin(threads);
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = NULL;
    strata_trace_feed_t *feed;
    EXPECT_OK(strata_trace_feed_begin(temporary("whole.csv"), &feed));
    EXPECT_OK(strata_compare_feed(&comparing->comparison, feed, &trace, comparing->results));
    return json_of(comparing);
}

static char *figures_of_slow(const text_t *text, uint32_t threads) {
    comparing_t *comparing CLOSED_BY(comparing_cleanup) = comparing_begin(threads);
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = NULL;
    slow_t slow;
    slow_begin(&slow, text);
    comparing->comparison.progress = see;
    comparing->comparison.progress_context = &slow.source;
    EXPECT_OK(strata_compare_feed(&comparing->comparison, slow.feed, &trace, comparing->results));
    slow_end(&slow);
    return json_of(comparing);
}

static void expect_the_same(const text_t *text, uint32_t threads) {
    char *whole CLOSED_BY(text_cleanup) = figures_of_whole(text);
    char *file CLOSED_BY(text_cleanup) = figures_of_file(threads), *slow CLOSED_BY(text_cleanup) = figures_of_slow(text, threads);
    EXPECT_STREQ(whole, file);
    EXPECT_STREQ(whole, slow);
}

TEST(fed, figures_are_those_of_the_whole_trace) {
    text_t lends = lending(ROWS), works = working(ROWS);
    for (uint32_t threads = 1; threads <= CANDIDATES; threads += CANDIDATES - 1) {
        expect_the_same(&lends, threads);
        expect_the_same(&works, threads);
    }
    free(lends.bytes);
    free(works.bytes);
}

/* It is launched once, and the program ends before it can make up for what a second launch would cost. */
TEST(fed, a_kernel_that_comes_in_two_pieces_is_one) {
    text_t text = working(15000);
    while (text.rows < FIRST - 100) add_block(&text);
    for (size_t at = text.time_us, i = 0; i < 300; i++) add(&text, "work,%zu,,0,%zu,1,,,,\n", text.id - 1 - i % 100, at);
    expect_the_same(&text, CANDIDATES);
    free(text.bytes);
}

/* ---- rows that change the whole ---------------------------------------------------------------------------------------- */

static void see_rows(void *context, uint64_t rows) { see(context, "", "", rows, 0); }

static bool outgrows(const text_t *text) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = strategy_of("strata", NULL);
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = NULL;
    strata_run_result_t *result = calloc(1, sizeof *result);
    bool outgrown = false;
    slow_t slow;
    slow_begin(&slow, text);
    strata_run_options_t options = {.target = {.profile = strata_sim_profile("h100")},
                                    .timeline = {.lag_ns = LAG},
                                    .progress = see_rows,
                                    .progress_context = &slow.source};
    EXPECT_OK(strata_run_feed(slow.feed, strategy, &options, &outgrown, result));
    EXPECT_OK(strata_trace_feed_finish(slow.feed, &trace));
    slow_end(&slow);
    free(result);
    return outgrown;
}

TEST(fed, a_row_that_changes_what_holds_of_the_whole_begins_the_run_again) {
    static const char *const rows[] = {
        "alloc,900000,512,3,%zu,,,,,\n", /* a stream */
        "alloc,900000,512,0,%zu,,,,,7\n", /* a pool */
        "alloc,900000,512,0,%zu,,,,pinned,\n", /* a place */
        "alloc,900000,512,0,%zu,,,1,,\n", /* a device */
        "step,,,,%zu,,,,,\n",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        text_t text = working(FIRST + 5000);
        EXPECT_FALSE(outgrows(&text));
        text.count += (size_t)snprintf(text.bytes + text.count, 100, rows[i], text.time_us);
        EXPECT_TRUE(outgrows(&text));
        if (i == 0) expect_the_same(&text, CANDIDATES); /* whatever it was, the whole is run */
        free(text.bytes);
    }
    text_t many = lending(FIRST + 5000);
    for (size_t i = 0; i < 1000; i++) add(&many, "alloc,%zu,512,%zu,%zu,,,,,\n", 900000 + i, 100 + i, many.time_us);
    EXPECT_TRUE(outgrows(&many));
    expect_the_same(&many, CANDIDATES);
    free(many.bytes);
    text_t text = lending(FIRST + 5000);
    add(&text, "work,,,0,%zu,40,,,,\n", text.time_us);
    EXPECT_TRUE(outgrows(&text));
    expect_the_same(&text, CANDIDATES);
    free(text.bytes);
}

/* ---- failures ---------------------------------------------------------------------------------------------------------- */

TEST(fed, a_wrong_row_at_the_end_is_reported_as_a_load_does) {
    comparing_t *comparing CLOSED_BY(comparing_cleanup) = comparing_begin(CANDIDATES);
    strata_trace_t *trace = NULL;
    strata_trace_feed_t *feed;
    char said[4096];
    text_t text = lending(ROWS);
    add(&text, "free,0,,0,%zu,,,,,\n", text.time_us);
    EXPECT_STATUS(STRATA_E_FORMAT, strata_trace_load(write_file("whole.csv", text.bytes, text.count), &trace));
    snprintf(said, sizeof said, "%s", strata_last_error()->text);
    ASSERT_OK(strata_trace_feed_begin(temporary("whole.csv"), &feed));
    EXPECT_SAYS(STRATA_E_FORMAT, strata_compare_feed(&comparing->comparison, feed, &trace, comparing->results), said);
    EXPECT_EQ(trace, NULL);
    free(text.bytes);
}

typedef struct doomed {
    slow_t slow;
    uint32_t told;
} doomed_t;

/* Goes on once the reader has seen the wrong row. */
static void let_it_be_seen(void *context, uint64_t rows) {
    doomed_t *doomed = context;
    doomed->told++;
    see_rows(&doomed->slow.source, rows);
    while (strata_trace_feed_state(doomed->slow.feed) == STRATA_OK) sched_yield();
}

TEST(fed, a_wrong_row_ends_the_run_before_the_rows_that_came_before_it) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = strategy_of("strata", NULL);
    strata_trace_t *trace = NULL;
    strata_run_result_t *result = calloc(1, sizeof *result);
    bool outgrown;
    text_t text = lending(FIRST);
    text.first = text.count;
    add(&text, "free,0,,0,%zu,,,,,\n", text.time_us);
    doomed_t doomed = {.told = 0};
    slow_begin(&doomed.slow, &text);
    strata_run_options_t options = {.target = {.profile = strata_sim_profile("h100")},
                                    .timeline = {.lag_ns = LAG},
                                    .progress = let_it_be_seen,
                                    .progress_context = &doomed};
    EXPECT_STATUS(STRATA_E_FORMAT, strata_run_feed(doomed.slow.feed, strategy, &options, &outgrown, result));
    EXPECT_EQ(doomed.told, 1);
    EXPECT_STATUS(STRATA_E_FORMAT, strata_trace_feed_finish(doomed.slow.feed, &trace));
    slow_end(&doomed.slow);
    free(result);
    free(text.bytes);
}

TEST(fed, a_strategy_that_has_too_little_ends_it) {
    comparing_t *comparing CLOSED_BY(comparing_cleanup) = comparing_begin(1);
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = strategy_of(
        "stack: [stream_safe, auto_growth: {preallocate: 1GiB}, system]\n", NULL);
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = NULL;
    strata_trace_feed_t *feed;
    text_t text = lending(ROWS);
    comparing->candidates[2].strategy = strategy;
    comparing->candidates[2].target.capacity = GIB - MIB;
    ASSERT_OK(strata_trace_feed_begin(write_file("whole.csv", text.bytes, text.count), &feed));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_compare_feed(&comparing->comparison, feed, &trace, comparing->results));
    EXPECT_NE(trace, NULL);
    free(text.bytes);
}

TEST(fed, real_devices_and_those_who_watch_need_the_whole_trace) {
    comparing_t *comparing CLOSED_BY(comparing_cleanup) = comparing_begin(1);
    strata_run_follow_t follow = {.context = NULL};
    comparing->comparison.check = true;
    EXPECT_FALSE(strata_compare_may_feed(&comparing->comparison));
    comparing->comparison.check = false;
    comparing->comparison.follow = &follow;
    EXPECT_FALSE(strata_compare_may_feed(&comparing->comparison));
    comparing->comparison.follow = NULL;
    comparing->candidates[3].target.profile = NULL;
    EXPECT_FALSE(strata_compare_may_feed(&comparing->comparison));
}
