/* What `reuse` decides about a program: who takes over whose memory. */
#ifndef STRATA_PLANNING_REUSE_H
#define STRATA_PLANNING_REUSE_H

#include "planning/problem/problem.h"

#define STRATA_REUSE_ENDS ((uint32_t)1 << 31) /* in an event's value while events are sorted */

/* Buffers that match: the one that was freed last is on top. */
typedef struct strata_reuse_key {
    uint32_t top; /* UINT32_MAX: none */
    const strata_plan_buffer_t *sample;
} strata_reuse_key_t;

typedef struct strata_reuse {
    const strata_plan_buffer_t *buffers;
    size_t count;
    strata_keyed_t *events; /* 2 * count, in program order: key is the moment and whether it begins, value the buffer */
    strata_reuse_key_t *keys;
    uint32_t key_count;
    uint32_t *key_of, *lower, *upper; /* of buffers: key, and moments as small numbers */
    uint32_t *below; /* of freed buffers: the next one under it */
    uint32_t *root; /* of buffers: whose memory it is */
    uint32_t *heir, *from; /* of buffers: who takes its memory over, whose it took; UINT32_MAX: nobody */
    int64_t *add, *most; /* a tree of live bytes by moment */
    size_t leaves;
    int64_t peak; /* of all live bytes, before anything is passed on */
    bool mended;
} strata_reuse_t;

static inline bool strata_reuse_begins(const strata_keyed_t *event) { return event->key & 1; }

/* Runs the program. The buffers are checked. E_HOST_MEMORY: nothing is left. */
strata_status_t strata_reuse_run(strata_reuse_t *reuse, const strata_plan_buffer_t *buffers, size_t count, bool mended);
void strata_reuse_delete(strata_reuse_t *reuse);

#endif
