/* What streams and threads that have ended leave in the figures and in the caches. */
#include <pthread.h>
#include <stdio.h>

#include "tests/facade/support/fixture.h"

static const strata_stream_t OWN = (strata_stream_t)2;

static strata_statistics_t of_no_pool(rig_t *rig) {
    strata_statistics_t figures = {.struct_size = sizeof figures};
    EXPECT_OK(strata_statistics_pool(rig->s, rig->gpu, STRATA_POOL_ORDINARY, &figures));
    return figures;
}

/* Its stack ends with the stream; what it counted does not. */
TEST_STACK(facade_ended_streams, the_figures_of_a_forgotten_stream_stay, 0, "stream_safe, system", "cuda_malloc_async",
           "stream_safe, auto_growth, system", "buffered, system") {
    strata_stream_t ends = rig_stream(rig), borrower = rig_stream(rig), stays = rig_stream(rig);
    strata_block_t block = rig_allocate(rig, ends, 30 * MIB), again = rig_allocate(rig, ends, MIB);
    EXPECT_OK(strata_free(rig->s, again.ref));
    rig_borrow(rig, block.ref, borrower, 1000 * 1000);
    EXPECT_OK(strata_free(rig->s, block.ref));
    rig_advance(rig, 3 * 1000 * 1000);
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    strata_statistics_t before = of_no_pool(rig), after;
    EXPECT_GE(before.peak_reserved_bytes, 31 * MIB);
    EXPECT_EQ(before.reserved_bytes, 0);
    uint32_t stack_count = rig_domain(rig)->stack_count;
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, ends));
    EXPECT_LT(rig_domain(rig)->stack_count, stack_count);
    after = of_no_pool(rig);
#define EXPECT_SAME(name, unit, kind, meaning) EXPECT_EQ(after.name, before.name);
    STRATA_STATISTICS_MAP(EXPECT_SAME)
#undef EXPECT_SAME
    EXPECT_EQ(after.peak_reserved_bytes, before.peak_reserved_bytes);
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, stays, MIB).ref));
    EXPECT_GE(of_no_pool(rig).peak_reserved_bytes, before.peak_reserved_bytes);
}

static void *leave_idle(void *argument) {
    rig_t *rig = argument;
    strata_block_t blocks[2] = {rig_allocate(rig, OWN, 30 * MIB), rig_allocate(rig, OWN, 40 * MIB)};
    for (int i = 0; i < 2; i++) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
    return NULL;
}

/* By the first call of another thread on its own default stream. */
TEST_STACK(facade_ended_streams, what_an_exited_threads_own_stream_left_idle_goes_back, 0, "stream_safe, auto_growth, system",
           "buffered, system", "stream_safe, buffered, auto_growth, system") {
    uint64_t began = rig_figures(rig).reserved_bytes;
    in_another_thread(leave_idle, rig);
    EXPECT_GE(rig_figures(rig).reserved_bytes, began + 70 * MIB);
    uint32_t stack_count = rig_domain(rig)->stack_count;
    (void)rig_allocate(rig, OWN, 50 * MIB);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, began + 50 * MIB);
    EXPECT_EQ(rig_domain(rig)->stack_count, stack_count);
    EXPECT_EQ(rig_domain(rig)->orphans, 0);
}

/* The driver gives the handle of a stream that ended to a new one: that is no owner of what the old one left, and what it says of a
 * block counts. */
TEST(facade_ended_streams, a_new_stream_of_an_owners_handle_is_a_borrower) {
    static const char *const stacks[] = {"stream_safe, auto_growth, system", "auto_growth, system", "caching, system",
                                         "cuda_malloc_async", "bfc: {allow_growth: true}, system"};
    for (int i = 0; i < 5; i++)
        for (int on = 0; on < 2; on++) {
            RIG_STACK(rig, stacks[i], 0);
            strata_stream_t old = rig_stream(&rig);
            strata_block_t block = rig_allocate(&rig, old, 3 * MIB);
            rig_end_stream(&rig, old);
            strata_stream_t fresh = rig_stream(&rig);
            ASSERT_EQ(fresh, old);
            if (!on) EXPECT_OK(strata_record_stream(rig.s, block.ref, fresh));
            rig_work(&rig, fresh, 5 * 1000 * 1000, block.ref);
            uint64_t end = strata_sim_stream_end(rig.devices[0], fresh);
            EXPECT_OK(on ? strata_free_on(rig.s, block.ref, fresh) : strata_free(rig.s, block.ref));
            EXPECT_TRUE(rig_figures(&rig).deferred_bytes == block.size || strata_sim_now(rig.world) >= end);
            EXPECT_OK(strata_validate(rig.s));
            rig_advance(&rig, 9 * 1000 * 1000);
            if (strata_test_has_failed()) FAIL_TEST("%s, %s", stacks[i], on ? "free_on" : "record_stream");
        }
}
