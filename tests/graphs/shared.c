/* Graphs that never run together share one pool: what one has freed by the end of its capture serves the next. Together they hold
 * hardly more than the largest alone, in any order if chunks are as large as the largest block, else if the largest comes first:
 * free memory of several chunks is no larger block, and no chunk goes back while a graph may use it. Where each chunk is exactly a
 * request's, it is a little more. */
#include "tests/graphs/graphs.h"

enum { GRAPHS = 8, BLOCKS = 96, SEEDS = 6, PAGE = 4 << 20 };

typedef struct shared {
    const char *name, *strategy;
    double most; /* times the largest */
    uint64_t page; /* bytes by which the pool grows; it may hold one more */
} shared_t;

#define STACK_FOR_GRAPHS "\ngraph: {stack: [auto_growth: {chunk_size: 32MiB}, system]}\n"

static const shared_t chunks_as_large[] = {
    {"strata", "strata", 1.02, PAGE},
    {"paddle_with_a_stack_for_graphs", "extends: paddle" STACK_FOR_GRAPHS, 1.02, 0},
    {"pytorch_with_a_stack_for_graphs", "extends: pytorch" STACK_FOR_GRAPHS, 1.02, 0},
    {"tensorflow", "tensorflow", 1.04, 0},
};
static const shared_t all[] = {
    {"strata", "strata", 1.02, PAGE},      {"naive_best_fit", "stack: [naive_best_fit, system]", 1.02, 0},
    {"tensorflow", "tensorflow", 1.04, 0}, {"pytorch", "pytorch", 1.07, 0},
    {"paddle", "paddle", 1.12, 0},         {"auto_growth", "stack: [auto_growth, system]", 1.12, 0},
};

static uint32_t draw(uint64_t *state, uint32_t below) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % below;
}

/* Inside a capture: blocks of sizes that the seed draws come and go, and all are freed in the end. */
static void use(captured_t *c, uint64_t seed, uint32_t percent) {
    strata_block_t live[BLOCKS];
    uint32_t count = 0;
    for (int i = 0; i < 4 * BLOCKS; i++) {
        bool more = count < BLOCKS && (count == 0 || draw(&seed, 100) < 60);
        if (more) {
            uint32_t shift = 10 + draw(&seed, 9);
            size_t size = ((size_t)(1 + draw(&seed, 64)) << shift) * percent / 100;
            live[count++] = rig_allocate(&c->rig, c->stream, size + 1);
        } else {
            uint32_t at = draw(&seed, count);
            EXPECT_OK(strata_free(c->rig.s, live[at].ref));
            live[at] = live[--count];
        }
    }
    while (count > 0) EXPECT_OK(strata_free(c->rig.s, live[--count].ref));
}

/* What the pool holds once graphs of these sizes were captured into it. */
static uint64_t held_by(const shared_t *row, uint64_t seed, const uint32_t *percent, int count) {
    captured_t c;
    strata_graph_t graphs[GRAPHS];
    captured_open(&c, row->strategy);
    for (int i = 0; i < count; i++) {
        captured_begin(&c);
        use(&c, seed * 1000 + percent[i], percent[i]);
        captured_end(&c);
        graphs[i] = c.graph;
    }
    uint64_t held = captured_pool(&c).reserved_bytes;
    for (int i = 0; i < count; i++) EXPECT_OK(strata_graph_destroy(c.rig.s, c.rig.gpu, graphs[i]));
    captured_close(&c);
    return held;
}

static void expect_hardly_more(const shared_t *row, const uint32_t percent[GRAPHS]) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint64_t largest = 0;
        for (int i = 0; i < GRAPHS; i++) {
            uint64_t held = held_by(row, seed, &percent[i], 1);
            if (held > largest) largest = held;
        }
        EXPECT_LE((double)held_by(row, seed, percent, GRAPHS), row->most * (double)largest + (double)row->page);
    }
}

TEST_EACH(graph_shared, eight_hold_hardly_more_than_the_largest_in_any_order, shared_t, chunks_as_large) {
    expect_hardly_more(row, (const uint32_t[GRAPHS]){60, 30, 80, 50, 100, 40, 90, 70});
    expect_hardly_more(row, (const uint32_t[GRAPHS]){30, 40, 50, 60, 70, 80, 90, 100});
}

TEST_EACH(graph_shared, eight_hold_hardly_more_than_the_largest_if_that_comes_first, shared_t, all) {
    expect_hardly_more(row, (const uint32_t[GRAPHS]){100, 90, 80, 70, 60, 50, 40, 30});
}
