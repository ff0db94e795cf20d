/* Workloads of one thread: a pair of one size, a pair among many live blocks, and a pair with a borrow in between. */
#include <stdlib.h>

#include "lab/bench/peers/measured.h"
#include "lab/bench/peers/peer.h"
#include "lab/bench/peers/workload.h"
#include "lab/bench/turnover.h"

enum { WARM_PAIRS = 1000, MIN_TURNS = 100000, MAX_TURNS = 400000 };

static void *stream, *borrower;

static void allocate(void *on, size_t size, peer_block_t *block) {
    if (!peer_allocate(on, size, block)) workload_none("it is out of memory");
}

/* ---- a pair ---- */

static size_t pair_size;

static void pairs(uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        peer_block_t block;
        allocate(stream, pair_size, &block);
        peer_free(&block);
    }
}

static void prepare_pair(char **arguments) {
    pair_size = strtoull(arguments[0], NULL, 10);
    stream = peer_stream();
    pairs(WARM_PAIRS);
}

static double measure_pair(uint64_t count) { return workload_measured(pairs, count); }

const workload_t workload_pair = {"pair", "BYTES", 1, prepare_pair, measure_pair, 200000};

/* ---- among many ---- */

static turnover_t turnover;
static peer_block_t *live;
static int live_count;
static unsigned smaller; /* bits by which sizes are shifted right */
static uint64_t live_bytes;

static void place(peer_block_t *block, uint64_t drawn) {
    allocate(stream, turnover_size(&turnover, drawn) >> smaller, block);
    live_bytes += block->size;
    if (live_bytes > workload_requested) workload_requested = live_bytes;
}

static void turn_over(uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        uint64_t drawn = turnover_draw(&turnover);
        peer_block_t *block = &live[turnover_victim(drawn, live_count)];
        live_bytes -= block->size;
        peer_free(block);
        place(block, drawn);
    }
}

static void prepare_live(char **arguments) {
    live_count = atoi(arguments[0]);
    smaller = (unsigned)atoi(arguments[1]);
    live = calloc((size_t)live_count, sizeof *live);
    if (!live) exit(1);
    turnover_init(&turnover);
    stream = peer_stream();
    for (int i = 0; i < live_count; i++) place(&live[i], turnover_draw(&turnover));
    uint64_t turns = 2 * (uint64_t)live_count;
    turn_over(turns < MIN_TURNS ? MIN_TURNS : turns > MAX_TURNS ? MAX_TURNS : turns);
}

static double measure_live(uint64_t count) { return workload_measured(turn_over, count); }

const workload_t workload_live = {"live", "BLOCKS SMALLER", 2, prepare_live, measure_live, 100000};

/* ---- lent ---- */

static void lent_pairs(uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        peer_block_t block;
        allocate(stream, pair_size, &block);
        if (!peer_lend(&block, borrower)) workload_none("it has no call for borrows");
        peer_free(&block);
    }
}

static void prepare_lent(char **arguments) {
    pair_size = strtoull(arguments[0], NULL, 10);
    stream = peer_stream();
    borrower = peer_stream();
    lent_pairs(WARM_PAIRS);
}

static double measure_lent(uint64_t count) { return workload_measured(lent_pairs, count); }

const workload_t workload_lent = {"lent", "BYTES", 1, prepare_lent, measure_lent, 100000};
