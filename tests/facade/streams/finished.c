/* Freed blocks that wait for several borrowers: when they are over, which goes first, and what the figures say meanwhile. */
#include <stdio.h>

#include "allocation/domain/layer.h"
#include "tests/facade/support/deferral.h"
#include "tests/facade/support/fixture.h"

#define MILLISECOND (1000ull * 1000)
enum { SIZE = 3 * 1024 * 1024, BLOCKS = 4 };

static const char *const stacks[] = {"stream_safe, auto_growth, system", "stream_safe: {poll: block}, auto_growth, system",
                                     "caching, system", "cuda_malloc_async"};
enum { STACKS = sizeof stacks / sizeof *stacks };

/* A block with two borrowers of which that of the lower handle is busy for `low` ms and the other for `high` ms, freed. */
static void leave_waiting(rig_t *rig, strata_stream_t owner, const strata_stream_t users[2], uint64_t low, uint64_t high,
                          bool high_first) {
    strata_block_t block = rig_allocate(rig, owner, SIZE);
    rig_work(rig, users[0], low * MILLISECOND, block.ref);
    rig_work(rig, users[1], high * MILLISECOND, block.ref);
    for (int n = 0; n < 2; n++) EXPECT_OK(strata_record_stream(rig->s, block.ref, users[n ^ high_first]));
    EXPECT_OK(strata_free(rig->s, block.ref));
}

/* ---- when ---- */

/* stream_safe: the last of a block's borrowers. cuda_malloc_async waits for all of them on one stream. */
TEST(facade_finished, a_block_is_ready_when_the_last_of_its_borrowers_is) {
    for (int i = 0; i < STACKS; i++)
        for (int variant = 0; variant < 4; variant++) {
            strata_pending_t pending;
            RIG_STACK(rig, stacks[i], 0);
            strata_stream_t owner = rig_stream(&rig), users[2] = {rig_stream(&rig), rig_stream(&rig)};
            leave_waiting(&rig, owner, users, variant & 1 ? 2 : 7, variant & 1 ? 7 : 2, variant & 2);
            uint64_t ends[2] = {strata_sim_stream_end(rig.devices[0], users[0]), strata_sim_stream_end(rig.devices[0], users[1])};
            uint64_t last = ends[0] > ends[1] ? ends[0] : ends[1];
            EXPECT_EQ(strata_domain_poll(rig_domain(&rig), &pending), 0);
            EXPECT_EQ(pending.pending_bytes, SIZE);
            EXPECT_GE(pending.ready_at, last);
            EXPECT_LT(pending.ready_at, last + MILLISECOND);
            strata_sim_advance_to(rig.world, last - MILLISECOND);
            EXPECT_EQ(strata_domain_poll(rig_domain(&rig), &pending), 0);
            strata_sim_advance_to(rig.world, last + MILLISECOND);
            EXPECT_EQ(strata_domain_poll(rig_domain(&rig), &pending), SIZE);
            EXPECT_EQ(pending.ready_at, UINT64_MAX);
            if (strata_test_has_failed()) FAIL_TEST("%s, variant %d", stacks[i], variant);
        }
}

/* Of two blocks the one that is ready first is told, in whichever order they were freed. */
TEST(facade_finished, the_earliest_of_several_blocks_is_told) {
    for (int i = 0; i < 3; i++)
        for (int variant = 0; variant < 2; variant++) {
            strata_pending_t pending;
            RIG_STACK(rig, stacks[i], 0);
            strata_stream_t owner = rig_stream(&rig), pairs[2][2];
            for (int n = 0; n < 4; n++) pairs[n / 2][n % 2] = rig_stream(&rig);
            leave_waiting(&rig, owner, pairs[variant], 2, 3, false);
            leave_waiting(&rig, owner, pairs[!variant], 8, 9, false);
            uint64_t end = strata_sim_stream_end(rig.devices[0], pairs[variant][1]);
            leave_waiting(&rig, owner, pairs[variant], 4, 5, true); /* after the first, on its streams */
            EXPECT_EQ(strata_domain_poll(rig_domain(&rig), &pending), 0);
            EXPECT_EQ(pending.ready_at, end);
            if (strata_test_has_failed()) FAIL_TEST("%s, variant %d", stacks[i], variant);
        }
}

/* What is deferred by the clock: a block counts until its last borrower is done, and no longer. */
TEST(facade_finished, a_block_counts_as_deferred_until_its_last_borrower_is_done) {
    for (int i = 0; i < STACKS; i++)
        for (int variant = 0; variant < 4; variant++) {
            RIG_STACK(rig, stacks[i], 0);
            strata_stream_t owner = rig_stream(&rig), users[2] = {rig_stream(&rig), rig_stream(&rig)};
            strata_stream_t more[2] = {rig_stream(&rig), rig_stream(&rig)};
            deferral_t deferral = {.base = {.add = deferral_add, .cut = deferral_cut}};
            rig_domain(&rig)->deferral = &deferral.base;
            leave_waiting(&rig, owner, users, variant & 1 ? 2 : 7, variant & 1 ? 7 : 2, variant & 2);
            rig_advance(&rig, 4 * MILLISECOND);
            leave_waiting(&rig, owner, more, 1, 1, false);
            EXPECT_EQ(deferral.peak, 2 * SIZE);
            rig_advance(&rig, 9 * MILLISECOND);
            leave_waiting(&rig, owner, more, 1, 1, false);
            EXPECT_EQ(deferral.peak, 2 * SIZE);
            if (strata_test_has_failed()) FAIL_TEST("%s, variant %d", stacks[i], variant);
        }
}

/* ---- in which order ---- */

static struct {
    uint64_t addresses[2 * BLOCKS];
    uint32_t count;
} freed;

static void note_free(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    (void)self;
    freed.addresses[freed.count++ % (2 * BLOCKS)] = record->ptr;
    strata_below_free(record, call);
}

static const strata_layer_type_t noting_type = DECORATOR("test_in_order", STRATA_SCOPE_DEVICE, strata_below_allocate, note_free);

/* Blocks freed in the order 2, 0, 3, 1; bit n of `early`: the borrower of the n-th free is done at the first poll. */
static void expect_order(const char *poll, uint32_t early) {
    static const int order[BLOCKS] = {2, 0, 3, 1};
    char text[100];
    strata_block_t blocks[BLOCKS];
    strata_stream_t users[BLOCKS];
    strata_pending_t pending;
    snprintf(text, sizeof text, "stack: [stream_safe: {poll: %s}, test_in_order, system]\n", poll);
    RIG(rig, text, 0);
    strata_stream_t owner = rig_stream(&rig);
    for (int n = 0; n < BLOCKS; n++) {
        blocks[n] = rig_allocate(&rig, owner, SIZE);
        users[n] = rig_stream(&rig);
    }
    for (int n = 0; n < BLOCKS; n++) {
        int b = order[n];
        rig_work(&rig, users[b], (early >> n & 1 ? 1 : 5) * MILLISECOND, blocks[b].ref);
        EXPECT_OK(strata_record_stream(rig.s, blocks[b].ref, users[b]));
        EXPECT_OK(strata_free(rig.s, blocks[b].ref));
    }
    freed.count = 0;
    for (int round = 0; round < 2; round++) {
        rig_advance(&rig, 3 * MILLISECOND);
        (void)strata_domain_poll(rig_domain(&rig), &pending);
    }
    ASSERT_EQ(freed.count, BLOCKS);
    uint32_t at = 0;
    for (int late = 0; late < 2; late++)
        for (int n = 0; n < BLOCKS; n++)
            if ((early >> n & 1) != (uint32_t)late) EXPECT_EQ(freed.addresses[at++], (uintptr_t)blocks[order[n]].ptr);
    if (strata_test_has_failed()) FAIL_TEST("poll: %s, early %#x", poll, early);
}

/* The layer below hears of the frees that are over in the order in which the program made them. */
TEST(facade_finished, finished_frees_reach_the_layer_below_in_their_order) {
    register_layer(&noting_type);
    for (uint32_t early = 0; early < 1 << BLOCKS && !strata_test_has_failed(); early++) {
        expect_order("stream", early);
        expect_order("block", early);
    }
}
