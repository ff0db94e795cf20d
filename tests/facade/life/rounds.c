/* Programs that create, use and end objects repeatedly: no memory of the library grows with the rounds. */
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>

#include "allocation/tables/directory.h"
#include "platform/host/host_memory.h"
#include "tests/facade/support/fixture.h"

/* Allowed differences: allocation sizes vary a little, a table may grow once more, and the directory needs one more node if a chunk crosses
 * the edge of two nodes (a node covers 512 GiB of addresses and is reused). */
enum { FIRST = 40, ROUNDS = 1000, FEWER = 250, SIZE = 1 << 20, UNEVEN = 4096, ONE_TABLE = 256 << 10 };

typedef struct loop {
    rig_t *rig;
    uint64_t round;
    strata_stream_t stream;
} loop_t;

/* After a few rounds the host memory of the library must stay constant. */
static void expect_no_growth(const char *strategy, uint64_t rounds, void (*round)(loop_t *loop)) {
    OPENED(rig_t, rig, rig_close, rig_open(&rig, strategy, NULL, 0, 0, 1));
    loop_t loop = {.rig = &rig, .stream = rig_stream(&rig)};
    if (*STRATA_SANITIZERS) rounds /= 5; /* Each round takes ten times as long there, and what grows does so in every round. */
    for (; loop.round < FIRST; loop.round++) round(&loop);
    strata_host_live_t before = strata_host_live();
    for (; loop.round < FIRST + rounds; loop.round++) round(&loop);
    strata_host_live_t after = strata_host_live();
    EXPECT_EQ(after.allocations, before.allocations);
    EXPECT_LE(after.bytes, before.bytes + UNEVEN);
    EXPECT_LE(after.mapped, before.mapped + ONE_TABLE + sizeof(strata_directory_inner_t));
    if (strata_test_has_failed()) FAIL_TEST("%s", strategy);
}

static const char *const strategies[] = {"strata", "pytorch", "thread_local", "cuda_malloc_async"};
enum { STRATEGIES = sizeof strategies / sizeof *strategies };

static void expect_no_growth_of_any(void (*round)(loop_t *loop)) {
    for (int i = 0; i < STRATEGIES; i++) expect_no_growth(strategies[i], i == 0 ? ROUNDS : FEWER, round);
}

static void another_strategy(loop_t *loop) {
    static const char *const presets[] = {"strata", "pytorch"};
    strata_open_options_t options = {.struct_size = sizeof options, .preset = presets[loop->round % 2]};
    options.flags = STRATA_OPEN_IGNORE_ENVIRONMENT;
    EXPECT_OK(strata_change_strategy(loop->rig->s, &options));
    EXPECT_OK(strata_free(loop->rig->s, rig_allocate(loop->rig, NULL, SIZE).ref));
    EXPECT_OK(strata_free(loop->rig->s, rig_allocate(loop->rig, loop->stream, SIZE).ref));
}

TEST(facade_rounds, a_change_of_the_strategy_leaves_nothing) { expect_no_growth("strata", FEWER, another_strategy); }

static void graph_pool(loop_t *loop) {
    uint64_t pool = 0;
    rig_t *rig = loop->rig;
    EXPECT_OK(strata_graph_pool_begin(rig->s, rig->gpu, loop->stream, &pool));
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, loop->stream, SIZE).ref));
    EXPECT_OK(strata_graph_pool_end(rig->s, rig->gpu, pool));
    EXPECT_OK(strata_graph_pool_remove(rig->s, rig->gpu, pool));
}

TEST(facade_rounds, a_pool_of_graphs_leaves_nothing) {
    expect_no_growth("strata", ROUNDS, graph_pool);
    expect_no_growth("pytorch", FEWER, graph_pool);
}

static void *allocate_once(void *context) {
    rig_t *rig = context;
    strata_block_t block = rig_allocate(rig, (strata_stream_t)2, SIZE);
    EXPECT_OK(strata_free(rig->s, block.ref));
    return NULL;
}

static void thread(loop_t *loop) {
    pthread_t other;
    ASSERT_EQ(pthread_create(&other, NULL, allocate_once, loop->rig), 0);
    ASSERT_EQ(pthread_join(other, NULL), 0);
}

TEST(facade_rounds, a_thread_that_has_exited_leaves_nothing) { expect_no_growth_of_any(thread); }

static void stream(loop_t *loop) {
    rig_t *rig = loop->rig;
    strata_stream_t fresh = rig_stream(rig);
    strata_block_t block = rig_allocate(rig, fresh, SIZE);
    EXPECT_OK(strata_record_stream(rig->s, block.ref, loop->stream));
    EXPECT_OK(strata_free(rig->s, block.ref));
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, fresh));
    EXPECT_OK(strata_stream_destroy(rig->s, rig->gpu, fresh));
}

TEST(facade_rounds, a_forgotten_stream_leaves_nothing) { expect_no_growth_of_any(stream); }

static void open_and_close(loop_t *loop) {
    strata_t other;
    strata_block_t block;
    strata_open_options_t options = {
        .struct_size = sizeof options, .preset = strategies[loop->round % STRATEGIES], .devices = "sim"};
    options.flags = STRATA_OPEN_IGNORE_ENVIRONMENT;
    EXPECT_OK(strata_open(&options, &other));
    EXPECT_OK(strata_allocate(other, strata_gpu(0), NULL, SIZE, &block));
    EXPECT_OK(strata_free_pointer(other, block.ptr));
    EXPECT_OK(strata_close(other, STRATA_CLOSE_BUSY, NULL, NULL));
    options.text = "stack: [no_such_layer]\n";
    options.preset = NULL;
    EXPECT_STATUS(STRATA_E_STRATEGY, strata_open(&options, &other));
}

/* Opens a second facade; the test fixture's own stays open. */
TEST(facade_rounds, a_facade_that_was_closed_leaves_nothing) { expect_no_growth("strata", FEWER, open_and_close); }

static void release(loop_t *loop) {
    EXPECT_OK(strata_free(loop->rig->s, rig_allocate(loop->rig, loop->stream, 64 * SIZE).ref));
    EXPECT_OK(strata_release(loop->rig->s, loop->rig->gpu, NULL));
}

TEST(facade_rounds, memory_that_went_back_leaves_nothing) { expect_no_growth_of_any(release); }

/* A close that is refused because blocks are live does not change the facade. */
static void refused_close(loop_t *loop) {
    strata_block_t block = rig_allocate(loop->rig, loop->stream, SIZE);
    EXPECT_STATUS(STRATA_E_BUSY, strata_close(loop->rig->s, STRATA_CLOSE_BUSY, NULL, NULL));
    EXPECT_OK(strata_free(loop->rig->s, block.ref));
}

TEST(facade_rounds, a_refused_close_leaves_nothing) { expect_no_growth("strata", ROUNDS, refused_close); }

/* Opening and closing a facade touches few pages, because its tables start small. */
TEST(facade_rounds, an_open_and_a_close_touch_few_pages) {
    enum { OPENS = 50, PAGES = 200 };
    if (*STRATA_SANITIZERS) TEST_SKIP("a sanitizer touches pages of its own for every byte that the library touches");
    struct rusage before, after;
    loop_t loop = {.round = 0};
    for (; loop.round < STRATEGIES; loop.round++) open_and_close(&loop);
    EXPECT_EQ(getrusage(RUSAGE_SELF, &before), 0);
    for (; loop.round < STRATEGIES + OPENS; loop.round++) open_and_close(&loop);
    EXPECT_EQ(getrusage(RUSAGE_SELF, &after), 0);
    EXPECT_LE(after.ru_minflt - before.ru_minflt, OPENS * PAGES);
}
