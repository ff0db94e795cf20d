/* Empty ranges, for builds without NVTX's headers. */
#include "platform/ranges/ranges.h"

void strata_range_begin(strata_range_t range, uint64_t bytes) {
    (void)range;
    (void)bytes;
}

void strata_range_end(void) {}

bool strata_ranges_are_built(void) { return false; }
