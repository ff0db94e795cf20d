/* Traces: the requests of a program to its allocator, row by row. The format is docs/records.md.
 * Recordings of other tools are read as the same rows (docs/records.md).
 *
 * Every reading function treats the file as hostile. Lengths, counts and sums are bounded. An error is
 * E_FORMAT with the text "file:line: what is wrong; what to write". Each reader, writer or trace is for
 * one thread at a time. */
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
    STRATA_TRACE_TAGS = 65535, /* max different tags in a trace */
    STRATA_TRACE_STACK_BYTES = 2048, /* with the terminating zero */
    STRATA_TRACE_STACKS = 65535, /* max different stacks in a trace */
    STRATA_TRACE_STREAMS = 4000, /* max different streams in a trace, of all devices */
    STRATA_TRACE_POOLS = 4000,
    STRATA_TRACE_OPEN_POOLS = 16, /* max pools that a stream has begun and not ended */
    STRATA_TRACE_DEVICES = 16,
    STRATA_TRACE_EVENTS = 1 << 26
};
#define STRATA_TRACE_SIZE_MAX   ((uint64_t)1 << 48) /* of one request, as for strata_allocate() */
#define STRATA_TRACE_LIVE_MAX   ((uint64_t)1 << 60) /* of all live requests */
#define STRATA_TRACE_NUMBER_MAX (((uint64_t)1 << 60) - 1) /* of a stream's number */
#define STRATA_TRACE_TIME_MAX   UINT64_C(1000000000000000) /* us: 31 years; for time_us, and for the sum of dur_us */

/* ---- one row -------------------------------------------------------------------------------------------------------- */

typedef struct strata_trace_record {
    strata_trace_op_t op;
    strata_place_kind_t place;
    uint64_t id; /* valid if has_id */
    uint64_t size; /* for alloc */
    uint64_t stream;
    uint64_t time_us;
    uint64_t dur_us; /* for work */
    uint64_t other; /* for wait */
    uint64_t pool; /* valid if has_pool */
    uint64_t align; /* bytes; 0 means the place's */
    uint32_t device;
    uint32_t thread;
    bool has_id; /* always for alloc, free, borrow, unborrow; for work if the kernel uses a block at all */
    bool has_pool; /* always for pool_begin, pool_end; for alloc from a pool */
    bool all_streams; /* for sync: the whole device */
    uint32_t line; /* of the file, 1-based; for a foreign file: of the output of strata convert */
    /* No LF, no CR. When read it is never NULL, and valid until the next row is read. When written,
     * NULL means "". */
    const char *tag;
    /* The program's name for the stream of the row, with the characters of a tag. NULL or "" means that
     * this row has none. When read it is valid until the next row is read. */
    const char *stream_name;
    /* "inner;outer", without quotes and control characters. When read it is never NULL and valid until
     * the close, and each stack of a file has one address. When written, NULL means "", and one address
     * is one stack. */
    const char *stack;
} strata_trace_record_t;

const char *strata_trace_op_name(strata_trace_op_t op);
const char *strata_trace_column_name(strata_trace_column_t column);

/* ---- gaps of another tool's recording ---------------------------------------------------------------------------------- */

/* X(name, meaning of the count for a reader of the report). Counts of the changes that a reader made to
 * a recording of another tool. */
#define STRATA_TRACE_NOTE_MAP(X)                                                                                                   \
    X(older, "allocations are older than the record; they are at its beginning")                                                   \
    X(borrowed, "blocks were freed while other streams used them; those streams are not recorded, so stream 3 represents them")    \
    X(failed, "requests ran out of memory; they are repeated, and freed at once")                                                  \
    X(freed_unseen, "frees are missing; the address was served again, so the block was freed by then")                             \
    X(never_live, "frees name an address without a live block; they are omitted")                                                  \
    X(other_memory, "events concern memory other than the GPU's; they are omitted")                                                \
    X(other_actions, "events have an unknown kind; they are omitted")                                                              \
    X(untimed, "events have no time; they are spaced by one microsecond")                                                          \
    X(cut_off, "row at the end of the file is incomplete and omitted; the file was truncated")                                     \
    X(renumbered, "devices have numbers above 15 in the file, and get lower ones here")                                            \
    X(stacks_lost, "allocations have no call stack, because a trace has at most 65535 stacks and 64 MiB of them")                  \
    X(tags_lost, "rows have no tag, because a trace has at most 65535 different tags")                                             \
    X(no_history, "snapshot has no history, so its rows are only the blocks that were in use at its end; call "                    \
                  "torch.cuda.memory._record_memory_history() first")                                                              \
    X(no_segments, "snapshot lacks segment events, so the memory that its allocator held is unknown")

typedef struct strata_trace_notes {
#define STRATA_TRACE_NOTE_FIELD(name, meaning) uint64_t name;
    STRATA_TRACE_NOTE_MAP(STRATA_TRACE_NOTE_FIELD)
#undef STRATA_TRACE_NOTE_FIELD
    uint64_t reserved_peak; /* max bytes that the recorded allocator itself held, if its recording has them; otherwise 0 */
} strata_trace_notes_t;

enum { STRATA_TRACE_BORROWER = 3 }; /* the stream that represents borrowers which a recording does not name */

/* ---- reading row by row ------------------------------------------------------------------------------------------------ */

typedef struct strata_trace_reader strata_trace_reader_t;

/* Opens a file and reads its header. Its format, and gzip, are recognized by its first bytes, not by
 * its name. Fails with E_IO, E_FORMAT, E_LIMIT (too large for a reader that needs all of it) or
 * E_HOST_MEMORY. */
strata_status_t strata_trace_reader_open(const char *path, strata_trace_reader_t **reader);
/* Reads the next row. After the last one *end is true and the record is untouched. After a failure the
 * reader can only be closed. */
strata_status_t strata_trace_read(strata_trace_reader_t *reader, strata_trace_record_t *record, bool *end);
/* For errors: returns the place of a column's field in the line that was read last, which is 1 + the
 * characters before it. If the file has no such column, returns the place of `op`. */
uint32_t strata_trace_reader_column(const strata_trace_reader_t *reader, strata_trace_column_t column);
/* Sets *name to the format of a file, as below, without reading its rows. Fails with E_IO, E_FORMAT or
 * E_HOST_MEMORY. */
strata_status_t strata_trace_format_name(const char *path, const char **name);
/* Returns the name of the file's format; "trace" is Strata's own. */
const char *strata_trace_reader_format(const strata_trace_reader_t *reader);
/* Returns a bit (1u << STRATA_COLUMN_x) for each optional column that its rows may fill. */
uint32_t strata_trace_reader_columns(const strata_trace_reader_t *reader);
/* Returns the notes, which are complete before the first row is read. */
strata_trace_notes_t strata_trace_reader_notes(const strata_trace_reader_t *reader);
void strata_trace_reader_close(strata_trace_reader_t *reader);

/* ---- a whole trace in memory ---------------------------------------------------------------------------------------- */

#define STRATA_TRACE_NONE      UINT32_MAX
#define STRATA_TRACE_NO_STREAM UINT16_MAX
#define STRATA_TRACE_NO_POOL   UINT16_MAX

/* 40 bytes. */
typedef struct strata_trace_event {
    uint64_t time_us;
    uint64_t value; /* for alloc: the size; for work: dur_us */
    uint32_t id; /* 0 .. lifetimes - 1, in the order of the allocs; or STRATA_TRACE_NONE */
    uint32_t line;
    uint16_t stream; /* index into streams[]; NO_STREAM for step, release, and sync of the whole device */
    uint16_t other; /* for wait: index into streams[]; if stream is NO_STREAM: the device */
    uint16_t pool; /* index into pools[], also for an alloc on a stream that has begun one; or NO_POOL */
    uint16_t tag; /* index into tags[]; 0 is "" */
    uint8_t op; /* strata_trace_op_t */
    uint8_t place; /* strata_place_kind_t */
    uint8_t align; /* log2; 0 means the place's */
    uint32_t stack; /* index into stacks[]; 0 is "" */
} strata_trace_event_t;

typedef struct strata_trace_stream {
    uint64_t number; /* as in the file */
    char *name; /* the program's name for it; NULL if the trace has none */
    uint32_t device;
} strata_trace_stream_t;

enum { STRATA_TRACE_MOVES = 32 };

typedef struct strata_trace {
    char *path;
    strata_trace_event_t *events;
    size_t count;
    strata_trace_event_t *older[STRATA_TRACE_MOVES]; /* earlier arrays of events, kept if other threads may still read there */
    uint32_t older_count;
    strata_trace_stream_t *streams;
    uint32_t stream_count;
    uint64_t *pools;
    uint32_t pool_count;
    char **tags;
    uint32_t tag_count;
    char **stacks;
    uint32_t stack_count;
    uint32_t lifetimes; /* number of allocs */
    uint32_t devices; /* highest device + 1 */
    uint32_t places; /* bit k is set if a row of place kind k allocates */
    bool has_work;
    bool has_steps;
    uint64_t peak_requested; /* peak of the sum of all places */
    const char *format; /* as strata_trace_reader_format() */
    strata_trace_notes_t notes;
} strata_trace_t;

/* Reads and checks a whole file. strata_trace_delete() frees the trace (NULL is ignored). */
strata_status_t strata_trace_load(const char *path, strata_trace_t **trace);
/* Reads from a reader that has read no row yet and still belongs to the caller. Each checked row is
 * also passed to `row`, which may be NULL. Reading ends if that does not return OK. */
typedef strata_status_t (*strata_trace_row_fn)(void *context, const strata_trace_record_t *record);
strata_status_t strata_trace_load_from(strata_trace_reader_t *reader, const char *path, strata_trace_row_fn row, void *context,
                                       strata_trace_t **trace);
/* For other threads that use the first rows while the rest is read. */
typedef struct strata_trace_pieces {
    void (*publish)(void *context, const strata_trace_t *so_far); /* called after every few thousand rows */
    void *context;
    size_t expected; /* rows; if there are more, the array is moved and the old one stays until the delete */
} strata_trace_pieces_t;
/* Reads as above in pieces. *trace is set even if the file turns out to be wrong, since other threads
 * may still use it. It is NULL if reading has not begun. */
strata_status_t strata_trace_load_in_pieces(strata_trace_reader_t *reader, const char *path, const strata_trace_pieces_t *pieces,
                                            strata_trace_t **trace);
void strata_trace_delete(strata_trace_t *trace);

/* ---- writing ---------------------------------------------------------------------------------------------------------- */

typedef struct strata_trace_writer strata_trace_writer_t;

/* Begins a trace. `columns` has a bit (1u << STRATA_COLUMN_x) for each optional column that rows will
 * fill. A path that ends in .gz is compressed. No file is at `path` before
 * strata_trace_writer_finish(). */
strata_status_t strata_trace_writer_open(const char *path, uint32_t columns, strata_trace_writer_t **writer);
/* Writes a row. Fails with E_INVALID for a record that the reader would refuse by itself, or that needs
 * a column missing in `columns`. Rows are not checked against each other. */
strata_status_t strata_trace_write(strata_trace_writer_t *writer, const strata_trace_record_t *record);
/* Writes a copy of the rows so far as a separate trace; the writer continues. Fails with E_IO,
 * E_UNSUPPORTED (a pipe) or E_HOST_MEMORY. */
strata_status_t strata_trace_writer_copy(strata_trace_writer_t *writer, const char *path);
/* Writes the rest, puts the file in its place and frees the writer, whatever the status. */
strata_status_t strata_trace_writer_finish(strata_trace_writer_t *writer);
/* Frees the writer and leaves no file. */
void strata_trace_writer_abandon(strata_trace_writer_t *writer);

#endif
