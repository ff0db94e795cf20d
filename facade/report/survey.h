/* Who holds a place's memory: a look at every block, for reports. Fixed room, no host memory. */
#ifndef STRATA_FACADE_SURVEY_H
#define STRATA_FACADE_SURVEY_H

#include "allocation/call/record_notes.h"

enum { STRATA_SURVEY_OWNERS = 128, STRATA_SURVEY_WAITS = 16 };

/* Live blocks of one tag and operator. */
typedef struct strata_owner {
    strata_note_t note; /* its step is the first */
    uint64_t last_step;
    uint64_t bytes, blocks; /* no block: room for another */
} strata_owner_t;

typedef struct strata_awaited {
    strata_stream_t stream;
    bool gone; /* the stream was destroyed */
    uint64_t bytes;
} strata_awaited_t;

/* Why free memory of a cache did not serve the request: the first that holds. */
typedef enum strata_idle_why {
    STRATA_IDLE_CAPTURED, /* it stays while a stream is being captured */
    STRATA_IDLE_COUNTED, /* freed under a count that no frontier has passed */
    STRATA_IDLE_KEPT, /* in a pool that keeps its chunks */
    STRATA_IDLE_POOL, /* another pool's, or the ordinary stacks' where the request came to a pool */
    STRATA_IDLE_THREAD, /* another thread's */
    STRATA_IDLE_ORPHAN, /* a forgotten stream's, whose work is not over */
    STRATA_IDLE_STREAM, /* another stream's */
    STRATA_IDLE_SIZES, /* for requests of other sizes */
    STRATA_IDLE_UNSPLIT, /* larger than what may be cut */
    STRATA_IDLE_OWN, /* no piece is large enough */
    STRATA_IDLE_WHYS
} strata_idle_why_t;

typedef struct strata_idle {
    uint64_t bytes, largest; /* free, and the largest block of it */
    uint64_t whole; /* of the bytes, those of chunks in which nothing is in use */
    uint64_t chunks, held; /* the other chunks, and the bytes that are live there */
} strata_idle_t;

typedef struct strata_survey {
    uint64_t allocated, deferred, idle;
    uint64_t largest_free;
    uint64_t deferred_here; /* of the deferred bytes, those of blocks that are seen where they lie */
    uint64_t later_run,
        later_whole; /* once all waits are over: the largest run that serves the request, and the bytes of chunks that
                                         are whole then and were not before */
    strata_idle_t idle_by[STRATA_IDLE_WHYS];
    strata_owner_t owners[STRATA_SURVEY_OWNERS]; /* a hash table; the largest first once the survey is over */
    strata_owner_t other_owners; /* for which there was no room */
    strata_awaited_t awaited[STRATA_SURVEY_WAITS];
    uint32_t awaited_count;
    uint64_t awaited_more; /* bytes that wait for streams for which there was no room */
} strata_survey_t;

/* For whom one looks: a request that came to a stack. */
typedef struct strata_survey_for {
    strata_stack_t *stack;
    strata_stream_t stream;
    uint64_t size;
} strata_survey_for_t;

/* Why a block of a layer of a stack does not serve such a request, were it free. The stack's lock is held. */
strata_idle_why_t strata_idle_why(const strata_survey_for_t *whom, strata_stack_t *stack, strata_layer_t *layer,
                                  const strata_record_t *block);
/* Takes every stack's lock in turn. */
void strata_survey_make(strata_domain_t *domain, const strata_survey_for_t *whom, strata_survey_t *survey);

#endif
