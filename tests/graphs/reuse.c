/* reuse_in_capture: a block that is lent and freed inside a capture serves it again once its owner has joined the borrowers, and not
 * before. The checker says of every launch whether two accesses have no order. */
#include <pthread.h>

#include "tests/graphs/peers/peers.h"

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

static uint64_t deferred(captured_t *c) {
    strata_statistics_t figures = {.struct_size = sizeof figures};
    EXPECT_OK(strata_statistics_all(c->rig.s, c->rig.gpu, &figures));
    return figures.deferred_bytes;
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
    EXPECT_EQ(deferred(&c), 0);
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

/* The borrower has no part in the capture, and is idle. Requests inside look for blocks that are done, and take no event of it. */
TEST_EACH(graph_reuse, a_borrow_of_a_stream_that_never_joins_is_for_after_the_capture, layers_t, layers) {
    captured_t c;
    strata_block_t others[2];
    peer_open(&c, row->strategy, 0, STRATA_CHECKER_ALL & ~STRATA_CHECKER_RULE(1));
    captured_begin(&c);
    strata_block_t lent = peer_made(&c, c.stream, BYTES, 1);
    peer_borrow(&c, &lent, c.other);
    peer_free(&c, &lent);
    uint64_t recorded = rig_calls(&c.rig, STRATA_CALL_event_record);
    for (int i = 0; i < 2; i++) {
        others[i] = peer_made(&c, c.stream, BYTES, 2);
        EXPECT_NE(others[i].ptr, lent.ptr);
        EXPECT_EQ(deferred(&c), BYTES);
    }
    EXPECT_EQ(rig_calls(&c.rig, STRATA_CALL_event_record), recorded);
    CLOSE_WITH(&c, &others[0], &others[1]);
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

/* The owner has joined the borrower in the second capture. That says nothing of the borrow, which is of the first. */
TEST_EACH(graph_reuse, a_join_in_a_later_capture_is_not_that_of_the_borrow, layers_t, layers) {
    captured_t c;
    peer_open(&c, row->strategy, 0, STRATA_CHECKER_ALL & ~STRATA_CHECKER_RULE(1));
    captured_begin(&c);
    strata_block_t lent = peer_made(&c, c.stream, BYTES, 1);
    lend(&c, &lent, c.other);
    peer_join(&c, c.stream, c.other);
    captured_end(&c);
    strata_graph_t first = c.graph;
    captured_begin(&c);
    peer_join(&c, c.other, c.stream);
    peer_join(&c, c.stream, c.other);
    peer_free(&c, &lent);
    EXPECT_EQ(deferred(&c), BYTES);
    strata_block_t other = peer_made(&c, c.stream, BYTES, 2);
    EXPECT_NE(other.ptr, lent.ptr);
    peer_destroy(&c, first);
    CLOSE_WITH(&c, &other);
}

/* The owner is forgotten before the block is freed: its handle may be another stream's by then, so no join of it counts. */
TEST_EACH(graph_reuse, a_block_that_is_freed_after_its_owner_was_forgotten_waits, layers_t, layers) {
    captured_t c;
    peer_open(&c, row->strategy, 0, STRATA_CHECKER_ALL);
    captured_begin(&c);
    peer_join(&c, c.other, c.stream);
    strata_block_t lent = peer_made(&c, c.other, BYTES, 1);
    peer_join(&c, c.stream, c.other);
    peer_read(&c, c.stream, &lent);
    peer_borrow(&c, &lent, c.stream);
    peer_join(&c, c.other, c.stream);
    EXPECT_OK(strata_stream_forget(c.rig.s, c.rig.gpu, c.other));
    uint64_t asked = rig_calls(&c.rig, STRATA_CALL_capture_follows);
    peer_free(&c, &lent);
    EXPECT_EQ(rig_calls(&c.rig, STRATA_CALL_capture_follows), asked);
    EXPECT_EQ(deferred(&c), BYTES);
    strata_block_t own = peer_made(&c, c.stream, BYTES, 2);
    EXPECT_NE(own.ptr, lent.ptr);
    EXPECT_OK(strata_validate(c.rig.s));
    peer_join(&c, c.stream, c.other);
    CLOSE_WITH(&c, &own);
}

/* One request finds all of them, so that what lies side by side is one piece again. */
TEST_EACH(graph_reuse, the_first_request_after_the_join_takes_up_every_block, layers_t, layers) {
    enum { BLOCKS = 3 };
    captured_t c;
    strata_block_t lent[BLOCKS];
    peer_open(&c, row->strategy, 0, STRATA_CHECKER_ALL);
    captured_begin(&c);
    for (int i = 0; i < BLOCKS; i++) lent[i] = peer_made(&c, c.stream, BYTES, 1);
    for (int i = 0; i < BLOCKS; i++) lend(&c, &lent[i], c.other);
    for (int i = 0; i < BLOCKS; i++) peer_free(&c, &lent[i]);
    EXPECT_EQ(deferred(&c), BLOCKS * BYTES);
    peer_join(&c, c.stream, c.other);
    strata_block_t again = peer_made(&c, c.stream, BYTES, 2);
    EXPECT_EQ(deferred(&c), 0);
    CLOSE_WITH(&c, &again);
}

/* The driver is asked nothing about a borrow outside captures. */
TEST_EACH(graph_reuse, a_borrow_outside_captures_costs_no_question, layers_t, layers) {
    captured_t c;
    peer_open(&c, row->strategy, 0, STRATA_CHECKER_ALL);
    strata_block_t block = peer_made(&c, c.stream, BYTES, 1);
    uint64_t asked = rig_calls(&c.rig, STRATA_CALL_capture_status);
    for (int i = 0; i < 3; i++) lend(&c, &block, c.other);
    EXPECT_EQ(rig_calls(&c.rig, STRATA_CALL_capture_status), asked);
    peer_free(&c, &block);
    captured_close(&c);
}

/* Two owners lend a block each to one borrower, and one of them joins it: only its own block serves again, whichever was freed first. */
typedef struct lenders {
    const char *name;
    bool second_joins, second_frees_first;
} lenders_t;

static const lenders_t lenders[] = {{"the_first_of_two", false, false},
                                    {"the_second_of_two", true, false},
                                    {"the_first_that_frees_last", false, true},
                                    {"the_second_that_frees_first", true, true}};

TEST_EACH(graph_reuse, the_join_of_one_owner_is_not_that_of_another, lenders_t, lenders) {
    for (size_t at = 0; at < sizeof layers / sizeof *layers; at++) {
        captured_t c;
        peer_open(&c, layers[at].strategy, 0, STRATA_CHECKER_ALL);
        strata_stream_t borrower = rig_stream(&c.rig);
        captured_begin(&c);
        peer_join(&c, c.other, c.stream);
        strata_stream_t owners[] = {c.stream, c.other};
        strata_block_t lent[2], next[2];
        for (int i = 0; i < 2; i++) {
            lent[i] = peer_made(&c, owners[i], BYTES, 1);
            peer_join(&c, borrower, owners[i]);
            peer_read(&c, borrower, &lent[i]);
            peer_borrow(&c, &lent[i], borrower);
        }
        for (int i = 0; i < 2; i++) peer_free(&c, &lent[i ^ row->second_frees_first]);
        peer_join(&c, owners[row->second_joins], borrower);
        /* The owner that has not joined asks first, then the one that has. */
        for (int i = 1; i >= 0; i--) {
            int owner = i ^ row->second_joins;
            next[owner] = peer_made(&c, owners[owner], BYTES, 2);
            EXPECT_EQ(next[owner].ptr == lent[owner].ptr, owner == row->second_joins);
        }
        EXPECT_OK(strata_validate(c.rig.s));
        peer_join(&c, c.stream, borrower);
        peer_join(&c, c.stream, c.other);
        captured_end(&c);
        captured_launch(&c);
        for (int i = 0; i < 2; i++) peer_free(&c, &next[i]);
        captured_destroy(&c);
        peer_end_stream(&c, borrower);
        captured_close(&c);
    }
}

/* More borrowers than one poll keeps answers of, and the owner joins all but one. */
TEST_EACH(graph_reuse, each_of_many_borrowers_is_joined_by_itself, layers_t, layers) {
    enum { BORROWERS = 10 };
    for (int missing = 0; missing < BORROWERS; missing += BORROWERS - 1) {
        captured_t c;
        strata_stream_t borrowers[BORROWERS];
        strata_block_t lent[BORROWERS], next[BORROWERS];
        peer_open(&c, row->strategy, 0, STRATA_CHECKER_ALL);
        captured_begin(&c);
        for (int i = 0; i < BORROWERS; i++) {
            borrowers[i] = rig_stream(&c.rig);
            lent[i] = peer_made(&c, c.stream, BYTES, 1);
            lend(&c, &lent[i], borrowers[i]);
        }
        for (int i = 0; i < BORROWERS; i++) peer_free(&c, &lent[i]);
        for (int i = 0; i < BORROWERS; i++)
            if (i != missing) peer_join(&c, c.stream, borrowers[i]);
        uint32_t again = 0;
        for (int i = 0; i < BORROWERS; i++) {
            next[i] = peer_made(&c, c.stream, BYTES, 2);
            EXPECT_NE(next[i].ptr, lent[missing].ptr);
            for (int k = 0; k < BORROWERS; k++) again += next[i].ptr == lent[k].ptr;
        }
        EXPECT_EQ(again, BORROWERS - 1);
        peer_join(&c, c.stream, borrowers[missing]);
        captured_end(&c);
        captured_launch(&c);
        for (int i = 0; i < BORROWERS; i++) peer_free(&c, &next[i]);
        captured_destroy(&c);
        for (int i = 0; i < BORROWERS; i++) peer_end_stream(&c, borrowers[i]);
        captured_close(&c);
    }
}

/* Nine borrowers have two blocks each, and the owner has joined none. A request keeps eight answers, so it asks twice about the ninth
 * borrower alone. */
TEST_EACH(graph_reuse, a_request_asks_once_about_each_of_eight_borrowers, layers_t, layers) {
    enum { BORROWERS = 9 };
    captured_t c;
    strata_stream_t borrowers[BORROWERS];
    strata_block_t lent[2 * BORROWERS];
    peer_open(&c, row->strategy, 0, STRATA_CHECKER_ALL);
    captured_begin(&c);
    for (int i = 0; i < BORROWERS; i++) borrowers[i] = rig_stream(&c.rig);
    for (int i = 0; i < 2 * BORROWERS; i++) {
        lent[i] = peer_made(&c, c.stream, BYTES, 1);
        lend(&c, &lent[i], borrowers[i % BORROWERS]);
    }
    for (int i = 0; i < 2 * BORROWERS; i++) peer_free(&c, &lent[i]);
    uint64_t asked = rig_calls(&c.rig, STRATA_CALL_capture_follows);
    strata_block_t own = peer_made(&c, c.stream, BYTES, 2);
    EXPECT_EQ(rig_calls(&c.rig, STRATA_CALL_capture_follows) - asked, 8 + 2);
    EXPECT_EQ(deferred(&c), 2 * BORROWERS * BYTES);
    for (int i = 0; i < BORROWERS; i++) peer_join(&c, c.stream, borrowers[i]);
    captured_end(&c);
    captured_launch(&c);
    peer_free(&c, &own);
    captured_destroy(&c);
    for (int i = 0; i < BORROWERS; i++) peer_end_stream(&c, borrowers[i]);
    captured_close(&c);
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

/* ---- streams of one name ---- */

typedef struct elsewhere {
    captured_t *c;
    const strata_block_t *lent;
    strata_stream_t before, after; /* the thread's own stream comes after one, and another one after it */
} elsewhere_t;

static void *join_and_free(void *context) {
    const elsewhere_t *elsewhere = context;
    peer_join(elsewhere->c, STRATA_STREAM_PER_THREAD, elsewhere->before);
    peer_join(elsewhere->c, elsewhere->after, STRATA_STREAM_PER_THREAD);
    peer_free(elsewhere->c, elsewhere->lent);
    return NULL;
}

static void free_elsewhere(elsewhere_t *elsewhere) {
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, NULL, join_and_free, elsewhere), 0);
    pthread_join(thread, NULL);
}

/* The thread that frees has a stream of the owner's name, which has joined the borrower. The owner has not. */
TEST_EACH(graph_reuse, the_join_of_another_threads_stream_is_not_that_of_the_owner, layers_t, layers) {
    captured_t c;
    peer_open(&c, row->strategy, 0, STRATA_CHECKER_ALL);
    captured_begin(&c);
    peer_join(&c, STRATA_STREAM_PER_THREAD, c.stream);
    strata_block_t lent = peer_made(&c, STRATA_STREAM_PER_THREAD, BYTES, 1);
    peer_join(&c, c.other, STRATA_STREAM_PER_THREAD);
    peer_read(&c, c.other, &lent);
    peer_borrow(&c, &lent, c.other);
    free_elsewhere(&(elsewhere_t){.c = &c, .lent = &lent, .before = c.other, .after = c.stream});
    EXPECT_EQ(deferred(&c), BYTES);
    strata_block_t before = peer_made(&c, STRATA_STREAM_PER_THREAD, BYTES, 2);
    EXPECT_NE(before.ptr, lent.ptr);
    peer_join(&c, STRATA_STREAM_PER_THREAD, c.other);
    strata_block_t again = peer_made(&c, STRATA_STREAM_PER_THREAD, BYTES, 3);
    EXPECT_EQ(again.ptr, lent.ptr);
    peer_join(&c, c.stream, STRATA_STREAM_PER_THREAD);
    CLOSE_WITH(&c, &before, &again);
}

/* The thread that frees has a stream of the borrower's name, which the owner has joined. The borrower it has not. */
TEST_EACH(graph_reuse, the_join_of_another_threads_stream_is_not_that_of_the_borrower, layers_t, layers) {
    captured_t c;
    peer_open(&c, row->strategy, 0, STRATA_CHECKER_ALL);
    captured_begin(&c);
    strata_block_t lent = peer_made(&c, c.stream, BYTES, 1);
    lend(&c, &lent, STRATA_STREAM_PER_THREAD);
    free_elsewhere(&(elsewhere_t){.c = &c, .lent = &lent, .before = c.stream, .after = c.stream});
    EXPECT_EQ(deferred(&c), BYTES);
    strata_block_t before = peer_made(&c, c.stream, BYTES, 2);
    EXPECT_NE(before.ptr, lent.ptr);
    peer_join(&c, c.stream, STRATA_STREAM_PER_THREAD);
    strata_block_t again = peer_made(&c, c.stream, BYTES, 3);
    EXPECT_EQ(again.ptr, lent.ptr);
    CLOSE_WITH(&c, &before, &again);
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
