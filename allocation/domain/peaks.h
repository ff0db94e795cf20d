/* The peak of the live bytes in all stacks of a place together.
 *
 * A hit does not look at other stacks. Each stack has a bound (`strata_stack_t.peak_bound`), up to which its
 * live bytes may rise without a look. All bounds together exceed the highest sum seen by at most
 * 1/STRATA_PEAKS_PART. A stack that passes its bound sums up the live bytes of all stacks, which is exact,
 * and shares out the remaining margin again. So a reported peak existed at one moment, and peaks that were
 * missed are smaller than that margin. Concurrent requests of other threads may be included in a sum or
 * not. */
#ifndef STRATA_ALLOCATION_PEAKS_H
#define STRATA_ALLOCATION_PEAKS_H

#include "allocation/stack/stack.h"

enum {
    STRATA_PEAKS_PART = 128,
    /* with more stacks that have served a request a look would take long, so the sum of their peaks is reported */
    STRATA_PEAKS_STACKS = 64
};

/* Arrays are by STRATA_REQUESTED and STRATA_ALLOCATED. */
typedef struct strata_peaks {
    strata_lock_t lock; /* a leaf; guards the fields below, the stacks' shares and their own peaks */
    strata_stack_t *first; /* stacks that have served a request */
    uint32_t count;
    bool crowded; /* there have been too many stacks since the peaks began */
    uint64_t highest_sum[STRATA_MEASURES]; /* the highest sum seen */
    uint64_t ended[STRATA_MEASURES]; /* the highest peak of a stack that has ended, and the sum of such peaks */
    uint64_t ended_sum[STRATA_MEASURES];
} strata_peaks_t;

void strata_peaks_init(strata_peaks_t *peaks);
/* Removes a stack that is being destroyed. Its peaks are kept. */
void strata_peaks_remove(strata_peaks_t *peaks, strata_stack_t *stack);
/* Resets the peaks of a stack to the current bytes. The stack's lock is held. */
void strata_peaks_begin_stack(strata_peaks_t *peaks, strata_stack_t *stack);
/* Resets the peaks of the place. No lock is held. */
void strata_peaks_begin(strata_peaks_t *peaks);
/* Returns the peaks of the place, by measure, which are at most `reserved`. */
void strata_peaks_read(strata_peaks_t *peaks, uint64_t reserved, uint64_t peak_bytes[STRATA_MEASURES]);

#endif
