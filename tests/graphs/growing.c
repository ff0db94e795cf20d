/* Blocks that keep growing, with the checker on: handles move beside a free block, but never during a capture. */
#include <string.h>

#include "tests/graphs/graphs.h"

enum { STEPS = 60 };

static void find_moves(const strata_layer_figure_t *figure, void *context) {
    if (strcmp(figure->name, "moves") == 0) *(uint64_t *)context += figure->value;
}

/* Replaces a block by larger ones, and works on each. Returns the number of handles that have moved. */
static uint64_t grow(captured_t *c) {
    uint64_t moves = 0;
    strata_block_t block = rig_allocate(&c->rig, c->stream, 24 * MIB);
    for (size_t i = 0; i < STEPS; i++) {
        strata_block_t next = rig_allocate(&c->rig, c->stream, block.size + (i % 3 + 1) * 2 * MIB);
        captured_work(c, c->stream, &block);
        captured_work(c, c->stream, &next);
        EXPECT_OK(strata_free(c->rig.s, block.ref));
        block = next;
    }
    EXPECT_OK(strata_layer_figures(c->rig.s, c->rig.gpu, find_moves, &moves));
    EXPECT_OK(strata_free(c->rig.s, block.ref));
    return moves;
}

typedef struct many {
    const char *name, *strategy;
} many_t;

static const many_t many[] = {
    {"auto_growth_vmm", "stack: [stream_safe, auto_growth_vmm, vmm]"},
    {"best_fit_vmm", "stack: [stream_safe, best_fit_vmm: {handle: 2MiB}, vmm]"},
    {"caching_vmm", "stack: [caching_vmm: {large_segment: 10MiB}, vmm]"},
};

/* A growth of many handles runs out of slots for their records and is repeated. No wait is possible in a capture, so
 * nothing that the first try mapped may stay. */
TEST_EACH(graph_growing, one_request_of_many_handles, many_t, many) {
    captured_t c;
    captured_open_in(&c, row->strategy, 4 * GIB);
    captured_begin(&c);
    strata_block_t first = rig_allocate(&c.rig, c.stream, 400 * MIB), second = rig_allocate(&c.rig, c.stream, 1 * GIB);
    EXPECT_OK(strata_free(c.rig.s, first.ref));
    EXPECT_OK(strata_free(c.rig.s, second.ref));
    EXPECT_LE(captured_pool(&c).reserved_bytes, 400 * MIB + 1 * GIB + 10 * MIB);
    captured_end(&c);
    captured_destroy(&c);
    captured_close(&c);
}

/* Each pool has a range of addresses, and a process has only so many of them. */
TEST(graph_growing, many_pools_have_ranges_of_their_own) {
    enum { POOLS = 600 };
    static strata_graph_t graphs[POOLS];
    captured_t c;
    captured_open(&c, "strata");
    for (int i = 0; i < POOLS; i++) {
        c.pool = 0;
        captured_begin(&c);
        EXPECT_OK(strata_free(c.rig.s, rig_allocate(&c.rig, c.stream, MIB).ref));
        captured_end(&c);
        graphs[i] = c.graph;
    }
    for (int i = 0; i < POOLS; i++) EXPECT_OK(strata_graph_destroy(c.rig.s, c.rig.gpu, graphs[i]));
    captured_close(&c);
}

TEST(graph_growing, moved_memory_has_no_hazard) {
    captured_t c;
    captured_open(&c, "strata");
    EXPECT_GT(grow(&c), 0);
    captured_close(&c);
}

/* The graph would use the old address at its launch. */
TEST(graph_growing, no_handle_moves_during_a_capture) {
    captured_t c;
    captured_open(&c, "stack: [stream_safe, auto_growth_vmm, vmm]");
    captured_begin(&c);
    EXPECT_EQ(grow(&c), 0);
    captured_end(&c);
    captured_launch(&c);
    captured_destroy(&c);
    captured_close(&c);
}
