/* Finding the step that a program repeats, in the events of a trace. */
#ifndef STRATA_TOOLS_PLAN_STEPS_H
#define STRATA_TOOLS_PLAN_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an event says, in one number: events that say the same have the same. `live` is the bytes that live before it. */
typedef struct strata_step_event {
    uint64_t says;
    uint64_t live;
} strata_step_event_t;

typedef struct strata_steps {
    size_t first; /* event at which the first one begins */
    size_t length; /* events */
    size_t count; /* one after the other, all the same; 0: nothing is repeated */
} strata_steps_t;

/* The repetition that most events belong to, if it is at least half of them; steps begin where fewest bytes live. */
strata_steps_t strata_steps_find(const strata_step_event_t *events, size_t count);

#endif
