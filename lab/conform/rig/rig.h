/* A test fixture: a facade over simulated devices, for checks that need both ends. */
#ifndef STRATA_CONFORM_RIG_H
#define STRATA_CONFORM_RIG_H

#include "config/config.h"
#include "facade/open/life.h"
#include "facade/registry/facade.h"
#include "lab/conform/rig/expect.h"
#include "platform/sim/sim.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

/* Sanitizers make a run ten times slower. With them only every n-th failure is tried, and the test reports that. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STRIDE 23
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STRIDE 23
#endif
#endif
#ifndef STRIDE
#define STRIDE 1
#endif

struct subject;

enum { RIG_REGISTERED = 1024 };

typedef struct rig {
    strata_sim_t *world;
    strata_device_t *devices[2];
    uint32_t count;
    strata_strategy_t *strategy;
    bool borrowed_strategy; /* another owner deletes it */
    strata_t s;
    strata_place_t gpu;
    const struct subject *subject; /* of the suite, opened with `capacity`; may be NULL */
    uint64_t capacity;
    char opened_with[160]; /* the beginning of rig_open()'s text, for the report of a failure */
    _Atomic strata_ref_t registered[RIG_REGISTERED]; /* the last blocks of rig_allocate() */
    _Atomic uint32_t registered_count;
} rig_t;

/* Opens a strategy over `count` simulated devices of `capacity` bytes (0 for the profile's). The strategy is
 * a preset or YAML text, with settings. Fails the test on an error. */
void rig_open(rig_t *rig, const char *preset_or_text, const char *const *set, size_t set_count, uint64_t capacity, uint32_t count);
/* Returns only the strategy of rig_open(), for several rigs. Release it with strata_strategy_delete(). If it
 * is NULL, the test has failed. */
strata_strategy_t *rig_strategy(const char *preset_or_text, const char *const *set, size_t set_count);
/* Opens a strategy that the caller keeps, with all options of the devices and of the facade. */
void rig_open_on(rig_t *rig, strata_strategy_t *strategy, const strata_sim_options_t *options, uint32_t flags);
/* Opens only the devices, for tests of failures. rig->s is then set by strata_facade_open_on(). */
void rig_open_devices(rig_t *rig, strata_strategy_t *strategy, const strata_sim_options_t *options);
/* Closes the devices and the strategy when the facade is closed. Expects that every device has everything back. */
void rig_end(rig_t *rig);
/* Closes with nothing live. Expects that every device has everything back. */
void rig_close(rig_t *rig);
/* Frees those of the last blocks of rig_allocate() that are live, and closes. Any other live block is a failure. */
void rig_finish(rig_t *rig);
/* Registers a block as one of rig_allocate(). */
void rig_register(rig_t *rig, strata_ref_t ref);
/* Closes by force, even with live blocks. */
void rig_close_by_force(rig_t *rig);

strata_stream_t rig_stream(rig_t *rig);
bool rig_overlap(const strata_block_t *a, const strata_block_t *b);
/* Expects that a request of `size` bytes was served. */
void rig_expect_served(const rig_t *rig, size_t size, strata_status_t status);
strata_block_t rig_allocate(rig_t *rig, strata_stream_t stream, size_t size);
/* Keeps `stream` busy for `duration_ns` with the block, or without one if `ref` is 0. */
void rig_work(rig_t *rig, strata_stream_t stream, uint64_t duration_ns, strata_ref_t ref);
/* Lets virtual time pass, as if the host computed. */
void rig_advance(rig_t *rig, uint64_t ns);
strata_statistics_t rig_figures(rig_t *rig);
/* Returns the stack of a stream of rig->gpu, which is created if there is none. */
strata_stack_t *rig_stack(rig_t *rig, strata_stream_t stream);
strata_domain_t *rig_domain(rig_t *rig);
uint64_t rig_calls(rig_t *rig, strata_device_call_t call);

#endif
