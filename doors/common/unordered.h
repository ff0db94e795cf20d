/* Memory of one place for doors that pass no stream (docs/contracts.md section 4).
 *
 *   free ----> pending list ----> one wait for the device ("settle") ----> free in the cache
 *
 * Without a stream the users of a block are unknown, so a freed block may be reused only after a wait for the whole device. One
 * wait serves all blocks freed so far. It happens when a request misses that they could serve, and when memory runs out.
 *
 * Blocks are served for a private stream on which nothing is ever launched. So a cache can reuse at once the blocks that were
 * freed for this stream. If the cache takes memory from other streams, the request waits for it before it returns. Any thread
 * may call at any time. */
#ifndef STRATA_INTEGRATION_UNORDERED_H
#define STRATA_INTEGRATION_UNORDERED_H

#include "strata/strata.h"

typedef struct strata_unordered strata_unordered_t;

/* Creates the object for a place of an open facade, which must outlive it. Opens the place and creates the private stream.
 * Pinned and host places need no stream. */
strata_status_t strata_unordered_new(strata_t facade, strata_place_t place, strata_unordered_t **unordered);
/* Frees only the list. It must be called after the facade is closed, or before that if no block of the place is in use. */
void strata_unordered_delete(strata_unordered_t *unordered);

/* Serves memory that any stream may use after the return. Returns the errors of strata_allocate(). */
strata_status_t strata_unordered_allocate(strata_unordered_t *unordered, size_t size, strata_block_t *block);
/* Adds a live block of the place to the pending list, also if it was allocated in stream order. The block stays allocated until
 * the list is settled. If the list cannot grow, the call waits for the device and frees the block itself. Returns E_INVALID if
 * the block was freed here before, E_STALE, or an error of the wait. */
strata_status_t strata_unordered_free(strata_unordered_t *unordered, const strata_block_t *block);
/* Waits for the device and frees the pending blocks. *freed (may be NULL) receives the bytes. Returns E_CAPTURE, and frees
 * nothing, while a stream is captured, because a wait for the device would break the capture. */
strata_status_t strata_unordered_drain(strata_unordered_t *unordered, uint64_t *freed);
/* Returns true if a block was freed here and its free is still pending. */
bool strata_unordered_is_pending(strata_unordered_t *unordered, strata_ref_t ref);
/* Returns the bytes of the pending blocks. */
uint64_t strata_unordered_pending(strata_unordered_t *unordered);

/* Mark the begin and the end of a capture that the program makes by calls of CUDA. Between the two no function here waits for a
 * device. The begin returns only when no such wait is in progress. */
void strata_unordered_capture_begins(void);
void strata_unordered_capture_ends(void);

#endif
