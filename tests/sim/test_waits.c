/* Which calls wait for running work, as a real GPU showed (docs/profiles.md, "Which calls wait"): a kernel of 150 ms on a stream of
 * its own, the call beside it. */
#include "tests/sim/sim_fixture.h"

#define KERNEL (150000 * US)

/* What the calls work on, made before the kernel begins. */
typedef struct beside {
    fixture_t f;
    strata_device_t *device;
    strata_handle_t running, stream, brief, event;
    strata_address_t small, large, managed, pinned, host, warm, range;
    mapped_t mapped;
    strata_physical_t handle;
} beside_t;

static beside_t beside_open(const char *profile) {
    beside_t b = {.f = fixture_open((strata_sim_options_t){.profile = strata_sim_profile(profile)})};
    strata_device_t *d = b.device = b.f.device;
    b.running = stream_new(d, STRATA_STREAM_NON_BLOCKING);
    b.stream = stream_new(d, STRATA_STREAM_NON_BLOCKING);
    b.brief = stream_new(d, STRATA_STREAM_NON_BLOCKING);
    b.event = event_new(d);
    b.small = get(d, 4096);
    b.large = get(d, 64 * MIB);
    EXPECT_OK(strata_device_malloc(d, STRATA_MEMORY_MANAGED, 4 * MIB, &b.managed));
    EXPECT_OK(strata_device_host_alloc(d, STRATA_MEMORY_PINNED, MIB, 64, 0, &b.pinned));
    EXPECT_OK(strata_device_host_alloc(d, STRATA_MEMORY_HOST, MIB, 64, 0, &b.host));
    EXPECT_OK(strata_device_malloc_async(d, NULL, MIB, b.stream, &b.warm));
    EXPECT_OK(strata_device_reserve(d, 2 * MIB, 0, &b.range));
    EXPECT_OK(strata_device_create(d, 2 * MIB, false, &b.handle));
    b.mapped = map_new(d, 2 * MIB);
    EXPECT_OK(strata_device_work(d, b.running, KERNEL, NULL, 0));
    return b;
}

static strata_status_t free_small(beside_t *b) { return strata_device_free(b->device, STRATA_MEMORY_DEVICE, b->small); }
static strata_status_t free_large(beside_t *b) { return strata_device_free(b->device, STRATA_MEMORY_DEVICE, b->large); }
static strata_status_t free_managed(beside_t *b) { return strata_device_free(b->device, STRATA_MEMORY_MANAGED, b->managed); }
static strata_status_t free_pinned(beside_t *b) { return strata_device_host_free(b->device, STRATA_MEMORY_PINNED, b->pinned); }
static strata_status_t synchronise(beside_t *b) { return strata_device_synchronise(b->device); }

static strata_status_t malloc_device(beside_t *b) {
    return strata_device_malloc(b->device, STRATA_MEMORY_DEVICE, 64 * MIB, &b->range);
}
static strata_status_t malloc_managed(beside_t *b) {
    return strata_device_malloc(b->device, STRATA_MEMORY_MANAGED, 64 * MIB, &b->range);
}
static strata_status_t alloc_pinned(beside_t *b) {
    return strata_device_host_alloc(b->device, STRATA_MEMORY_PINNED, MIB, 64, 0, &b->range);
}
static strata_status_t free_host(beside_t *b) { return strata_device_host_free(b->device, STRATA_MEMORY_HOST, b->host); }
static strata_status_t create(beside_t *b) { return strata_device_create(b->device, 2 * MIB, false, &b->handle); }
static strata_status_t map(beside_t *b) { return strata_device_map(b->device, b->range, 2 * MIB, b->handle); }
static strata_status_t set_access(beside_t *b) {
    return strata_device_set_access(b->device, b->mapped.address, 2 * MIB, NULL, 0);
}
static strata_status_t unmap(beside_t *b) { return strata_device_unmap(b->device, b->mapped.address, 2 * MIB); }
static strata_status_t release(beside_t *b) { return strata_device_release(b->device, b->handle); }
static strata_status_t malloc_async_cold(beside_t *b) {
    return strata_device_malloc_async(b->device, NULL, 64 * MIB, b->stream, &b->range);
}
static strata_status_t free_async(beside_t *b) { return strata_device_free_async(b->device, b->warm, b->stream); }
static strata_status_t pool_trim(beside_t *b) { return strata_device_pool_trim(b->device, NULL, 0); }
static strata_status_t event_create(beside_t *b) { return strata_device_event_create(b->device, &b->event); }
static strata_status_t stream_create(beside_t *b) {
    return strata_device_stream_create(b->device, STRATA_STREAM_BLOCKING, 0, &b->stream);
}
static strata_status_t stream_destroy(beside_t *b) { return strata_device_stream_destroy(b->device, b->brief); }
static strata_status_t running_stream_destroy(beside_t *b) { return strata_device_stream_destroy(b->device, b->running); }
static strata_status_t mem_info(beside_t *b) {
    uint64_t left, total;
    return strata_device_mem_info(b->device, &left, &total);
}
static strata_status_t record(beside_t *b) { return strata_device_event_record(b->device, b->event, b->stream); }
static strata_status_t reserve(beside_t *b) { return strata_device_reserve(b->device, 2 * MIB, 0, &b->range); }
static strata_status_t unreserve(beside_t *b) { return strata_device_unreserve(b->device, b->range, 2 * MIB); }

static const struct call_row {
    const char *name;
    strata_status_t (*make)(beside_t *);
    bool waits;
} rows[] = {
#define WAITS(name) {#name, name, true}
#define GOES_ON(name) {#name, name, false}
    WAITS(free_small), WAITS(free_large), WAITS(free_managed), WAITS(free_pinned), WAITS(synchronise),
    GOES_ON(malloc_device), GOES_ON(malloc_managed), GOES_ON(alloc_pinned), GOES_ON(free_host), GOES_ON(create), GOES_ON(map),
    GOES_ON(set_access), GOES_ON(unmap), GOES_ON(release), GOES_ON(malloc_async_cold), GOES_ON(free_async), GOES_ON(pool_trim),
    GOES_ON(event_create), GOES_ON(record), GOES_ON(stream_create), GOES_ON(stream_destroy), GOES_ON(running_stream_destroy),
    GOES_ON(mem_info), GOES_ON(reserve), GOES_ON(unreserve),
#undef WAITS
#undef GOES_ON
};

static void check_row(const char *profile, const struct call_row *row) {
    beside_t b = beside_open(profile);
    uint64_t before = strata_sim_now(b.f.world), end = strata_sim_device_end(b.device);
    EXPECT_EQ(end, before + KERNEL);
    strata_status_t status = row->make(&b);
    if (status != STRATA_OK) FAIL_TEST("%s: %s", row->name, strata_last_error()->text);
    uint64_t stalled = figures_of(b.device).stall_ns;
    if (stalled != (row->waits ? KERNEL : 0))
        FAIL_TEST("%s of %s: %s stalled for %llu ns", row->name, profile, row->waits ? "does wait, and" : "waits for nothing, and",
                  (unsigned long long)stalled);
    EXPECT_EQ(strata_sim_now(b.f.world) >= end, row->waits);
    EXPECT_EQ(strata_sim_device_end(b.device), end);
    EXPECT_EQ(strata_sim_device_waits(b.device), row->waits);
    fixture_close(&b.f);
}

TEST(sim_waits, each_call_waits_for_running_work_or_does_not_as_a_gpu_showed) {
    for (size_t i = 0; strata_sim_profile_name(i); i++)
        for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) check_row(strata_sim_profile_name(i), &rows[row]);
}

TEST(sim_waits, a_free_that_does_not_wait_is_not_counted) {
    strata_sim_profile_t profile = *strata_sim_profile("h100");
    profile.free_waits = false;
    fixture_t f = fixture_open((strata_sim_options_t){.profile = &profile});
    strata_address_t device = get(f.device, MIB), pinned;
    ASSERT_OK(strata_device_host_alloc(f.device, STRATA_MEMORY_PINNED, MIB, 64, 0, &pinned));
    ASSERT_OK(strata_device_work(f.device, NULL, KERNEL, NULL, 0));
    put(f.device, device);
    EXPECT_OK(strata_device_host_free(f.device, STRATA_MEMORY_PINNED, pinned));
    EXPECT_EQ(figures_of(f.device).stall_ns, 0);
    EXPECT_EQ(strata_sim_device_waits(f.device), 0);
    EXPECT_OK(strata_device_synchronise(f.device));
    EXPECT_EQ(strata_sim_device_waits(f.device), 1);
    fixture_close(&f);
}

/* Only once it is known whose memory it is: a refused free waits for nothing. */
TEST(sim_waits, a_refused_free_waits_for_nothing) {
    beside_t b = beside_open("h100");
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_host_free(b.device, STRATA_MEMORY_PINNED, b.host));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_host_free(b.device, STRATA_MEMORY_PINNED, b.pinned + 64));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free(b.device, STRATA_MEMORY_DEVICE, b.managed));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free(b.device, STRATA_MEMORY_DEVICE, b.small + 512));
    EXPECT_EQ(figures_of(b.device).stall_ns, 0);
    EXPECT_EQ(strata_sim_device_waits(b.device), 0);
    fixture_close(&b.f);
}

TEST(sim_waits, a_wait_of_one_device_is_not_the_others) {
    fixture_t f = fixture_open((strata_sim_options_t){.devices = 2});
    strata_address_t pinned;
    ASSERT_OK(strata_device_host_alloc(f.device, STRATA_MEMORY_PINNED, MIB, 64, 0, &pinned));
    ASSERT_OK(strata_device_work(f.other, NULL, KERNEL, NULL, 0));
    EXPECT_OK(strata_device_host_free(f.device, STRATA_MEMORY_PINNED, pinned));
    EXPECT_EQ(figures_of(f.device).stall_ns + figures_of(f.other).stall_ns, 0);
    EXPECT_EQ(strata_sim_device_waits(f.other), 0);
    fixture_close(&f);
}
