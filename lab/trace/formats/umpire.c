/* Reads Umpire's replay log (UMPIRE_REPLAY), which has one JSON object per line. Its members are `category`,
 * `name`, `numeric_args`, `string_args`, `tags` and `timestamp` in nanoseconds. Until 2022 they were `event`,
 * `payload` and `result` instead. Other lines are comments. The name of the allocator gives the place: HOST,
 * DEVICE, DEVICE::1, UM, PINNED, or an allocator made over one of these.
 *
 * Old logs have two lines per allocation; the line with a result counts. A reallocation also has two lines.
 * Umpire writes an allocation and a free between them only if it moved the block itself, and not if the C
 * library did. */
#include <string.h>

#include "lab/trace/formats/gathered.h"
#include "lab/trace/formats/numbers.h"
#include "platform/host/host_memory.h"
#include "trace/text/lines.h"

enum { ALLOCATORS = 4096, NAME_BYTES = 256, PENDING_MAX = 64 };

typedef struct allocator {
    char name[NAME_BYTES];
    uint64_t ref;
    uint64_t device;
    strata_place_kind_t place;
} allocator_t;

/* A reallocation that is in progress. */
typedef struct pending {
    uint64_t ref, from, size;
    uint32_t since; /* number of ids assigned before it */
} pending_t;

typedef struct log {
    strata_gathered_t *gathered;
    strata_lines_t lines;
    allocator_t *allocators; /* the last one of a ref or name counts */
    size_t count;
    pending_t pending[PENDING_MAX]; /* if the array is full, the oldest is dropped */
    size_t pending_count;
} log_t;

/* The contents of a line. */
typedef struct fields {
    const char *begin;
    strata_json_slice_t name, parent, allocator_name, allocation_name;
    uint64_t ref, pointer, from, size, time_ns;
    bool has_ref, has_pointer, has_from, has_size, has_time;
    bool is_old;
} fields_t;

/* ---- a line ---- */

static const char *read_numeric(void *context, strata_json_slice_t name, strata_json_slice_t value) {
    fields_t *fields = context;
    if (strata_json_is(name, "size")) fields->has_size = strata_json_whole(value, &fields->size, NULL);
    return NULL;
}

static const char *read_string(void *context, strata_json_slice_t name, strata_json_slice_t value) {
    fields_t *fields = context;
    if (strata_json_is(name, "allocator_ref")) fields->has_ref = strata_json_address(value, &fields->ref);
    if (strata_json_is(name, "pointer")) fields->has_pointer = strata_json_address(value, &fields->pointer);
    if (strata_json_is(name, "new_ptr")) fields->has_pointer = strata_json_address(value, &fields->pointer);
    if (strata_json_is(name, "current_ptr")) fields->has_from = strata_json_address(value, &fields->from);
    if (strata_json_is(name, "arg0")) fields->parent = value;
    if (strata_json_is(name, "allocation_name")) fields->allocation_name = value;
    return NULL;
}

static const char *read_tag(void *context, strata_json_slice_t name, strata_json_slice_t value) {
    fields_t *fields = context;
    if (strata_json_is(name, "allocator_name")) fields->allocator_name = value;
    return NULL;
}

/* In old logs, the first argument of makeAllocator is the allocator below it. */
static const char *read_argument(void *context, strata_json_slice_t name, strata_json_slice_t value) {
    fields_t *fields = context;
    (void)name;
    if (!fields->parent.at) fields->parent = value;
    return NULL;
}

static const char *read_payload(void *context, strata_json_slice_t name, strata_json_slice_t value) {
    fields_t *fields = context;
    strata_json_scan_t scan = {.begin = fields->begin};
    if (strata_json_is(name, "name") || strata_json_is(name, "allocator_name")) fields->allocator_name = value;
    if (strata_json_is(name, "memory_ptr")) fields->has_pointer = strata_json_address(value, &fields->pointer);
    if (strata_json_is(name, "ptr")) fields->has_from = strata_json_address(value, &fields->from);
    if (strata_json_is(name, "args") && *value.at == '[') (void)strata_json_value(&scan, value.at, read_argument, fields);
    (void)read_numeric(fields, name, value);
    if (strata_json_is(name, "allocator_ref")) fields->has_ref = strata_json_address(value, &fields->ref);
    return NULL;
}

static void read_result(fields_t *fields, strata_json_slice_t value) {
    strata_json_scan_t scan = {.begin = fields->begin};
    if (*value.at == '{') (void)strata_json_value(&scan, value.at, read_payload, fields);
    else fields->has_ref = strata_json_address(value, &fields->ref);
}

static const char *read_member(void *context, strata_json_slice_t name, strata_json_slice_t value) {
    fields_t *fields = context;
    strata_json_scan_t scan = {.begin = fields->begin};
    if (strata_json_is(name, "name")) fields->name = value;
    if (strata_json_is(name, "timestamp")) fields->has_time = strata_json_whole(value, &fields->time_ns, NULL);
    if (strata_json_is(name, "numeric_args")) (void)strata_json_value(&scan, value.at, read_numeric, fields);
    if (strata_json_is(name, "string_args")) (void)strata_json_value(&scan, value.at, read_string, fields);
    if (strata_json_is(name, "tags")) (void)strata_json_value(&scan, value.at, read_tag, fields);
    if (strata_json_is(name, "event")) {
        fields->name = value;
        fields->is_old = true;
    }
    if (strata_json_is(name, "payload")) (void)strata_json_value(&scan, value.at, read_payload, fields);
    if (strata_json_is(name, "result")) read_result(fields, value);
    return NULL;
}

/* Copies a string without its quotes, cut to the capacity. */
static void unquote(strata_json_slice_t value, char *text, size_t capacity) {
    size_t length = value.length >= 2 && value.at[0] == '"' ? value.length - 2 : 0;
    if (length >= capacity) length = capacity - 1;
    if (length) memcpy(text, value.at + 1, length);
    text[length] = '\0';
}

/* ---- places ---- */

static bool place_of(const char *name, allocator_t *allocator) {
    static const struct {
        const char *name;
        strata_place_kind_t place;
    } resources[] = {
        {"HOST", STRATA_PLACE_HOST}, {"DEVICE", STRATA_PLACE_GPU}, {"UM", STRATA_PLACE_MANAGED}, {"PINNED", STRATA_PLACE_PINNED}};
    for (size_t i = 0; i < sizeof resources / sizeof *resources; i++) {
        size_t length = strlen(resources[i].name);
        uint64_t device = 0;
        if (strncmp(name, resources[i].name, length) != 0) continue;
        bool numbered = strncmp(name + length, "::", 2) == 0 && strata_parse_whole(name + length + 2, &device);
        if (name[length] && !numbered) continue;
        allocator->place = resources[i].place;
        allocator->device = device;
        return true;
    }
    return false;
}

static const allocator_t *find(const log_t *log, const char *name, uint64_t ref) {
    for (size_t i = log->count; i > 0; i--) {
        const allocator_t *allocator = &log->allocators[i - 1];
        if (name ? strcmp(allocator->name, name) == 0 : allocator->ref == ref) return allocator;
    }
    return NULL;
}

/* An allocator over an unknown one is assumed to be on the GPU. */
static strata_status_t add_allocator(log_t *log, const fields_t *fields) {
    allocator_t made = {.place = STRATA_PLACE_GPU};
    char parent[NAME_BYTES];
    if (!fields->has_ref) return STRATA_OK;
    unquote(fields->allocator_name, made.name, sizeof made.name);
    unquote(fields->parent, parent, sizeof parent);
    const allocator_t *below = *parent ? find(log, parent, 0) : NULL;
    if (below) {
        made.place = below->place;
        made.device = below->device;
    } else if (!place_of(made.name, &made)) {
        (void)place_of(parent, &made);
    }
    made.ref = fields->ref;
    if (log->count == ALLOCATORS) return strata_lines_fail(&log->lines, 1, "more than %d allocators; split the log", ALLOCATORS);
    log->allocators[log->count++] = made;
    return STRATA_OK;
}

/* ---- rows ---- */

static bool is_one_of(strata_json_slice_t name, const char *a, const char *b) {
    return strata_json_is(name, a) || strata_json_is(name, b);
}

/* Returns the latest reallocation in progress with this allocator, and at this address if the line has one. */
static bool pop_pending(log_t *log, const fields_t *fields, pending_t *pending) {
    size_t at = log->pending_count;
    for (; at > 0; at--) {
        const pending_t *one = &log->pending[at - 1];
        if (one->ref == fields->ref && (!fields->has_from || one->from == fields->from)) break;
    }
    if (at == 0) return false;
    *pending = log->pending[at - 1];
    log->pending_count--;
    memmove(&log->pending[at - 1], &log->pending[at], (log->pending_count - (at - 1)) * sizeof *pending);
    return true;
}

/* A line without the new address begins a reallocation. */
static strata_status_t reallocate(log_t *log, const fields_t *fields, strata_gathered_event_t *event) {
    pending_t pending = {.ref = fields->ref, .from = fields->from, .size = fields->size, .since = log->gathered->ids};
    if (!fields->has_pointer) {
        if (!fields->has_from) return strata_lines_fail(&log->lines, 1, "the line has no address");
        if (!fields->has_size) return strata_lines_fail(&log->lines, 1, "the line has no size");
        if (log->pending_count == PENDING_MAX) memmove(log->pending, log->pending + 1, --log->pending_count * sizeof pending);
        log->pending[log->pending_count++] = pending;
        return STRATA_OK;
    }
    if (!pop_pending(log, fields, &pending)) {
        log->gathered->notes.other_actions++;
        return STRATA_OK;
    }
    event->size = pending.size;
    return strata_gathered_reallocated(log->gathered, event, pending.from, pending.since);
}

static strata_status_t add_event(log_t *log, const fields_t *fields) {
    char name[STRATA_TRACE_TAG_BYTES];
    strata_gathered_event_t event = {.time_us = fields->time_ns / 1000, .address = fields->pointer, .size = fields->size};
    const allocator_t *allocator = fields->has_ref ? find(log, NULL, fields->ref) : NULL;
    if (allocator) {
        event.place = allocator->place;
        event.device = allocator->device;
    }
    unquote(fields->allocation_name, name, sizeof name);
    event.tag = name;
    if (!fields->has_time) return strata_lines_fail(&log->lines, 1, "the line has no timestamp");
    if (strata_json_is(fields->name, "\"release\"")) return strata_gathered_mark(log->gathered, STRATA_TRACE_release, &event);
    if (is_one_of(fields->name, "\"reallocate\"", "\"reallocate_ex\"")) return reallocate(log, fields, &event);
    bool begins = fields->is_old && !fields->has_pointer && strata_json_is(fields->name, "\"allocate\"");
    if (begins) return STRATA_OK;
    if (!fields->has_pointer) return strata_lines_fail(&log->lines, 1, "the line has no pointer");
    if (strata_json_is(fields->name, "\"deallocate\""))
        return event.address ? strata_gathered_free(log->gathered, &event, false) : STRATA_OK;
    if (!fields->has_size) return strata_lines_fail(&log->lines, 1, "the line has no size");
    return strata_gathered_alloc(log->gathered, &event);
}

static strata_status_t read_line(log_t *log) {
    static const char *const events[] = {"\"allocate\"", "\"named_allocate\"", "\"deallocate\"",
                                         "\"release\"",  "\"reallocate\"",     "\"reallocate_ex\""};
    strata_json_scan_t scan = {.begin = log->lines.text};
    fields_t fields = {.begin = log->lines.text};
    const char *end = strata_json_value(&scan, log->lines.text, read_member, &fields);
    if (end) end = strata_json_spaces(end);
    if (!end || *end)
        return strata_lines_fail(&log->lines, (uint32_t)((end ? end : scan.at) - scan.begin) + 1, "%s",
                                 end ? "text follows the object" : scan.error);
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (strata_json_is(fields.name, events[i])) return add_event(log, &fields);
    bool makes = is_one_of(fields.name, "\"make_allocator\"", "\"make_memory_resource\"") ||
                 is_one_of(fields.name, "\"makeAllocator\"", "\"makeMemoryResource\"");
    return makes ? add_allocator(log, &fields) : STRATA_OK;
}

static strata_status_t read_lines(log_t *log) {
    bool end = false;
    strata_status_t status = STRATA_OK;
    while (status == STRATA_OK) {
        status = strata_lines_next(&log->lines, &end);
        if (status != STRATA_OK || end) break;
        if (*strata_json_spaces(log->lines.text) == '{') status = read_line(log);
    }
    return status;
}

static strata_status_t gather(strata_gathered_t *gathered, strata_input_t *input) {
    log_t log = {.gathered = gathered};
    log.allocators = strata_host_new(ALLOCATORS, sizeof *log.allocators);
    if (!log.allocators) return STRATA_E_HOST_MEMORY;
    strata_status_t status = strata_lines_init(&log.lines, gathered->path, input);
    if (status == STRATA_OK) status = read_lines(&log);
    if (strata_lines_is_truncated(&log.lines, status)) {
        gathered->notes.cut_off = 1;
        status = STRATA_OK;
    }
    strata_lines_release(&log.lines);
    strata_host_delete(log.allocators);
    return status;
}

static strata_status_t open_log(const char *path, strata_input_t *input, void **state) {
    return strata_gathered_open(path, input, gather, state);
}

/* The first line that is not a comment is an object with a category or, until 2022, with the kind "replay". */
static bool recognises(const char *head, size_t count) {
    const char *at = strata_json_spaces(head);
    (void)count;
    while (*at == '#' || strncmp(at, "//", 2) == 0) at = strata_json_spaces(at + strcspn(at, "\n"));
    size_t length = strcspn(at, "\n");
    bool is_new = memmem(at, length, "\"category\"", 10) != NULL;
    bool is_old = memmem(at, length, "\"kind\"", 6) && memmem(at, length, "\"replay\"", 8);
    return *at == '{' && (is_new || is_old);
}

const strata_trace_format_t strata_trace_umpire = {.name = "umpire",
                                                   .meaning = "a replay log of Umpire (UMPIRE_REPLAY)",
                                                   .recognises = recognises,
                                                   .open = open_log,
                                                   .read = strata_gathered_read,
                                                   .columns = strata_gathered_columns,
                                                   .notes = strata_gathered_notes,
                                                   .close = strata_gathered_close};
