/* Traces: what a program asked of its allocator, row by row. The format is docs/trace-format.md; files that others have recorded are
 * read as the same rows (docs/records.md).
 *
 * Every function that reads treats the file as hostile: lengths, counts and sums are bounded, and what is wrong is refused with
 * E_FORMAT and "file:line: what is wrong; what to write". Threads: one at a time on each reader, writer or trace.
 */
#ifndef STRATA_TRACE_TRACE_H
#define STRATA_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "strata/strata.h"

/* X(name): the word in column `op`. */
#define STRATA_TRACE_OP_MAP(X)                                                                                                     \
    X(alloc)                                                                                                                       \
    X(free)                                                                                                                        \
    X(borrow)                                                                                                                      \
    X(unborrow)                                                                                                                    \
    X(work)                                                                                                                        \
    X(wait)                                                                                                                        \
    X(sync)                                                                                                                        \
    X(step)                                                                                                                        \
    X(release)                                                                                                                     \
    X(pool_begin)                                                                                                                  \
    X(pool_end)

typedef enum strata_trace_op {
#define STRATA_TRACE_OP_ENUM(name) STRATA_TRACE_##name,
    STRATA_TRACE_OP_MAP(STRATA_TRACE_OP_ENUM)
#undef STRATA_TRACE_OP_ENUM
        STRATA_TRACE_OPS
} strata_trace_op_t;

/* X(name, mandatory) */
#define STRATA_TRACE_COLUMN_MAP(X)                                                                                                 \
    X(op, 1)                                                                                                                       \
    X(id, 1)                                                                                                                       \
    X(size, 1)                                                                                                                     \
    X(stream, 1)                                                                                                                   \
    X(time_us, 1)                                                                                                                  \
    X(device, 0)                                                                                                                   \
    X(place, 0)                                                                                                                    \
    X(pool, 0)                                                                                                                     \
    X(align, 0)                                                                                                                    \
    X(thread, 0)                                                                                                                   \
    X(tag, 0)                                                                                                                      \
    X(dur_us, 0)                                                                                                                   \
    X(other, 0)                                                                                                                    \
    X(stack, 0)                                                                                                                    \
    X(stream_name, 0)

typedef enum strata_trace_column {
#define STRATA_TRACE_COLUMN_ENUM(name, mandatory) STRATA_COLUMN_##name,
    STRATA_TRACE_COLUMN_MAP(STRATA_TRACE_COLUMN_ENUM)
#undef STRATA_TRACE_COLUMN_ENUM
        STRATA_TRACE_COLUMNS
} strata_trace_column_t;

enum {
    STRATA_TRACE_TAG_BYTES = 256, /* with the terminating zero */
    STRATA_TRACE_TAGS = 65535, /* different ones in a trace */
    STRATA_TRACE_STACK_BYTES = 2048, /* with the terminating zero */
    STRATA_TRACE_STACKS = 65535, /* different ones in a trace */
    STRATA_TRACE_STREAMS = 4000, /* different ones in a trace, all devices */
    STRATA_TRACE_POOLS = 4000,
    STRATA_TRACE_BEGUN = 16, /* pools that a stream has begun and not ended */
    STRATA_TRACE_DEVICES = 16,
    STRATA_TRACE_EVENTS = 1 << 26
};
#define STRATA_TRACE_SIZE_MAX   ((uint64_t)1 << 48) /* of one request, as strata_allocate() */
#define STRATA_TRACE_LIVE_MAX   ((uint64_t)1 << 60) /* of all live requests */
#define STRATA_TRACE_NUMBER_MAX (((uint64_t)1 << 60) - 1) /* of a stream's number */
#define STRATA_TRACE_TIME_MAX   UINT64_C(1000000000000000) /* us: 31 years; of time_us, and of the sum of dur_us */

/* ---- one row -------------------------------------------------------------------------------------------------------- */

typedef struct strata_trace_record {
    strata_trace_op_t op;
    strata_place_kind_t place;
    uint64_t id; /* if has_id */
    uint64_t size; /* alloc */
    uint64_t stream;
    uint64_t time_us;
    uint64_t dur_us; /* work */
    uint64_t other; /* wait */
    uint64_t pool; /* if has_pool */
    uint64_t align; /* bytes; 0: the place's */
    uint32_t device;
    uint32_t thread;
    bool has_id; /* alloc, free, borrow, unborrow always; work, where the kernel uses a block at all */
    bool has_pool; /* pool_begin, pool_end always; alloc from a pool */
    bool all_streams; /* sync: the whole device */
    uint32_t line; /* of the file, 1-based; of a foreign one: of what strata convert makes of it */
    const char *tag; /* no LF, no CR. When read: never NULL, valid until the next row is read. When written: NULL is "" */
    const char *stream_name; /* the program's name for the stream of the row; characters as in a tag. NULL or "": not in this row.
                                When read: valid until the next row is read */
    const char *stack; /* "inner;outer", no quotes, no control characters. When read: never NULL, valid until the close, each stack of
                          a file at one address. When written: NULL is "", and one address is one stack */
} strata_trace_record_t;

const char *strata_trace_op_name(strata_trace_op_t op);
const char *strata_trace_column_name(strata_trace_column_t column);

/* ---- what a record of another's lacks ----------------------------------------------------------------------------------- */

/* X(name, what a count of them means to a person). Counts of what a reader has done to a record of another tool's format. */
#define STRATA_TRACE_NOTE_MAP(X)                                                                                                   \
    X(older, "allocations are older than the record; they stand at its head")                                                      \
    X(borrowed, "blocks were freed while other streams used them; which ones is not recorded, so stream 3 stands for them")        \
    X(failed, "requests had failed for memory; they are asked for again, and given back at once")                                  \
    X(freed_unseen, "frees are missing; the address was given out again, so the block was freed by then")                          \
    X(never_live, "frees name an address that nothing lives at; they are left out")                                                \
    X(other_memory, "events are of other memory than the GPU's; they are left out")                                                \
    X(other_actions, "events are of a kind that is not known here; they are left out")                                             \
    X(untimed, "events have no time; they stand a microsecond apart")                                                              \
    X(cut_off, "row at the end of the file is incomplete, so it is left out; the file was cut off")                                \
    X(renumbered, "devices have numbers above 15 in the file, and lower ones here")                                                \
    X(stacks_lost, "allocations have no call stack, because a trace holds 65535 stacks and 64 MiB of them")                        \
    X(tags_lost, "rows have no tag, because a trace holds 65535 different tags")                                                   \
    X(no_history, "snapshot has no history, so its rows are only the blocks that were in use at its end; call "                    \
                  "torch.cuda.memory._record_memory_history() first")                                                              \
    X(no_segments, "snapshot lacks segment events, so how much memory its allocator held is not known")

typedef struct strata_trace_notes {
#define STRATA_TRACE_NOTE_FIELD(name, meaning) uint64_t name;
    STRATA_TRACE_NOTE_MAP(STRATA_TRACE_NOTE_FIELD)
#undef STRATA_TRACE_NOTE_FIELD
    uint64_t reserved_peak; /* bytes that the recorded allocator itself held at most, if its record says so; 0: it does not */
} strata_trace_notes_t;

enum { STRATA_TRACE_BORROWER = 3 }; /* the stream that stands for borrowers that a record does not name */

/* ---- reading row by row ------------------------------------------------------------------------------------------------ */

typedef struct strata_trace_reader strata_trace_reader_t;

/* Opens a file and reads its header. Its format, and gzip, are recognised by its first bytes, not by its name. E_IO, E_FORMAT,
 * E_LIMIT (too large for a reader that needs all of it), E_HOST_MEMORY. */
strata_status_t strata_trace_reader_open(const char *path, strata_trace_reader_t **reader);
/* The next row. After the last *end is true and the record is untouched. After a failure the reader can only be closed. */
strata_status_t strata_trace_read(strata_trace_reader_t *reader, strata_trace_record_t *record, bool *end);
/* For errors: where the field of a column begins in the line that was read last, 1 and the characters before it. If the file has no
 * such column, the place of its `op`. */
uint32_t strata_trace_reader_column(const strata_trace_reader_t *reader, strata_trace_column_t column);
/* The name of the format of a file, as below, without reading it. E_IO, E_FORMAT, E_HOST_MEMORY. */
strata_status_t strata_trace_format_name(const char *path, const char **name);
/* The name of the file's format; "trace" is Strata's own. */
const char *strata_trace_reader_format(const strata_trace_reader_t *reader);
/* A bit (1u << STRATA_COLUMN_x) for each optional column that its rows may fill. */
uint32_t strata_trace_reader_columns(const strata_trace_reader_t *reader);
/* Complete before the first row is read. */
strata_trace_notes_t strata_trace_reader_notes(const strata_trace_reader_t *reader);
void strata_trace_reader_close(strata_trace_reader_t *reader);

/* ---- a whole trace in memory ---------------------------------------------------------------------------------------- */

#define STRATA_TRACE_NONE      UINT32_MAX
#define STRATA_TRACE_NO_STREAM UINT16_MAX
#define STRATA_TRACE_NO_POOL   UINT16_MAX

/* 40 bytes. */
typedef struct strata_trace_event {
    uint64_t time_us;
    uint64_t value; /* alloc: the size; work: dur_us */
    uint32_t id; /* 0 .. lifetimes - 1, in the order of the allocs; STRATA_TRACE_NONE */
    uint32_t line;
    uint16_t stream; /* index of streams[]; NO_STREAM: step, release, sync of the whole device */
    uint16_t other; /* wait: index of streams[]; if stream is NO_STREAM: the device */
    uint16_t pool; /* index of pools[], also for an alloc whose stream has begun one; NO_POOL */
    uint16_t tag; /* index of tags[]; 0 is "" */
    uint8_t op; /* strata_trace_op_t */
    uint8_t place; /* strata_place_kind_t */
    uint8_t align; /* log2; 0: the place's */
    uint32_t stack; /* index of stacks[]; 0 is "" */
} strata_trace_event_t;

typedef struct strata_trace_stream {
    uint64_t number; /* as the file says */
    char *name; /* the program's name for it; NULL: not in the trace */
    uint32_t device;
} strata_trace_stream_t;

enum { STRATA_TRACE_MOVES = 32 };

typedef struct strata_trace {
    char *path;
    strata_trace_event_t *events;
    size_t count;
    strata_trace_event_t *older[STRATA_TRACE_MOVES]; /* where events were before, if others may still look there */
    uint32_t older_count;
    strata_trace_stream_t *streams;
    uint32_t stream_count;
    uint64_t *pools;
    uint32_t pool_count;
    char **tags;
    uint32_t tag_count;
    char **stacks;
    uint32_t stack_count;
    uint32_t lifetimes; /* allocs */
    uint32_t devices; /* highest device + 1 */
    uint32_t places; /* bit k: a row of place kind k allocates */
    bool has_work;
    bool has_steps;
    uint64_t peak_requested; /* of the sum of all places */
    const char *format; /* as strata_trace_reader_format() */
    strata_trace_notes_t notes;
} strata_trace_t;

/* Reads and checks a whole file. strata_trace_delete() ends it (NULL is ignored). */
strata_status_t strata_trace_load(const char *path, strata_trace_t **trace);
/* The same of a reader that has read no row yet and stays the caller's. Each row, once it is checked, goes to `row` too (may be NULL);
 * what that returns ends the reading if it is not OK. */
typedef strata_status_t (*strata_trace_row_fn)(void *context, const strata_trace_record_t *record);
strata_status_t strata_trace_load_from(strata_trace_reader_t *reader, const char *path, strata_trace_row_fn row, void *context,
                                       strata_trace_t **trace);
/* For others who use the first rows while the rest is read. */
typedef struct strata_trace_pieces {
    void (*show)(void *context, const strata_trace_t *so_far); /* after each some thousand rows */
    void *context;
    size_t expected; /* rows; what more there are is moved, and the old place stays until the delete */
} strata_trace_pieces_t;
/* The same in pieces. *trace is set even if the file turns out to be wrong, since others may still use it; NULL: it has not begun. */
strata_status_t strata_trace_load_in_pieces(strata_trace_reader_t *reader, const char *path, const strata_trace_pieces_t *pieces,
                                            strata_trace_t **trace);
void strata_trace_delete(strata_trace_t *trace);

/* ---- writing ---------------------------------------------------------------------------------------------------------- */

typedef struct strata_trace_writer strata_trace_writer_t;

/* Begins a trace. `columns` has a bit (1u << STRATA_COLUMN_x) for each optional column that rows will fill. A path that ends in .gz
 * is compressed. Nothing is at `path` before strata_trace_writer_finish(). */
strata_status_t strata_trace_writer_open(const char *path, uint32_t columns, strata_trace_writer_t **writer);
/* E_INVALID for a record that the reader would refuse by itself (rows are not checked against each other), or that needs a column
 * that was not asked for. */
strata_status_t strata_trace_write(strata_trace_writer_t *writer, const strata_trace_record_t *record);
/* What was written so far, as a trace of its own; the writer goes on. E_IO, E_UNSUPPORTED (a pipe), E_HOST_MEMORY. */
strata_status_t strata_trace_writer_copy(strata_trace_writer_t *writer, const char *path);
/* Writes the rest, puts the file in its place and ends the writer, whatever the status. */
strata_status_t strata_trace_writer_finish(strata_trace_writer_t *writer);
/* Ends the writer; no file is left. */
void strata_trace_writer_abandon(strata_trace_writer_t *writer);

#endif
