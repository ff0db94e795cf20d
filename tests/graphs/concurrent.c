/* Another thread acts while a pool becomes an owner of a block, or is set back: the lock of the block is open then. */
#include "allocation/domain/layer.h"
#include "allocation/graphs/graphs.h"
#include "tests/facade/support/interleaving.h"
#include "tests/graphs/graphs.h"

enum { SIZE = 1 << 20, WINDOWS = 12, MILLISECOND = 1000 * 1000 };

typedef struct window {
    captured_t c;
    before_lock_t before;
    strata_block_t freed, added; /* the one that the pool is about to own; another one that it owns before that fails */
    uint32_t adds_after; /* the number of further acquisitions of the lock; 0: it is not added */
    bool has_freed, has_added;
} window_t;

/* The legacy stream is in no capture, so the first is an ordinary free. */
static void act(void *context) {
    window_t *m = context;
    if (m->has_freed) {
        EXPECT_OK(strata_free_on(m->c.rig.s, m->added.ref, m->c.stream));
        m->has_added = true;
        return;
    }
    EXPECT_OK(strata_free(m->c.rig.s, m->freed.ref));
    m->has_freed = true;
    m->before.left = m->adds_after;
}

static uint64_t live(window_t *m) {
    strata_statistics_t figures = {.struct_size = sizeof figures};
    EXPECT_OK(strata_statistics_all(m->c.rig.s, strata_pinned(), &figures));
    return figures.live_allocations;
}

/* Runs before the n-th acquisition of the lock of the pool's place. Returns whether the free was refused for that reason. */
static bool meet(uint32_t n, uint32_t adds_after) {
    static window_t m;
    strata_block_t first;
    m = (window_t){.adds_after = adds_after};
    captured_open(&m.c, "strata");
    EXPECT_OK(strata_allocate(m.c.rig.s, strata_pinned(), NULL, SIZE, &first));
    EXPECT_OK(strata_allocate(m.c.rig.s, strata_pinned(), NULL, SIZE, &m.freed));
    EXPECT_OK(strata_allocate(m.c.rig.s, strata_pinned(), NULL, SIZE, &m.added));
    captured_begin(&m.c);
    EXPECT_OK(strata_free_on(m.c.rig.s, first.ref, m.c.stream));
    before_lock_begin(&m.before, &rig_domain(&m.c.rig)->lock, n, act, &m);
    strata_status_t status = strata_free_on(m.c.rig.s, m.freed.ref, m.c.stream);
    bool refused = status == STRATA_E_STALE && strstr(strata_last_error()->text, "freed while a graph became one of its owners");
    (void)before_lock_end(&m.before);
    EXPECT_STATUS(m.has_freed ? STRATA_E_STALE : STRATA_OK, status);
    captured_end(&m.c);
    EXPECT_EQ(captured_pool(&m.c).outside_blocks, 1 + !m.has_freed + m.has_added);
    EXPECT_EQ(live(&m), 2 + !m.has_freed);
    EXPECT_OK(strata_validate(m.c.rig.s));
    captured_destroy(&m.c);
    EXPECT_EQ(live(&m), !m.has_added);
    if (!m.has_added) EXPECT_OK(strata_free(m.c.rig.s, m.added.ref));
    EXPECT_OK(strata_release(m.c.rig.s, strata_pinned(), NULL));
    captured_close(&m.c);
    return refused && (adds_after == 0 || m.has_added);
}

/* The pool owns what it owned before, and what became its own in between. */
TEST(graph_concurrent, a_block_that_is_freed_while_a_graph_becomes_its_owner_is_stale) {
    for (uint32_t adds_after = 0; adds_after <= 2; adds_after++) {
        uint32_t refused = 0;
        for (uint32_t n = 1; n <= WINDOWS && !strata_test_has_failed(); n++) refused += meet(n, adds_after);
        EXPECT_GE(refused, 1);
    }
}

/* ---- a pool that ends ---- */

typedef struct ending {
    captured_t c;
    strata_block_t block;
} ending_t;

static void end_pool(void *context) {
    ending_t *ending = context;
    captured_end(&ending->c);
    captured_destroy(&ending->c);
    EXPECT_OK(strata_release(ending->c.rig.s, strata_pinned(), NULL));
}

/* Another thread ends the pool before the n-th acquisition of a lock, of the pool's place or of the block's stack,
 * by the thread that makes the pool an owner. Returns whether it did. */
static bool end_at(uint32_t n, bool before_stack) {
    static ending_t ending;
    captured_t *c = &ending.c;
    before_lock_t before;
    captured_open(c, "strata");
    EXPECT_OK(strata_allocate(c->rig.s, strata_pinned(), NULL, SIZE, &ending.block));
    captured_begin(c);
    strata_lock_t *lock = before_stack ? &strata_stack_of(strata_ref_home(ending.block.ref))->lock : &rig_domain(&c->rig)->lock;
    before_lock_begin(&before, lock, n, end_pool, &ending);
    EXPECT_OK(strata_record_stream(c->rig.s, ending.block.ref, c->stream));
    bool ended = before_lock_end(&before);
    if (!ended) end_pool(&ending);
    EXPECT_OK(strata_release(c->rig.s, strata_pinned(), NULL)); /* ends the pool if its end had to wait */
    EXPECT_OK(strata_validate(c->rig.s));
    EXPECT_OK(strata_free(c->rig.s, ending.block.ref));
    EXPECT_OK(strata_stream_synchronize(c->rig.s, c->rig.gpu, c->stream));
    EXPECT_OK(strata_release(c->rig.s, strata_pinned(), NULL));
    captured_close(c);
    return ended;
}

/* The block has exactly the owners that it had before, at whatever moment the pool ends. */
TEST(graph_concurrent, a_pool_that_ends_while_it_becomes_an_owner_owns_nothing) {
    for (int before_stack = 0; before_stack < 2; before_stack++) {
        uint32_t ended = 0;
        for (uint32_t n = 1; n <= WINDOWS && !strata_test_has_failed(); n++) ended += end_at(n, before_stack);
        EXPECT_GE(ended, 2);
    }
}

/* ---- a capture that begins during a free ---- */

static void begin_capture(void *context) { captured_begin(context); }

/* Frees a block with two borrowers. The capture of one begins when the free has found none, before the device call `call`. */
static void capture_during_free(const char *stack, strata_device_call_t call, bool captured_first) {
    captured_t c;
    between_t between;
    captured_open(&c, stack);
    strata_stream_t owner = rig_stream(&c.rig);
    strata_block_t block = rig_allocate(&c.rig, owner, SIZE), other = rig_allocate(&c.rig, owner, SIZE);
    rig_borrow(&c.rig, block.ref, captured_first ? c.stream : c.other, 50 * MILLISECOND);
    rig_borrow(&c.rig, block.ref, captured_first ? c.other : c.stream, 50 * MILLISECOND);
    between_begin(&between, &c.rig, call, begin_capture, &c);
    EXPECT_OK(strata_free(c.rig.s, block.ref));
    EXPECT_TRUE(between_end(&between));
    EXPECT_OK(strata_validate(c.rig.s));
    EXPECT_EQ(rig_figures(&c.rig).quarantined_bytes, 0);
    EXPECT_EQ(rig_figures(&c.rig).deferred_bytes, block.size);
    EXPECT_OK(strata_free(c.rig.s, other.ref));
    captured_end(&c);
    EXPECT_OK(strata_free(c.rig.s, rig_allocate(&c.rig, owner, SIZE).ref)); /* a hit, which polls */
    EXPECT_EQ(rig_figures(&c.rig).deferred_bytes, block.size);
    EXPECT_OK(strata_validate(c.rig.s));
    rig_advance(&c.rig, 200 * MILLISECOND);
    (void)rig_release(&c.rig);
    EXPECT_EQ(rig_figures(&c.rig).quarantined_bytes, 0);
    EXPECT_EQ(rig_figures(&c.rig).deferred_bytes, 0);
    EXPECT_OK(strata_validate(c.rig.s));
    captured_destroy(&c);
    EXPECT_OK(strata_stream_synchronize(c.rig.s, c.rig.gpu, owner));
    captured_close(&c);
    if (strata_test_has_failed()) FAIL_TEST("%s", stack);
}

/* The event of the captured borrower would never pass, so the block waits for the end of the capture. */
TEST(graph_concurrent, a_block_waits_for_a_capture_that_began_during_its_free) {
    static const char *const stacks[] = {"strata", "stack: [caching, system]",
                                         "stack: [stream_safe: {poll: block}, auto_growth, system]",
                                         "stack: [stream_safe: {poll: seldom}, auto_growth, system]"};
    for (int i = 0; i < 4; i++)
        for (int first = 0; first < 2; first++) capture_during_free(stacks[i], STRATA_CALL_event_create, first);
}

/* Without events the host would wait, which would end the capture. */
TEST(graph_concurrent, a_block_without_events_waits_for_a_capture_that_began_during_its_free) {
    for (int first = 0; first < 2; first++) capture_during_free("stack: [bfc, system]", STRATA_CALL_capture_status, first);
}

/* ---- a pool that is set back ---- */

typedef struct lender {
    captured_t c;
    strata_block_t block;
} lender_t;

static void free_lent(void *context) {
    lender_t *lender = context;
    EXPECT_OK(strata_free(lender->c.rig.s, lender->block.ref));
}

/* Runs before the n-th acquisition of the stack's lock. Returns whether the restore was refused because the memory waits. */
static bool set_back_at(uint32_t n) {
    static lender_t lender;
    captured_t *c = &lender.c;
    strata_checkpoint_t then = NULL;
    strata_block_t found;
    before_lock_t before;
    lender = (lender_t){.block = {.ref = 0}};
    captured_open(c, "stack: [stream_safe, auto_growth: {chunk_size: 20MiB}, system]");
    captured_begin(c);
    strata_block_t old = rig_allocate(&c->rig, c->stream, 4 * MIB);
    captured_end(c);
    strata_graph_t first = c->graph;
    EXPECT_OK(strata_graph_pool_checkpoint(c->rig.s, c->rig.gpu, c->pool, &then));
    EXPECT_OK(strata_free(c->rig.s, old.ref));
    captured_begin(c);
    lender.block = rig_allocate(&c->rig, c->stream, 8 * MIB);
    EXPECT_TRUE(rig_overlap(&lender.block, &old));
    captured_end(c);
    EXPECT_OK(strata_record_stream(c->rig.s, lender.block.ref, c->other));
    rig_work(&c->rig, c->other, 1000 * 1000, lender.block.ref);
    before_lock_begin(&before, &strata_stack_of(strata_ref_home(old.ref))->lock, n, free_lent, &lender);
    EXPECT_STATUS(STRATA_E_BUSY, strata_graph_pool_restore(c->rig.s, c->rig.gpu, then, NULL, NULL));
    bool refused = strstr(strata_last_error()->text, "still in use by other streams");
    if (!before_lock_end(&before)) free_lent(&lender);
    EXPECT_EQ(captured_pool(c).live_allocations, 0);
    EXPECT_OK(strata_validate(c->rig.s));
    EXPECT_OK(strata_stream_synchronize(c->rig.s, c->rig.gpu, c->other));
    EXPECT_OK(strata_graph_pool_restore(c->rig.s, c->rig.gpu, then, NULL, NULL));
    EXPECT_OK(strata_block_of(c->rig.s, old.ptr, &found));
    EXPECT_EQ(found.size, old.size);
    EXPECT_OK(strata_free(c->rig.s, found.ref));
    strata_graph_checkpoint_drop(then);
    EXPECT_OK(strata_graph_destroy(c->rig.s, c->rig.gpu, first));
    captured_destroy(c);
    captured_close(c);
    return refused;
}

/* The block was live when the restore listed it; its free waits when the restore comes to its memory. */
TEST(graph_concurrent, a_lent_block_that_is_freed_while_its_pool_is_set_back_is_waited_for) {
    uint32_t refused = 0;
    for (uint32_t n = 1; n <= WINDOWS && !strata_test_has_failed(); n++) refused += set_back_at(n);
    EXPECT_GE(refused, 1);
    EXPECT_LT(refused, WINDOWS);
}
