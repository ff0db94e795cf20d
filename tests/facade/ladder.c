/* Out of memory: the reclaim ladder, waiting, and the callbacks that it asks. */
#include <stdio.h>

#include "tests/facade/fixture.h"

enum { CAPACITY_MIB = 64 };
#define SECOND (1000ull * 1000 * 1000)

static void open_small(rig_t *rig, const char *preset) { rig_open(rig, preset, NULL, 0, CAPACITY_MIB * MIB, 1); }

TEST(facade_ladder, what_one_stream_caches_serves_another) {
    static const char *const presets[] = {"strata", "paddle"};
    for (int i = 0; i < 2; i++) {
        RIG_BY(rig, open_small(&rig, presets[i]));
        strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
        size_t size = 3 * CAPACITY_MIB / 4 * MIB;
        strata_block_t a = rig_allocate(&rig, one, size);
        EXPECT_OK(strata_free(rig.s, a.ref));
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, size);
        a = rig_allocate(&rig, two, size);
        EXPECT_EQ(rig_figures(&rig).ladders, 1);
        EXPECT_EQ(rig_figures(&rig).out_of_memory, 0);
        EXPECT_OK(strata_free(rig.s, a.ref));
    }
}

TEST(facade_ladder, a_lone_thread_fails_at_once) {
    static const char *const presets[] = {"strata", "paddle", "system"};
    for (int i = 0; i < 3; i++) {
        RIG_BY(rig, open_small(&rig, presets[i]));
        strata_block_t a = rig_allocate(&rig, NULL, 40 * MIB), b = {.ref = 9};
        uint64_t real = strata_real_now(), now = strata_sim_now(rig.world);
        EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 40 * MIB, &b));
        EXPECT_LT(strata_real_now() - real, SECOND / 11); /* not after the timeout, the shortest of which is a tenth */
        EXPECT_LT(strata_sim_now(rig.world) - now, SECOND / 100);
        EXPECT_EQ(b.ref, 9);
        EXPECT_EQ(rig_figures(&rig).out_of_memory, 1);
        EXPECT_OK(strata_free(rig.s, a.ref));
    }
}

TEST(facade_ladder, the_text_says_who_holds_what) {
    RIG_BY(rig, open_small(&rig, "strata"));
    strata_stream_t stream = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, NULL, 30 * MIB), b = rig_allocate(&rig, stream, 20 * MIB), none;
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, stream, 40 * MIB, &none));
    const char *text = strata_last_error()->text;
    EXPECT_CONTAINS(text, "gpu:0");
    EXPECT_CONTAINS(text, "asked 40MiB");
    EXPECT_CONTAINS(text, "free on the device 14MiB");
    EXPECT_CONTAINS(text, "reserved here 50MiB");
    EXPECT_CONTAINS(text, "reserved 30MiB, allocated 30MiB");
    EXPECT_CONTAINS(text, "reserved 20MiB, allocated 20MiB");
    EXPECT_EQ(strata_last_error()->device_code, 2);
    RIG_FREE(&rig, a, b);
}

TEST(facade_ladder, it_grows_by_less_when_a_whole_chunk_cannot_be_had) {
    for (int smaller = 0; smaller < 2; smaller++) {
        const char *const set[] = {smaller ? "auto_growth.smaller_growth=true" : "auto_growth.smaller_growth=false"};
        RIG_BY(rig, rig_open(&rig, "strata", set, 1, CAPACITY_MIB * MIB, 1));
        strata_block_t a = rig_allocate(&rig, NULL, 60 * MIB), b;
        strata_status_t status = strata_allocate(rig.s, rig.gpu, NULL, 2 * MIB, &b);
        EXPECT_EQ(status, smaller ? STRATA_OK : STRATA_E_NO_MEMORY);
        if (smaller) EXPECT_EQ(rig_figures(&rig).reserved_bytes, 62 * MIB);
        if (smaller) EXPECT_OK(strata_free(rig.s, b.ref));
        EXPECT_OK(strata_free(rig.s, a.ref));
    }
}

TEST(facade_ladder, flags_forbid_growth_and_the_ladder) {
    RIG_BY(rig, open_small(&rig, "strata"));
    strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, one, 48 * MIB), b;
    EXPECT_OK(strata_free(rig.s, a.ref));
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 48 * MIB, .flags = STRATA_NO_RETRY};
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate_with(rig.s, rig.gpu, two, &options, &b));
    EXPECT_EQ(rig_figures(&rig).ladders, 0);
    uint64_t mallocs = rig_calls(&rig, STRATA_CALL_malloc);
    options.flags = STRATA_NO_GROW;
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate_with(rig.s, rig.gpu, two, &options, &b));
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), mallocs);
    EXPECT_EQ(rig_figures(&rig).ladders, 0);
    EXPECT_OK(strata_allocate_with(rig.s, rig.gpu, one, &options, &b));
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), mallocs);
    EXPECT_OK(strata_free(rig.s, b.ref));
}

/* Without wait_first every stack is polled and released before the one try: no call of the device is wasted in between. */
TEST(facade_ladder, all_stacks_are_polled_and_released_before_the_next_try) {
    const char *const set[] = {"stream_safe.event=free"};
    RIG_BY(rig, rig_open(&rig, "paddle", set, 1, CAPACITY_MIB * MIB, 1));
    strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig), three = rig_stream(&rig);
    strata_block_t pending = rig_allocate(&rig, one, 30 * MIB), idle = rig_allocate(&rig, two, 30 * MIB);
    EXPECT_OK(strata_record_stream(rig.s, pending.ref, three));
    RIG_FREE(&rig, pending, idle);
    rig_pass(&rig, SECOND / 1000);
    uint64_t mallocs = rig_calls(&rig, STRATA_CALL_malloc);
    strata_block_t b = rig_allocate(&rig, three, 60 * MIB);
    /* Asked, asked again after the own idle chunks, and once more behind the ladder's first rung. */
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc) - mallocs, 3);
    EXPECT_OK(strata_free(rig.s, b.ref));
}

/* ---- waiting for the device ---- */

/* A block of 40 MiB of `owner` is freed while `borrower` works on it for `busy` ns. */
static strata_block_t free_while_borrowed(rig_t *rig, strata_stream_t owner, strata_stream_t borrower, uint64_t busy) {
    strata_block_t a = rig_allocate(rig, owner, 40 * MIB);
    rig_borrow(rig, a.ref, borrower, busy);
    EXPECT_OK(strata_free(rig->s, a.ref));
    return a;
}

TEST(facade_ladder, it_waits_for_a_pending_free_instead_of_failing) {
    static const char *const presets[] = {"strata", "paddle"};
    for (int i = 0; i < 2; i++) {
        const char *const set[] = {"stream_safe.event=free"};
        RIG_BY(rig, rig_open(&rig, presets[i], set, 1, CAPACITY_MIB * MIB, 1));
        strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
        strata_block_t a = free_while_borrowed(&rig, owner, borrower, SECOND / 50);
        uint64_t done = strata_sim_stream_end(rig.devices[0], borrower);
        strata_block_t b = rig_allocate(&rig, i ? borrower : owner, 40 * MIB);
        EXPECT_GE(strata_sim_now(rig.world), done);
        EXPECT_EQ(rig_figures(&rig).out_of_memory, 0);
        if (i == 0) EXPECT_EQ(b.ptr, a.ptr);
        EXPECT_OK(strata_free(rig.s, b.ref));
    }
}

TEST(facade_ladder, wait_first_keeps_the_caches_of_others) {
    for (int first = 0; first < 2; first++) {
        const char *const set[] = {first ? "retry.wait_first=true" : "retry.wait_first=false"};
        RIG_BY(rig, rig_open(&rig, "strata", set, 1, CAPACITY_MIB * MIB, 1));
        strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig), idle = rig_stream(&rig);
        strata_block_t kept = rig_allocate(&rig, idle, 20 * MIB);
        EXPECT_OK(strata_free(rig.s, kept.ref));
        (void)free_while_borrowed(&rig, owner, borrower, SECOND / 500);
        strata_block_t b = rig_allocate(&rig, owner, 40 * MIB);
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_free), first ? 0 : 1);
        EXPECT_OK(strata_free(rig.s, b.ref));
    }
}

TEST(facade_ladder, it_waits_no_longer_than_the_timeout) {
    const char *const set[] = {"retry.timeout=5ms"};
    RIG_BY(rig, rig_open(&rig, "strata", set, 1, CAPACITY_MIB * MIB, 1));
    strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
    (void)free_while_borrowed(&rig, owner, borrower, SECOND);
    strata_block_t b;
    uint64_t now = strata_sim_now(rig.world);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, owner, 40 * MIB, &b));
    EXPECT_GE(strata_sim_now(rig.world) - now, SECOND / 1000 * 5);
    EXPECT_LT(strata_sim_now(rig.world) - now, SECOND / 1000 * 8);
    EXPECT_CONTAINS(strata_last_error()->text, "deferred 40MiB");
    rig_pass(&rig, SECOND);
}

/* A device that answers no query, though its events have passed by the clock: the deadline still ends the wait. */
TEST(facade_ladder, an_event_that_cannot_be_asked_does_not_hang) {
    const char *const set[] = {"stream_safe.event=free"};
    RIG_BY(rig, rig_open(&rig, "paddle", set, 1, CAPACITY_MIB * MIB, 1));
    strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
    (void)free_while_borrowed(&rig, owner, borrower, 1000);
    ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_event_query, 1, true, STRATA_E_DEVICE));
    strata_block_t b;
    uint64_t real = strata_real_now();
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, owner, 40 * MIB, &b));
    EXPECT_LT(strata_real_now() - real, 4 * SECOND);
    strata_sim_clear_faults(rig.devices[0]);
    b = rig_allocate(&rig, owner, 40 * MIB);
    EXPECT_OK(strata_free(rig.s, b.ref));
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

TEST(facade_ladder, callbacks_free_memory_and_call_whatever_they_like) {
    static const char *const presets[] = {"strata", "paddle", "system"};
    for (int i = 0; i < 3; i++) {
        rig_t rig;
        listener_t l = {.rig = &rig};
        uint32_t callback, observer;
        open_small(&rig, presets[i]);
        l.hoard = rig_allocate(&rig, NULL, 30 * MIB);
        EXPECT_OK(strata_add_free_memory_callback(rig.s, give_up_hoard, &l, &callback));
        EXPECT_OK(strata_add_out_of_memory_observer(rig.s, hear, &l, &observer));
        strata_block_t b = rig_allocate(&rig, NULL, 50 * MIB), none;
        EXPECT_EQ(l.asked, 1);
        EXPECT_EQ(l.size, 50 * MIB);
        EXPECT_EQ(l.heard, 0);
        EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 40 * MIB, &none));
        EXPECT_EQ(l.asked, 2);
        EXPECT_EQ(l.heard, 1);
        EXPECT_CONTAINS(l.text, "asked 40MiB");
        EXPECT_OK(strata_remove_callback(rig.s, callback));
        EXPECT_OK(strata_remove_callback(rig.s, observer));
        EXPECT_STATUS(STRATA_E_INVALID, strata_remove_callback(rig.s, observer));
        EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 40 * MIB, &none));
        EXPECT_EQ(l.asked, 2);
        EXPECT_EQ(l.heard, 1);
        EXPECT_OK(strata_free(rig.s, b.ref));
        rig_close(&rig);
    }
}

static uint64_t give_nothing(strata_place_t place, size_t size, void *context) {
    (void)place;
    (void)size;
    ++*(uint32_t *)context;
    return 0;
}

TEST(facade_ladder, callbacks_are_asked_once_however_long_a_request_waits) {
    const char *const set[] = {"stream_safe.event=free", "retry.timeout=2s"};
    uint32_t asked = 0;
    RIG_BY(rig, rig_open(&rig, "paddle", set, 2, CAPACITY_MIB * MIB, 1));
    strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
    EXPECT_OK(strata_add_free_memory_callback(rig.s, give_nothing, &asked, NULL));
    for (size_t i = 0; i < 3; i++) {
        strata_block_t a = rig_allocate(&rig, owner, (12 + i) * MIB);
        rig_borrow(&rig, a.ref, borrower, SECOND / 1000);
        EXPECT_OK(strata_free(rig.s, a.ref));
    }
    strata_block_t b = rig_allocate(&rig, borrower, 60 * MIB);
    EXPECT_EQ(asked, 1);
    EXPECT_OK(strata_free(rig.s, b.ref));
}

TEST(facade_ladder, figures_of_growths_and_hits) {
    RIG_BY(rig, open_small(&rig, "strata"));
    strata_block_t a = rig_allocate(&rig, NULL, 1000), b = rig_allocate(&rig, NULL, 1000);
    strata_statistics_t f = rig_figures(&rig);
    EXPECT_EQ(f.growths, 1);
    EXPECT_EQ(f.chunks, 1);
    EXPECT_EQ(f.cache_hits, 1);
    RIG_FREE(&rig, a, b);
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(rig_figures(&rig).chunks, 0);
}
