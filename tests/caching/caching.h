/* A facade whose gpu place is `caching` over the simulated device, with options. */
#ifndef STRATA_TESTS_CACHING_CACHING_H
#define STRATA_TESTS_CACHING_CACHING_H

#include "allocation/cache/policies/caching/caching_state.h"
#include "tests/facade/support/fixture.h"

#define KIB         ((size_t)1024)
#define MILLISECOND (1000ull * 1000)

/* `options`: what stands in the braces after caching, as in "max_split_size: 40MiB". */
void caching_open(rig_t *rig, const char *options, uint64_t capacity);
/* The layer of a rig that caching_open() made. */
caching_t *caching_of(rig_t *rig);
uint64_t caching_reserved(rig_t *rig);
/* Takes and frees one block of each size, all live at once; so they lie idle. */
void caching_make_idle(rig_t *rig, strata_stream_t stream, const size_t *mib, size_t count);
/* The option's text is refused where a strategy is read. */
void caching_expect_refused(const char *options, const char *part);

#endif
