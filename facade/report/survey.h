/* Who holds a place's memory: a look at every block, for reports. It works in fixed room, without host memory. */
#ifndef STRATA_FACADE_SURVEY_H
#define STRATA_FACADE_SURVEY_H

#include "allocation/uses/record_notes.h"

enum { STRATA_SURVEY_OWNERS = 128, STRATA_SURVEY_WAITS = 16 };

/* Live blocks of one tag and operator. */
typedef struct strata_owner {
    strata_note_t note; /* its step is the first */
    uint64_t last_step;
    uint64_t bytes, blocks; /* 0 blocks: room for another */
} strata_owner_t;

typedef struct strata_awaited {
    strata_stream_t stream;
    bool gone; /* the stream was destroyed */
    uint64_t bytes;
} strata_awaited_t;

/* Why free memory of a cache did not serve the request: the first reason that holds. */
typedef enum strata_idle_why {
    STRATA_IDLE_CAPTURED, /* it is kept for captured graphs */
    STRATA_IDLE_COUNTED, /* freed under a count that no frontier has passed */
    STRATA_IDLE_KEPT, /* in a pool that keeps its chunks */
    STRATA_IDLE_POOL, /* in another pool, or in the ordinary stacks if the request was for a pool */
    STRATA_IDLE_THREAD, /* another thread's */
    STRATA_IDLE_ORPHAN, /* of a forgotten stream, whose work is not over */
    STRATA_IDLE_STREAM, /* another stream's */
    STRATA_IDLE_SIZES, /* for requests of other sizes */
    STRATA_IDLE_UNSPLIT, /* larger than what may be cut */
    STRATA_IDLE_OWN, /* no piece is large enough */
    STRATA_IDLE_WHYS
} strata_idle_why_t;

typedef struct strata_idle {
    uint64_t bytes, largest; /* free bytes, and the largest free block */
    uint64_t whole; /* those bytes that are in chunks without any block in use */
    uint64_t chunks, held; /* the other chunks, and the live bytes in them */
} strata_idle_t;

typedef struct strata_survey {
    uint64_t allocated, deferred, idle;
    uint64_t largest_free;
    uint64_t limbo, limbo_blocks; /* freed, and other processes use it */
    uint64_t deferred_here; /* those deferred bytes whose blocks can be seen where they lie */
    uint64_t later_run,
        later_whole; /* once all waits are over: the largest run that serves the request, and bytes of chunks that become whole */
    strata_idle_t idle_by[STRATA_IDLE_WHYS];
    strata_owner_t owners[STRATA_SURVEY_OWNERS]; /* a hash table; the largest first once the survey is over */
    strata_owner_t other_owners; /* for which there was no room */
    strata_awaited_t awaited[STRATA_SURVEY_WAITS];
    uint32_t awaited_count;
    uint64_t awaited_more; /* bytes that wait for streams for which there was no room */
} strata_survey_t;

/* For whom the survey is made: a request that reached a stack. */
typedef struct strata_survey_for {
    strata_stack_t *stack;
    strata_stream_t stream;
    uint64_t size;
} strata_survey_for_t;

/* Why a block of a layer of a stack would not serve such a request even if it were free. The stack's lock is held. */
strata_idle_why_t strata_idle_why(const strata_survey_for_t *whom, strata_stack_t *stack, strata_layer_t *layer,
                                  const strata_record_t *block);
/* Takes every stack's lock in turn. */
void strata_survey_make(strata_domain_t *domain, const strata_survey_for_t *whom, strata_survey_t *survey);

#endif
