/* Measures the cost of a capture for requests. A program of N allocations, of which the last 64 are live,
 * runs outside any capture and inside one into a graph pool. Both are warm, because a first pass of each is
 * not counted.
 *
 *     lab/bench/captured [--strategy PRESET] [--count N]     medians of 15 alternating rounds of each, in ns per request;
 *                                                            PRESET: strata, N: 10000
 *
 * The device is simulated and unlimited. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/bench/simulated.h"
#include "platform/clock.h"

enum { ROUNDS = 15, LIVE = 64 };

typedef struct bench {
    strata_t facade;
    strata_place_t gpu;
    strata_stream_t stream;
    int count;
} bench_t;

static void pass(const bench_t *b) {
    strata_block_t blocks[LIVE] = {{.ref = 0}};
    uint64_t drawn = 1;
    for (int i = 0; i < b->count; i++) {
        strata_block_t *block = &blocks[i % LIVE];
        if (block->ref) must(strata_free(b->facade, block->ref));
        drawn = drawn * 6364136223846793005u + 1442695040888963407u;
        must(strata_allocate(b->facade, b->gpu, b->stream, (uint64_t)512 << (drawn >> 33) % 12, block));
    }
    for (int i = 0; i < LIVE; i++)
        if (blocks[i].ref) must(strata_free(b->facade, blocks[i].ref));
}

static double outside(const bench_t *b) {
    uint64_t began = strata_real_now();
    pass(b);
    return (double)(strata_real_now() - began) / b->count;
}

/* All rounds use one pool. A graph that is captured again each time keeps its memory warm. */
static double inside(const bench_t *b, uint64_t *pool) {
    strata_graph_t graph;
    uint64_t began = strata_real_now();
    must(strata_graph_pool_begin(b->facade, b->gpu, b->stream, pool));
    must(strata_capture_begin(b->facade, b->gpu, b->stream));
    pass(b);
    must(strata_capture_end(b->facade, b->gpu, b->stream, &graph));
    must(strata_graph_pool_end(b->facade, b->gpu, *pool));
    double took = (double)(strata_real_now() - began) / b->count;
    must(strata_graph_destroy(b->facade, b->gpu, graph));
    return took;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values) {
    qsort(values, ROUNDS, sizeof *values, compare);
    return values[ROUNDS / 2];
}

int main(int argc, char **argv) {
    const char *preset = "strata";
    bench_t b = {.gpu = strata_gpu(0), .count = 10000};
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--strategy") == 0) preset = argv[i + 1];
        if (strcmp(argv[i], "--count") == 0) b.count = atoi(argv[i + 1]);
    }
    b.facade = simulated_open(preset, STRATA_SIM_UNLIMITED);
    must(strata_stream_create(b.facade, b.gpu, 0, &b.stream));
    double out[ROUNDS], in[ROUNDS];
    uint64_t pool = 0;
    (void)outside(&b);
    (void)inside(&b, &pool);
    for (int i = 0; i < ROUNDS; i++) {
        out[i] = outside(&b);
        in[i] = inside(&b, &pool);
    }
    double without = median(out), with = median(in);
    printf("%-12s %6d requests   outside %6.1f ns   captured %6.1f ns   %.2f times\n", preset, b.count, without, with,
           with / without);
    return 0;
}
