/* A stream on which blocks are freed behind the streams that used them, and the frees that it has not reached. It is made at its
 * first use. What is pending is guarded by the lock of the stack that it is for; the other calls are made with no lock held. */
#ifndef STRATA_ALLOCATION_FREE_STREAM_H
#define STRATA_ALLOCATION_FREE_STREAM_H

#include "allocation/domain/domain.h"

/* They are in the stream's order. */
typedef struct strata_pending_free {
    strata_handle_t event;
    uint64_t bytes;
    uint64_t number; /* counts from 1 */
    uint32_t next;
} strata_pending_free_t;

typedef struct strata_free_stream {
    strata_stack_t *stack;
    strata_nodes_t frees;
    strata_stream_t stream;
    bool made;
    uint32_t first, last; /* 0: none is pending */
    uint64_t count;
    uint64_t pending_bytes; /* reserved in the domain until they are over */
} strata_free_stream_t;

strata_status_t strata_free_stream_init(strata_free_stream_t *self, strata_stack_t *stack);
/* The device has been waited for. */
void strata_free_stream_destroy(strata_free_stream_t *self);
strata_status_t strata_free_stream_make(strata_free_stream_t *self);
/* It waits for all work given to `stream` so far. False: it cannot, or `stream` is being captured, and it would be drawn in. */
bool strata_free_stream_stand_behind(strata_free_stream_t *self, strata_stream_t stream);
/* Bytes have been freed on it: they leave *live and are pending. Where that cannot be marked the host waits for it. */
void strata_free_stream_note(strata_free_stream_t *self, uint64_t bytes, uint64_t *live);
/* The host waits for all that is pending. */
void strata_free_stream_wait(strata_free_stream_t *self);

/* Under the lock: takes those off that are over; the bytes. */
uint64_t strata_free_stream_collect(strata_free_stream_t *self);
/* Under the lock: the last pending free, NULL: none. */
const strata_pending_free_t *strata_free_stream_last(const strata_free_stream_t *self);
/* Under the lock: when the first is over, UINT64_MAX: nobody knows. */
uint64_t strata_free_stream_ready_at(const strata_free_stream_t *self);
strata_status_t strata_free_stream_validate(const strata_free_stream_t *self);

#endif
