/* Managed memory under the place gpu: more than the device has. */
#include "tests/facade/support/fixture.h"

TEST_RIG(facade_managed_gpu, serves_more_than_the_device_has, 64 * MIB,
         "stack: [retry: {timeout: 0}, stream_safe, auto_growth, system: {memory: managed, prefetch: device}]") {
    (void)rig_allocate(rig, NULL, 100 * MIB);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 100 * MIB);
}

TEST_RIG(facade_managed_gpu, a_block_of_a_running_stream_is_served_again_in_its_order_alone, 0,
         "stack: [system: {memory: managed}]") {
    strata_stream_t stream = rig_stream(rig);
    strata_block_t a = rig_allocate(rig, stream, MIB);
    rig_work(rig, stream, 1000 * 1000, a.ref);
    uint64_t end = strata_sim_stream_end(rig->devices[0], stream);
    EXPECT_OK(strata_free(rig->s, a.ref));
    EXPECT_GE(strata_sim_now(rig->world), end);
}
