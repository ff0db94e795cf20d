/* A facade whose gpu place is `bfc` over the simulated device, or over a source of adjacent chunks, with options. */
#ifndef STRATA_TESTS_BFC_BFC_H
#define STRATA_TESTS_BFC_BFC_H

#include "allocation/cache/policies/bfc/bfc_state.h"
#include "tests/facade/support/fixture.h"

#define KIB         ((size_t)1024)
#define MILLISECOND (1000ull * 1000)

/* `options`: what stands in the braces after bfc, as in "timestamps: true". */
void bfc_open(rig_t *rig, const char *options, uint64_t capacity);
/* The same over a source that cuts one piece of memory from its low end, and never serves an address twice. */
void bfc_open_adjacent(rig_t *rig, const char *options);
/* The source alone, as the layer "adjacent". */
void bfc_register_adjacent(void);
/* Over any layers: what stands after bfc in the list of the stack, as in "limit: {..}\n  - system". */
void bfc_open_over(rig_t *rig, const char *options, const char *below, uint64_t capacity);
/* The layer of a rig of these. */
bfc_t *bfc_of(rig_t *rig);
bfc_t *bfc_of_group(const strata_group_t *group);
/* A request past the facade: any alignment, any count; ref 0: it failed. */
strata_block_t bfc_serve(rig_t *rig, strata_stream_t stream, size_t size, size_t alignment);
/* The facade's, with `freed_before`. */
strata_block_t bfc_before(rig_t *rig, strata_stream_t stream, size_t size, uint64_t count);
uint64_t bfc_next(uint64_t *random, uint64_t bound);
/* Blocks of a rig that are freed together. */
void bfc_free_all(rig_t *rig, strata_block_t *blocks, size_t count);

#endif
