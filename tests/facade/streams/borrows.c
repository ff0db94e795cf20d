/* Blocks used by other streams than their owner's: when may their memory be served again? */
#include <pthread.h>

#include "tests/facade/support/deferral.h"
#include "tests/facade/support/fixture.h"

enum { SIZE = 300 * 1024, LONG = 1000 * 1000 };

typedef struct pair {
    rig_t rig;
    strata_stream_t owner, other;
    strata_block_t block;
} pair_t;

/* Two streams and a block of the first. In `strata` each request asks what has passed. */
static void begin(pair_t *pair, const char *strategy) {
    static const char *const asks[] = {"stream_safe.poll=stream"};
    rig_open(&pair->rig, strategy, asks, strcmp(strategy, "strata") == 0, 0, 1);
    pair->owner = rig_stream(&pair->rig);
    pair->other = rig_stream(&pair->rig);
    pair->block = rig_allocate(&pair->rig, pair->owner, SIZE);
}

static void end(pair_t *pair) { rig_finish(&pair->rig); }

/* A test of the pair `p`. */
#define TEST_PAIR(name, strategy) TEST_WITH(facade_borrows, name, pair_t, p, end, begin(p, strategy))

/* Whether the owner's next request of that size gets the memory of the pair's block; it is given back at once. */
static bool reused(pair_t *pair) {
    strata_block_t next = rig_allocate(&pair->rig, pair->owner, SIZE);
    EXPECT_OK(strata_free(pair->rig.s, next.ref));
    return next.ptr == pair->block.ptr;
}

static void record(pair_t *pair, strata_stream_t stream) { EXPECT_OK(strata_record_stream(pair->rig.s, pair->block.ref, stream)); }

static void free_block(pair_t *pair) { EXPECT_OK(strata_free(pair->rig.s, pair->block.ref)); }

TEST_PAIR(work_after_the_borrow_and_before_the_free_is_covered, "strata") {
    record(p, p->other);
    rig_work(&p->rig, p->other, LONG, p->block.ref);
    free_block(p);
    EXPECT_EQ(rig_figures(&p->rig).deferred_bytes, p->block.size);
    EXPECT_EQ(rig_figures(&p->rig).allocated_bytes, 0);
    EXPECT_FALSE(reused(p));
    rig_advance(&p->rig, LONG / 2);
    EXPECT_FALSE(reused(p));
    rig_advance(&p->rig, LONG);
    EXPECT_TRUE(reused(p));
    EXPECT_EQ(rig_figures(&p->rig).deferred_bytes, 0);
    EXPECT_EQ(rig_figures(&p->rig).deferred_frees, 1);
    /* With nothing pending the layer is left out of the walk again. */
    EXPECT_EQ(rig_stack(&p->rig, p->owner)->attention_allocate, 0);
}

/* Queries that one request makes while three blocks wait for the same two busy streams. */
static uint64_t queries_of_a_poll(const char *poll) {
    pair_t p;
    strata_block_t more[2];
    const char *set[] = {poll};
    rig_open(&p.rig, "strata", set, 1, 0, 1);
    p.owner = rig_stream(&p.rig);
    p.other = rig_stream(&p.rig);
    p.block = rig_allocate(&p.rig, p.owner, SIZE);
    for (int i = 0; i < 2; i++) more[i] = rig_allocate(&p.rig, p.owner, SIZE);
    strata_stream_t others[] = {p.other, rig_stream(&p.rig)};
    for (int each = 0; each < 2; each++) {
        record(&p, others[each]);
        for (int i = 0; i < 2; i++) EXPECT_OK(strata_record_stream(p.rig.s, more[i].ref, others[each]));
        rig_work(&p.rig, others[each], LONG, 0);
    }
    free_block(&p);
    for (int i = 0; i < 2; i++) EXPECT_OK(strata_free(p.rig.s, more[i].ref));
    uint64_t before = rig_calls(&p.rig, STRATA_CALL_event_query);
    EXPECT_FALSE(reused(&p));
    uint64_t made = rig_calls(&p.rig, STRATA_CALL_event_query) - before;
    end(&p);
    return made;
}

TEST(facade_borrows, a_poll_asks_once_for_each_stream_or_for_each_block) {
    EXPECT_EQ(queries_of_a_poll("stream_safe.poll=stream"), 2);
    EXPECT_EQ(queries_of_a_poll("stream_safe.poll=block"), 3);
}

TEST_PAIR(work_submitted_after_the_free_does_not_count, "strata") {
    record(p, p->other);
    free_block(p);
    rig_work(&p->rig, p->other, LONG, 0);
    rig_advance(&p->rig, 20 * 1000);
    EXPECT_TRUE(reused(p));
}

TEST_PAIR(what_nobody_borrowed_is_served_again_at_once_to_its_stream_alone, "strata") {
    rig_work(&p->rig, p->owner, LONG, p->block.ref);
    free_block(p);
    strata_block_t elsewhere = rig_allocate(&p->rig, p->other, SIZE);
    EXPECT_NE(elsewhere.ptr, p->block.ptr);
    EXPECT_TRUE(reused(p));
    EXPECT_OK(strata_free(p->rig.s, elsewhere.ref));
    EXPECT_EQ(rig_calls(&p->rig, STRATA_CALL_event_record), 0);
}

TEST_PAIR(free_on_covers_the_stream_of_the_last_use, "strata") {
    rig_work(&p->rig, p->other, LONG, p->block.ref);
    EXPECT_OK(strata_free_on(p->rig.s, p->block.ref, p->other));
    EXPECT_FALSE(reused(p));
    rig_advance(&p->rig, 2 * LONG);
    EXPECT_TRUE(reused(p));
    p->block = rig_allocate(&p->rig, p->owner, SIZE);
    EXPECT_OK(strata_free_on(p->rig.s, p->block.ref, p->owner));
    EXPECT_TRUE(reused(p));
}

TEST_PAIR(an_erased_borrow_is_none, "strata") {
    record(p, p->other);
    rig_work(&p->rig, p->other, LONG, p->block.ref);
    EXPECT_OK(strata_erase_stream(p->rig.s, p->block.ref, p->other));
    EXPECT_OK(strata_erase_stream(p->rig.s, p->block.ref, p->other));
    free_block(p);
    EXPECT_TRUE(reused(p));
    EXPECT_EQ(rig_figures(&p->rig).deferred_frees, 0);
}

TEST_PAIR(the_default_stream_is_one_borrower_by_either_name, "strata") {
    record(p, NULL);
    record(p, (strata_stream_t)1);
    EXPECT_EQ(rig_figures(&p->rig).borrows, 1);
    rig_work(&p->rig, NULL, LONG, p->block.ref);
    EXPECT_OK(strata_erase_stream(p->rig.s, p->block.ref, (strata_stream_t)1));
    free_block(p);
    EXPECT_TRUE(reused(p));
}

/* Its place in the list is before, between or after the others'. */
TEST_PAIR(erasing_a_borrow_that_was_never_made_leaves_the_others, "strata") {
    strata_stream_t third = rig_stream(&p->rig), fourth = rig_stream(&p->rig);
    record(p, third);
    rig_work(&p->rig, third, LONG, p->block.ref);
    EXPECT_OK(strata_erase_stream(p->rig.s, p->block.ref, p->owner));
    EXPECT_OK(strata_erase_stream(p->rig.s, p->block.ref, p->other));
    EXPECT_OK(strata_erase_stream(p->rig.s, p->block.ref, fourth));
    free_block(p);
    EXPECT_FALSE(reused(p));
    rig_advance(&p->rig, 2 * LONG);
    EXPECT_TRUE(reused(p));
}

TEST_PAIR(the_owner_is_no_borrower, "strata") {
    record(p, p->owner);
    rig_work(&p->rig, p->owner, LONG, p->block.ref);
    EXPECT_EQ(rig_figures(&p->rig).borrows, 0);
    free_block(p);
    EXPECT_TRUE(reused(p));
    /* The default stream has two names. */
    strata_block_t ordinary = rig_allocate(&p->rig, NULL, SIZE);
    EXPECT_OK(strata_record_stream(p->rig.s, ordinary.ref, (strata_stream_t)1));
    EXPECT_EQ(rig_figures(&p->rig).borrows, 0);
}

/* A prefetch: the borrow is told first, the work that uses the block is submitted later. */
TEST(facade_borrows, an_event_at_use_does_not_cover_what_comes_later) {
    static const char *const strategies[] = {"strata", "paddle"};
    for (int i = 0; i < 2; i++) {
        OPENED(pair_t, p, end, begin(&p, strategies[i]));
        deferral_t deferral = {.base = {.add = deferral_add, .cut = deferral_cut}};
        rig_domain(&p.rig)->deferral = &deferral.base;
        record(&p, p.other);
        rig_advance(&p.rig, 20 * 1000);
        rig_work(&p.rig, p.other, LONG, p.block.ref);
        free_block(&p);
        EXPECT_EQ(reused(&p), i == 1);
        EXPECT_EQ(deferral.peak, i == 0 ? p.block.size : 0);
        rig_advance(&p.rig, 2 * LONG);
        EXPECT_TRUE(reused(&p));
    }
}

TEST(facade_borrows, without_an_owner_the_first_user_is_a_borrower) {
    static const strata_place_kind_t kinds[] = {STRATA_PLACE_PINNED, STRATA_PLACE_HOST};
    for (int i = 0; i < 2; i++) {
        OPENED(pair_t, p, end, begin(&p, "strata"));
        strata_place_t place = strata_place(kinds[i], 0);
        strata_block_t first, second, none;
        EXPECT_OK(strata_allocate(p.rig.s, place, NULL, SIZE, &none));
        EXPECT_OK(strata_free(p.rig.s, none.ref));
        EXPECT_OK(strata_allocate(p.rig.s, place, p.owner, SIZE, &first));
        EXPECT_EQ(first.ptr, none.ptr);
        EXPECT_STATUS(STRATA_E_UNSUPPORTED, strata_stream_of(p.rig.s, first.ref, &p.owner));
        rig_work(&p.rig, p.owner, LONG, 0);
        EXPECT_OK(strata_free(p.rig.s, first.ref));
        EXPECT_OK(strata_allocate(p.rig.s, place, p.owner, SIZE, &second));
        EXPECT_NE(second.ptr, first.ptr);
        EXPECT_OK(strata_record_stream(p.rig.s, second.ref, p.other));
        EXPECT_OK(strata_free(p.rig.s, second.ref));
        /* A hit notes its user like a miss. */
        rig_advance(&p.rig, 2 * LONG);
        EXPECT_OK(strata_allocate(p.rig.s, place, p.owner, SIZE, &first));
        EXPECT_OK(strata_free(p.rig.s, first.ref));
        rig_advance(&p.rig, LONG);
        uint64_t deferred = rig_calls(&p.rig, STRATA_CALL_event_record);
        strata_domain_t *domain;
        strata_pending_t pending;
        EXPECT_OK(strata_facade_domain(strata_facade_of(p.rig.s), place, &domain));
        EXPECT_GT(strata_domain_poll(domain, &pending), 0);
        EXPECT_OK(strata_allocate(p.rig.s, place, p.owner, SIZE, &first));
        EXPECT_OK(strata_free(p.rig.s, first.ref));
        EXPECT_EQ(rig_calls(&p.rig, STRATA_CALL_event_record), deferred + 1);
        rig_advance(&p.rig, 2 * LONG);
        EXPECT_OK(strata_allocate(p.rig.s, place, NULL, SIZE, &none));
        EXPECT_OK(strata_free(p.rig.s, none.ref));
        free_block(&p);
    }
}

/* A strategy of which no layer knows borrows. */
static const char WITHOUT[] = "version: 1\n"
                              "stack: [{auto_growth: {chunk_size: 20MiB}}, {system: {}}]\n"
                              "places: {pinned: [{auto_growth: {chunk_size: 20MiB}}, {system: {}}]}\n";

TEST_PAIR(where_no_layer_knows_borrows_the_free_waits_on_the_host, WITHOUT) {
    EXPECT_OK(strata_record_stream(p->rig.s, p->block.ref, p->other));
    EXPECT_EQ(rig_figures(&p->rig).borrows_waited, 1);
    EXPECT_OK(strata_record_stream(p->rig.s, p->block.ref, p->other));
    EXPECT_EQ(rig_figures(&p->rig).borrows_waited, 2);
    EXPECT_EQ(rig_figures(&p->rig).borrows, 0);
    rig_work(&p->rig, p->other, LONG, p->block.ref);
    uint64_t done = strata_sim_stream_end(p->rig.devices[0], p->other);
    free_block(p);
    EXPECT_GE(strata_sim_now(p->rig.world), done);
    EXPECT_EQ(rig_figures(&p->rig).host_waits, 1);
    EXPECT_TRUE(reused(p));
    /* Taken back, it is not waited for. */
    p->block = rig_allocate(&p->rig, p->owner, SIZE);
    EXPECT_OK(strata_record_stream(p->rig.s, p->block.ref, p->other));
    EXPECT_OK(strata_erase_stream(p->rig.s, p->block.ref, p->other));
    rig_work(&p->rig, p->other, LONG, 0);
    free_block(p);
    EXPECT_LT(strata_sim_now(p->rig.world), strata_sim_stream_end(p->rig.devices[0], p->other));
}

/* Served from what a forgotten stream left, a block is its stream's by a note: what the stream says of itself does not end that. */
TEST_RIG(facade_borrows, where_no_layer_knows_borrows_an_owner_does_not_erase_itself, 0, "stack: [auto_growth, system]") {
    strata_stream_t gone = rig_stream(rig), owner = rig_stream(rig), next = rig_stream(rig);
    strata_block_t left = rig_allocate(rig, gone, MIB);
    EXPECT_OK(strata_free(rig->s, left.ref));
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, gone));
    strata_block_t block = rig_allocate(rig, owner, MIB);
    ASSERT_EQ(block.ptr, left.ptr);
    rig_work(rig, owner, LONG, block.ref);
    EXPECT_OK(strata_erase_stream(rig->s, block.ref, owner));
    EXPECT_OK(strata_free(rig->s, block.ref));
    EXPECT_EQ(rig_allocate(rig, next, MIB).ptr, left.ptr);
    EXPECT_GE(strata_sim_now(rig->world), strata_sim_stream_end(rig->devices[0], owner));
    EXPECT_EQ(rig_figures(rig).host_waits, 1);
}

/* Caching that ignores streams keeps no borrows, and looks for none in a table of its own: the core keeps them. */
TEST_PAIR(where_streams_are_ignored_every_borrow_is_taken_back, "stack: [caching: {streams: ignored}, system]") {
    enum { BLOCKS = 3000 };
    strata_ref_t refs[BLOCKS];
    for (int n = 0; n < BLOCKS; n++) refs[n] = rig_allocate(&p->rig, n == 0 ? p->other : p->owner, 512).ref;
    for (int n = 1; n < BLOCKS; n++) EXPECT_OK(strata_record_stream(p->rig.s, refs[n], p->other));
    for (int n = 1; n < BLOCKS; n++) EXPECT_OK(strata_erase_stream(p->rig.s, refs[n], p->other));
    for (int n = 0; n < BLOCKS; n++) EXPECT_OK(strata_free(p->rig.s, refs[n]));
    EXPECT_EQ(rig_figures(&p->rig).host_waits, 0);
    free_block(p);
}

/* Whichever was told first works longest. */
TEST_WAYS(facade_borrows, where_no_layer_knows_borrows_the_free_waits_for_every_borrower, longest, 3, pair_t, p, end,
          begin(p, WITHOUT)) {
    uint64_t done = 0;
    for (int i = 0; i < 3; i++) {
        strata_stream_t stream = rig_stream(&p->rig);
        rig_borrow(&p->rig, p->block.ref, stream, i == longest ? 9 * LONG : LONG);
        uint64_t end_of_it = strata_sim_stream_end(p->rig.devices[0], stream);
        if (end_of_it > done) done = end_of_it;
    }
    free_block(p);
    EXPECT_GE(strata_sim_now(p->rig.world), done);
    EXPECT_EQ(rig_figures(&p->rig).host_waits, 3);
}

/* Pinned and host blocks go by who was told to use them, the legacy stream by either of its names. */
TEST(facade_borrows, without_an_owner_each_user_counts_by_its_own_name) {
    static const strata_place_kind_t kinds[] = {STRATA_PLACE_PINNED, STRATA_PLACE_HOST};
    for (int i = 0; i < 2; i++) {
        OPENED(pair_t, p, end, begin(&p, "strata"));
        strata_place_t place = strata_place(kinds[i], 0);
        for (int with_free = 0; with_free < 2; with_free++) {
            strata_block_t block, next;
            EXPECT_OK(strata_allocate(p.rig.s, place, NULL, SIZE, &block));
            if (!with_free) EXPECT_OK(strata_record_stream(p.rig.s, block.ref, p.other));
            EXPECT_OK(strata_record_stream(p.rig.s, block.ref, (strata_stream_t)1));
            EXPECT_OK(strata_erase_stream(p.rig.s, block.ref, NULL));
            rig_work(&p.rig, p.other, LONG, 0);
            EXPECT_OK(with_free ? strata_free_on(p.rig.s, block.ref, p.other) : strata_free(p.rig.s, block.ref));
            EXPECT_OK(strata_allocate(p.rig.s, place, NULL, SIZE, &next));
            EXPECT_NE(next.ptr, block.ptr);
            EXPECT_OK(strata_free(p.rig.s, next.ref));
            rig_advance(&p.rig, 2 * LONG);
        }
        EXPECT_OK(strata_free(p.rig.s, p.block.ref));
    }
}

/* ---- the device fails at the free ---- */

/* Under `event: use` there is no borrow without its event: the program hears what the device said, and nothing is left of it. */
TEST_PAIR(an_event_at_use_that_cannot_be_made_is_told, "paddle") {
    ASSERT_OK(strata_sim_fail(p->rig.devices[0], STRATA_CALL_event_create, 1, true, STRATA_E_NO_MEMORY));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_record_stream(p->rig.s, p->block.ref, p->other));
    EXPECT_EQ(rig_figures(&p->rig).borrows, 0);
    strata_sim_clear_faults(p->rig.devices[0]);
    rig_work(&p->rig, p->other, LONG, 0);
    free_block(p);
    EXPECT_TRUE(reused(p));
}

/* So it is with one that cannot be recorded: the free does not wait for what the event was last recorded for. */
TEST_PAIR(an_event_at_use_that_cannot_be_recorded_leaves_no_borrow, "paddle") {
    strata_stream_t third = rig_stream(&p->rig);
    rig_work(&p->rig, p->other, LONG, 0);
    record(p, p->other);
    EXPECT_OK(strata_erase_stream(p->rig.s, p->block.ref, p->other));
    ASSERT_OK(strata_sim_fail(p->rig.devices[0], STRATA_CALL_event_record, 1, false, STRATA_E_DEVICE));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_record_stream(p->rig.s, p->block.ref, third));
    free_block(p);
    EXPECT_EQ(rig_figures(&p->rig).deferred_bytes, 0);
    EXPECT_TRUE(reused(p));
}

TEST_PAIR(an_event_that_cannot_be_recorded_is_waited_for, "strata") {
    record(p, p->other);
    rig_work(&p->rig, p->other, LONG, p->block.ref);
    ASSERT_OK(strata_sim_fail(p->rig.devices[0], STRATA_CALL_event_record, 1, true, STRATA_E_DEVICE));
    uint64_t done = strata_sim_stream_end(p->rig.devices[0], p->other);
    free_block(p);
    EXPECT_GE(strata_sim_now(p->rig.world), done);
    EXPECT_TRUE(reused(p));
    EXPECT_EQ(rig_figures(&p->rig).quarantined_bytes, 0);
    strata_sim_clear_faults(p->rig.devices[0]);
}

TEST_PAIR(a_block_that_nothing_is_known_of_is_quarantined_until_close, "strata") {
    record(p, p->other);
    rig_work(&p->rig, p->other, LONG, p->block.ref);
    ASSERT_OK(strata_sim_fail(p->rig.devices[0], STRATA_CALL_event_record, 1, true, STRATA_E_DEVICE));
    ASSERT_OK(strata_sim_fail(p->rig.devices[0], STRATA_CALL_stream_synchronise, 1, true, STRATA_E_DEVICE));
    ASSERT_OK(strata_sim_fail(p->rig.devices[0], STRATA_CALL_synchronise, 1, true, STRATA_E_DEVICE));
    free_block(p);
    strata_sim_clear_faults(p->rig.devices[0]);
    EXPECT_EQ(rig_figures(&p->rig).quarantined_bytes, p->block.size);
    EXPECT_EQ(rig_figures(&p->rig).allocated_bytes, 0);
    EXPECT_STATUS(STRATA_E_STALE, strata_free(p->rig.s, p->block.ref));
    rig_advance(&p->rig, 9 * LONG);
    EXPECT_FALSE(reused(p));
    EXPECT_OK(strata_release(p->rig.s, p->rig.gpu, NULL));
    EXPECT_FALSE(reused(p));
}

TEST_PAIR(where_the_host_cannot_wait_either_the_block_is_quarantined, WITHOUT) {
    EXPECT_OK(strata_record_stream(p->rig.s, p->block.ref, p->other));
    rig_work(&p->rig, p->other, LONG, p->block.ref);
    ASSERT_OK(strata_sim_fail(p->rig.devices[0], STRATA_CALL_stream_synchronise, 1, true, STRATA_E_DEVICE));
    ASSERT_OK(strata_sim_fail(p->rig.devices[0], STRATA_CALL_synchronise, 1, true, STRATA_E_DEVICE));
    free_block(p);
    strata_sim_clear_faults(p->rig.devices[0]);
    EXPECT_EQ(rig_figures(&p->rig).quarantined_bytes, p->block.size);
    EXPECT_FALSE(reused(p));
}

/* A borrower may be another device's stream: that one is waited for, not all that its device does. */
TEST_BY(facade_borrows, another_devices_stream_is_waited_for_alone, rig_open(rig, "strata", NULL, 0, 0, 2)) {
    strata_stream_t short_one, long_one;
    EXPECT_OK(strata_stream_create(rig->s, strata_gpu(1), 0, &short_one));
    EXPECT_OK(strata_stream_create(rig->s, strata_gpu(1), 0, &long_one));
    EXPECT_OK(strata_stream_work(rig->s, strata_gpu(1), short_one, LONG, NULL, 0));
    EXPECT_OK(strata_stream_work(rig->s, strata_gpu(1), long_one, 100 * LONG, NULL, 0));
    uint64_t done = strata_sim_stream_end(rig->devices[1], short_one), all_done = strata_sim_stream_end(rig->devices[1], long_one);
    EXPECT_TRUE(strata_domain_wait_for(rig_domain(rig), short_one));
    EXPECT_GE(strata_sim_now(rig->world), done);
    EXPECT_LT(strata_sim_now(rig->world), all_done);
}

/* ---- each thread's own default stream ---- */

static const strata_stream_t OWN = (strata_stream_t)2;

static void *borrow_by_own_stream(void *argument) {
    pair_t *p = argument;
    rig_borrow(&p->rig, p->block.ref, OWN, LONG);
    return NULL;
}

TEST_PAIR(another_threads_default_stream_is_another_stream, "strata") {
    free_block(p);
    p->owner = OWN;
    p->block = rig_allocate(&p->rig, OWN, SIZE);
    in_another_thread(borrow_by_own_stream, p);
    free_block(p);
    /* Nobody but that thread can name its stream: the free waited for the device, or the block is not served yet. */
    EXPECT_TRUE(strata_sim_now(p->rig.world) >= strata_sim_device_end(p->rig.devices[0]) || !reused(p));
    rig_advance(&p->rig, 2 * LONG);
    EXPECT_TRUE(reused(p));
}

static void *allocate_on_own_stream(void *argument) {
    pair_t *p = argument;
    p->block = rig_allocate(&p->rig, OWN, SIZE);
    return NULL;
}

TEST_PAIR(each_thread_has_a_default_stream_of_its_own, "strata") {
    free_block(p);
    (void)rig_allocate(&p->rig, OWN, SIZE);
    in_another_thread(allocate_on_own_stream, p);
    EXPECT_NE(rig_stack(&p->rig, OWN)->number, strata_ref_home(p->block.ref));
    free_block(p);
    strata_block_t again = rig_allocate(&p->rig, OWN, SIZE);
    EXPECT_NE(again.ptr, p->block.ptr);
}

TEST_PAIR(a_host_wait_for_another_threads_stream_waits_for_the_device, WITHOUT) {
    in_another_thread(borrow_by_own_stream, p);
    uint64_t done = strata_sim_device_end(p->rig.devices[0]);
    free_block(p);
    EXPECT_GE(strata_sim_now(p->rig.world), done);
}
