/* Pools that are open at once, and whose request is whose: filters beside names, threads, devices, two captures in one begin, pools that
 * nothing keeps or that another thread is about to end. */
#include <pthread.h>

#include "allocation/graphs/graphs.h"
#include "platform/host/host_memory.h"
#include "tests/graphs/graphs.h"

enum { SIZE = 1 << 20 };

static void give(captured_t *c, const strata_block_t *block) { EXPECT_OK(strata_free(c->rig.s, block->ref)); }

static void begin_on(captured_t *c, strata_stream_t stream, uint64_t *pool) {
    ASSERT_OK(strata_graph_pool_begin(c->rig.s, c->rig.gpu, stream, pool));
}

static void leave(captured_t *c, uint64_t pool) {
    EXPECT_OK(strata_graph_pool_end(c->rig.s, c->rig.gpu, pool));
    EXPECT_OK(strata_graph_pool_remove(c->rig.s, c->rig.gpu, pool));
}

static strata_graph_pool_info_t info_of(captured_t *c, uint64_t pool) {
    strata_graph_pool_info_t info = {.struct_size = sizeof info};
    EXPECT_OK(strata_graph_pool_describe(c->rig.s, c->rig.gpu, pool, &info));
    return info;
}

static uint64_t pool_of(captured_t *c, const strata_block_t *block) {
    uint64_t pool = 0;
    EXPECT_OK(strata_pool_of(c->rig.s, block->ref, &pool));
    return pool;
}

static void join(captured_t *c, strata_stream_t stream, strata_stream_t other) {
    EXPECT_OK(strata_stream_wait(c->rig.s, c->rig.gpu, stream, other));
}

static strata_graph_pool_t *inside(captured_t *c, uint64_t pool) { return strata_graph_pool_find(rig_domain(&c->rig), pool); }

/* ---- several captures in one begin ---- */

static bool is_the_one(strata_stream_t stream, void *context) { return stream == *(strata_stream_t *)context; }

/* One begin is for one capture. Where each request is asked about anyway, the graph of a second one keeps the pool all the same. */
TEST(graph_windows, a_filter_ties_each_capture_to_its_pool) {
    captured_t c;
    strata_graph_t graphs[3];
    captured_open(&c, "strata");
    ASSERT_OK(strata_graph_pool_begin_filtered(c.rig.s, c.rig.gpu, is_the_one, &c.stream, &c.pool));
    for (uint32_t i = 0; i < 3; i++) {
        ASSERT_OK(strata_capture_begin(c.rig.s, c.rig.gpu, c.stream));
        for (int again = 0; again < 2; again++) {
            strata_block_t block = rig_allocate(&c.rig, c.stream, SIZE);
            EXPECT_EQ(pool_of(&c, &block), c.pool);
            captured_work(&c, c.stream, &block);
            give(&c, &block);
        }
        ASSERT_OK(strata_capture_end(c.rig.s, c.rig.gpu, c.stream, &graphs[i]));
        EXPECT_EQ(info_of(&c, c.pool).graphs, i + 1);
    }
    leave(&c, c.pool);
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_EQ(info_of(&c, c.pool).graphs, 3 - i);
        EXPECT_GE(info_of(&c, c.pool).reserved_bytes, SIZE);
        EXPECT_OK(strata_graph_destroy(c.rig.s, c.rig.gpu, graphs[i]));
    }
    captured_close(&c);
}

/* The program begins and ends the capture at the device. A block that was free before serves the request within it. The graph is
 * counted all the same, or its memory would be reused while the graph can still be launched. */
TEST(graph_windows, a_hit_is_noted_like_a_miss) {
    captured_t c;
    captured_open(&c, "strata");
    begin_on(&c, c.stream, &c.pool);
    strata_block_t block = rig_allocate(&c.rig, c.stream, SIZE);
    give(&c, &block);
    ASSERT_OK(strata_device_capture_begin(c.rig.devices[0], c.stream, STRATA_CAPTURE_RELAXED));
    block = rig_allocate(&c.rig, c.stream, SIZE);
    EXPECT_EQ(pool_of(&c, &block), c.pool);
    captured_work(&c, c.stream, &block);
    give(&c, &block);
    ASSERT_OK(strata_device_capture_end(c.rig.devices[0], c.stream, &c.graph));
    EXPECT_EQ(info_of(&c, c.pool).graphs, 1);
    leave(&c, c.pool);
    EXPECT_GE(info_of(&c, c.pool).reserved_bytes, SIZE);
    captured_destroy(&c);
    captured_close(&c);
}

/* The begin was for the first capture. */
TEST(graph_windows, a_stream_that_joins_the_second_capture_of_a_begin_is_refused) {
    captured_t c;
    strata_graph_t first;
    strata_block_t block;
    captured_open(&c, "strata");
    captured_begin(&c);
    join(&c, c.other, c.stream);
    block = rig_allocate(&c.rig, c.other, SIZE);
    EXPECT_EQ(pool_of(&c, &block), c.pool);
    give(&c, &block);
    join(&c, c.stream, c.other);
    ASSERT_OK(strata_capture_end(c.rig.s, c.rig.gpu, c.stream, &first));
    ASSERT_OK(strata_capture_begin(c.rig.s, c.rig.gpu, c.stream));
    join(&c, c.other, c.stream);
    EXPECT_SAYS(STRATA_E_CAPTURE, strata_allocate(c.rig.s, c.rig.gpu, c.other, SIZE, &block), "without an open pool");
    join(&c, c.stream, c.other);
    captured_end(&c);
    EXPECT_EQ(info_of(&c, c.pool).graphs, 1);
    captured_destroy(&c);
    EXPECT_OK(strata_graph_destroy(c.rig.s, c.rig.gpu, first));
    captured_close(&c);
}

/* Once for the stream that asks, once for its graph. Which capture the pool has is known after the first request. */
TEST(graph_windows, a_request_of_a_stream_that_joined_asks_the_driver_twice) {
    captured_t c;
    captured_open(&c, "strata");
    captured_begin(&c);
    join(&c, c.other, c.stream);
    for (int i = 0; i < 3; i++) {
        uint64_t asked = rig_calls(&c.rig, STRATA_CALL_capture_status);
        strata_block_t block = rig_allocate(&c.rig, c.other, SIZE);
        if (i > 0) EXPECT_EQ(rig_calls(&c.rig, STRATA_CALL_capture_status) - asked, 2);
        give(&c, &block);
    }
    join(&c, c.stream, c.other);
    captured_end(&c);
    captured_destroy(&c);
    captured_close(&c);
}

/* ---- a capture after the end of its pool ---- */

/* A thread that saw the pool open may come to tie the next capture to it after its end. */
TEST(graph_windows, a_closed_pool_is_tied_to_no_capture) {
    captured_t c;
    strata_graph_t other;
    captured_open(&c, "strata");
    captured_begin(&c);
    strata_block_t block = rig_allocate(&c.rig, c.stream, SIZE);
    give(&c, &block);
    captured_end(&c);
    ASSERT_OK(strata_capture_begin(c.rig.s, c.rig.gpu, c.stream));
    EXPECT_OK(strata_graph_pool_watch(inside(&c, c.pool), c.stream));
    ASSERT_OK(strata_capture_end(c.rig.s, c.rig.gpu, c.stream, &other));
    EXPECT_EQ(info_of(&c, c.pool).graphs, 1);
    EXPECT_OK(strata_graph_destroy(c.rig.s, c.rig.gpu, other));
    EXPECT_EQ(info_of(&c, c.pool).graphs, 1);
    captured_destroy(&c);
    captured_close(&c);
}

static uint64_t deferred(captured_t *c) { return rig_figures(&c->rig).deferred_bytes; }

/* A stack that is listed as the pool closes must not begin a capture, because nothing would end it. */
TEST(graph_windows, a_stack_that_joins_a_closed_pool_begins_no_capture) {
    static const char *const strategies[] = {"stack: [stream_safe, auto_growth, system]", "stack: [caching, system]"};
    for (int i = 0; i < 2; i++) {
        captured_t c;
        captured_open(&c, strategies[i]);
        captured_begin(&c);
        strata_block_t block = rig_allocate(&c.rig, c.stream, SIZE);
        captured_end(&c);
        strata_graphs_inherit(strata_stack_of(strata_ref_home(block.ref)));
        EXPECT_OK(strata_record_stream(c.rig.s, block.ref, c.other));
        give(&c, &block);
        EXPECT_OK(strata_stream_synchronize(c.rig.s, c.rig.gpu, c.other));
        c.graph = (captured_destroy(&c), NULL);
        EXPECT_OK(strata_release(c.rig.s, c.rig.gpu, NULL));
        EXPECT_EQ(deferred(&c), 0);
        EXPECT_EQ(rig_figures(&c.rig).reserved_bytes, 0);
        captured_close(&c);
    }
}

/* The program has taken its begin back: the pool is kept until its end. */
TEST(graph_windows, a_pool_that_is_begun_is_kept_without_a_begin) {
    captured_t c;
    captured_open(&c, "strata");
    begin_on(&c, c.stream, &c.pool);
    EXPECT_OK(strata_graph_pool_remove(c.rig.s, c.rig.gpu, c.pool));
    for (int i = 0; i < 2; i++) {
        strata_block_t block = rig_allocate(&c.rig, c.stream, SIZE);
        EXPECT_EQ(pool_of(&c, &block), c.pool);
        give(&c, &block);
        EXPECT_OK(strata_release(c.rig.s, c.rig.gpu, NULL));
        EXPECT_GE(info_of(&c, c.pool).reserved_bytes, SIZE);
        EXPECT_EQ(info_of(&c, c.pool).begins, 0);
        EXPECT_TRUE(info_of(&c, c.pool).begun);
    }
    EXPECT_OK(strata_graph_pool_end(c.rig.s, c.rig.gpu, c.pool));
    strata_graph_pool_info_t info = {.struct_size = sizeof info};
    EXPECT_STATUS(STRATA_E_STALE, strata_graph_pool_describe(c.rig.s, c.rig.gpu, c.pool, &info));
    captured_close(&c);
}

/* ---- a pool that another thread is about to end, or has just ended ---- */

TEST(graph_windows, a_pool_that_a_thread_is_about_to_end_does_not_begin) {
    captured_t c;
    captured_open(&c, "strata");
    captured_begin(&c);
    strata_block_t block = rig_allocate(&c.rig, c.stream, SIZE);
    captured_end(&c);
    captured_destroy(&c);
    inside(&c, c.pool)->ending = true;
    EXPECT_SAYS(STRATA_E_STALE, strata_graph_pool_begin(c.rig.s, c.rig.gpu, c.stream, &c.pool), "nothing kept it");
    EXPECT_EQ(info_of(&c, c.pool).begins, 0);
    /* Nobody else ends it, nor says that the end is over. */
    EXPECT_TRUE(inside(&c, c.pool)->ending);
    inside(&c, c.pool)->ending = false;
    begin_on(&c, c.stream, &c.pool);
    EXPECT_EQ(info_of(&c, c.pool).begins, 1);
    leave(&c, c.pool);
    give(&c, &block);
    captured_close(&c);
}

/* The thread that ended it still has the group in its hands. */
TEST(graph_windows, the_group_of_a_pool_serves_the_next_once_its_end_is_over) {
    captured_t c;
    uint64_t first = 0, second = 0, third = 0;
    captured_open(&c, "strata");
    begin_on(&c, c.stream, &first);
    strata_graph_pool_t *pool = inside(&c, first);
    leave(&c, first);
    pool->ending = true;
    begin_on(&c, c.stream, &second);
    EXPECT_TRUE(inside(&c, second) != pool);
    pool->ending = false;
    begin_on(&c, c.other, &third);
    EXPECT_TRUE(inside(&c, third) == pool);
    leave(&c, third);
    leave(&c, second);
    captured_close(&c);
}

/* Pool, count and group go back to the host: many graphs take no more of it than one. */
TEST(graph_windows, graphs_that_are_gone_leave_no_host_memory) {
    captured_t c;
    uint64_t live = 0;
    captured_open(&c, "strata");
    for (int i = 0; i < 8; i++) {
        c.pool = 0;
        captured_begin(&c);
        strata_block_t block = rig_allocate(&c.rig, c.stream, SIZE);
        give(&c, &block);
        captured_end(&c);
        captured_destroy(&c);
        if (i == 3) live = strata_host_live().allocations;
    }
    EXPECT_EQ(strata_host_live().allocations, live);
    captured_close(&c);
}

/* With a block from outside, by force; the graph is destroyed before the facade is closed, or after. */
static void close_by_force(bool destroyed) {
    captured_t c;
    strata_block_t lent;
    captured_open(&c, "strata");
    EXPECT_OK(strata_allocate(c.rig.s, strata_pinned(), NULL, SIZE, &lent));
    captured_begin(&c);
    strata_block_t block = rig_allocate(&c.rig, c.stream, SIZE);
    give(&c, &block);
    EXPECT_OK(strata_free_on(c.rig.s, lent.ref, c.stream));
    captured_end(&c);
    EXPECT_EQ(captured_pool(&c).outside_blocks, 1);
    strata_checker_end(c.checker);
    if (destroyed) EXPECT_OK(strata_device_graph_destroy(c.rig.devices[0], c.graph));
    EXPECT_OK(strata_close(c.rig.s, STRATA_CLOSE_FORCE, NULL, NULL));
    if (!destroyed) EXPECT_OK(strata_device_graph_destroy(c.rig.devices[0], c.graph));
    EXPECT_OK(strata_device_stream_destroy(c.rig.devices[0], c.stream));
    EXPECT_OK(strata_device_stream_destroy(c.rig.devices[0], c.other));
    rig_end(&c.rig);
}

TEST(graph_windows, a_facade_that_is_closed_by_force_leaves_no_host_memory) {
    for (int destroyed = 0; destroyed < 2; destroyed++) {
        close_by_force(destroyed);
        uint64_t live = strata_host_live().allocations;
        close_by_force(destroyed);
        EXPECT_EQ(strata_host_live().allocations, live);
    }
}

/* ---- filters beside names ---- */

/* The filter's pool is asked first. That another pool is begun for the stream by name says nothing of the filter's. */
TEST(graph_windows, a_filter_beside_the_name_of_the_same_stream_adds_no_node) {
    captured_t c;
    uint64_t named = 0;
    captured_open(&c, "cuda_malloc_async");
    begin_on(&c, c.stream, &named);
    ASSERT_OK(strata_graph_pool_begin_filtered(c.rig.s, c.rig.gpu, is_the_one, &c.stream, &c.pool));
    ASSERT_OK(strata_capture_begin(c.rig.s, c.rig.gpu, c.stream));
    strata_block_t block = rig_allocate(&c.rig, c.stream, SIZE);
    EXPECT_EQ(pool_of(&c, &block), c.pool);
    captured_work(&c, c.stream, &block);
    give(&c, &block);
    EXPECT_EQ(deferred(&c), SIZE);
    ASSERT_OK(strata_capture_end(c.rig.s, c.rig.gpu, c.stream, &c.graph));
    leave(&c, c.pool);
    leave(&c, named);
    captured_launch(&c);
    captured_destroy(&c);
    EXPECT_EQ(deferred(&c), 0);
    captured_close(&c);
}

/* ---- streams of one name ---- */

typedef struct joining {
    captured_t *c;
    pthread_barrier_t step;
    uint64_t pools[3]; /* of two requests inside the capture, and of one after it */
} joining_t;

static void *join_and_ask(void *context) {
    joining_t *joining = context;
    captured_t *c = joining->c;
    join(c, STRATA_STREAM_PER_THREAD, c->stream);
    for (int i = 0; i < 3; i++) {
        if (i == 2) {
            join(c, c->stream, STRATA_STREAM_PER_THREAD);
            pthread_barrier_wait(&joining->step);
            pthread_barrier_wait(&joining->step);
        }
        strata_block_t block = rig_allocate(&c->rig, STRATA_STREAM_PER_THREAD, SIZE);
        joining->pools[i] = pool_of(c, &block);
        give(c, &block);
    }
    return NULL;
}

/* The pool was begun for the per-thread stream of this thread. That of another thread joins its capture, and belongs to the pool only as
 * long as the capture. */
TEST(graph_windows, the_per_thread_stream_of_another_thread_leaves_with_the_capture) {
    captured_t c;
    pthread_t thread;
    joining_t joining = {.c = &c};
    captured_open(&c, "strata");
    begin_on(&c, STRATA_STREAM_PER_THREAD, &c.pool);
    ASSERT_OK(strata_capture_begin(c.rig.s, c.rig.gpu, STRATA_STREAM_PER_THREAD));
    strata_block_t block = rig_allocate(&c.rig, STRATA_STREAM_PER_THREAD, SIZE);
    give(&c, &block);
    join(&c, c.stream, STRATA_STREAM_PER_THREAD);
    pthread_barrier_init(&joining.step, NULL, 2);
    ASSERT_EQ(pthread_create(&thread, NULL, join_and_ask, &joining), 0);
    pthread_barrier_wait(&joining.step);
    join(&c, STRATA_STREAM_PER_THREAD, c.stream);
    ASSERT_OK(strata_capture_end(c.rig.s, c.rig.gpu, STRATA_STREAM_PER_THREAD, &c.graph));
    pthread_barrier_wait(&joining.step);
    pthread_join(thread, NULL);
    EXPECT_EQ(joining.pools[0], c.pool);
    EXPECT_EQ(joining.pools[1], c.pool);
    EXPECT_EQ(joining.pools[2], STRATA_POOL_ORDINARY);
    leave(&c, c.pool);
    pthread_barrier_destroy(&joining.step);
    captured_destroy(&c);
    captured_close(&c);
}

/* ---- memory without an owner ---- */

/* No graph can use what has no owner stream without a note, so a request that grows the cache is served. */
TEST(graph_windows, pinned_memory_grows_beside_an_unannounced_capture) {
    captured_t c;
    strata_block_t blocks[2];
    captured_open(&c, "strata");
    ASSERT_OK(strata_capture_begin(c.rig.s, c.rig.gpu, c.stream));
    EXPECT_OK(strata_allocate(c.rig.s, strata_pinned(), NULL, 64 * MIB, &blocks[0]));
    EXPECT_OK(strata_allocate(c.rig.s, strata_pinned(), c.stream, 64 * MIB, &blocks[1]));
    ASSERT_OK(strata_capture_end(c.rig.s, c.rig.gpu, c.stream, &c.graph));
    for (int i = 0; i < 2; i++) give(&c, &blocks[i]);
    captured_destroy(&c);
    captured_close(&c);
}

/* Beside a capture that is ordered with the legacy stream, the driver refuses every question about it, by either name. */
TEST(graph_windows, the_legacy_stream_is_not_asked_about_beside_a_blocking_capture) {
    static const strata_stream_t names[] = {NULL, STRATA_STREAM_LEGACY};
    for (int i = 0; i < 2; i++) {
        captured_t c;
        strata_block_t block, lent;
        captured_open(&c, "strata");
        strata_stream_t stream = c.stream;
        ASSERT_OK(strata_allocate(c.rig.s, strata_pinned(), NULL, SIZE, &lent));
        ASSERT_OK(strata_device_stream_create(c.rig.devices[0], STRATA_STREAM_BLOCKING, 0, &c.stream));
        captured_begin(&c);
        strata_block_t own = rig_allocate(&c.rig, c.stream, SIZE);
        give(&c, &own);
        uint64_t asked = rig_calls(&c.rig, STRATA_CALL_capture_status);
        EXPECT_OK(strata_allocate(c.rig.s, strata_pinned(), names[i], SIZE, &block));
        EXPECT_EQ(rig_calls(&c.rig, STRATA_CALL_capture_status), asked);
        give(&c, &block);
        EXPECT_OK(strata_free_on(c.rig.s, lent.ref, names[i]));
        EXPECT_EQ(captured_pool(&c).outside_blocks, 0);
        captured_end(&c);
        captured_launch(&c);
        captured_destroy(&c);
        EXPECT_OK(strata_stream_forget(c.rig.s, c.rig.gpu, c.stream));
        EXPECT_OK(strata_device_stream_destroy(c.rig.devices[0], c.stream));
        c.stream = stream;
        captured_close(&c);
    }
}

/* ---- blocks of forgotten streams ---- */

static bool is_none(strata_stream_t stream, void *context) {
    (void)stream;
    (void)context;
    return false;
}

/* The owner of the block is unknown: each open pool of its device owns it but its own pool, and no pool of another device. */
TEST(graph_windows, a_block_of_a_forgotten_stream_is_owned_by_the_other_pools_of_its_device) {
    captured_t c;
    uint64_t other = 0, far = 0, managed = 0;
    memset(&c, 0, sizeof c);
    rig_open(&c.rig, "strata", NULL, 0, 0, 2);
    ASSERT_OK(strata_checker_begin(c.rig.world, STRATA_CHECKER_LIFETIMES, &c.checker));
    c.stream = rig_stream(&c.rig);
    c.other = rig_stream(&c.rig);
    strata_stream_t gone = rig_stream(&c.rig);
    begin_on(&c, gone, &c.pool);
    strata_block_t block = rig_allocate(&c.rig, gone, SIZE);
    EXPECT_EQ(pool_of(&c, &block), c.pool);
    EXPECT_OK(strata_graph_pool_end(c.rig.s, c.rig.gpu, c.pool));
    EXPECT_OK(strata_stream_forget(c.rig.s, c.rig.gpu, gone));
    EXPECT_OK(strata_stream_destroy(c.rig.s, c.rig.gpu, gone));
    begin_on(&c, c.stream, &c.pool);
    begin_on(&c, c.other, &other);
    ASSERT_OK(strata_graph_pool_begin_filtered(c.rig.s, strata_gpu(1), is_none, NULL, &far));
    ASSERT_OK(strata_graph_pool_begin_filtered(c.rig.s, strata_managed(0), is_none, NULL, &managed));
    give(&c, &block);
    strata_graph_pool_info_t info = {.struct_size = sizeof info};
    EXPECT_OK(strata_graph_pool_describe(c.rig.s, strata_gpu(1), far, &info));
    EXPECT_EQ(info.outside_blocks, 0);
    EXPECT_OK(strata_graph_pool_describe(c.rig.s, strata_managed(0), managed, &info));
    EXPECT_EQ(info.outside_blocks, 1);
    EXPECT_OK(strata_graph_pool_end(c.rig.s, strata_managed(0), managed));
    EXPECT_OK(strata_graph_pool_remove(c.rig.s, strata_managed(0), managed));
    EXPECT_EQ(info_of(&c, c.pool).outside_blocks, 0);
    EXPECT_EQ(info_of(&c, other).outside_blocks, 1);
    EXPECT_EQ(info_of(&c, c.pool).live_allocations, 1);
    leave(&c, other);
    EXPECT_EQ(info_of(&c, c.pool).live_allocations, 0);
    EXPECT_OK(strata_graph_pool_remove(c.rig.s, c.rig.gpu, c.pool));
    leave(&c, c.pool);
    EXPECT_OK(strata_graph_pool_end(c.rig.s, strata_gpu(1), far));
    EXPECT_OK(strata_graph_pool_remove(c.rig.s, strata_gpu(1), far));
    captured_close(&c);
}
