/* The page of a comparison: what is in it, whatever names say, and that it stays small. */
#include "lab/replay/report/report.h"

#include <stdlib.h>

#include "lab/replay/compare/compare.h"
#include "lab/replay/report/parts.h"
#include "platform/host/host_memory.h"
#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/replay/support/helpers.h"
#include "tests/replay/support/json_read.h"

enum { MOST = 4, SUMS = 1 << 14 };

typedef struct made {
    strata_status_t status;
    char *text;
    const char *data; /* the JSON in it */
    strata_run_result_t results[MOST];
} made_t;

static void made_cleanup(made_t **made) {
    if (*made) free((*made)->text);
    free(*made);
}

/* Replays a run once more up to its peak. */
static strata_status_t take_map(const strata_trace_t *trace, const strata_candidate_t *candidate, strata_page_run_t *run) {
    static strata_run_result_t result;
    strata_run_options_t options = {.target = candidate->target,
                                    .timeline = {.lag_ns = LAG},
                                    .rows = run->result->peak_row,
                                    .inspect = strata_map_fill,
                                    .inspect_context = &run->map};
    if (options.rows == 0) return STRATA_OK;
    strata_status_t status = strata_run(trace, candidate->strategy, &options, &result);
    return status == STRATA_OK ? run->map.status : status;
}

static strata_status_t write_page(const char *path, strata_page_t *page, const strata_figures_t *figures) {
    const strata_findings_t findings = {.runs = figures, .candidates = page->candidates, .traces = page->count / page->candidates};
    strata_output_t *out;
    strata_status_t status = strata_output_open(path, &out);
    if (status != STRATA_OK) return status;
    status = strata_page_write(out, page, &findings);
    if (status == STRATA_OK) return strata_output_finish(out);
    strata_output_abandon(out);
    return status;
}

static strata_status_t fill(made_t *made, const strata_trace_t *trace, const strata_candidate_t *candidates, size_t count,
                            const char *path) {
    strata_page_t page;
    strata_figures_t figures[MOST];
    strata_status_t status = strata_page_begin(&page, 1, count);
    if (status != STRATA_OK) return status;
    strata_comparison_t comparison = {.candidates = candidates,
                                      .candidate_count = count,
                                      .timeline = {.lag_ns = LAG},
                                      .repeat = 1,
                                      .follow = strata_page_follow(&page, 0, trace)};
    status = strata_compare(&comparison, trace, made->results);
    for (size_t i = 0; i < count && status == STRATA_OK; i++) {
        figures[i] = made->results[i].figures;
        page.runs[i].result = &made->results[i];
        status = take_map(trace, &candidates[i], &page.runs[i]);
    }
    if (status == STRATA_OK) status = write_page(path, &page, figures);
    strata_page_end(&page);
    return status;
}

static made_t *make(const strata_trace_t *trace, const strata_candidate_t *candidates, size_t count) {
    char path[512];
    size_t bytes = 0;
    made_t *made = calloc(1, sizeof *made);
    snprintf(path, sizeof path, "%s", temporary("page.html"));
    made->status = fill(made, trace, candidates, count, path);
    made->text = made->status == STRATA_OK ? read_bytes(path, &bytes) : NULL;
    if (!made->text) return made;
    made->text[bytes] = '\0';
    made->data = strstr(made->text, "id=\"data\">");
    made->data = made->data ? made->data + strlen("id=\"data\">") : NULL;
    return made;
}

static strata_candidate_t candidate_of(const strata_strategy_t *strategy, const char *label, uint64_t capacity) {
    return (strata_candidate_t){
        .label = label, .strategy = strategy, .target = {.profile = strata_sim_profile("h100"), .capacity = capacity}};
}

/* A page of two presets; the strategies live as long as the process. */
static made_t *make_two(const strata_trace_t *trace, const char *a, const char *b, uint64_t capacity) {
    strata_strategy_t *strategies[] = {strategy_of(a, NULL), strategy_of(b, NULL)};
    strata_candidate_t candidates[] = {candidate_of(strategies[0], a, capacity), candidate_of(strategies[1], b, capacity)};
    made_t *made = trace && strategies[0] && strategies[1] ? make(trace, candidates, 2) : NULL;
    strata_strategy_delete(strategies[0]);
    strata_strategy_delete(strategies[1]);
    return made;
}

static size_t occurrences(const char *text, const char *part) {
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part)) count++;
    return count;
}

static void expect_page(const made_t *made) {
    ASSERT_OK(made->status);
    ASSERT_TRUE(made->text && made->data);
    EXPECT_EQ(strncmp(made->text, STRATA_PAGE_MARK, strlen(STRATA_PAGE_MARK)), 0);
    EXPECT_CONTAINS(made->text + strlen(made->text) - 10, "</html>\n");
    const char *end = json_after(made->data);
    EXPECT_TRUE(end && strncmp(end, "</script>", 9) == 0);
    EXPECT_EQ(occurrences(made->text, "<script"), 2);
    EXPECT_EQ(occurrences(made->text, "</script"), 2);
    EXPECT_EQ(occurrences(made->text, "@SCRIPT"), 0);
    EXPECT_EQ(occurrences(made->text, "http:"), 0);
    EXPECT_EQ(occurrences(made->text, "https:"), 0);
}

/* ---- what is in it ---- */

static void expect_curves(const made_t *made, const char *number) {
    static double row[SUMS], low[SUMS], more[SUMS];
    const char *run = JSON_AT(made->data, "runs", number), *figures = JSON_AT(made->data, "figures", "runs", number);
    static const char *const curves[][2] = {{"requested", "peak_requested_bytes"},
                                            {"allocated", "peak_allocated_bytes"},
                                            {"reserved", "peak_reserved_bytes"},
                                            {"deferred", "deferred_peak_bytes"}};
    size_t count = json_sums(JSON_AT(run, "columns", "row"), row, SUMS);
    EXPECT_GT(count, 10);
    for (size_t i = 1; i < count; i++) EXPECT_GT(row[i], row[i - 1]);
    for (size_t c = 0; c < sizeof curves / sizeof *curves; c++) {
        double most = 0;
        EXPECT_EQ(json_sums(JSON_AT(run, "columns", curves[c][0], "low"), low, SUMS), count);
        EXPECT_EQ(json_sums(JSON_AT(run, "columns", curves[c][0], "more"), more, SUMS), count);
        for (size_t i = 0; i < count; i++) most = low[i] + more[i] > most ? low[i] + more[i] : most;
        EXPECT_EQ(JSON_NUMBER(run, "peaks", curves[c][0], "bytes"), most);
        /* The figure also counts what lasts for a part of a row, except of reserved bytes, where the curve has it too. */
        if (c < 3) EXPECT_EQ(JSON_NUMBER(figures, curves[c][1]), most);
        else EXPECT_LE(most, JSON_NUMBER(figures, curves[c][1]));
    }
}

/* Calls and waits are those of the figures. */
static void expect_costs(const made_t *made, size_t index, const char *number) {
    static double cost[SUMS];
    const strata_figures_t *figures = &made->results[index].figures;
    const char *run = JSON_AT(made->data, "runs", number), *calls = json_member(run, "calls"), *call;
    double own = 0, waits = JSON_NUMBER(run, "waits_between_ns");
    for (size_t i = 0; (call = json_item(calls, i)) != NULL; i++) {
        own += JSON_NUMBER(call, "ns") - JSON_NUMBER(call, "waited_ns");
        waits += JSON_NUMBER(call, "waited_ns");
    }
    EXPECT_NEAR(own / 1e6, figures->device_call_ms, 1e-3);
    EXPECT_NEAR(waits / 1e6, figures->stall_ms, 1e-3);
    for (int i = 0; i < STRATA_DEVICE_CALLS; i++)
        if (strata_device_call_shown((strata_device_call_t)i))
            EXPECT_EQ(made->results[index].ledger.made[i], figures->device_calls.made[i]);
    size_t count = json_sums(JSON_AT(run, "columns", "cost_us"), cost, SUMS);
    ASSERT_GT(count, 0);
    EXPECT_NEAR(cost[count - 1] / 1e3, figures->device_call_ms + figures->stall_ms, 2e-3);
}

typedef struct pair {
    const char *name, *trace, *a, *b;
} pair_t;

static const pair_t pairs[] = {
    {"training", "lm-benchmark-step.csv.gz", "pytorch", "strata"},
    {"streams", "streams-sharded-training.csv.gz", "strata", "system"},
    {"vmm", "streams-sharded-training.csv.gz", "pytorch-expandable", "paddle-vmm"},
};

TEST_EACH(page, agrees_with_the_figures, pair_t, pairs) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = project_trace(row->trace);
    made_t *made CLOSED_BY(made_cleanup) = make_two(trace, row->a, row->b, 0);
    ASSERT_TRUE(made != NULL);
    expect_page(made);
    if (!made->data) return;
    for (size_t i = 0; i < 2; i++) {
        expect_curves(made, i ? "#1" : "#0");
        expect_costs(made, i, i ? "#1" : "#0");
    }
    EXPECT_EQ(JSON_NUMBER(made->data, "traces", "#0", "rows"), trace->count);
    EXPECT_CONTAINS(made->text, "peak_reserved_bytes"); /* in the table for readers without scripts */
}

/* ---- the map ---- */

static double bytes_of_map(const char *map, size_t *rows) {
    double sum = JSON_NUMBER(map, "rest", "live") + JSON_NUMBER(map, "rest", "free") + JSON_NUMBER(map, "rest", "waiting");
    const char *chunk, *row;
    *rows = 0;
    for (size_t i = 0; (chunk = json_item(json_member(map, "chunks"), i)) != NULL; i++) {
        (*rows)++;
        for (size_t k = 0; (row = json_item(json_member(chunk, "rows"), k)) != NULL; k++) {
            sum += JSON_NUMBER(row, "#0");
            (*rows)++;
        }
    }
    return sum;
}

static char *map_of(const strata_page_run_t *run, size_t most) {
    char path[512];
    size_t count = 0;
    strata_output_t *out;
    snprintf(path, sizeof path, "%s", temporary("map.json"));
    if (strata_output_open(path, &out) != STRATA_OK) return NULL;
    strata_page_room_t room = strata_page_room(1);
    room.rows = most;
    EXPECT_OK(strata_page_blocks(out, run, &room));
    EXPECT_OK(strata_output_finish(out));
    char *text = read_bytes(path, &count);
    if (text) text[count] = '\0';
    return text;
}

/* However few rows there may be, every byte stays. */
TEST(page, a_map_of_few_rows_has_every_byte) {
    static strata_run_result_t result;
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = project_trace("lm-benchmark-step.csv.gz");
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = strategy_of("pytorch", NULL);
    ASSERT_TRUE(trace && strategy);
    result = replay_trace(trace, strategy, 0, LAG);
    strata_candidate_t candidate = candidate_of(strategy, "pytorch", 0);
    strata_page_run_t run = {.trace = trace, .result = &result};
    ASSERT_OK(take_map(trace, &candidate, &run));
    static const size_t mosts[] = {100000, 300, 40, 3, 0};
    for (size_t i = 0; i < sizeof mosts / sizeof *mosts; i++) {
        size_t rows = 0;
        char *text CLOSED_BY(text_cleanup) = map_of(&run, mosts[i]);
        ASSERT_TRUE(text && json_after(text));
        EXPECT_EQ(bytes_of_map(text, &rows), result.figures.peak_reserved_bytes);
        EXPECT_LE(rows, mosts[i]);
        if (i == 0) EXPECT_EQ(JSON_NUMBER(text, "scale"), 0);
    }
    strata_map_delete(&run.map);
}

#define TAGGED "op,id,size,stream,time_us,tag\n"

/* Of a live block: what was asked for, the rows where it comes and goes, its stream and its tag. */
TEST(page, a_block_says_whose_it_is) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = trace_of(TAGGED "alloc,1,1000,7,0,\n"
                                                                     "free,1,0,7,1,\n"
                                                                     "alloc,2,3000,7,2,conv1\n"
                                                                     "alloc,3,8388608,7,3,\"<b>\"\n"
                                                                     "free,2,0,7,4,\n");
    made_t *made CLOSED_BY(made_cleanup) = make_two(trace, "pytorch", "system", 0);
    ASSERT_TRUE(made && made->data);
    const char *map = JSON_AT(made->data, "runs", "#1", "map"), *row = JSON_AT(map, "chunks", "#0", "rows", "#0");
    EXPECT_EQ(JSON_NUMBER(map, "row"), 4);
    EXPECT_EQ(JSON_NUMBER(row, "#1"), 1);
    EXPECT_EQ(JSON_NUMBER(row, "#2"), 3000);
    EXPECT_EQ(JSON_NUMBER(row, "#3"), 3);
    EXPECT_EQ(JSON_NUMBER(row, "#4"), 5);
    EXPECT_EQ(JSON_NUMBER(row, "#5"), 7);
    EXPECT_EQ(JSON_NUMBER(row, "#6"), 1);
    EXPECT_EQ(strncmp(JSON_AT(map, "tags", "#1"), "\"conv1\"", 7), 0);
    EXPECT_EQ(JSON_NUMBER(JSON_AT(map, "chunks", "#1", "rows", "#0"), "#4"), 0); /* never freed */
}

/* ---- out of memory, streams ---- */

TEST(page, requests_that_fail_have_their_reports) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = trace_of(COLUMNS "alloc,1,20971520,3,0\n"
                                                                      "alloc,2,20971520,3,1\n"
                                                                      "alloc,3,41943040,3,2\n"
                                                                      "alloc,4,20971520,3,3\n");
    made_t *made CLOSED_BY(made_cleanup) = make_two(trace, "pytorch", "strata", 64 * MIB);
    ASSERT_TRUE(made && made->data);
    for (size_t i = 0; i < 2; i++) {
        const char *refused = JSON_AT(made->data, "runs", i ? "#1" : "#0", "refused");
        EXPECT_EQ(json_count(refused), 1);
        EXPECT_EQ(JSON_NUMBER(refused, "#0", "row"), 3);
        EXPECT_EQ(JSON_NUMBER(refused, "#0", "line"), 4);
        EXPECT_EQ(JSON_NUMBER(refused, "#0", "size"), 41943040);
        EXPECT_EQ(JSON_NUMBER(refused, "#0", "stream"), 3);
        EXPECT_CONTAINS(JSON_AT(refused, "#0", "text"), "out of memory");
    }
}

TEST(page, streams_are_told_by_what_they_ask_for) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = trace_of(COLUMNS "alloc,1,1000,5,0\n"
                                                                      "alloc,2,5000,9,1\n"
                                                                      "borrow,2,0,5,2\n"
                                                                      "free,1,0,5,3\n"
                                                                      "alloc,3,2000,5,4\n"
                                                                      "free,2,0,9,5\n");
    made_t *made CLOSED_BY(made_cleanup) = make_two(trace, "strata", "system", 0);
    ASSERT_TRUE(made && made->data);
    const char *streams = JSON_AT(made->data, "traces", "#0", "streams");
    EXPECT_EQ(json_count(streams), 2);
    static const double wanted[2][5] = {{9, 1, 5000, 5000, 0}, {5, 2, 3000, 2000, 1}};
    static const char *const names[] = {"number", "allocs", "bytes", "peak", "borrows"};
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 5; k++) EXPECT_EQ(JSON_NUMBER(json_item(streams, i), names[k]), wanted[i][k]);
}

/* The borrower's event passes by the clock, whether or not anybody frees again. */
TEST(page, what_has_passed_is_deferred_no_more) {
    static double deferred[SUMS], last[SUMS];
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = trace_of(COLUMNS "alloc,1,1048576,0,0\n"
                                                                      "borrow,1,0,1,10\n"
                                                                      "free,1,0,0,2000\n"
                                                                      "alloc,2,512,0,50000\n");
    made_t *made CLOSED_BY(made_cleanup) = make_two(trace, "pytorch", "strata", 0);
    ASSERT_TRUE(made && made->data);
    const char *run = JSON_AT(made->data, "runs", "#0");
    EXPECT_EQ(JSON_NUMBER(run, "peaks", "deferred", "bytes"), MIB);
    EXPECT_EQ(JSON_NUMBER(run, "peaks", "deferred", "row"), 3);
    ASSERT_EQ(json_sums(JSON_AT(run, "columns", "deferred", "low"), deferred, SUMS), 4);
    ASSERT_EQ(json_sums(JSON_AT(run, "columns", "deferred", "last"), last, SUMS), 4);
    EXPECT_EQ(deferred[2] + last[2], MIB);
    EXPECT_EQ(deferred[3] + last[3], 0);
}

/* ---- hostile names ---- */

#define BREAKS_OUT "</script><script>alert(1)</script><!-- ]]> \" ' & \\ \xff\xfe\x01"

TEST(page, names_stay_text) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = trace_of(TAGGED "alloc,1,1048576,0,0,</script><img src=x onerror=alert(1)>\n"
                                                                     "alloc,2,104857600,0,0,</style>\n");
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = strategy_of("pytorch", NULL);
    ASSERT_TRUE(trace && strategy);
    strata_candidate_t candidates[] = {candidate_of(strategy, BREAKS_OUT, 32 * MIB), candidate_of(strategy, "</PRE><b>", 0)};
    made_t *made CLOSED_BY(made_cleanup) = make(trace, candidates, 2);
    expect_page(made);
    if (!made->text) return;
    EXPECT_EQ(occurrences(made->text, "<img"), 0);
    EXPECT_EQ(occurrences(made->text, "</style"), 1);
    EXPECT_EQ(occurrences(made->text, "</PRE"), 0);
    EXPECT_EQ(occurrences(made->text, "<b>"), 0);
    EXPECT_EQ(occurrences(made->text, "\xff"), 0);
    EXPECT_EQ(occurrences(made->data, "\x01"), 0);
    EXPECT_CONTAINS(made->data, "\\u003c/script>\\u003cscript>alert(1)");
}

/* ---- limits ---- */

TEST(page, of_too_many_runs_is_refused) {
    strata_page_t page;
    EXPECT_STATUS(strata_page_begin(&page, STRATA_PAGE_RUNS / 2 + 1, 2), STRATA_E_INVALID);
    EXPECT_CONTAINS(strata_last_error()->text, "give fewer traces");
    ASSERT_OK(strata_page_begin(&page, STRATA_PAGE_RUNS / 2, 2));
    strata_page_end(&page);
}

TEST(page, needs_host_memory) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = trace_of(COLUMNS "alloc,1,1048576,0,0\nfree,1,0,0,1\nalloc,2,512,0,2\n");
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = strategy_of("system", NULL);
    ASSERT_TRUE(trace && strategy);
    strata_candidate_t candidate = candidate_of(strategy, "system", 0);
    char path[512];
    static made_t made;
    snprintf(path, sizeof path, "%s", temporary("page.html"));
    ASSERT_OK(fill(&made, trace, &candidate, 1, path));
    uint64_t before = strata_host_allocations();
    ASSERT_OK(fill(&made, trace, &candidate, 1, path));
    uint64_t allocations = strata_host_allocations() - before;
    EXPECT_GT(allocations, 20);
    for (uint64_t k = 1; k <= allocations; k++) {
        strata_host_fail_at(k, 0);
        strata_status_t status = fill(&made, trace, &candidate, 1, path);
        strata_host_fail_at(0, 0);
        if (status != STRATA_OK) EXPECT_EQ(status, STRATA_E_HOST_MEMORY);
    }
}
