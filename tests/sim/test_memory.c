/* Capacity, granules and addresses of malloc and managed memory. */
#include <fcntl.h>
#include <unistd.h>

#include "tests/sim/sim_fixture.h"

TEST_WORLD(sim_memory, sizes_are_rounded_to_granules, 0) {
    strata_address_t a = get(f->device, 1 * MIB);
    EXPECT_EQ(figures_of(f->device).used_bytes, 2 * MIB);
    strata_address_t b = get(f->device, 2 * MIB + 1);
    EXPECT_EQ(figures_of(f->device).used_bytes, 6 * MIB);
    put(f->device, a);
    put(f->device, b);
    EXPECT_EQ(figures_of(f->device).used_bytes, 0);
    EXPECT_EQ(figures_of(f->device).peak_used_bytes, 6 * MIB);
}

TEST_WORLD(sim_memory, small_requests_share_a_granule_until_the_last_is_freed, 0) {
    strata_address_t pieces[4];
    for (int i = 0; i < 4; i++) pieces[i] = get(f->device, 512 * 1024);
    EXPECT_EQ(figures_of(f->device).used_bytes, 2 * MIB);
    strata_address_t fifth = get(f->device, 1);
    EXPECT_EQ(figures_of(f->device).used_bytes, 4 * MIB);
    for (int i = 0; i < 3; i++) put(f->device, pieces[i]);
    EXPECT_EQ(figures_of(f->device).used_bytes, 4 * MIB);
    put(f->device, pieces[3]);
    EXPECT_EQ(figures_of(f->device).used_bytes, 2 * MIB);
    put(f->device, fifth);
    EXPECT_EQ(figures_of(f->device).used_bytes, 0);
}

TEST_WORLD(sim_memory, addresses_ascend_with_gaps, .capacity = 64 * MIB) {
    strata_address_t end = 0;
    for (uint64_t i = 0; i < 200; i++) {
        uint64_t size = i % 3 ? 1 + i * 1000 : 3 * MIB + i;
        strata_address_t address = get(f->device, size);
        EXPECT_GT(address, end);
        EXPECT_EQ(address % 512, 0);
        end = address + size;
        put(f->device, address);
    }
}

TEST_WORLD(sim_memory, neighbours_of_whole_units_are_not_adjacent, 0) {
    const uint64_t sizes[] = {512, 2 * MIB, 512 * 1024};
    for (int kind = 0; kind < 3; kind++) {
        strata_address_t a = get(f->device, sizes[kind]), b = get(f->device, sizes[kind]);
        EXPECT_GT(b, a + sizes[kind]);
        put(f->device, a);
        put(f->device, b);
    }
}

TEST_WORLD(sim_memory, runs_out_exactly_when_granules_do, .capacity = 10 * MIB) {
    strata_address_t kept[5], none = 77;
    for (int i = 0; i < 4; i++) kept[i] = get(f->device, 1 * MIB + 1);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_malloc(f->device, STRATA_MEMORY_DEVICE, 2 * MIB + 1, &none));
    EXPECT_EQ(strata_last_error()->device_code, 2);
    EXPECT_CONTAINS(strata_last_error()->text, "CUDA_ERROR_OUT_OF_MEMORY");
    kept[4] = get(f->device, 100);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_malloc(f->device, STRATA_MEMORY_DEVICE, 2 * MIB, &none));
    strata_address_t beside = get(f->device, 100);
    EXPECT_EQ(none, 77);
    put(f->device, kept[0]);
    kept[0] = get(f->device, 2 * MIB);
    put(f->device, beside);
    for (int i = 0; i < 5; i++) put(f->device, kept[i]);
    EXPECT_EQ(figures_of(f->device).used_bytes, 0);
}

TEST(sim_memory, capacity_is_the_profile_less_context_and_foreign_bytes) {
    strata_sim_profile_t profile = *strata_sim_profile("a100");
    profile.foreign_bytes = 1 * GIB;
    fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){.profile = &profile});
    uint64_t free_bytes, total;
    ASSERT_OK(strata_device_mem_info(f.device, &free_bytes, &total));
    EXPECT_EQ(total, 80 * GIB);
    EXPECT_EQ(free_bytes, 79 * GIB - profile.context_bytes);
    strata_address_t a = get(f.device, 5 * MIB);
    ASSERT_OK(strata_device_mem_info(f.device, &free_bytes, &total));
    EXPECT_EQ(free_bytes, 79 * GIB - profile.context_bytes - 6 * MIB);
    put(f.device, a);
}

TEST_WORLD(sim_memory, terabytes_cost_nothing, .capacity = STRATA_SIM_UNLIMITED) {
    strata_address_t a = get(f->device, UINT64_C(1) << 44), b = get(f->device, UINT64_C(1) << 44);
    EXPECT_EQ(figures_of(f->device).used_bytes, UINT64_C(1) << 45);
    put(f->device, a);
    put(f->device, b);
    strata_address_t none;
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_malloc(f->device, STRATA_MEMORY_DEVICE, UINT64_MAX, &none));
    EXPECT_EQ(figures_of(f->device).used_bytes, 0);
}

/* Uses up the addresses, so that the next range does not fit after the last one. */
static void use_up_addresses(strata_device_t *device) {
    const uint64_t end = (UINT64_C(1) << 48) + (UINT64_C(1) << 52), gap = 2 * MIB;
    strata_address_t last = get(device, 2 * MIB);
    put(device, last);
    put(device, get(device, end - (last + 2 * MIB + gap) - gap));
}

/* Addresses restart after the last one, and live ranges keep theirs. */
TEST_WORLD(sim_memory, addresses_restart_past_live_ranges, .capacity = STRATA_SIM_UNLIMITED) {
    strata_address_t gone = get(f->device, 3 * MIB), piece = get(f->device, MIB - 1), range = 0, pooled = 0;
    strata_address_t kept = get(f->device, 5 * MIB), first = gone;
    ASSERT_OK(strata_device_reserve(f->device, 8 * MIB, 0, &range));
    ASSERT_OK(strata_device_malloc_async(f->device, NULL, MIB, NULL, &pooled));
    ASSERT_OK(strata_device_synchronise(f->device));
    put(f->device, gone);
    use_up_addresses(f->device);
    EXPECT_EQ(get(f->device, 2 * MIB), first);
    /* Nothing fits between the live ranges, up to the chunk of the pool. */
    strata_address_t next = get(f->device, 5 * MIB);
    EXPECT_GT(next, pooled);
    EXPECT_EQ((next - first) % (2 * MIB), 0);
    EXPECT_TRUE(piece < kept);
    put(f->device, kept);
    EXPECT_GT(get(f->device, 5 * MIB), next); /* not reused soon */
    EXPECT_OK(strata_device_unreserve(f->device, range, 8 * MIB));
}

/* One piece of 512 bytes is left of a granule that was full of them. */
typedef struct left_piece {
    const char *name;
    uint32_t index;
} left_piece_t;

static const left_piece_t left_pieces[] = {{"first", 0}, {"second", 1}, {"half", 2048}, {"last", 4095}};

/* The whole window of the granule counts as taken, wherever in it the piece lies. Nothing goes beside it without a gap, and no room behind
 * its gap is skipped. */
TEST_EACH(sim_memory, restarted_addresses_keep_off_the_window_of_a_piece, left_piece_t, left_pieces) {
    fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){.capacity = STRATA_SIM_UNLIMITED});
    strata_address_t pieces[4096], gone = get(f.device, 2 * MIB);
    for (uint32_t i = 0; i < 4096; i++) pieces[i] = get(f.device, 512);
    strata_address_t window = pieces[0];
    EXPECT_EQ(figures_of(f.device).used_bytes, 4 * MIB);
    EXPECT_EQ(window, gone + 4 * MIB);
    for (uint32_t i = 0; i < 4096; i++)
        if (i != row->index) put(f.device, pieces[i]);
    put(f.device, gone);
    use_up_addresses(f.device);
    EXPECT_EQ(get(f.device, 4 * MIB), window + 6 * MIB); /* the window is 4 MiB, and its gap 2 MiB */
}

/* Reserves and frees large ranges many times, with a live block in each half of the addresses. */
TEST_WORLD(sim_memory, large_ranges_can_be_reserved_repeatedly, 0) {
    strata_address_t low = get(f->device, 3 * MIB), range, second, none = 77;
    const uint64_t size = UINT64_C(1) << 46; /* of 2^52; the largest range per reservation */
    for (int round = 0; round < 200; round++) {
        ASSERT_OK(strata_device_reserve(f->device, size, 0, &range));
        EXPECT_TRUE(range > low + 3 * MIB);
        second = get(f->device, 4 * MIB);
        EXPECT_TRUE(second + 4 * MIB < range || second > range + size);
        EXPECT_OK(strata_device_unreserve(f->device, range, size));
        put(f->device, second);
    }
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_reserve(f->device, UINT64_C(1) << 51, 0, &none));
    EXPECT_EQ(none, 77);
}

TEST_WORLD(sim_memory, managed_memory_may_exceed_the_capacity_and_is_counted, .capacity = 100 * MIB) {
    strata_address_t m, d, none;
    ASSERT_OK(strata_device_malloc(f->device, STRATA_MEMORY_MANAGED, 150 * MIB, &m));
    EXPECT_EQ(figures_of(f->device).used_bytes, 100 * MIB);
    EXPECT_EQ(figures_of(f->device).oversubscribed_bytes, 50 * MIB);
    d = get(f->device, 40 * MIB);
    EXPECT_EQ(figures_of(f->device).oversubscribed_bytes, 90 * MIB);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_malloc(f->device, STRATA_MEMORY_MANAGED, UINT64_C(1) << 60, &none));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free(f->device, STRATA_MEMORY_DEVICE, m));
    EXPECT_OK(strata_device_free(f->device, STRATA_MEMORY_MANAGED, m));
    EXPECT_EQ(figures_of(f->device).used_bytes, 40 * MIB);
    EXPECT_EQ(figures_of(f->device).oversubscribed_bytes, 90 * MIB);
    put(f->device, d);
}

TEST_WORLD(sim_memory, wrong_frees_are_refused, .devices = 2) {
    strata_address_t a = get(f->device, 3 * MIB), none = 5;
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free(f->device, STRATA_MEMORY_DEVICE, a + 512));
    EXPECT_EQ(strata_last_error()->device_code, 1);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free(f->other, STRATA_MEMORY_DEVICE, a));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free(f->device, STRATA_MEMORY_MANAGED, a));
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_free(f->device, STRATA_MEMORY_PINNED, a));
    put(f->device, a);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free(f->device, STRATA_MEMORY_DEVICE, a));
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_malloc(f->device, STRATA_MEMORY_DEVICE, 0, &none));
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_malloc(f->device, STRATA_MEMORY_HOST, 1, &none));
    EXPECT_EQ(none, 5);
}

TEST_WORLD(sim_memory, devices_have_memory_and_addresses_of_their_own, .devices = 2, .capacity = 4 * MIB) {
    strata_address_t a = get(f->device, 4 * MIB), b = get(f->other, 4 * MIB);
    EXPECT_TRUE(a + 4 * MIB <= b || b + 4 * MIB <= a);
    EXPECT_EQ(figures_of(f->other).used_bytes, 4 * MIB);
    put(f->device, a);
    EXPECT_EQ(figures_of(f->other).used_bytes, 4 * MIB);
    put(f->other, b);
}

TEST_WORLD(sim_memory, host_memory_is_real_and_aligned, 0) {
    const uint64_t sizes[] = {1, 5000, 3 * MIB + 7}, alignments[] = {64, 4096, 2 * MIB};
    for (int kind = STRATA_MEMORY_PINNED; kind <= STRATA_MEMORY_HOST; kind++) {
        for (int i = 0; i < 9; i++) {
            strata_address_t a;
            ASSERT_OK(strata_device_host_alloc(f->device, (strata_memory_t)kind, sizes[i / 3], alignments[i % 3], 0, &a));
            EXPECT_EQ(a % alignments[i % 3], 0);
            memset((void *)(uintptr_t)a, 1, sizes[i / 3]);
            EXPECT_EQ((uintptr_t)strata_device_host_view(f->device, a, sizes[i / 3]), a);
            EXPECT_STATUS(STRATA_E_DEVICE, strata_device_host_free(f->device, (strata_memory_t)(5 - kind), a));
            EXPECT_OK(strata_device_host_free(f->device, (strata_memory_t)kind, a));
            EXPECT_STATUS(STRATA_E_DEVICE, strata_device_host_free(f->device, (strata_memory_t)kind, a));
        }
    }
    strata_address_t none;
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_host_alloc(f->device, STRATA_MEMORY_PINNED, 1, 32, 0, &none));
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_host_alloc(f->device, STRATA_MEMORY_PINNED, 1, 96, 0, &none));
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_host_alloc(f->device, STRATA_MEMORY_PINNED, 0, 64, 0, &none));
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_host_alloc(f->device, STRATA_MEMORY_PINNED, 1, 64, 8, &none));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_host_alloc(f->device, STRATA_MEMORY_PINNED, UINT64_C(1) << 62, 64, 0, &none));
}

TEST_WORLD(sim_memory, contents_are_seen_by_the_host, .contents = true) {
    const uint64_t sizes[] = {1000, 5 * MIB};
    for (int i = 0; i < 2; i++) {
        strata_address_t a = get(f->device, sizes[i]), b = get(f->device, sizes[i]);
        ASSERT_OK(strata_device_fill(f->device, a, 0x11, sizes[i], NULL));
        ASSERT_OK(strata_device_fill(f->device, b, 0x22, sizes[i], NULL));
        const uint8_t *view = strata_device_host_view(f->device, a + 10, sizes[i] - 10);
        ASSERT_NE(view, NULL);
        EXPECT_EQ(view[0], 0x11);
        EXPECT_EQ(view[sizes[i] - 11], 0x11);
        EXPECT_EQ(strata_device_host_view(f->device, a, sizes[i] + 1), NULL);
        EXPECT_STATUS(STRATA_E_DEVICE, strata_device_fill(f->device, a, 0, sizes[i] + 1, NULL));
        put(f->device, a);
        EXPECT_EQ(strata_device_host_view(f->device, a, 1), NULL);
        EXPECT_STATUS(STRATA_E_DEVICE, strata_device_fill(f->device, a, 0, 1, NULL));
        put(f->device, b);
    }
}

TEST_WORLD(sim_memory, without_contents_there_is_nothing_to_see, 0) {
    strata_address_t a = get(f->device, 1 * MIB);
    EXPECT_EQ(strata_device_host_view(f->device, a, 1), NULL);
    EXPECT_OK(strata_device_fill(f->device, a, 1, 1 * MIB, NULL));
    EXPECT_FALSE(f->device->capabilities.contents);
    put(f->device, a);
}

TEST_WORLD(sim_memory, prefetch_and_advice_take_managed_memory_alone, 0) {
    strata_address_t m, d = get(f->device, 2 * MIB);
    ASSERT_OK(strata_device_malloc(f->device, STRATA_MEMORY_MANAGED, 2 * MIB, &m));
    EXPECT_OK(strata_device_prefetch(f->device, m, 2 * MIB, true, NULL));
    EXPECT_OK(strata_device_advise(f->device, m + MIB, MIB, STRATA_ADVISE_SET_PREFERRED, false));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_prefetch(f->device, d, 2 * MIB, true, NULL));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_advise(f->device, m, 2 * MIB + 1, STRATA_ADVISE_SET_PREFERRED, false));
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_advise(f->device, m, MIB, (strata_advice_t)99, false));
    EXPECT_OK(strata_device_free(f->device, STRATA_MEMORY_MANAGED, m));
    put(f->device, d);
}

TEST_WORLD(sim_memory, a_device_closed_with_live_memory_leaks_nothing, .devices = 2, .contents = true) {
    strata_address_t a;
    get(f->device, 100);
    get(f->device, 5 * MIB);
    ASSERT_OK(strata_device_malloc(f->device, STRATA_MEMORY_MANAGED, MIB, &a));
    ASSERT_OK(strata_device_host_alloc(f->device, STRATA_MEMORY_PINNED, MIB, 64, 0, &a));
    ASSERT_OK(strata_device_malloc_async(f->device, NULL, MIB, NULL, &a));
    map_new(f->device, 4 * MIB);
    stream_new(f->device, STRATA_STREAM_BLOCKING);
    event_new(f->device);
}

TEST(sim_memory, a_world_ends_with_the_last_of_its_holders) {
    strata_sim_t *world;
    strata_device_t *device, *again;
    const strata_sim_options_t options = {.devices = 17};
    EXPECT_STATUS(STRATA_E_INVALID, strata_sim_new(&options, &world));
    ASSERT_OK(strata_sim_new(NULL, &world));
    EXPECT_EQ(strata_sim_devices(world), 1);
    ASSERT_OK(strata_sim_open(world, 0, &device));
    EXPECT_STREQ(device->name, "sim:h100");
    EXPECT_STATUS(STRATA_E_BUSY, strata_sim_open(world, 0, &again));
    EXPECT_STATUS(STRATA_E_NO_DEVICE, strata_sim_open(world, 1, &again));
    strata_device_close(device);
    ASSERT_OK(strata_sim_open(world, 0, &device));
    strata_sim_drop(world);
    put(device, get(device, 100));
    strata_device_close(device);
}

static int open_files(void) {
    int count = 0;
    for (int file = 0; file < 256; file++) count += fcntl(file, F_GETFD) >= 0;
    return count;
}

/* A world that was dropped lasts until the last of its devices is closed, and no longer: the file of its contents goes with it. */
TEST(sim_memory, a_dropped_world_ends_with_the_last_of_its_devices) {
    int before = open_files();
    fixture_t f = fixture_open((strata_sim_options_t){.devices = 2, .contents = true});
    mapped_t m = map_new(f.device, 2 * MIB);
    EXPECT_EQ(open_files(), before + 1);
    strata_sim_drop(f.world);
    strata_device_close(f.other);
    ASSERT_OK(strata_device_fill(f.device, m.address, 3, 2 * MIB, NULL));
    EXPECT_EQ(*(uint8_t *)strata_device_host_view(f.device, m.address, 1), 3);
    EXPECT_EQ(open_files(), before + 1);
    strata_device_close(f.device);
    EXPECT_EQ(open_files(), before);
}

/* A program that has closed its standard input gets descriptor 0 for what it opens next. */
TEST(sim_memory, contents_in_a_file_of_descriptor_0_go_with_their_world) {
    int input = dup(0);
    close(0);
    fixture_t f = fixture_open((strata_sim_options_t){.contents = true});
    map_new(f.device, 2 * MIB);
    EXPECT_GE(fcntl(0, F_GETFD), 0);
    fixture_close(&f);
    EXPECT_LT(fcntl(0, F_GETFD), 0);
    if (input < 0) return;
    dup2(input, 0);
    close(input);
}
