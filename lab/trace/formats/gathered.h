/* Gathers the rows of another tool's record before the first is read, because only its end shows which blocks
 * are older than its beginning.
 *
 * A reader reports events at addresses, in the order of time. Lives, ids, rows and notes are made here.
 * Missing events are added, so that the rows are a well-formed trace. A free of an unknown block adds an
 * alloc at the head. An alloc at a live address ends that life first. */
#ifndef STRATA_TRACE_GATHERED_H
#define STRATA_TRACE_GATHERED_H

#include "lab/trace/formats/format.h"
#include "trace/ids.h"
#include "trace/stacks.h"

typedef struct strata_gathered_row {
    uint64_t time_us;
    uint64_t size;
    uint64_t stream;
    uint64_t address; /* only for older rows, which are sorted by it */
    uint32_t id;
    uint32_t thread;
    uint32_t stack; /* of an alloc: number in `stacks`, from 1; 0 for none */
    uint16_t tag;
    uint8_t op; /* strata_trace_op_t */
    uint8_t device;
    uint8_t place; /* strata_place_kind_t */
} strata_gathered_row_t;

typedef struct strata_gathered_rows {
    strata_gathered_row_t *all;
    size_t count, capacity;
} strata_gathered_rows_t;

/* The state of an address. */
typedef struct strata_gathered_life {
    uint64_t stream;
    uint64_t size; /* 0 if the block is older than the record */
    uint32_t id; /* STRATA_TRACE_NONE if no block lives there */
    bool known; /* a block has lived there */
    bool use_pending; /* freed, and its last use was not complete at the recorded free */
} strata_gathered_life_t;

typedef struct strata_gathered_device {
    strata_ids_t addresses;
    strata_gathered_life_t *lives; /* by the address's number */
    size_t capacity;
} strata_gathered_device_t;

typedef struct strata_gathered {
    const char *path; /* for messages; owned by the caller */
    strata_gathered_rows_t older, rows;
    strata_gathered_device_t devices[STRATA_TRACE_DEVICES]; /* by number in the trace */
    uint64_t ordinals[STRATA_TRACE_DEVICES]; /* numbers in the file */
    uint32_t known_devices; /* bit k: devices[k] is in use */
    strata_ids_t far_streams; /* stream numbers that a trace cannot hold */
    uint64_t live_bytes, live_peak; /* of blocks allocated within the record */
    strata_ids_t tag_ids;
    char **tags;
    uint32_t tag_count, tag_capacity;
    strata_stacks_t stacks; /* filled by the reader */
    uint32_t ids; /* assigned so far */
    uint64_t began; /* time of the first event */
    bool has_began;
    uint64_t last; /* highest time so far, from the first on */
    strata_trace_notes_t notes;
    uint32_t columns; /* columns that some row fills */
    size_t next; /* row to be read */
} strata_gathered_t;

/* A recorded event. */
typedef struct strata_gathered_event {
    uint64_t time_us; /* of any clock; a time that falls is replaced by the highest so far */
    uint64_t address;
    uint64_t size;
    uint64_t stream; /* any 64 bits; numbers that a trace cannot hold are replaced by ones from its upper end */
    uint64_t device; /* any number; strata_gathered_device() returns the number in the trace */
    uint32_t thread;
    strata_place_kind_t place; /* ignored for a free */
    const char *tag; /* may be NULL; a long tag is cut, and letters that a trace cannot hold become spaces */
    uint32_t stack; /* as in a row */
} strata_gathered_event_t;

/* Returns the device's number in the trace: its own, or the highest free one if its own is above 15 or taken.
 * Fails with E_FORMAT for the 17th device. */
strata_status_t strata_gathered_device(strata_gathered_t *gathered, uint64_t ordinal, uint32_t *device);

/* All of these fail with E_HOST_MEMORY, or with E_FORMAT and the path if a number is too large for a trace. */
strata_status_t strata_gathered_alloc(strata_gathered_t *gathered, const strata_gathered_event_t *event);
/* `borrowed` is true if another stream used the block at that time. */
strata_status_t strata_gathered_free(strata_gathered_t *gathered, const strata_gathered_event_t *event, bool borrowed);
/* Ends the last use of a block that was borrowed and freed. If its free was not recorded, the block is freed now. */
strata_status_t strata_gathered_completed(strata_gathered_t *gathered, const strata_gathered_event_t *event);
/* Adds a request that failed for memory, as an alloc and a free at once. */
strata_status_t strata_gathered_failed(strata_gathered_t *gathered, const strata_gathered_event_t *event);
/* Reports that this block is in use at the end of the record. If its address is unknown, the block is older than the record. */
strata_status_t strata_gathered_live_at_end(strata_gathered_t *gathered, const strata_gathered_event_t *event);
/* Adds a reallocation: the block at `from` (0 for none) moves to the event's address or gets its size.
 * `since` is the value of gathered->ids when it began. An allocation of the new address or a free of the old
 * one that was recorded since then is not repeated. */
strata_status_t strata_gathered_reallocated(strata_gathered_t *gathered, const strata_gathered_event_t *event, uint64_t from,
                                            uint32_t since);
/* Adds a row without a block: `step` or `release`. A step keeps its tag. */
strata_status_t strata_gathered_mark(strata_gathered_t *gathered, strata_trace_op_t op, const strata_gathered_event_t *event);

/* The functions of a format that gathers. The state is a strata_gathered_t. `gather` fills it from the input,
 * which it must not close. */
typedef strata_status_t (*strata_gather_fn)(strata_gathered_t *gathered, strata_input_t *input);
strata_status_t strata_gathered_open(const char *path, strata_input_t *input, strata_gather_fn gather, void **state);
strata_status_t strata_gathered_read(void *state, strata_trace_record_t *record, bool *end);
uint32_t strata_gathered_columns(const void *state);
const strata_trace_notes_t *strata_gathered_notes(const void *state);
void strata_gathered_close(void *state);

#endif
