/* Random programs over expandable segments against a plain model of the peer's rules: each address, and the bytes reserved. The model
 * keeps every segment as one list of live, free and unmapped pieces in address order, and looks through all of it each time. */
#include <stdlib.h>
#include <string.h>

#include "tests/caching/caching.h"

enum { LANES = 4, PIECES = 4096, HELD = 200, STEPS = 6000 }; /* a lane: a stream and a kind of block */
enum { LIVE, IDLE, UNMAPPED };

typedef struct piece {
    uint64_t at, size;
    int state;
} piece_t;

typedef struct lane {
    uint64_t handle, mapped;
    uint64_t base; /* of the real one, from its first block */
    uint32_t count;
    piece_t pieces[PIECES];
} lane_t;

static void lane_begin(lane_t *lane, uint64_t handle) {
    *lane = (lane_t){.handle = handle, .count = 1};
    lane->pieces[0] = (piece_t){.size = 1ull << 40, .state = UNMAPPED};
}

/* The piece ends after `size` bytes; what follows is one of its own. */
static void cut(lane_t *lane, uint32_t i, uint64_t size) {
    piece_t *piece = &lane->pieces[i];
    if (piece->size == size) return;
    memmove(piece + 1, piece, (lane->count - i) * sizeof *piece);
    lane->count++;
    piece[1].at += size;
    piece[1].size -= size;
    piece->size = size;
}

static void merge(lane_t *lane) {
    uint32_t to = 0;
    for (uint32_t i = 1; i < lane->count; i++) {
        piece_t *last = &lane->pieces[to];
        if (last->state == lane->pieces[i].state && last->state != LIVE) last->size += lane->pieces[i].size;
        else lane->pieces[++to] = lane->pieces[i];
    }
    lane->count = to + 1;
}

static uint64_t room_of(const lane_t *lane, uint32_t i) {
    bool grows = i + 1 < lane->count && lane->pieces[i + 1].state == UNMAPPED;
    return lane->pieces[i].size + (grows ? lane->pieces[i + 1].size : 0);
}

/* The next free piece in the order of size and address after one, or from a size on. */
static int next_idle(const lane_t *lane, const piece_t *after, uint64_t size) {
    int best = -1;
    for (uint32_t i = 0; i < lane->count; i++) {
        const piece_t *p = &lane->pieces[i], *b = best < 0 ? NULL : &lane->pieces[best];
        if (p->state != IDLE || p->size < size) continue;
        if (after && (p->size < after->size || (p->size == after->size && p->at <= after->at))) continue;
        if (!b || p->size < b->size) best = (int)i;
    }
    return best;
}

static int best_fit(const lane_t *lane, uint64_t size) {
    int it = next_idle(lane, NULL, size);
    for (int next = it; it >= 0; it = next) {
        next = next_idle(lane, &lane->pieces[it], 0);
        if (next < 0 || room_of(lane, (uint32_t)next) >= room_of(lane, (uint32_t)it)) return it;
    }
    return it;
}

/* The first unmapped piece with which, and what is free before and after it, there is enough; from where that begins. */
static uint32_t place_for(const lane_t *lane, uint64_t size) {
    for (uint32_t i = 0; i < lane->count; i++) {
        if (lane->pieces[i].state != UNMAPPED) continue;
        uint32_t first = i > 0 && lane->pieces[i - 1].state == IDLE ? i - 1 : i;
        uint64_t bytes = 0;
        for (uint32_t k = first; k < lane->count && bytes < size && lane->pieces[k].state != LIVE; k++)
            bytes += lane->pieces[k].size;
        if (bytes >= size) return first;
    }
    abort();
}

/* Maps the gaps in the place until its first piece is large enough. */
static uint32_t grow(lane_t *lane, uint64_t size) {
    uint32_t first = place_for(lane, size);
    uint64_t at = lane->pieces[first].at;
    for (;;) {
        for (first = 0; lane->pieces[first].at != at; first++) {}
        bool begun = lane->pieces[first].state == IDLE;
        uint64_t have = begun ? lane->pieces[first].size : 0;
        if (have >= size) return first;
        uint32_t gap = first + begun;
        uint64_t wanted = size - have, all = (wanted + lane->handle - 1) / lane->handle * lane->handle;
        if (all > lane->pieces[gap].size) all = lane->pieces[gap].size;
        cut(lane, gap, all);
        lane->pieces[gap].state = IDLE;
        lane->mapped += all;
        merge(lane);
    }
}

static uint64_t model_allocate(lane_t *lane, uint64_t size) {
    int fit = best_fit(lane, size);
    uint32_t i = fit >= 0 ? (uint32_t)fit : grow(lane, size);
    cut(lane, i, size);
    lane->pieces[i].state = LIVE;
    return lane->pieces[i].at;
}

static void model_free(lane_t *lane, uint64_t at) {
    uint32_t i = 0;
    while (lane->pieces[i].at != at) i++;
    lane->pieces[i].state = IDLE;
    merge(lane);
}

static uint64_t model_release(lane_t *lane) {
    uint64_t before = lane->mapped;
    for (uint32_t i = 0; i < lane->count; i++) {
        piece_t p = lane->pieces[i];
        uint64_t begin = (p.at + lane->handle - 1) / lane->handle * lane->handle,
                 end = (p.at + p.size) / lane->handle * lane->handle;
        if (p.state != IDLE || begin >= end) continue;
        if (begin > p.at) cut(lane, i++, begin - p.at);
        cut(lane, i, end - begin);
        lane->pieces[i].state = UNMAPPED;
        lane->mapped -= end - begin;
    }
    merge(lane);
    return before - lane->mapped;
}

/* ---- the program ---- */

typedef struct held {
    strata_block_t block;
    uint64_t at;
    uint32_t lane;
} held_t;

typedef struct run {
    rig_t rig;
    strata_stream_t streams[2];
    lane_t lanes[LANES];
    held_t held[HELD];
    uint32_t count;
    uint64_t random;
} run_t;

static uint64_t draw(run_t *run, uint64_t bound) {
    run->random = run->random * 6364136223846793005ull + 1442695040888963407ull;
    return (run->random >> 33) % bound;
}

static size_t draw_size(run_t *run) {
    switch (draw(run, 6)) {
    case 0: return 1 + draw(run, 90 * MIB);
    case 1: return MIB + 1 + draw(run, 12 * MIB);
    case 2: return 512 * (1 + draw(run, 4));
    case 3: return 20 * MIB;
    default: return 1 + draw(run, MIB);
    }
}

static uint64_t mapped_of(const run_t *run) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < LANES; i++) bytes += run->lanes[i].mapped;
    return bytes;
}

static void take(run_t *run) {
    size_t size = draw_size(run), rounded = (size + 511) / 512 * 512;
    uint32_t stream = (uint32_t)draw(run, 2);
    held_t *held = &run->held[run->count++];
    held->lane = 2 * stream + (rounded > MIB);
    lane_t *lane = &run->lanes[held->lane];
    held->at = model_allocate(lane, rounded);
    held->block = rig_allocate(&run->rig, run->streams[stream], size);
    if (lane->base == 0) lane->base = (uint64_t)(uintptr_t)held->block.ptr;
    EXPECT_EQ((uint64_t)(uintptr_t)held->block.ptr - lane->base, held->at);
    EXPECT_EQ(held->block.size, rounded);
}

static void give(run_t *run, uint32_t i) {
    EXPECT_OK(strata_free(run->rig.s, run->held[i].block.ref));
    model_free(&run->lanes[run->held[i].lane], run->held[i].at);
    run->held[i] = run->held[--run->count];
}

/* A range in which nothing is mapped ends: the next one is somewhere else. */
static void release(run_t *run) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < LANES; i++) {
        bytes += model_release(&run->lanes[i]);
        if (run->lanes[i].mapped == 0) run->lanes[i].base = 0;
    }
    EXPECT_EQ(rig_release(&run->rig), bytes);
}

static void play(uint64_t seed) {
    static run_t run;
    run = (run_t){.random = seed};
    rig_open(&run.rig, "pytorch-expandable", NULL, 0, 80 * GIB, 1);
    for (int i = 0; i < 2; i++) run.streams[i] = rig_stream(&run.rig);
    for (uint32_t i = 0; i < LANES; i++) lane_begin(&run.lanes[i], i % 2 ? 20 * MIB : 2 * MIB);
    for (int step = 0; step < STEPS / STRIDE && !strata_test_has_failed(); step++) {
        uint64_t dice = draw(&run, 100), wave = (uint64_t)step / 500 % 2 ? 35 : 60; /* it swells and shrinks */
        if (dice == 99) release(&run);
        else if (run.count < HELD && (dice < wave || run.count == 0)) take(&run);
        else if (run.count > 0) give(&run, (uint32_t)draw(&run, run.count));
        EXPECT_EQ(caching_reserved(&run.rig), mapped_of(&run));
        if (step % 64 == 0) EXPECT_OK(strata_validate(run.rig.s));
    }
    while (run.count > 0) give(&run, run.count - 1);
    release(&run);
    EXPECT_EQ(caching_reserved(&run.rig), 0);
    rig_close(&run.rig);
}

TEST(caching_expandable, every_address_is_the_peers) {
    for (uint64_t seed = 1; seed <= 5 && !strata_test_has_failed(); seed++) {
        play(seed);
        if (strata_test_has_failed()) FAIL_TEST("seed %llu", (unsigned long long)seed);
    }
}
