/* Locks that many threads want at once: one has it at a time, nobody sleeps for ever, and the kernel is asked seldom. */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "platform/lock.h"
#include "tests/harness/test.h"

enum { THREADS = 8, TURNS = 100000, RESTS = 300 };

typedef struct wanted {
    strata_lock_t lock;
    pthread_barrier_t start;
    uint64_t turns; /* guarded by the lock */
    int inside; /* guarded by it, and never above 1 */
    bool clash;
    _Atomic bool over;
} wanted_t;

static void begin(wanted_t *wanted, unsigned threads) {
    strata_lock_init(&wanted->lock, STRATA_RANK_STACK, NULL);
    pthread_barrier_init(&wanted->start, NULL, threads);
}

static void end(wanted_t *wanted) {
    EXPECT_FALSE(wanted->clash);
    EXPECT_EQ(atomic_load(&wanted->lock.state), 0);
    pthread_barrier_destroy(&wanted->start);
    strata_lock_destroy(&wanted->lock);
}

static void take_a_turn(wanted_t *wanted) {
    strata_lock(&wanted->lock);
    wanted->clash |= ++wanted->inside != 1;
    wanted->turns++;
    wanted->inside--;
    strata_unlock(&wanted->lock);
}

static void *take_turns(void *context) {
    wanted_t *wanted = context;
    pthread_barrier_wait(&wanted->start);
    for (int i = 0; i < TURNS; i++) take_a_turn(wanted);
    return NULL;
}

static void run_all(wanted_t *wanted, void *(*body)(void *)) {
    pthread_t threads[THREADS];
    begin(wanted, THREADS);
    for (int i = 0; i < THREADS; i++) ASSERT_EQ(pthread_create(&threads[i], NULL, body, wanted), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

TEST(locks, one_thread_has_it_at_a_time) {
    wanted_t wanted = {0};
    run_all(&wanted, take_turns);
    EXPECT_EQ(wanted.turns, THREADS * TURNS);
    end(&wanted);
}

TEST(locks, many_threads_ask_the_kernel_seldom) {
    wanted_t wanted = {0};
    run_all(&wanted, take_turns);
    EXPECT_LE(atomic_load(&wanted.lock.wakes), THREADS * TURNS / 4);
    end(&wanted);
}

/* The holder rests, so that the others really sleep, in every combination of arriving and waking. */
static void *rest_with_it(void *context) {
    wanted_t *wanted = context;
    pthread_barrier_wait(&wanted->start);
    for (int i = 0; i < RESTS; i++) {
        strata_lock(&wanted->lock);
        wanted->clash |= ++wanted->inside != 1;
        if (i % 3 == 0) (void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        if (i % 3 == 1) (void)sched_yield();
        wanted->turns++;
        wanted->inside--;
        strata_unlock(&wanted->lock);
        if (i % 7 == 0) (void)nanosleep(&(struct timespec){.tv_nsec = 150000}, NULL);
    }
    return NULL;
}

TEST(locks, who_sleeps_is_woken) {
    wanted_t wanted = {0};
    run_all(&wanted, rest_with_it);
    EXPECT_EQ(wanted.turns, THREADS * RESTS);
    end(&wanted);
}

#ifdef STRATA_CHECK_LOCKS
/* The same with schedules disturbed at every lock, and before every sleep. */
TEST(locks, who_sleeps_is_woken_on_rare_schedules) {
    for (uint64_t seed = 1; seed <= 5; seed++) {
        wanted_t wanted = {0};
        strata_lock_perturb(seed);
        run_all(&wanted, rest_with_it);
        strata_lock_perturb(0);
        EXPECT_EQ(wanted.turns, THREADS * RESTS);
        end(&wanted);
    }
}
#endif

static void *pass_to_and_fro(void *context) {
    wanted_t *wanted = context;
    pthread_barrier_wait(&wanted->start);
    while (!atomic_load(&wanted->over)) take_a_turn(wanted);
    return NULL;
}

/* All others go on until the last has had its turns: whoever sleeps would sleep for ever if they only passed it among themselves. */
static void *end_it_all(void *context) {
    wanted_t *wanted = context;
    pthread_barrier_wait(&wanted->start);
    for (int i = 0; i < RESTS; i++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
        take_a_turn(wanted);
    }
    atomic_store(&wanted->over, true);
    return NULL;
}

TEST(locks, nobody_is_passed_by_for_ever) {
    wanted_t wanted = {0};
    pthread_t threads[THREADS];
    begin(&wanted, THREADS);
    for (int i = 0; i < THREADS; i++) ASSERT_EQ(pthread_create(&threads[i], NULL, i ? pass_to_and_fro : end_it_all, &wanted), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    EXPECT_GE(wanted.turns, RESTS);
    end(&wanted);
}
