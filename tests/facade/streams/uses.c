/* Uses of blocks, whichever layer knows them: what a poll asks, what a stream that ends takes with it, and what is never over. */
#include "tests/facade/support/fixture.h"
#include "tests/facade/support/interleaving.h"

#define MILLISECOND (1000ull * 1000)
enum { BLOCKS = 50, SIZE = 1024 * 1024 };

static const char *const stacks[] = {"stack: [stream_safe, auto_growth, system]", "stack: [caching, system]"};
enum { STACKS = sizeof stacks / sizeof *stacks };

/* Fifty blocks of one stream are borrowed by another that is busy for long; a small one stays at hand. */
typedef struct lent {
    rig_t rig;
    strata_stream_t owner, borrower;
    strata_block_t blocks[BLOCKS];
} lent_t;

static void lend(lent_t *lent, const char *stack) {
    rig_open(&lent->rig, stack, NULL, 0, 0, 1);
    lent->owner = rig_stream(&lent->rig);
    lent->borrower = rig_stream(&lent->rig);
    for (int i = 0; i < BLOCKS; i++) {
        lent->blocks[i] = rig_allocate(&lent->rig, lent->owner, SIZE);
        EXPECT_OK(strata_record_stream(lent->rig.s, lent->blocks[i].ref, lent->borrower));
    }
    rig_work(&lent->rig, lent->borrower, 50 * MILLISECOND, lent->blocks[0].ref);
}

static void free_all(lent_t *lent) {
    for (int i = 0; i < BLOCKS; i++) EXPECT_OK(strata_free(lent->rig.s, lent->blocks[i].ref));
}

static void close_lent(lent_t *lent) { rig_close(&lent->rig); }

static void poll(lent_t *lent) { EXPECT_OK(strata_free(lent->rig.s, rig_allocate(&lent->rig, lent->owner, 1000).ref)); }

TEST_WAYS(facade_uses, a_poll_asks_a_stream_once_however_many_blocks_wait_for_it, i, STACKS, lent_t, lent, close_lent,
          lend(lent, stacks[i])) {
    free_all(lent);
    EXPECT_EQ(rig_figures(&lent->rig).deferred_bytes, BLOCKS * SIZE);
    poll(lent); /* the first growth is over by now */
    uint64_t asked = rig_calls(&lent->rig, STRATA_CALL_event_query);
    poll(lent);
    EXPECT_EQ(rig_calls(&lent->rig, STRATA_CALL_event_query) - asked, 1);
    rig_advance(&lent->rig, 60 * MILLISECOND);
    poll(lent);
    EXPECT_EQ(rig_figures(&lent->rig).deferred_bytes, 0);
}

TEST_WAYS(facade_uses, a_stream_that_ends_takes_one_event_for_all_that_it_uses, i, STACKS, lent_t, lent, close_lent,
          lend(lent, stacks[i])) {
    rig_t *rig = &lent->rig;
    uint64_t recorded = rig_calls(rig, STRATA_CALL_event_record), end = strata_sim_stream_end(rig->devices[0], lent->borrower);
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, lent->borrower));
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_event_record) - recorded, 1);
    EXPECT_OK(strata_stream_destroy(rig->s, rig->gpu, lent->borrower));
    free_all(lent);
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_event_record) - recorded, 1);
    poll(lent);
    EXPECT_EQ(rig_figures(rig).deferred_bytes, BLOCKS * SIZE);
    EXPECT_OK(strata_validate(rig->s));
    rig_advance(rig, end);
    poll(lent);
    EXPECT_EQ(rig_figures(rig).deferred_bytes, 0);
    EXPECT_EQ(rig_figures(rig).quarantined_bytes, 0);
    EXPECT_OK(strata_validate(rig->s));
}

/* A use that was recorded in a capture is never over; the uses after it, by the same stream, are. */
TEST_RIG_WAYS(facade_uses, what_a_capture_used_is_quarantined_and_holds_back_none_after_it, i, STACKS, 0, stacks[i]) {
    strata_stream_t owner = rig_stream(rig), borrower = rig_stream(rig);
    strata_block_t captured = rig_allocate(rig, owner, SIZE), later = rig_allocate(rig, owner, SIZE);
    EXPECT_OK(strata_record_stream(rig->s, captured.ref, borrower));
    EXPECT_OK(strata_record_stream(rig->s, later.ref, borrower));
    rig_begin_capture(rig, borrower);
    EXPECT_OK(strata_free(rig->s, captured.ref));
    rig_end_capture(rig, borrower);
    EXPECT_OK(strata_free(rig->s, later.ref));
    EXPECT_EQ(rig_figures(rig).deferred_bytes, 2 * SIZE);
    rig_advance(rig, MILLISECOND);
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, owner, 1000).ref));
    EXPECT_EQ(rig_figures(rig).deferred_bytes, 0);
    EXPECT_EQ(rig_figures(rig).quarantined_bytes, captured.size);
}

/* A stream whose last work was captured ends: its event never passes, and what it used is nobody's. */
TEST_RIG_WAYS(facade_uses, what_a_stream_used_that_ended_in_a_capture_is_quarantined, i, STACKS, 0, stacks[i]) {
    strata_stream_t owner = rig_stream(rig), borrower = rig_stream(rig);
    strata_block_t block = rig_allocate(rig, owner, SIZE);
    EXPECT_OK(strata_record_stream(rig->s, block.ref, borrower));
    rig_begin_capture(rig, borrower);
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, borrower));
    rig_end_capture(rig, borrower);
    EXPECT_OK(strata_free(rig->s, block.ref));
    rig_advance(rig, MILLISECOND);
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, owner, 1000).ref));
    EXPECT_EQ(rig_figures(rig).deferred_bytes, 0);
    EXPECT_EQ(rig_figures(rig).quarantined_bytes, block.size);
}

/* ---- pools whose blocks have no owner ---- */

typedef struct late {
    rig_t *rig;
    strata_stream_t stream;
    strata_block_t block;
} late_t;

static void use_and_free(void *context) {
    late_t *late = context;
    rig_work(late->rig, late->stream, 5 * MILLISECOND, late->block.ref);
    EXPECT_OK(strata_free(late->rig->s, late->block.ref));
}

/* Two holes of one size between blocks that stay: the second one is made while the host waits for whom the first one was. */
TEST(facade_uses, what_is_freed_while_the_host_waits_has_not_been_waited_for) {
    static const char *const pools[] = {"stack: [{naive_best_fit: {streams: ignored, initial: 64MiB}}, system]",
                                        "stack: [bfc: {initial_region: 64MiB}, system]",
                                        "stack: [caching: {streams: ignored}, system]"};
    for (int i = 0; i < 3; i++) {
        RIG_BY(rig, rig_open(&rig, pools[i], NULL, 0, 0, 1));
        strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
        strata_block_t blocks[5];
        between_t between;
        for (int k = 0; k < 5; k++) blocks[k] = rig_allocate(&rig, one, (k % 2 ? 3 : 2) * MIB);
        rig_work(&rig, one, MILLISECOND, blocks[1].ref);
        EXPECT_OK(strata_free(rig.s, blocks[1].ref));
        late_t late = {&rig, one, blocks[3]};
        between_begin(&between, &rig, STRATA_CALL_synchronise, use_and_free, &late);
        strata_block_t a = rig_allocate(&rig, two, 3 * MIB);
        ASSERT_TRUE(between_end(&between));
        EXPECT_EQ(a.ptr, blocks[1].ptr);
        EXPECT_LT(strata_sim_now(rig.world), strata_sim_stream_end(rig.devices[0], one));
        strata_block_t b = rig_allocate(&rig, two, 3 * MIB);
        EXPECT_EQ(b.ptr, blocks[3].ptr);
        EXPECT_GE(strata_sim_now(rig.world), strata_sim_stream_end(rig.devices[0], one));
        EXPECT_OK(strata_validate(rig.s));
        RIG_FREE(&rig, a, b, blocks[0], blocks[2], blocks[4]);
    }
}
