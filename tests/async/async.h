/* A facade over the preset cuda_malloc_async. */
#ifndef STRATA_TESTS_ASYNC_ASYNC_H
#define STRATA_TESTS_ASYNC_ASYNC_H

#include "allocation/domain/domain.h"
#include "tests/facade/support/fixture.h"

void async_open(rig_t *rig, const char *const *set, size_t count, uint64_t capacity, bool contents);
/* Physical memory that the device has given, now and at its peak. */
uint64_t async_used(rig_t *rig);
uint64_t async_peak_used(rig_t *rig);

#endif
