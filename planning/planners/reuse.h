/* The decisions of `reuse` about a program: the buffers that take over memory of other buffers. */
#ifndef STRATA_PLANNING_REUSE_H
#define STRATA_PLANNING_REUSE_H

#include "planning/problem/problem.h"

#define STRATA_REUSE_ENDS ((uint32_t)1 << 31) /* set in an event's value while events are sorted */

/* Matching buffers, with the last freed one on top. */
typedef struct strata_reuse_key {
    uint32_t top; /* UINT32_MAX for none */
    const strata_plan_buffer_t *sample;
} strata_reuse_key_t;

typedef struct strata_reuse {
    const strata_plan_buffer_t *buffers;
    size_t count;
    strata_keyed_t *events; /* 2 * count, in program order; the key is the moment and the begin bit, the value is the buffer */
    strata_reuse_key_t *keys;
    uint32_t key_count;
    uint32_t *key_of, *lower, *upper; /* by buffer: key, and numbered moments */
    uint32_t *below; /* by freed buffer: the next one under it */
    uint32_t *root; /* by buffer: the first owner of its memory */
    uint32_t *next_owner, *prev_owner; /* by buffer: the next owner of its memory, and the previous one; UINT32_MAX for none */
    int64_t *add, *max_live; /* a tree of live bytes by moment */
    size_t leaves;
    int64_t peak; /* of all live bytes, before memory is passed on */
    bool close_gaps;
} strata_reuse_t;

static inline bool strata_reuse_begins(const strata_keyed_t *event) { return event->key & 1; }

/* Runs the program. The buffers must have been checked. Returns E_HOST_MEMORY with nothing allocated. */
strata_status_t strata_reuse_run(strata_reuse_t *reuse, const strata_plan_buffer_t *buffers, size_t count, bool close_gaps);
void strata_reuse_delete(strata_reuse_t *reuse);

#endif
