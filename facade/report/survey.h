/* Surveys the owners of a place's memory by visiting every block, for reports. Works in fixed room,
 * without host memory. */
#ifndef STRATA_FACADE_SURVEY_H
#define STRATA_FACADE_SURVEY_H

#include "allocation/uses/record_notes.h"

enum { STRATA_SURVEY_OWNERS = 128, STRATA_SURVEY_WAITS = 16 };

/* Live blocks of one tag and operator. */
typedef struct strata_owner {
    strata_note_t note; /* its step is the first one */
    uint64_t last_step;
    uint64_t bytes, blocks; /* 0 blocks marks a free slot */
} strata_owner_t;

typedef struct strata_awaited {
    strata_stream_t stream;
    bool destroyed; /* the stream was destroyed */
    uint64_t bytes;
} strata_awaited_t;

/* The reason why free memory of a cache did not serve the request: the first one that applies. */
typedef enum strata_idle_why {
    STRATA_IDLE_CAPTURED, /* kept for captured graphs */
    STRATA_IDLE_COUNTED, /* freed under a count that no frontier has passed */
    STRATA_IDLE_KEPT, /* in a pool that keeps its chunks */
    STRATA_IDLE_POOL, /* in another pool, or in the ordinary stacks if the request was for a pool */
    STRATA_IDLE_THREAD, /* owned by another thread */
    STRATA_IDLE_ORPHAN, /* owned by a forgotten stream with pending work */
    STRATA_IDLE_STREAM, /* owned by another stream */
    STRATA_IDLE_SIZES, /* for requests of other sizes */
    STRATA_IDLE_UNSPLIT, /* larger than the limit for splitting */
    STRATA_IDLE_OWN, /* no piece is large enough */
    STRATA_IDLE_WHYS
} strata_idle_why_t;

typedef struct strata_idle {
    uint64_t bytes, largest; /* free bytes, and the largest free block */
    uint64_t whole; /* the bytes in chunks without any block in use */
    uint64_t chunks, held; /* the other chunks, and the live bytes in them */
} strata_idle_t;

typedef struct strata_survey {
    uint64_t allocated, deferred, idle;
    uint64_t largest_free;
    uint64_t limbo, limbo_blocks; /* freed, but still used by other processes */
    uint64_t deferred_here; /* the deferred bytes in blocks that the survey can see in their chunks */
    uint64_t later_run,
        later_whole; /* after all waits: the largest run that serves the request, and bytes of chunks that become whole */
    strata_idle_t idle_by[STRATA_IDLE_WHYS];
    strata_owner_t owners[STRATA_SURVEY_OWNERS]; /* a hash table; sorted by size once the survey is complete */
    strata_owner_t other_owners; /* those for which there was no room */
    strata_awaited_t awaited[STRATA_SURVEY_WAITS];
    uint32_t awaited_count;
    uint64_t awaited_more; /* bytes that wait for streams without a slot */
} strata_survey_t;

/* The request that the survey is made for, and the stack that it reached. */
typedef struct strata_survey_for {
    strata_stack_t *stack;
    strata_stream_t stream;
    uint64_t size;
} strata_survey_for_t;

/* Returns why a block would not serve such a request even if it were free. Requires the stack's lock. */
strata_idle_why_t strata_idle_why(const strata_survey_for_t *whom, strata_stack_t *stack, strata_layer_t *layer,
                                  const strata_record_t *block);
/* Makes a survey. Takes the locks of all stacks of the place, and holds them together while it counts blocks. */
void strata_survey_make(strata_domain_t *domain, const strata_survey_for_t *whom, strata_survey_t *survey);

#endif
