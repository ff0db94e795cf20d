/* The figures as JSON and for Prometheus. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/facade/support/fixture.h"

static char text[65536];

TEST_BY(facade_figures, json_has_every_figure_of_every_place_and_stream, rig_open(rig, "strata", NULL, 0, 0, 2)) {
    strata_stream_t stream = rig_stream(rig);
    (void)rig_allocate(rig, NULL, 1000);
    (void)rig_allocate(rig, stream, 5000);
    size_t needed = 0, again = 0;
    EXPECT_OK(strata_statistics_json(rig->s, text, sizeof text, &needed));
    EXPECT_EQ(needed, strlen(text) + 1);
    EXPECT_EQ(strncmp(text,
                      "{\"places\": [\n  {\"place\": \"gpu:0\", \"total\": {\"requested_bytes\": 6000, \"allocated_bytes\": 6144, ",
                      88),
              0);
    static const char *const parts[] = {"{\"place\": \"gpu:1\", ", "{\"place\": \"managed:0\", ", "{\"place\": \"pinned\", ",
                                        "{\"place\": \"host\", ",
                                        "{\"stream\": \"0x0\", \"thread\": 0, \"forgotten\": false, \"requested_bytes\": 1000, "};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) EXPECT_CONTAINS(text, parts[i]);
    char own[128];
    snprintf(own, sizeof own, "{\"stream\": \"0x%" PRIxPTR "\", \"thread\": 0, \"forgotten\": false, \"requested_bytes\": 5000, ",
             (uintptr_t)stream);
    EXPECT_CONTAINS(text, own);
#define EXPECT_FIELD(name, unit, kind, meaning) EXPECT_CONTAINS(text, "\"" #name "\": ");
    STRATA_STATISTICS_MAP(EXPECT_FIELD)
#undef EXPECT_FIELD
    EXPECT_STREQ(text + needed - 4, "]}\n");
    /* A short buffer gets the beginning, and the length of it all. */
    char few[20];
    EXPECT_OK(strata_statistics_json(rig->s, few, sizeof few, &again));
    EXPECT_EQ(again, needed);
    EXPECT_STREQ(few, "{\"places\": [\n  {\"pl");
    EXPECT_OK(strata_statistics_json(rig->s, NULL, 0, &again));
    EXPECT_EQ(again, needed);
}

TEST(facade_figures, prometheus_tells_counters_from_gauges) {
    rig_t rig;
    rig_open(&rig, "strata-malloc", NULL, 0, 0, 1);
    for (int i = 0; i < 3; i++) EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, NULL, 1000).ref));
    strata_block_t a = rig_allocate(&rig, NULL, 1000);
    size_t needed = 0;
    EXPECT_OK(strata_statistics_prometheus(rig.s, text, sizeof text, &needed));
    EXPECT_EQ(needed, strlen(text) + 1);
    EXPECT_CONTAINS(text, "# HELP strata_requested_bytes bytes that callers requested, of live allocations (bytes)\n"
                          "# TYPE strata_requested_bytes gauge\nstrata_requested_bytes{place=\"gpu:0\"} 1000\n"
                          "strata_requested_bytes{place=\"managed:0\"} 0\nstrata_requested_bytes{place=\"pinned\"} 0\n"
                          "strata_requested_bytes{place=\"host\"} 0\n");
    EXPECT_CONTAINS(text, "# TYPE strata_allocations_total counter\nstrata_allocations_total{place=\"gpu:0\"} 4\n");
    EXPECT_CONTAINS(text, "# TYPE strata_live_allocations gauge\nstrata_live_allocations{place=\"gpu:0\"} 1\n");
    EXPECT_CONTAINS(text, "strata_reserved_bytes{place=\"gpu:0\"} 20971520\n");
    /* Ten of the table's figures only grow. */
    int counters = 0;
    for (const char *at = text; (at = strstr(at, " counter\n")) != NULL; at++) counters++;
    EXPECT_EQ(counters, 10);
    EXPECT_OK(strata_free(rig.s, a.ref));
    strata_t closed = rig.s;
    rig_close(&rig);
    EXPECT_STATUS(STRATA_E_STALE, strata_statistics_json(closed, text, sizeof text, NULL));
    EXPECT_STATUS(STRATA_E_STALE, strata_statistics_prometheus(closed, text, sizeof text, NULL));
}

/* ---- what layers count for themselves ---- */

#define LAYERED                                                                                                                    \
    "version: 1\nstrategy: layered\ndevices: sim\nstack:\n  - stream_safe\n  - auto_growth: {chunk_size: 2MiB}\n"                  \
    "  - stat: {name: below}\n  - limit: {bytes: 50MiB}\n  - system\n"

typedef struct told {
    char lines[4096];
    size_t length;
} told_t;

static void note(const strata_layer_figure_t *figure, void *context) {
    told_t *told = context;
    EXPECT_TRUE(*figure->meaning);
    told->length += (size_t)snprintf(told->lines + told->length, sizeof told->lines - told->length, "%u %s/%s%s%s %s %s=%llu\n",
                                     figure->number, figure->layer, figure->type, figure->shared ? " shared" : "",
                                     figure->stream ? " stream" : "", figure->unit, figure->name,
                                     (unsigned long long)figure->value);
}

/* `stat` below a cache counts chunks, above one it is left out of hits: there its figures are made when they are asked for. */
TEST_RIG(facade_figures, each_layer_tells_its_own_of_each_stream_and_a_shared_one_once, 0, LAYERED) {
    strata_stream_t stream = rig_stream(rig);
    (void)rig_allocate(rig, NULL, MIB);
    (void)rig_allocate(rig, stream, 3 * MIB);
    told_t told = {.length = 0};
    EXPECT_OK(strata_layer_figures(rig->s, rig->gpu, note, &told));
    EXPECT_STREQ(told.lines, "4 limit/limit shared bytes limit_bytes=52428800\n4 limit/limit shared bytes used_bytes=5242880\n"
                             "4 limit/limit shared bytes peak_bytes=5242880\n4 limit/limit shared count refused=0\n"
                             "5 system/system shared bytes oversubscribed=0\n5 system/system shared count refused_by_cap=0\n"
                             "5 system/system shared count refused_hints=0\n"
                             "2 auto_growth/auto_growth bytes idle_bytes=1048576\n"
                             "3 below/stat bytes current_bytes=2097152\n3 below/stat bytes peak_bytes=2097152\n"
                             "3 below/stat count live=1\n3 below/stat count served=1\n"
                             "2 auto_growth/auto_growth stream bytes idle_bytes=0\n"
                             "3 below/stat stream bytes current_bytes=3145728\n3 below/stat stream bytes peak_bytes=3145728\n"
                             "3 below/stat stream count live=1\n3 below/stat stream count served=1\n");
    EXPECT_STATUS(STRATA_E_INVALID, strata_layer_figures(rig->s, strata_place((strata_place_kind_t)9, 0), note, &told));
    EXPECT_OK(strata_statistics_json(rig->s, text, sizeof text, NULL));
    EXPECT_CONTAINS(text, "\"layers\": [{\"layer\": \"auto_growth\", \"type\": \"auto_growth\", \"number\": 2, \"figures\": "
                          "{\"idle_bytes\": 1048576}}, {\"layer\": \"below\", \"type\": \"stat\", \"number\": 3, \"figures\": "
                          "{\"current_bytes\": 2097152, \"peak_bytes\": 2097152, \"live\": 1, \"served\": 1}}]},\n");
    EXPECT_CONTAINS(text, "}], \"layers\": [{\"layer\": \"limit\", \"type\": \"limit\", \"number\": 4, \"figures\": "
                          "{\"limit_bytes\": 52428800, \"used_bytes\": 5242880, \"peak_bytes\": 5242880, \"refused\": 0}}, ");
    EXPECT_OK(strata_statistics_prometheus(rig->s, text, sizeof text, NULL));
    EXPECT_CONTAINS(text, "# HELP strata_layer_stat_current_bytes live bytes served here, rounding included "
                          "(bytes)\n# TYPE strata_layer_stat_current_bytes gauge\n"
                          "strata_layer_stat_current_bytes{place=\"gpu:0\",layer=\"below\",number=\"3\"} 5242880\n");
    EXPECT_CONTAINS(text, "strata_layer_limit_used_bytes{place=\"gpu:0\",layer=\"limit\",number=\"4\"} 5242880\n");
    EXPECT_CONTAINS(text, "strata_layer_auto_growth_idle_bytes{place=\"gpu:0\",layer=\"auto_growth\",number=\"2\"} 1048576\n");
    EXPECT_CONTAINS(text, "strata_layer_system_oversubscribed{place=\"gpu:0\",layer=\"system\",number=\"5\"} 0\n");
    EXPECT_LACKS(text, "strata_layer_guard");
}

TEST_RIG(facade_figures, figures_of_a_layer_that_hits_leave_out_are_made_when_they_are_read, 0,
         "version: 1\nstrategy: above\ndevices: sim\nstack:\n  - stat\n  - auto_growth: {chunk_size: 2MiB}\n"
         "  - system\n") {
    (void)rig_allocate(rig, NULL, 1000);
    strata_block_t b = rig_allocate(rig, NULL, 1000);
    EXPECT_OK(strata_free(rig->s, b.ref));
    told_t told = {.length = 0};
    EXPECT_OK(strata_layer_figures(rig->s, rig->gpu, note, &told));
    EXPECT_CONTAINS(told.lines, "1 stat/stat bytes current_bytes=1024\n1 stat/stat bytes peak_bytes=2048\n"
                                "1 stat/stat count live=1\n1 stat/stat count served=2\n");
}

/* A sample or its help stands once, however many places, layers and streams there are, and no line is empty. */
TEST_BY(facade_figures, prometheus_has_no_sample_twice, rig_open(rig, LAYERED, NULL, 0, 0, 2)) {
    (void)rig_allocate(rig, NULL, MIB);
    (void)rig_allocate(rig, rig_stream(rig), MIB);
    EXPECT_OK(strata_statistics_prometheus(rig->s, text, sizeof text, NULL));
    for (char *line = text, *end; *line; line = end + 1) {
        char key[512];
        end = strchr(line, '\n');
        ASSERT_NE(end, NULL);
        const char *key_end = *line == '#' ? strchr(strchr(line + 2, ' ') + 1, ' ') : strchr(line, '}');
        size_t length = (size_t)(key_end - line);
        ASSERT_TRUE(length > 8 && length < sizeof key - 2);
        snprintf(key, sizeof key, "\n%.*s%c", (int)length, line, line[length]);
        EXPECT_LACKS(end, key);
    }
}

/* Figures are read while others allocate, borrow and free: a stream's are of one moment, so that totals belong together. */
typedef struct busy {
    pthread_t thread;
    rig_t *rig;
    strata_stream_t stream, other;
    _Atomic bool *stop;
    uint64_t done;
} busy_t;

static void *keep_busy(void *context) {
    busy_t *busy = context;
    while (!atomic_load(busy->stop) || busy->done < 100) {
        strata_block_t b;
        if (strata_allocate(busy->rig->s, busy->rig->gpu, busy->stream, MIB, &b) != STRATA_OK) return busy;
        /* Where no layer knows borrows the free waits for the stream. */
        strata_status_t borrowed = busy->done % 16 ? STRATA_OK : strata_record_stream(busy->rig->s, b.ref, busy->other);
        if (borrowed != STRATA_OK) return busy;
        if (strata_free(busy->rig->s, b.ref) != STRATA_OK) return busy;
        busy->done++;
    }
    return NULL;
}

/* The figure of a name in the next object that has it; moves *at after it. */
static uint64_t next_figure(const char **at, const char *name) {
    char key[64];
    snprintf(key, sizeof key, "\"%s\": ", name);
    const char *found = strstr(*at, key);
    if (!found) FAIL_TEST("no %s in %s", name, *at);
    if (!found) return 0;
    char *end;
    uint64_t value = strtoull(found + strlen(key), &end, 10);
    *at = end;
    return value;
}

/* Each thread has one block of a MiB at most. Answers how many allocations there were. */
static uint64_t expect_totals(const char *json, uint64_t before) {
    const char *at = json;
    uint64_t requested = next_figure(&at, "requested_bytes"), allocated = next_figure(&at, "allocated_bytes");
    uint64_t allocations = next_figure(&at, "allocations"), frees = next_figure(&at, "frees");
    uint64_t live = next_figure(&at, "live_allocations");
    EXPECT_LE(live, 2);
    EXPECT_EQ(allocations - frees, live);
    EXPECT_EQ(requested, live * MIB);
    EXPECT_GE(allocated, requested);
    EXPECT_GE(allocations, before);
    return allocations;
}

static void expect_sums(const char *json, uint64_t done) {
    EXPECT_EQ(expect_totals(json, done), done);
    const char *at = strstr(json, "\"streams\": "), *end = at ? strstr(at, "\"pools\": ") : NULL;
    ASSERT_TRUE(end);
    uint64_t of_streams = 0;
    while ((at = strstr(at, "{\"stream\": ")) && at < end) of_streams += next_figure(&at, "allocations");
    EXPECT_EQ(of_streams, done);
}

static void read_while_busy(const char *layers) {
    static char json[65536], strategy[1024];
    _Atomic bool stop = false;
    snprintf(strategy, sizeof strategy, "version: 1\nstrategy: busy\ndevices: sim\nstack: %s\n", layers);
    RIG(rig, strategy, 0);
    busy_t threads[2] = {{.rig = &rig, .stop = &stop}, {.rig = &rig, .stop = &stop}};
    for (int i = 0; i < 2; i++) threads[i].stream = rig_stream(&rig);
    for (int i = 0; i < 2; i++) {
        threads[i].other = threads[1 - i].stream;
        ASSERT_EQ(pthread_create(&threads[i].thread, NULL, keep_busy, &threads[i]), 0);
    }
    uint64_t seen = 0;
    for (int i = 0; i < 200; i++) {
        size_t needed = 0;
        EXPECT_OK(strata_statistics_json(rig.s, json, sizeof json, &needed));
        EXPECT_LT(needed, sizeof json);
        EXPECT_STREQ(json + needed - 4, "]}\n");
        seen = expect_totals(json, seen);
        EXPECT_OK(strata_statistics_prometheus(rig.s, json, sizeof json, &needed));
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++) {
        void *failed = NULL;
        ASSERT_EQ(pthread_join(threads[i].thread, &failed), 0);
        EXPECT_EQ(failed, NULL);
    }
    EXPECT_OK(strata_statistics_json(rig.s, json, sizeof json, NULL));
    expect_sums(json, threads[0].done + threads[1].done);
}

TEST(facade_figures, are_read_while_others_are_busy) {
    read_while_busy("[stat, guard: {report: false}, stream_safe, auto_growth, stat: {name: chunks}, limit: {bytes: 1GiB}, system]");
    read_while_busy("[retry, scrub, trace: {path: none}, fallback: {stacks: [[buffered, fault, system], [system]]}]");
    read_while_busy("[stat, cuda_malloc_async]");
}
