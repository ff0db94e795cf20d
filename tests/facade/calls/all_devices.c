/* Pinned memory, which all devices of a facade reach: the default streams have one name on each of them. */
#include "tests/facade/support/fixture.h"

enum { SIZE = 300 * 1024, LONG = 1000 * 1000 };

static const strata_stream_t names[] = {NULL, (strata_stream_t)1, (strata_stream_t)2};
static const char *const strategies[] = {
    "strata",
    "stack: [stream_safe, auto_growth, system]\nplaces: {pinned: [stream_safe: {event: use}, auto_growth, system]}\n",
    "stack: [caching, system]\nplaces: {pinned: [caching, system]}\n",
    "stack: [auto_growth, system]\nplaces: {pinned: [auto_growth, system]}\n",
};

static void borrow(rig_t *rig, strata_block_t block, strata_stream_t stream) {
    EXPECT_OK(strata_record_stream(rig->s, block.ref, stream));
}

/* Whether the memory of a block that a default stream of `worker` uses is served before that use is over. */
static bool is_served_too_early(const char *strategy, strata_stream_t stream, uint32_t worker, bool after_the_borrow) {
    RIG_BY(rig, rig_open(&rig, strategy, NULL, 0, 0, 2));
    strata_block_t block = rig_allocate_in(&rig, strata_pinned(), NULL, SIZE);
    if (!after_the_borrow) EXPECT_OK(strata_stream_work(rig.s, strata_gpu(worker), stream, LONG, NULL, 0));
    borrow(&rig, block, stream);
    if (after_the_borrow) EXPECT_OK(strata_stream_work(rig.s, strata_gpu(worker), stream, LONG, NULL, 0));
    uint64_t done = strata_sim_stream_end(rig.devices[worker], stream);
    EXPECT_OK(strata_free(rig.s, block.ref));
    strata_block_t next = rig_allocate_in(&rig, strata_pinned(), NULL, SIZE);
    bool early = next.ptr == block.ptr && strata_sim_now(rig.world) < done;
    return early;
}

TEST(facade_all_devices, a_default_stream_of_any_device_keeps_pinned_memory_until_its_work_is_over) {
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            for (uint32_t worker = 0; worker < 2; worker++)
                for (int after = 0; after < 2; after++)
                    if (is_served_too_early(strategies[i], names[k], worker, after))
                        FAIL_TEST("%s: stream %p of device %u, work %s the borrow", strategies[i], names[k], (unsigned)worker,
                                  after ? "after" : "before");
}

/* One device has one stream of that name: its free is deferred, as any, and the host does not wait. */
TEST_RIG(facade_all_devices, a_default_stream_of_the_only_device_is_not_waited_for, 0, "strata") {
    strata_block_t block = rig_allocate_in(rig, strata_pinned(), NULL, SIZE);
    borrow(rig, block, NULL);
    EXPECT_OK(strata_stream_work(rig->s, rig->gpu, NULL, LONG, NULL, 0));
    uint64_t waits = rig_calls(rig, STRATA_CALL_stream_synchronise) + rig_calls(rig, STRATA_CALL_synchronise);
    EXPECT_OK(strata_free(rig->s, block.ref));
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_stream_synchronise) + rig_calls(rig, STRATA_CALL_synchronise), waits);
    strata_block_t next = rig_allocate_in(rig, strata_pinned(), NULL, SIZE);
    EXPECT_NE(next.ptr, block.ptr);
}
