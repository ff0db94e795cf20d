/* Out of memory: the reclaim ladder, waiting, and the callbacks that it asks. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "platform/arithmetic.h"
#include "tests/facade/support/fixture.h"

#define CAPACITY (64 * MIB)
#define SECOND   (1000ull * 1000 * 1000)

TEST_RIG(facade_ladder, what_one_stream_caches_serves_another, CAPACITY, "stack: [retry, stream_safe, auto_growth_vmm, vmm]",
         "paddle") {
    strata_stream_t one = rig_stream(rig), two = rig_stream(rig);
    size_t size = 3 * CAPACITY / 4;
    strata_block_t a = rig_allocate(rig, one, size);
    EXPECT_OK(strata_free(rig->s, a.ref));
    EXPECT_EQ(rig_figures(rig).reserved_bytes, size);
    a = rig_allocate(rig, two, size);
    EXPECT_EQ(rig_figures(rig).recoveries, 1);
    EXPECT_EQ(rig_figures(rig).out_of_memory, 0);
}

TEST_RIG(facade_ladder, a_lone_thread_fails_at_once, CAPACITY, "strata", "paddle", "system") {
    enum { TRIES = 5 };
    uint64_t least = UINT64_MAX;
    (void)rig_allocate(rig, NULL, 40 * MIB);
    for (int i = 0; i < TRIES; i++) {
        uint64_t real = strata_real_now(), now = strata_sim_now(rig->world);
        EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(rig, NULL, 40 * MIB));
        least = strata_min(least, strata_real_now() - real); /* a busy machine may hold up some */
        EXPECT_LT(strata_sim_now(rig->world) - now, SECOND / 100);
    }
    EXPECT_LT(least, SECOND / 11); /* not after the timeout, the shortest of which is a tenth */
    EXPECT_EQ(rig_figures(rig).out_of_memory, TRIES);
}

TEST_RIG(facade_ladder, the_text_says_who_holds_what, CAPACITY, "strata") {
    strata_stream_t stream = rig_stream(rig);
    (void)rig_allocate(rig, NULL, 30 * MIB);
    (void)rig_allocate(rig, stream, 20 * MIB);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(rig, stream, 40 * MIB));
    const char *text = strata_last_error()->text;
    EXPECT_CONTAINS(text, "gpu:0");
    EXPECT_CONTAINS(text, "requested 40MiB");
    EXPECT_CONTAINS(text, "free on the device 14MiB");
    EXPECT_CONTAINS(text, "reserved here 50MiB");
    EXPECT_CONTAINS(text, "reserved 30MiB, allocated 30MiB");
    EXPECT_CONTAINS(text, "reserved 20MiB, allocated 20MiB");
    EXPECT_EQ(strata_last_error()->device_code, 2);
}

TEST(facade_ladder, it_grows_by_less_when_a_whole_chunk_cannot_be_had) {
    for (int smaller = 0; smaller < 2; smaller++) {
        const char *const set[] = {smaller ? "auto_growth.smaller_growth=true" : "auto_growth.smaller_growth=false"};
        RIG_BY(rig, rig_open(&rig, "strata-malloc", set, 1, CAPACITY, 1));
        (void)rig_allocate(&rig, NULL, 60 * MIB);
        strata_block_t b;
        strata_status_t status = strata_allocate(rig.s, rig.gpu, NULL, 2 * MIB, &b);
        EXPECT_EQ(status, smaller ? STRATA_OK : STRATA_E_NO_MEMORY);
        if (smaller) EXPECT_EQ(rig_figures(&rig).reserved_bytes, 62 * MIB);
        if (smaller) EXPECT_OK(strata_free(rig.s, b.ref));
    }
}

TEST_RIG(facade_ladder, flags_forbid_growth_and_the_ladder, CAPACITY, "strata") {
    strata_stream_t one = rig_stream(rig), two = rig_stream(rig);
    strata_block_t a = rig_allocate(rig, one, 48 * MIB), b;
    EXPECT_OK(strata_free(rig->s, a.ref));
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 48 * MIB, .flags = STRATA_NO_RETRY};
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate_with(rig->s, rig->gpu, two, &options, &b));
    EXPECT_EQ(rig_figures(rig).recoveries, 0);
    uint64_t mallocs = rig_calls(rig, STRATA_CALL_malloc);
    options.flags = STRATA_NO_GROW;
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate_with(rig->s, rig->gpu, two, &options, &b));
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_malloc), mallocs);
    EXPECT_EQ(rig_figures(rig).recoveries, 0);
    (void)rig_allocate_with(rig, one, &options);
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_malloc), mallocs);
}

/* Without wait_first every stack is polled and released before the one try: no call of the device is wasted in between. */
TEST_BY(facade_ladder, all_stacks_are_polled_and_released_before_the_next_try,
        rig_open(rig, "paddle", (const char *const[]){"stream_safe.event=free"}, 1, CAPACITY, 1)) {
    strata_stream_t one = rig_stream(rig), two = rig_stream(rig), three = rig_stream(rig);
    strata_block_t pending = rig_allocate(rig, one, 30 * MIB), idle = rig_allocate(rig, two, 30 * MIB);
    EXPECT_OK(strata_record_stream(rig->s, pending.ref, three));
    RIG_FREE(rig, pending, idle);
    rig_advance(rig, SECOND / 1000);
    uint64_t mallocs = rig_calls(rig, STRATA_CALL_malloc);
    (void)rig_allocate(rig, three, 60 * MIB);
    /* Asked, asked again after the own idle chunks, and once more after the ladder's first rung. */
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_malloc) - mallocs, 3);
}

/* ---- waiting for the device ---- */

TEST(facade_ladder, it_waits_for_a_pending_free_instead_of_failing) {
    static const char *const presets[] = {"strata", "paddle"};
    for (int i = 0; i < 2; i++) {
        const char *const set[] = {"stream_safe.event=free"};
        RIG_BY(rig, rig_open(&rig, presets[i], set, 1, CAPACITY, 1));
        strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
        strata_block_t a = rig_free_deferred(&rig, owner, borrower, 40 * MIB, SECOND / 50);
        uint64_t done = strata_sim_stream_end(rig.devices[0], borrower);
        strata_block_t b = rig_allocate(&rig, i ? borrower : owner, 40 * MIB);
        EXPECT_GE(strata_sim_now(rig.world), done);
        EXPECT_EQ(rig_figures(&rig).out_of_memory, 0);
        if (i == 0) EXPECT_EQ(b.ptr, a.ptr);
    }
}

TEST(facade_ladder, wait_first_keeps_the_caches_of_others) {
    for (int first = 0; first < 2; first++) {
        const char *const set[] = {first ? "retry.wait_first=true" : "retry.wait_first=false"};
        RIG_BY(rig, rig_open(&rig, "strata-malloc", set, 1, CAPACITY, 1));
        strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig), idle = rig_stream(&rig);
        strata_block_t kept = rig_allocate(&rig, idle, 20 * MIB);
        EXPECT_OK(strata_free(rig.s, kept.ref));
        (void)rig_free_deferred(&rig, owner, borrower, 40 * MIB, SECOND / 500);
        (void)rig_allocate(&rig, owner, 40 * MIB);
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_free), first ? 0 : 1);
    }
}

TEST_BY(facade_ladder, it_waits_no_longer_than_the_timeout,
        rig_open(rig, "strata", (const char *const[]){"retry.timeout=5ms"}, 1, CAPACITY, 1)) {
    strata_stream_t owner = rig_stream(rig), borrower = rig_stream(rig);
    (void)rig_free_deferred(rig, owner, borrower, 40 * MIB, SECOND);
    uint64_t now = strata_sim_now(rig->world);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(rig, owner, 40 * MIB));
    EXPECT_GE(strata_sim_now(rig->world) - now, SECOND / 1000 * 5);
    EXPECT_LT(strata_sim_now(rig->world) - now, SECOND / 1000 * 8);
    EXPECT_CONTAINS(strata_last_error()->text, "deferred 40MiB");
    rig_advance(rig, SECOND);
}

/* A device that answers no query, though its events have passed by the clock: the deadline still ends the wait. */
TEST_BY(facade_ladder, an_event_that_cannot_be_asked_does_not_hang,
        rig_open(rig, "paddle", (const char *const[]){"stream_safe.event=free"}, 1, CAPACITY, 1)) {
    strata_stream_t owner = rig_stream(rig), borrower = rig_stream(rig);
    (void)rig_free_deferred(rig, owner, borrower, 40 * MIB, 1000);
    ASSERT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_event_query, 1, true, STRATA_E_DEVICE));
    strata_block_t b;
    uint64_t real = strata_real_now();
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig->s, rig->gpu, owner, 40 * MIB, &b));
    EXPECT_LT(strata_real_now() - real, 4 * SECOND);
    strata_sim_clear_faults(rig->devices[0]);
    b = rig_allocate(rig, owner, 40 * MIB);
}

/* ---- callbacks ---- */

typedef struct listener {
    rig_t *rig;
    strata_block_t hoard;
    uint32_t asked, heard;
    size_t size;
    char text[512];
} listener_t;

/* Frees what it holds, and calls whatever it likes meanwhile. */
static uint64_t give_up_hoard(strata_place_t place, size_t size, void *context) {
    listener_t *l = context;
    l->asked++;
    EXPECT_EQ(place, l->rig->gpu);
    l->size = size;
    strata_block_t small = rig_allocate(l->rig, NULL, 4096);
    EXPECT_OK(strata_release(l->rig->s, place, NULL));
    EXPECT_OK(strata_validate(l->rig->s));
    EXPECT_OK(strata_free(l->rig->s, small.ref));
    if (!l->hoard.ref) return 0;
    EXPECT_OK(strata_free(l->rig->s, l->hoard.ref));
    l->hoard.ref = 0;
    return l->hoard.size;
}

static void hear(const strata_out_of_memory_t *event, void *context) {
    listener_t *l = context;
    l->heard++;
    l->size = event->size;
    EXPECT_EQ(event->device_total - event->device_free > 0, 1);
    snprintf(l->text, sizeof l->text, "%s", event->text);
    strata_block_t small;
    if (strata_allocate(l->rig->s, event->place, event->stream, 64, &small) == STRATA_OK)
        EXPECT_OK(strata_free(l->rig->s, small.ref));
    EXPECT_OK(strata_validate(l->rig->s));
}

TEST_RIG(facade_ladder, callbacks_free_memory_and_call_whatever_they_like, CAPACITY, "strata", "paddle", "system") {
    uint32_t callback, observer;
    listener_t l = {.rig = rig};
    l.hoard = rig_allocate(rig, NULL, 30 * MIB);
    EXPECT_OK(strata_add_free_memory_callback(rig->s, give_up_hoard, &l, &callback));
    EXPECT_OK(strata_add_out_of_memory_observer(rig->s, hear, &l, &observer));
    (void)rig_allocate(rig, NULL, 50 * MIB);
    EXPECT_EQ(l.asked, 1);
    EXPECT_EQ(l.size, 50 * MIB);
    EXPECT_EQ(l.heard, 0);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(rig, NULL, 40 * MIB));
    EXPECT_EQ(l.asked, 2);
    EXPECT_EQ(l.heard, 1);
    EXPECT_CONTAINS(l.text, "requested 40MiB");
    EXPECT_OK(strata_remove_callback(rig->s, callback));
    EXPECT_OK(strata_remove_callback(rig->s, observer));
    EXPECT_STATUS(STRATA_E_INVALID, strata_remove_callback(rig->s, observer));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(rig, NULL, 40 * MIB));
    EXPECT_EQ(l.asked, 2);
    EXPECT_EQ(l.heard, 1);
}

static uint64_t give_nothing(strata_place_t place, size_t size, void *context) {
    (void)place;
    (void)size;
    ++*(uint32_t *)context;
    return 0;
}

TEST_BY(facade_ladder, callbacks_are_asked_once_however_long_a_request_waits,
        rig_open(rig, "paddle", (const char *const[]){"stream_safe.event=free", "retry.timeout=2s"}, 2, CAPACITY, 1)) {
    uint32_t asked = 0;
    strata_stream_t owner = rig_stream(rig), borrower = rig_stream(rig);
    EXPECT_OK(strata_add_free_memory_callback(rig->s, give_nothing, &asked, NULL));
    for (size_t i = 0; i < 3; i++) (void)rig_free_deferred(rig, owner, borrower, (12 + i) * MIB, SECOND / 1000);
    (void)rig_allocate(rig, borrower, 60 * MIB);
    EXPECT_EQ(asked, 1);
}

/* ---- threads that have never called ---- */

typedef struct stranger {
    rig_t *rig;
    strata_ref_t ref; /* 0: frees nothing */
    uint64_t freed_at; /* real time */
    _Atomic bool ends;
} stranger_t;

static void *be_strange(void *context) {
    stranger_t *stranger = context;
    usleep(5000);
    if (stranger->ref) EXPECT_OK(strata_free(stranger->rig->s, stranger->ref));
    stranger->freed_at = strata_real_now();
    while (!stranger->ends) usleep(1000);
    return NULL;
}

/* On a busy machine the thread may free after the 50 ms that the request waits for it. Such turns do not count. */
TEST_RIG(facade_ladder, the_first_call_of_a_thread_may_be_the_free_that_is_waited_for, CAPACITY, "strata", "paddle") {
    enum { SERVED = 3, TURNS = 300 };
    int served = 0;
    for (int turn = 0; turn < TURNS && served < SERVED; turn++) {
        stranger_t stranger = {.rig = rig, .ref = rig_allocate(rig, NULL, 40 * MIB).ref};
        pthread_t thread;
        uint64_t began = strata_real_now();
        ASSERT_EQ(pthread_create(&thread, NULL, be_strange, &stranger), 0);
        strata_block_t next = {0};
        strata_status_t status = strata_allocate(rig->s, rig->gpu, NULL, 40 * MIB, &next);
        stranger.ends = true;
        EXPECT_EQ(pthread_join(thread, NULL), 0);
        if (status == STRATA_OK) EXPECT_OK(strata_free(rig->s, next.ref));
        else EXPECT_GT(stranger.freed_at - began, SECOND / 20);
        served += status == STRATA_OK;
    }
    EXPECT_EQ(served, SERVED);
}

/* The timeout is an hour, and the other thread never calls the library. */
TEST_BY(facade_ladder, a_wait_for_a_thread_that_never_called_is_bounded,
        rig_open(rig, "strata", (const char *const[]){"retry.timeout=3600s"}, 1, CAPACITY, 1)) {
    stranger_t stranger = {.rig = rig};
    pthread_t thread;
    (void)rig_allocate(rig, NULL, 40 * MIB);
    ASSERT_EQ(pthread_create(&thread, NULL, be_strange, &stranger), 0);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(rig, NULL, 40 * MIB));
    stranger.ends = true;
    EXPECT_EQ(pthread_join(thread, NULL), 0);
}
