#include "platform/sim/sim.h"
#include "tests/harness/test.h"

TEST(sim_memory, first) {
    strata_sim_t *world;
    strata_device_t *device;
    ASSERT_OK(strata_sim_new(NULL, &world));
    ASSERT_OK(strata_sim_open(world, 0, &device));
    strata_address_t a, b;
    ASSERT_OK(strata_device_malloc(device, STRATA_MEMORY_DEVICE, 100, &a));
    ASSERT_OK(strata_device_malloc(device, STRATA_MEMORY_DEVICE, 100 << 20, &b));
    EXPECT_OK(strata_sim_validate(world));
    EXPECT_OK(strata_device_free(device, STRATA_MEMORY_DEVICE, a));
    strata_device_close(device);
    strata_sim_drop(world);
}
