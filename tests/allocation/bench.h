/* A domain over a simulated device with a plan made by hand: what the core does without a facade. */
#ifndef STRATA_TESTS_ALLOCATION_BENCH_H
#define STRATA_TESTS_ALLOCATION_BENCH_H

#include "allocation/domain/domain.h"
#include "allocation/domain/layer.h"
#include "platform/sim/sim.h"
#include "strategy/model.h"
#include "tests/allocation/test_layers.h"
#include "tests/harness/test.h"

#define MIB (1ull << 20)
enum { BENCH_FACADE = 0x5151 };

typedef struct bench {
    strata_sim_t *world;
    strata_device_t *device;
    strata_plan_t plan;
    strata_arena_t *options;
    strata_domain_t *domain;
    strata_stack_t *stack;
} bench_t;

/* Adds a node of a registered or of the test's types with "name=value" options (NULL: defaults); its number. Nodes are added
 * from the top; bench_link() says what stands below. */
uint8_t bench_node(bench_t *bench, const strata_layer_type_t *type, const char *const *options);
void bench_link(bench_t *bench, uint8_t upper, uint8_t lower);
/* A straight stack of types, outermost first, closed by NULL; `options` go to the layers that have them. */
void bench_straight(bench_t *bench, const strata_layer_type_t *const *types, const char *const *options);
void bench_begin(bench_t *bench);
/* auto_growth with options over the test's source, opened. */
void bench_open_cache(bench_t *bench, uint64_t capacity, const char *const *options);
/* The device, the domain and one stack for the default stream, from the plan. */
void bench_open(bench_t *bench, uint64_t capacity);
/* Everything; the device must have everything back. */
void bench_close(bench_t *bench);

/* Serves or fails the test. */
strata_record_t *bench_allocate(bench_t *bench, size_t size);
strata_status_t bench_try(bench_t *bench, size_t size, strata_record_t **record);
/* By the record's own ref. */
void bench_free(bench_t *bench, strata_record_t *record);
/* Bytes that the device has given. */
uint64_t bench_held(const bench_t *bench);

#endif
