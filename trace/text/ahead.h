/* Pieces of a stream of bytes that a thread of its own makes while earlier ones are read. */
#ifndef STRATA_TRACE_AHEAD_H
#define STRATA_TRACE_AHEAD_H

#include <stddef.h>

#include "platform/status.h"

enum { STRATA_AHEAD_BYTES = 1 << 18 }; /* of a piece, at most */

typedef struct strata_ahead strata_ahead_t;

/* Writes the next bytes; *count 0: there are no more. Called by the thread alone, with no lock held, and no more after the end or a
 * failure. */
typedef strata_status_t (*strata_ahead_fn)(void *context, char *bytes, size_t *count);

/* NULL: there is no thread or no memory for it; the caller makes the pieces itself then. No error is set. */
strata_ahead_t *strata_ahead_begin(strata_ahead_fn make, void *context);
/* The next piece, valid until the next call; *count 0 at the end. A failure comes after the pieces before it. The end and a failure
 * are answered again. For one thread. */
strata_status_t strata_ahead_next(strata_ahead_t *ahead, const char **bytes, size_t *count);
/* Waits for the thread, which ends its piece. NULL: nothing. */
void strata_ahead_end(strata_ahead_t *ahead);

#endif
