/* What debug builds abort at: locks out of order, device calls that may block under a lock. And whose state is whose. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/allocation/bench.h"

#ifdef STRATA_CHECK_LOCKS
/* Whether `body` ends the process by abort; it ends well otherwise, or the test fails. */
static bool aborts(void (*body)(bench_t *), bench_t *bench) {
    pid_t child = fork();
    if (child == 0) {
        (void)close(2);
        (void)signal(SIGABRT, SIG_DFL);
        body(bench);
        _exit(0);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    bool aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
    if (!aborted && !(WIFEXITED(status) && WEXITSTATUS(status) == 0)) FAIL_TEST("ended with the wait status %#x", (unsigned)status);
    return aborted;
}

static void call_that_blocks(bench_t *bench) {
    strata_lock(&bench->stack->lock);
    (void)strata_device_synchronise(bench->device);
    strata_unlock(&bench->stack->lock);
}

static void quick_call(bench_t *bench) {
    strata_handle_t event;
    (void)strata_device_event_create(bench->device, &event);
    strata_lock(&bench->stack->lock);
    (void)strata_device_event_record(bench->device, event, NULL);
    (void)strata_device_event_query(bench->device, event);
    (void)strata_device_stream_wait(bench->device, NULL, event);
    strata_unlock(&bench->stack->lock);
}

static void shared_stack_before_stack(bench_t *bench) {
    strata_stack_t *shared = bench->domain->first_stack;
    strata_lock(&shared->lock);
    strata_lock(&bench->stack->lock);
    strata_unlock(&bench->stack->lock);
    strata_unlock(&shared->lock);
}

static void stack_before_shared_stack(bench_t *bench) {
    strata_stack_t *shared = bench->domain->first_stack;
    strata_lock(&bench->stack->lock);
    strata_lock(&shared->lock);
    strata_unlock(&shared->lock);
    strata_unlock(&bench->stack->lock);
}

static void domain_under_stack(bench_t *bench) {
    strata_lock(&bench->stack->lock);
    strata_lock(&bench->domain->lock);
    strata_unlock(&bench->domain->lock);
    strata_unlock(&bench->stack->lock);
}

static void facade_under_domain(bench_t *bench) {
    strata_lock_t facade;
    strata_lock_init(&facade, STRATA_RANK_FACADE, NULL);
    strata_lock(&bench->domain->lock);
    strata_lock(&facade);
    strata_unlock(&facade);
    strata_unlock(&bench->domain->lock);
}

/* The stack's lock would tell it of its next release. */
static void observer_before_its_locks(bench_t *bench) { strata_lock_assert_alone(bench->device->lock_observer); }

enum { MANY = 5001 };

/* As many stacks as a thread may hold and one more; `order` is the rank of the last. */
static void hold(size_t count, strata_lock_rank_t order) {
    static strata_lock_t domain, stacks[MANY], last;
    strata_lock_init(&domain, STRATA_RANK_DOMAIN, NULL);
    strata_lock(&domain);
    for (size_t i = 0; i < count; i++) {
        strata_lock_init(&stacks[i], STRATA_RANK_STACK, NULL);
        strata_lock(&stacks[i]);
    }
    strata_lock_init(&last, order, NULL);
    strata_lock(&last);
}

#ifndef __SANITIZE_THREAD__
static void too_many(bench_t *bench) {
    (void)bench;
    hold(MANY - 2, STRATA_RANK_STACK);
    strata_lock_t one_more;
    strata_lock_init(&one_more, STRATA_RANK_STACK, NULL);
    strata_lock(&one_more);
}

static void as_many_as_may_be(bench_t *bench) {
    (void)bench;
    hold(MANY - 3, STRATA_RANK_STACK);
}
#endif

static void out_of_order_after_many(bench_t *bench) {
    (void)bench;
    hold(40, STRATA_RANK_FACADE);
}

/* The shared stack is one that is noted after the first few. */
static void stack_under_a_shared_stack_after_many(bench_t *bench) {
    (void)bench;
    hold(20, STRATA_RANK_SHARED);
    strata_lock_t more[2];
    strata_lock_init(&more[0], STRATA_RANK_SHARED, NULL);
    strata_lock_init(&more[1], STRATA_RANK_STACK, NULL);
    strata_lock(&more[0]);
    strata_lock(&more[1]);
}
#endif

static void open_plain(bench_t *bench) {
    bench_begin(bench);
    const strata_layer_type_t *types[] = {strata_layer_find("retry"), strata_layer_find("stream_safe"),
                                          strata_layer_find("auto_growth"), &test_source_type, NULL};
    bench_straight(bench, types, NULL);
    bench_open(bench, 0);
}

TEST(allocation_locks, wrong_orders_and_blocking_calls_abort) {
#ifdef STRATA_CHECK_LOCKS
    bench_t bench;
    open_plain(&bench);
    EXPECT_TRUE(aborts(call_that_blocks, &bench));
    EXPECT_FALSE(aborts(quick_call, &bench));
    EXPECT_TRUE(aborts(shared_stack_before_stack, &bench));
    EXPECT_FALSE(aborts(stack_before_shared_stack, &bench));
    EXPECT_TRUE(aborts(domain_under_stack, &bench));
    EXPECT_TRUE(aborts(facade_under_domain, &bench));
    EXPECT_TRUE(aborts(observer_before_its_locks, &bench));
    EXPECT_TRUE(aborts(out_of_order_after_many, &bench));
    EXPECT_TRUE(aborts(stack_under_a_shared_stack_after_many, &bench));
    bench_close(&bench);
#else
    TEST_SKIP("this build does not check locks");
#endif
}

/* ThreadSanitizer notes 64 locks of a thread, and ends it at the next. */
TEST(allocation_locks, thousands_are_held_and_no_more) {
#if defined STRATA_CHECK_LOCKS && !defined __SANITIZE_THREAD__
    bench_t bench;
    open_plain(&bench);
    EXPECT_TRUE(aborts(too_many, &bench));
    EXPECT_FALSE(aborts(as_many_as_may_be, &bench));
    bench_close(&bench);
#else
    TEST_SKIP("this build does not check locks, or its sanitizer holds no thousands");
#endif
}

TEST(allocation_locks, state_of_device_scope_is_one_for_all_stacks) {
    OPENED(bench_t, bench, bench_close, open_plain(&bench));
    strata_stack_t *other = NULL;
    strata_handle_t stream;
    ASSERT_OK(strata_device_stream_create(bench.device, STRATA_STREAM_NON_BLOCKING, 0, &stream));
    ASSERT_OK(strata_stack_create(&bench.domain->ordinary, &(strata_stack_for_t){.stream = stream}, &other));
    for (uint32_t n = 1; n <= 4; n++) {
        EXPECT_EQ(other->layers[n] == bench.stack->layers[n], n == 4);
        EXPECT_EQ(other->layers[n]->stack->is_shared, n == 4);
    }
    /* A block goes home to the instance that it came from. */
    strata_record_t *a = bench_allocate(&bench, 1000);
    EXPECT_EQ(a->home, bench.stack->number);
    EXPECT_EQ(bench.stack->figures.chunks, 1);
    EXPECT_EQ(other->figures.chunks, 0);
    bench_free(&bench, a);
}
