/* A facade over simulated devices, for checks that need both ends. */
#ifndef STRATA_CONFORM_RIG_H
#define STRATA_CONFORM_RIG_H

#include "config/config.h"
#include "facade/open/life.h"
#include "facade/registry/facade.h"
#include "lab/conform/rig/expect.h"
#include "platform/sim/sim.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

/* Sanitizers make a run ten times slower: there only every n-th failure is tried, and the test says so. */
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

enum { RIG_GIVEN = 1024 };

typedef struct rig {
    strata_sim_t *world;
    strata_device_t *devices[2];
    uint32_t count;
    strata_strategy_t *strategy;
    bool borrowed_strategy; /* somebody else deletes it */
    strata_t s;
    strata_place_t gpu;
    const struct subject *subject; /* of the suite, opened with so much memory; NULL: none */
    uint64_t capacity;
    char opened_with[160]; /* the beginning of rig_open()'s text, for who reads of a failure */
    _Atomic strata_ref_t given[RIG_GIVEN]; /* the last blocks of rig_allocate() */
    _Atomic uint32_t given_count;
} rig_t;

/* A strategy by preset or by YAML text, with settings, over `count` simulated devices of `capacity` bytes (0: the profile's).
 * Fails the test if it cannot. */
void rig_open(rig_t *rig, const char *preset_or_text, const char *const *set, size_t set_count, uint64_t capacity, uint32_t count);
/* The strategy of rig_open() alone, for several rigs; deleted by strata_strategy_delete(). NULL fails the test. */
strata_strategy_t *rig_strategy(const char *preset_or_text, const char *const *set, size_t set_count);
/* Over a strategy that the caller keeps, with everything that can be said of the devices and of the facade. */
void rig_open_on(rig_t *rig, strata_strategy_t *strategy, const strata_sim_options_t *options, uint32_t flags);
/* What a test of failures wants: the devices without the facade; then rig->s by strata_facade_open_on(). */
void rig_open_devices(rig_t *rig, strata_strategy_t *strategy, const strata_sim_options_t *options);
/* The devices and the strategy, when the facade is closed; every device must have everything back. */
void rig_end(rig_t *rig);
/* Closes with nothing live; checks that every device has everything back. */
void rig_close(rig_t *rig);
/* Frees those of the last blocks of rig_allocate() that are live, and closes: anything else that is live is a failure. */
void rig_finish(rig_t *rig);
/* Counts the block as one of rig_allocate(). */
void rig_gave(rig_t *rig, strata_ref_t ref);
/* The same by force, whatever is live. */
void rig_close_by_force(rig_t *rig);

strata_stream_t rig_stream(rig_t *rig);
bool rig_overlap(const strata_block_t *a, const strata_block_t *b);
/* A request of so many bytes must have been served. */
void rig_expect_served(const rig_t *rig, size_t size, strata_status_t status);
strata_block_t rig_allocate(rig_t *rig, strata_stream_t stream, size_t size);
/* Keeps `stream` busy for so many ns with the block (ref 0: none). */
void rig_work(rig_t *rig, strata_stream_t stream, uint64_t duration_ns, strata_ref_t ref);
/* The host computes for so many ns. */
void rig_pass(rig_t *rig, uint64_t ns);
strata_statistics_t rig_figures(rig_t *rig);
/* The stack of a stream of rig->gpu, made if there is none. */
strata_stack_t *rig_stack(rig_t *rig, strata_stream_t stream);
strata_domain_t *rig_domain(rig_t *rig);
uint64_t rig_calls(rig_t *rig, strata_device_call_t call);

#endif
