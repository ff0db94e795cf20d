/* Umpire's replay log (UMPIRE_REPLAY): a JSON object a line, with `category`, `name`, `numeric_args`, `string_args`, `tags` and
 * `timestamp` in nanoseconds. Of a reallocation the allocation and the free within it count. Where the memory lies is told by the
 * allocator's name: HOST, DEVICE, DEVICE::1, UM, PINNED, or that of an allocator which is made over one of these. */
#include <string.h>

#include "platform/host/host_memory.h"
#include "trace/formats/gathered.h"
#include "trace/formats/numbers.h"
#include "trace/text/lines.h"

enum { ALLOCATORS = 4096, NAME_BYTES = 64 };

typedef struct allocator {
    char name[NAME_BYTES];
    uint64_t ref;
    uint32_t device;
    strata_place_kind_t place;
} allocator_t;

typedef struct log {
    strata_gathered_t *gathered;
    strata_lines_t lines;
    allocator_t *allocators; /* of one ref or name the last counts */
    size_t count;
} log_t;

/* What a line says. */
typedef struct said {
    const char *begin;
    strata_json_slice_t name, parent, allocator_name, allocation_name;
    uint64_t ref, pointer, size, time_ns;
    bool has_ref, has_pointer, has_size, has_time;
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
    if (strata_json_is(name, "arg0")) said->parent = value;
    if (strata_json_is(name, "allocation_name")) said->allocation_name = value;
    return NULL;
}

static const char *read_tag(void *context, strata_json_slice_t name, strata_json_slice_t value) {
    said_t *said = context;
    if (strata_json_is(name, "allocator_name")) said->allocator_name = value;
    return NULL;
}

static const char *read_member(void *context, strata_json_slice_t name, strata_json_slice_t value) {
    said_t *said = context;
    strata_json_scan_t scan = {.begin = said->begin};
    if (strata_json_is(name, "name")) said->name = value;
    if (strata_json_is(name, "timestamp")) said->has_time = strata_json_whole(value, &said->time_ns, NULL);
    if (strata_json_is(name, "numeric_args")) (void)strata_json_value(&scan, value.at, read_numeric, said);
    if (strata_json_is(name, "string_args")) (void)strata_json_value(&scan, value.at, read_string, said);
    if (strata_json_is(name, "tags")) (void)strata_json_value(&scan, value.at, read_tag, said);
    return NULL;
}

/* The text of a string without its quotes, cut to what fits. */
static void unquote(strata_json_slice_t value, char *text, size_t capacity) {
    size_t length = value.length >= 2 && value.at[0] == '"' ? value.length - 2 : 0;
    if (length >= capacity) length = capacity - 1;
    if (length) memcpy(text, value.at + 1, length);
    text[length] = '\0';
}

/* ---- where memory lies ---- */

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
        if (name[length] && (!numbered || device >= STRATA_TRACE_DEVICES)) continue;
        allocator->place = resources[i].place;
        allocator->device = (uint32_t)device;
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

/* One that is over nothing known is taken to be of the GPU. */
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
    if (log->count == ALLOCATORS) return strata_lines_wrong(&log->lines, 1, "more than %d allocators; split the log", ALLOCATORS);
    log->allocators[log->count++] = made;
    return STRATA_OK;
}

/* ---- rows ---- */

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
    if (!said->has_time) return strata_lines_wrong(&log->lines, 1, "the line has no timestamp");
    if (strata_json_is(said->name, "\"release\"")) return strata_gathered_mark(log->gathered, STRATA_TRACE_release, &event);
    if (!said->has_pointer) return strata_lines_wrong(&log->lines, 1, "the line has no pointer");
    if (strata_json_is(said->name, "\"deallocate\""))
        return event.address ? strata_gathered_free(log->gathered, &event, false) : STRATA_OK;
    if (!said->has_size) return strata_lines_wrong(&log->lines, 1, "the line has no size");
    return strata_gathered_alloc(log->gathered, &event);
}

static strata_status_t read_line(log_t *log) {
    static const char *const events[] = {"\"allocate\"", "\"named_allocate\"", "\"deallocate\"", "\"release\""};
    strata_json_scan_t scan = {.begin = log->lines.text};
    said_t said = {.begin = log->lines.text};
    const char *end = strata_json_value(&scan, log->lines.text, read_member, &said);
    if (end) end = strata_json_spaces(end);
    if (!end || *end)
        return strata_lines_wrong(&log->lines, (uint32_t)((end ? end : scan.at) - scan.begin) + 1, "%s",
                                  end ? "text follows the object" : scan.wrong);
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (strata_json_is(said.name, events[i])) return add_event(log, &said);
    bool makes = strata_json_is(said.name, "\"make_allocator\"") || strata_json_is(said.name, "\"make_memory_resource\"");
    return makes ? add_allocator(log, &said) : STRATA_OK;
}

static strata_status_t read_lines(log_t *log) {
    bool end = false;
    strata_status_t status = STRATA_OK;
    while (status == STRATA_OK) {
        status = strata_lines_next(&log->lines, &end);
        if (status != STRATA_OK || end) break;
        if (*strata_json_spaces(log->lines.text)) status = read_line(log);
    }
    return status;
}

static strata_status_t gather(strata_gathered_t *gathered, strata_input_t *input) {
    log_t log = {.gathered = gathered};
    log.allocators = strata_host_new(ALLOCATORS, sizeof *log.allocators);
    if (!log.allocators) return STRATA_E_HOST_MEMORY;
    strata_status_t status = strata_lines_over(&log.lines, gathered->path, input);
    if (status == STRATA_OK) status = read_lines(&log);
    strata_lines_release(&log.lines);
    strata_host_delete(log.allocators);
    return status;
}

static strata_status_t open_log(const char *path, strata_input_t *input, void **state) {
    return strata_gathered_open(path, input, gather, state);
}

/* The first line is an object with a category. */
static bool recognises(const char *head, size_t count) {
    const char *at = strata_json_spaces(head), *end = strchr(at, '\n'), *found = strstr(at, "\"category\"");
    (void)count;
    return *at == '{' && found && (!end || found < end);
}

const strata_trace_format_t strata_trace_umpire = {.name = "umpire",
                                                   .meaning = "a replay log of Umpire (UMPIRE_REPLAY)",
                                                   .recognises = recognises,
                                                   .open = open_log,
                                                   .read = strata_gathered_read,
                                                   .columns = strata_gathered_columns,
                                                   .notes = strata_gathered_notes,
                                                   .close = strata_gathered_close};
