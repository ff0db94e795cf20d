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

/* A frame of a call stack; line 0 terminates a list. */
typedef struct made_frame {
    const char *file;
    uint64_t line;
    const char *name;
} made_frame_t;

/* An event with its optional fields. */
typedef struct made_more {
    made_event_t event;
    const char *metadata; /* user_metadata; NULL: none */
    uint32_t device; /* the device whose trace contains it */
    const made_frame_t *frames; /* replace the event's file */
} made_more_t;

/* The start or end of a scope of record_function(). */
typedef struct made_annotation {
    const char *name, *stage; /* NULL terminates the list */
    uint64_t time_us;
} made_annotation_t;

/* A block of a segment. */
typedef struct made_block {
    uint64_t size, requested;
    const char *state; /* NULL terminates the list */
} made_block_t;

typedef struct made_segment {
    uint64_t device, address, total, stream;
    made_block_t blocks[6];
} made_segment_t;

/* A whole snapshot. Its lists are terminated as below; a NULL list is missing in the file. */
typedef struct made {
    const made_segment_t *segments;
    const made_more_t *events;
    const made_annotation_t *annotations;
    uint32_t devices; /* number of listed devices; 0: one */
} made_t;

const char *made_file(const made_t *made);
/* A snapshot of these segments (`total` 0 ends them) and the events of one device (an action of NULL ends them), under a path that
 * is valid until the next. */
const char *made_snapshot(const made_segment_t *segments, const made_event_t *events);

#endif
