/* Reads memory snapshots of PyTorch since 2.0, which torch.cuda.memory._dump_snapshot() writes. The dict is
 * that of torch/csrc/cuda/memory_snapshot.cpp. `segments` has the memory at the end. `device_traces` has the
 * events by device, and the oldest events may have been dropped. The third member is `external_annotations`.
 * torch.cuda.memory_snapshot() returns only the list `segments`.
 *
 * The allocator records free_requested and free_completed one after the other, under its lock, unless other
 * streams used the block (record_stream). Then the second is recorded later. The record does not have those
 * streams. */
#include <stdlib.h>
#include <string.h>

#include "lab/trace/formats/frames.h"
#include "lab/trace/formats/gathered.h"
#include "lab/trace/formats/pickle.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

#define FILE_MAX ((size_t)2 << 30) /* bytes, unpacked */
enum { VISITS_MAX = STRATA_TRACE_EVENTS };

typedef strata_pickle_value_t value_t;

typedef enum action {
    ACTION_OTHER, /* ignored, such as snapshot and annotate */
    ACTION_UNKNOWN,
    ACTION_ALLOC,
    ACTION_FREE_REQUESTED,
    ACTION_FREE_COMPLETED,
    ACTION_GROW,
    ACTION_SHRINK,
    ACTION_OOM
} action_t;

/* An entry of a device's trace. */
typedef struct entry {
    action_t action;
    uint64_t address, size, stream, time_us;
    bool has_time;
    value_t frames, metadata;
} entry_t;

/* A device with events. */
typedef struct device {
    uint64_t ordinal;
    const strata_pickle_items_t *entries;
    size_t next;
    entry_t head; /* entries[next - 1], not carried out yet */
    bool has_head;
} device_t;

/* The begin or end of an external annotation. */
typedef struct annotation {
    uint64_t time_us;
    size_t order;
    value_t name;
    bool ends;
} annotation_t;

typedef struct snapshot {
    strata_gathered_t *gathered;
    device_t devices[STRATA_TRACE_DEVICES];
    uint32_t device_count;
    bool completes; /* the record has free_completed events, so a missing one is meaningful */
    bool untimed;
    bool has_segment_events;
    uint64_t visited; /* a small pickle may contain one object in many places */
    uint64_t reserved, reserved_high; /* of segments, relative to the beginning */
    strata_frames_t frames;
    annotation_t *annotations; /* sorted by time */
    size_t annotation_count, annotation_next;
    unsigned depth; /* number of open annotations */
} snapshot_t;

static strata_status_t wrong(const snapshot_t *s, const char *where, size_t index, const char *what) {
    return strata_fail(STRATA_E_FORMAT, 0, "%s: %s %zu of the snapshot: %s", s->gathered->path, where, index, what);
}

static strata_status_t visit(snapshot_t *s) {
    if (++s->visited <= VISITS_MAX) return STRATA_OK;
    return strata_fail(STRATA_E_FORMAT, 0, "%s: the snapshot has more than %d segments, blocks and events", s->gathered->path,
                       VISITS_MAX);
}

/* A script may have converted the numbers to floats. */
static bool number(const value_t *value, uint64_t *into) {
    if (value->kind == STRATA_PICKLE_REAL && value->real >= 0 && value->real < 9e18) *into = (uint64_t)value->real;
    else if (value->kind == STRATA_PICKLE_INTEGER && value->integer >= 0) *into = (uint64_t)value->integer;
    else return false;
    return true;
}

/* Addresses and streams have 64 bits; PyTorch writes values from 2^63 on as negative numbers. */
static bool bits(const value_t *value, uint64_t *into) {
    if (value->kind != STRATA_PICKLE_INTEGER && value->kind != STRATA_PICKLE_UNSIGNED) return number(value, into);
    *into = (uint64_t)value->integer;
    return true;
}

static bool is_list(const value_t *value) { return value->kind == STRATA_PICKLE_LIST || value->kind == STRATA_PICKLE_TUPLE; }

/* Sets the event's tag and call stack from a list of frames. */
static strata_status_t set_frames(snapshot_t *s, const value_t *frames, strata_gathered_event_t *event) {
    const strata_frames_named_t *named;
    strata_status_t status = strata_frames_name(&s->frames, frames, &named);
    if (status != STRATA_OK || !named) return status;
    event->tag = named->tag;
    event->stack = named->stack;
    s->gathered->notes.stacks_lost += named->no_room;
    return STRATA_OK;
}

/* Returns the text, zero-terminated and cut to the length of a tag; "" if the value is not a text. */
static const char *text_of(const value_t *value, char text[STRATA_TRACE_TAG_BYTES]) {
    size_t length = value->kind == STRATA_PICKLE_TEXT ? strata_min(value->length, STRATA_TRACE_TAG_BYTES - 1) : 0;
    if (length) memcpy(text, value->text, length);
    text[length] = '\0';
    return text;
}

/* ---- events ------------------------------------------------------------------------------------------------------------ */

static action_t action_of(const value_t *word) {
    static const struct {
        const char *word;
        action_t action;
    } known[] = {{"alloc", ACTION_ALLOC},
                 {"free_requested", ACTION_FREE_REQUESTED},
                 {"free_completed", ACTION_FREE_COMPLETED},
                 {"segment_alloc", ACTION_GROW},
                 {"segment_free", ACTION_SHRINK},
                 {"segment_map", ACTION_GROW},
                 {"segment_unmap", ACTION_SHRINK},
                 {"oom", ACTION_OOM},
                 {"annotate", ACTION_OTHER},
                 {"user_defined", ACTION_OTHER},
                 {"snapshot", ACTION_OTHER},
                 {"workspace_snapshot", ACTION_OTHER}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strata_pickle_is(word, known[i].word)) return known[i].action;
    return ACTION_UNKNOWN;
}

static strata_status_t read_entry(snapshot_t *s, size_t index, const value_t *value, entry_t *entry) {
    *entry = (entry_t){.action = ACTION_UNKNOWN};
    bool address = false, size = false, action = false, stream = true;
    if (value->kind != STRATA_PICKLE_DICT) return wrong(s, "event", index, "it is not a dict");
    for (size_t i = 0; i < value->items->count; i += 2) {
        const value_t *name = &value->items->all[i], *member = name + 1;
        if (strata_pickle_is(name, "action")) {
            action = member->kind == STRATA_PICKLE_TEXT;
            entry->action = action_of(member);
        } else if (strata_pickle_is(name, "addr")) {
            address = bits(member, &entry->address);
        } else if (strata_pickle_is(name, "size")) {
            size = number(member, &entry->size);
        } else if (strata_pickle_is(name, "stream")) {
            stream = member->kind == STRATA_PICKLE_NONE || bits(member, &entry->stream);
        } else if (strata_pickle_is(name, "time_us")) {
            entry->has_time = number(member, &entry->time_us);
        } else if (strata_pickle_is(name, "frames")) {
            entry->frames = *member;
        } else if (strata_pickle_is(name, "user_metadata")) {
            entry->metadata = *member;
        }
    }
    if (!action) return wrong(s, "event", index, "it has no action");
    bool bare = entry->action == ACTION_OTHER || entry->action == ACTION_UNKNOWN;
    if (!bare && !size) return wrong(s, "event", index, "it has no size");
    if (!bare && !stream) return wrong(s, "event", index, "its stream is not a number");
    if (!bare && !address && entry->action != ACTION_OOM) return wrong(s, "event", index, "it has no address");
    return STRATA_OK;
}

/* Makes the next event of a device its head. */
static strata_status_t advance(snapshot_t *s, device_t *device) {
    device->has_head = device->entries && device->next < device->entries->count;
    if (!device->has_head) return STRATA_OK;
    strata_status_t status = visit(s);
    if (status == STRATA_OK) status = read_entry(s, device->next, &device->entries->all[device->next], &device->head);
    device->next++;
    return status;
}

/* Updates the reserved bytes of the recorded allocator, relative to the beginning. Their absolute value is
 * known only at the end. */
static void reserve(snapshot_t *s, const entry_t *entry) {
    s->has_segment_events = true;
    s->reserved += entry->action == ACTION_GROW ? entry->size : 0 - entry->size;
    if ((int64_t)(s->reserved - s->reserved_high) > 0) s->reserved_high = s->reserved;
}

/* The user's own label (torch.cuda.memory._set_memory_metadata) is more specific than the requesting line. */
static strata_status_t apply_event(snapshot_t *s, device_t *device, uint64_t time_us) {
    const entry_t entry = device->head;
    char metadata[STRATA_TRACE_TAG_BYTES];
    strata_gathered_event_t event = {
        .time_us = time_us, .address = entry.address, .size = entry.size, .stream = entry.stream, .device = device->ordinal};
    bool asks = entry.action == ACTION_ALLOC || entry.action == ACTION_OOM;
    strata_status_t status = advance(s, device);
    if (status == STRATA_OK && asks) status = set_frames(s, &entry.frames, &event);
    if (status != STRATA_OK) return status;
    if (asks && *text_of(&entry.metadata, metadata)) event.tag = metadata;
    switch (entry.action) {
    case ACTION_ALLOC: return strata_gathered_alloc(s->gathered, &event);
    case ACTION_FREE_REQUESTED: {
        bool over = device->has_head && device->head.action == ACTION_FREE_COMPLETED && device->head.address == entry.address;
        status = strata_gathered_free(s->gathered, &event, s->completes && !over);
        return status == STRATA_OK && over ? advance(s, device) : status;
    }
    case ACTION_FREE_COMPLETED: return strata_gathered_completed(s->gathered, &event);
    case ACTION_OOM: return strata_gathered_failed(s->gathered, &event);
    case ACTION_GROW:
    case ACTION_SHRINK: reserve(s, &entry); return STRATA_OK;
    case ACTION_UNKNOWN: s->gathered->notes.other_actions++; return STRATA_OK;
    case ACTION_OTHER: break;
    }
    return STRATA_OK;
}

/* ---- external annotations: scopes of record_function() ------------------------------------------------------------ */

static int by_time(const void *a, const void *b) {
    const annotation_t *one = a, *other = b;
    if (one->time_us != other->time_us) return one->time_us < other->time_us ? -1 : 1;
    return one->order < other->order ? -1 : 1;
}

/* Annotations without a time cannot be ordered among the events. */
static strata_status_t read_annotations(snapshot_t *s, const value_t *list) {
    size_t count = strata_pickle_count(list);
    if (count == 0) return STRATA_OK;
    s->annotations = strata_host_new(count, sizeof *s->annotations);
    if (!s->annotations) return STRATA_E_HOST_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const value_t *item = &list->items->all[i];
        value_t stage = strata_pickle_member(item, "stage"), time = strata_pickle_member(item, "time_us");
        annotation_t read = {.order = i, .name = strata_pickle_member(item, "name"), .ends = strata_pickle_is(&stage, "END")};
        bool known = read.ends || strata_pickle_is(&stage, "START");
        if (known && !s->untimed && number(&time, &read.time_us)) s->annotations[s->annotation_count++] = read;
        else s->gathered->notes.other_actions++;
        strata_status_t status = visit(s);
        if (status != STRATA_OK) return status;
    }
    qsort(s->annotations, s->annotation_count, sizeof *s->annotations, by_time);
    return STRATA_OK;
}

/* The end of an outermost annotation is a step. Annotations that ended before the first event are skipped. */
static strata_status_t apply_annotations(snapshot_t *s, uint64_t before_us) {
    char name[STRATA_TRACE_TAG_BYTES];
    strata_status_t status = STRATA_OK;
    for (; s->annotation_next < s->annotation_count && status == STRATA_OK; s->annotation_next++) {
        const annotation_t *annotation = &s->annotations[s->annotation_next];
        if (annotation->time_us >= before_us) break;
        if (!annotation->ends) {
            s->depth++;
            continue;
        }
        s->depth -= s->depth > 0;
        strata_gathered_event_t step = {.time_us = annotation->time_us, .tag = text_of(&annotation->name, name)};
        if (s->depth == 0 && s->gathered->has_began) status = strata_gathered_mark(s->gathered, STRATA_TRACE_step, &step);
    }
    return status;
}

/* ---- the record: the devices' events by time --------------------------------------------------------------------------- */

/* Sets *used if the device has events besides the snapshot event, which every device has. */
static strata_status_t scan_events(snapshot_t *s, const value_t *events, bool *used) {
    for (size_t i = 0; i < events->items->count; i++) {
        entry_t entry;
        strata_status_t status = visit(s);
        if (status == STRATA_OK) status = read_entry(s, i, &events->items->all[i], &entry);
        if (status != STRATA_OK) return status;
        s->completes |= entry.action == ACTION_FREE_COMPLETED;
        s->untimed |= !entry.has_time;
        *used |= entry.action != ACTION_OTHER;
    }
    return STRATA_OK;
}

/* A snapshot lists all devices of the machine, even those that the process did not use. */
static strata_status_t begin_devices(snapshot_t *s, const value_t *traces) {
    size_t count = strata_pickle_count(traces);
    strata_status_t status = STRATA_OK;
    for (size_t i = 0; i < count && status == STRATA_OK; i++) {
        const value_t *events = &traces->items->all[i];
        bool used = false;
        if (!is_list(events)) return wrong(s, "device", i, "its events are not a list");
        status = visit(s);
        if (status == STRATA_OK) status = scan_events(s, events, &used);
        if (status != STRATA_OK || !used) continue;
        uint32_t number;
        status = strata_gathered_device(s->gathered, i, &number);
        if (status != STRATA_OK) return status;
        s->devices[s->device_count++] = (device_t){.ordinal = i, .entries = events->items};
    }
    for (uint32_t i = 0; i < s->device_count && status == STRATA_OK; i++) status = advance(s, &s->devices[i]);
    return status;
}

/* Returns the device with the earliest next event, or NULL if no events are left. */
static device_t *earliest(snapshot_t *s) {
    device_t *best = NULL;
    for (uint32_t i = 0; i < s->device_count; i++) {
        device_t *device = &s->devices[i];
        if (!device->has_head) continue;
        if (!best || (!s->untimed && device->head.time_us < best->head.time_us)) best = device;
    }
    return best;
}

static strata_status_t read_traces(snapshot_t *s, const value_t *traces, const value_t *annotations) {
    device_t *next;
    strata_status_t status = begin_devices(s, traces);
    if (status == STRATA_OK) status = read_annotations(s, annotations);
    while (status == STRATA_OK && (next = earliest(s)) != NULL) {
        uint64_t time_us = s->untimed ? s->gathered->notes.untimed++ : next->head.time_us;
        status = apply_annotations(s, time_us);
        if (status == STRATA_OK) status = apply_event(s, next, time_us);
    }
    return status == STRATA_OK ? apply_annotations(s, UINT64_MAX) : status;
}

/* ---- memory at the end ------------------------------------------------------------------------------------------------- */

/* Up to 2.0 the requested size is in the block's newest entry of `history`, and a block has no address. */
static uint64_t requested(const value_t *block, uint64_t size, value_t *frames) {
    value_t asked = strata_pickle_member(block, "requested_size"), history = strata_pickle_member(block, "history");
    uint64_t bytes = size;
    *frames = strata_pickle_member(block, "frames");
    if (number(&asked, &bytes)) return bytes;
    if (strata_pickle_count(&history) == 0) return size;
    value_t real = strata_pickle_member(&history.items->all[0], "real_size");
    *frames = strata_pickle_member(&history.items->all[0], "frames");
    return number(&real, &bytes) ? bytes : size;
}

static strata_status_t read_block(snapshot_t *s, size_t index, const value_t *block, strata_gathered_event_t *at) {
    value_t size = strata_pickle_member(block, "size"), state = strata_pickle_member(block, "state"), frames;
    value_t address = strata_pickle_member(block, "address");
    uint64_t bytes = 0;
    strata_status_t status = visit(s);
    if (status != STRATA_OK) return status;
    if (!number(&size, &bytes)) return wrong(s, "segment", index, "one of its blocks has no size");
    if (state.kind != STRATA_PICKLE_TEXT) return wrong(s, "segment", index, "one of its blocks has no state");
    uint64_t expected = at->address;
    (void)bits(&address, &at->address);
    at->size = requested(block, bytes, &frames);
    at->tag = NULL, at->stack = 0;
    status = set_frames(s, &frames, at);
    if (status == STRATA_OK && !strata_pickle_is(&state, "inactive")) status = strata_gathered_live_at_end(s->gathered, at);
    at->address = expected + bytes;
    return status;
}

static strata_status_t read_segment(snapshot_t *s, size_t index, const value_t *segment, uint64_t *held) {
    value_t device = strata_pickle_member(segment, "device"), address = strata_pickle_member(segment, "address");
    value_t stream = strata_pickle_member(segment, "stream"), size = strata_pickle_member(segment, "total_size");
    value_t blocks = strata_pickle_member(segment, "blocks");
    strata_gathered_event_t at = {.device = 0};
    uint64_t bytes = 0;
    strata_status_t status = visit(s);
    if (status != STRATA_OK) return status;
    if (segment->kind != STRATA_PICKLE_DICT) return wrong(s, "segment", index, "it is not a dict");
    if (!bits(&address, &at.address)) return wrong(s, "segment", index, "it has no address");
    if (!number(&size, &bytes)) return wrong(s, "segment", index, "it has no total_size");
    if (!is_list(&blocks)) return wrong(s, "segment", index, "it has no list of blocks");
    if (!bits(&stream, &at.stream)) at.stream = 0;
    if (!number(&device, &at.device)) at.device = 0;
    *held += bytes;
    for (size_t i = 0; i < blocks.items->count && status == STRATA_OK; i++)
        status = read_block(s, index, &blocks.items->all[i], &at);
    return status;
}

/* The reserved bytes at the end give those at the beginning, and so the peak. The reader makes no claim
 * without segment events, or if missing ones (skip_actions) would make the reserved bytes smaller than the
 * live bytes. */
static strata_status_t read_segments(snapshot_t *s, const value_t *segments) {
    uint64_t held = 0;
    size_t count = strata_pickle_count(segments);
    strata_status_t status = STRATA_OK;
    for (size_t i = 0; i < count && status == STRATA_OK; i++) status = read_segment(s, i, &segments->items->all[i], &held);
    uint64_t peak = held - s->reserved + s->reserved_high;
    bool known = s->has_segment_events && peak <= STRATA_TRACE_LIVE_MAX && peak >= s->gathered->live_peak;
    if (known) s->gathered->notes.reserved_peak = peak;
    s->gathered->notes.no_history = s->device_count == 0;
    s->gathered->notes.no_segments = s->device_count > 0 && !known;
    return status;
}

/* ---- the file ---------------------------------------------------------------------------------------------------------- */

static strata_status_t read_root(snapshot_t *s, const value_t *root) {
    if (is_list(root)) return read_segments(s, root);
    value_t segments = strata_pickle_member(root, "segments"), traces = strata_pickle_member(root, "device_traces");
    value_t annotations = strata_pickle_member(root, "external_annotations");
    if (!is_list(&segments) && !is_list(&traces))
        return strata_fail(
            STRATA_E_FORMAT, 0,
            "%s: the pickle is not a memory snapshot: it has no list \"segments\" or \"device_traces\"; write it with "
            "torch.cuda.memory._dump_snapshot()",
            s->gathered->path);
    strata_status_t status = read_traces(s, &traces, &annotations);
    return status == STRATA_OK ? read_segments(s, &segments) : status;
}

static strata_status_t gather(strata_gathered_t *gathered, strata_input_t *input) {
    snapshot_t s = {.gathered = gathered, .frames.stacks = &gathered->stacks};
    strata_pickle_t *pickle = NULL;
    char *bytes = NULL;
    size_t count = 0;
    strata_status_t status = strata_input_read_all(input, FILE_MAX, &bytes, &count);
    if (status != STRATA_OK) status = strata_fail_context("%s", gathered->path);
    if (status == STRATA_OK) status = strata_pickle_read(gathered->path, bytes, count, &pickle);
    if (status == STRATA_OK) status = read_root(&s, strata_pickle_root(pickle));
    strata_frames_clear(&s.frames);
    strata_host_delete(s.annotations);
    strata_pickle_delete(pickle);
    strata_host_delete(bytes);
    return status;
}

static strata_status_t open_snapshot(const char *path, strata_input_t *input, void **state) {
    return strata_gathered_open(path, input, gather, state);
}

/* Every pickle since protocol 2 begins with this byte, and no text does. */
static bool recognises(const char *head, size_t count) { return count >= 2 && (unsigned char)head[0] == 0x80; }

const strata_trace_format_t strata_trace_pytorch = {.name = "pytorch",
                                                    .meaning = "a memory snapshot of PyTorch (torch.cuda.memory._dump_snapshot)",
                                                    .recognises = recognises,
                                                    .open = open_snapshot,
                                                    .read = strata_gathered_read,
                                                    .columns = strata_gathered_columns,
                                                    .notes = strata_gathered_notes,
                                                    .close = strata_gathered_close};
