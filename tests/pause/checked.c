/* Pauses under the happens-before checker: lawful ones are no hazard, and the use of paused memory is one. */
#include <stdio.h>

#include "platform/sim/checker/checker.h"
#include "tests/pause/pause.h"

typedef struct checked {
    rig_t rig;
    strata_checker_t *checker;
    strata_stream_t stream, other;
} checked_t;

static void open_with(checked_t *c, const char *strategy) {
    rig_open(&c->rig, strategy, NULL, 0, 1 * GIB, 1);
    ASSERT_OK(strata_checker_begin(c->rig.world, STRATA_CHECKER_ALL, &c->checker));
    c->stream = rig_stream(&c->rig);
    c->other = rig_stream(&c->rig);
}

static void open_checked(checked_t *c) { open_with(c, PAUSE_MOVING); }

static void close_checked(checked_t *c) {
    strata_checker_end(c->checker);
    rig_finish(&c->rig);
}
#define CHECKED(c) OPENED(checked_t, c, close_checked, open_checked(&c))

static void expect_hazards(checked_t *c, strata_hazard_t kind, uint64_t wanted) {
    EXPECT_EQ(strata_checker_hazards_of(c->checker, kind), wanted);
    EXPECT_EQ(strata_checker_hazards(c->checker), wanted);
    const char *report = strata_checker_report(c->checker, 0);
    if (strata_test_has_failed() && report) printf("%s\n", report);
    EXPECT_TRUE(strata_checker_complete(c->checker));
}

static strata_block_t serve(checked_t *c, strata_stream_t stream, size_t size, uint64_t graph_pool) {
    strata_block_t block = rig_allocate(&c->rig, stream, size);
    strata_checker_allocated(c->checker, &(strata_checker_block_t){.name = block.ref,
                                                                   .device = c->rig.devices[0],
                                                                   .stream = stream,
                                                                   .address = (uintptr_t)block.ptr,
                                                                   .size = block.size,
                                                                   .graph_pool = graph_pool});
    return block;
}

static void take_back(checked_t *c, const strata_block_t *block) {
    strata_checker_freed(c->checker, block->ref);
    EXPECT_OK(strata_free(c->rig.s, block->ref));
}

static strata_status_t work(checked_t *c, strata_stream_t stream, const strata_block_t *block) {
    strata_access_t access = {(uintptr_t)block->ptr, block->size, true};
    strata_checker_expect(c->checker, &block->ref, 1);
    return strata_device_work(c->rig.devices[0], stream, 50000, &access, 1);
}

static void pause_told(checked_t *c, uint32_t contents) {
    strata_checker_pausing(c->checker, true);
    pause_do(&c->rig, STRATA_POOL_EVERY, contents);
    strata_checker_pausing(c->checker, false);
}

static void resume_told(checked_t *c) {
    strata_checker_pausing(c->checker, true);
    resume_do(&c->rig, STRATA_POOL_EVERY);
    strata_checker_pausing(c->checker, false);
}

static strata_graph_t capture(checked_t *c, strata_block_t *block, uint64_t *pool) {
    strata_graph_t graph = NULL;
    strata_capture_status_t status;
    uint64_t id = 0;
    EXPECT_OK(strata_graph_pool_begin(c->rig.s, c->rig.gpu, c->stream, pool));
    EXPECT_OK(strata_capture_begin(c->rig.s, c->rig.gpu, c->stream));
    EXPECT_OK(strata_device_capture_status(c->rig.devices[0], c->stream, &status, &id));
    strata_checker_capture_pool(c->checker, id, 1);
    *block = serve(c, c->stream, 3 * MIB, 1);
    EXPECT_OK(work(c, c->stream, block));
    EXPECT_OK(strata_capture_end(c->rig.s, c->rig.gpu, c->stream, &graph));
    EXPECT_OK(strata_graph_pool_end(c->rig.s, c->rig.gpu, *pool));
    EXPECT_OK(strata_graph_pool_remove(c->rig.s, c->rig.gpu, *pool));
    return graph;
}

/* Blocks live, free, served again and lent; a graph; ordinary pools move what is idle. */
TEST(pause_checked, lawful_pauses_are_no_hazard) {
    CHECKED(c);
    uint64_t pool = 0;
    strata_block_t graphs, blocks[16];
    strata_graph_t graph = capture(&c, &graphs, &pool);
    for (size_t i = 0; i < COUNT(blocks); i++) blocks[i] = serve(&c, c.stream, 3 * MIB + i * 1000, 0);
    for (uint32_t round = 0; round < 6; round++) {
        for (size_t i = 0; i < COUNT(blocks); i++) EXPECT_OK(work(&c, c.stream, &blocks[i]));
        EXPECT_OK(strata_graph_launch(c.rig.s, c.rig.gpu, graph, c.stream));
        for (size_t i = round % 2; i < COUNT(blocks); i += 2) {
            take_back(&c, &blocks[i]);
            blocks[i] = serve(&c, c.stream, 2 * MIB + (round + 1) * 300000, 0);
            EXPECT_OK(work(&c, c.stream, &blocks[i]));
        }
        pause_told(&c, STRATA_PAUSE_PINNED);
        take_back(&c, &blocks[round]);
        resume_told(&c);
        blocks[round] = serve(&c, c.stream, 5 * MIB, 0);
        EXPECT_OK(work(&c, c.stream, &blocks[round]));
    }
    expect_hazards(&c, STRATA_HAZARD_PAUSED, 0);
    EXPECT_OK(strata_stream_synchronize(c.rig.s, c.rig.gpu, c.stream));
    for (size_t i = 0; i < COUNT(blocks); i++) take_back(&c, &blocks[i]);
    take_back(&c, &graphs);
    EXPECT_OK(strata_graph_destroy(c.rig.s, c.rig.gpu, graph));
}

/* A mutant of the library that did not wait would be told of by the rule that an unmap comes after all uses. */
TEST(pause_checked, work_under_way_is_waited_for) {
    CHECKED(c);
    strata_block_t a = serve(&c, c.stream, 3 * MIB, 0), b = serve(&c, c.other, 3 * MIB, 0);
    EXPECT_OK(work(&c, c.stream, &a));
    EXPECT_OK(work(&c, c.other, &b));
    pause_told(&c, STRATA_PAUSE_DROP);
    resume_told(&c);
    EXPECT_OK(work(&c, c.stream, &a));
    expect_hazards(&c, STRATA_HAZARD_PAUSED, 0);
    EXPECT_OK(strata_stream_synchronize(c.rig.s, c.rig.gpu, c.stream));
    take_back(&c, &a);
    take_back(&c, &b);
}

/* A block that goes to the device after its resume waits for the work that was given to it since. */
TEST(pause_checked, a_free_after_a_resume_waits_again) {
    checked_t c CLOSED_BY(close_checked);
    open_with(&c, "stack: [vmm]\n");
    strata_block_t a = serve(&c, c.stream, 3 * MIB, 0);
    pause_told(&c, STRATA_PAUSE_DROP);
    resume_told(&c);
    EXPECT_OK(work(&c, c.stream, &a));
    take_back(&c, &a);
    expect_hazards(&c, STRATA_HAZARD_UNDER_WORK, 0);
}

/* The device is lost by it, as a GPU would be. */
static void close_lost(checked_t *c) {
    strata_checker_end(c->checker);
    EXPECT_OK(strata_close(c->rig.s, STRATA_CLOSE_FORCE, NULL, NULL));
    strata_device_close(c->rig.devices[0]);
    strata_sim_drop(c->rig.world);
    strata_strategy_delete(c->rig.strategy);
}

TEST(pause_checked, a_kernel_on_paused_memory_is_a_hazard) {
    checked_t c;
    open_checked(&c);
    strata_block_t a = serve(&c, c.stream, 3 * MIB, 0);
    EXPECT_OK(work(&c, c.stream, &a));
    pause_told(&c, STRATA_PAUSE_PINNED);
    EXPECT_STATUS(STRATA_E_DEVICE_LOST, work(&c, c.stream, &a));
    expect_hazards(&c, STRATA_HAZARD_PAUSED, 1);
    close_lost(&c);
}

/* By the driver's call, which the library does not see. */
TEST(pause_checked, a_launch_over_paused_memory_is_a_hazard) {
    CHECKED(c);
    uint64_t pool = 0;
    strata_block_t a;
    strata_graph_t graph = capture(&c, &a, &pool);
    EXPECT_OK(strata_device_graph_launch(c.rig.devices[0], graph, c.stream));
    pause_told(&c, STRATA_PAUSE_PINNED);
    EXPECT_OK(strata_device_graph_launch(c.rig.devices[0], graph, c.stream));
    expect_hazards(&c, STRATA_HAZARD_PAUSED, 1);
    resume_told(&c);
    EXPECT_OK(strata_graph_destroy(c.rig.s, c.rig.gpu, graph));
    take_back(&c, &a);
}

/* Who does not say that he pauses has taken memory away from its owners. */
TEST(pause_checked, an_unannounced_pause_is_a_hazard) {
    CHECKED(c);
    strata_block_t a = serve(&c, c.stream, 3 * MIB, 0);
    pause_do(&c.rig, STRATA_POOL_EVERY, STRATA_PAUSE_PINNED);
    expect_hazards(&c, STRATA_HAZARD_TAKEN_AWAY, 1);
    resume_do(&c.rig, STRATA_POOL_EVERY);
    take_back(&c, &a);
}
