/* Each way in which a wake-up could be lost, one by one: the schedule is made by a layer over the device, not left to chance.
 * */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "allocation/domain/layer.h"
#include "allocation/options/option.h"
#include "tests/facade/support/fixture.h"

#define MILLISECOND (1000ull * 1000)

/* ---- a layer that frees a block of another owner after its n-th refusal ---- */

static struct {
    rig_t *rig;
    strata_block_t block; /* ref 0: freed */
    strata_stream_t on; /* NULL: an ordinary free; else the free is on that stream, busy for a while */
    uint32_t at, refusals;
} waker;

static void *free_the_block(void *argument) {
    (void)argument;
    if (waker.on) EXPECT_OK(strata_free_on(waker.rig->s, waker.block.ref, waker.on));
    else EXPECT_OK(strata_free(waker.rig->s, waker.block.ref));
    waker.block.ref = 0;
    return NULL;
}

static strata_status_t waker_allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_status_t status = strata_below_allocate(self, request, record);
    if (status != STRATA_E_NO_MEMORY || ++waker.refusals != waker.at) return status;
    pthread_t thread;
    strata_unlocked_t opened = strata_call_unlock(request->call);
    if (pthread_create(&thread, NULL, free_the_block, NULL) == 0) pthread_join(thread, NULL);
    strata_call_lock(request->call, opened);
    return strata_fail(STRATA_E_NO_MEMORY, 0, "refused, and then a block was freed");
}

static const strata_layer_type_t waker_type = DECORATOR("test_waker", STRATA_SCOPE_DEVICE, waker_allocate, strata_layer_free_below);

typedef enum elsewhere { SAME_STACK, OTHER_STACK, BORROWED } elsewhere_t;

/* Whether the free after refusal number `at` came, and so the request had to be served. */
static bool is_heard(const char *stack, elsewhere_t where, uint32_t at) {
    char text[300];
    register_layer(&waker_type);
    snprintf(text, sizeof text, "strategy: waking\nstack: [%s, test_waker, system]\n", stack);
    RIG(rig, text, 64 * MIB);
    strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig), three = rig_stream(&rig);
    waker.rig = &rig;
    waker.at = at;
    waker.refusals = 0;
    waker.on = where == BORROWED ? three : NULL;
    waker.block = rig_allocate(&rig, one, 40 * MIB);
    if (where == BORROWED) rig_work(&rig, three, 3 * MILLISECOND, waker.block.ref);
    strata_block_t block = {.ref = 0};
    strata_status_t status = strata_allocate(rig.s, rig.gpu, where == OTHER_STACK ? two : one, 40 * MIB, &block);
    bool came = waker.block.ref == 0;
    EXPECT_EQ(status, came ? STRATA_OK : STRATA_E_NO_MEMORY);
    EXPECT_EQ(rig_domain(&rig)->waiters, 0);
    EXPECT_EQ(rig_domain(&rig)->sleeping, 0);
    if (!came) EXPECT_OK(strata_free(rig.s, waker.block.ref));
    if (status == STRATA_OK) EXPECT_OK(strata_free(rig.s, block.ref));
    rig_advance(&rig, 1000 * MILLISECOND);
    if (strata_test_has_failed()) FAIL_TEST("%s, after refusal %u", stack, at);
    return came;
}

static void after_every_refusal(elsewhere_t where) {
    static const char *const stacks[] = {"retry: {timeout: 5s}, stream_safe, auto_growth",
                                         "retry: {timeout: 5s, wait_first: true}, stream_safe, auto_growth: {reclaim: own}",
                                         "retry: {timeout: 5s}, stream_safe, buffered"};
    for (int i = 0; i < 3; i++) {
        uint32_t at = 1;
        while (at < 50 && !strata_test_has_failed() && is_heard(stacks[i], where, at)) at++;
        printf("%s: %u refusals, a free after each of them was heard\n", stacks[i], at - 1);
        EXPECT_GT(at, 2);
        EXPECT_LT(at, 50);
    }
}

TEST(facade_wake_ups, a_free_after_every_refusal_is_heard) { after_every_refusal(SAME_STACK); }
TEST(facade_wake_ups, a_free_in_another_stack_after_every_refusal_is_heard) { after_every_refusal(OTHER_STACK); }
TEST(facade_wake_ups, a_deferred_free_after_every_refusal_is_waited_for) { after_every_refusal(BORROWED); }

/* ---- other threads ---- */

typedef struct neighbour {
    rig_t *rig;
    pthread_t thread;
    pthread_barrier_t *here;
    strata_block_t block; /* that it frees, or got */
    strata_stream_t stream;
    _Atomic bool stop;
    strata_status_t status;
    uint64_t virtual_ns;
} neighbour_t;

static void be_known(const neighbour_t *n) {
    strata_block_t none;
    EXPECT_OK(strata_allocate(n->rig->s, n->rig->gpu, n->stream, 0, &none));
    EXPECT_OK(strata_free(n->rig->s, none.ref));
}

static void *compute(void *argument) {
    neighbour_t *n = argument;
    be_known(n);
    if (n->here) pthread_barrier_wait(n->here);
    while (n->here && !atomic_load(&n->stop)) usleep(500);
    return NULL;
}

static void open_with_timeout(rig_t *rig, const char *timeout) {
    const char *set[] = {timeout};
    rig_open(rig, "strata", set, 1, 64 * MIB, 1);
}

TEST_BY(facade_wake_ups, a_thread_that_has_ended_is_waited_for_by_nobody, open_with_timeout(rig, "retry.timeout=20s")) {
    neighbour_t neighbours[3] = {{.rig = rig}, {.rig = rig}, {.rig = rig}};
    in_threads(compute, neighbours, sizeof *neighbours, 3);
    (void)rig_allocate(rig, NULL, 40 * MIB);
    uint64_t began = strata_real_now();
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(rig, NULL, 40 * MIB));
    EXPECT_LT(strata_real_now() - began, 5000 * MILLISECOND);
}

TEST_BY(facade_wake_ups, beside_a_thread_that_computes_the_deadline_ends_the_wait_and_nothing_before,
        open_with_timeout(rig, "retry.timeout=60ms")) {
    pthread_barrier_t here;
    neighbour_t neighbour = {.rig = rig, .here = &here};
    pthread_barrier_init(&here, NULL, 2);
    ASSERT_EQ(pthread_create(&neighbour.thread, NULL, compute, &neighbour), 0);
    pthread_barrier_wait(&here);
    (void)rig_allocate(rig, NULL, 40 * MIB);
    uint64_t began = strata_real_now(), now = strata_sim_now(rig->world);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(rig, NULL, 40 * MIB));
    EXPECT_GE(strata_real_now() - began, 60 * MILLISECOND);
    EXPECT_LT(strata_real_now() - began, 10000 * MILLISECOND);
    /* The simulated clock stands still while a thread computes. */
    EXPECT_LT(strata_sim_now(rig->world) - now, 61 * MILLISECOND);
    atomic_store(&neighbour.stop, true);
    pthread_join(neighbour.thread, NULL);
    pthread_barrier_destroy(&here);
}

static void *wait_for_memory(void *argument) {
    neighbour_t *n = argument;
    n->status = strata_allocate(n->rig->s, n->rig->gpu, n->stream, 40 * MIB, &n->block);
    n->virtual_ns = strata_sim_now(n->rig->world);
    return NULL;
}

static void *free_from_outside(void *argument) {
    neighbour_t *n = argument;
    strata_domain_t *domain = rig_domain(n->rig);
    for (bool sleeps = false; !sleeps && !strata_test_has_failed(); usleep(500)) {
        strata_lock(&domain->lock);
        sleeps = domain->sleeping > 0;
        strata_unlock(&domain->lock);
    }
    rig_advance(n->rig, 40 * MILLISECOND);
    EXPECT_OK(strata_free(n->rig->s, n->block.ref));
    return NULL;
}

/* The holder's thread is none of the facade's until it frees; the main thread is, and only waits for its threads. */
TEST(facade_wake_ups, a_holder_that_frees_from_outside_after_40_ms_is_heard) {
    static const char *const presets[] = {"strata", "paddle"};
    for (int i = 0; i < 4; i++) {
        static const char *const set[] = {"retry.timeout=30s"};
        RIG_BY(rig, rig_open(&rig, presets[i % 2], set, 1, 64 * MIB, 1));
        strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
        uint64_t now = strata_sim_now(rig.world), began = strata_real_now();
        neighbour_t waiter = {.rig = &rig, .stream = i / 2 ? two : one}, holder = {.rig = &rig};
        holder.block = rig_allocate(&rig, one, 40 * MIB);
        ASSERT_EQ(pthread_create(&waiter.thread, NULL, wait_for_memory, &waiter), 0);
        ASSERT_EQ(pthread_create(&holder.thread, NULL, free_from_outside, &holder), 0);
        pthread_join(waiter.thread, NULL);
        pthread_join(holder.thread, NULL);
        EXPECT_EQ(waiter.status, STRATA_OK);
        EXPECT_GE(waiter.virtual_ns - now, 40 * MILLISECOND);
        EXPECT_LT(waiter.virtual_ns - now, 1000 * MILLISECOND);
        EXPECT_LT(strata_real_now() - began, 20000 * MILLISECOND);
        if (waiter.status == STRATA_OK) EXPECT_OK(strata_free(rig.s, waiter.block.ref));
    }
}

/* ---- growth ---- */

typedef struct pair {
    rig_t *rig;
    pthread_barrier_t barrier;
} pair_t;

static void *miss(void *argument) {
    pair_t *p = argument;
    pthread_barrier_wait(&p->barrier);
    (void)rig_allocate(p->rig, NULL, 2000);
    return NULL;
}

static void miss_at_once(const strata_layer_type_t *cache, uint64_t seed) {
    char text[200];
    snprintf(text, sizeof text, "strategy: missing\nstack: [retry, stream_safe, %s%s%s]\n", cache->name,
             strata_option_find(cache, "chunk_size") ? ": {chunk_size: 2MiB}" : "", source_below(cache));
    RIG(rig, text, 0);
    pair_t pair = {.rig = &rig};
    uint64_t asked = rig_calls(&rig, STRATA_CALL_malloc) + rig_calls(&rig, STRATA_CALL_create);
    pthread_barrier_init(&pair.barrier, NULL, 2);
#ifdef STRATA_CHECK_LOCKS
    strata_lock_perturb(seed);
#endif
    in_threads(miss, &pair, 0, 2);
#ifdef STRATA_CHECK_LOCKS
    strata_lock_perturb(0);
#endif
    pthread_barrier_destroy(&pair.barrier);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc) + rig_calls(&rig, STRATA_CALL_create), asked + 1);
    if (strata_test_has_failed()) FAIL_TEST("%s, seed %llu", cache->name, (unsigned long long)seed);
}

/* Every cache of the registry that cuts pieces from chunks and serves more than one thread, the schedule disturbed where the build
 * can. */
TEST(facade_wake_ups, two_threads_that_miss_at_once_make_one_chunk_in_every_cache) {
    uint32_t caches = 0;
    for (size_t i = 0; strata_layer_at(i); i++) {
        const strata_layer_type_t *type = strata_layer_at(i);
        if (type->role != STRATA_CACHE || !(type->gives & STRATA_TRAIT_SUB_ALLOCATES)) continue;
        if (type->scope == STRATA_SCOPE_THREAD) continue;
        caches++;
        for (uint64_t seed = 1; seed <= 30 && !strata_test_has_failed(); seed++) miss_at_once(type, seed);
    }
    EXPECT_GT(caches, 0);
}

/* ---- callbacks ---- */

typedef struct caller {
    rig_t *rig;
    uint32_t called;
} caller_t;

static void call_everything(caller_t *c) {
    rig_t *rig = c->rig;
    strata_block_t block;
    if (c->called++ > 3) return;
    if (strata_allocate(rig->s, rig->gpu, NULL, 3000, &block) == STRATA_OK) EXPECT_OK(strata_free(rig->s, block.ref));
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    EXPECT_OK(strata_trim(rig->s, rig->gpu, 0, NULL));
    EXPECT_OK(strata_validate(rig->s));
    (void)rig_figures(rig);
}

static void at_row(const strata_snapshot_row_t *row, void *context) {
    (void)row;
    call_everything(context);
}

static void at_leak(const strata_leak_t *leak, void *context) {
    caller_t *c = context;
    call_everything(c);
    EXPECT_OK(strata_free(c->rig->s, leak->block.ref));
}

/* The rungs' callbacks and the observers are facade_ladder's. */
TEST(facade_wake_ups, rows_and_leaks_are_told_where_any_function_may_be_called) {
    for (size_t i = 0; strata_strategy_name(i); i++) {
        RIG(rig, strata_strategy_name(i), 64 * MIB);
        caller_t caller = {.rig = &rig};
        for (int k = 0; k < 3; k++) (void)rig_allocate(&rig, NULL, 5000);
        EXPECT_OK(strata_snapshot(rig.s, rig.gpu, at_row, &caller));
        EXPECT_GE(caller.called, 3);
        caller.called = 0;
        /* It hears of what is live; once it has freed that, nothing is. */
        EXPECT_STATUS(STRATA_E_BUSY, strata_close(rig.s, STRATA_CLOSE_BUSY, at_leak, &caller));
        EXPECT_EQ(caller.called, 3);
        EXPECT_EQ(rig_figures(&rig).live_allocations, 0);
    }
}
