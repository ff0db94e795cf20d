/* Worlds at their bounds: profiles, threads' clocks, faults side by side, what is shared and held; and that the check of a world's
 * structures finds each that is broken. */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include "platform/sim/graphs/sim_graph.h"
#include "tests/sim/sim_fixture.h"

/* ---- profiles ---- */

static strata_status_t world_of(const strata_sim_profile_t *profile) {
    const strata_sim_options_t options = {.profile = profile};
    strata_sim_t *world = NULL;
    strata_status_t status = strata_sim_new(&options, &world);
    if (status == STRATA_OK) strata_sim_drop(world);
    return status;
}

TEST(sim_worlds, a_profile_is_taken_up_to_its_bounds) {
    const strata_sim_profile_t h100 = *strata_sim_profile("h100");
    strata_sim_profile_t profile = h100;
    profile.pack_below_bytes = 0;
    for (profile.granule_bytes = 65536; profile.granule_bytes <= UINT64_C(1) << 40; profile.granule_bytes <<= 12)
        EXPECT_OK(world_of(&profile));
    profile.granule_bytes = 32768;
    EXPECT_STATUS(STRATA_E_INVALID, world_of(&profile));
    profile.granule_bytes = UINT64_C(1) << 41;
    EXPECT_STATUS(STRATA_E_INVALID, world_of(&profile));
    profile = h100;
    profile.pack_below_bytes = profile.granule_bytes;
    EXPECT_OK(world_of(&profile));
    profile.pack_below_bytes++;
    EXPECT_STATUS(STRATA_E_INVALID, world_of(&profile));
    profile = h100;
    profile.foreign_bytes = profile.total_bytes - profile.context_bytes;
    EXPECT_OK(world_of(&profile));
    profile.foreign_bytes++;
    EXPECT_STATUS(STRATA_E_INVALID, world_of(&profile));
    profile = h100;
    profile.address_bytes = UINT64_C(1) << 52;
    EXPECT_OK(world_of(&profile));
    profile.address_bytes++;
    EXPECT_STATUS(STRATA_E_INVALID, world_of(&profile));
    profile.address_bytes = 0;
    EXPECT_STATUS(STRATA_E_INVALID, world_of(&profile));
    static const double costs[] = {0, STRATA_SIM_COST_MAX, -0.1, 1.1 * STRATA_SIM_COST_MAX, NAN};
    for (int i = 0; i < 10; i++) {
        profile = h100;
        *(i % 2 ? &profile.malloc.fixed_ns : &profile.peer.per_mib_ns) = costs[i / 2];
        EXPECT_STATUS(i < 4 ? STRATA_OK : STRATA_E_INVALID, world_of(&profile));
    }
    static const double shares[] = {0, 1, -0.1, 1.1, NAN};
    for (int i = 0; i < 5; i++) {
        profile = h100;
        profile.driver_lock_share = shares[i];
        EXPECT_STATUS(i < 2 ? STRATA_OK : STRATA_E_INVALID, world_of(&profile));
    }
}

TEST(sim_worlds, sixteen_devices_have_addresses_and_nodes_of_their_own) {
    const strata_sim_options_t options = {.devices = 16};
    strata_sim_t *world;
    strata_device_t *devices[16];
    strata_address_t ends[16];
    ASSERT_OK(strata_sim_new(&options, &world));
    for (uint32_t i = 0; i < 16; i++) {
        ASSERT_OK(strata_sim_open(world, i, &devices[i]));
        EXPECT_TRUE(devices[i]->capabilities.peers);
        EXPECT_EQ(devices[i]->capabilities.near_node, i & 1);
        strata_address_t range;
        if (i > 0) EXPECT_GT(get(devices[i], 1), ends[i - 1]);
        for (int k = 0; k < 2; k++) /* near the end of what it has */
            ASSERT_OK(strata_device_reserve(devices[i], 2 * MIB, UINT64_C(1) << 51, &range));
        ends[i] = range + 2 * MIB;
    }
    for (uint32_t i = 0; i < 16; i++) strata_device_close(devices[i]);
    strata_sim_drop(world);
    fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){0});
    EXPECT_FALSE(f.device->capabilities.peers);
}

/* ---- clocks ---- */

typedef struct elsewhere {
    strata_sim_t *world;
    strata_lock_t lock;
    uint64_t advance_to, born, seen; /* its clock at first, and after the lock */
} elsewhere_t;

static void *advance(void *argument) {
    elsewhere_t *e = argument;
    e->born = strata_sim_now(e->world);
    strata_lock(&e->lock);
    e->seen = strata_sim_now(e->world);
    strata_sim_advance_to(e->world, e->advance_to);
    strata_unlock(&e->lock);
    return NULL;
}

static void elsewhere(elsewhere_t *e, uint64_t advance_to) {
    pthread_t thread;
    e->advance_to = advance_to;
    ASSERT_EQ(pthread_create(&thread, NULL, advance, e), 0);
    pthread_join(thread, NULL);
}

/* No hand-over moves a clock back, and a new thread begins at the latest of all, not at the last that was set. */
TEST_WORLD(sim_worlds, clocks_never_go_back, 0) {
    elsewhere_t e = {.world = f->world};
    strata_lock_init(&e.lock, STRATA_RANK_STACK, f->device->lock_observer);
    strata_sim_advance_to(f->world, 1000);
    elsewhere(&e, 90000);
    EXPECT_EQ(e.born, 1000);
    EXPECT_EQ(e.seen, 1000);
    strata_sim_advance_to(f->world, 2000);
    elsewhere(&e, 0);
    EXPECT_EQ(e.born, 90000);
    EXPECT_EQ(e.seen, 90000);
    strata_sim_advance_to(f->world, 500000);
    strata_lock(&e.lock); /* last let go of at 90000 */
    EXPECT_EQ(strata_sim_now(f->world), 500000);
    strata_unlock(&e.lock);
    strata_lock_destroy(&e.lock);
}

/* A price is rounded to the nearest nanosecond. */
TEST(sim_worlds, prices_are_rounded) {
    static const double prices[] = {0.4, 0.6, 1.4, 1.5};
    static const uint64_t wanted[] = {0, 1, 1, 2};
    for (size_t i = 0; i < sizeof prices / sizeof *prices; i++) {
        strata_sim_profile_t profile = *strata_sim_profile("h100");
        profile.mem_info = (strata_sim_cost_t){.fixed_ns = prices[i]};
        fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){.profile = &profile});
        uint64_t left, total;
        EXPECT_OK(strata_device_mem_info(f.device, &left, &total));
        EXPECT_EQ(strata_sim_now(f.world), wanted[i]);
        EXPECT_EQ(figures_of(f.device).device_call_ns, wanted[i]);
    }
}

/* ---- faults ---- */

/* Where two strike at once the first that was ordered answers, and both are spent; a lost device counts its calls on. */
TEST_WORLD(sim_worlds, two_faults_of_one_call_are_both_spent, 0) {
    strata_address_t address;
    ASSERT_OK(strata_sim_fail(f->device, STRATA_CALL_malloc, 1, false, STRATA_E_DEVICE));
    ASSERT_OK(strata_sim_fail(f->device, STRATA_DEVICE_CALLS, 1, false, STRATA_E_NO_MEMORY));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_malloc(f->device, STRATA_MEMORY_DEVICE, MIB, &address));
    put(f->device, get(f->device, MIB));
    ASSERT_OK(strata_sim_fail(f->device, STRATA_CALL_synchronise, 1, false, STRATA_E_DEVICE_LOST));
    uint64_t calls = strata_sim_calls(f->device);
    for (int i = 0; i < 3; i++) EXPECT_STATUS(STRATA_E_DEVICE_LOST, strata_device_synchronise(f->device));
    EXPECT_EQ(strata_last_error()->device_code, 719);
    EXPECT_EQ(strata_sim_calls(f->device), calls + 3);
    strata_sim_clear_faults(f->device);
    EXPECT_OK(strata_device_synchronise(f->device));
}

/* ---- sharing ---- */

TEST_WORLD(sim_worlds, a_descriptor_names_its_own_memory_alone, 0) {
    strata_physical_t h[3], imported = 77;
    int descriptors[3];
    for (int i = 0; i < 3; i++) {
        ASSERT_OK(strata_device_create(f->device, 2 * MIB, true, &h[i]));
        ASSERT_OK(strata_device_export_memory(f->device, h[i], &descriptors[i]));
        EXPECT_TRUE(fcntl(descriptors[i], F_GETFD) & FD_CLOEXEC);
    }
    ASSERT_OK(strata_device_release(f->device, h[1]));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_import_memory(f->device, descriptors[1], &imported));
    EXPECT_EQ(imported, 77);
    EXPECT_OK(strata_device_import_memory(f->device, descriptors[2], &imported));
    EXPECT_EQ(figures_of(f->device).used_bytes, 4 * MIB);
    for (int i = 0; i < 3; i++) close(descriptors[i]);
}

TEST_WORLD(sim_worlds, nobody_is_a_peer_of_itself, .devices = 2) {
    bool can = false;
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_can_access_peer(f->other, 1, &can));
    EXPECT_FALSE(can);
    EXPECT_OK(strata_device_can_access_peer(f->other, 0, &can));
    EXPECT_TRUE(can);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_enable_peer(f->other, 1));
}

/* ---- what is held, and host memory ---- */

TEST_WORLD(sim_worlds, what_is_held_is_told_of_its_own_device, .devices = 2) {
    strata_sim_held_t held, none = {0}, other;
    strata_address_t pinned, host, range;
    strata_physical_t handle;
    ASSERT_OK(strata_device_host_alloc(f->device, STRATA_MEMORY_PINNED, 3 * MIB + 1, 64, 0, &pinned));
    ASSERT_OK(strata_device_host_alloc(f->device, STRATA_MEMORY_HOST, 5 * MIB + 1, 64, 0, &host));
    ASSERT_OK(strata_device_reserve(f->device, 8 * MIB, 0, &range));
    ASSERT_OK(strata_device_create(f->device, 2 * MIB, false, &handle));
    for (uint64_t i = 0; i < 3; i++) ASSERT_OK(strata_device_map(f->device, range + 2 * i * MIB, 2 * MIB, handle));
    strata_sim_held(f->device, &held);
    EXPECT_EQ(held.pinned_bytes, 3 * MIB + 1);
    EXPECT_EQ(held.host_bytes, 5 * MIB + 1);
    EXPECT_EQ(held.address_bytes, 8 * MIB);
    EXPECT_EQ(held.mappings, 3);
    EXPECT_EQ(held.handles, 1);
    EXPECT_EQ(held.device_bytes, 2 * MIB);
    EXPECT_EQ(held.events + held.pools + held.graphs, 0);
    strata_sim_held(f->other, &other);
    EXPECT_EQ(memcmp(&other, &none, sizeof none), 0);
}

/* Each node that there is, with what may be said beside it; the kind that was asked is the kind that goes back. */
TEST_WORLD(sim_worlds, host_memory_of_a_node_is_told, 0) {
    strata_address_t a, b;
    for (uint32_t node = 0; node < 2; node++) {
        uint32_t flags = STRATA_HOST_ON_NODE(node) | STRATA_HOST_PORTABLE | STRATA_HOST_MAPPED;
        ASSERT_OK(strata_device_host_alloc(f->device, STRATA_MEMORY_PINNED, MIB, 64, flags, &a));
        EXPECT_EQ(strata_sim_host_node(f->device, a), (int)node);
        EXPECT_STATUS(STRATA_E_UNSUPPORTED,
                      strata_device_host_alloc(f->device, STRATA_MEMORY_PINNED, MIB, 64, flags | STRATA_HOST_WRITE_COMBINED, &b));
        EXPECT_OK(strata_device_host_free(f->device, STRATA_MEMORY_PINNED, a));
        EXPECT_EQ(strata_sim_host_node(f->device, a), -1);
    }
    EXPECT_STATUS(STRATA_E_UNSUPPORTED,
                  strata_device_host_alloc(f->device, STRATA_MEMORY_PINNED, MIB, 64, STRATA_HOST_ON_NODE(2), &b));
    ASSERT_OK(strata_device_host_alloc(f->device, STRATA_MEMORY_PINNED, MIB, 64, STRATA_HOST_WRITE_COMBINED, &a));
    EXPECT_EQ(strata_sim_host_node(f->device, a), -1);
    EXPECT_OK(strata_device_host_free(f->device, STRATA_MEMORY_PINNED, a));
    ASSERT_OK(strata_device_host_alloc(f->device, STRATA_MEMORY_HOST, 4096, 1 << 21, 0, &a));
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_host_alloc(f->device, STRATA_MEMORY_HOST, 4096, UINT64_C(1) << 31, 0, &b));
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_host_alloc(f->device, STRATA_MEMORY_DEVICE, 4096, 64, 0, &b));
    EXPECT_OK(strata_device_host_free(f->device, STRATA_MEMORY_HOST, a));
    strata_address_t device = get(f->device, MIB);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_host_free(f->device, STRATA_MEMORY_PINNED, device));
    put(f->device, device);
}

/* ---- the check itself ---- */

/* A world with one of each; what is broken by one is broken by one more or one less. */
#define BREAKS(number)                                                                                                             \
    do {                                                                                                                           \
        (number)++;                                                                                                                \
        if (strata_sim_validate(f->world) != STRATA_E_CORRUPT) FAIL_TEST("one more of %s", #number);                               \
        (number) -= 2;                                                                                                             \
        if (strata_sim_validate(f->world) != STRATA_E_CORRUPT) FAIL_TEST("one less of %s", #number);                               \
        (number)++;                                                                                                                \
        EXPECT_OK(strata_sim_validate(f->world));                                                                                  \
    } while (0)

TEST_WORLD(sim_worlds, the_check_finds_each_count_that_is_off_by_one, 0) {
    sim_device_t *device = (sim_device_t *)f->device;
    strata_handle_t stream = stream_new(f->device, STRATA_STREAM_NON_BLOCKING);
    strata_address_t managed, pooled[3];
    get(f->device, 4 * MIB);
    get(f->device, 100);
    ASSERT_OK(strata_device_malloc(f->device, STRATA_MEMORY_MANAGED, 4 * MIB, &managed));
    for (int i = 0; i < 3; i++) ASSERT_OK(strata_device_malloc_async(f->device, NULL, MIB, stream, &pooled[i]));
    ASSERT_OK(strata_device_free_async(f->device, pooled[1], stream));
    mapped_t m = map_new(f->device, 2 * MIB);
    sim_region_t *range = sim_region_at(f->world, m.address);
    sim_mapping_t *mapping = (sim_mapping_t *)range->mappings.root;
    sim_pool_t *pool = device->default_pool;
    EXPECT_OK(strata_sim_validate(f->world));
    BREAKS(device->managed);
    BREAKS(device->mappings);
    BREAKS(device->reserved_addresses);
    BREAKS(pool->reserved);
    BREAKS(pool->used);
    BREAKS(pool->live);
    BREAKS(pool->owned);
    BREAKS(pool->idle.count);
    BREAKS(pool->chunks->size);
    BREAKS(pool->chunks->first->size);
    BREAKS(mapping->size);
    BREAKS(range->mappings.count);
    BREAKS(f->world->regions.count);
    BREAKS(device->slots[SIM_STREAM].free_count);
}

/* Bytes in use are those of regions, granules, chunks and handles together: one less is too few, of whatever there are. */
TEST_WORLD_WAYS(sim_worlds, the_check_counts_every_byte_in_use, kind, 4, 0) {
    sim_device_t *device = (sim_device_t *)f->device;
    strata_address_t address;
    strata_physical_t handle;
    if (kind == 0) get(f->device, 4 * MIB);
    if (kind == 1) get(f->device, 100);
    if (kind == 2) ASSERT_OK(strata_device_malloc_async(f->device, NULL, MIB, NULL, &address));
    if (kind == 3) ASSERT_OK(strata_device_create(f->device, 2 * MIB, false, &handle));
    EXPECT_OK(strata_sim_validate(f->world));
    device->used--;
    EXPECT_STATUS(STRATA_E_CORRUPT, strata_sim_validate(f->world));
    device->used = device->capacity + 1;
    EXPECT_STATUS(STRATA_E_CORRUPT, strata_sim_validate(f->world));
    device->used = device->capacity;
    EXPECT_OK(strata_sim_validate(f->world));
}
