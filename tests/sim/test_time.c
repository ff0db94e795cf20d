/* Costs, stall, and what the profiles say. */
#include "tests/sim/sim_fixture.h"

static uint64_t took(fixture_t *f, uint64_t *before) {
    uint64_t now = strata_sim_now(f->world), way = now - *before;
    *before = now;
    return way;
}

TEST_WORLD(sim_time, memory_calls_cost_what_h100_says, 0) {
    uint64_t t = strata_sim_now(f->world);
    EXPECT_EQ(t, 0);
    strata_address_t a = get(f->device, 256 * MIB);
    EXPECT_EQ(took(f, &t), 37100 + 18560);
    put(f->device, a);
    EXPECT_EQ(took(f, &t), 33500 + 95232);
    ASSERT_OK(strata_device_host_alloc(f->device, STRATA_MEMORY_PINNED, 2 * MIB, 64, 0, &a));
    EXPECT_EQ(took(f, &t), 416000 + 678000);
    EXPECT_OK(strata_device_host_free(f->device, STRATA_MEMORY_PINNED, a));
    EXPECT_EQ(took(f, &t), 194000 + 220000);
    ASSERT_OK(strata_device_host_alloc(f->device, STRATA_MEMORY_HOST, 2 * MIB, 64, 0, &a));
    EXPECT_OK(strata_device_host_free(f->device, STRATA_MEMORY_HOST, a));
    EXPECT_EQ(took(f, &t), 0);
    EXPECT_EQ(figures_of(f->device).device_call_ns, t);
    EXPECT_EQ(figures_of(f->device).stall_ns, 0);
}

static void virtual_memory_costs(const char *profile, uint64_t create, uint64_t map, uint64_t access, uint64_t unmap) {
    fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){.profile = strata_sim_profile(profile)});
    uint64_t t = strata_sim_now(f.world);
    strata_address_t a;
    strata_physical_t handles[2];
    ASSERT_OK(strata_device_reserve(f.device, 64 * MIB, 0, &a));
    EXPECT_EQ(took(&f, &t), 920 + 179);
    for (int i = 0; i < 2; i++) ASSERT_OK(strata_device_create(f.device, 32 * MIB, false, &handles[i]));
    EXPECT_EQ(took(&f, &t), 2 * (create + 1248));
    for (uint64_t i = 0; i < 2; i++) ASSERT_OK(strata_device_map(f.device, a + i * 32 * MIB, 32 * MIB, handles[i]));
    EXPECT_EQ(took(&f, &t), 2 * (map + 128));
    ASSERT_OK(strata_device_set_access(f.device, a, 64 * MIB, NULL, 0));
    EXPECT_EQ(took(&f, &t), 2 * (access + 2176));
    ASSERT_OK(strata_device_unmap(f.device, a, 64 * MIB));
    EXPECT_EQ(took(&f, &t), 2 * (unmap + 864));
    for (int i = 0; i < 2; i++) ASSERT_OK(strata_device_release(f.device, handles[i]));
    EXPECT_EQ(took(&f, &t), 2 * (10300 + 12032));
    EXPECT_OK(strata_device_unreserve(f.device, a, 64 * MIB));
}

TEST(sim_time, virtual_memory_costs_what_the_profiles_say) {
    virtual_memory_costs("h100", 8600, 6000, 23200, 21600);
    virtual_memory_costs("a100", 195000, 1500, 36000, 26000);
    virtual_memory_costs("a10", 195000, 1500, 36000, 26000);
    virtual_memory_costs("rtx4090", 8600, 6000, 23200, 21600);
}

/* Memory sizes are from the data sheets, and cards without measurements are marked as modelled. */
TEST(sim_time, cards_have_the_memory_of_their_data_sheets) {
    static const struct {
        const char *name;
        uint64_t gib;
        bool modelled;
    } cards[] = {{"h100", 80, false}, {"a100", 80, false},   {"l4", 24, true},   {"a10", 24, true},
                 {"h200", 141, true}, {"rtx4090", 24, true}, {"b200", 180, true}};
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++) {
        const strata_sim_profile_t *profile = strata_sim_profile(cards[i].name);
        ASSERT_TRUE(profile);
        EXPECT_EQ(profile->total_bytes, cards[i].gib << 30);
        EXPECT_EQ(profile->modelled, cards[i].modelled);
        fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){.profile = profile});
        EXPECT_EQ(f.device->capabilities.modelled_costs, cards[i].modelled);
    }
}

TEST_WORLD(sim_time, stream_and_event_calls_cost_what_h100_says, 0) {
    strata_handle_t stream = stream_new(f->device, STRATA_STREAM_NON_BLOCKING);
    uint64_t t = strata_sim_now(f->world);
    strata_handle_t event = event_new(f->device);
    EXPECT_EQ(took(f, &t), 330);
    EXPECT_OK(strata_device_event_record(f->device, event, stream));
    EXPECT_EQ(took(f, &t), 430);
    EXPECT_OK(strata_device_event_query(f->device, event));
    EXPECT_EQ(took(f, &t), 330);
    EXPECT_OK(strata_device_stream_wait(f->device, stream, event));
    EXPECT_EQ(took(f, &t), 340);
    EXPECT_OK(strata_device_event_destroy(f->device, event));
    EXPECT_EQ(took(f, &t), 320);
    strata_capture_status_t status;
    EXPECT_OK(strata_device_capture_status(f->device, stream, &status, NULL));
    EXPECT_EQ(took(f, &t), 170);
    EXPECT_EQ(strata_device_event_ready_at(f->device, event), STRATA_NEVER);
    EXPECT_EQ(took(f, &t), 0);
}

TEST(sim_time, profiles_are_found_by_name) {
    EXPECT_STREQ(strata_sim_profile_name(0), "h100");
    EXPECT_STREQ(strata_sim_profile_name(1), "a100");
    EXPECT_EQ(strata_sim_profile_name(7), NULL);
    EXPECT_EQ(strata_sim_profile("b9000"), NULL);
    for (size_t i = 0; strata_sim_profile_name(i); i++)
        EXPECT_STREQ(strata_sim_profile(strata_sim_profile_name(i))->name, strata_sim_profile_name(i));
}

TEST(sim_time, wrong_profiles_are_refused) {
    strata_sim_profile_t profile = *strata_sim_profile("h100");
    const strata_sim_options_t options = {.profile = &profile};
    strata_sim_t *world;
    profile.granule_bytes = 3 * MIB;
    EXPECT_STATUS(STRATA_E_INVALID, strata_sim_new(&options, &world));
    profile = *strata_sim_profile("h100");
    profile.foreign_bytes = UINT64_MAX;
    EXPECT_STATUS(STRATA_E_INVALID, strata_sim_new(&options, &world));
    profile = *strata_sim_profile("h100");
    profile.pack_below_bytes = 4 * MIB;
    EXPECT_STATUS(STRATA_E_INVALID, strata_sim_new(&options, &world));
}

TEST_WORLD(sim_time, the_clock_is_the_threads_and_sleeping_is_stall, 0) {
    EXPECT_TRUE(f->device->clock->is_virtual);
    strata_sim_advance_to(f->world, 5000);
    EXPECT_EQ(f->device->clock->now(f->device->clock), 5000);
    EXPECT_EQ(figures_of(f->device).stall_ns, 0);
    f->device->clock->sleep_until(f->device->clock, 9000);
    EXPECT_EQ(strata_sim_now(f->world), 9000);
    EXPECT_EQ(figures_of(f->device).stall_ns, 4000);
    f->device->clock->sleep_until(f->device->clock, 100);
    strata_sim_advance_to(f->world, 100);
    EXPECT_EQ(strata_sim_now(f->world), 9000);
    EXPECT_EQ(figures_of(f->device).device_call_ns, 0);
}

TEST_WORLD(sim_time, free_waits_for_all_work_and_the_wait_is_stall, 0) {
    strata_handle_t stream = stream_new(f->device, STRATA_STREAM_NON_BLOCKING);
    strata_address_t a = get(f->device, 2 * MIB), m;
    ASSERT_OK(strata_device_malloc(f->device, STRATA_MEMORY_MANAGED, 2 * MIB, &m));
    ASSERT_OK(strata_device_work(f->device, stream, 1000 * US, NULL, 0));
    uint64_t end = strata_sim_stream_end(f->device, stream), now = strata_sim_now(f->world);
    EXPECT_EQ(end, now + 1000 * US);
    put(f->device, a);
    EXPECT_EQ(strata_sim_now(f->world), end + 33500 + 744);
    EXPECT_EQ(figures_of(f->device).stall_ns, 1000 * US);
    ASSERT_OK(strata_sim_stream_busy_until(f->device, stream, strata_sim_now(f->world) + 7000));
    EXPECT_OK(strata_device_free(f->device, STRATA_MEMORY_MANAGED, m));
    EXPECT_EQ(figures_of(f->device).stall_ns, 1000 * US + 7000);
}

/* A promise is as if it had been submitted when it was made; the latest end counts, whatever the order. */
TEST_WORLD(sim_time, promised_work_is_there_for_whoever_looks, 0) {
    strata_handle_t stream = stream_new(f->device, STRATA_STREAM_NON_BLOCKING),
                    other = stream_new(f->device, STRATA_STREAM_NON_BLOCKING);
    strata_sim_stream_t *a = strata_sim_stream_find(f->device, stream), *b = strata_sim_stream_find(f->device, other);
    ASSERT_TRUE(a && b);
    strata_address_t block = get(f->device, 2 * MIB);
    uint64_t now = strata_sim_now(f->world);
    strata_sim_stream_promise(a, now + 7000);
    strata_sim_stream_promise(b, now + 9000);
    strata_sim_stream_promise(a, now + 5000);
    EXPECT_EQ(strata_sim_stream_end(f->device, stream), now + 7000);
    EXPECT_EQ(strata_sim_device_end(f->device), now + 9000);
    strata_sim_stream_promise(a, now + 6000);
    EXPECT_EQ(strata_sim_stream_end(f->device, stream), now + 7000);
    strata_sim_stream_promise(a, now + 20000);
    EXPECT_STATUS(STRATA_E_NOT_READY, strata_device_stream_query(f->device, stream));
    now += 20000;
    put(f->device, block);
    EXPECT_GT(figures_of(f->device).stall_ns, 0);
    EXPECT_GE(strata_sim_now(f->world), now);
    EXPECT_EQ(strata_sim_stream_find(f->device, (strata_handle_t)((uintptr_t)stream + 16 * 9)), NULL);
    EXPECT_EQ(*strata_sim_clock(f->world), strata_sim_now(f->world));
}

TEST(sim_time, a_profile_may_say_that_free_does_not_wait) {
    strata_sim_profile_t profile = *strata_sim_profile("h100");
    profile.free_waits = false;
    fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){.profile = &profile});
    strata_address_t a = get(f.device, 2 * MIB);
    ASSERT_OK(strata_device_work(f.device, NULL, 1000 * US, NULL, 0));
    put(f.device, a);
    EXPECT_EQ(figures_of(f.device).stall_ns, 0);
}

TEST_WORLD(sim_time, virtual_memory_calls_do_not_wait, 0) {
    mapped_t m = map_new(f->device, 2 * MIB);
    ASSERT_OK(strata_device_work(f->device, NULL, 1000000 * US, NULL, 0));
    ASSERT_OK(strata_device_unmap(f->device, m.address, 2 * MIB));
    ASSERT_OK(strata_device_release(f->device, m.physical));
    ASSERT_OK(strata_device_unreserve(f->device, m.address, 2 * MIB));
    EXPECT_EQ(figures_of(f->device).stall_ns, 0);
}
