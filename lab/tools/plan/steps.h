/* Finds the step that a program repeats in the events of a trace. */
#ifndef STRATA_TOOLS_PLAN_STEPS_H
#define STRATA_TOOLS_PLAN_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Events are equal if their numbers `signature` are equal. `live` is the bytes that live before the event. */
typedef struct strata_step_event {
    uint64_t signature;
    uint64_t live;
} strata_step_event_t;

typedef struct strata_steps {
    size_t first; /* event at which the first step begins */
    size_t length; /* in events */
    size_t count; /* equal steps in a row; 0 if nothing is repeated */
} strata_steps_t;

/* Returns the repetition with the most events, if it has at least half of them. Steps begin where the fewest bytes live. */
strata_steps_t strata_steps_find(const strata_step_event_t *events, size_t count);

#endif
