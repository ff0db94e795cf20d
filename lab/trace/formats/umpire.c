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

enum { ALLOCATORS = 4096, NAME_BYTES = 256, BEGUN = 64 };

typedef struct allocator {
    char name[NAME_BYTES];
    uint64_t ref;
    uint64_t device;
    strata_place_kind_t place;
} allocator_t;

/* A reallocation that is in progress. */
typedef struct begun {
    uint64_t ref, from, size;
    uint32_t since; /* number of ids assigned before it */
} begun_t;

typedef struct log {
    strata_gathered_t *gathered;
    strata_lines_t lines;
    allocator_t *allocators; /* the last one of a ref or name counts */
    size_t count;
    begun_t begun[BEGUN]; /* if the array is full, the oldest is dropped */
    size_t begun_count;
} log_t;

/* The contents of a line. */
typedef struct said {
    const char *begin;
    strata_json_slice_t name, parent, allocator_name, allocation_name;
    uint64_t ref, pointer, from, size, time_ns;
    bool has_ref, has_pointer, has_from, has_size, has_time;
    bool is_old;
} said_t;

/* ---- a line ---- */

static const char *read_numeric(void *context, strata_json_slice_t name, strata_json_slice_t value) {
    said_t *said = context;
    if (strata_json_is(name, "size")) said->has_size = strata_json_whole(value, &said->size, NULL);
    return NULL;
}

static const char *read_string(void *context, strata_json_slice_t name, strata_json_slice_t value) {
    said_t *said = context;
    if (strata_json_is(name, "allocator_ref")) said->has_ref = strata_json_address(value, &said->ref);
    if (strata_json_is(name, "pointer")) said->has_pointer = strata_json_address(value, &said->pointer);
    if (strata_json_is(name, "new_ptr")) said->has_pointer = strata_json_address(value, &said->pointer);
    if (strata_json_is(name, "current_ptr")) said->has_from = strata_json_address(value, &said->from);
    if (strata_json_is(name, "arg0")) said->parent = value;
    if (strata_json_is(name, "allocation_name")) said->allocation_name = value;
    return NULL;
}

static const char *read_tag(void *context, strata_json_slice_t name, strata_json_slice_t value) {
    said_t *said = context;
    if (strata_json_is(name, "allocator_name")) said->allocator_name = value;
    return NULL;
}

/* In old logs, the first argument of makeAllocator is the allocator below it. */
static const char *read_argument(void *context, strata_json_slice_t name, strata_json_slice_t value) {
    said_t *said = context;
    (void)name;
    if (!said->parent.at) said->parent = value;
    return NULL;
}

static const char *read_payload(void *context, strata_json_slice_t name, strata_json_slice_t value) {
    said_t *said = context;
    strata_json_scan_t scan = {.begin = said->begin};
    if (strata_json_is(name, "name") || strata_json_is(name, "allocator_name")) said->allocator_name = value;
    if (strata_json_is(name, "memory_ptr")) said->has_pointer = strata_json_address(value, &said->pointer);
    if (strata_json_is(name, "ptr")) said->has_from = strata_json_address(value, &said->from);
    if (strata_json_is(name, "args") && *value.at == '[') (void)strata_json_value(&scan, value.at, read_argument, said);
    (void)read_numeric(said, name, value);
    if (strata_json_is(name, "allocator_ref")) said->has_ref = strata_json_address(value, &said->ref);
    return NULL;
}

static void read_result(said_t *said, strata_json_slice_t value) {
    strata_json_scan_t scan = {.begin = said->begin};
    if (*value.at == '{') (void)strata_json_value(&scan, value.at, read_payload, said);
    else said->has_ref = strata_json_address(value, &said->ref);
}

static const char *read_member(void *context, strata_json_slice_t name, strata_json_slice_t value) {
    said_t *said = context;
    strata_json_scan_t scan = {.begin = said->begin};
    if (strata_json_is(name, "name")) said->name = value;
    if (strata_json_is(name, "timestamp")) said->has_time = strata_json_whole(value, &said->time_ns, NULL);
    if (strata_json_is(name, "numeric_args")) (void)strata_json_value(&scan, value.at, read_numeric, said);
    if (strata_json_is(name, "string_args")) (void)strata_json_value(&scan, value.at, read_string, said);
    if (strata_json_is(name, "tags")) (void)strata_json_value(&scan, value.at, read_tag, said);
    if (strata_json_is(name, "event")) {
        said->name = value;
        said->is_old = true;
    }
    if (strata_json_is(name, "payload")) (void)strata_json_value(&scan, value.at, read_payload, said);
    if (strata_json_is(name, "result")) read_result(said, value);
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
static strata_status_t add_allocator(log_t *log, const said_t *said) {
    allocator_t made = {.place = STRATA_PLACE_GPU};
    char parent[NAME_BYTES];
    if (!said->has_ref) return STRATA_OK;
    unquote(said->allocator_name, made.name, sizeof made.name);
    unquote(said->parent, parent, sizeof parent);
    const allocator_t *below = *parent ? find(log, parent, 0) : NULL;
    if (below) {
        made.place = below->place;
        made.device = below->device;
    } else if (!place_of(made.name, &made)) {
        (void)place_of(parent, &made);
    }
    made.ref = said->ref;
    if (log->count == ALLOCATORS) return strata_lines_fail(&log->lines, 1, "more than %d allocators; split the log", ALLOCATORS);
    log->allocators[log->count++] = made;
    return STRATA_OK;
}

/* ---- rows ---- */

static bool is_one_of(strata_json_slice_t name, const char *a, const char *b) {
    return strata_json_is(name, a) || strata_json_is(name, b);
}

/* Returns the latest reallocation in progress with this allocator, and at this address if the line has one. */
static bool take_begun(log_t *log, const said_t *said, begun_t *begun) {
    size_t at = log->begun_count;
    for (; at > 0; at--) {
        const begun_t *one = &log->begun[at - 1];
        if (one->ref == said->ref && (!said->has_from || one->from == said->from)) break;
    }
    if (at == 0) return false;
    *begun = log->begun[at - 1];
    log->begun_count--;
    memmove(&log->begun[at - 1], &log->begun[at], (log->begun_count - (at - 1)) * sizeof *begun);
    return true;
}

/* A line without the new address begins a reallocation. */
static strata_status_t reallocate(log_t *log, const said_t *said, strata_gathered_event_t *event) {
    begun_t begun = {.ref = said->ref, .from = said->from, .size = said->size, .since = log->gathered->ids};
    if (!said->has_pointer) {
        if (!said->has_from) return strata_lines_fail(&log->lines, 1, "the line has no address");
        if (!said->has_size) return strata_lines_fail(&log->lines, 1, "the line has no size");
        if (log->begun_count == BEGUN) memmove(log->begun, log->begun + 1, --log->begun_count * sizeof begun);
        log->begun[log->begun_count++] = begun;
        return STRATA_OK;
    }
    if (!take_begun(log, said, &begun)) {
        log->gathered->notes.other_actions++;
        return STRATA_OK;
    }
    event->size = begun.size;
    return strata_gathered_moved(log->gathered, event, begun.from, begun.since);
}

static strata_status_t add_event(log_t *log, const said_t *said) {
    char name[STRATA_TRACE_TAG_BYTES];
    strata_gathered_event_t event = {.time_us = said->time_ns / 1000, .address = said->pointer, .size = said->size};
    const allocator_t *allocator = said->has_ref ? find(log, NULL, said->ref) : NULL;
    if (allocator) {
        event.place = allocator->place;
        event.device = allocator->device;
    }
    unquote(said->allocation_name, name, sizeof name);
    event.tag = name;
    if (!said->has_time) return strata_lines_fail(&log->lines, 1, "the line has no timestamp");
    if (strata_json_is(said->name, "\"release\"")) return strata_gathered_mark(log->gathered, STRATA_TRACE_release, &event);
    if (is_one_of(said->name, "\"reallocate\"", "\"reallocate_ex\"")) return reallocate(log, said, &event);
    bool begins = said->is_old && !said->has_pointer && strata_json_is(said->name, "\"allocate\"");
    if (begins) return STRATA_OK;
    if (!said->has_pointer) return strata_lines_fail(&log->lines, 1, "the line has no pointer");
    if (strata_json_is(said->name, "\"deallocate\""))
        return event.address ? strata_gathered_free(log->gathered, &event, false) : STRATA_OK;
    if (!said->has_size) return strata_lines_fail(&log->lines, 1, "the line has no size");
    return strata_gathered_alloc(log->gathered, &event);
}

static strata_status_t read_line(log_t *log) {
    static const char *const events[] = {"\"allocate\"", "\"named_allocate\"", "\"deallocate\"",
                                         "\"release\"",  "\"reallocate\"",     "\"reallocate_ex\""};
    strata_json_scan_t scan = {.begin = log->lines.text};
    said_t said = {.begin = log->lines.text};
    const char *end = strata_json_value(&scan, log->lines.text, read_member, &said);
    if (end) end = strata_json_spaces(end);
    if (!end || *end)
        return strata_lines_fail(&log->lines, (uint32_t)((end ? end : scan.at) - scan.begin) + 1, "%s",
                                 end ? "text follows the object" : scan.wrong);
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (strata_json_is(said.name, events[i])) return add_event(log, &said);
    bool makes = is_one_of(said.name, "\"make_allocator\"", "\"make_memory_resource\"") ||
                 is_one_of(said.name, "\"makeAllocator\"", "\"makeMemoryResource\"");
    return makes ? add_allocator(log, &said) : STRATA_OK;
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
    strata_status_t status = strata_lines_over(&log.lines, gathered->path, input);
    if (status == STRATA_OK) status = read_lines(&log);
    if (strata_lines_cut_off(&log.lines, status)) {
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
