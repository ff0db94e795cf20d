/* A facade whose gpu place is naive_best_fit or thread_local over the simulated device, with options. */
#ifndef STRATA_TESTS_NAIVE_NAIVE_H
#define STRATA_TESTS_NAIVE_NAIVE_H

#include "allocation/cache/policies/naive/naive_best_fit_state.h"
#include "tests/facade/support/fixture.h"

#define KIB         ((size_t)1024)
#define MILLISECOND (1000ull * 1000)

/* `options`: what stands in the braces after the layer, as in "initial: 8MiB". */
void naive_open(rig_t *rig, const char *layer, const char *options, uint64_t capacity);
/* The layer that serves a stream of the calling thread. */
naive_t *naive_of(rig_t *rig, strata_stream_t stream);
/* What may be used of the device now. */
uint64_t naive_usable(rig_t *rig);
/* Bytes of the blocks of the pool that serves the default stream, huge ones not counted. */
uint64_t naive_pool_used(rig_t *rig);
/* The option's text is refused where a strategy is read. */
void naive_expect_refused(const char *place, const char *options, const char *part);

#endif
