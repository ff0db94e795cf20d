/* The ladder alone, with tries that fail to order. */
#include "allocation/reclaim/recovery.h"
#include "allocation/reclaim/waiting.h"

#include "tests/allocation/bench.h"

typedef struct tries {
    bench_t bench;
    uint32_t count;
    uint32_t freed_in; /* the try during which another thread frees; what it gives is there from the next on */
    uint32_t woken_in; /* one during which another thread frees what is of no use here; 0: none */
    bool heard; /* the free found a waiter */
} tries_t;

/* A free that comes while a request looks for memory in vain: what another thread's call would do, at the worst moment. */
static strata_status_t try_and_miss(void *context, uint32_t extra_flags) {
    tries_t *tries = context;
    (void)extra_flags;
    if (tries->freed_in && tries->count >= tries->freed_in) return STRATA_OK;
    if (++tries->count != tries->freed_in && tries->count != tries->woken_in) return strata_fail(STRATA_E_NO_MEMORY, 0, "nothing");
    uint64_t before = tries->bench.domain->epoch;
    strata_domain_wake(tries->bench.domain);
    tries->heard = tries->bench.domain->epoch != before;
    return strata_fail(STRATA_E_NO_MEMORY, 0, "nothing");
}

static strata_status_t climb_on(tries_t *tries) {
    const strata_layer_type_t *const types[] = {strata_layer_find("retry"), strata_layer_find("auto_growth"),
                                                strata_layer_find("system"), NULL};
    bench_begin(&tries->bench);
    bench_straight(&tries->bench, types, NULL);
    bench_open(&tries->bench, 64 * MIB);
    const strata_reclaim_t config = {.timeout = 50 * 1000 * 1000};
    strata_recovery_t ladder = {
        .stack = tries->bench.stack, .size = MIB, .config = &config, .try_again = try_and_miss, .context = tries};
    strata_status_t status = strata_recovery_run(&ladder);
    EXPECT_EQ(tries->bench.domain->waiters, 0);
    bench_close(&tries->bench);
    return status;
}

static strata_status_t recover(tries_t *tries, uint32_t freed_in) {
    *tries = (tries_t){.freed_in = freed_in};
    return climb_on(tries);
}

/* The bits are set before the last look: a free that this look just missed finds them, and the wait ends at once. */
TEST(ladder, a_free_after_the_last_look_is_heard) {
    tries_t tries;
    EXPECT_STATUS(STRATA_E_NO_MEMORY, recover(&tries, 0));
    uint32_t last_look = tries.count;
    EXPECT_EQ(last_look, 2); /* smaller growth, then the look after the bits */
    EXPECT_OK(recover(&tries, last_look));
    EXPECT_TRUE(tries.heard);
}

/* And one before it needs nobody to hear it: the look finds what it gave. */
TEST(ladder, a_free_before_the_last_look_is_found_by_it) {
    tries_t tries;
    EXPECT_OK(recover(&tries, 1));
    EXPECT_FALSE(tries.heard);
    EXPECT_EQ(tries.count, 1);
}

/* Once woken the request looks again, and what is freed during that look, unseen by it, ends the next sleep at once. Each free is
 * one more look, and no more: a request that is alone does not go on looking. */
TEST(ladder, a_free_during_the_look_of_one_that_was_woken_is_heard) {
    tries_t tries = {.freed_in = 0};
    EXPECT_STATUS(STRATA_E_NO_MEMORY, climb_on(&tries));
    uint32_t last_look = tries.count;
    tries = (tries_t){.woken_in = last_look};
    EXPECT_STATUS(STRATA_E_NO_MEMORY, climb_on(&tries));
    EXPECT_EQ(tries.count, last_look + 1);
    tries = (tries_t){.woken_in = last_look, .freed_in = last_look + 1};
    EXPECT_OK(climb_on(&tries));
    EXPECT_TRUE(tries.heard);
    EXPECT_EQ(tries.count, last_look + 1);
}
