/* Shared ownership: a block lives until each of its owners has freed it. */
#include <pthread.h>

#include "platform/host/host_memory.h"
#include "tests/facade/support/fixture.h"

#define PRESETS "strata", "paddle", "system"
enum { OWNERS = 1000, THREADS = 4 };

TEST_RIG(facade_share, the_last_owner_gives_it_back, 0, PRESETS) {
    strata_block_t a = rig_allocate(rig, NULL, 1000);
    (void)rig_allocate(rig, NULL, 1000);
    EXPECT_OK(strata_retain(rig->s, a.ref));
    EXPECT_OK(strata_retain(rig->s, a.ref));
    EXPECT_OK(strata_free(rig->s, a.ref));
    EXPECT_OK(strata_free_pointer(rig->s, a.ptr));
    EXPECT_EQ(rig_figures(rig).live_allocations, 2);
    EXPECT_OK(strata_release_ref(rig->s, a.ref));
    EXPECT_EQ(rig_figures(rig).live_allocations, 1);
    EXPECT_STATUS(STRATA_E_STALE, strata_release_ref(rig->s, a.ref));
    EXPECT_STATUS(STRATA_E_STALE, strata_retain(rig->s, a.ref));
}

TEST_RIG(facade_share, whoever_is_served_next_is_alone, 0, "strata") {
    strata_block_t a = rig_allocate(rig, NULL, 1000);
    EXPECT_OK(strata_retain(rig->s, a.ref));
    RIG_FREE(rig, a, a);
    strata_block_t b = rig_allocate(rig, NULL, 1000);
    EXPECT_EQ(a.ptr, b.ptr);
    EXPECT_OK(strata_free(rig->s, b.ref));
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig->s, b.ref));
    strata_block_t nothing = rig_allocate(rig, NULL, 0);
    EXPECT_OK(strata_retain(rig->s, nothing.ref));
    RIG_FREE(rig, nothing, nothing);
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig->s, nothing.ref));
}

/* The use that the first owner told is respected when the second, who knows of none, frees. */
TEST_RIG(facade_share, the_uses_of_earlier_owners_count, 0, PRESETS) {
    strata_stream_t side = rig_stream(rig);
    strata_block_t a = rig_allocate(rig, NULL, 4096);
    EXPECT_OK(strata_retain(rig->s, a.ref));
    rig_work(rig, side, 50 * 1000, a.ref);
    uint64_t busy_until = strata_sim_now(rig->world) + 40 * 1000;
    EXPECT_OK(strata_free_on(rig->s, a.ref, side));
    EXPECT_EQ(rig_figures(rig).live_allocations, 1);
    EXPECT_OK(strata_free(rig->s, a.ref));
    EXPECT_EQ(rig_figures(rig).live_allocations, 0);
    strata_block_t b = rig_allocate(rig, NULL, 4096);
    EXPECT_TRUE(b.ptr != a.ptr || strata_sim_now(rig->world) >= busy_until);
    EXPECT_OK(strata_free_on(rig->s, b.ref, side));
}

TEST_RIG(facade_share, a_table_that_cannot_be_had_changes_nothing, 0, "strata") {
    strata_block_t a = rig_allocate(rig, NULL, 1000);
    strata_host_fail_at(1, 0);
    EXPECT_STATUS(STRATA_E_HOST_MEMORY, strata_retain(rig->s, a.ref));
    strata_host_fail_at(0, 0);
    EXPECT_OK(strata_free(rig->s, a.ref));
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig->s, a.ref));
}

typedef struct sharer {
    rig_t *rig;
    strata_ref_t ref;
} sharer_t;

static void *retain_and_free(void *argument) {
    sharer_t *sharer = argument;
    for (int i = 0; i < OWNERS; i++) {
        EXPECT_OK(strata_retain(sharer->rig->s, sharer->ref));
        EXPECT_OK(strata_free(sharer->rig->s, sharer->ref));
    }
    return NULL;
}

TEST_RIG(facade_share, threads_count_one_block_together, 0, "strata") {
    strata_block_t a = rig_allocate(rig, NULL, 1000);
    sharer_t sharers[THREADS];
    for (int i = 0; i < THREADS; i++) sharers[i] = (sharer_t){rig, a.ref};
    in_threads(retain_and_free, sharers, sizeof *sharers, THREADS);
    EXPECT_EQ(rig_figures(rig).live_allocations, 1);
    EXPECT_OK(strata_free(rig->s, a.ref));
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig->s, a.ref));
}
