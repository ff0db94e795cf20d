/* Users that are told more than once, taken back, and forgotten: each layer that keeps borrows, and the core's own waits where no
 * layer does, wait for the work of those that are left, and for no other's. */
#include <stdio.h>

#include "tests/facade/support/fixture.h"

#define MILLISECOND (1000ull * 1000)
enum { SIZE = 3 * 1024 * 1024, STEP = 20 * 1000 };

/* When nothing of the place is deferred any more; the host's waits count too. */
static uint64_t let_go_at(rig_t *rig, strata_place_t place) {
    strata_domain_t *domain;
    strata_pending_t pending;
    EXPECT_OK(strata_facade_domain(strata_facade_of(rig->s), place, &domain));
    for (int i = 0; i < 2000; i++) {
        (void)strata_domain_poll(domain, &pending);
        if (pending.pending_bytes == 0) return strata_sim_now(rig->world);
        rig_advance(rig, STEP);
    }
    FAIL_TEST("a freed block waits for ever");
    return 0;
}

static uint64_t end_of(rig_t *rig, strata_stream_t stream) { return strata_sim_stream_end(rig->devices[0], stream); }

static void record(rig_t *rig, strata_ref_t ref, strata_stream_t stream) { EXPECT_OK(strata_record_stream(rig->s, ref, stream)); }

/* ---- the stream that was given at allocate, in a place without owners ---- */

static const char *const pinned[] = {
    "stream_safe, auto_growth, system: {memory: pinned}",
    "stream_safe: {event: use}, auto_growth, system: {memory: pinned}",
    "caching, system: {memory: pinned}",
    "buffered, system: {memory: pinned}",
    "bfc, system: {memory: pinned}",
    "naive_best_fit, system: {memory: pinned}",
};
enum { PINNED = sizeof pinned / sizeof *pinned };

TEST(facade_noted_twice, the_stream_of_a_pinned_request_cannot_take_itself_back) {
    for (int i = 0; i < PINNED; i++)
        for (int notes = 0; notes < 3; notes++) {
            char text[200];
            strata_block_t block;
            snprintf(text, sizeof text, "stack: [auto_growth, system]\nplaces: {pinned: [%s]}\n", pinned[i]);
            RIG(rig, text, 0);
            strata_stream_t stream = rig_stream(&rig);
            ASSERT_OK(strata_allocate(rig.s, strata_pinned(), stream, SIZE, &block));
            for (int n = 0; n < notes; n++) record(&rig, block.ref, stream);
            EXPECT_OK(strata_erase_stream(rig.s, block.ref, stream));
            EXPECT_OK(strata_erase_stream(rig.s, block.ref, stream));
            rig_work(&rig, stream, MILLISECOND, 0);
            uint64_t end = end_of(&rig, stream);
            EXPECT_OK(strata_free(rig.s, block.ref));
            EXPECT_GE(let_go_at(&rig, strata_pinned()), end);
            if (strata_test_has_failed()) FAIL_TEST("%s, noted %d times", pinned[i], notes);
        }
}

/* ---- the stream that got what a forgotten one left ---- */

TEST(facade_noted_twice, who_has_a_forgotten_streams_block_cannot_take_itself_back) {
    static const char *const stacks[] = {"stream_safe, auto_growth, system", "auto_growth, system", "caching, system",
                                         "stream_safe, buffered, system"};
    for (int i = 0; i < 4; i++)
        for (int notes = 0; notes < 3; notes++) {
            RIG_STACK(rig, stacks[i], 0);
            strata_stream_t gone = rig_stream(&rig), guest = rig_stream(&rig);
            strata_block_t left = rig_allocate(&rig, gone, SIZE);
            EXPECT_OK(strata_free(rig.s, left.ref));
            EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, gone));
            strata_block_t block = rig_allocate(&rig, guest, SIZE);
            EXPECT_EQ(block.ptr, left.ptr);
            for (int n = 0; n < notes; n++) record(&rig, block.ref, guest);
            EXPECT_OK(strata_erase_stream(rig.s, block.ref, guest));
            rig_work(&rig, guest, MILLISECOND, block.ref);
            uint64_t end = end_of(&rig, guest);
            EXPECT_OK(strata_free(rig.s, block.ref));
            EXPECT_GE(let_go_at(&rig, rig.gpu), end);
            if (strata_test_has_failed()) FAIL_TEST("%s, noted %d times", stacks[i], notes);
        }
}

/* ---- several borrowers ---- */

static const char *const knowing[] = {
    "stream_safe, auto_growth, system",
    "stream_safe: {event: use}, auto_growth, system",
    "stream_safe: {poll: block}, auto_growth, system",
    "caching, system",
    "cuda_malloc_async",
    "auto_growth, system",
    "bfc, system",
    "naive_best_fit, system",
    "caching: {streams: ignored}, system",
    "aligned: {always: true}, caching: {streams: ignored}, system",
};
enum { KNOWING = sizeof knowing / sizeof *knowing };

typedef struct lent {
    rig_t rig;
    strata_stream_t owner, gone, kept;
    strata_block_t block;
} lent_t;

/* A block whose first borrower will be forgotten; which of both handles is the lower one decides the order of some lists. */
static void begin(lent_t *lent, const char *stack, bool gone_first) {
    char text[100];
    snprintf(text, sizeof text, "stack: [%s]\n", stack);
    rig_open(&lent->rig, text, NULL, 0, 0, 1);
    lent->owner = rig_stream(&lent->rig);
    strata_stream_t low = rig_stream(&lent->rig), high = rig_stream(&lent->rig);
    lent->gone = gone_first ? low : high;
    lent->kept = gone_first ? high : low;
    lent->block = rig_allocate(&lent->rig, lent->owner, SIZE);
}

/* The work of both, the forgotten one's the shorter; `end[0]` is its end, `end[1]` the other's. */
static void work(lent_t *lent, uint64_t end[2]) {
    rig_work(&lent->rig, lent->gone, MILLISECOND, lent->block.ref);
    rig_work(&lent->rig, lent->kept, 8 * MILLISECOND, lent->block.ref);
    end[0] = end_of(&lent->rig, lent->gone);
    end[1] = end_of(&lent->rig, lent->kept);
}

/* How often the other borrower is recorded and taken back, and whether that is before the first is forgotten. */
static uint64_t held_until(lent_t *lent, int recorded, int erased, bool before, uint64_t end[2]) {
    rig_t *rig = &lent->rig;
    work(lent, end);
    record(rig, lent->block.ref, lent->gone);
    for (int n = 0; before && n < recorded; n++) record(rig, lent->block.ref, lent->kept);
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, lent->gone));
    for (int n = 0; !before && n < recorded; n++) record(rig, lent->block.ref, lent->kept);
    for (int n = 0; n < erased; n++) EXPECT_OK(strata_erase_stream(rig->s, lent->block.ref, lent->kept));
    EXPECT_OK(strata_free(rig->s, lent->block.ref));
    uint64_t at = let_go_at(rig, rig->gpu);
    EXPECT_OK(strata_validate(rig->s));
    return at;
}

/* One erasing ends all that was recorded of a stream; a forgotten one's work is waited for all the same. */
TEST(facade_noted_twice, beside_a_forgotten_borrower_one_that_is_recorded_twice_is_erased_at_once) {
    for (int i = 0; i < KNOWING; i++)
        for (int variant = 0; variant < 4; variant++) {
            lent_t lent;
            uint64_t end[2];
            begin(&lent, knowing[i], variant & 1);
            uint64_t at = held_until(&lent, 2, 1, variant & 2, end);
            EXPECT_GE(at, end[0]);
            EXPECT_LT(at, end[1]);
            if (strata_test_has_failed()) FAIL_TEST("%s, variant %d", knowing[i], variant);
            rig_close(&lent.rig);
        }
}

/* And recorded anew after that it counts again; so it does where nothing was erased. */
TEST(facade_noted_twice, beside_a_forgotten_borrower_the_other_one_counts_until_it_is_erased) {
    for (int i = 0; i < KNOWING; i++)
        for (int variant = 0; variant < 4; variant++) {
            lent_t lent;
            uint64_t end[2];
            begin(&lent, knowing[i], variant & 1);
            EXPECT_OK(strata_erase_stream(lent.rig.s, lent.block.ref, lent.kept));
            EXPECT_GE(held_until(&lent, 2, 0, variant & 2, end), end[1]);
            if (strata_test_has_failed()) FAIL_TEST("%s, variant %d", knowing[i], variant);
            rig_close(&lent.rig);
        }
}

/* ---- in one block's list ---- */

/* Each borrower in turn is recorded twice and erased once, whatever stands before and after it. */
TEST(facade_noted_twice, each_of_four_borrowers_is_erased_for_itself) {
    static const uint64_t ends[] = {1, 2, 3, 4, 20};
    for (int i = 0; i < KNOWING; i++)
        for (int erased = 0; erased < 4; erased++) {
            lent_t lent;
            begin(&lent, knowing[i], true);
            rig_t *rig = &lent.rig;
            strata_stream_t users[4];
            uint64_t longest = 0;
            for (int n = 0; n < 4; n++) users[n] = rig_stream(rig);
            for (int n = 0; n < 4; n++) {
                rig_work(rig, users[n], ends[n == erased ? 4 : n] * MILLISECOND, lent.block.ref);
                if (n != erased && end_of(rig, users[n]) > longest) longest = end_of(rig, users[n]);
            }
            for (int n = 7; n >= 0; n--) record(rig, lent.block.ref, users[n % 4]);
            EXPECT_OK(strata_erase_stream(rig->s, lent.block.ref, users[erased]));
            EXPECT_OK(strata_free(rig->s, lent.block.ref));
            uint64_t at = let_go_at(rig, rig->gpu);
            EXPECT_GE(at, longest);
            EXPECT_LT(at, end_of(rig, users[erased]));
            if (strata_test_has_failed()) FAIL_TEST("%s, erased %d", knowing[i], erased);
            rig_close(rig);
        }
}

/* The erased stream uses another block of the stack, so the layer has it among its users. */
TEST(facade_noted_twice, erasing_a_stream_without_a_borrow_keeps_the_borrows_of_others) {
    for (int i = 0; i < KNOWING; i++)
        for (int low_first = 0; low_first < 2; low_first++) {
            lent_t lent;
            begin(&lent, knowing[i], low_first);
            rig_t *rig = &lent.rig;
            strata_block_t other = rig_allocate(rig, lent.owner, SIZE);
            record(rig, other.ref, lent.gone);
            rig_work(rig, lent.kept, MILLISECOND, lent.block.ref);
            record(rig, lent.block.ref, lent.kept);
            EXPECT_OK(strata_erase_stream(rig->s, lent.block.ref, lent.gone));
            uint64_t end = end_of(rig, lent.kept);
            EXPECT_OK(strata_free(rig->s, lent.block.ref));
            EXPECT_GE(let_go_at(rig, rig->gpu), end);
            EXPECT_OK(strata_free(rig->s, other.ref));
            if (strata_test_has_failed()) FAIL_TEST("%s, low_first %d", knowing[i], low_first);
            rig_close(rig);
        }
}
