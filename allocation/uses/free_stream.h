/* A stream on which memory is freed after the streams that used it. Frees that it has not reached are
 * waiting uses of its owner. It is created when first used. The lock that guards the uses guards it too. */
#ifndef STRATA_ALLOCATION_USES_FREE_STREAM_H
#define STRATA_ALLOCATION_USES_FREE_STREAM_H

#include "allocation/domain/domain.h"
#include "allocation/uses/uses.h"

typedef struct strata_free_stream {
    strata_uses_t *uses;
    strata_stream_t stream;
    uint32_t user; /* its number among the users, or 0 if it is not created yet */
    uint64_t frees; /* the number of frees submitted to it so far */
} strata_free_stream_t;

/* Creates the stream if necessary, with the locks released. Returns whether it exists. */
bool strata_free_stream_make(strata_free_stream_t *self, strata_call_t *call);
/* Makes it wait for all work submitted to `stream` so far. Returns false if that fails, or if `stream` is
 * being captured, because the wait would add this stream to the capture. No lock is held. */
bool strata_free_stream_wait_for(strata_free_stream_t *self, strata_stream_t stream);
/* Notes bytes that were freed on this stream. Returns the use that completes with that work. Returns 0 if
 * the host waited for it instead, with the locks released. */
uint32_t strata_free_stream_note(strata_free_stream_t *self, uint64_t bytes, strata_call_t *call);
/* Waits on the host for all pending frees, with the locks released. */
void strata_free_stream_synchronise(strata_free_stream_t *self, strata_call_t *call);
/* Returns the event after the last pending free, or NULL if none is pending. */
strata_handle_t strata_free_stream_last(const strata_free_stream_t *self);
/* Requires that the device has been waited for and that the uses still exist. */
void strata_free_stream_destroy(strata_free_stream_t *self);

#endif
