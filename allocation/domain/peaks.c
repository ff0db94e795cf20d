#include "allocation/domain/peaks.h"

#include "allocation/domain/domain.h"
#include "allocation/stack/magazines.h"
#include "platform/arithmetic.h"

void strata_peaks_init(strata_peaks_t *peaks) {
    *peaks = (strata_peaks_t){0};
    strata_lock_init(&peaks->lock, STRATA_RANK_EVENTS, NULL);
}

/* ---- one stack ---- */

/* Excludes bytes that the stack's threads have freed and cached (allocation/stack/magazines.h). */
static uint64_t now_of(strata_stack_t *stack, int measure) {
    const strata_statistics_t *f = &stack->figures;
    uint64_t booked = strata_word_read(measure == STRATA_REQUESTED ? &f->requested_bytes : &f->allocated_bytes);
    return booked - strata_min(strata_magazines_idle(stack, measure), booked);
}

static uint64_t *peak_of(strata_stack_t *stack, int measure) {
    return measure == STRATA_REQUESTED ? &stack->figures.peak_requested_bytes : &stack->figures.peak_allocated_bytes;
}

/* The bound never exceeds the stack's own peak, so that this peak is exact too. */
static void watch(strata_stack_t *stack, int measure) {
    uint64_t bound = strata_min(stack->peak_share.allowed[measure], *peak_of(stack, measure));
    atomic_store_explicit(&stack->peak_bound[measure], bound, memory_order_relaxed);
}

/* ---- all stacks ---- */

/* Sums up all stacks, and shares out the margin above the sum: the asking stack gets half, and the others share
 * the rest. A stack's own peak is a lower bound for the domain's. A single stack has no bound. */
static void share_all(strata_peaks_t *peaks, const strata_stack_t *asks) {
    bool free = peaks->count == 1 || peaks->crowded;
    for (int measure = 0; measure < STRATA_MEASURES; measure++) {
        uint64_t sum = 0, most = peaks->highest_sum[measure], own = 0, other = 0;
        for (strata_stack_t *stack = free ? NULL : peaks->first; stack; stack = stack->peak_share.next) {
            stack->peak_share.allowed[measure] = now_of(stack, measure);
            sum += stack->peak_share.allowed[measure];
            most = strata_max(most, *peak_of(stack, measure));
        }
        if (!free) {
            peaks->highest_sum[measure] = most = strata_max(most, sum);
            uint64_t left = most + most / STRATA_PEAKS_PART - sum;
            own = left / 2;
            other = (left - own) / (peaks->count - 1);
        }
        for (strata_stack_t *stack = peaks->first; stack; stack = stack->peak_share.next) {
            stack->peak_share.allowed[measure] = free ? UINT64_MAX
                                                      : stack->peak_share.allowed[measure] + (stack == asks ? own : other);
            watch(stack, measure);
        }
    }
}

void strata_stack_note_peaks(strata_stack_t *stack) {
    strata_peaks_t *peaks = &stack->domain->peaks;
    if (stack->magazine_use.occupied) strata_stack_flush_magazines(stack);
    strata_lock(&peaks->lock);
    bool shares = false;
    if (!stack->peak_share.listed) {
        /* If there were already too many stacks, no stack has a bound, and only the new stack's is lifted. */
        shares = !peaks->crowded;
        for (int measure = 0; measure < STRATA_MEASURES && !shares; measure++) stack->peak_share.allowed[measure] = UINT64_MAX;
        stack->peak_share.listed = true;
        stack->peak_share.next = peaks->first;
        peaks->first = stack;
        if (++peaks->count > STRATA_PEAKS_STACKS) peaks->crowded = true;
    }
    for (int measure = 0; measure < STRATA_MEASURES; measure++) {
        uint64_t now = now_of(stack, measure);
        *peak_of(stack, measure) = strata_max(*peak_of(stack, measure), now);
        shares = shares || now > stack->peak_share.allowed[measure];
        watch(stack, measure);
    }
    if (shares) share_all(peaks, stack);
    strata_unlock(&peaks->lock);
}

void strata_peaks_remove(strata_peaks_t *peaks, strata_stack_t *stack) {
    strata_lock(&peaks->lock);
    strata_stack_t **link = &peaks->first;
    while (*link && *link != stack) link = &(*link)->peak_share.next;
    if (*link) {
        *link = stack->peak_share.next;
        peaks->count--;
    }
    stack->peak_share.listed = false;
    for (int measure = 0; measure < STRATA_MEASURES; measure++) {
        peaks->ended[measure] = strata_max(peaks->ended[measure], *peak_of(stack, measure));
        peaks->ended_sum[measure] += *peak_of(stack, measure);
    }
    strata_unlock(&peaks->lock);
}

void strata_peaks_begin_stack(strata_peaks_t *peaks, strata_stack_t *stack) {
    strata_lock(&peaks->lock);
    for (int measure = 0; measure < STRATA_MEASURES; measure++) {
        *peak_of(stack, measure) = now_of(stack, measure);
        watch(stack, measure);
    }
    strata_unlock(&peaks->lock);
}

void strata_peaks_begin(strata_peaks_t *peaks) {
    strata_lock(&peaks->lock);
    peaks->crowded = peaks->count > STRATA_PEAKS_STACKS;
    for (int measure = 0; measure < STRATA_MEASURES; measure++)
        peaks->highest_sum[measure] = peaks->ended[measure] = peaks->ended_sum[measure] = 0;
    share_all(peaks, NULL);
    strata_unlock(&peaks->lock);
}

/* A single stack's peak is a lower bound for the domain's, and exact if there was only one stack. */
void strata_peaks_read(strata_peaks_t *peaks, uint64_t reserved, uint64_t peak_bytes[STRATA_MEASURES]) {
    strata_lock(&peaks->lock);
    for (int measure = 0; measure < STRATA_MEASURES; measure++) {
        uint64_t now = 0, highest = peaks->ended[measure], sum = peaks->ended_sum[measure];
        for (strata_stack_t *stack = peaks->first; stack; stack = stack->peak_share.next) {
            now += now_of(stack, measure);
            highest = strata_max(highest, *peak_of(stack, measure));
            sum += *peak_of(stack, measure);
        }
        peaks->highest_sum[measure] = strata_max(peaks->highest_sum[measure], strata_max(now, highest));
        /* Concurrent requests of three threads may sum up to more than was ever live. */
        uint64_t seen = peaks->count > 1 ? strata_max(strata_min(peaks->highest_sum[measure], reserved), now)
                                         : peaks->highest_sum[measure];
        peak_bytes[measure] = peaks->crowded ? strata_max(strata_min(sum, reserved), seen) : seen;
    }
    strata_unlock(&peaks->lock);
}
