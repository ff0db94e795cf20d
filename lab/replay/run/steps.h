/* Counts the allocations of a repeating program that get another address than one step before. The k-th
 * allocation of a step is compared with the k-th one of the step before. For one thread. */
#ifndef STRATA_REPLAY_STEPS_H
#define STRATA_REPLAY_STEPS_H

#include "trace/trace.h"

typedef struct strata_step_alloc {
    uint64_t address; /* 0 if none was served */
    uint64_t size;
    uint16_t stream, pool;
    uint8_t place;
} strata_step_alloc_t;

typedef struct strata_steps {
    strata_step_alloc_t *now, *before; /* of the current step and of the one before; NULL if there is none yet */
    uint32_t capacity;
    bool any; /* the trace has steps */
    uint32_t count, count_before;
    uint32_t changed; /* of the current step, so far */
    bool repeats; /* the current step has made the same requests as the one before, so far */
    uint64_t ended; /* steps */
    uint64_t compared; /* steps compared with the one before */
    uint64_t changes; /* changes in those steps */
} strata_steps_t;

/* For a trace without steps, later calls cost nothing. */
void strata_steps_begin(strata_steps_t *steps, const strata_trace_t *trace);
void strata_steps_end(strata_steps_t *steps);
strata_status_t strata_steps_compare(strata_steps_t *steps, const strata_trace_event_t *event, uint64_t address);
/* Records the address of an alloc, or 0 if it was not served. If this fails with E_HOST_MEMORY, the alloc is not counted. */
static inline strata_status_t strata_steps_alloc(strata_steps_t *steps, const strata_trace_event_t *event, uint64_t address) {
    return steps->any ? strata_steps_compare(steps, event, address) : STRATA_OK;
}
/* Ends a step of the program. */
void strata_steps_step(strata_steps_t *steps);
/* Returns STRATA_FIGURE_NULL if no two consecutive steps, from the second on, made the same requests in the same order. */
uint64_t strata_steps_changes(const strata_steps_t *steps);

#endif
