/* A thread owned by a facade, which sleeps until there is work for it. It has stopped before the facade's
 * domains are destroyed, and before the driver stops at the end of the process. A child of fork() does
 * not have it, and no call there waits for it. */
#ifndef STRATA_FACADE_WORKER_H
#define STRATA_FACADE_WORKER_H

#include "facade/registry/facade.h"

/* Starts the thread. `body` receives the facade, and must return once worker->stops is set. The thread
 * blocks all signals, so the program's handlers do not run on it. Returns 0, or the system's error number. */
int strata_worker_start(strata_facade_t *facade, strata_worker_t *worker, void *(*body)(void *));
/* Stops the thread; it has ended once this returns. Call it with no lock held. */
void strata_worker_stop(strata_facade_t *facade, strata_worker_t *worker);

#endif
