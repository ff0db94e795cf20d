/* Loads a whole trace. Rows are checked against each other, and ids and streams get small numbers. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"
#include "platform/text/printable.h"
#include "trace/ids.h"
#include "trace/text/lines.h"
#include "trace/trace.h"

/* The state of an id while the file is read. */
typedef struct lifetime {
    uint64_t size;
    uint32_t alloc_line; /* line of its alloc */
    uint32_t free_line; /* line of its free, or 0 if it is live */
    uint16_t stream; /* of its alloc, as an index */
    uint8_t device;
    uint8_t place;
} lifetime_t;

/* The kernel that further rows of the same stream and time belong to. */
typedef struct kernel {
    uint64_t time_us;
    uint64_t dur_us;
    uint32_t line; /* 0 if there is none yet */
} kernel_t;

/* The pools that a stream has begun and not ended, the innermost last. */
typedef struct open_pools {
    uint16_t pools[STRATA_TRACE_OPEN_POOLS];
    uint32_t count;
} open_pools_t;

enum { PIECE_ROWS = 4096 };

typedef struct loader {
    strata_trace_t *trace;
    strata_trace_reader_t *reader;
    const strata_trace_pieces_t *pieces; /* NULL if the trace is not visible before its end */
    size_t shown_at; /* rows at the end of the next piece; SIZE_MAX if there are no pieces */
    strata_trace_row_fn row; /* may be NULL */
    void *context;
    size_t capacity; /* of trace->events */
    lifetime_t *lifetimes;
    size_t lifetime_capacity;
    kernel_t *kernels; /* by stream */
    open_pools_t *open_pools; /* by stream */
    strata_ids_t ids, streams, pools, tags, borrows;
    strata_ids_t stacks; /* by the reader's addresses */
    uint64_t last_key; /* key of the stream that was looked up last, and its index; only valid if there is a stream */
    uint16_t last_stream;
    bool *borrowed; /* by the number of an id and a stream in `borrows`: borrowed and not returned yet */
    size_t borrowed_capacity;
    uint64_t live_bytes;
    uint64_t work_us; /* sum of the kernels */
} loader_t;

static STRATA_PRINTF(4, 5) strata_status_t
    wrong(const loader_t *loader, uint32_t line, strata_trace_column_t of, const char *format, ...) {
    uint32_t column = strata_trace_reader_column(loader->reader, of);
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return strata_fail_at(STRATA_E_FORMAT, line, column, "%s:%u:%u: %s", loader->trace->path, line, column, text);
}

/* Makes room for one more element after `count`. The array grows to twice its size. */
static strata_status_t reserve(void **array, size_t *capacity, size_t count, size_t size) {
    if (count < *capacity) return STRATA_OK;
    size_t larger = *capacity * 2 + 64;
    void *grown = strata_host_resize(*array, larger, size);
    if (!grown) return STRATA_E_HOST_MEMORY;
    strata_host_will_fill(grown, larger * size);
    *array = grown;
    *capacity = larger;
    return STRATA_OK;
}

/* The first array has room for all expected rows. If a limit on addresses prevents that, it has room for a piece. */
static strata_trace_event_t *more_events(const loader_t *loader, size_t *capacity) {
    strata_trace_event_t *events = NULL;
    *capacity = loader->trace->events ? loader->capacity * 2 : strata_max(loader->pieces->expected, PIECE_ROWS);
    events = strata_host_new(*capacity, sizeof *events);
    if (events || loader->trace->events || *capacity == PIECE_ROWS) return events;
    *capacity = PIECE_ROWS;
    return strata_host_new(*capacity, sizeof *events);
}

/* Moves the events to a larger array. Threads that already use the rows can still read them in the old one. */
static strata_status_t move_events(loader_t *loader) {
    strata_trace_t *trace = loader->trace;
    size_t larger;
    strata_trace_event_t *grown = more_events(loader, &larger);
    if (!grown) return STRATA_E_HOST_MEMORY;
    strata_host_will_fill(grown, larger * sizeof *grown);
    if (trace->count > 0) memcpy(grown, trace->events, trace->count * sizeof *grown);
    if (trace->events) trace->older[trace->older_count++] = trace->events;
    trace->events = grown;
    loader->capacity = larger;
    return STRATA_OK;
}

static strata_status_t reserve_event(loader_t *loader) {
    strata_trace_t *trace = loader->trace;
    if (trace->count < loader->capacity) return STRATA_OK;
    if (loader->pieces) return move_events(loader);
    return reserve((void **)&trace->events, &loader->capacity, trace->count, sizeof *trace->events);
}

/* ---- small numbers for streams, pools and tags ------------------------------------------------------------------------- */

static uint64_t key_of_stream(uint64_t number, uint32_t device) { return number * STRATA_TRACE_DEVICES + device; }

/* Sets the index of the stream that a column of the row names. */
static strata_status_t intern_stream(loader_t *loader, const strata_trace_record_t *record, strata_trace_column_t column,
                                     uint16_t *index) {
    strata_trace_t *trace = loader->trace;
    uint64_t number = column == STRATA_COLUMN_other ? record->other : record->stream;
    uint64_t key = key_of_stream(number, record->device);
    uint32_t found = strata_ids_find(&loader->streams, key);
    if (found == STRATA_IDS_NONE) {
        found = trace->stream_count;
        if (found == STRATA_TRACE_STREAMS) return wrong(loader, record->line, column, "more than %d streams", STRATA_TRACE_STREAMS);
        strata_status_t status = strata_ids_add(&loader->streams, key);
        if (status != STRATA_OK) return status;
        trace->streams[found] = (strata_trace_stream_t){.number = number, .device = record->device};
        trace->stream_count++;
    }
    loader->last_key = key;
    loader->last_stream = *index = (uint16_t)found;
    return STRATA_OK;
}

static strata_status_t intern_pool(loader_t *loader, const strata_trace_record_t *record, uint16_t *index) {
    strata_trace_t *trace = loader->trace;
    *index = STRATA_TRACE_NO_POOL;
    if (!record->has_pool) return STRATA_OK;
    uint32_t found = strata_ids_find(&loader->pools, record->pool);
    if (found == STRATA_IDS_NONE) {
        found = trace->pool_count;
        if (found == STRATA_TRACE_POOLS)
            return wrong(loader, record->line, STRATA_COLUMN_pool, "more than %d pools", STRATA_TRACE_POOLS);
        strata_status_t status = strata_ids_add(&loader->pools, record->pool);
        if (status != STRATA_OK) return status;
        trace->pools[trace->pool_count++] = record->pool;
    }
    *index = (uint16_t)found;
    return STRATA_OK;
}

static strata_status_t begin_pool(loader_t *loader, const strata_trace_record_t *record, const strata_trace_event_t *event) {
    open_pools_t *open_pools = &loader->open_pools[event->stream];
    if (open_pools->count == STRATA_TRACE_OPEN_POOLS)
        return wrong(loader, record->line, STRATA_COLUMN_pool,
                     "stream %llu has %d open pools, the maximum; write their pool_end first", (unsigned long long)record->stream,
                     STRATA_TRACE_OPEN_POOLS);
    open_pools->pools[open_pools->count++] = event->pool;
    return STRATA_OK;
}

static strata_status_t end_pool(loader_t *loader, const strata_trace_record_t *record, const strata_trace_event_t *event) {
    open_pools_t *open_pools = &loader->open_pools[event->stream];
    uint32_t at = open_pools->count;
    while (at > 0 && open_pools->pools[at - 1] != event->pool) at--;
    if (at == 0)
        return wrong(loader, record->line, STRATA_COLUMN_pool,
                     "pool_end of pool %llu, which is not open on stream %llu; write its pool_begin first",
                     (unsigned long long)record->pool, (unsigned long long)record->stream);
    for (open_pools->count--; at <= open_pools->count; at++) open_pools->pools[at - 1] = open_pools->pools[at];
    return STRATA_OK;
}

/* A stream has one name, which several of its rows may repeat. */
static strata_status_t name_stream(loader_t *loader, const strata_trace_record_t *record, uint16_t stream) {
    char **name = &loader->trace->streams[stream].name;
    if (!record->stream_name || !*record->stream_name) return STRATA_OK;
    if (*name && strcmp(*name, record->stream_name) != 0)
        return wrong(loader, record->line, STRATA_COLUMN_stream_name,
                     "stream %llu is \"%.60s\" here and \"%.60s\" above; give each stream one name",
                     (unsigned long long)record->stream, strata_excerpt(record->stream_name).text, strata_excerpt(*name).text);
    if (!*name) *name = strata_host_strdup(record->stream_name);
    return *name ? STRATA_OK : STRATA_E_HOST_MEMORY;
}

/* The pool of an alloc is its own, or the innermost one that its stream has begun. */
static strata_status_t set_pool(loader_t *loader, const strata_trace_record_t *record, strata_trace_event_t *event) {
    strata_status_t status = intern_pool(loader, record, &event->pool);
    if (status != STRATA_OK) return status;
    if (record->op == STRATA_TRACE_pool_begin) return begin_pool(loader, record, event);
    if (record->op == STRATA_TRACE_pool_end) return end_pool(loader, record, event);
    bool device_memory = record->place == STRATA_PLACE_GPU || record->place == STRATA_PLACE_MANAGED;
    if (record->op != STRATA_TRACE_alloc || record->has_pool || !device_memory) return status;
    const open_pools_t *open_pools = &loader->open_pools[event->stream];
    if (open_pools->count > 0) event->pool = open_pools->pools[open_pools->count - 1];
    return status;
}

static strata_status_t add_tag(loader_t *loader, const char *tag, uint64_t key, uint32_t line) {
    strata_trace_t *trace = loader->trace;
    if (trace->tag_count == STRATA_TRACE_TAGS)
        return wrong(loader, line, STRATA_COLUMN_tag, "more than %d different tags", STRATA_TRACE_TAGS);
    char *copy = strata_host_strdup(tag);
    if (!copy) return STRATA_E_HOST_MEMORY;
    trace->tags[trace->tag_count++] = copy;
    return strata_ids_add(&loader->tags, key);
}

/* On a collision of keys, the next keys are tried in turn. */
static strata_status_t intern_tag(loader_t *loader, const char *tag, uint32_t line, uint16_t *index) {
    *index = 0;
    if (!*tag) return STRATA_OK;
    uint64_t key = strata_ids_hash_word(&loader->tags, tag);
    uint32_t found = strata_ids_find(&loader->tags, key);
    while (found != STRATA_IDS_NONE && strcmp(loader->trace->tags[found], tag) != 0) found = strata_ids_find(&loader->tags, ++key);
    if (found == STRATA_IDS_NONE) {
        found = loader->trace->tag_count;
        strata_status_t status = add_tag(loader, tag, key, line);
        if (status != STRATA_OK) return status;
    }
    *index = (uint16_t)found;
    return STRATA_OK;
}

/* The first stack is "", which has key 0 whatever its address. */
static strata_status_t add_stack(loader_t *loader, const char *stack) {
    strata_trace_t *trace = loader->trace;
    if ((trace->stack_count & (trace->stack_count - 1)) == 0) {
        char **grown = strata_host_resize(trace->stacks, trace->stack_count ? trace->stack_count * 2 : 1, sizeof *grown);
        if (!grown) return STRATA_E_HOST_MEMORY;
        trace->stacks = grown;
    }
    char *copy = strata_host_strdup(stack);
    if (!copy) return STRATA_E_HOST_MEMORY;
    trace->stacks[trace->stack_count++] = copy;
    return strata_ids_add(&loader->stacks, *stack ? (uintptr_t)stack : 0);
}

static strata_status_t intern_stack(loader_t *loader, const char *stack, uint32_t *index) {
    *index = 0;
    if (!*stack) return STRATA_OK;
    uint32_t found = strata_ids_find(&loader->stacks, (uintptr_t)stack);
    *index = found == STRATA_IDS_NONE ? loader->trace->stack_count : found;
    return found == STRATA_IDS_NONE ? add_stack(loader, stack) : STRATA_OK;
}

/* ---- lifetimes and kernels --------------------------------------------------------------------------------------------- */

static strata_status_t begin_lifetime(loader_t *loader, const strata_trace_record_t *record, strata_trace_event_t *event) {
    strata_trace_t *trace = loader->trace;
    uint32_t known = strata_ids_find(&loader->ids, record->id);
    if (known != STRATA_IDS_NONE)
        return wrong(loader, record->line, STRATA_COLUMN_id,
                     "id %llu is allocated a second time (first on line %u); give each lifetime its own id",
                     (unsigned long long)record->id, loader->lifetimes[known].alloc_line);
    strata_status_t status = reserve((void **)&loader->lifetimes, &loader->lifetime_capacity, trace->lifetimes,
                                     sizeof *loader->lifetimes);
    if (status == STRATA_OK) status = strata_ids_add(&loader->ids, record->id);
    if (status != STRATA_OK) return status;
    loader->lifetimes[trace->lifetimes] = (lifetime_t){.size = record->size,
                                                       .alloc_line = record->line,
                                                       .stream = event->stream,
                                                       .device = (uint8_t)record->device,
                                                       .place = (uint8_t)record->place};
    event->id = trace->lifetimes++;
    event->value = record->size;
    trace->places |= 1u << record->place;
    loader->live_bytes += record->size; /* both are far below 2^63 */
    if (loader->live_bytes > STRATA_TRACE_LIVE_MAX)
        return wrong(loader, record->line, STRATA_COLUMN_size,
                     "the sizes of all live ids add up to more than 2^60 bytes; write sizes in bytes");
    trace->peak_requested = strata_max(trace->peak_requested, loader->live_bytes);
    return STRATA_OK;
}

/* Finds the live id of a free, borrow, unborrow or work. */
static strata_status_t use_lifetime(loader_t *loader, const strata_trace_record_t *record, strata_trace_event_t *event) {
    unsigned long long id = record->id;
    event->id = strata_ids_find(&loader->ids, record->id);
    if (event->id == STRATA_IDS_NONE)
        return wrong(loader, record->line, STRATA_COLUMN_id, "%s of id %llu, which no row above allocates; write its alloc first",
                     strata_trace_op_name(record->op), id);
    lifetime_t *lifetime = &loader->lifetimes[event->id];
    if (lifetime->free_line)
        return wrong(loader, record->line, STRATA_COLUMN_id,
                     "%s of id %llu, which was freed on line %u; give each lifetime its own id", strata_trace_op_name(record->op),
                     id, lifetime->free_line);
    bool device_memory = lifetime->place == STRATA_PLACE_GPU || lifetime->place == STRATA_PLACE_MANAGED;
    if (device_memory && lifetime->device != record->device)
        return wrong(loader, record->line, STRATA_COLUMN_device,
                     "%s of id %llu on device %u, but it was allocated on device %u (line %u)", strata_trace_op_name(record->op),
                     id, record->device, lifetime->device, lifetime->alloc_line);
    event->place = lifetime->place;
    if (record->op != STRATA_TRACE_free) return STRATA_OK;
    lifetime->free_line = record->line;
    loader->live_bytes -= lifetime->size;
    return STRATA_OK;
}

static uint64_t borrow_key(const strata_trace_event_t *event) { return (uint64_t)event->id * STRATA_TRACE_STREAMS + event->stream; }

static strata_status_t begin_borrow(loader_t *loader, const strata_trace_event_t *event) {
    uint32_t number = strata_ids_find(&loader->borrows, borrow_key(event));
    strata_status_t status = STRATA_OK;
    if (number == STRATA_IDS_NONE) {
        number = loader->borrows.count;
        status = reserve((void **)&loader->borrowed, &loader->borrowed_capacity, number, sizeof *loader->borrowed);
        if (status == STRATA_OK) status = strata_ids_add(&loader->borrows, borrow_key(event));
    }
    if (status == STRATA_OK) loader->borrowed[number] = true;
    return status;
}

/* If memory has no owner, the stream of the alloc is a borrower without a row. */
static strata_status_t end_borrow(loader_t *loader, const strata_trace_record_t *record, const strata_trace_event_t *event) {
    const lifetime_t *lifetime = &loader->lifetimes[event->id];
    bool owned = lifetime->place == STRATA_PLACE_GPU || lifetime->place == STRATA_PLACE_MANAGED;
    uint32_t number = strata_ids_find(&loader->borrows, borrow_key(event));
    if (number != STRATA_IDS_NONE && loader->borrowed[number]) {
        loader->borrowed[number] = false;
        return STRATA_OK;
    }
    if (!owned && event->stream == lifetime->stream) return STRATA_OK;
    return wrong(loader, record->line, STRATA_COLUMN_stream,
                 "unborrow of id %llu by stream %llu, which does not borrow it; write its borrow first",
                 (unsigned long long)record->id, (unsigned long long)record->stream);
}

static strata_status_t check_kernel(loader_t *loader, const strata_trace_record_t *record, strata_trace_event_t *event) {
    kernel_t *kernel = &loader->kernels[event->stream];
    loader->trace->has_work = true;
    event->value = record->dur_us;
    if (kernel->line && kernel->time_us == record->time_us) {
        if (kernel->dur_us == record->dur_us) return STRATA_OK;
        return wrong(loader, record->line, STRATA_COLUMN_dur_us,
                     "dur_us is %llu, but %llu on line %u of the same kernel (same stream and time_us)",
                     (unsigned long long)record->dur_us, (unsigned long long)kernel->dur_us, kernel->line);
    }
    *kernel = (kernel_t){.time_us = record->time_us, .dur_us = record->dur_us, .line = record->line};
    loader->work_us += record->dur_us;
    if (loader->work_us <= STRATA_TRACE_TIME_MAX) return STRATA_OK;
    return wrong(loader, record->line, STRATA_COLUMN_dur_us,
                 "the dur_us of all kernels add up to more than %llu; write microseconds",
                 (unsigned long long)STRATA_TRACE_TIME_MAX);
}

/* ---- rows -------------------------------------------------------------------------------------------------------------- */

static strata_status_t set_streams(loader_t *loader, const strata_trace_record_t *record, strata_trace_event_t *event) {
    bool none = record->op == STRATA_TRACE_step || record->op == STRATA_TRACE_release || record->all_streams;
    if (none) {
        event->stream = STRATA_TRACE_NO_STREAM;
        event->other = (uint16_t)record->device;
        return STRATA_OK;
    }
    strata_status_t status = STRATA_OK;
    bool again = loader->trace->stream_count > 0 && key_of_stream(record->stream, record->device) == loader->last_key;
    if (again) event->stream = loader->last_stream;
    else status = intern_stream(loader, record, STRATA_COLUMN_stream, &event->stream);
    if (status == STRATA_OK) status = name_stream(loader, record, event->stream);
    if (status == STRATA_OK && record->op == STRATA_TRACE_wait)
        status = intern_stream(loader, record, STRATA_COLUMN_other, &event->other);
    return status;
}

static strata_status_t set_subject(loader_t *loader, const strata_trace_record_t *record, strata_trace_event_t *event) {
    strata_status_t status = STRATA_OK;
    if (record->op == STRATA_TRACE_alloc) {
        status = begin_lifetime(loader, record, event);
    } else if (record->has_id) {
        status = use_lifetime(loader, record, event);
    }
    if (status != STRATA_OK) return status;
    switch (record->op) {
    case STRATA_TRACE_work: return check_kernel(loader, record, event);
    case STRATA_TRACE_borrow: return begin_borrow(loader, event);
    case STRATA_TRACE_unborrow: return end_borrow(loader, record, event);
    default: return STRATA_OK;
    }
}

static strata_status_t add(loader_t *loader, const strata_trace_record_t *record) {
    strata_trace_t *trace = loader->trace;
    if (trace->count == STRATA_TRACE_EVENTS)
        return wrong(loader, record->line, STRATA_COLUMN_op, "more than %d rows; split the trace", STRATA_TRACE_EVENTS);
    strata_status_t status = reserve_event(loader);
    if (status != STRATA_OK) return status;
    strata_trace_event_t event = {.time_us = record->time_us,
                                  .id = STRATA_TRACE_NONE,
                                  .line = record->line,
                                  .op = (uint8_t)record->op,
                                  .place = (uint8_t)record->place};
    if (record->align) event.align = (uint8_t)__builtin_ctzll(record->align);
    trace->devices = (uint32_t)strata_max(trace->devices, record->device + 1);
    trace->has_steps |= record->op == STRATA_TRACE_step;
    status = set_streams(loader, record, &event);
    if (status == STRATA_OK) status = set_subject(loader, record, &event);
    if (status == STRATA_OK) status = set_pool(loader, record, &event);
    if (status == STRATA_OK) status = intern_tag(loader, record->tag, record->line, &event.tag);
    if (status == STRATA_OK) status = intern_stack(loader, record->stack, &event.stack);
    if (status == STRATA_OK) trace->events[trace->count++] = event;
    return status;
}

static void publish_rows(loader_t *loader) {
    loader->shown_at = loader->trace->count + PIECE_ROWS;
    loader->pieces->publish(loader->pieces->context, loader->trace);
}

static strata_status_t load_rows(loader_t *loader) {
    for (;;) {
        strata_trace_record_t record;
        bool end;
        strata_status_t status = strata_trace_read(loader->reader, &record, &end);
        if (status != STRATA_OK || end) return status;
        status = add(loader, &record);
        if (status == STRATA_OK && loader->row) status = loader->row(loader->context, &record);
        if (status != STRATA_OK) return status;
        if (loader->trace->count >= loader->shown_at) publish_rows(loader);
    }
}

static strata_status_t loader_begin(loader_t *loader, const char *path) {
    strata_trace_t *trace = loader->trace = strata_host_new(1, sizeof *trace);
    if (!trace) return STRATA_E_HOST_MEMORY;
    trace->path = strata_host_strdup(path);
    if (trace->path) strata_make_printable(trace->path, false);
    trace->streams = strata_host_new(STRATA_TRACE_STREAMS, sizeof *trace->streams);
    trace->tags = strata_host_new(STRATA_TRACE_TAGS, sizeof *trace->tags);
    trace->pools = strata_host_new(STRATA_TRACE_POOLS, sizeof *trace->pools);
    loader->kernels = strata_host_new(STRATA_TRACE_STREAMS, sizeof *loader->kernels);
    loader->open_pools = strata_host_new(STRATA_TRACE_STREAMS, sizeof *loader->open_pools);
    bool all = trace->path && trace->streams && trace->tags && trace->pools && loader->kernels && loader->open_pools;
    strata_status_t status = all ? add_stack(loader, "") : STRATA_E_HOST_MEMORY;
    return status == STRATA_OK ? add_tag(loader, "", strata_ids_hash_word(&loader->tags, ""), 0) : status;
}

static void loader_end(loader_t *loader) {
    strata_host_delete(loader->lifetimes);
    strata_host_delete(loader->kernels);
    strata_host_delete(loader->open_pools);
    strata_ids_clear(&loader->ids);
    strata_ids_clear(&loader->streams);
    strata_ids_clear(&loader->pools);
    strata_ids_clear(&loader->tags);
    strata_ids_clear(&loader->stacks);
    strata_ids_clear(&loader->borrows);
    strata_host_delete(loader->borrowed);
}

static strata_status_t load_all(loader_t *loader, const char *path) {
    strata_status_t status = loader_begin(loader, path);
    if (status == STRATA_OK) status = load_rows(loader);
    loader_end(loader);
    if (status != STRATA_OK) return status;
    loader->trace->format = strata_trace_reader_format(loader->reader);
    loader->trace->notes = strata_trace_reader_notes(loader->reader);
    return STRATA_OK;
}

strata_status_t strata_trace_load_from(strata_trace_reader_t *reader, const char *path, strata_trace_row_fn row, void *context,
                                       strata_trace_t **trace) {
    loader_t loader = {.reader = reader, .row = row, .context = context, .shown_at = SIZE_MAX};
    strata_status_t status = load_all(&loader, path);
    if (status == STRATA_OK) *trace = loader.trace;
    else strata_trace_delete(loader.trace);
    return status;
}

strata_status_t strata_trace_load_in_pieces(strata_trace_reader_t *reader, const char *path, const strata_trace_pieces_t *pieces,
                                            strata_trace_t **trace) {
    loader_t loader = {.reader = reader, .pieces = pieces, .shown_at = PIECE_ROWS};
    strata_status_t status = load_all(&loader, path);
    *trace = loader.trace;
    return status;
}

strata_status_t strata_trace_load(const char *path, strata_trace_t **trace) {
    strata_trace_reader_t *reader;
    strata_status_t status = strata_trace_reader_open(path, &reader);
    if (status != STRATA_OK) return status;
    status = strata_trace_load_from(reader, path, NULL, NULL, trace);
    strata_trace_reader_close(reader);
    return status;
}

void strata_trace_delete(strata_trace_t *trace) {
    if (!trace) return;
    for (uint32_t i = 0; i < trace->tag_count; i++) strata_host_delete(trace->tags[i]);
    strata_host_delete(trace->tags);
    for (uint32_t i = 0; i < trace->stack_count; i++) strata_host_delete(trace->stacks[i]);
    strata_host_delete(trace->stacks);
    strata_host_delete(trace->pools);
    for (uint32_t i = 0; i < trace->stream_count; i++) strata_host_delete(trace->streams[i].name);
    strata_host_delete(trace->streams);
    strata_host_delete(trace->events);
    for (uint32_t i = 0; i < trace->older_count; i++) strata_host_delete(trace->older[i]);
    strata_host_delete(trace->path);
    strata_host_delete(trace);
}
