/* Memory to the last granule: what is packed, what is counted, at its peak and after it; what work may touch, and for how long. */
#include "tests/sim/sim_fixture.h"

/* One byte below a mebibyte shares a granule; a mebibyte has its own. */
TEST_WORLD(sim_memory_rules, requests_below_a_mebibyte_are_packed_and_no_others, 0) {
    strata_address_t a = get(f->device, MIB - 1), b = get(f->device, MIB - 1);
    EXPECT_EQ(figures_of(f->device).used_bytes, 2 * MIB);
    strata_address_t c = get(f->device, MIB), d = get(f->device, MIB);
    EXPECT_EQ(figures_of(f->device).used_bytes, 6 * MIB);
    put(f->device, a);
    put(f->device, b);
    put(f->device, c);
    EXPECT_EQ(figures_of(f->device).used_bytes, 2 * MIB);
    put(f->device, d);
}

/* What is managed counts as far as it fits, in what is free too; the peaks are the highest, not the last. */
TEST_WORLD(sim_memory_rules, managed_memory_is_counted_at_its_peak, .capacity = 100 * MIB) {
    strata_address_t large, small;
    uint64_t left, total;
    ASSERT_OK(strata_device_malloc(f->device, STRATA_MEMORY_MANAGED, 60 * MIB - 7, &large));
    EXPECT_EQ(figures_of(f->device).peak_used_bytes, 60 * MIB);
    ASSERT_OK(strata_device_mem_info(f->device, &left, &total));
    EXPECT_EQ(left, 40 * MIB);
    strata_address_t device = get(f->device, 80 * MIB);
    EXPECT_EQ(figures_of(f->device).peak_used_bytes, 100 * MIB);
    EXPECT_EQ(figures_of(f->device).oversubscribed_bytes, 40 * MIB);
    ASSERT_OK(strata_device_mem_info(f->device, &left, &total));
    EXPECT_EQ(left, 0);
    EXPECT_OK(strata_device_free(f->device, STRATA_MEMORY_MANAGED, large));
    EXPECT_OK(strata_sim_validate(f->world));
    ASSERT_OK(strata_device_malloc(f->device, STRATA_MEMORY_MANAGED, 30 * MIB, &small));
    EXPECT_EQ(figures_of(f->device).oversubscribed_bytes, 40 * MIB);
    EXPECT_OK(strata_device_free(f->device, STRATA_MEMORY_MANAGED, small));
    put(f->device, device);
    EXPECT_EQ(figures_of(f->device).used_bytes, 0);
    EXPECT_EQ(figures_of(f->device).peak_used_bytes, 100 * MIB);
}

/* All managed memory together has the address space of a device, and no more. */
TEST(sim_memory_rules, managed_memory_ends_with_the_address_space) {
    strata_sim_profile_t profile = *strata_sim_profile("h100");
    profile.address_bytes = 64 * MIB;
    fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){.profile = &profile});
    strata_address_t a, b, none = 77;
    ASSERT_OK(strata_device_malloc(f.device, STRATA_MEMORY_MANAGED, 40 * MIB, &a));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_malloc(f.device, STRATA_MEMORY_MANAGED, 26 * MIB, &none));
    EXPECT_EQ(none, 77);
    ASSERT_OK(strata_device_malloc(f.device, STRATA_MEMORY_MANAGED, 24 * MIB, &b));
    EXPECT_OK(strata_device_free(f.device, STRATA_MEMORY_MANAGED, a));
    EXPECT_OK(strata_device_free(f.device, STRATA_MEMORY_MANAGED, b));
}

/* The price is of what was asked, not of the granules that it takes. */
TEST_WORLD(sim_memory_rules, a_free_costs_by_what_was_asked, 0) {
    strata_address_t odd = get(f->device, 3 * MIB), piece = get(f->device, MIB / 2);
    uint64_t t = strata_sim_now(f->world);
    put(f->device, odd);
    EXPECT_EQ(strata_sim_now(f->world) - t, 33500 + 3 * 372);
    t = strata_sim_now(f->world);
    put(f->device, piece);
    EXPECT_EQ(strata_sim_now(f->world) - t, 33500 + 186);
}

/* Neither memory nor a pool's chunk is counted where its addresses could not be had. */
TEST_WORLD(sim_memory_rules, without_addresses_nothing_is_taken, .capacity = STRATA_SIM_UNLIMITED) {
    strata_address_t none = 77, held_address;
    for (uint64_t size = UINT64_C(1) << 51; size >= 64 * MIB; size /= 2)
        while (strata_device_malloc(f->device, STRATA_MEMORY_DEVICE, size, &held_address) == STRATA_OK) {}
    uint64_t used = figures_of(f->device).used_bytes;
    EXPECT_GT(used, UINT64_C(15) << 48);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_malloc_async(f->device, NULL, 64 * MIB, NULL, &none));
    EXPECT_SAYS(STRATA_E_NO_MEMORY, strata_device_malloc(f->device, STRATA_MEMORY_DEVICE, 64 * MIB, &none), "address space");
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_malloc(f->device, STRATA_MEMORY_MANAGED, 64 * MIB, &none));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_reserve(f->device, 64 * MIB, 0, &none));
    EXPECT_EQ(figures_of(f->device).used_bytes, used);
    EXPECT_EQ(none, 77);
    strata_sim_held_t held;
    strata_sim_held(f->device, &held);
    EXPECT_EQ(held.address_bytes, 0);
    /* Freed memory is available again, and no more than that. */
    strata_address_t again = 0;
    put(f->device, held_address);
    ASSERT_OK(strata_device_malloc(f->device, STRATA_MEMORY_DEVICE, 64 * MIB, &again));
    EXPECT_EQ(again, held_address);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_reserve(f->device, 64 * MIB, 0, &none));
}

/* ---- mapped memory under work ---- */

/* Two kernels on one mapping: the longer one keeps it busy, in whatever order they were submitted. */
TEST(sim_memory_rules, a_mapping_is_busy_until_the_last_of_its_work_ends) {
    for (int long_first = 0; long_first < 2; long_first++) {
        for (int late = 0; late < 2; late++) {
            fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){0});
            mapped_t m = map_new(f.device, 2 * MIB);
            const strata_access_t access = {m.address, 8, true};
            for (int i = 0; i < 2; i++)
                ASSERT_OK(strata_device_work(f.device, stream_new(f.device, STRATA_STREAM_NON_BLOCKING),
                                             (i == 0) == long_first ? 5000 * US : 10 * US, &access, 1));
            strata_sim_advance_to(f.world, strata_sim_device_end(f.device) - !late);
            ASSERT_OK(strata_device_unmap(f.device, m.address, 2 * MIB));
            EXPECT_STATUS(late ? STRATA_OK : STRATA_E_DEVICE_LOST, strata_device_synchronise(f.device));
            strata_sim_clear_faults(f.device);
        }
    }
}

/* A fill after running work takes its place on the stream, and its memory is in use until it has. */
TEST_WORLD(sim_memory_rules, memory_to_be_filled_is_busy_until_the_stream_gets_there, .contents = true) {
    mapped_t m = map_new(f->device, 2 * MIB);
    ASSERT_OK(strata_device_work(f->device, NULL, 1000 * US, NULL, 0));
    ASSERT_OK(strata_device_fill(f->device, m.address, 7, 2 * MIB, NULL));
    ASSERT_OK(strata_device_unmap(f->device, m.address, 2 * MIB));
    EXPECT_STATUS(STRATA_E_DEVICE_LOST, strata_device_synchronise(f->device));
    strata_sim_clear_faults(f->device);
    ASSERT_OK(strata_device_map(f->device, m.address, 2 * MIB, m.physical));
    const uint8_t *bytes = strata_device_host_view(f->device, m.address, 2 * MIB);
    ASSERT_NE(bytes, NULL);
    EXPECT_EQ(bytes[0], 0xDB);
    EXPECT_EQ(bytes[2 * MIB - 1], 0xDB);
}

/* Access counts for every mapping that a range crosses, and each of them is busy. */
TEST(sim_memory_rules, every_mapping_of_a_range_counts) {
    for (uint64_t gone = 0; gone < 4; gone++) {
        fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){0});
        strata_address_t range;
        strata_physical_t h;
        ASSERT_OK(strata_device_reserve(f.device, 8 * MIB, 0, &range));
        for (uint64_t i = 0; i < 4; i++) {
            ASSERT_OK(strata_device_create(f.device, 2 * MIB, false, &h));
            ASSERT_OK(strata_device_map(f.device, range + 2 * i * MIB, 2 * MIB, h));
        }
        const strata_access_t across = {range + MIB, 4 * MIB, true};
        for (uint64_t i = 0; i < 3; i++) {
            EXPECT_STATUS(STRATA_E_DEVICE_LOST, strata_device_work(f.device, NULL, 1000 * US, &across, 1));
            strata_sim_clear_faults(f.device);
            ASSERT_OK(strata_device_set_access(f.device, range + 2 * i * MIB, 2 * MIB, NULL, 0));
        }
        EXPECT_OK(strata_device_synchronise(f.device));
        ASSERT_OK(strata_device_work(f.device, NULL, 1000 * US, &across, 1));
        ASSERT_OK(strata_device_unmap(f.device, range + 2 * gone * MIB, 2 * MIB));
        EXPECT_STATUS(gone < 3 ? STRATA_E_DEVICE_LOST : STRATA_OK, strata_device_synchronise(f.device));
        strata_sim_clear_faults(f.device);
        EXPECT_STATUS(gone < 3 ? STRATA_E_DEVICE_LOST : STRATA_OK, strata_device_work(f.device, NULL, 1, &across, 1));
    }
}

/* Peers are one-way: who enabled whom may touch it. Managed memory is everybody's; a view ends with its memory. */
TEST_WORLD(sim_memory_rules, a_peer_may_touch_what_it_enabled_and_not_the_other_way, .devices = 2, .contents = true) {
    strata_address_t a = get(f->device, 2 * MIB), b = get(f->other, 2 * MIB), m;
    ASSERT_OK(strata_device_malloc(f->device, STRATA_MEMORY_MANAGED, 2 * MIB, &m));
    const strata_access_t of_a = {a, MIB, true}, of_b = {b, MIB, true}, managed = {m, 2 * MIB, true};
    ASSERT_OK(strata_device_enable_peer(f->device, 1));
    EXPECT_OK(strata_device_work(f->device, NULL, 1, &of_b, 1));
    EXPECT_STATUS(STRATA_E_DEVICE_LOST, strata_device_work(f->other, NULL, 1, &of_a, 1));
    strata_sim_clear_faults(f->other);
    EXPECT_OK(strata_device_work(f->other, NULL, 1, &managed, 1));
    EXPECT_NE(strata_device_host_view(f->device, a + MIB, MIB), NULL);
    EXPECT_EQ(strata_device_host_view(f->device, a + MIB, MIB + 1), NULL);
}

/* ---- waits for one thing ---- */

/* A wait for an event or a stream waits for that, and lets other work run on. */
TEST_WORLD_WAYS(sim_memory_rules, a_wait_for_one_stream_or_event_is_for_that_alone, of_event, 2, 0) {
    strata_handle_t brief = stream_new(f->device, STRATA_STREAM_NON_BLOCKING), e = event_new(f->device);
    ASSERT_OK(strata_device_work(f->device, stream_new(f->device, STRATA_STREAM_NON_BLOCKING), 9000 * US, NULL, 0));
    ASSERT_OK(strata_device_work(f->device, brief, 1000 * US, NULL, 0));
    ASSERT_OK(strata_device_event_record(f->device, e, brief));
    uint64_t end = strata_device_event_ready_at(f->device, e);
    if (of_event) ASSERT_OK(strata_device_work(f->device, brief, 3000 * US, NULL, 0));
    EXPECT_OK(of_event ? strata_device_event_synchronise(f->device, e) : strata_device_stream_synchronise(f->device, brief));
    EXPECT_EQ(strata_sim_now(f->world), end + 580);
    EXPECT_EQ(strata_sim_device_waits(f->device), 0);
}

/* Each wait of the host lets pools give back: for the device, a stream, an event. */
TEST_WORLD_WAYS(sim_memory_rules, each_wait_of_the_host_makes_frees_anybodys, way, 3, 0) {
    strata_handle_t a = stream_new(f->device, STRATA_STREAM_NON_BLOCKING), e = event_new(f->device);
    strata_address_t block;
    ASSERT_OK(strata_device_malloc_async(f->device, NULL, 40 * MIB, a, &block));
    ASSERT_OK(strata_device_free_async(f->device, block, a));
    ASSERT_OK(strata_device_event_record(f->device, e, a));
    EXPECT_EQ(figures_of(f->device).used_bytes, 40 * MIB);
    if (way == 0) EXPECT_OK(strata_device_synchronise(f->device));
    if (way == 1) EXPECT_OK(strata_device_stream_synchronise(f->device, a));
    if (way == 2) EXPECT_OK(strata_device_event_synchronise(f->device, e));
    EXPECT_EQ(figures_of(f->device).used_bytes, 0);
}

/* ---- calls of no bytes ---- */

typedef struct sized {
    strata_device_t *device;
    strata_handle_t captured; /* a stream that is being captured */
    strata_address_t range; /* 4 MiB; its first 2 MiB are mapped */
    strata_physical_t physical;
} sized_t;

/* A call that takes a size, here with 0. */
typedef struct sized_call {
    const char *name;
    strata_status_t (*call)(const sized_t *on, strata_address_t *out);
    strata_status_t refusal;
} sized_call_t;

static strata_status_t zero_device(const sized_t *on, strata_address_t *out) {
    return strata_device_malloc(on->device, STRATA_MEMORY_DEVICE, 0, out);
}
static strata_status_t zero_managed(const sized_t *on, strata_address_t *out) {
    return strata_device_malloc(on->device, STRATA_MEMORY_MANAGED, 0, out);
}
static strata_status_t zero_pinned(const sized_t *on, strata_address_t *out) {
    return strata_device_host_alloc(on->device, STRATA_MEMORY_PINNED, 0, 64, 0, out);
}
static strata_status_t zero_host(const sized_t *on, strata_address_t *out) {
    return strata_device_host_alloc(on->device, STRATA_MEMORY_HOST, 0, 64, 0, out);
}
static strata_status_t zero_async(const sized_t *on, strata_address_t *out) {
    return strata_device_malloc_async(on->device, NULL, 0, NULL, out);
}
static strata_status_t zero_captured(const sized_t *on, strata_address_t *out) {
    return strata_device_malloc_async(on->device, NULL, 0, on->captured, out);
}
static strata_status_t zero_reserve(const sized_t *on, strata_address_t *out) {
    return strata_device_reserve(on->device, 0, 0, out);
}
static strata_status_t zero_unreserve(const sized_t *on, strata_address_t *out) {
    (void)out;
    return strata_device_unreserve(on->device, on->range, 0);
}
static strata_status_t zero_create(const sized_t *on, strata_address_t *out) {
    return strata_device_create(on->device, 0, false, out);
}
static strata_status_t zero_map(const sized_t *on, strata_address_t *out) {
    (void)out;
    return strata_device_map(on->device, on->range + 2 * MIB, 0, on->physical);
}
static strata_status_t zero_unmap(const sized_t *on, strata_address_t *out) {
    (void)out;
    return strata_device_unmap(on->device, on->range, 0);
}
static strata_status_t zero_access(const sized_t *on, strata_address_t *out) {
    (void)out;
    return strata_device_set_access(on->device, on->range, 0, NULL, 0);
}

static const sized_call_t sized_calls[] = {
    {"malloc_device", zero_device, STRATA_E_INVALID},
    {"malloc_managed", zero_managed, STRATA_E_INVALID},
    {"host_alloc_pinned", zero_pinned, STRATA_E_INVALID},
    {"host_alloc_host", zero_host, STRATA_E_INVALID},
    {"malloc_async", zero_async, STRATA_E_INVALID},
    {"malloc_async_captured", zero_captured, STRATA_E_INVALID},
    {"reserve", zero_reserve, STRATA_E_DEVICE},
    {"unreserve", zero_unreserve, STRATA_E_DEVICE},
    {"create", zero_create, STRATA_E_DEVICE},
    {"map", zero_map, STRATA_E_DEVICE},
    {"unmap", zero_unmap, STRATA_E_DEVICE},
    {"set_access", zero_access, STRATA_E_DEVICE},
};

/* A refused call stores nothing and changes no figure of the device or of its pool. */
TEST_EACH(sim_memory_rules, a_call_of_no_bytes_is_refused, sized_call_t, sized_calls) {
    fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){0});
    sized_t on = {.device = f.device, .captured = stream_new(f.device, STRATA_STREAM_NON_BLOCKING)};
    strata_handle_t graph = NULL;
    strata_address_t none = 77;
    uint64_t left[2], total[2], pool = 77;
    ASSERT_OK(strata_device_reserve(f.device, 4 * MIB, 0, &on.range));
    ASSERT_OK(strata_device_create(f.device, 2 * MIB, false, &on.physical));
    ASSERT_OK(strata_device_map(f.device, on.range, 2 * MIB, on.physical));
    ASSERT_OK(strata_device_capture_begin(f.device, on.captured, STRATA_CAPTURE_RELAXED));
    ASSERT_OK(strata_device_mem_info(f.device, &left[0], &total[0]));
    strata_sim_figures_t before = figures_of(f.device);
    EXPECT_STATUS(row->refusal, row->call(&on, &none));
    EXPECT_EQ(strata_last_error()->device_code, 1);
    EXPECT_CONTAINS(strata_last_error()->text, "CUDA_ERROR_INVALID_VALUE");
    EXPECT_EQ(none, 77);
    strata_sim_figures_t after = figures_of(f.device);
    EXPECT_EQ(after.device_call_ns, before.device_call_ns);
    EXPECT_EQ(after.used_bytes, before.used_bytes);
    EXPECT_EQ(after.peak_used_bytes, before.peak_used_bytes);
    ASSERT_OK(strata_device_mem_info(f.device, &left[1], &total[1]));
    EXPECT_EQ(left[1], left[0]);
    ASSERT_OK(strata_device_pool_get(f.device, NULL, STRATA_POOL_RESERVED_HIGH, &pool));
    EXPECT_EQ(pool, 0);
    ASSERT_OK(strata_device_capture_end(f.device, on.captured, &graph));
    ASSERT_OK(strata_device_graph_destroy(f.device, graph));
    ASSERT_OK(strata_device_unmap(f.device, on.range, 2 * MIB));
    ASSERT_OK(strata_device_release(f.device, on.physical));
    ASSERT_OK(strata_device_unreserve(f.device, on.range, 4 * MIB));
}
