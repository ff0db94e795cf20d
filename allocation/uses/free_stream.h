/* A stream on which memory is freed after the streams that used it. What it has not reached waits in its owner's uses. Made when
 * first used. Guarded by the lock that guards the uses. */
#ifndef STRATA_ALLOCATION_USES_FREE_STREAM_H
#define STRATA_ALLOCATION_USES_FREE_STREAM_H

#include "allocation/domain/domain.h"
#include "allocation/uses/uses.h"

typedef struct strata_free_stream {
    strata_uses_t *uses;
    strata_stream_t stream;
    uint32_t user; /* its number among the users; 0: it is not made yet */
    uint64_t frees; /* that it was given so far */
} strata_free_stream_t;

/* Whether it exists; made if necessary, with the locks open. */
bool strata_free_stream_make(strata_free_stream_t *self, strata_call_t *call);
/* No lock is held: makes it wait for all work given to `stream` so far. False: it cannot, or `stream` is being captured and would
 * draw it in. */
bool strata_free_stream_wait_for(strata_free_stream_t *self, strata_stream_t stream);
/* Notes bytes that were freed on this stream. Returns the use that completes with that work, or 0 if the host waited for it with the locks
 * open. */
uint32_t strata_free_stream_note(strata_free_stream_t *self, uint64_t bytes, strata_call_t *call);
/* The host waits for everything pending, with the locks open. */
void strata_free_stream_synchronise(strata_free_stream_t *self, strata_call_t *call);
/* The event after the last that is pending; NULL: nothing is. */
strata_handle_t strata_free_stream_last(const strata_free_stream_t *self);
/* The device has been waited for, and the uses still exist. */
void strata_free_stream_destroy(strata_free_stream_t *self);

#endif
