/* Rows of a foreign record, gathered before the first is read: only at its end is it known what is older than its beginning.
 *
 * A reader tells what happened at which address, in order of time; lives, ids, rows and notes are made here. What a record lacks is
 * made up for so that the rows are a lawful trace: a free of what was never allocated makes an alloc at the head; an alloc where
 * something lives ends that life first.
 */
#ifndef STRATA_TRACE_GATHERED_H
#define STRATA_TRACE_GATHERED_H

#include "lab/trace/formats/format.h"
#include "trace/ids.h"
#include "trace/stacks.h"

typedef struct strata_gathered_row {
    uint64_t time_us;
    uint64_t size;
    uint64_t stream;
    uint64_t address; /* only of what is older: it is in order of this */
    uint32_t id;
    uint32_t thread;
    uint32_t stack; /* alloc: its number in `stacks`, from 1; 0: none */
    uint16_t tag;
    uint8_t op; /* strata_trace_op_t */
    uint8_t device;
    uint8_t place; /* strata_place_kind_t */
} strata_gathered_row_t;

typedef struct strata_gathered_rows {
    strata_gathered_row_t *all;
    size_t count, capacity;
} strata_gathered_rows_t;

/* What is known about an address. */
typedef struct strata_gathered_life {
    uint64_t stream;
    uint64_t size; /* 0 if the block is older than the record */
    uint32_t id; /* STRATA_TRACE_NONE: nothing lives there */
    bool known; /* something has lived there */
    bool waits; /* freed, and its last use was not over when the record said so */
} strata_gathered_life_t;

typedef struct strata_gathered_device {
    strata_ids_t addresses;
    strata_gathered_life_t *lives; /* by the address's number */
    size_t capacity;
} strata_gathered_device_t;

typedef struct strata_gathered {
    const char *path; /* for messages; the caller's */
    strata_gathered_rows_t older, rows;
    strata_gathered_device_t devices[STRATA_TRACE_DEVICES]; /* by number in the trace */
    uint64_t ordinals[STRATA_TRACE_DEVICES]; /* numbers in the file */
    uint32_t known_devices; /* bit k: devices[k] is in use */
    strata_ids_t far_streams; /* stream numbers that a trace cannot hold */
    uint64_t live_bytes, live_peak; /* of blocks allocated within the record */
    strata_ids_t tag_ids;
    char **tags;
    uint32_t tag_count, tag_capacity;
    strata_stacks_t stacks; /* whoever tells of events fills it */
    uint32_t ids; /* given so far */
    uint64_t began; /* time of the first event */
    bool has_began;
    uint64_t last; /* highest time so far, from the first on */
    strata_trace_notes_t notes;
    uint32_t columns; /* that some row fills */
    size_t next; /* row to be read */
} strata_gathered_t;

/* Something that happened. */
typedef struct strata_gathered_event {
    uint64_t time_us; /* of any clock. One that falls is taken for the highest so far */
    uint64_t address;
    uint64_t size;
    uint64_t stream; /* any 64 bits; numbers that a trace cannot hold are replaced by ones from its upper end */
    uint64_t device; /* any number; strata_gathered_device() returns the number in the trace */
    uint32_t thread;
    strata_place_kind_t place; /* of a free it does not count */
    const char *tag; /* NULL: none. One that is too long is cut; letters that a trace cannot hold become spaces */
    uint32_t stack; /* as a row's */
} strata_gathered_event_t;

/* Returns the device's number in the trace: its own, or the highest free one if its own is above 15 or taken. E_FORMAT: it is the 17th device. */
strata_status_t strata_gathered_device(strata_gathered_t *gathered, uint64_t ordinal, uint32_t *device);

/* All fail with E_HOST_MEMORY, or E_FORMAT naming the path, if a number is too large for a trace. */
strata_status_t strata_gathered_alloc(strata_gathered_t *gathered, const strata_gathered_event_t *event);
/* `borrowed`: another stream used the block then. */
strata_status_t strata_gathered_free(strata_gathered_t *gathered, const strata_gathered_event_t *event, bool borrowed);
/* What was borrowed and freed is no longer used. If it was never seen freed, it is freed now. */
strata_status_t strata_gathered_passed(strata_gathered_t *gathered, const strata_gathered_event_t *event);
/* A request that failed for memory: made, and given back at once. */
strata_status_t strata_gathered_failed(strata_gathered_t *gathered, const strata_gathered_event_t *event);
/* At the end of the record this block is in use. If nothing is known to live there, it has done so from the beginning. */
strata_status_t strata_gathered_lives(strata_gathered_t *gathered, const strata_gathered_event_t *event);
/* Adds a reallocation: the block at `from` (0: none) moves to the event's address or gets its size. `since` is the value of gathered->ids when
 * it began. An allocation of the new address or a free of the old one that was recorded since then is not repeated. */
strata_status_t strata_gathered_moved(strata_gathered_t *gathered, const strata_gathered_event_t *event, uint64_t from,
                                      uint32_t since);
/* Adds a row without a block: `step` or `release`. A step keeps its tag. */
strata_status_t strata_gathered_mark(strata_gathered_t *gathered, strata_trace_op_t op, const strata_gathered_event_t *event);

/* The functions of a format that gathers. The state is a strata_gathered_t; `gather` fills it from the input, which it must not
 * close. */
typedef strata_status_t (*strata_gather_fn)(strata_gathered_t *gathered, strata_input_t *input);
strata_status_t strata_gathered_open(const char *path, strata_input_t *input, strata_gather_fn gather, void **state);
strata_status_t strata_gathered_read(void *state, strata_trace_record_t *record, bool *end);
uint32_t strata_gathered_columns(const void *state);
const strata_trace_notes_t *strata_gathered_notes(const void *state);
void strata_gathered_close(void *state);

#endif
