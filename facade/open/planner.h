/* Who makes the plans that layers want (allocation/stack/planning.h). */
#ifndef STRATA_FACADE_PLANNER_H
#define STRATA_FACADE_PLANNER_H

#include "facade/registry/facade.h"

/* Starts the thread that makes plans, if the strategy has a layer that wants some and time is real: under a virtual clock, and where the
 * host starts no thread, whoever ends a step makes them. The facade is built. */
void strata_planner_start(strata_facade_t *facade);
/* It has ended once this returns; plans are made in place from now on. No lock is held. */
void strata_planner_stop(strata_facade_t *facade);
/* strata_domain_want_plans_fn; `context` is the facade. */
bool strata_planner_wake(void *context);

#endif
