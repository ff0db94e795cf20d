/* Every device call and every host allocation fails in turn while a pool is begun, a graph captured into it, and the pool ended and
 * removed: whatever the program is told, no byte is lost and no graph loses its memory. */
#include "platform/host/host_memory.h"
#include "tests/graphs/graphs.h"

enum { BLOCKS = 4 };

typedef struct attempt {
    captured_t c;
    strata_block_t outside, blocks[BLOCKS]; /* ref 0: none */
    bool begun, capturing;
} attempt_t;

static void give(attempt_t *a, strata_block_t *block) {
    if (block->ref) EXPECT_OK(strata_free(a->c.rig.s, block->ref));
    block->ref = 0;
}

static void join(attempt_t *a, const strata_block_t *block) {
    captured_t *c = &a->c;
    if (!block->ref || strata_stream_wait(c->rig.s, c->rig.gpu, c->other, c->stream) != STRATA_OK) return;
    (void)strata_record_stream(c->rig.s, block->ref, c->other);
    (void)strata_stream_work(c->rig.s, c->rig.gpu, c->other, 1000, &block->ref, 1);
    (void)strata_stream_wait(c->rig.s, c->rig.gpu, c->stream, c->other);
}

static void inside(attempt_t *a) {
    captured_t *c = &a->c;
    for (int i = 0; i < BLOCKS; i++) {
        strata_block_t *block = &a->blocks[i];
        if (strata_allocate(c->rig.s, c->rig.gpu, c->stream, MIB << i, block) != STRATA_OK) *block = (strata_block_t){.ref = 0};
        if (block->ref) (void)strata_stream_work(c->rig.s, c->rig.gpu, c->stream, 1000, &block->ref, 1);
    }
    join(a, &a->blocks[1]);
    give(a, &a->blocks[0]);
    give(a, &a->blocks[1]);
    give(a, &a->outside);
}

/* What fails is left as it is, for finish(). */
static void run(attempt_t *a) {
    captured_t *c = &a->c;
    a->begun = strata_graph_pool_begin(c->rig.s, c->rig.gpu, c->stream, &c->pool) == STRATA_OK;
    a->capturing = a->begun && strata_capture_begin(c->rig.s, c->rig.gpu, c->stream) == STRATA_OK;
    if (a->capturing) inside(a);
    if (a->capturing && strata_capture_end(c->rig.s, c->rig.gpu, c->stream, &c->graph) == STRATA_OK) a->capturing = false;
    if (a->begun && !a->capturing && strata_graph_pool_end(c->rig.s, c->rig.gpu, c->pool) == STRATA_OK) {
        EXPECT_OK(strata_graph_pool_remove(c->rig.s, c->rig.gpu, c->pool));
        a->begun = false;
    }
}

/* A capture that has failed is over all the same. */
static void finish(attempt_t *a) {
    captured_t *c = &a->c;
    if (a->capturing) (void)strata_capture_end(c->rig.s, c->rig.gpu, c->stream, &c->graph);
    if (a->begun) EXPECT_OK(strata_graph_pool_end(c->rig.s, c->rig.gpu, c->pool));
    if (a->begun) EXPECT_OK(strata_graph_pool_remove(c->rig.s, c->rig.gpu, c->pool));
    if (c->graph) captured_launch(c);
    if (c->graph) captured_destroy(c);
    for (int i = 0; i < BLOCKS; i++) give(a, &a->blocks[i]);
    give(a, &a->outside);
}

typedef struct fault {
    const char *name;
    void (*set)(attempt_t *a, uint64_t k, bool onward);
    void (*clear)(attempt_t *a);
} fault_t;

static void fail_host(attempt_t *a, uint64_t k, bool onward) {
    (void)a;
    strata_host_fail_at(k, onward);
}

static void clear_host(attempt_t *a) {
    (void)a;
    strata_host_fail_at(0, 0);
}

static void fail_device(attempt_t *a, uint64_t k, bool onward) {
    EXPECT_OK(strata_sim_fail(a->c.rig.devices[0], STRATA_DEVICE_CALLS, k, onward, STRATA_E_DEVICE));
}

static void run_out(attempt_t *a, uint64_t k, bool onward) {
    EXPECT_OK(strata_sim_fail(a->c.rig.devices[0], STRATA_CALL_malloc, k, onward, STRATA_E_NO_MEMORY));
    EXPECT_OK(strata_sim_fail(a->c.rig.devices[0], STRATA_CALL_malloc_async, k, onward, STRATA_E_NO_MEMORY));
}

static void clear_device(attempt_t *a) { strata_sim_clear_faults(a->c.rig.devices[0]); }

static const fault_t faults[] = {
    {"host", fail_host, clear_host}, {"device", fail_device, clear_device}, {"memory", run_out, clear_device}};

static void attempt(const char *strategy, const fault_t *fault, uint64_t k, bool onward) {
    attempt_t a = {.begun = false};
    captured_open(&a.c, strategy);
    a.outside = rig_allocate(&a.c.rig, a.c.stream, MIB);
    fault->set(&a, k, onward);
    run(&a);
    fault->clear(&a);
    finish(&a);
    captured_close(&a.c);
    if (strata_test_has_failed()) FAIL_TEST("so far with k = %llu, %s", (unsigned long long)k, onward ? "onward" : "once");
}

typedef struct strategy_row {
    const char *name, *strategy;
} strategy_row_t;
static const strategy_row_t strategies[] = {
    {"strata", "strata"},
    {"pytorch", "pytorch"},
    {"tensorflow", "tensorflow"},
    {"paddle", "paddle"},
    {"cuda_malloc_async", "cuda_malloc_async"},
    {"stream_safe_cuda_malloc_async", "stack: [stream_safe, cuda_malloc_async]"},
    {"cache_over_cuda_malloc_async", "stack: [auto_growth, cuda_malloc_async]"},
};

enum { MOST = 120 };

static void in_turn(const char *strategy, const fault_t *fault) {
    for (uint64_t k = 1; k <= MOST && !strata_test_has_failed(); k += STRIDE > 1 ? 7 : 1)
        for (int onward = 0; onward < 2 && !strata_test_has_failed(); onward++) attempt(strategy, fault, k, onward);
}

TEST_EACH(graph_faults, each_host_allocation_fails, strategy_row_t, strategies) { in_turn(row->strategy, &faults[0]); }
TEST_EACH(graph_faults, each_device_call_fails, strategy_row_t, strategies) { in_turn(row->strategy, &faults[1]); }
TEST_EACH(graph_faults, each_growth_fails, strategy_row_t, strategies) { in_turn(row->strategy, &faults[2]); }
