/* Peer GPUs: what exists and what comes, under every kind of source. */
#include "tests/share/share.h"

static const char *const strategies[] = {
    CACHED,
    ONE_HANDLE,
    ONLY_VMM,
    "stack: [stream_safe, auto_growth, system]\n",
    "stack: [cuda_malloc_async]\n",
    "stack: [cuda_malloc_async: {pool: own}]\n",
};

TEST(peer_access, what_exists_and_what_comes) {
    for (size_t i = 0; i < COUNT(strategies); i++) {
        OPENED(rig_t, rig, rig_finish, open_two(&rig, strategies[i]));
        strata_block_t before = rig_allocate(&rig, NULL, 3 * MIB);
        EXPECT_FALSE(can_use(&rig, 1, before.ptr, before.size));
        ASSERT_OK(strata_enable_peer(rig.s, 0, 1));
        EXPECT_TRUE(can_use(&rig, 1, before.ptr, before.size));
        strata_block_t after = rig_allocate(&rig, rig_stream(&rig), 40 * MIB);
        EXPECT_TRUE(can_use(&rig, 1, after.ptr, after.size));
        EXPECT_OK(strata_enable_peer(rig.s, 0, 1));
    }
}

TEST(peer_access, the_other_direction_is_another_matter) {
    for (size_t i = 0; i < COUNT(strategies); i++) {
        OPENED(rig_t, rig, rig_finish, open_two(&rig, strategies[i]));
        ASSERT_OK(strata_enable_peer(rig.s, 0, 1));
        strata_block_t other = rig_allocate_in(&rig, strata_gpu(1), NULL, 3 * MIB);
        EXPECT_FALSE(can_use(&rig, 0, other.ptr, other.size));
    }
}

TEST(peer_access, named_pools_and_another_strategy_too) {
    static const char pools[] = CACHED "pools: {weights: {stack: [stream_safe, auto_growth, vmm]}}\n";
    const strata_open_options_t options = {.struct_size = sizeof options, .text = pools};
    OPENED(rig_t, rig, rig_finish, open_two(&rig, CACHED));
    ASSERT_OK(strata_enable_peer(rig.s, 0, 1));
    ASSERT_OK(strata_change_strategy(rig.s, &options));
    uint64_t pool;
    ASSERT_OK(strata_pool(rig.s, "weights", &pool));
    strata_block_t block = rig_allocate_with(
        &rig, NULL, &(strata_allocate_options_t){.struct_size = sizeof(strata_allocate_options_t), .size = MIB, .pool = pool});
    EXPECT_TRUE(can_use(&rig, 1, block.ptr, block.size));
}

TEST(peer_access, what_views_serve_has_it) {
    OPENED(rig_t, rig, rig_finish, open_two(&rig, CACHED));
    ASSERT_OK(strata_enable_peer(rig.s, 0, 1));
    strata_block_t large = make_join(&rig);
    EXPECT_GT(joins_of(&rig), 0);
    EXPECT_TRUE(can_use(&rig, 1, large.ptr, large.size));
}

/* A refusal in the middle: what comes is not opened, and the next try opens all. */
TEST(peer_access, a_refused_access_enables_nothing) {
    OPENED(rig_t, rig, rig_finish, open_two(&rig, CACHED));
    strata_block_t block = rig_allocate(&rig, NULL, 30 * MIB);
    for (uint64_t k = 1;; k++) {
        ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_set_access, k, false, STRATA_E_DEVICE));
        strata_status_t status = strata_enable_peer(rig.s, 0, 1);
        strata_sim_clear_faults(rig.devices[0]);
        if (status == STRATA_OK) break;
        EXPECT_EQ(status, STRATA_E_DEVICE);
        EXPECT_EQ(rig_domain(&rig)->peers, 0);
        EXPECT_OK(strata_validate(rig.s));
    }
    EXPECT_TRUE(can_use(&rig, 1, block.ptr, block.size));
}

TEST(peer_access, wrong_devices_are_named) {
    OPENED(rig_t, rig, rig_finish, open_two(&rig, CACHED));
    EXPECT_STATUS(STRATA_E_INVALID, strata_enable_peer(rig.s, 0, 0));
    EXPECT_STATUS(STRATA_E_INVALID, strata_enable_peer(rig.s, 0, 2));
    EXPECT_STATUS(STRATA_E_INVALID, strata_enable_peer(rig.s, 77, 1));
}

/* A peer comes while other threads ask for memory: in the end it reaches everything. */
static void *allocate_many(void *context) {
    rig_t *rig = context;
    strata_stream_t stream = rig_stream(rig);
    for (size_t i = 0; i < 60; i++) {
        strata_block_t block = {0};
        if (strata_allocate(rig->s, rig->gpu, stream, (1 + i % 7) * MIB, &block) != STRATA_OK) continue;
        if (i % 3) EXPECT_OK(strata_free(rig->s, block.ref));
        else rig_register(rig, block.ref);
    }
    return NULL;
}

TEST(peer_access, a_peer_comes_while_others_allocate) {
    OPENED(rig_t, rig, rig_finish, open_two(&rig, CACHED));
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) ASSERT_EQ(pthread_create(&threads[i], NULL, allocate_many, &rig), 0);
    EXPECT_OK(strata_enable_peer(rig.s, 0, 1));
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    for (uint32_t i = 0; i < rig.registered_count; i++) {
        void *base;
        size_t size;
        if (strata_base_of(rig.s, rig.registered[i], &base, &size) != STRATA_OK) continue;
        EXPECT_TRUE(can_use(&rig, 1, base, size));
    }
}
