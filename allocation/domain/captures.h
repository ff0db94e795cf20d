/* Counts the graph pools that are open, in one facade and in the process. */
#ifndef STRATA_ALLOCATION_CAPTURES_H
#define STRATA_ALLOCATION_CAPTURES_H

#include "allocation/domain/domain.h"

void strata_captures_init(strata_captures_t *captures);
void strata_captures_destroy(strata_captures_t *captures);
/* Counts a pool of the process that opens or closes. */
void strata_captures_count_open(bool opened);
/* Waits until the calls that strata_captures_begin_uncaptured() allowed are over. The opening pool is
 * already counted. */
void strata_captures_await_uncaptured(void);
/* Returns true if any pool of the process is open. Then a thread must not wait for a whole device that may
 * have a captured stream. */
bool strata_captures_any_open(void);
/* Begins calls that would break a capture of their streams or of any stream: a wait for a whole device, a
 * stream-ordered free. Returns false if a pool is open, and they must not be made. No pool opens before the
 * end. Both functions are quick, and may be called under a stack's lock. */
bool strata_captures_begin_uncaptured(void);
void strata_captures_end_uncaptured(void);

#endif
