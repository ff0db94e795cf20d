/* Snapshots of a test's own, as bytes. */
#ifndef STRATA_TESTS_RECORDS_MADE_H
#define STRATA_TESTS_RECORDS_MADE_H

#include <stdint.h>

/* An event of a device's trace. */
typedef struct made_event {
    const char *action;
    uint64_t address, size, stream, time_us;
    const char *file; /* of its only frame; NULL: no frames */
} made_event_t;

/* A block of a segment. */
typedef struct made_block {
    uint64_t size, requested;
    const char *state; /* NULL: the end of the list */
} made_block_t;

typedef struct made_segment {
    uint64_t device, address, total, stream;
    made_block_t blocks[6];
} made_segment_t;

/* A snapshot of these segments (`total` 0 ends them) and the events of one device (an action of NULL ends them), under a path that
 * is valid until the next. */
const char *made_snapshot(const made_segment_t *segments, const made_event_t *events);

#endif
