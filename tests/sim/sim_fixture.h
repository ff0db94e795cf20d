/* A world for a test: opened in one call, checked and closed in another. */
#ifndef STRATA_TESTS_SIM_FIXTURE_H
#define STRATA_TESTS_SIM_FIXTURE_H

#include "platform/sim/sim.h"
#include "tests/harness/test.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define US  UINT64_C(1000)

typedef struct fixture {
    strata_sim_t *world;
    strata_device_t *device, *other; /* other: NULL with one device */
} fixture_t;

static inline fixture_t fixture_open(strata_sim_options_t options) {
    fixture_t fixture = {0};
    EXPECT_OK(strata_sim_new(&options, &fixture.world));
    EXPECT_OK(strata_sim_open(fixture.world, 0, &fixture.device));
    if (options.devices > 1) EXPECT_OK(strata_sim_open(fixture.world, 1, &fixture.other));
    return fixture;
}

static inline void fixture_close(fixture_t *fixture) {
    EXPECT_OK(strata_sim_validate(fixture->world));
    strata_device_close(fixture->device);
    if (fixture->other) strata_device_close(fixture->other);
    strata_sim_drop(fixture->world);
}

/* A test of the world `f`, opened with these options: TEST_WORLD(suite, name, .devices = 2) */
#define TEST_WORLD(suite, name, ...)                                                                                               \
    TEST_WITH(suite, name, fixture_t, f, fixture_close, *f = fixture_open((strata_sim_options_t){__VA_ARGS__}))

/* Works like TEST_WORLD, once for each `way` from 0 to below `ways`. */
#define TEST_WORLD_WAYS(suite, name, way, ways, ...)                                                                               \
    TEST_WAYS(suite, name, way, ways, fixture_t, f, fixture_close, *f = fixture_open((strata_sim_options_t){__VA_ARGS__}))

static inline strata_sim_figures_t figures_of(strata_device_t *device) {
    strata_sim_figures_t figures;
    strata_sim_figures(device, &figures);
    return figures;
}

static inline strata_address_t get(strata_device_t *device, uint64_t size) {
    strata_address_t address = 0;
    EXPECT_OK(strata_device_malloc(device, STRATA_MEMORY_DEVICE, size, &address));
    return address;
}

static inline void put(strata_device_t *device, strata_address_t address) {
    EXPECT_OK(strata_device_free(device, STRATA_MEMORY_DEVICE, address));
}

static inline strata_handle_t stream_new(strata_device_t *device, strata_stream_flags_t flags) {
    strata_handle_t stream = NULL;
    EXPECT_OK(strata_device_stream_create(device, flags, 0, &stream));
    return stream;
}

static inline strata_handle_t event_new(strata_device_t *device) {
    strata_handle_t event = NULL;
    EXPECT_OK(strata_device_event_create(device, &event));
    return event;
}

/* A handle mapped at a range of its own, with access. */
typedef struct mapped {
    strata_address_t address;
    strata_physical_t physical;
} mapped_t;

static inline mapped_t map_new(strata_device_t *device, uint64_t size) {
    mapped_t mapped = {0};
    EXPECT_OK(strata_device_reserve(device, size, 0, &mapped.address));
    EXPECT_OK(strata_device_create(device, size, false, &mapped.physical));
    EXPECT_OK(strata_device_map(device, mapped.address, size, mapped.physical));
    EXPECT_OK(strata_device_set_access(device, mapped.address, size, NULL, 0));
    return mapped;
}

#endif
