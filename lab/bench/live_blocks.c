/* Measures a pair of a cache among few and among many live blocks. N blocks of 512 x 2^(17u) bytes, u
 * uniform, are live (an eighth of that size among 1,000,000). A random one is freed and another is allocated.
 *
 *     lab/bench/live_blocks [--strategy PRESET] [--json]          100, 100,000 and 1,000,000 live blocks; PRESET: pytorch. It
 *                                                                 alternates with a bare walk, which touches a reference and a
 *                                                                 line of 64 bytes per block. Prints, for both, the median of
 *                                                                 nine long runs, and the fastest quarter of many short ones,
 *                                                                 which is the value on a machine with other load
 *     lab/bench/live_blocks --strategy PRESET --live N --pairs P  P pairs among N without output, for a run under callgrind. The
 *                                                                 difference of two values of P excludes the preparation
 *
 * The device is simulated and unlimited. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/bench/simulated.h"
#include "lab/bench/turnover.h"
#include "platform/clock.h"

enum { RUNS = 9, PAIRS = 200000, TURNS = 4000, TURN_PAIRS = 400, MANY = 1000000, MAX_LIVE = 1 << 22 };

static strata_t facade;
static strata_place_t gpu;
static turnover_t turnover;

static void open_facade(const char *preset) {
    facade = simulated_open(preset, STRATA_SIM_UNLIMITED);
    gpu = strata_gpu(0);
}

/* N blocks, and the function that frees a random one and allocates another, `count` times. */
typedef struct blocks {
    strata_ref_t *refs;
    uint64_t (*lines)[8]; /* of a bare walk: one per block */
    int live, shift; /* sizes are shifted right by `shift` */
    void (*turn_over)(struct blocks *blocks, int count);
} blocks_t;

static void turn_over(blocks_t *blocks, int count) {
    for (int i = 0; i < count; i++) {
        strata_block_t block;
        uint64_t drawn = turnover_draw(&turnover);
        strata_ref_t *ref = &blocks->refs[turnover_victim(drawn, blocks->live)];
        must(strata_free(facade, *ref));
        must(strata_allocate(facade, gpu, NULL, turnover_size(&turnover, drawn) >> blocks->shift, &block));
        *ref = block.ref;
    }
}

/* The minimum work of any allocator: it touches the reference that names the block, and the line with the
 * block's metadata. Each draw waits for the previous line, which adds 0 to it. In the same way, an allocator
 * waits for other work between two pairs. */
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

static int shift_of(int live) { return live < MANY ? 0 : 3; }

static blocks_t fill(int live) {
    blocks_t blocks = {.refs = memory_of(live, sizeof *blocks.refs), .live = live, .shift = shift_of(live), .turn_over = turn_over};
    for (int i = 0; i < live; i++) {
        strata_block_t block;
        must(strata_allocate(facade, gpu, NULL, turnover_size(&turnover, turnover_draw(&turnover)) >> blocks.shift, &block));
        blocks.refs[i] = block.ref;
    }
    return blocks;
}

/* The lines are shuffled, as the records of blocks are after a while. */
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

/* Returns nanoseconds per pair. */
static double measure(blocks_t *blocks, int pairs) {
    uint64_t began = strata_real_now();
    blocks->turn_over(blocks, pairs);
    return (double)(strata_real_now() - began) / pairs;
}

static double quantile(double *runs, int count, int part) {
    qsort(runs, (size_t)count, sizeof *runs, by_value);
    return runs[count / part];
}

enum { SERVED, BARE, CANDIDATES };

/* The two alternate, so that both run under the same load. */
static void compare(int live, figures_t figures[CANDIDATES]) {
    static double runs[CANDIDATES][RUNS], turns[CANDIDATES][TURNS];
    blocks_t candidates[CANDIDATES] = {fill(live), fill_bare(live)};
    for (int i = 0; i < CANDIDATES; i++) candidates[i].turn_over(&candidates[i], 2 * PAIRS + 2 * live);
    for (int run = 0; run < RUNS; run++)
        for (int i = 0; i < CANDIDATES; i++) {
            candidates[i].turn_over(&candidates[i], 2 * PAIRS); /* refills the CPU caches with its data */
            runs[i][run] = measure(&candidates[i], PAIRS);
        }
    for (int i = 0; i < CANDIDATES; i++) {
        candidates[i].turn_over(&candidates[i], 2 * PAIRS);
        for (int turn = 0; turn < TURNS; turn++) turns[i][turn] = measure(&candidates[i], TURN_PAIRS);
        figures[i] = (figures_t){.median = quantile(runs[i], RUNS, 2), .quick = quantile(turns[i], TURNS, 4)};
        empty(&candidates[i]);
    }
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
    return *text && !*end && number > 0 && number <= MAX_LIVE ? (int)number : 0;
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

static void print_figures(const arguments_t *arguments, int live, const figures_t *figures, const char *what) {
    if (arguments->json)
        printf(",\"%s_%d_ns\":%.1f,\"%s_%d_quick_ns\":%.1f", what, live, figures->median, what, live, figures->quick);
    else printf("%s %-8d %10.1f (%.1f)\n", what, live, figures->median, figures->quick);
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
    static const int lives[] = {100, 100000, MANY};
    printf(arguments.json ? "{\"strategy\":\"%s\"" : "%s, nanoseconds per pair: median (fastest quarter)\n", arguments.strategy);
    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++) {
        figures_t told[CANDIDATES];
        compare(lives[i], told);
        print_figures(&arguments, lives[i], &told[SERVED], "live");
        print_figures(&arguments, lives[i], &told[BARE], "bare");
    }
    printf(arguments.json ? "}\n" : "");
    return 0;
}
