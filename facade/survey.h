/* Who holds a place's memory: a look at every block, for reports. Fixed room, no host memory. */
#ifndef STRATA_FACADE_SURVEY_H
#define STRATA_FACADE_SURVEY_H

#include "allocation/side.h"

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

typedef struct strata_survey {
    uint64_t allocated, deferred, idle;
    uint64_t largest_free;
    strata_owner_t owners[STRATA_SURVEY_OWNERS]; /* a hash table; the largest first once the survey is over */
    strata_owner_t other_owners;                 /* for which there was no room */
    strata_awaited_t awaited[STRATA_SURVEY_WAITS];
    uint32_t awaited_count;
    uint64_t awaited_more; /* bytes that wait for streams for which there was no room */
} strata_survey_t;

/* Takes every stack's lock in turn. */
void strata_survey_make(strata_domain_t *domain, strata_survey_t *survey);

#endif
