/* Threads that wait for one another's memory. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/facade/support/sleepers.h"

#define MILLISECOND (1000ull * 1000)
enum { THREADS = 8, STREAMS = 8, ROUNDS = 3 };

static void sleep_real(uint64_t ns) { usleep((useconds_t)(ns / 1000)); }

typedef struct actor {
    rig_t *rig;
    pthread_t thread;
    strata_stream_t stream;
    strata_block_t block; /* that it frees, or got */
    strata_block_t small; /* that it frees before */
    uint64_t delay; /* real ns before it acts */
    _Atomic bool known; /* to the library: a thread that could still free */
    size_t size;
    strata_status_t status;
    uint64_t took; /* real ns */
} actor_t;

static void start(actor_t *actor, void *(*body)(void *)) { ASSERT_EQ(pthread_create(&actor->thread, NULL, body, actor), 0); }

static void *free_later(void *argument) {
    actor_t *a = argument;
    strata_block_t none;
    EXPECT_OK(strata_allocate(a->rig->s, a->rig->gpu, a->stream, 0, &none));
    RIG_FREE(a->rig, none, a->small);
    atomic_store(&a->known, true);
    wait_for_sleeper(a->rig);
    EXPECT_OK(strata_free(a->rig->s, a->block.ref));
    return NULL;
}

/* The same by address alone, from its first call on. */
static void *free_later_by_pointer(void *argument) {
    actor_t *a = argument;
    EXPECT_OK(strata_free_pointer(a->rig->s, a->small.ptr));
    atomic_store(&a->known, true);
    wait_for_sleeper(a->rig);
    EXPECT_OK(strata_free_pointer(a->rig->s, a->block.ptr));
    return NULL;
}

static void *allocate_now(void *argument) {
    actor_t *a = argument;
    uint64_t began = strata_real_now();
    a->status = strata_allocate(a->rig->s, a->rig->gpu, a->stream, a->size, &a->block);
    a->took = strata_real_now() - began;
    if (a->status == STRATA_OK) rig_register(a->rig, a->block.ref);
    if (a->status == STRATA_OK) rig_register(a->rig, a->block.ref);
    return NULL;
}

/* TensorFlow's waits as long as the peer does. */
static void open_patient(rig_t *rig, const char *preset) {
    static const char *const set[] = {"retry.timeout=5s"};
    bool as_it_is = strchr(preset, '\n') || strcmp(preset, "tensorflow") == 0;
    rig_open(rig, preset, set, as_it_is ? 0 : 1, 64 * MIB, 1);
}

/* A holder frees in the same stack or another one, while a second thread waits. */
static void a_holder_frees_by(void *(*body)(void *), const char *preset, bool elsewhere) {
    RIG_BY(rig, open_patient(&rig, preset));
    strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
    actor_t holder = {.rig = &rig, .stream = one};
    holder.small = rig_allocate(&rig, one, 1000);
    holder.block = rig_allocate(&rig, one, 40 * MIB);
    start(&holder, body);
    actor_t waiter = {.rig = &rig, .stream = elsewhere ? two : one, .size = 40 * MIB};
    /* A lone thread would give up at once. */
    while (!atomic_load(&holder.known) && !strata_test_has_failed()) sleep_real(MILLISECOND);
    (void)allocate_now(&waiter);
    EXPECT_EQ(waiter.status, STRATA_OK);
    EXPECT_LT(waiter.took, 2000 * MILLISECOND);
    pthread_join(holder.thread, NULL);
    EXPECT_EQ(rig_domain(&rig)->waiters, 0);
    EXPECT_EQ(rig_domain(&rig)->sleeping, 0);
    EXPECT_EQ(rig_stack(&rig, one)->attention_free, 0);
}

static void a_holder_frees(const char *preset, bool elsewhere) { a_holder_frees_by(free_later, preset, elsewhere); }

TEST(facade_waiting, a_free_of_another_thread_ends_the_wait) {
    a_holder_frees("strata", false);
    a_holder_frees("paddle", false);
}

TEST(facade_waiting, tensorflow_retries_when_another_thread_frees_as_the_peer_does) {
    a_holder_frees("tensorflow", false);
    a_holder_frees("tensorflow", true);
}

/* The peer's wait for nobody is left out: nothing is tried twice, and no ladder is told. */
TEST(facade_waiting, tensorflow_does_not_wait_where_no_other_thread_is) {
    rig_t rig;
    rig_open(&rig, "tensorflow", NULL, 0, 64 * MIB, 1);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(&rig, NULL, 128 * MIB));
    uint64_t asked = atomic_load(&rig.devices[0]->calls[STRATA_CALL_malloc]);
    rig_close(&rig);
    rig_open(&rig, "tensorflow", (const char *const[]){"retry.timeout=0"}, 1, 64 * MIB, 1);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(&rig, NULL, 128 * MIB));
    EXPECT_EQ(atomic_load(&rig.devices[0]->calls[STRATA_CALL_malloc]), asked);
    EXPECT_EQ(rig_figures(&rig).recoveries, 0);
    rig_close(&rig);
}

TEST(facade_waiting, a_free_in_another_stack_ends_the_wait) {
    a_holder_frees("strata", true);
    a_holder_frees("paddle", true);
}

TEST(facade_waiting, a_thread_that_frees_by_pointer_alone_is_waited_for) {
    a_holder_frees_by(free_later_by_pointer, "strata", false);
    a_holder_frees_by(free_later_by_pointer, "paddle", true);
}

/* The last route's retry is the 18th layer, and a record has 14 bits for layers. */
TEST(facade_waiting, a_free_ends_the_wait_of_a_layer_that_has_no_bit_of_its_own) {
#define ROUTE(sizes) "        - {" sizes "stack: [retry: {timeout: 5s}, stream_safe, auto_growth, system]}\n"
    static const char routed[] = "stack:\n  - binning:\n      routes:\n" ROUTE("up_to: 1KiB, ") ROUTE("up_to: 2KiB, ")
        ROUTE("up_to: 3KiB, ") ROUTE("up_to: 4KiB, ") ROUTE("");
#undef ROUTE
    a_holder_frees(routed, false);
    a_holder_frees(routed, true);
}

/* What a request has claimed that sleeps in a stack below a limit is not given up soon: who asks for the rest of it hears so, and
 * may free what the sleeper waits for. */
TEST_RIG(facade_waiting, nobody_waits_for_the_claim_of_one_that_sleeps, 64 * MIB,
         "stack: [limit: {bytes: 80MiB}, fallback: {stacks: [[retry: {timeout: 10s}, system]]}]\n") {
    strata_stream_t stream = rig_stream(rig);
    strata_block_t held = rig_allocate(rig, stream, 30 * MIB);
    actor_t waiter = {.rig = rig, .stream = stream, .size = 40 * MIB};
    start(&waiter, allocate_now);
    wait_for_sleeper(rig);
    uint64_t began = strata_real_now();
    EXPECT_SAYS(STRATA_E_NO_MEMORY, rig_try(rig, stream, 20 * MIB), "limit");
    EXPECT_LT(strata_real_now() - began, 5000 * MILLISECOND);
    EXPECT_OK(strata_free(rig->s, held.ref));
    pthread_join(waiter.thread, NULL);
    EXPECT_EQ(waiter.status, STRATA_OK);
}

/* One that sleeps where the limit stands has claimed nothing there. */
TEST_RIG(facade_waiting, who_sleeps_above_a_limit_leaves_its_room_to_others, 64 * MIB,
         "stack: [limit: {bytes: 80MiB}, retry: {timeout: 10s}, system]\n") {
    strata_stream_t stream = rig_stream(rig);
    strata_block_t held = rig_allocate(rig, stream, 30 * MIB);
    actor_t waiter = {.rig = rig, .stream = stream, .size = 40 * MIB};
    start(&waiter, allocate_now);
    wait_for_sleeper(rig);
    strata_block_t small = rig_allocate(rig, stream, 20 * MIB);
    RIG_FREE(rig, small, held);
    pthread_join(waiter.thread, NULL);
    EXPECT_EQ(waiter.status, STRATA_OK);
}

TEST_BY(facade_waiting, a_free_in_a_stack_made_meanwhile_ends_the_wait, open_patient(rig, "paddle")) {
    strata_stream_t one = rig_stream(rig), late = rig_stream(rig);
    strata_block_t held = rig_allocate(rig, one, 30 * MIB);
    actor_t waiter = {.rig = rig, .stream = rig_stream(rig), .size = 50 * MIB};
    start(&waiter, allocate_now);
    wait_for_sleeper(rig);
    strata_block_t block = rig_allocate(rig, late, 20 * MIB);
    EXPECT_OK(strata_free(rig->s, held.ref));
    /* Heard, and not enough: the waiter sleeps again until this one. */
    sleep_real(20 * MILLISECOND);
    EXPECT_OK(strata_free(rig->s, block.ref));
    pthread_join(waiter.thread, NULL);
    EXPECT_EQ(waiter.status, STRATA_OK);
    EXPECT_LT(waiter.took, 3000 * MILLISECOND);
}

/* The block comes back by its pointer, on another stream, or with a borrow that passes with no call of the host. */
static void *free_borrowed(void *argument) {
    actor_t *a = argument;
    sleep_real(a->delay);
    EXPECT_OK(strata_free_on(a->rig->s, a->block.ref, a->stream));
    return NULL;
}

TEST_BY(facade_waiting, an_event_that_passes_with_no_call_of_the_host_ends_the_wait, open_patient(rig, "strata")) {
    strata_stream_t one = rig_stream(rig), two = rig_stream(rig);
    actor_t holder = {.rig = rig, .stream = two, .delay = 20 * MILLISECOND};
    holder.block = rig_allocate(rig, one, 40 * MIB);
    rig_work(rig, two, 30 * MILLISECOND, holder.block.ref);
    start(&holder, free_borrowed);
    actor_t waiter = {.rig = rig, .stream = one, .size = 40 * MIB};
    (void)allocate_now(&waiter);
    pthread_join(holder.thread, NULL);
    /* The holder's thread was unknown to the library until it freed: the waiter may have given up before. */
    if (waiter.status != STRATA_OK) (void)allocate_now(&waiter);
    EXPECT_EQ(waiter.status, STRATA_OK);
    EXPECT_LT(waiter.took, 2000 * MILLISECOND);
}

static uint64_t take_longer_than_the_timeout(strata_place_t place, size_t size, void *context) {
    (void)place;
    (void)size;
    (void)context;
    sleep_real(120 * MILLISECOND);
    return 0;
}

/* The machine was busy with something else: what a lone thread waits for on a simulated device comes all the same. */
TEST_BY(facade_waiting, real_time_ends_no_wait_of_a_thread_alone_with_a_simulated_device,
        rig_open(rig, "stack: [{retry: {timeout: 100ms}}, stream_safe, system]", NULL, 0, 64 * MIB, 1)) {
    strata_block_t lent = rig_allocate(rig, NULL, 40 * MIB), block;
    strata_stream_t borrower = rig_stream(rig);
    rig_borrow(rig, lent.ref, borrower, 50 * MILLISECOND);
    EXPECT_OK(strata_free(rig->s, lent.ref));
    EXPECT_OK(strata_add_free_memory_callback(rig->s, take_longer_than_the_timeout, NULL, NULL));
    EXPECT_OK(strata_allocate(rig->s, rig->gpu, NULL, 40 * MIB, &block));
    EXPECT_OK(strata_free(rig->s, block.ref));
}

TEST_BY(facade_waiting, a_timeout_after_the_end_of_time_has_not_passed,
        rig_open(rig, "strata", (const char *const[]){"retry.timeout=18446744073s"}, 1, 64 * MIB, 1)) {
    strata_stream_t one = rig_stream(rig), two = rig_stream(rig);
    rig_advance(rig, 1000 * MILLISECOND);
    (void)rig_free_deferred(rig, one, two, 40 * MIB, 30 * MILLISECOND);
    (void)rig_allocate(rig, one, 40 * MIB);
}

/* A free at any moment between the failed try and the sleep must be heard: each of many frees comes as the other one asks, and is
 * the only one until that one is served. */
typedef struct court {
    rig_t rig;
    _Atomic uint32_t asking, playing, served;
} court_t;

typedef struct ball {
    court_t *court;
    strata_stream_t stream;
    uint32_t rounds, failed;
} ball_t;

/* Until the other asks, and a moment longer, each time another: from none to more than a try takes under a sanitizer, and no longer
 * where other programs take the cores at each yield. Whether there is another. */
static bool hold(court_t *court, uint32_t round) {
    while (atomic_load(&court->asking) == 0 && atomic_load(&court->playing) > 1) (void)sched_yield();
    uint32_t moment = round % 16;
    uint64_t until = strata_real_now() + 2 * MILLISECOND;
    for (uint32_t i = 0; i < moment * moment && strata_real_now() < until; i++) (void)sched_yield();
    return atomic_load(&court->asking) > 0;
}

static void see_it_served(court_t *court, uint32_t served) {
    while (atomic_load(&court->served) == served && atomic_load(&court->playing) > 1) (void)sched_yield();
}

static void *allocate_and_free(void *argument) {
    ball_t *b = argument;
    rig_t *rig = &b->court->rig;
    strata_block_t block;
    for (uint32_t i = 0; i < b->rounds; i++) {
        atomic_fetch_add(&b->court->asking, 1);
        strata_status_t status = strata_allocate(rig->s, rig->gpu, b->stream, 40 * MIB, &block);
        uint32_t served = atomic_fetch_add(&b->court->served, 1) + 1;
        atomic_fetch_sub(&b->court->asking, 1);
        b->failed += status != STRATA_OK;
        if (status != STRATA_OK) continue;
        bool other = hold(b->court, i);
        EXPECT_OK(strata_free(rig->s, block.ref));
        if (other) see_it_served(b->court, served);
    }
    atomic_fetch_sub(&b->court->playing, 1);
    return NULL;
}

static void no_wake_up_is_lost(const char *preset, int streams) {
    static const char *const set[] = {"retry.timeout=30s"}; /* longer than all of it may take: one that is lost is seen */
    court_t court = {.playing = 2};
    rig_t *rig = &court.rig;
    rig_open(rig, preset, set, 1, 64 * MIB, 1);
    ball_t balls[2];
    pthread_t threads[2];
    strata_stream_t stream[2] = {rig_stream(rig), rig_stream(rig)};
    /* Nobody is served before somebody sleeps. */
    strata_block_t held = rig_allocate(rig, stream[0], 40 * MIB);
    uint64_t began = strata_real_now();
    for (int i = 0; i < 2; i++) {
        balls[i] = (ball_t){.court = &court, .stream = stream[i % streams], .rounds = 800};
        ASSERT_EQ(pthread_create(&threads[i], NULL, allocate_and_free, &balls[i]), 0);
    }
    wait_for_sleeper(rig);
    EXPECT_OK(strata_free(rig->s, held.ref));
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        EXPECT_EQ(balls[i].failed, 0);
    }
    EXPECT_LT(strata_real_now() - began, 20000 * MILLISECOND);
    EXPECT_EQ(rig_domain(rig)->waiters, 0);
    printf("%s: %u ladders\n", preset, (unsigned)rig_figures(rig).recoveries);
    EXPECT_GT(rig_figures(rig).recoveries, 100);
    rig_close(rig);
}

TEST(facade_waiting, no_wake_up_is_lost_in_one_stack) { no_wake_up_is_lost("strata", 1); }
TEST(facade_waiting, no_wake_up_is_lost_between_stacks) { no_wake_up_is_lost("strata", 2); }
TEST(facade_waiting, no_wake_up_is_lost_under_paddle) { no_wake_up_is_lost("paddle", 2); }

/* ---- all at once ---- */

typedef struct crowd {
    rig_t *rig;
    pthread_barrier_t barrier;
    strata_stream_t streams[STREAMS];
    _Atomic uint32_t served, refused;
} crowd_t;

static void *crowd_member(void *argument) {
    crowd_t *c = argument;
    strata_block_t held[STREAMS];
    uint32_t count = 0;
    pthread_barrier_wait(&c->barrier);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < STREAMS; i++) {
            strata_block_t block;
            strata_status_t status = strata_allocate(c->rig->s, c->rig->gpu, c->streams[i], 3 * MIB, &block);
            EXPECT_TRUE(status == STRATA_OK || status == STRATA_E_NO_MEMORY);
            if (status == STRATA_OK) {
                atomic_fetch_add(&c->served, 1);
                EXPECT_OK(strata_record_stream(c->rig->s, block.ref, c->streams[(i + 1) % STREAMS]));
                held[count++] = block;
            } else {
                atomic_fetch_add(&c->refused, 1);
            }
        }
        /* In the first round nobody frees before all have asked for more than there is, whatever the schedule. */
        if (round == 0) pthread_barrier_wait(&c->barrier);
        while (count > 0) EXPECT_OK(strata_free(c->rig->s, held[--count].ref));
    }
    return NULL;
}

static uint64_t count_asked(strata_place_t place, size_t size, void *context) {
    (void)place;
    (void)size;
    atomic_fetch_add((_Atomic uint32_t *)context, 1);
    return 0;
}

static void all_out_of_memory_at_once(const char *preset) {
    static const char *const set[] = {"retry.timeout=30ms"};
    _Atomic uint32_t asked = 0;
    RIG_BY(rig, rig_open(&rig, preset, set, 1, 48 * MIB, 1));
    crowd_t crowd = {.rig = &rig};
    EXPECT_OK(strata_add_free_memory_callback(rig.s, count_asked, &asked, NULL));
    pthread_barrier_init(&crowd.barrier, NULL, THREADS);
    for (int i = 0; i < STREAMS; i++) crowd.streams[i] = rig_stream(&rig);
    in_threads(crowd_member, &crowd, 0, THREADS);
    pthread_barrier_destroy(&crowd.barrier);
    printf("%s: %u served, %u refused\n", preset, (unsigned)crowd.served, (unsigned)crowd.refused);
    EXPECT_GE(crowd.refused, THREADS * STREAMS - 48 / 3);
    EXPECT_GT(crowd.served, 0);
    EXPECT_GT(asked, 0);
    EXPECT_GE(rig_figures(&rig).recoveries, crowd.refused);
    EXPECT_EQ(rig_figures(&rig).live_allocations, 0);
    EXPECT_OK(strata_stream_synchronize(rig.s, rig.gpu, NULL));
}

TEST(facade_waiting, eight_threads_on_eight_streams_out_of_memory_at_once_strata) { all_out_of_memory_at_once("strata"); }
TEST(facade_waiting, eight_threads_on_eight_streams_out_of_memory_at_once_paddle) { all_out_of_memory_at_once("paddle"); }

/* Such a device says nothing of when its events pass: it is asked again and again. */
TEST_BY(facade_waiting, under_a_real_clock_events_are_asked_for_until_they_pass, open_patient(rig, "strata")) {
    strata_stream_t one = rig_stream(rig), two = rig_stream(rig);
    strata_block_t held = rig_allocate(rig, one, 40 * MIB);
    strata_clock_t *simulated = rig->devices[0]->clock;
    rig_work(rig, two, 500 * 1000, held.ref);
    uint64_t end = strata_sim_stream_end(rig->devices[0], two), asked = rig_calls(rig, STRATA_CALL_event_query);
    EXPECT_OK(strata_free_on(rig->s, held.ref, two));
    rig->devices[0]->clock = strata_real_clock();
    (void)rig_allocate(rig, one, 40 * MIB);
    EXPECT_GE(strata_sim_now(rig->world), end);
    EXPECT_GT(rig_calls(rig, STRATA_CALL_event_query), asked + 2);
    rig->devices[0]->clock = simulated;
}
