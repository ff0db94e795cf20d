/* Memory of one place for doors that pass no stream (docs/contracts.md §4): nobody says which streams use a block, so a freed one may be
 * reused only after the whole device has been waited for. That is done once for all blocks freed so far, when a request misses that they
 * could serve, and when memory runs out.
 *
 * Blocks are served for a stream of their own, on which nothing is ever launched: a cache gives back to it at once what was freed for
 * it, and what the cache takes from other streams is waited for before the request returns. Any thread may call at any time. */
#ifndef STRATA_INTEGRATION_UNORDERED_H
#define STRATA_INTEGRATION_UNORDERED_H

#include "strata/strata.h"

typedef struct strata_unordered strata_unordered_t;

/* For a place of an open facade, which must outlive this. Opens the place; creates the stream (none in pinned and host places). */
strata_status_t strata_unordered_new(strata_t facade, strata_place_t place, strata_unordered_t **unordered);
/* After the facade is closed, or before with nothing of it in use: frees the notes alone. */
void strata_unordered_delete(strata_unordered_t *unordered);

/* Memory that any stream may use from the return on. Errors: those of strata_allocate(). */
strata_status_t strata_unordered_allocate(strata_unordered_t *unordered, size_t size, strata_block_t *block);
/* Gives up a live block of the place, whoever was served it. It stays allocated until it is settled. If it cannot be noted the device is
 * waited for now. E_INVALID: it was freed here before. E_STALE; errors of the wait. */
strata_status_t strata_unordered_free(strata_unordered_t *unordered, const strata_block_t *block);
/* Waits for the device and frees what was given up before; *freed (may be NULL) receives the bytes. E_CAPTURE: the device cannot be
 * waited for while a stream is captured; nothing is freed. */
strata_status_t strata_unordered_settle(strata_unordered_t *unordered, uint64_t *freed);
/* Returns true if a block was freed here and its free is still pending. */
bool strata_unordered_is_pending(strata_unordered_t *unordered, strata_ref_t ref);
/* Bytes given up and not settled. */
uint64_t strata_unordered_pending(strata_unordered_t *unordered);

/* The program begins to capture a stream without telling the library, or has ended that: in between no device of the process is waited
 * for here. A begin returns when no wait is under way. */
void strata_unordered_capture_begins(void);
void strata_unordered_capture_ends(void);

#endif
