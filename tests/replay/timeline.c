/* The execution model by itself: no allocator, only the host's clock and what the GPU does. */
#include "lab/replay/timeline/timeline.h"

#include "tests/harness/test.h"
#include "tests/replay/support/helpers.h"

typedef struct world {
    strata_trace_t *trace;
    strata_machine_t machine;
    strata_timeline_t timeline;
    bool good;
} world_t;

static void begin_on(world_t *world, const char *text, uint64_t lag_ns, bool legacy, const strata_sim_profile_t *profile) {
    strata_target_t target = {.profile = profile};
    strata_timeline_options_t options = {.lag_ns = lag_ns, .legacy_default = legacy};
    *world = (world_t){.trace = trace_of(text)};
    ASSERT_NE(world->trace, NULL);
    ASSERT_OK(strata_machine_open(&target, world->trace->devices, &world->machine));
    world->good = true;
    ASSERT_OK(strata_timeline_begin(&world->timeline, world->trace, &world->machine, &options));
}

static void begin(world_t *world, const char *text, uint64_t lag_ns, bool legacy) {
    begin_on(world, text, lag_ns, legacy, strata_sim_profile("h100"));
}

static void end(world_t *world) {
    if (world->timeline.streams) strata_timeline_end(&world->timeline);
    if (world->good) strata_machine_close(&world->machine);
    strata_trace_delete(world->trace);
}

/* Nanoseconds since the program began. */
static uint64_t host(const world_t *world) { return strata_sim_now(world->machine.world) - world->timeline.began; }

static uint64_t gpu(const world_t *world, uint32_t stream) {
    strata_device_t *device = world->machine.devices[world->timeline.streams[stream].device];
    uint64_t end_of = strata_sim_stream_end(device, world->timeline.streams[stream].handle);
    return end_of < world->timeline.began ? 0 : end_of - world->timeline.began;
}

/* A test of the world of this trace. */
#define TEST_TIMELINE(name, lag_ns, text) TEST_WITH(timeline, name, world_t, world, end, begin(world, text, lag_ns, false))

TEST_TIMELINE(the_host_moves_by_differences, LAG, COLUMNS "alloc,1,8,0,100\nfree,1,0,0,350\n") {
    strata_timeline_move(&world->timeline, 100);
    EXPECT_EQ(host(world), 0);
    strata_timeline_move(&world->timeline, 350);
    EXPECT_EQ(host(world), 250000);
    strata_sim_advance_to(world->machine.world, world->timeline.began + 1000000); /* an allocator took its time */
    strata_timeline_move(&world->timeline, 400);
    EXPECT_EQ(host(world), 1050000);
}

TEST_TIMELINE(without_work_the_gpu_runs_after, LAG, COLUMNS "alloc,1,8,0,0\nalloc,2,8,3,0\n") {
    strata_timeline_move(&world->timeline, 1000);
    strata_timeline_use(&world->timeline, 0);
    EXPECT_EQ(gpu(world, 0), 0); /* nothing is held yet */
    strata_timeline_hold(&world->timeline, 0);
    strata_timeline_use(&world->timeline, 0);
    EXPECT_EQ(gpu(world, 0), 2000000); /* as far after as the host had time to get ahead */
    strata_timeline_move(&world->timeline, 20000);
    strata_timeline_use(&world->timeline, 1); /* holds nothing, but the device is busy all the same */
    EXPECT_EQ(gpu(world, 1), 0);
    EXPECT_EQ(gpu(world, 0), 25000000);
    strata_timeline_drop(&world->timeline, 0);
    strata_timeline_move(&world->timeline, 30000);
    strata_timeline_use(&world->timeline, 0);
    EXPECT_EQ(gpu(world, 0), 25000000);
    EXPECT_EQ(strata_timeline_length(&world->timeline), 30000000);
}

/* Whose work ends last is looked for anew, from the first stream on, when the one that was is in use no more. */
TEST_TIMELINE(another_stream_in_use_keeps_the_gpu_busy, LAG, COLUMNS "alloc,1,8,0,0\nalloc,2,8,1,0\nalloc,3,8,2,0\n") {
    strata_timeline_hold(&world->timeline, 1);
    strata_timeline_hold(&world->timeline, 0);
    strata_timeline_drop(&world->timeline, 1);
    strata_timeline_move(&world->timeline, 1000);
    strata_timeline_use(&world->timeline, 2);
    EXPECT_EQ(gpu(world, 0), 2000000);
    EXPECT_EQ(gpu(world, 1), 0);
    EXPECT_EQ(gpu(world, 2), 0);
}

/* Among streams with equally old waits the first of the same device is chosen. */
TEST_TIMELINE(the_first_stream_of_equals_keeps_its_own_device_busy, LAG,
              "op,id,size,stream,time_us,device\nalloc,1,8,7,0,1\nalloc,2,8,0,0,0\nalloc,3,8,1,0,0\nalloc,4,8,2,0,0\n"
              "alloc,5,8,3,0,0\n") {
    strata_timeline_hold(&world->timeline, 0);
    strata_timeline_hold(&world->timeline, 4);
    strata_timeline_hold(&world->timeline, 1);
    strata_timeline_hold(&world->timeline, 2);
    strata_timeline_drop(&world->timeline, 4);
    strata_timeline_move(&world->timeline, 1000);
    strata_timeline_use(&world->timeline, 3);
    EXPECT_EQ(gpu(world, 0), 0);
    EXPECT_EQ(gpu(world, 1), 2000000);
    EXPECT_EQ(gpu(world, 2), 0);
    EXPECT_EQ(gpu(world, 3), 0);
}

/* The cost of several calls is subtracted from the time until the next row. */
TEST_TIMELINE(own_calls_are_paid_together, LAG, WORK_COLUMNS "alloc,1,8,0,0,,\nwork,1,,0,0,1,\n") {
    for (int i = 0; i < 3; i++) EXPECT_OK(strata_timeline_sync(&world->timeline, 0));
    EXPECT_GT(host(world), 0);
    EXPECT_EQ(world->timeline.credit, host(world));
    EXPECT_EQ(world->timeline.own.call_ns, host(world));
    EXPECT_EQ(world->timeline.own.calls[STRATA_CALL_stream_synchronise], 3);
    strata_timeline_move(&world->timeline, 1000);
    EXPECT_EQ(host(world), 1000000);
    EXPECT_EQ(world->timeline.credit, 0);
}

TEST_TIMELINE(no_lag_means_no_work_left, 0, COLUMNS "alloc,1,8,0,0\n") {
    strata_timeline_hold(&world->timeline, 0);
    strata_timeline_move(&world->timeline, 1000);
    strata_timeline_use(&world->timeline, 0);
    EXPECT_EQ(gpu(world, 0), 1000000);
}

TEST_TIMELINE(a_wait_drains_the_gpu, LAG, COLUMNS "alloc,1,8,0,0\nalloc,2,8,1,0\n") {
    strata_timeline_hold(&world->timeline, 0);
    strata_timeline_hold(&world->timeline, 1);
    strata_timeline_move(&world->timeline, 10000);
    EXPECT_OK(strata_timeline_sync(&world->timeline, 0));
    uint64_t waited = host(world);
    EXPECT_GE(waited, 15000000);
    EXPECT_LT(waited, 15100000); /* and what the call costs */
    EXPECT_EQ(world->timeline.own.stall_ns, 5000000);
    strata_timeline_use(&world->timeline, 0);
    EXPECT_EQ(gpu(world, 0), waited); /* drained */
    EXPECT_EQ(gpu(world, 1), waited + 5000000); /* the other stream was not waited for */
    strata_device_t *device = world->machine.devices[0];
    strata_address_t address;
    ASSERT_OK(strata_device_malloc(device, STRATA_MEMORY_DEVICE, 1 << 20, &address));
    ASSERT_OK(strata_device_free(device, STRATA_MEMORY_DEVICE, address)); /* waits for the device */
    strata_timeline_check_waits(&world->timeline, 0);
    uint64_t freed = host(world);
    EXPECT_GE(freed, waited + 5000000);
    strata_timeline_move(&world->timeline, 11000);
    strata_timeline_use(&world->timeline, 1);
    EXPECT_EQ(gpu(world, 1), host(world) + (host(world) - freed));
    EXPECT_OK(strata_timeline_sync_device(&world->timeline, 0));
    EXPECT_EQ(world->timeline.own.calls[STRATA_CALL_synchronise], 1);
    EXPECT_EQ(world->timeline.own.calls[STRATA_CALL_stream_synchronise], 1);
}

/* Only what makes the host wait drains the GPU: the free of host memory waits for nothing, that of any other as the profile says. */
static void expect_drains(const strata_sim_profile_t *profile, int memory, bool drains) {
    OPENED(world_t, world, end, begin_on(&world, COLUMNS "alloc,1,8,0,0\n", LAG, false, profile));
    strata_device_t *device = world.machine.devices[0];
    strata_address_t address;
    bool on_host = memory == STRATA_MEMORY_PINNED || memory == STRATA_MEMORY_HOST;
    if (on_host) ASSERT_OK(strata_device_host_alloc(device, (strata_memory_t)memory, 1 << 20, 256, 0, &address));
    else ASSERT_OK(strata_device_malloc(device, (strata_memory_t)memory, 1 << 20, &address));
    strata_timeline_hold(&world.timeline, 0);
    strata_timeline_move(&world.timeline, 10000);
    strata_timeline_use(&world.timeline, 0);
    EXPECT_EQ(gpu(&world, 0), host(&world) + LAG);
    if (on_host) EXPECT_OK(strata_device_host_free(device, (strata_memory_t)memory, address));
    else EXPECT_OK(strata_device_free(device, (strata_memory_t)memory, address));
    EXPECT_FALSE(strata_timeline_check_waits(&world.timeline, 0));
    strata_timeline_move(&world.timeline, 11000);
    strata_timeline_use(&world.timeline, 0);
    EXPECT_EQ(gpu(&world, 0), host(&world) + (drains ? 1000000 : LAG));
}

TEST(timeline, a_free_drains_the_gpu_where_it_waits) {
    strata_sim_profile_t profile = *strata_sim_profile("h100");
    profile.free = (strata_sim_cost_t){0}; /* what comes after the wait is no lag */
    for (int waits = 0; waits < 2; waits++) {
        profile.free_waits = waits != 0;
        expect_drains(&profile, STRATA_MEMORY_DEVICE, waits != 0);
        expect_drains(&profile, STRATA_MEMORY_MANAGED, waits != 0);
        expect_drains(&profile, STRATA_MEMORY_PINNED, waits != 0);
        expect_drains(&profile, STRATA_MEMORY_HOST, false);
    }
}

TEST_TIMELINE(own_calls_are_paid_from_the_way, LAG,
              WORK_COLUMNS "work,,0,0,0,50,\nwork,,0,0,10,50,\nwait,,0,1,20,,0\nwork,,0,1,20,7,\n") {
    EXPECT_OK(strata_timeline_work(&world->timeline, 0, 50000, NULL, 0));
    EXPECT_GT(host(world), 0);
    EXPECT_GT(world->timeline.credit, 0);
    strata_timeline_move(&world->timeline, 10);
    EXPECT_EQ(host(world), 10000); /* the launch is part of the ten microseconds */
    EXPECT_EQ(world->timeline.credit, 0);
    uint64_t first = gpu(world, 0);
    EXPECT_OK(strata_timeline_work(&world->timeline, 0, 50000, NULL, 0));
    EXPECT_EQ(gpu(world, 0), first + 50000); /* queued after the first */
    strata_timeline_move(&world->timeline, 20);
    EXPECT_OK(strata_timeline_wait(&world->timeline, 1, 0));
    EXPECT_OK(strata_timeline_work(&world->timeline, 1, 7000, NULL, 0));
    EXPECT_EQ(gpu(world, 1), gpu(world, 0) + 7000); /* ordered after stream 0 */
    EXPECT_EQ(world->timeline.own.calls[STRATA_CALL_event_record], 1);
    EXPECT_EQ(world->timeline.own.calls[STRATA_CALL_stream_wait], 1);
    EXPECT_EQ(strata_timeline_length(&world->timeline), gpu(world, 1));
    strata_sim_figures_t figures;
    strata_sim_figures(world->machine.devices[0], &figures);
    EXPECT_LE(world->timeline.own.call_ns, figures.device_call_ns);
    EXPECT_GT(world->timeline.own.call_ns, 0);
}

/* Without work a stream that is waited for is as far after as one that is asked of. */
TEST_TIMELINE(a_wait_is_for_what_the_other_stream_has_been_given_by_then, LAG,
              "op,id,size,stream,time_us,other\nalloc,1,8,0,0,\nwait,,,1,0,0\n") {
    strata_timeline_hold(&world->timeline, 0);
    strata_timeline_move(&world->timeline, 10000);
    EXPECT_OK(strata_timeline_wait(&world->timeline, 1, 0));
    EXPECT_EQ(gpu(world, 0), 15000000);
    EXPECT_EQ(gpu(world, 1), 15000000);
}

TEST(timeline, streams_are_their_own) {
    static const char text[] = WORK_COLUMNS "work,,0,0,0,100,\nwork,,0,7,0,100,\n";
    world_t world;
    begin(&world, text, LAG, false);
    EXPECT_NE((uintptr_t)world.timeline.streams[0].handle, 0);
    EXPECT_OK(strata_timeline_work(&world.timeline, 0, 100000, NULL, 0));
    EXPECT_OK(strata_timeline_work(&world.timeline, 1, 100000, NULL, 0));
    EXPECT_LT(strata_timeline_length(&world.timeline), 200000);
    end(&world);
    begin(&world, text, LAG, true);
    EXPECT_EQ((uintptr_t)world.timeline.streams[0].handle, 0);
    EXPECT_NE((uintptr_t)world.timeline.streams[1].handle, 0);
    end(&world);
}

TEST(timeline, devices_by_name) {
    strata_target_t target = {.capacity = 7};
    EXPECT_OK(strata_target_parse("sim", &target));
    EXPECT_STREQ(target.profile->name, "h100");
    EXPECT_OK(strata_target_parse("sim:a100", &target));
    EXPECT_STREQ(target.profile->name, "a100");
    EXPECT_OK(strata_target_parse("sim:h100x2", &target));
    EXPECT_STREQ(target.profile->name, "h100");
    EXPECT_EQ(target.capacity, 7);
    EXPECT_OK(strata_target_parse("gpu:12", &target));
    EXPECT_EQ(target.profile, NULL);
    EXPECT_EQ(target.ordinal, 12);
    EXPECT_OK(strata_target_parse("gpu", &target));
    EXPECT_EQ(target.ordinal, 0);
    static const char *const wrong[] = {"", "cpu", "sim:", "sim:h200x", "gpu:", "gpu:x", "gpu:1x", "gpu:16", "sim:h100x17", "gpus"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        EXPECT_SAYS(STRATA_E_INVALID, strata_target_parse(wrong[i], &target), "write gpu, gpu:0 to gpu:15, sim, sim:");
    }
    strata_machine_t machine;
    target = (strata_target_t){.capacity = 1};
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, strata_machine_open(&target, 1, &machine));
    target = (strata_target_t){.host_jitter = 1};
    EXPECT_SAYS(STRATA_E_UNSUPPORTED, strata_machine_open(&target, 1, &machine), "write --device sim");
}
