/* Who looks for idleness (allocation/reclaim/idle.h). */
#ifndef STRATA_FACADE_IDLE_H
#define STRATA_FACADE_IDLE_H

#include "facade/registry/facade.h"

/* Starts the thread that looks, if a stack of the strategy says `idle:` and time is real: with a virtual clock whoever lets time pass
 * looks. The facade is built. E_HOST_MEMORY: the host starts no thread. */
strata_status_t strata_idle_start(strata_facade_t *facade);
/* It has ended once this returns. No lock is held. */
void strata_idle_stop(strata_facade_t *facade);
/* Of its devices, which all have the same. */
strata_clock_t *strata_facade_clock(const strata_facade_t *facade);
/* Gives back what has been idle for long enough now. Returns when there is something to do again if nothing is asked until then, by
 * the devices' clock (STRATA_NEVER: nothing). For replays: with a virtual clock no thread looks. */
uint64_t strata_facade_look_for_idleness(strata_t facade);

#endif
