/* What a pair costs a cache among few and among many live blocks: of N live blocks of 512 x 2^(17u) bytes, u uniform, a
 * random one is freed and another is allocated.
 *
 *     bench/live_blocks [--strategy PRESET] [--json]          100 and 100,000 live blocks; PRESET: pytorch. The median of
 *                                                             nine long runs, the quickest quarter of many short ones
 *                                                             (what it is where others use the machine too), and a bare walk:
 *                                                             a reference and a line of 64 bytes a block, touched one after the other
 *     bench/live_blocks --strategy PRESET --live N --pairs P  P pairs among N, and no figures: for a run under callgrind. The
 *                                                             difference of two P is free of what comes before
 *
 * The device is simulated and unlimited. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/simulated.h"
#include "bench/turnover.h"
#include "platform/clock.h"

enum { RUNS = 9, PAIRS = 200000, TURNS = 4000, TURN_PAIRS = 400, MOST_LIVE = 1 << 22 };

static strata_t facade;
static strata_place_t gpu;
static turnover_t turnover;

static void open_facade(const char *preset) {
    facade = simulated_open(preset, STRATA_SIM_UNLIMITED);
    gpu = strata_gpu(0);
}

/* N blocks, and what frees a random one and allocates another, so many times. */
typedef struct blocks {
    strata_ref_t *refs;
    uint64_t (*lines)[8]; /* of a bare walk: one a block */
    int live;
    void (*turn_over)(struct blocks *blocks, int count);
} blocks_t;

static void turn_over(blocks_t *blocks, int count) {
    for (int i = 0; i < count; i++) {
        strata_block_t block;
        uint64_t drawn = turnover_draw(&turnover);
        strata_ref_t *ref = &blocks->refs[turnover_victim(drawn, blocks->live)];
        must(strata_free(facade, *ref));
        must(strata_allocate(facade, gpu, NULL, turnover_size(&turnover, drawn), &block));
        *ref = block.ref;
    }
}

/* What no allocator is spared: the reference that names the block, and the line where it keeps what it knows of it. Each draw
 * waits for the line before (which adds nothing to it), as what lies between two pairs of an allocator makes it wait. */
static void walk(blocks_t *blocks, int count) {
    for (int i = 0; i < count; i++) {
        uint64_t drawn = turnover_draw(&turnover);
        strata_ref_t *ref = &blocks->refs[turnover_victim(drawn, blocks->live)];
        uint64_t *line = blocks->lines[*ref & UINT32_MAX];
        line[0]++;
        line[1] = turnover_size(&turnover, drawn);
        *ref = line[0] << 32 | (*ref & UINT32_MAX);
        turnover.state += line[2];
    }
}

static void *memory_of(int count, size_t size) {
    void *memory = aligned_alloc(64, ((size_t)count * size + 63) / 64 * 64);
    if (!memory) exit(1);
    return memset(memory, 0, (size_t)count * size);
}

static blocks_t fill(int live) {
    blocks_t blocks = {.refs = memory_of(live, sizeof *blocks.refs), .live = live, .turn_over = turn_over};
    for (int i = 0; i < live; i++) {
        strata_block_t block;
        must(strata_allocate(facade, gpu, NULL, turnover_size(&turnover, turnover_draw(&turnover)), &block));
        blocks.refs[i] = block.ref;
    }
    return blocks;
}

/* The lines in no order, as the records of blocks are after a while. */
static blocks_t fill_bare(int live) {
    blocks_t blocks = {.refs = memory_of(live, sizeof *blocks.refs),
                       .lines = memory_of(live, sizeof *blocks.lines),
                       .live = live,
                       .turn_over = walk};
    for (int i = 0; i < live; i++) {
        size_t other = turnover_victim(turnover_draw(&turnover), i + 1);
        blocks.refs[i] = blocks.refs[other];
        blocks.refs[other] = (strata_ref_t)i;
    }
    return blocks;
}

static void empty(blocks_t *blocks) {
    for (int i = 0; i < blocks->live && !blocks->lines; i++) must(strata_free(facade, blocks->refs[i]));
    free(blocks->refs);
    free(blocks->lines);
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
static void measure(blocks_t *blocks, int pairs, double *runs, int count) {
    for (int run = 0; run < count; run++) {
        uint64_t began = strata_real_now();
        blocks->turn_over(blocks, pairs);
        runs[run] = (double)(strata_real_now() - began) / pairs;
    }
    qsort(runs, (size_t)count, sizeof *runs, by_value);
}

static figures_t figures_of(blocks_t blocks) {
    static double runs[RUNS], turns[TURNS];
    blocks.turn_over(&blocks, 2 * PAIRS);
    measure(&blocks, PAIRS, runs, RUNS);
    measure(&blocks, TURN_PAIRS, turns, TURNS);
    empty(&blocks);
    return (figures_t){.median = runs[RUNS / 2], .quick = turns[TURNS / 4]};
}

static void run_pairs(int live, int pairs) {
    blocks_t blocks = fill(live);
    turn_over(&blocks, pairs);
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
    figures_t few = figures_of(fill(100)), many = figures_of(fill(100000));
    figures_t bare_few = figures_of(fill_bare(100)), bare_many = figures_of(fill_bare(100000));
    const char *form = arguments.json
                           ? "{\"strategy\":\"%s\",\"live_100_ns\":%.1f,\"live_100000_ns\":%.1f,\"live_100_quick_ns\":%.1f,"
                             "\"live_100000_quick_ns\":%.1f,\"bare_100_ns\":%.1f,\"bare_100000_ns\":%.1f}\n"
                           : "%s, nanoseconds a pair\n"
                             "live_100_ns          %10.1f  among 100 live blocks\n"
                             "live_100000_ns       %10.1f  among 100,000\n"
                             "live_100_quick_ns    %10.1f  the quickest quarter of many short runs, 100 live blocks\n"
                             "live_100000_quick_ns %10.1f  likewise, 100,000\n"
                             "bare_100_ns          %10.1f  a reference and a line of 64 bytes, touched one after the other, of 100\n"
                             "bare_100000_ns       %10.1f  likewise, of 100,000\n";
    printf(form, arguments.strategy, few.median, many.median, few.quick, many.quick, bare_few.median, bare_many.median);
    return 0;
}
