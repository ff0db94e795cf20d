/* Measures the events per second that a replay carries out, including the reading of the trace.
 *
 *     lab/bench/replay [--rows N] [--json]             N: 1,000,000. Medians of five runs
 *
 * The program trains. Each layer allocates a block of repeated sizes, and every second one also a block for a
 * moment. The blocks are freed in the opposite order, and at most 4,000 are live. The trace is written as CSV
 * with one stream, as CSV with four, and with gzip. All are replayed under `strata` on a simulated H100. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "lab/bench/simulated.h"
#include "lab/replay/compare/compare.h"
#include "platform/clock.h"

enum { RUNS = 5, SIZES = 60, DEPTH = 4000, TURN = 8, CANDIDATES = 4, MANY_STREAMS = 4 };

typedef struct program {
    strata_trace_writer_t *writer;
    uint64_t rows, most, ids, time_us;
    uint64_t streams;
} program_t;

static void write_row(program_t *program, strata_trace_op_t op, uint64_t id, uint64_t size, uint64_t layer) {
    if (program->rows++ >= program->most) return;
    program->time_us += 2 + program->rows % 7;
    strata_trace_record_t record = {
        .op = op, .has_id = true, .id = id, .size = size, .stream = layer / TURN % program->streams, .time_us = program->time_us};
    must(strata_trace_write(program->writer, &record));
}

static uint64_t size_of(uint64_t i) {
    uint64_t kind = i % SIZES;
    return kind < 20 ? 512 * (kind + 1) : kind < 40 ? 65536 * (kind - 19) : (uint64_t)1048576 * (kind - 39);
}

static void write_step(program_t *program) {
    uint64_t first = program->ids;
    for (uint64_t layer = 0; layer < DEPTH; layer++) {
        write_row(program, STRATA_TRACE_alloc, program->ids++, size_of(layer * 7), layer);
        if (layer % 2) continue;
        write_row(program, STRATA_TRACE_alloc, program->ids, size_of(layer * 3), layer);
        write_row(program, STRATA_TRACE_free, program->ids++, 0, layer);
    }
    for (uint64_t layer = DEPTH; layer-- > 0;) write_row(program, STRATA_TRACE_free, first + layer + (layer + 1) / 2, 0, layer);
}

static void write_trace(const char *path, uint64_t rows, uint64_t streams) {
    program_t program = {.most = rows, .streams = streams};
    must(strata_trace_writer_open(path, 0, &program.writer));
    while (program.rows < rows) write_step(&program);
    must(strata_trace_writer_finish(program.writer));
}

/* ---- the measurements, in seconds ---- */

static strata_strategy_t *strategy;
static strata_candidate_t candidates[CANDIDATES];

static double since(uint64_t began) { return (double)(strata_real_now() - began) / 1e9; }

static double time_read(const char *path) {
    strata_trace_t *trace;
    uint64_t began = strata_real_now();
    must(strata_trace_load(path, &trace));
    double seconds = since(began);
    strata_trace_delete(trace);
    return seconds;
}

static double time_all(const char *path) {
    strata_trace_feed_t *feed;
    strata_trace_t *trace;
    static strata_run_result_t result;
    strata_comparison_t comparison = {
        .candidates = candidates, .candidate_count = 1, .timeline = {.lag_ns = 5000000}, .repeat = 1, .threads = 1};
    uint64_t began = strata_real_now();
    must(strata_trace_feed_begin(path, &feed));
    must(strata_compare_feed(&comparison, feed, &trace, &result));
    strata_trace_delete(trace);
    return since(began);
}

/* Measures only zlib. */
static double time_inflate(const char *path) {
    static char bytes[1 << 16];
    uint64_t began = strata_real_now();
    gzFile file = gzopen(path, "rb");
    while (file && gzread(file, bytes, sizeof bytes) > 0) {}
    if (file) gzclose(file);
    return since(began);
}

static double compare_with(const char *path, uint32_t threads) {
    static strata_run_result_t results[CANDIDATES];
    strata_trace_t *trace;
    strata_comparison_t comparison = {
        .candidates = candidates, .candidate_count = CANDIDATES, .timeline = {.lag_ns = 5000000}, .repeat = 1, .threads = threads};
    must(strata_trace_load(path, &trace));
    uint64_t began = strata_real_now();
    must(strata_compare(&comparison, trace, results));
    double seconds = since(began);
    strata_trace_delete(trace);
    return seconds;
}

static double time_one_thread(const char *path) { return compare_with(path, 1); }
static double time_threads(const char *path) { return compare_with(path, CANDIDATES); }

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(double (*measure)(const char *path), const char *path) {
    double runs[RUNS];
    for (int i = 0; i < RUNS; i++) runs[i] = measure(path);
    qsort(runs, RUNS, sizeof *runs, by_value);
    return runs[RUNS / 2];
}

/* ---- output ---- */

typedef struct figure {
    const char *name, *meaning;
    double value;
} figure_t;

static void print(const figure_t *figures, size_t count, bool json) {
    for (size_t i = 0; i < count; i++) {
        if (json) printf("%s\"%s\":%.2f", i ? "," : "{", figures[i].name, figures[i].value);
        else printf("%-24s %8.2f  %s\n", figures[i].name, figures[i].value, figures[i].meaning);
    }
    if (json) printf("}\n");
}

static char one[300], four[300], packed[300];

static void prepare(uint64_t rows) {
    char folder[] = "/tmp/strata-bench-XXXXXX";
    strata_config_request_t request = {.preset = "strata", .devices = "sim"};
    if (!mkdtemp(folder)) exit(1);
    snprintf(one, sizeof one, "%s/one.csv", folder);
    snprintf(four, sizeof four, "%s/four.csv", folder);
    snprintf(packed, sizeof packed, "%s/one.csv.gz", folder);
    must(strata_config_load(&request, &strategy));
    for (size_t i = 0; i < CANDIDATES; i++)
        candidates[i] = (strata_candidate_t){.label = "strata",
                                             .strategy = strategy,
                                             .target = {.profile = strata_sim_profile("h100"), .capacity = STRATA_SIM_UNLIMITED}};
    write_trace(one, rows, 1);
    write_trace(four, rows, MANY_STREAMS);
    write_trace(packed, rows, 1);
}

static void clean_up(void) {
    unlink(one);
    unlink(four);
    unlink(packed);
    *strrchr(one, '/') = '\0';
    rmdir(one);
    strata_strategy_delete(strategy);
}

int main(int argc, char **argv) {
    bool json = false, wrong = false;
    long rows = 1000000;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) json = true;
        else if (i + 1 < argc && strcmp(argv[i], "--rows") == 0) rows = atol(argv[++i]);
        else wrong = true;
    }
    if (wrong || rows < 1 || rows > STRATA_TRACE_EVENTS) {
        fprintf(stderr, "usage: replay [--rows N] [--json]\n");
        return 2;
    }
    prepare((uint64_t)rows);
    double millions = (double)rows / 1e6;
    const figure_t figures[] = {
        {"million_events_s", "read and replayed per second, CSV of one stream", millions / median_of(time_all, one)},
        {"four_streams_million_s", "the same of four streams", millions / median_of(time_all, four)},
        {"gzip_million_s", "the same of one stream with gzip", millions / median_of(time_all, packed)},
        {"read_million_s", "read per second, CSV of one stream", millions / median_of(time_read, one)},
        {"gzip_read_million_s", "read per second, with gzip", millions / median_of(time_read, packed)},
        {"inflate_million_s", "decompressed per second by zlib alone", millions / median_of(time_inflate, packed)},
        {"four_at_once_ratio", "four strategies one after another, compared with four at once",
         median_of(time_one_thread, one) / median_of(time_threads, one)},
    };
    print(figures, sizeof figures / sizeof *figures, json);
    clean_up();
    return 0;
}
