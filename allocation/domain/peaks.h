/* The most that lived at one moment in all stacks of a place together.
 *
 * A hit asks nobody: each stack has a bound (`strata_stack_t.watched`) up to which what lives in it may rise without a look at the
 * others. The bounds together are never more than one part in STRATA_PEAKS_PART above the most that was seen. Who passes its bound
 * sums up what lives in all stacks, which is exact, and shares out anew what is left. So what is told was there at one moment, and
 * what was never seen is less than that part. Requests of other threads that are under way at a look may be seen or not. */
#ifndef STRATA_ALLOCATION_PEAKS_H
#define STRATA_ALLOCATION_PEAKS_H

#include "allocation/stack/stack.h"

enum {
    STRATA_PEAKS_PART = 128,
    STRATA_PEAKS_STACKS = 64 /* with more that have served anything a look would take long: the sum of their peaks is told */
};

/* Arrays are by STRATA_REQUESTED and STRATA_ALLOCATED. */
typedef struct strata_peaks {
    strata_lock_t lock; /* a leaf; guards what follows, `may` of the stacks and their own peaks */
    strata_stack_t *first; /* stacks that have served anything */
    uint32_t count;
    bool crowded; /* there were too many, since the peaks began */
    uint64_t most[STRATA_MEASURES]; /* what was seen */
    uint64_t ended[STRATA_MEASURES]; /* the peaks of stacks that have ended, and their sum */
    uint64_t ended_sum[STRATA_MEASURES];
} strata_peaks_t;

void strata_peaks_init(strata_peaks_t *peaks);
/* The stack ends: its peaks stay. */
void strata_peaks_leave(strata_peaks_t *peaks, strata_stack_t *stack);
/* The peaks of a stack begin at what is now, under its lock. */
void strata_peaks_begin_stack(strata_peaks_t *peaks, strata_stack_t *stack);
/* Those of the place. No lock is held. */
void strata_peaks_begin(strata_peaks_t *peaks);
/* The peaks of the place, by measure, which are no more than `reserved`. */
void strata_peaks_tell(strata_peaks_t *peaks, uint64_t reserved, uint64_t told[STRATA_MEASURES]);

#endif
