/* Threads of a facade's own: at most two, which sleep until there is something to do. They have stopped before the facade's domains end, and
 * before the driver does at the end of the process. A child of fork() has none of them, and no call there waits for one. */
#ifndef STRATA_FACADE_WORKER_H
#define STRATA_FACADE_WORKER_H

#include "facade/registry/facade.h"

/* Starts the thread; `body` gets the facade, and returns once worker->stops. The program's signals are not for it. Returns the system's
 * error number, 0: it runs. */
int strata_worker_start(strata_facade_t *facade, strata_worker_t *worker, void *(*body)(void *));
/* It has ended once this returns. No lock is held. */
void strata_worker_stop(strata_facade_t *facade, strata_worker_t *worker);

#endif
