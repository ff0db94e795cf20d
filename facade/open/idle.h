/* Checks a facade for idleness (allocation/reclaim/idle.h). */
#ifndef STRATA_FACADE_IDLE_H
#define STRATA_FACADE_IDLE_H

#include "facade/registry/facade.h"

/* Starts the idle thread if a stack of the strategy sets `idle:` and time is real. With a virtual clock,
 * the owner of the clock must call strata_facade_check_idle(). Call it once the facade is built.
 * Returns E_HOST_MEMORY if the host cannot start a thread. */
strata_status_t strata_idle_start(strata_facade_t *facade);
/* Stops the thread; it has ended once this returns. Call it with no lock held. */
void strata_idle_stop(strata_facade_t *facade);
/* Returns the clock of the facade's devices, which all share one. */
strata_clock_t *strata_facade_clock(const strata_facade_t *facade);
/* Releases memory that has been idle for long enough. Returns the time of the next useful check if no
 * request arrives before, by the devices' clock, or STRATA_NEVER. It is for replays, because no thread
 * checks a virtual clock. */
uint64_t strata_facade_check_idle(strata_t facade);

#endif
