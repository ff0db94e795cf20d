/* What a device has given and not got back, told by kind. */
#include "tests/sim/sim_fixture.h"

static const char *held(strata_device_t *device) {
    static char text[256];
    strata_sim_held_t held;
    strata_sim_held(device, &held);
    strata_sim_held_text(&held, text, sizeof text);
    return text;
}

TEST_WORLD(sim_held, every_kind_is_told_until_it_is_given_back, .devices = 2) {
    strata_device_t *d = f->device;
    strata_address_t pinned, host, block;
    strata_handle_t pool, graph, stream = stream_new(d, STRATA_STREAM_NON_BLOCKING);
    EXPECT_STREQ(held(d), "");
    EXPECT_OK(strata_device_malloc(d, STRATA_MEMORY_MANAGED, 4 * MIB, &block));
    EXPECT_STREQ(held(d), "4194304 bytes of device memory, managed included");
    EXPECT_OK(strata_device_free(d, STRATA_MEMORY_MANAGED, block));
    EXPECT_OK(strata_device_host_alloc(d, STRATA_MEMORY_PINNED, 3000, 64, 0, &pinned));
    EXPECT_OK(strata_device_host_alloc(d, STRATA_MEMORY_HOST, 2 * MIB, 64, 0, &host));
    EXPECT_STREQ(held(d), "3000 bytes of pinned memory, 2097152 bytes of host memory");
    EXPECT_OK(strata_device_host_free(d, STRATA_MEMORY_PINNED, pinned));
    EXPECT_OK(strata_device_host_free(d, STRATA_MEMORY_HOST, host));
    mapped_t m = map_new(d, 2 * MIB);
    EXPECT_STREQ(held(d), "2097152 bytes of device memory, managed included, 2097152 bytes of reserved addresses, 1 mappings, "
                          "1 handles of physical memory");
    EXPECT_OK(strata_device_unmap(d, m.address, 2 * MIB));
    EXPECT_OK(strata_device_release(d, m.physical));
    EXPECT_OK(strata_device_unreserve(d, m.address, 2 * MIB));
    strata_handle_t event = event_new(d);
    EXPECT_OK(strata_device_pool_create(d, 0, false, &pool));
    EXPECT_OK(strata_device_capture_begin(d, stream, STRATA_CAPTURE_RELAXED));
    EXPECT_OK(strata_device_capture_end(d, stream, &graph));
    EXPECT_STREQ(held(d), "1 events, 1 pools, 1 graphs");
    EXPECT_STREQ(held(f->other), "");
    EXPECT_OK(strata_device_event_destroy(d, event));
    EXPECT_OK(strata_device_pool_destroy(d, pool));
    EXPECT_OK(strata_device_graph_destroy(d, graph));
    EXPECT_STREQ(held(d), "");
}

TEST(sim_held, a_text_is_cut_to_its_room) {
    char text[12];
    strata_sim_held_text(&(strata_sim_held_t){.events = 3, .pools = 2}, text, sizeof text);
    EXPECT_STREQ(text, "3 events, 2");
}
