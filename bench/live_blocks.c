/* What a pair costs a cache among few and among many live blocks: of N live blocks of 512 x 2^(17u) bytes, u uniform, a
 * random one is freed and another is allocated.
 *
 *     bench/live_blocks [--strategy PRESET] [--json]          100 and 100,000 live blocks; PRESET: pytorch. The median of
 *                                                             nine long runs, and the quickest quarter of many short ones:
 *                                                             what it is where others use the machine too
 *     bench/live_blocks --strategy PRESET --live N --pairs P  P pairs among N, and no figures: for a run under callgrind. The
 *                                                             difference of two P is free of what comes before
 *
 * The device is simulated and unlimited. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/turnover.h"
#include "config/config.h"
#include "facade/facade.h"
#include "platform/clock.h"
#include "platform/sim/sim.h"

enum { RUNS = 9, PAIRS = 200000, TURNS = 4000, TURN_PAIRS = 400, MOST_LIVE = 1 << 22 };

static strata_t facade;
static strata_place_t gpu;
static turnover_t turnover;

static void must(strata_status_t status) {
    if (status == STRATA_OK) return;
    fprintf(stderr, "live_blocks: %s\n", strata_last_error()->text);
    exit(1);
}

static void open_facade(const char *preset) {
    static strata_strategy_t *strategy;
    strata_sim_t *world;
    strata_device_t *device;
    strata_config_request_t request = {.preset = preset, .devices = "sim"};
    strata_sim_options_t options = {.capacity = STRATA_SIM_UNLIMITED};
    must(strata_config_load(&request, &strategy));
    must(strata_sim_new(&options, &world));
    must(strata_sim_open(world, 0, &device));
    must(strata_facade_open_on(strategy, &device, 1, 0, &facade));
    gpu = strata_gpu(0);
}

static void turn_over(strata_ref_t *refs, int live, int count) {
    for (int i = 0; i < count; i++) {
        strata_block_t block;
        uint64_t drawn = turnover_draw(&turnover);
        strata_ref_t *ref = &refs[turnover_victim(drawn, live)];
        must(strata_free(facade, *ref));
        must(strata_allocate(facade, gpu, NULL, turnover_size(&turnover, drawn), &block));
        *ref = block.ref;
    }
}

static strata_ref_t *fill(int live) {
    strata_ref_t *refs = malloc((size_t)live * sizeof *refs);
    if (!refs) exit(1);
    for (int i = 0; i < live; i++) {
        strata_block_t block;
        must(strata_allocate(facade, gpu, NULL, turnover_size(&turnover, turnover_draw(&turnover)), &block));
        refs[i] = block.ref;
    }
    return refs;
}

static void empty(strata_ref_t *refs, int live) {
    for (int i = 0; i < live; i++) must(strata_free(facade, refs[i]));
    free(refs);
    must(strata_release(facade, gpu, NULL));
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct figures {
    double median, quick;
} figures_t;

/* Nanoseconds a pair, in order. */
static void measure(strata_ref_t *refs, int live, int pairs, double *runs, int count) {
    for (int run = 0; run < count; run++) {
        uint64_t began = strata_real_now();
        turn_over(refs, live, pairs);
        runs[run] = (double)(strata_real_now() - began) / pairs;
    }
    qsort(runs, (size_t)count, sizeof *runs, by_value);
}

static figures_t figures_of(int live) {
    static double runs[RUNS], turns[TURNS];
    strata_ref_t *refs = fill(live);
    turn_over(refs, live, 2 * PAIRS);
    measure(refs, live, PAIRS, runs, RUNS);
    measure(refs, live, TURN_PAIRS, turns, TURNS);
    empty(refs, live);
    return (figures_t){.median = runs[RUNS / 2], .quick = turns[TURNS / 4]};
}

static void run_pairs(int live, int pairs) {
    strata_ref_t *refs = fill(live);
    turn_over(refs, live, pairs);
}

typedef struct arguments {
    const char *strategy;
    int live, pairs;
    bool json;
} arguments_t;

static int number_of(const char *text) {
    char *end;
    long number = strtol(text, &end, 10);
    return *text && !*end && number > 0 && number <= MOST_LIVE ? (int)number : 0;
}

static bool read_arguments(int argc, char **argv, arguments_t *arguments) {
    *arguments = (arguments_t){.strategy = "pytorch"};
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--json") == 0) arguments->json = true;
        else if (more && strcmp(argv[i], "--strategy") == 0) arguments->strategy = argv[++i];
        else if (more && strcmp(argv[i], "--live") == 0 && number_of(argv[i + 1])) arguments->live = number_of(argv[++i]);
        else if (more && strcmp(argv[i], "--pairs") == 0 && number_of(argv[i + 1])) arguments->pairs = number_of(argv[++i]);
        else return false;
    }
    return !arguments->live == !arguments->pairs;
}

int main(int argc, char **argv) {
    arguments_t arguments;
    if (!read_arguments(argc, argv, &arguments)) {
        fprintf(stderr, "usage: live_blocks [--strategy PRESET] [--json | --live N --pairs P]\n");
        return 2;
    }
    open_facade(arguments.strategy);
    turnover_init(&turnover);
    if (arguments.live) {
        run_pairs(arguments.live, arguments.pairs);
        return 0;
    }
    figures_t few = figures_of(100), many = figures_of(100000);
    if (arguments.json)
        printf("{\"strategy\":\"%s\",\"live_100_ns\":%.1f,\"live_100000_ns\":%.1f,\"live_100_quick_ns\":%.1f,"
               "\"live_100000_quick_ns\":%.1f}\n", arguments.strategy, few.median, many.median, few.quick, many.quick);
    else
        printf("live_100_ns          %10.1f  a pair among 100 live blocks, %s\n"
               "live_100000_ns       %10.1f  a pair among 100,000\n"
               "live_100_quick_ns    %10.1f  the quickest quarter of %d turns of %d pairs, 100 live blocks\n"
               "live_100000_quick_ns %10.1f  likewise, 100,000\n",
               few.median, arguments.strategy, many.median, few.quick, TURNS, TURN_PAIRS, many.quick);
    return 0;
}
