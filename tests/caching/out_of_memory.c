/* The steps of caching when nothing fits, one by one and in their order. */
#include "tests/caching/caching.h"

static strata_status_t try(rig_t *rig, strata_stream_t stream, size_t mib, strata_block_t *block) {
    return strata_allocate(rig->s, rig->gpu, stream, mib * MIB, block);
}

/* ---- callbacks ---- */

typedef struct giver {
    rig_t *rig;
    strata_ref_t ref;
    int asked;
} giver_t;

static uint64_t give(strata_place_t place, size_t size, void *context) {
    giver_t *giver = context;
    (void)place;
    giver->asked++;
    if (!giver->ref) return 0;
    EXPECT_OK(strata_free(giver->rig->s, giver->ref));
    giver->ref = 0;
    return size;
}

/* Every request that finds no block asks them, before anything is asked from the device. */
TEST(caching_memory, callbacks_come_before_growth) {
    RIG(rig, "pytorch", 0);
    giver_t giver = {.rig = &rig};
    uint32_t id;
    EXPECT_OK(strata_add_free_memory_callback(rig.s, give, &giver, &id));
    strata_block_t a = rig_allocate(&rig, NULL, 30 * MIB);
    EXPECT_EQ(giver.asked, 1);
    giver.ref = a.ref;
    strata_block_t b = rig_allocate(&rig, NULL, 30 * MIB);
    EXPECT_EQ(b.ptr, a.ptr);
    EXPECT_EQ(giver.asked, 2);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), 1);
    EXPECT_OK(strata_free(rig.s, b.ref));
    b = rig_allocate(&rig, NULL, 30 * MIB);
    EXPECT_EQ(giver.asked, 2);
    EXPECT_OK(strata_free(rig.s, b.ref));
}

typedef struct forgetter {
    rig_t *rig;
    strata_stream_t stream;
} forgetter_t;

static uint64_t forget(strata_place_t place, size_t size, void *context) {
    forgetter_t *forgetter = context;
    (void)size;
    if (forgetter->stream) EXPECT_OK(strata_stream_forget(forgetter->rig->s, place, forgetter->stream));
    forgetter->stream = NULL;
    return 0;
}

/* The locks are open for a callback: the stream may go in it, and leaves no bank when its request fails. */
TEST(caching_memory, a_stream_that_goes_during_its_failing_request_leaves_nothing) {
    strata_block_t none;
    RIG(rig, "pytorch", 64 * MIB);
    forgetter_t forgetter = {.rig = &rig, .stream = rig_stream(&rig)};
    EXPECT_OK(strata_add_free_memory_callback(rig.s, forget, &forgetter, NULL));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, try(&rig, forgetter.stream, 100, &none));
    EXPECT_EQ(forgetter.stream, NULL);
    EXPECT_EQ(caching_of(&rig)->first_orphan, 0);
    EXPECT_EQ(caching_first_bank(caching_of(&rig)), 0);
    EXPECT_OK(strata_validate(rig.s));
}

/* ---- garbage ---- */

/* Four idle segments; the first two were not searched past for longer than the mean. */
TEST(caching_memory, garbage_goes_by_age_before_growth) {
    RIG_BY(rig, caching_open(&rig, "memory_fraction: 0.5, garbage_collection_threshold: 0.5", 0));
    caching_t *self = caching_of(&rig);
    strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
    self->collect_above = UINT64_MAX;
    caching_make_idle(&rig, one, (const size_t[]){30}, 1);
    caching_make_idle(&rig, two, (const size_t[]){32}, 1);
    for (int i = 0; i < 20; i++) caching_make_idle(&rig, one, (const size_t[]){30, 34}, 2);
    caching_make_idle(&rig, two, (const size_t[]){36}, 1);
    EXPECT_EQ(caching_reserved(&rig), (30 + 32 + 34 + 36) * MIB);
    uint64_t frees = rig_calls(&rig, STRATA_CALL_free);
    self->collect_above = 131 * MIB;
    strata_block_t a = rig_allocate(&rig, one, 40 * MIB);
    EXPECT_EQ(self->collected_bytes, 32 * MIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_free) - frees, 1);
    EXPECT_EQ(caching_reserved(&rig), (30 + 34 + 36 + 40) * MIB);
    /* More than the old ones are needed: the mean falls until it is enough. */
    self->collect_above = 45 * MIB;
    strata_block_t b = rig_allocate(&rig, one, 42 * MIB);
    EXPECT_GE(self->collected_bytes, (32 + 140 - 45) * MIB - 42 * MIB);
    EXPECT_LE(caching_reserved(&rig), (45 + 42) * MIB);
    RIG_FREE(&rig, a, b);
}

TEST(caching_memory, garbage_is_never_split_or_small) {
    RIG_BY(rig, caching_open(&rig, "memory_fraction: 0.5, garbage_collection_threshold: 0.5", 0));
    caching_t *self = caching_of(&rig);
    self->collect_above = 0;
    strata_block_t small = rig_allocate(&rig, NULL, 1000), part = rig_allocate(&rig, NULL, 5 * MIB), more[2];
    EXPECT_OK(strata_free(rig.s, small.ref));
    for (int i = 0; i < 2; i++) more[i] = rig_allocate(&rig, NULL, 20 * MIB);
    EXPECT_EQ(self->collected_bytes, 0);
    EXPECT_EQ(caching_reserved(&rig), 62 * MIB);
    EXPECT_OK(strata_free(rig.s, part.ref));
    for (int i = 0; i < 2; i++) EXPECT_OK(strata_free(rig.s, more[i].ref));
}

/* ---- blocks that are not split ---- */

static void open_oversize(rig_t *rig, uint64_t mib) { caching_open(rig, "max_split_size: 20MiB", mib * MIB); }

/* Idle blocks of 60, 80 and 100 MiB on one stream; 240 MiB in all on the device, so that nothing larger than is asked fits. */
static uint64_t left_after(size_t mib, strata_status_t expected) {
    rig_t rig;
    open_oversize(&rig, 260);
    caching_make_idle(&rig, NULL, (const size_t[]){60, 80, 100}, 3);
    strata_block_t b;
    EXPECT_STATUS(expected, try(&rig, NULL, mib, &b));
    uint64_t left = caching_reserved(&rig) / MIB - (expected == STRATA_OK ? mib : 0);
    if (expected == STRATA_OK) EXPECT_OK(strata_free(rig.s, b.ref));
    rig_close(&rig);
    return left;
}

TEST(caching_memory, the_smallest_block_that_is_enough_goes_alone) {
    EXPECT_EQ(left_after(30, STRATA_OK), 80 + 100);
    EXPECT_EQ(left_after(38, STRATA_OK), 80 + 100);
}

TEST(caching_memory, several_go_from_the_largest_down_until_they_are_enough) {
    EXPECT_EQ(left_after(150, STRATA_OK), 60);
    EXPECT_EQ(left_after(200, STRATA_OK), 0);
}

/* Too little all together: the step fails, what was freed stays freed, and the next one frees the rest. */
TEST(caching_memory, too_little_all_together_stays_freed) {
    EXPECT_EQ(left_after(250, STRATA_OK), 0);
    EXPECT_EQ(left_after(300, STRATA_E_NO_MEMORY), 0);
}

/* Not the other stream's, as long as the own ones are enough. */
TEST(caching_memory, only_the_own_streams_blocks_go_for_their_size) {
    RIG_BY(rig, open_oversize(&rig, 200));
    strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
    caching_make_idle(&rig, one, (const size_t[]){60}, 1);
    caching_make_idle(&rig, two, (const size_t[]){80, 40}, 2);
    strata_block_t b, c;
    EXPECT_OK(try(&rig, one, 30, &b));
    EXPECT_EQ(caching_reserved(&rig), (80 + 40 + 30) * MIB);
    EXPECT_EQ(caching_of(&rig)->retries, 0);
    /* Of its own this stream has nothing left: everything idle goes. */
    EXPECT_OK(try(&rig, one, 70, &c));
    EXPECT_EQ(caching_of(&rig)->retries, 1);
    EXPECT_EQ(caching_reserved(&rig), (30 + 70) * MIB);
    RIG_FREE(&rig, b, c);
}

/* ---- everything ---- */

TEST(caching_memory, another_streams_cache_is_freed) {
    RIG(rig, "pytorch", 128 * MIB);
    strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
    caching_make_idle(&rig, one, (const size_t[]){40, 56}, 2);
    strata_block_t b = rig_allocate(&rig, two, 96 * MIB);
    EXPECT_EQ(caching_reserved(&rig), 96 * MIB);
    EXPECT_EQ(caching_of(&rig)->retries, 1);
    EXPECT_EQ(rig_figures(&rig).recoveries, 0);
    EXPECT_OK(strata_free(rig.s, b.ref));
}

/* Which segment goes back as the n-th is told by the one that the device then refuses to take. */
static uint64_t gone_as(uint64_t n) {
    rig_t rig;
    rig_open(&rig, "pytorch", NULL, 0, 128 * MIB, 1);
    strata_stream_t low = rig_stream(&rig), high = rig_stream(&rig);
    if ((uintptr_t)low > (uintptr_t)high) {
        strata_stream_t swap = low;
        low = high;
        high = swap;
    }
    strata_block_t small = rig_allocate(&rig, low, 1000);
    EXPECT_OK(strata_free(rig.s, small.ref));
    caching_make_idle(&rig, high, (const size_t[]){22}, 1);
    caching_make_idle(&rig, low, (const size_t[]){26, 24}, 2);
    strata_block_t b;
    EXPECT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_free, n, false, STRATA_E_DEVICE));
    (void)try(&rig, high, 96, &b);
    strata_sim_clear_faults(rig.devices[0]);
    uint64_t refused = rig_figures(&rig).quarantined_bytes;
    EXPECT_OK(strata_close(rig.s, STRATA_CLOSE_FORCE, NULL, NULL));
    rig_end(&rig);
    return refused / MIB;
}

TEST(caching_memory, segments_go_back_large_first_then_by_stream_and_size) {
    static const uint64_t order[] = {24, 26, 22, 2};
    for (size_t i = 0; i < 4; i++) EXPECT_EQ(gone_as(i + 1), order[i]);
}

TEST(caching_memory, all_events_are_waited_for_before_segments_go) {
    RIG(rig, "pytorch", 64 * MIB);
    strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, owner, 40 * MIB);
    rig_borrow(&rig, a.ref, borrower, 5 * MILLISECOND);
    uint64_t end = strata_sim_stream_end(rig.devices[0], borrower);
    EXPECT_OK(strata_free(rig.s, a.ref));
    strata_block_t b = rig_allocate(&rig, owner, 48 * MIB);
    EXPECT_GE(strata_sim_now(rig.world), end);
    EXPECT_EQ(caching_of(&rig)->waits_for_all, 1);
    EXPECT_EQ(rig_figures(&rig).deferred_bytes, 0);
    EXPECT_OK(strata_free(rig.s, b.ref));
}

/* PyTorch #189504: the block that the wait set free would do, but lies in a segment that is not idle. */
TEST(caching_memory, after_the_wait_blocks_are_searched_again_where_that_is_asked) {
    for (int mended = 0; mended < 2; mended++) {
        RIG_BY(rig, caching_open(&rig, mended ? "search_after_events: true" : "", 20 * MIB));
        strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
        strata_block_t a = rig_allocate(&rig, owner, 9 * MIB), live = rig_allocate(&rig, owner, 9 * MIB), b;
        rig_borrow(&rig, a.ref, borrower, 5 * MILLISECOND);
        EXPECT_OK(strata_free(rig.s, a.ref));
        strata_status_t status = try(&rig, owner, 9, &b);
        EXPECT_EQ(status, mended ? STRATA_OK : STRATA_E_NO_MEMORY);
        EXPECT_EQ(rig_figures(&rig).recoveries, 0);
        if (status == STRATA_OK) EXPECT_EQ(b.ptr, a.ptr);
        if (status == STRATA_OK) EXPECT_OK(strata_free(rig.s, b.ref));
        /* The next request finds it in any case. */
        b = rig_allocate(&rig, owner, 9 * MIB);
        EXPECT_EQ(b.ptr, a.ptr);
        RIG_FREE(&rig, b, live);
    }
}

TEST(caching_memory, less_than_a_segment_is_asked_for_where_that_is_wanted) {
    for (int mended = 0; mended < 2; mended++) {
        RIG_BY(rig, caching_open(&rig, mended ? "smaller_growth: true" : "", 12 * MIB));
        strata_block_t b;
        EXPECT_STATUS(mended ? STRATA_OK : STRATA_E_NO_MEMORY, try(&rig, NULL, 4, &b));
        if (mended) EXPECT_EQ(caching_reserved(&rig), 4 * MIB);
        if (mended) EXPECT_OK(strata_free(rig.s, b.ref));
    }
}

/* Under `retry` the domain's ladder climbs, and waits for another stream's events. */
TEST(caching_memory, the_ladder_serves_where_it_is_left_to_it) {
    const char *text = "version: 1\nstack:\n  - retry: {timeout: 50ms}\n  - caching: {reclaim: ladder}\n  - system\n";
    RIG(rig, text, 64 * MIB);
    strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, owner, 40 * MIB);
    rig_borrow(&rig, a.ref, borrower, 5 * MILLISECOND);
    EXPECT_OK(strata_free(rig.s, a.ref));
    strata_block_t b = rig_allocate(&rig, owner, 48 * MIB);
    EXPECT_GT(rig_figures(&rig).recoveries, 0);
    EXPECT_EQ(rig_figures(&rig).deferred_bytes, 0);
    EXPECT_OK(strata_free(rig.s, b.ref));
}

/* A held private pool gives nothing back for others; inside a capture nobody gives anything. */
TEST(caching_memory, segments_that_went_back_are_reserved_no_more) {
    RIG(rig, "pytorch", 0);
    const strata_statistics_t *figures = &caching_of(&rig)->base.stack->figures;
    strata_block_t kept = rig_allocate(&rig, NULL, 30 * MIB);
    caching_make_idle(&rig, NULL, (const size_t[]){40}, 1);
    EXPECT_EQ(figures->reserved_bytes, 70 * MIB);
    EXPECT_EQ(figures->chunks, 2);
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(figures->reserved_bytes, 30 * MIB);
    EXPECT_EQ(figures->chunks, 1);
    EXPECT_OK(strata_free(rig.s, kept.ref));
}

TEST(caching_memory, a_capture_gives_nothing_back) {
    RIG(rig, "pytorch", 64 * MIB);
    caching_make_idle(&rig, NULL, (const size_t[]){40}, 1);
    caching_t *self = caching_of(&rig);
    self->uses.captures = 1;
    strata_block_t b;
    uint64_t released;
    EXPECT_STATUS(STRATA_E_NO_MEMORY, try(&rig, NULL, 48, &b));
    EXPECT_OK(strata_release(rig.s, rig.gpu, &released));
    EXPECT_EQ(released, 0);
    self->uses.captures = 0;
    EXPECT_OK(try(&rig, NULL, 48, &b));
    EXPECT_OK(strata_free(rig.s, b.ref));
}

/* What another layer of the stack keeps the own steps cannot reach: the ladder is climbed for it. */
TEST(caching_memory, what_other_layers_keep_is_left_to_the_ladder) {
    RIG(rig, "version: 1\nstack:\n  - guard: {quarantine: 4, report: false}\n  - caching\n  - system\n", 64 * MIB);
    strata_block_t a = rig_allocate(&rig, NULL, 40 * MIB), b;
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_OK(try(&rig, NULL, 40, &b));
    EXPECT_EQ(rig_figures(&rig).recoveries, 1);
    EXPECT_OK(strata_free(rig.s, b.ref));
}
