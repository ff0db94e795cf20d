/* Pieces of a stream of bytes that a separate thread makes while earlier ones are read. */
#ifndef STRATA_TRACE_PREFETCH_H
#define STRATA_TRACE_PREFETCH_H

#include <stddef.h>

#include "platform/status.h"

enum { STRATA_PREFETCH_BYTES = 1 << 18 }; /* max bytes of a piece */

typedef struct strata_prefetch strata_prefetch_t;

/* Writes the next bytes, or sets *count to 0 if there are no more. Only the thread calls it, with no
 * lock held, and never after the end or a failure. */
typedef strata_status_t (*strata_prefetch_fn)(void *context, char *bytes, size_t *count);

/* Starts the thread. Returns NULL, without an error, if there is no thread or no memory for it. The
 * caller then makes the pieces itself. */
strata_prefetch_t *strata_prefetch_begin(strata_prefetch_fn make, void *context);
/* Returns the next piece, valid until the next call; *count is 0 at the end. A failure is returned
 * after the pieces before it. The end and a failure are returned again by later calls. For one thread. */
strata_status_t strata_prefetch_next(strata_prefetch_t *prefetch, const char **bytes, size_t *count);
/* Waits for the thread, which finishes its piece. NULL is ignored. */
void strata_prefetch_end(strata_prefetch_t *prefetch);

#endif
