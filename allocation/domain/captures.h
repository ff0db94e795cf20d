/* The pools of captured graphs that are open, in one facade and in the process. */
#ifndef STRATA_ALLOCATION_CAPTURES_H
#define STRATA_ALLOCATION_CAPTURES_H

#include "allocation/domain/domain.h"

void strata_captures_init(strata_captures_t *captures);
void strata_captures_destroy(strata_captures_t *captures);
/* A pool of the process opens, or closes. */
void strata_captures_count_open(bool opened);
/* Waits until the calls that strata_captures_begin_uncaptured() allowed are over. The pool that opens is counted already. */
void strata_captures_await_uncaptured(void);
/* Returns true if any pool of the process is open. A device with a captured stream must not be waited for as a whole then. */
bool strata_captures_any_open(void);
/* Calls follow that would break a capture of the streams that they name, or of any: a wait for a whole device, a free in the order of a
 * stream. False: a pool is open, and they must not be made. None is opened before the end. A quick pair of steps, also under a stack's
 * lock. */
bool strata_captures_begin_uncaptured(void);
void strata_captures_end_uncaptured(void);

#endif
