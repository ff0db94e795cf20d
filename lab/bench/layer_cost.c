/* Measures the cost of a layer for an allocate and free pair of 64 KiB that hits, in the default stack.
 *
 *     lab/bench/layer_cost              a table: medians of interleaved runs, and the difference of each from the first
 *     lab/bench/layer_cost --json       one JSON object: ns per pair, by the row's name
 *     lab/bench/layer_cost --rows       the rows' names
 *     lab/bench/layer_cost ROW PAIRS    only PAIRS pairs through one stack, so that the difference of two runs gives the
 *                                       instructions of a pair (scripts/layer-cost)
 *     lab/bench/layer_cost FILE PAIRS   the same through the strategy of a file, which may load layers
 *
 * The device is simulated and unlimited, and a hit makes no device call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "facade/open/life.h"
#include "facade/registry/facade.h"
#include "platform/clock.h"
#include "platform/sim/sim.h"

enum { RUNS = 9, RUN_PAIRS = 400000, WARM_PAIRS = 1000 };

/* `above` is between stream_safe and the cache, `below` between the cache and the source. */
static const struct row {
    const char *name, *above, *below, *meaning;
    const char *preset; /* NULL if made of the two above */
    bool by_object; /* through a strata_allocator_t instead of facade, place and stream */
} rows[] = {
    {.name = "malloc",
     .preset = "strata-malloc",
     .meaning = "retry, stream_safe, auto_growth, system as in the preset strata-malloc"},
    {.name = "default", .preset = "strata", .meaning = "retry, stream_safe, auto_growth_vmm, vmm as in the preset strata"},
    {.name = "object", .preset = "strata-malloc", .by_object = true, .meaning = "the first row through an allocator object"},
    {.name = "stat", .above = "stat, ", .meaning = "counts the bytes of the callers"},
    {.name = "limit", .below = "limit: {bytes: 100GiB}, ", .meaning = "limits the requests of the cache"},
    {.name = "trace-off", .above = "trace: {path: none}, ", .meaning = "records nothing"},
    {.name = "idle",
     .above = "stat, trace: {path: none}, ",
     .below = "fault, limit: {bytes: 100GiB}, ",
     .meaning = "all of these, and a fault that never occurs"},
    {.name = "scrub", .above = "scrub, ", .meaning = "takes part in every pair: finds the owner"},
    {.name = "aligned", .above = "aligned: {alignment: 4096}, ", .meaning = "takes part in every pair: has its own record"},
    {.name = "pytorch", .preset = "pytorch", .meaning = "that preset: one cache that all streams share"},
    {.name = "tensorflow", .preset = "tensorflow", .meaning = "that preset: also one cache"},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void must(strata_status_t status) {
    if (status == STRATA_OK) return;
    fprintf(stderr, "layer_cost: %s\n", strata_last_error()->text);
    exit(1);
}

/* Opens a facade over its own device. It stays open until the process ends. */
static strata_t open_on(const strata_config_request_t *request) {
    strata_strategy_t *strategy;
    strata_sim_t *world;
    strata_device_t *device;
    strata_t facade;
    strata_sim_options_t options = {.capacity = STRATA_SIM_UNLIMITED};
    must(strata_config_load(request, &strategy));
    must(strata_sim_new(&options, &world));
    must(strata_sim_open(world, 0, &device));
    must(strata_facade_open_on(strategy, &device, 1, 0, &facade));
    return facade;
}

static strata_t open_row(const struct row *row) {
    char text[1024];
    snprintf(
        text, sizeof text,
        "extends: strata-malloc\ndevices: sim\nstack: [retry: {timeout: 100ms, wait_first: true, patience: true}, stream_safe, "
        "%sauto_growth: {chunk_size: 20MiB, order: any, reclaim: ladder, smaller_growth: true}, %ssystem]\n",
        row->above ? row->above : "", row->below ? row->below : "");
    strata_config_request_t request = {.text = text};
    if (row->preset) request = (strata_config_request_t){.preset = row->preset, .devices = "sim"};
    return open_on(&request);
}

static strata_t open_file(const char *path) {
    return open_on(&(strata_config_request_t){.file = path, .devices = "sim", .allow_code = true});
}

static void pairs_by_object(strata_t facade, uint64_t count) {
    strata_allocator_t allocator;
    must(strata_allocator_get(facade, strata_gpu(0), NULL, 0, &allocator));
    for (uint64_t i = 0; i < count; i++) {
        strata_block_t block;
        must(strata_allocator_allocate(allocator, 64 << 10, &block));
        must(strata_allocator_free(allocator, block.ref));
    }
}

static void pairs_by_name(strata_t facade, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        strata_block_t block;
        must(strata_allocate(facade, strata_gpu(0), NULL, 64 << 10, &block));
        must(strata_free(facade, block.ref));
    }
}

static void pairs(const struct row *row, strata_t facade, uint64_t count) {
    (row->by_object ? pairs_by_object : pairs_by_name)(facade, count);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Runs are interleaved, so that a drifting machine favors no row. */
static void measure(double medians[ROWS]) {
    static double runs[ROWS][RUNS];
    strata_t facades[ROWS];
    for (int row = 0; row < ROWS; row++) {
        facades[row] = open_row(&rows[row]);
        pairs(&rows[row], facades[row], WARM_PAIRS);
    }
    for (int run = 0; run < RUNS; run++)
        for (int row = 0; row < ROWS; row++) {
            uint64_t began = strata_real_now();
            pairs(&rows[row], facades[row], RUN_PAIRS);
            runs[row][run] = (double)(strata_real_now() - began) / RUN_PAIRS;
        }
    for (int row = 0; row < ROWS; row++) {
        qsort(runs[row], RUNS, sizeof **runs, by_value);
        medians[row] = runs[row][RUNS / 2];
    }
}

static int print_rows(bool json) {
    double medians[ROWS];
    measure(medians);
    for (int row = 0; row < ROWS; row++) {
        if (json) printf("%s\"%s\":%.1f", row ? "," : "{", rows[row].name, medians[row]);
        else printf("%-10s %7.1f ns  %+6.1f  %s\n", rows[row].name, medians[row], medians[row] - medians[0], rows[row].meaning);
    }
    if (json) printf("}\n");
    return 0;
}

static int run_alone(const char *name, const char *count) {
    int row = 0;
    while (row < ROWS && strcmp(rows[row].name, name) != 0) row++;
    char *end;
    uint64_t number = strtoull(count, &end, 10);
    bool is_file = strchr(name, '.') != NULL;
    if ((row == ROWS && !is_file) || *end || number == 0) {
        fprintf(stderr, "layer_cost: no such row or file, or no number of pairs; see layer_cost --rows\n");
        return 2;
    }
    if (is_file) pairs_by_name(open_file(name), number);
    else pairs(&rows[row], open_row(&rows[row]), number);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 1) return print_rows(false);
    if (argc == 2 && strcmp(argv[1], "--json") == 0) return print_rows(true);
    if (argc == 3) return run_alone(argv[1], argv[2]);
    if (argc != 2 || strcmp(argv[1], "--rows") != 0) {
        fprintf(stderr, "usage: layer_cost [--json | --rows | ROW PAIRS | FILE PAIRS]\n");
        return 2;
    }
    for (int row = 0; row < ROWS; row++) puts(rows[row].name);
    return 0;
}
