/* Locks that many threads want at once: one has it at a time, nobody sleeps for ever, and the kernel is asked seldom. And who hears of
 * them. */
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

/* ---- who hears of them ---- */

typedef struct heard {
    strata_lock_observer_t observer; /* first */
    int acquired, releasing; /* guarded by its locks, as are the others; a test has one lock that several threads use */
    bool open; /* it was acquired, and not released yet, */
    pthread_t by; /* by this thread */
    bool wrong;
} heard_t;

static void on_acquired(strata_lock_observer_t *self, strata_lock_t *lock) {
    heard_t *heard = (heard_t *)(void *)self;
    heard->acquired++;
    heard->wrong |= heard->open || !(atomic_load(&lock->state) & STRATA_LOCK_HELD);
    heard->open = true;
    heard->by = pthread_self();
}

/* What was held when it became active is released only. */
static void on_releasing(strata_lock_observer_t *self, strata_lock_t *lock) {
    heard_t *heard = (heard_t *)(void *)self;
    heard->releasing++;
    heard->wrong |= (heard->open && !pthread_equal(heard->by, pthread_self())) || !(atomic_load(&lock->state) & STRATA_LOCK_HELD);
    heard->open = false;
}

static heard_t nothing_heard(void) { return (heard_t){.observer = {.acquired = on_acquired, .releasing = on_releasing}}; }

static void expect_heard(const heard_t *heard, int acquired, int releasing) {
    EXPECT_EQ(heard->acquired, acquired);
    EXPECT_EQ(heard->releasing, releasing);
    EXPECT_FALSE(heard->wrong);
}

static void take_once(strata_lock_t *lock) {
    strata_lock(lock);
    strata_unlock(lock);
}

static void *activate(void *observer) {
    strata_lock_observer_activate(observer);
    return NULL;
}

static void elsewhere(void *(*body)(void *), void *context) {
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, NULL, body, context), 0);
    pthread_join(thread, NULL);
}

TEST(locks, what_is_held_when_an_observer_becomes_active_is_heard_of_at_its_release) {
    heard_t heard = nothing_heard();
    strata_lock_t locks[3];
    for (int i = 0; i < 3; i++) strata_lock_init(&locks[i], STRATA_RANK_STACK, &heard.observer);
    strata_lock(&locks[1]);
    elsewhere(activate, &heard.observer);
    expect_heard(&heard, 0, 0);
    strata_unlock(&locks[1]);
    expect_heard(&heard, 0, 1);
    for (int i = 0; i < 3; i++) take_once(&locks[i]);
    expect_heard(&heard, 3, 4);
    strata_lock_observer_activate(&heard.observer); /* for the second time */
    take_once(&locks[0]);
    expect_heard(&heard, 4, 5);
    for (int i = 0; i < 3; i++) strata_lock_destroy(&locks[i]);
    EXPECT_EQ(heard.observer.first, NULL);
}

TEST(locks, a_lock_that_comes_later_is_heard_of) {
    heard_t heard = nothing_heard();
    strata_lock_t born, joined;
    strata_lock_observer_activate(&heard.observer);
    strata_lock_init(&born, STRATA_RANK_STACK, &heard.observer);
    strata_lock_init(&joined, STRATA_RANK_STACK, NULL);
    take_once(&joined);
    expect_heard(&heard, 0, 0);
    take_once(&born);
    expect_heard(&heard, 1, 1);
    strata_lock_observe(&joined, &heard.observer);
    take_once(&joined);
    expect_heard(&heard, 2, 2);
    strata_lock_destroy(&born);
    strata_lock_destroy(&joined);
}

/* Whichever of a list goes, the others stay. */
TEST(locks, one_that_nobody_observes_any_more_is_quick_again) {
    enum { LOCKS = 3 };
    for (int gone = 0; gone < LOCKS; gone++) {
        heard_t heard = nothing_heard();
        strata_lock_t locks[LOCKS];
        for (int i = 0; i < LOCKS; i++) strata_lock_init(&locks[i], STRATA_RANK_STACK, &heard.observer);
        if (gone == 1) strata_lock_observe(&locks[gone], NULL); /* before it is active */
        strata_lock_observer_activate(&heard.observer);
        for (int i = 0; i < LOCKS; i++) EXPECT_EQ(atomic_load(&locks[i].state) == 0, i == 1 && gone == 1);
        strata_lock_observe(&locks[gone], NULL);
        EXPECT_EQ(atomic_load(&locks[gone].state), 0);
        for (int i = 0; i < LOCKS; i++) take_once(&locks[i]);
        expect_heard(&heard, LOCKS - 1, LOCKS - 1);
        EXPECT_EQ(atomic_load(&locks[gone].state), 0);
        for (int i = 0; i < LOCKS; i++) strata_lock_destroy(&locks[i]);
        EXPECT_EQ(heard.observer.first, NULL);
    }
}

/* The holder may do either. It goes on to hold it. */
TEST(locks, what_is_observed_meanwhile_is_heard_of_at_its_release) {
    heard_t one = nothing_heard(), other = nothing_heard();
    strata_lock_t lock;
    strata_lock_observer_activate(&one.observer);
    strata_lock_observer_activate(&other.observer);
    strata_lock_init(&lock, STRATA_RANK_STACK, &one.observer);
    strata_lock(&lock);
    strata_lock_observe(&lock, &other.observer);
    EXPECT_FALSE(strata_lock_try_acquire(&lock));
    strata_unlock(&lock);
    expect_heard(&one, 1, 0);
    expect_heard(&other, 0, 1);
    strata_lock(&lock);
    strata_lock_observe(&lock, NULL);
    EXPECT_EQ(atomic_load(&lock.state), STRATA_LOCK_HELD);
    strata_unlock(&lock);
    expect_heard(&other, 1, 1);
    EXPECT_EQ(atomic_load(&lock.state), 0);
    strata_lock_destroy(&lock);
}

/* The lock alone. */
TEST(locks, nobody_hears_of_what_is_taken_without_the_order) {
    heard_t heard = nothing_heard();
    strata_lock_t lock;
    strata_lock_observer_activate(&heard.observer);
    strata_lock_init(&lock, STRATA_RANK_STACK, &heard.observer);
    uint32_t free_of_others = atomic_load(&lock.state);
    ASSERT_TRUE(strata_lock_try_acquire(&lock));
    EXPECT_FALSE(strata_lock_try_acquire(&lock));
    strata_lock_release(&lock);
    EXPECT_FALSE(strata_lock_acquire(&lock));
    strata_lock_release(&lock);
    EXPECT_EQ(atomic_load(&lock.state), free_of_others);
    expect_heard(&heard, 0, 0);
    strata_lock_destroy(&lock);
}

typedef struct held {
    strata_lock_t lock;
    _Atomic bool has_it;
} held_t;

static void *hold_for_a_while(void *context) {
    held_t *held = context;
    strata_lock(&held->lock);
    atomic_store(&held->has_it, true);
    (void)nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    strata_unlock(&held->lock);
    return NULL;
}

/* Whether an observer hears of it or not: a thread that is alone meets nobody. */
TEST(locks, who_finds_another_thread_has_met_it) {
    for (int observed = 0; observed < 2; observed++) {
        heard_t heard = nothing_heard();
        held_t held = {.has_it = false};
        bool met = false;
        strata_lock_observer_activate(&heard.observer);
        strata_lock_init(&held.lock, STRATA_RANK_STACK, observed ? &heard.observer : NULL);
        for (int i = 0; i < 3; i++) {
            EXPECT_FALSE(strata_lock_contended(&held.lock));
            strata_unlock(&held.lock);
        }
        for (int i = 0; i < 100 && !met; i++) {
            pthread_t thread;
            atomic_store(&held.has_it, false);
            ASSERT_EQ(pthread_create(&thread, NULL, hold_for_a_while, &held), 0);
            while (!atomic_load(&held.has_it)) (void)sched_yield();
            met = strata_lock_contended(&held.lock);
            strata_unlock(&held.lock);
            pthread_join(thread, NULL);
        }
        EXPECT_TRUE(met);
        EXPECT_EQ(heard.acquired > 0, observed);
        EXPECT_EQ(heard.acquired, heard.releasing);
        strata_lock_destroy(&held.lock);
    }
}

typedef struct listened {
    wanted_t wanted; /* first */
    heard_t heard[2]; /* the second becomes active in the middle */
} listened_t;

enum { LISTENERS = 4, HEARD_TURNS = 20000 };

/* The holder changes who hears of it now and then; whom it leaves then hears of no release. */
static void change_who_hears(listened_t *all, int turn) {
    if (turn % 5 == 0) {
        for (int i = 0; i < 2; i++) all->heard[i].open = false;
        strata_lock_observe(&all->wanted.lock, turn % 15 == 0 ? NULL : &all->heard[turn % 3 - 1].observer);
    }
}

static void *take_turns_and_listen(void *context) {
    listened_t *all = context;
    pthread_barrier_wait(&all->wanted.start);
    for (int i = 0; i < HEARD_TURNS; i++) {
        strata_lock(&all->wanted.lock);
        all->wanted.clash |= ++all->wanted.inside != 1;
        change_who_hears(all, i);
        all->wanted.turns++;
        if (i % 100 == 0) (void)sched_yield();
        all->wanted.inside--;
        strata_unlock(&all->wanted.lock);
        if (i == HEARD_TURNS / 3) strata_lock_observer_activate(&all->heard[1].observer);
    }
    return NULL;
}

TEST(locks, threads_that_meet_are_heard_of_one_at_a_time) {
    listened_t all = {.heard = {nothing_heard(), nothing_heard()}};
    pthread_t threads[LISTENERS];
    begin(&all.wanted, LISTENERS);
    strata_lock_observer_activate(&all.heard[0].observer);
    for (int i = 0; i < LISTENERS; i++) ASSERT_EQ(pthread_create(&threads[i], NULL, take_turns_and_listen, &all), 0);
    for (int i = 0; i < LISTENERS; i++) pthread_join(threads[i], NULL);
    EXPECT_EQ(all.wanted.turns, LISTENERS * HEARD_TURNS);
    strata_lock_observe(&all.wanted.lock, NULL);
    for (int i = 0; i < 2; i++) {
        EXPECT_FALSE(all.heard[i].wrong || all.heard[i].open);
        EXPECT_GT(all.heard[i].acquired, 0);
        EXPECT_EQ(all.heard[i].observer.first, NULL);
    }
    end(&all.wanted);
}
