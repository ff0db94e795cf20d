/* Frees that the device refuses, or that a capture puts off: what is counted of them afterwards, and what the end of the layer gives. */
#include "facade/open/life.h"
#include "tests/async/async.h"

#define LONG (1000ull * 1000 * 1000)

static void add_live(const strata_layer_figure_t *figure, void *context) {
    if (strcmp(figure->name, "live_bytes") == 0) *(uint64_t *)context += figure->value;
}

static uint64_t live_bytes(rig_t *rig) {
    uint64_t live = 0;
    EXPECT_OK(strata_layer_figures(rig->s, rig->gpu, add_live, &live));
    return live;
}

TEST(async_undone, a_refused_block_is_offered_twice_at_the_end) {
    OPENED(rig_t, rig, rig_end, async_open(&rig, NULL, 0, 64 * MIB, false));
    strata_block_t block = rig_allocate(&rig, NULL, 40 * MIB);
    ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_free_async, 1, false, STRATA_E_DEVICE));
    EXPECT_OK(strata_free(rig.s, block.ref));
    EXPECT_EQ(rig_figures(&rig).quarantined_bytes, 40 * MIB);
    ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_free, 1, false, STRATA_E_DEVICE));
    EXPECT_OK(strata_close(rig.s, STRATA_CLOSE_WAIT, NULL, NULL));
    EXPECT_EQ(async_used(&rig), 0);
}

/* Nobody can wait for the owner's work; that the borrower's can be waited for is not enough. */
TEST(async_undone, a_block_of_which_one_user_cannot_be_waited_for_is_quarantined) {
    RIG_BY(rig, async_open(&rig, NULL, 0, 0, false));
    strata_block_t block = rig_allocate(&rig, rig_stream(&rig), 40 * MIB);
    rig_borrow(&rig, block.ref, rig_stream(&rig), LONG);
    ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_event_record, 1, false, STRATA_E_DEVICE));
    ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_stream_synchronise, 1, false, STRATA_E_DEVICE));
    ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_synchronise, 1, false, STRATA_E_DEVICE));
    EXPECT_OK(strata_free(rig.s, block.ref));
    strata_sim_clear_faults(rig.devices[0]);
    EXPECT_EQ(rig_figures(&rig).quarantined_bytes, 40 * MIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_free_async), 0);
    EXPECT_EQ(live_bytes(&rig), 0);
    EXPECT_OK(strata_validate(rig.s));
}

/* Freed beside a capture, it counts as live no more, and its free after the capture changes nothing of that. */
TEST(async_undone, a_free_that_is_put_off_counts_once) {
    RIG_BY(rig, async_open(&rig, NULL, 0, 0, false));
    strata_stream_t captured = rig_stream(&rig), other = rig_stream(&rig);
    strata_block_t kept = rig_allocate(&rig, other, 3 * MIB), block = rig_allocate(&rig, other, 40 * MIB);
    uint64_t pool = 0;
    ASSERT_OK(strata_graph_pool_begin(rig.s, rig.gpu, captured, &pool));
    EXPECT_OK(strata_free(rig.s, block.ref));
    EXPECT_EQ(live_bytes(&rig), kept.size);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_free_async), 0);
    ASSERT_OK(strata_graph_pool_end(rig.s, rig.gpu, pool));
    EXPECT_OK(strata_graph_pool_remove(rig.s, rig.gpu, pool));
    (void)rig_release(&rig);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_free_async), 1);
    EXPECT_EQ(live_bytes(&rig), kept.size);
}

/* Another strategy's instances look at what waits as long as anything is counted. */
TEST(async_undone, an_instance_that_ends_leaves_no_waiting_frees) {
    RIG_BY(rig, async_open(&rig, NULL, 0, 0, false));
    (void)rig_free_deferred(&rig, rig_stream(&rig), rig_stream(&rig), 40 * MIB, LONG);
    EXPECT_EQ(atomic_load(&rig_domain(&rig)->pool_frees), 1);
    strata_open_options_t options = {.struct_size = sizeof options, .preset = "strata", .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    ASSERT_OK(strata_change_strategy(rig.s, &options));
    (void)rig_allocate(&rig, NULL, MIB);
    EXPECT_EQ(atomic_load(&rig_domain(&rig)->pool_frees), 0);
}

/* The end of a pool is refused once, and asked for again. */
TEST(async_undone, the_end_of_a_pool_is_asked_for_twice) {
    static const struct {
        const char *pool;
        strata_device_call_t call;
    } rows[] = {{"cuda_malloc_async.pool=own", STRATA_CALL_pool_destroy},
                {"cuda_malloc_async.pool=default", STRATA_CALL_pool_trim}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        OPENED(rig_t, rig, rig_end, async_open(&rig, &rows[i].pool, 1, 0, false));
        EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, NULL, 40 * MIB).ref));
        ASSERT_OK(strata_sim_fail(rig.devices[0], rows[i].call, 1, false, STRATA_E_DEVICE));
        EXPECT_OK(strata_close(rig.s, STRATA_CLOSE_FORCE, NULL, NULL));
        EXPECT_EQ(async_used(&rig), 0);
    }
}

/* The peer came before the pool was there, so the first request gives it access. */
TEST(async_undone, a_request_without_access_for_a_peer_is_refused) {
    RIG_BY(rig, rig_open(&rig, "cuda_malloc_async", NULL, 0, 0, 2));
    strata_block_t block = {.ref = 7};
    ASSERT_OK(strata_enable_peer(rig.s, 0, 1));
    ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_pool_set_access, 1, false, STRATA_E_DEVICE));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_allocate(rig.s, rig.gpu, NULL, MIB, &block));
    EXPECT_EQ(block.ref, 7);
    block = rig_allocate(&rig, NULL, MIB);
    EXPECT_OK(strata_device_fill(rig.devices[1], (uintptr_t)block.ptr, 1, block.size, NULL));
}

static uint32_t covered_granules(rig_t *rig) { return rig_domain(rig)->directory->used - rig_domain(rig)->directory->free_count; }

/* Its addresses are the layer's as long as the device has not got them back. */
TEST(async_undone, a_refused_block_stays_covered) {
    RIG_BY(rig, async_open(&rig, NULL, 0, 0, false));
    EXPECT_OK(strata_free_pointer(rig.s, rig_allocate(&rig, NULL, 1000).ptr));
    uint32_t before = covered_granules(&rig);
    strata_block_t block = rig_allocate(&rig, NULL, 40 * MIB);
    uint32_t covered = covered_granules(&rig);
    EXPECT_GT(covered, before);
    ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_free_async, 1, false, STRATA_E_DEVICE));
    EXPECT_OK(strata_free(rig.s, block.ref));
    EXPECT_EQ(covered_granules(&rig), covered);
}
