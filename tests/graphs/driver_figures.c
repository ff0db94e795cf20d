/* Tests what cuda_malloc_async counts of graphs' memory once a later step of a request or a free fails, and whose requests become
 * nodes. */
#include <pthread.h>

#include "allocation/graphs/graphs.h"
#include "tests/graphs/graphs.h"

#define BYTES (4 * MIB)

static strata_statistics_t figures_of(captured_t *c) {
    strata_statistics_t figures = {.struct_size = sizeof figures};
    EXPECT_OK(strata_statistics_all(c->rig.s, c->rig.gpu, &figures));
    return figures;
}

static void expect_bytes(captured_t *c, uint64_t allocated, uint64_t deferred) {
    strata_statistics_t f = figures_of(c);
    EXPECT_EQ(f.allocated_bytes, allocated);
    EXPECT_EQ(f.deferred_bytes, deferred);
    EXPECT_EQ(f.reserved_bytes, allocated + deferred);
    EXPECT_EQ(f.quarantined_bytes, 0);
    EXPECT_EQ(atomic_load(&rig_domain(&c->rig)->quota.used), allocated + deferred);
    EXPECT_OK(strata_validate(c->rig.s));
}

static uint64_t covered_granules(captured_t *c) {
    const strata_directory_t *directory = rig_domain(&c->rig)->directory;
    return directory->used - directory->free_count;
}

static uint64_t calls(captured_t *c, strata_device_call_t call) { return rig_calls(&c->rig, call); }

static void fail(captured_t *c, strata_device_call_t call) {
    ASSERT_OK(strata_sim_fail(c->rig.devices[0], call, 1, false, STRATA_E_DEVICE));
}

static void give(captured_t *c, const strata_block_t *block) { EXPECT_OK(strata_free(c->rig.s, block->ref)); }

static void join(captured_t *c, strata_stream_t stream, strata_stream_t other) {
    EXPECT_OK(strata_stream_wait(c->rig.s, c->rig.gpu, stream, other));
}

/* ---- requests that fail after the driver has served them ---- */

/* The wait for the served memory fails, and then its free. The reported reason is that of the first failure. */
TEST(graph_driver_figures, a_request_that_fails_twice_tells_of_the_first_failure) {
    for (int refused = 0; refused < 2; refused++) {
        captured_t c;
        strata_block_t none;
        captured_open(&c, "cuda_malloc_async");
        captured_begin(&c);
        join(&c, c.other, c.stream);
        fail(&c, STRATA_CALL_stream_synchronise);
        if (refused) fail(&c, STRATA_CALL_free_async);
        EXPECT_SAYS(STRATA_E_DEVICE, strata_allocate(c.rig.s, c.rig.gpu, c.other, BYTES, &none), "stream_synchronise failed");
        expect_bytes(&c, 0, refused ? BYTES : 0);
        join(&c, c.stream, c.other);
        captured_end(&c);
        captured_destroy(&c);
        EXPECT_EQ(calls(&c, STRATA_CALL_free), refused);
        expect_bytes(&c, 0, 0);
        captured_close(&c);
    }
}

/* Both blocks are in one granule of the directory. The refused one was never booked, so its end leaves the other one's entry. */
TEST(graph_driver_figures, the_end_of_a_refused_block_leaves_its_neighbor_findable) {
    captured_t c;
    strata_block_t none, found;
    captured_open(&c, "cuda_malloc_async");
    EXPECT_OK(strata_free_pointer(c.rig.s, rig_allocate(&c.rig, c.stream, 512).ptr));
    strata_block_t neighbor = rig_allocate(&c.rig, c.stream, 512);
    uint64_t covered = covered_granules(&c);
    captured_begin(&c);
    join(&c, c.other, c.stream);
    fail(&c, STRATA_CALL_stream_synchronise);
    fail(&c, STRATA_CALL_free_async);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_allocate(c.rig.s, c.rig.gpu, c.other, 512, &none));
    EXPECT_EQ(covered_granules(&c), covered);
    join(&c, c.stream, c.other);
    captured_end(&c);
    captured_destroy(&c);
    EXPECT_EQ(calls(&c, STRATA_CALL_free), 1);
    EXPECT_EQ(covered_granules(&c), covered);
    EXPECT_OK(strata_block_of(c.rig.s, neighbor.ptr, &found));
    EXPECT_OK(strata_free_pointer(c.rig.s, neighbor.ptr));
    captured_close(&c);
}

/* ---- memory that a freed block still waits in ---- */

/* The driver serves a stream of the capture, outside of its graph, from what an ordinary free left pending: each byte counts once. */
TEST(graph_driver_figures, pending_memory_that_serves_beside_a_graph_counts_once) {
    captured_t c;
    captured_open_in(&c, "cuda_malloc_async", 50 * MIB);
    strata_stream_t owner = rig_stream(&c.rig), borrower = rig_stream(&c.rig);
    strata_block_t lent = rig_allocate(&c.rig, owner, 48 * MIB);
    EXPECT_OK(strata_record_stream(c.rig.s, lent.ref, borrower));
    rig_work(&c.rig, borrower, 5 * 1000 * 1000, lent.ref);
    give(&c, &lent);
    expect_bytes(&c, 0, 48 * MIB);
    captured_begin(&c);
    join(&c, c.other, c.stream);
    strata_block_t block = rig_allocate(&c.rig, c.other, 40 * MIB);
    EXPECT_EQ(block.ptr, lent.ptr);
    expect_bytes(&c, 40 * MIB, 8 * MIB);
    EXPECT_EQ(figures_of(&c).peak_reserved_bytes, 48 * MIB);
    join(&c, c.stream, c.other);
    captured_end(&c);
    give(&c, &block);
    captured_destroy(&c);
    for (int i = 0; i < 2; i++) {
        strata_stream_t stream = i ? borrower : owner;
        EXPECT_OK(strata_stream_synchronize(c.rig.s, c.rig.gpu, stream));
        EXPECT_OK(strata_stream_forget(c.rig.s, c.rig.gpu, stream));
        EXPECT_OK(strata_stream_destroy(c.rig.s, c.rig.gpu, stream));
    }
    captured_close(&c);
}

/* ---- once nothing keeps the pool ---- */

/* Makes a block of the graph, and one that a stream of the capture gets beside it. Both are freed after a launch, and kept. */
static void keep_two(captured_t *c, strata_block_t blocks[2]) {
    captured_begin(c);
    blocks[0] = rig_allocate(&c->rig, c->stream, BYTES);
    captured_work(c, c->stream, &blocks[0]);
    join(c, c->other, c->stream);
    blocks[1] = rig_allocate(&c->rig, c->other, 2 * BYTES);
    captured_work(c, c->other, &blocks[1]);
    join(c, c->stream, c->other);
    captured_end(c);
    captured_launch(c);
    for (int i = 0; i < 2; i++) give(c, &blocks[i]);
    expect_bytes(c, 0, 3 * BYTES);
}

/* The device takes the graph's block. The other one stays in the driver's pool, whose trim gives it back. */
TEST(graph_driver_figures, what_the_device_takes_of_a_graph_counts_as_given_once) {
    captured_t c;
    strata_block_t blocks[2];
    strata_handle_t pool;
    uint64_t pooled = 0;
    captured_open(&c, "cuda_malloc_async");
    keep_two(&c, blocks);
    ASSERT_OK(strata_device_pool_default(c.rig.devices[0], &pool));
    ASSERT_OK(strata_device_pool_get(c.rig.devices[0], pool, STRATA_POOL_RESERVED_CURRENT, &pooled));
    EXPECT_GE(pooled, 2 * BYTES);
    uint64_t given = atomic_load(&rig_domain(&c.rig)->returned_bytes);
    captured_destroy(&c);
    EXPECT_EQ(atomic_load(&rig_domain(&c.rig)->returned_bytes) - given, BYTES + pooled);
    expect_bytes(&c, 0, 0);
    captured_close(&c);
}

/* The free stays kept, and its addresses stay the layer's until the device takes them at a later try. */
TEST(graph_driver_figures, what_the_device_refuses_at_the_end_stays_covered_and_kept) {
    for (uint64_t refused = 1; refused <= 2; refused++) {
        captured_t c;
        strata_block_t blocks[2];
        captured_open(&c, "cuda_malloc_async");
        uint64_t before = covered_granules(&c);
        keep_two(&c, blocks);
        uint64_t covered = covered_granules(&c);
        EXPECT_EQ(covered - before, 3 * BYTES / (2 * MIB));
        /* The last block that was freed is offered first. */
        uint64_t size = refused == 1 ? 2 * BYTES : BYTES;
        ASSERT_OK(strata_sim_fail(c.rig.devices[0], STRATA_CALL_free, refused, false, STRATA_E_DEVICE));
        captured_destroy(&c);
        expect_bytes(&c, 0, size);
        EXPECT_EQ(covered_granules(&c) - before, size / (2 * MIB));
        EXPECT_EQ(captured_pool(&c).reserved_bytes, size);
        EXPECT_OK(strata_release(c.rig.s, c.rig.gpu, NULL));
        expect_bytes(&c, 0, 0);
        EXPECT_EQ(covered_granules(&c), before);
        EXPECT_EQ(calls(&c, STRATA_CALL_free), 3);
        captured_close(&c);
    }
}

/* ---- what is no node ---- */

/* The stream's block from before the capture was got outside of it, and no memory of a graph exists yet. */
TEST(graph_driver_figures, a_block_from_between_the_begin_and_the_capture_is_kept) {
    captured_t c;
    captured_open(&c, "cuda_malloc_async");
    ASSERT_OK(strata_graph_pool_begin(c.rig.s, c.rig.gpu, c.stream, &c.pool));
    strata_block_t block = rig_allocate(&c.rig, c.stream, BYTES);
    ASSERT_OK(strata_capture_begin(c.rig.s, c.rig.gpu, c.stream));
    captured_work(&c, c.stream, &block);
    give(&c, &block);
    expect_bytes(&c, 0, BYTES);
    EXPECT_EQ(calls(&c, STRATA_CALL_free_async), 0);
    captured_end(&c);
    captured_launch(&c);
    uint64_t trims = calls(&c, STRATA_CALL_pool_trim);
    captured_destroy(&c);
    /* No graph had memory, so the driver's pool alone is trimmed. */
    EXPECT_EQ(calls(&c, STRATA_CALL_pool_trim), trims + 1);
    expect_bytes(&c, 0, 0);
    captured_close(&c);
}

/* Memory of a graph may never have been there. Other memory that the device does not find stays counted. */
TEST(graph_driver_figures, a_block_of_no_graph_that_the_device_does_not_find_stays_kept) {
    captured_t c;
    captured_open(&c, "cuda_malloc_async");
    captured_begin(&c);
    strata_block_t node = rig_allocate(&c.rig, c.stream, BYTES);
    join(&c, c.other, c.stream);
    strata_block_t beside = rig_allocate(&c.rig, c.other, 2 * BYTES);
    join(&c, c.stream, c.other);
    captured_end(&c);
    EXPECT_OK(strata_device_free(c.rig.devices[0], STRATA_MEMORY_DEVICE, (uintptr_t)beside.ptr));
    give(&c, &node);
    give(&c, &beside);
    expect_bytes(&c, 0, 3 * BYTES);
    captured_destroy(&c);
    expect_bytes(&c, 0, 2 * BYTES);
    strata_checker_end(c.checker);
    EXPECT_OK(strata_close(c.rig.s, STRATA_CLOSE_FORCE, NULL, NULL));
    EXPECT_OK(strata_device_stream_destroy(c.rig.devices[0], c.stream));
    EXPECT_OK(strata_device_stream_destroy(c.rig.devices[0], c.other));
    rig_end(&c.rig);
}

/* ---- streams of one name ---- */

typedef struct elsewhere {
    captured_t *c;
    strata_stream_t joined; /* it comes after the capture's first stream */
    strata_block_t foreign, own; /* the first thread's, which this one frees; and this one's */
} elsewhere_t;

static void *ask_and_free(void *context) {
    elsewhere_t *e = context;
    join(e->c, STRATA_STREAM_PER_THREAD, e->joined);
    e->own = rig_allocate(&e->c->rig, STRATA_STREAM_PER_THREAD, 2 * BYTES);
    give(e->c, &e->foreign);
    give(e->c, &e->own);
    join(e->c, e->joined, STRATA_STREAM_PER_THREAD);
    return NULL;
}

/* The pool was begun for the per-thread stream of this thread, whose requests and frees alone become nodes. */
TEST(graph_driver_figures, nodes_are_for_the_thread_whose_stream_began_the_pool) {
    captured_t c;
    pthread_t thread;
    captured_open(&c, "cuda_malloc_async");
    elsewhere_t elsewhere = {.c = &c, .joined = c.stream};
    c.stream = STRATA_STREAM_PER_THREAD;
    captured_begin(&c);
    uint64_t streams = calls(&c, STRATA_CALL_stream_create);
    strata_block_t own = rig_allocate(&c.rig, c.stream, BYTES);
    elsewhere.foreign = rig_allocate(&c.rig, c.stream, BYTES);
    EXPECT_EQ(calls(&c, STRATA_CALL_stream_create), streams);
    give(&c, &own);
    expect_bytes(&c, BYTES, 0);
    EXPECT_EQ(calls(&c, STRATA_CALL_free_async), 1);
    join(&c, elsewhere.joined, c.stream);
    ASSERT_EQ(pthread_create(&thread, NULL, ask_and_free, &elsewhere), 0);
    pthread_join(thread, NULL);
    EXPECT_EQ(calls(&c, STRATA_CALL_stream_create), streams + 1);
    EXPECT_EQ(calls(&c, STRATA_CALL_free_async), 1);
    expect_bytes(&c, 0, 3 * BYTES);
    join(&c, c.stream, elsewhere.joined);
    captured_end(&c);
    captured_launch(&c);
    captured_destroy(&c);
    expect_bytes(&c, 0, 0);
    c.stream = elsewhere.joined;
    captured_close(&c);
}
