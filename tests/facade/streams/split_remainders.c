/* What is left of a block that was cut is still its last user's: another stream gets it after that one's work. */
#include <stdio.h>

#include "tests/facade/support/fixture.h"

#define MILLISECOND (1000ull * 1000)

static const char *const stacks[] = {"bfc: {allow_growth: true}, system", "caching: {streams: ignored}, system",
                                     "naive_best_fit: {streams: ignored}, system"};
enum { STACKS = sizeof stacks / sizeof *stacks };

/* A stream leaves a block at work, and takes so many parts of it back; another stream is served from the rest. */
static void expect_a_wait(const char *stack, int parts) {
    RIG_STACK(rig, stack, 0);
    strata_stream_t user = rig_stream(&rig), next = rig_stream(&rig);
    strata_block_t whole = rig_allocate(&rig, user, 100 * MIB);
    uintptr_t begin = (uintptr_t)whole.ptr;
    rig_work(&rig, user, 5 * MILLISECOND, whole.ref);
    uint64_t end = strata_sim_stream_end(rig.devices[0], user);
    EXPECT_OK(strata_free(rig.s, whole.ref));
    for (int n = 0; n < parts; n++) (void)rig_allocate(&rig, user, 10 * MIB);
    EXPECT_LT(strata_sim_now(rig.world), end);
    strata_block_t rest = rig_allocate(&rig, next, 40 * MIB);
    EXPECT_TRUE((uintptr_t)rest.ptr >= begin && (uintptr_t)rest.ptr < begin + 100 * MIB);
    EXPECT_GE(strata_sim_now(rig.world), end);
    if (strata_test_has_failed()) FAIL_TEST("%s, %d parts", stack, parts);
}

TEST(facade_rests, the_rest_of_a_cut_block_waits_for_its_last_user) {
    for (int i = 0; i < STACKS; i++)
        for (int parts = 0; parts <= 3; parts++) expect_a_wait(stacks[i], parts);
}

/* Merged again from parts of two streams, a block is served after the work of both. */
TEST(facade_rests, a_merged_block_waits_for_the_users_of_both_parts) {
    for (int i = 0; i < STACKS; i++)
        for (int order = 0; order < 4; order++) {
            RIG_STACK(rig, stacks[i], 0);
            strata_stream_t users[2] = {rig_stream(&rig), rig_stream(&rig)}, next = rig_stream(&rig);
            strata_block_t whole = rig_allocate(&rig, users[0], 100 * MIB), part[2];
            uintptr_t begin = (uintptr_t)whole.ptr;
            EXPECT_OK(strata_free(rig.s, whole.ref));
            for (int n = 0; n < 2; n++) part[n] = rig_allocate(&rig, users[n], 40 * MIB);
            uint64_t last = 0;
            for (int n = 0; n < 2; n++) {
                rig_work(&rig, users[n], (n == (order & 1) ? 9u : 3u) * MILLISECOND, part[n].ref);
                uint64_t end = strata_sim_stream_end(rig.devices[0], users[n]);
                if (end > last) last = end;
            }
            for (int n = 0; n < 2; n++) EXPECT_OK(strata_free(rig.s, part[n ^ (order >> 1)].ref));
            strata_block_t all = rig_allocate(&rig, next, 90 * MIB);
            EXPECT_EQ((uintptr_t)all.ptr, begin);
            EXPECT_GE(strata_sim_now(rig.world), last);
            if (strata_test_has_failed()) FAIL_TEST("%s, order %d", stacks[i], order);
        }
}

/* Memory of a driver's pool is valid in the order of the stream that asked for it: what is left of it is another stream's after the
 * work that it came after. */
TEST_STACK(facade_rests, what_came_in_a_streams_order_waits_for_that_stream, 0, "bfc: {allow_growth: true}, cuda_malloc_async",
           "caching: {streams: ignored}, cuda_malloc_async", "naive_best_fit: {streams: ignored}, cuda_malloc_async") {
    strata_stream_t asks = rig_stream(rig), next = rig_stream(rig);
    rig_work(rig, asks, 90 * MILLISECOND, 0);
    uint64_t end = strata_sim_stream_end(rig->devices[0], asks);
    (void)rig_allocate(rig, asks, MIB);
    EXPECT_LT(strata_sim_now(rig->world), end);
    uint64_t calls = rig_calls(rig, STRATA_CALL_malloc_async);
    (void)rig_allocate(rig, next, MIB / 2);
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_malloc_async), calls);
    EXPECT_GE(strata_sim_now(rig->world), end);
}
