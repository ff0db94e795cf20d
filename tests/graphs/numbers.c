/* Numbers, counts and captures of pools where one is easily taken for another: a group that serves its next pool, two pools at once,
 * two captures in one begin, a stream that is in another capture by now. */
#include <pthread.h>

#include "allocation/graphs/graphs.h"
#include "facade/registry/plans.h"
#include "tests/graphs/graphs.h"

enum { SIZE = 1 << 20 };

static void give(captured_t *c, const strata_block_t *block) { EXPECT_OK(strata_free(c->rig.s, block->ref)); }

static void begin_on(captured_t *c, strata_stream_t stream, uint64_t *pool) {
    ASSERT_OK(strata_graph_pool_begin(c->rig.s, c->rig.gpu, stream, pool));
}

static void end_of(captured_t *c, uint64_t pool) { EXPECT_OK(strata_graph_pool_end(c->rig.s, c->rig.gpu, pool)); }

static void remove_of(captured_t *c, uint64_t pool) { EXPECT_OK(strata_graph_pool_remove(c->rig.s, c->rig.gpu, pool)); }

static strata_graph_pool_info_t info_of(captured_t *c, uint64_t pool) {
    strata_graph_pool_info_t info = {.struct_size = sizeof info};
    EXPECT_OK(strata_graph_pool_describe(c->rig.s, c->rig.gpu, pool, &info));
    return info;
}

static void allocate_and_give(captured_t *c, strata_stream_t stream) {
    strata_block_t block = rig_allocate(&c->rig, stream, SIZE);
    give(c, &block);
}

static void expect_stale(captured_t *c, uint64_t pool) {
    strata_graph_pool_info_t info = {.struct_size = sizeof info};
    strata_checkpoint_t none;
    EXPECT_STATUS(STRATA_E_STALE, strata_graph_pool_describe(c->rig.s, c->rig.gpu, pool, &info));
    EXPECT_STATUS(STRATA_E_STALE, strata_graph_pool_begin(c->rig.s, c->rig.gpu, c->stream, &pool));
    EXPECT_STATUS(STRATA_E_STALE, strata_graph_pool_end(c->rig.s, c->rig.gpu, pool));
    EXPECT_STATUS(STRATA_E_STALE, strata_graph_pool_remove(c->rig.s, c->rig.gpu, pool));
    EXPECT_STATUS(STRATA_E_STALE, strata_graph_pool_checkpoint(c->rig.s, c->rig.gpu, pool, &none));
}

/* ---- numbers ---- */

/* The group of the first pool serves the third, the number of the first names nothing ever again. */
TEST(graph_numbers, the_next_pool_of_a_group_has_another_number) {
    captured_t c;
    uint64_t first = 0, second = 0, third = 0;
    captured_open(&c, "strata");
    begin_on(&c, c.stream, &first);
    begin_on(&c, c.other, &second);
    allocate_and_give(&c, c.stream);
    end_of(&c, first);
    remove_of(&c, first);
    expect_stale(&c, first);
    EXPECT_TRUE(info_of(&c, second).begun);
    begin_on(&c, c.stream, &third);
    EXPECT_TRUE(third != first && third != second);
    expect_stale(&c, first);
    EXPECT_EQ(info_of(&c, third).begins, 1);
    EXPECT_EQ(info_of(&c, third).pool, third);
    EXPECT_EQ(info_of(&c, second).pool, second);
    end_of(&c, second);
    remove_of(&c, second);
    expect_stale(&c, second);
    EXPECT_TRUE(info_of(&c, third).begun);
    end_of(&c, third);
    remove_of(&c, third);
    captured_close(&c);
}

TEST(graph_numbers, what_marks_an_ended_pool_is_the_number_of_none) {
    captured_t c;
    uint64_t pool = 0, ended = STRATA_GRAPH_POOL_ENDED;
    strata_graph_pool_info_t info = {.struct_size = sizeof info};
    captured_open(&c, "strata");
    begin_on(&c, c.stream, &pool);
    end_of(&c, pool);
    remove_of(&c, pool);
    EXPECT_STATUS(STRATA_E_INVALID, strata_graph_pool_begin(c.rig.s, c.rig.gpu, c.stream, &ended));
    EXPECT_STATUS(STRATA_E_INVALID, strata_graph_pool_describe(c.rig.s, c.rig.gpu, ended, &info));
    EXPECT_STATUS(STRATA_E_INVALID, strata_graph_pool_end(c.rig.s, c.rig.gpu, ended));
    captured_close(&c);
}

TEST(graph_numbers, a_number_is_of_one_place) {
    captured_t c;
    uint64_t pool = 0, managed = 0;
    captured_open(&c, "strata");
    strata_place_t place = strata_managed(0);
    begin_on(&c, c.stream, &pool);
    ASSERT_OK(strata_graph_pool_begin(c.rig.s, place, c.stream, &managed));
    EXPECT_NE(pool, managed);
    EXPECT_SAYS(STRATA_E_STALE, strata_graph_pool_end(c.rig.s, c.rig.gpu, managed), "belongs to another place");
    EXPECT_STATUS(STRATA_E_STALE, strata_graph_pool_remove(c.rig.s, place, pool));
    EXPECT_OK(strata_graph_pool_end(c.rig.s, place, managed));
    EXPECT_OK(strata_graph_pool_remove(c.rig.s, place, managed));
    EXPECT_TRUE(info_of(&c, pool).begun);
    end_of(&c, pool);
    remove_of(&c, pool);
    EXPECT_OK(strata_stream_forget(c.rig.s, place, c.stream));
    captured_close(&c);
}

/* The number behind the last one would be a named pool's or the first one's again. */
TEST(graph_numbers, the_last_number_is_given_once) {
    captured_t c;
    uint64_t last = 0, none = 0;
    captured_open(&c, "strata");
    strata_facade_t *facade = strata_facade_of(c.rig.s);
    atomic_store(&facade->graph_pools, STRATA_POOL_GRAPH_BIT - 1);
    begin_on(&c, c.stream, &last);
    EXPECT_TRUE(strata_plans_is_graph_pool(facade, last));
    EXPECT_STATUS(STRATA_E_LIMIT, strata_graph_pool_begin(c.rig.s, c.rig.gpu, c.other, &none));
    EXPECT_EQ(none, 0);
    end_of(&c, last);
    remove_of(&c, last);
    captured_close(&c);
}

TEST(graph_numbers, as_many_are_listed_as_there_is_room_for) {
    enum { POOLS = 3 };
    captured_t c;
    uint64_t pools[POOLS] = {0}, gone = 0;
    size_t count;
    captured_open(&c, "strata");
    begin_on(&c, c.stream, &gone);
    for (int i = 0; i < POOLS; i++) {
        begin_on(&c, c.other, &pools[i]);
        end_of(&c, pools[i]);
    }
    end_of(&c, gone);
    remove_of(&c, gone);
    for (size_t room = 0; room <= POOLS + 1; room++) {
        uint64_t listed[POOLS + 1] = {0};
        EXPECT_OK(strata_graph_pools(c.rig.s, c.rig.gpu, listed, room, &count));
        EXPECT_EQ(count, POOLS);
        for (size_t i = 0; i < POOLS + 1; i++) EXPECT_EQ(listed[i], i < room && i < POOLS ? pools[i] : 0);
    }
    for (int i = 0; i < POOLS; i++) remove_of(&c, pools[i]);
    captured_close(&c);
}

/* ---- counts ---- */

/* The counts of an ended pool go to the place once, however many pools its group serves. */
TEST(graph_numbers, what_ended_pools_counted_stays_counted_once) {
    enum { POOLS = 4 };
    captured_t c;
    strata_block_t none;
    captured_open_in(&c, "stack: [retry: {timeout: 1ms}, auto_growth, system]", 64 * MIB);
    for (uint64_t i = 1; i <= POOLS; i++) {
        uint64_t pool = 0;
        begin_on(&c, c.stream, &pool);
        allocate_and_give(&c, c.stream);
        allocate_and_give(&c, c.stream);
        EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(c.rig.s, c.rig.gpu, c.stream, 100 * MIB, &none));
        end_of(&c, pool);
        remove_of(&c, pool);
        strata_statistics_t figures = rig_figures(&c.rig);
        EXPECT_EQ(figures.allocations, 2 * i);
        EXPECT_EQ(figures.frees, 2 * i);
        EXPECT_EQ(figures.recoveries, i);
        EXPECT_EQ(figures.out_of_memory, i);
    }
    captured_close(&c);
}

TEST(graph_numbers, pools_that_are_begun_count_where_no_graph_does) {
    captured_t c;
    uint64_t first = 0, second = 0;
    captured_open(&c, "strata");
    strata_open_options_t options = {.struct_size = sizeof options, .preset = "pytorch"};
    begin_on(&c, c.stream, &first);
    begin_on(&c, c.other, &second);
    EXPECT_SAYS(STRATA_E_BUSY, strata_change_strategy(c.rig.s, &options), "2 captured graphs or open graph pools");
    end_of(&c, first);
    EXPECT_SAYS(STRATA_E_BUSY, strata_change_strategy(c.rig.s, &options), "1 captured graphs or open graph pools");
    end_of(&c, second);
    remove_of(&c, first);
    remove_of(&c, second);
    EXPECT_OK(strata_change_strategy(c.rig.s, &options));
    captured_close(&c);
}

/* Nobody has looked at the facade since the program's runtime destroyed the first graph. The refusal counts the second alone. */
TEST(graph_numbers, a_refused_close_ends_the_pools_whose_graphs_are_gone) {
    captured_t c;
    captured_open(&c, "strata");
    const strata_domain_t *domain = rig_domain(&c.rig);
    strata_graph_t graphs[2];
    for (int i = 0; i < 2; i++) {
        c.pool = 0;
        captured_begin(&c);
        allocate_and_give(&c, c.stream);
        captured_end(&c);
        graphs[i] = c.graph;
    }
    EXPECT_EQ(atomic_load(&domain->graph_pools), 2);
    EXPECT_OK(strata_device_graph_destroy(c.rig.devices[0], graphs[0]));
    EXPECT_EQ(atomic_load(&domain->graph_pools), 2);
    EXPECT_SAYS(STRATA_E_BUSY, strata_close(c.rig.s, STRATA_CLOSE_BUSY, NULL, NULL), "1 captured graphs");
    EXPECT_EQ(atomic_load(&domain->graph_pools), 1);
    captured_destroy(&c);
    captured_close(&c);
}

/* ---- captures ---- */

/* The second capture is served from what the first one freed, so it could go on without a question to the device. */
TEST(graph_numbers, a_second_capture_into_a_pool_is_a_second_graph) {
    captured_t c;
    strata_graph_t graphs[2];
    captured_open(&c, "strata");
    for (uint32_t i = 0; i < 2; i++) {
        captured_begin(&c);
        allocate_and_give(&c, c.stream);
        allocate_and_give(&c, c.stream);
        EXPECT_EQ(captured_pool(&c).graphs, i + 1);
        captured_end(&c);
        graphs[i] = c.graph;
    }
    EXPECT_OK(strata_graph_destroy(c.rig.s, c.rig.gpu, graphs[0]));
    EXPECT_EQ(captured_pool(&c).graphs, 1);
    EXPECT_OK(strata_release(c.rig.s, c.rig.gpu, NULL));
    EXPECT_GE(captured_pool(&c).reserved_bytes, SIZE);
    EXPECT_OK(strata_graph_destroy(c.rig.s, c.rig.gpu, graphs[1]));
    expect_stale(&c, c.pool);
    captured_close(&c);
}

/* The device refuses to tell of the graph's end: the next request ties it to the pool, once. */
TEST(graph_numbers, a_graph_is_tied_at_the_second_try_and_counts_once) {
    captured_t c;
    strata_block_t block;
    captured_open(&c, "strata");
    captured_begin(&c);
    ASSERT_OK(strata_sim_fail(c.rig.devices[0], STRATA_CALL_graph_on_destroy, 1, false, STRATA_E_DEVICE));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_allocate(c.rig.s, c.rig.gpu, c.stream, SIZE, &block));
    EXPECT_EQ(captured_pool(&c).graphs, 0);
    allocate_and_give(&c, c.stream);
    EXPECT_EQ(captured_pool(&c).graphs, 1);
    captured_end(&c);
    EXPECT_EQ(captured_pool(&c).graphs, 1);
    captured_destroy(&c);
    expect_stale(&c, c.pool);
    captured_close(&c);
}

TEST(graph_numbers, a_begin_that_fails_adds_no_begin) {
    captured_t c;
    captured_open(&c, "strata");
    begin_on(&c, c.stream, &c.pool);
    end_of(&c, c.pool);
    EXPECT_OK(strata_capture_begin(c.rig.s, c.rig.gpu, c.stream));
    ASSERT_OK(strata_sim_fail(c.rig.devices[0], STRATA_CALL_graph_on_destroy, 1, false, STRATA_E_DEVICE));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_graph_pool_begin(c.rig.s, c.rig.gpu, c.stream, &c.pool));
    EXPECT_EQ(captured_pool(&c).begins, 1);
    EXPECT_FALSE(captured_pool(&c).begun);
    EXPECT_EQ(captured_pool(&c).graphs, 0);
    begin_on(&c, c.stream, &c.pool);
    EXPECT_EQ(captured_pool(&c).begins, 2);
    EXPECT_EQ(captured_pool(&c).graphs, 1);
    remove_of(&c, c.pool);
    captured_end(&c);
    captured_destroy(&c);
    captured_close(&c);
}

/* ---- the end of a pool, and the capture of its stream ---- */

TEST(graph_numbers, a_pool_ends_while_its_stream_is_in_another_capture) {
    captured_t c;
    strata_graph_t first;
    strata_handle_t second;
    captured_open(&c, "strata");
    captured_begin(&c);
    allocate_and_give(&c, c.stream);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_graph_pool_end(c.rig.s, c.rig.gpu, c.pool));
    EXPECT_OK(strata_capture_end(c.rig.s, c.rig.gpu, c.stream, &first));
    EXPECT_OK(strata_device_capture_begin(c.rig.devices[0], c.stream, STRATA_CAPTURE_RELAXED));
    end_of(&c, c.pool);
    remove_of(&c, c.pool);
    EXPECT_OK(strata_device_capture_end(c.rig.devices[0], c.stream, &second));
    EXPECT_OK(strata_device_graph_destroy(c.rig.devices[0], second));
    EXPECT_OK(strata_graph_destroy(c.rig.s, c.rig.gpu, first));
    captured_close(&c);
}

static bool is_the_one(strata_stream_t stream, void *context) { return stream == *(strata_stream_t *)context; }

/* The filter's pool has no stream by name. Its capture is known from the request. */
TEST(graph_numbers, a_pool_by_filter_does_not_end_inside_its_capture) {
    captured_t c;
    captured_open(&c, "strata");
    ASSERT_OK(strata_graph_pool_begin_filtered(c.rig.s, c.rig.gpu, is_the_one, &c.stream, &c.pool));
    EXPECT_OK(strata_capture_begin(c.rig.s, c.rig.gpu, c.stream));
    allocate_and_give(&c, c.stream);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_graph_pool_end(c.rig.s, c.rig.gpu, c.pool));
    captured_end(&c);
    captured_destroy(&c);
    captured_close(&c);
}

TEST(graph_numbers, a_broken_capture_ends_before_its_pool) {
    captured_t c;
    strata_graph_t none;
    captured_open(&c, "strata");
    captured_begin(&c);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_device_stream_synchronise(c.rig.devices[0], c.stream));
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_graph_pool_end(c.rig.s, c.rig.gpu, c.pool));
    EXPECT_TRUE(captured_pool(&c).begun);
    EXPECT_STATUS(STRATA_E_CAPTURE, strata_capture_end(c.rig.s, c.rig.gpu, c.stream, &none));
    end_of(&c, c.pool);
    remove_of(&c, c.pool);
    captured_close(&c);
}

TEST(graph_numbers, the_pool_of_a_stream_that_is_gone_ends) {
    captured_t c;
    captured_open(&c, "strata");
    strata_stream_t gone = rig_stream(&c.rig);
    begin_on(&c, gone, &c.pool);
    EXPECT_OK(strata_device_stream_destroy(c.rig.devices[0], gone));
    end_of(&c, c.pool);
    remove_of(&c, c.pool);
    captured_close(&c);
}

/* ---- two pools that are open ---- */

/* The stream of the pool that was begun first is in the capture, that of the newer pool is in none. */
TEST(graph_numbers, a_stream_that_joined_belongs_to_the_second_of_two_pools) {
    for (int newer = 0; newer < 2; newer++) {
        captured_t c;
        uint64_t idle = 0, of;
        captured_open(&c, "strata");
        strata_stream_t third = rig_stream(&c.rig);
        if (!newer) begin_on(&c, c.stream, &c.pool);
        begin_on(&c, c.other, &idle);
        if (newer) begin_on(&c, c.stream, &c.pool);
        EXPECT_OK(strata_capture_begin(c.rig.s, c.rig.gpu, c.stream));
        EXPECT_OK(strata_stream_wait(c.rig.s, c.rig.gpu, third, c.stream));
        strata_block_t block = rig_allocate(&c.rig, third, SIZE);
        EXPECT_OK(strata_pool_of(c.rig.s, block.ref, &of));
        EXPECT_EQ(of, c.pool);
        give(&c, &block);
        EXPECT_OK(strata_stream_wait(c.rig.s, c.rig.gpu, c.stream, third));
        EXPECT_EQ(info_of(&c, idle).graphs, 0);
        captured_end(&c);
        end_of(&c, idle);
        remove_of(&c, idle);
        captured_destroy(&c);
        EXPECT_OK(strata_stream_forget(c.rig.s, c.rig.gpu, third));
        EXPECT_OK(strata_stream_destroy(c.rig.s, c.rig.gpu, third));
        captured_close(&c);
    }
}

static uint64_t pinned_blocks(captured_t *c) {
    strata_statistics_t figures = {.struct_size = sizeof figures};
    EXPECT_OK(strata_statistics_all(c->rig.s, strata_pinned(), &figures));
    return figures.live_allocations;
}

/* Graphs of two pools use one block from outside: it stays until both are gone, whichever goes first. */
TEST(graph_numbers, a_block_from_outside_has_each_of_two_pools_as_an_owner) {
    for (int first = 0; first < 2; first++) {
        captured_t c;
        strata_block_t lent;
        strata_graph_t graphs[2];
        uint64_t pools[2] = {0};
        captured_open(&c, "strata");
        EXPECT_OK(strata_allocate(c.rig.s, strata_pinned(), NULL, SIZE, &lent));
        for (int i = 0; i < 2; i++) {
            c.pool = 0;
            captured_begin(&c);
            for (int again = 0; again < 2; again++) EXPECT_OK(strata_record_stream(c.rig.s, lent.ref, c.stream));
            captured_end(&c);
            EXPECT_EQ(captured_pool(&c).outside_blocks, 1);
            pools[i] = c.pool;
            graphs[i] = c.graph;
        }
        EXPECT_NE(pools[0], pools[1]);
        give(&c, &lent);
        EXPECT_EQ(pinned_blocks(&c), 1);
        EXPECT_OK(strata_graph_destroy(c.rig.s, c.rig.gpu, graphs[first]));
        EXPECT_EQ(info_of(&c, pools[!first]).outside_blocks, 1);
        EXPECT_EQ(pinned_blocks(&c), 1);
        EXPECT_OK(strata_graph_destroy(c.rig.s, c.rig.gpu, graphs[!first]));
        EXPECT_EQ(pinned_blocks(&c), 0);
        EXPECT_OK(strata_release(c.rig.s, strata_pinned(), NULL));
        captured_close(&c);
    }
}

/* ---- streams of one name ---- */

typedef struct asking {
    captured_t *c;
    uint64_t pools[2]; /* where two requests in a row went */
} asking_t;

static void *ask_per_thread(void *context) {
    asking_t *asking = context;
    for (int i = 0; i < 2; i++) {
        strata_block_t block = rig_allocate(&asking->c->rig, STRATA_STREAM_PER_THREAD, SIZE);
        EXPECT_OK(strata_pool_of(asking->c->rig.s, block.ref, &asking->pools[i]));
        give(asking->c, &block);
    }
    return NULL;
}

/* The per-thread stream has one name and is another stream in each thread: the pool is that of the thread that began it. */
TEST(graph_numbers, a_per_thread_stream_is_that_of_its_thread) {
    captured_t c;
    asking_t mine = {.c = &c}, theirs = {.c = &c};
    pthread_t thread;
    captured_open(&c, "strata");
    begin_on(&c, STRATA_STREAM_PER_THREAD, &c.pool);
    (void)ask_per_thread(&mine);
    ASSERT_EQ(pthread_create(&thread, NULL, ask_per_thread, &theirs), 0);
    pthread_join(thread, NULL);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(mine.pools[i], c.pool);
        EXPECT_EQ(theirs.pools[i], STRATA_POOL_ORDINARY);
    }
    end_of(&c, c.pool);
    remove_of(&c, c.pool);
    captured_close(&c);
}
