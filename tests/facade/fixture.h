/* A facade over simulated devices, for tests that need both ends. */
#ifndef STRATA_TESTS_FACADE_FIXTURE_H
#define STRATA_TESTS_FACADE_FIXTURE_H

#include "config/config.h"
#include "facade/facade.h"
#include "platform/sim/sim.h"
#include "tests/harness/test.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

typedef struct rig {
    strata_sim_t *world;
    strata_device_t *devices[2];
    uint32_t count;
    strata_strategy_t *strategy;
    strata_t s;
    strata_place_t gpu;
} rig_t;

/* A strategy by preset or by YAML text, with settings, over `count` simulated devices of `capacity` bytes (0: the profile's).
 * Fails the test if it cannot. */
void rig_open(rig_t *rig, const char *preset_or_text, const char *const *set, size_t set_count, uint64_t capacity,
              uint32_t count);
/* Closes with nothing live; checks that every device has everything back. */
void rig_close(rig_t *rig);
/* The same by force, whatever is live. */
void rig_close_by_force(rig_t *rig);

strata_stream_t rig_stream(rig_t *rig);
strata_block_t rig_allocate(rig_t *rig, strata_stream_t stream, size_t size);
strata_statistics_t rig_figures(rig_t *rig);
uint64_t rig_calls(rig_t *rig, strata_device_call_t call);

#endif
