/* Whether a program that repeats itself gets the same addresses at every step: the k-th allocation of a step against the k-th one of
 * the step before. For one thread. */
#ifndef STRATA_REPLAY_STEPS_H
#define STRATA_REPLAY_STEPS_H

#include "trace/trace.h"

typedef struct strata_step_alloc {
    uint64_t address; /* 0: none was served */
    uint64_t size;
    uint16_t stream, pool;
    uint8_t place;
} strata_step_alloc_t;

typedef struct strata_steps {
    strata_step_alloc_t *now, *before; /* of the step under way, and of the last one that ended; NULL: none yet */
    uint32_t capacity;
    bool any; /* the trace has steps */
    uint32_t count, count_before;
    uint32_t changed; /* of the step under way, so far */
    bool repeats; /* it has asked for the same as the one before, so far */
    uint64_t ended; /* steps */
    uint64_t compared; /* of them, against the one before */
    uint64_t changes; /* in those */
} strata_steps_t;

/* A trace without steps costs nothing later. */
void strata_steps_begin(strata_steps_t *steps, const strata_trace_t *trace);
void strata_steps_end(strata_steps_t *steps);
strata_status_t strata_steps_compare(strata_steps_t *steps, const strata_trace_event_t *event, uint64_t address);
/* An alloc was served at an address, or (0) not at all. E_HOST_MEMORY: it is not counted. */
static inline strata_status_t strata_steps_alloc(strata_steps_t *steps, const strata_trace_event_t *event, uint64_t address) {
    return steps->any ? strata_steps_compare(steps, event, address) : STRATA_OK;
}
/* A step of the program ends. */
void strata_steps_step(strata_steps_t *steps);
/* STRATA_FIGURE_NULL: no two steps in a row, from the second on, asked for the same in the same order. */
uint64_t strata_steps_changes(const strata_steps_t *steps);

#endif
