/* reuse_in_capture: a block that is lent and freed inside a capture serves it again once its owner has joined the borrowers, and not
 * before. The checker says of every launch whether two accesses have no order. */
#include "tests/graphs/peers.h"

#define BYTES (1ull << 20)

typedef struct layers {
    const char *name, *strategy;
} layers_t;

static const layers_t layers[] = {
    {"caching", "stack: [caching: {reuse_in_capture: true}, system]"},
    {"stream_safe", "stack: [stream_safe: {reuse_in_capture: true}, auto_growth: {chunk_size: 64MiB}, system]"},
    {"by_block",
     "stack: [stream_safe: {reuse_in_capture: true, poll: block, event: use}, auto_growth: {chunk_size: 64MiB}, system]"},
    {"both", "stack: [stream_safe: {reuse_in_capture: true}, caching: {reuse_in_capture: true}, system]"},
    {"below_retry", "stack: [retry: {timeout: 1ms}, stream_safe: {reuse_in_capture: true}, buffered, system]"},
};

/* The other stream comes after this one, reads the block and borrows it. */
static void lend(captured_t *c, const strata_block_t *block, strata_stream_t other) {
    peer_join(c, other, c->stream);
    peer_read(c, other, block);
    peer_borrow(c, block, other);
}

static void close_with(captured_t *c, const strata_block_t *const *blocks, size_t count) {
    captured_end(c);
    captured_launch(c);
    captured_launch(c);
    for (size_t i = 0; i < count; i++) peer_free(c, blocks[i]);
    captured_destroy(c);
    captured_close(c);
}
#define CLOSE_WITH(c, ...)                                                                                                         \
    close_with((c), (const strata_block_t *const[]){__VA_ARGS__},                                                                  \
               sizeof((const strata_block_t *const[]){__VA_ARGS__}) / sizeof(strata_block_t *))

TEST_EACH(graph_reuse, a_block_serves_again_once_its_owner_has_joined, layers_t, layers) {
    captured_t c;
    peer_open(&c, row->strategy, 0, STRATA_CHECKER_ALL);
    captured_begin(&c);
    strata_block_t lent = peer_made(&c, c.stream, BYTES, 1);
    lend(&c, &lent, c.other);
    peer_free(&c, &lent);
    strata_block_t before = peer_made(&c, c.stream, BYTES, 2);
    EXPECT_NE(before.ptr, lent.ptr);
    peer_join(&c, c.stream, c.other);
    strata_block_t theirs = rig_allocate(&c.rig, c.other, BYTES), again = peer_made(&c, c.stream, BYTES, 3);
    EXPECT_NE(theirs.ptr, lent.ptr);
    EXPECT_EQ(again.ptr, lent.ptr);
    EXPECT_OK(strata_validate(c.rig.s));
    CLOSE_WITH(&c, &before, &theirs, &again);
}

/* What the borrower is given after the join is not told from what it was given before. */
TEST_EACH(graph_reuse, a_borrower_that_goes_on_is_joined_again, layers_t, layers) {
    captured_t c;
    peer_open(&c, row->strategy, 0, STRATA_CHECKER_ALL);
    captured_begin(&c);
    strata_block_t lent = peer_made(&c, c.stream, BYTES, 1), theirs = rig_allocate(&c.rig, c.other, BYTES);
    lend(&c, &lent, c.other);
    peer_free(&c, &lent);
    peer_join(&c, c.stream, c.other);
    peer_fill(&c, c.other, &theirs, 2);
    strata_block_t between = peer_made(&c, c.stream, BYTES, 3);
    EXPECT_NE(between.ptr, lent.ptr);
    peer_join(&c, c.stream, c.other);
    strata_block_t again = peer_made(&c, c.stream, BYTES, 4);
    EXPECT_EQ(again.ptr, lent.ptr);
    CLOSE_WITH(&c, &theirs, &between, &again);
}

TEST_EACH(graph_reuse, at_its_free_if_that_comes_after_the_join, layers_t, layers) {
    captured_t c;
    peer_open(&c, row->strategy, 0, STRATA_CHECKER_ALL);
    captured_begin(&c);
    strata_block_t lent = peer_made(&c, c.stream, BYTES, 1);
    lend(&c, &lent, c.other);
    peer_join(&c, c.stream, c.other);
    peer_free(&c, &lent);
    strata_block_t again = peer_made(&c, c.stream, BYTES, 2);
    EXPECT_EQ(again.ptr, lent.ptr);
    CLOSE_WITH(&c, &again);
}

/* The stream that borrows is no part of the capture, whatever comes of it later: what it does is not in the graph. */
TEST_EACH(graph_reuse, a_borrow_outside_the_capture_is_for_after_it, layers_t, layers) {
    captured_t c;
    peer_open(&c, row->strategy, 0, STRATA_CHECKER_ALL & ~STRATA_CHECKER_RULE(1));
    captured_begin(&c);
    strata_block_t lent = peer_made(&c, c.stream, BYTES, 1);
    peer_borrow(&c, &lent, c.other);
    lend(&c, &lent, c.other);
    peer_join(&c, c.stream, c.other);
    peer_free(&c, &lent);
    strata_block_t other = peer_made(&c, c.stream, BYTES, 2);
    EXPECT_NE(other.ptr, lent.ptr);
    CLOSE_WITH(&c, &other);
}

/* A block of one capture, lent there, and freed inside the next: work outside may have come of that borrow in between. */
TEST_EACH(graph_reuse, a_borrow_of_an_earlier_capture_is_for_after_it, layers_t, layers) {
    captured_t c;
    peer_open(&c, row->strategy, 0, STRATA_CHECKER_ALL & ~STRATA_CHECKER_RULE(1));
    captured_begin(&c);
    strata_block_t lent = peer_made(&c, c.stream, BYTES, 1);
    lend(&c, &lent, c.other);
    peer_join(&c, c.stream, c.other);
    captured_end(&c);
    strata_graph_t first = c.graph;
    captured_begin(&c);
    lend(&c, &lent, c.other);
    peer_join(&c, c.stream, c.other);
    peer_free(&c, &lent);
    strata_block_t other = peer_made(&c, c.stream, BYTES, 2);
    EXPECT_NE(other.ptr, lent.ptr);
    peer_destroy(&c, first);
    CLOSE_WITH(&c, &other);
}

/* Nobody can ask any more what comes after it. */
TEST_EACH(graph_reuse, a_block_of_a_forgotten_owner_is_for_after_the_capture, layers_t, layers) {
    captured_t c;
    peer_open(&c, row->strategy, 0, STRATA_CHECKER_ALL);
    captured_begin(&c);
    peer_join(&c, c.other, c.stream);
    strata_block_t lent = peer_made(&c, c.other, BYTES, 1);
    peer_join(&c, c.stream, c.other);
    peer_read(&c, c.stream, &lent);
    peer_borrow(&c, &lent, c.stream);
    peer_free(&c, &lent);
    peer_join(&c, c.other, c.stream);
    EXPECT_OK(strata_stream_forget(c.rig.s, c.rig.gpu, c.other));
    strata_block_t own = peer_made(&c, c.stream, BYTES, 2), theirs = rig_allocate(&c.rig, c.other, BYTES);
    EXPECT_NE(own.ptr, lent.ptr);
    EXPECT_NE(theirs.ptr, lent.ptr);
    EXPECT_OK(strata_validate(c.rig.s));
    peer_join(&c, c.stream, c.other);
    CLOSE_WITH(&c, &own, &theirs);
}

/* ---- random programs ---- */

enum { STREAMS = 4, HELD = 24, STEPS = 400, SEEDS = 40 };

typedef struct program {
    captured_t *c;
    strata_stream_t streams[STREAMS];
    strata_block_t held[HELD], lent[HELD]; /* ref 0: none; the last that were lent and freed */
    uint32_t owner[HELD], lent_next, reused;
    bool is_lent[HELD];
    uint64_t random;
} program_t;

static uint32_t below(program_t *p, uint32_t bound) {
    p->random = p->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((p->random >> 33) % bound);
}

static void take(program_t *p, uint32_t at) {
    uint32_t s = p->owner[at] = below(p, STREAMS);
    p->held[at] = peer_made(p->c, p->streams[s], BYTES, (uint8_t)at);
    p->is_lent[at] = false;
    for (int i = 0; i < HELD; i++) p->reused += p->lent[i].ref && p->lent[i].ptr == p->held[at].ptr;
}

static void give(program_t *p, uint32_t at) {
    peer_free(p->c, &p->held[at]);
    if (p->is_lent[at]) p->lent[p->lent_next++ % HELD] = p->held[at];
    p->held[at].ref = 0;
}

static void lend_to(program_t *p, uint32_t at, strata_stream_t other) {
    peer_join(p->c, other, p->streams[p->owner[at]]);
    peer_read(p->c, other, &p->held[at]);
    peer_borrow(p->c, &p->held[at], other);
    p->is_lent[at] = true;
}

static void step(program_t *p) {
    uint32_t at = below(p, HELD), s = below(p, STREAMS), t = below(p, STREAMS);
    if (below(p, 4) == 0) {
        if (s != t) peer_join(p->c, p->streams[s], p->streams[t]);
    } else if (!p->held[at].ref) {
        take(p, at);
    } else if (below(p, 2) && s != p->owner[at]) {
        lend_to(p, at, p->streams[s]);
    } else {
        give(p, at);
    }
}

/* How often a block that was lent served again inside its capture. */
static uint32_t run(const char *strategy, uint64_t seed) {
    captured_t c;
    peer_open(&c, strategy, 4 * GIB, STRATA_CHECKER_ALL);
    program_t p = {.c = &c, .streams = {c.stream, c.other, rig_stream(&c.rig), rig_stream(&c.rig)}, .random = seed};
    captured_begin(&c);
    for (int s = 1; s < STREAMS; s++) peer_join(&c, p.streams[s], c.stream);
    for (int i = 0; i < STEPS && !strata_test_has_failed(); i++) step(&p);
    EXPECT_OK(strata_validate(c.rig.s));
    for (int s = 1; s < STREAMS; s++) peer_join(&c, c.stream, p.streams[s]);
    captured_end(&c);
    captured_launch(&c);
    captured_launch(&c);
    for (uint32_t i = 0; i < HELD; i++)
        if (p.held[i].ref) give(&p, i);
    captured_destroy(&c);
    for (int s = 2; s < STREAMS; s++) peer_end_stream(&c, p.streams[s]);
    captured_close(&c);
    if (strata_test_has_failed()) FAIL_TEST("so far with seed %llu", (unsigned long long)seed);
    return p.reused;
}

TEST_EACH(graph_reuse, random_programs_race_nowhere, layers_t, layers) {
    uint32_t reused = 0;
    for (uint64_t seed = 1; seed <= SEEDS / (STRIDE > 1 ? 8 : 1) && !strata_test_has_failed(); seed++)
        reused += run(row->strategy, seed);
    EXPECT_GT(reused, SEEDS);
}

TEST(graph_reuse, off_it_never_happens) {
    EXPECT_EQ(run("stack: [caching, system]", 1), 0);
    EXPECT_EQ(run("strata", 1), 0);
}
