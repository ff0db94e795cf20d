/* A strategy with pools, and what tests ask of them. */
#ifndef STRATA_TESTS_FACADE_POOLED_H
#define STRATA_TESTS_FACADE_POOLED_H

#include "tests/facade/support/fixture.h"

#define POOLED                                                                                                                     \
    "strategy: pooled\n"                                                                                                           \
    "stack: [retry: {timeout: 2ms}, stream_safe, auto_growth: {chunk_size: 2MiB}, system]\n"                                       \
    "pools:\n"                                                                                                                     \
    "  weights: {stack: [stream_safe, auto_growth: {chunk_size: 8MiB}, system], places: {pinned: [buffered, system]}}\n"           \
    "  scratch: [limit: {bytes: 16MiB}, system]\n"                                                                                 \
    "  same:\n"

/* The pool's number, which must be one. */
uint64_t pool_of(rig_t *rig, const char *name);
/* A block of a pool (0: of the thread's current one). */
strata_block_t get_from(rig_t *rig, uint64_t pool, strata_stream_t stream, size_t size);
strata_statistics_t pool_figures(rig_t *rig, uint64_t pool);
/* The block is of that pool. */
void expect_pool(rig_t *rig, strata_ref_t ref, uint64_t pool);

#endif
