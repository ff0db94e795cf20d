/* Memory snapshots of PyTorch since 2.0: what torch.cuda.memory._dump_snapshot() writes. The dict is that of
 * torch/csrc/cuda/memory_snapshot.cpp: `segments` (what was there at the end), `device_traces` (what happened, by device; the oldest
 * events may have been dropped), `external_annotations`. torch.cuda.memory_snapshot() is the list `segments` alone.
 *
 * The allocator records free_requested and free_completed one after the other, under its lock, unless other streams used the block
 * (record_stream). Then the second comes later. Which streams they were is not recorded. */
#include <stdio.h>
#include <string.h>

#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"
#include "trace/formats/gathered.h"
#include "trace/formats/pickle.h"

#define FILE_MOST ((size_t)2 << 30) /* bytes, unpacked */
enum { TEXT_BYTES = 256, FRAMES_MOST = 512, VISITS_MOST = STRATA_TRACE_EVENTS };

typedef strata_pickle_value_t value_t;

typedef enum action {
    ACTION_OTHER, /* of no interest: snapshot, segments of no size */
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
    value_t frames;
} entry_t;

typedef struct device {
    const strata_pickle_items_t *entries;
    size_t next;
    entry_t head; /* entries[next - 1], not carried out yet */
    bool has_head;
} device_t;

typedef struct snapshot {
    strata_gathered_t *gathered;
    device_t devices[STRATA_TRACE_DEVICES];
    uint32_t device_count;
    bool completes; /* some free_completed is recorded: only then its absence tells something */
    bool untimed;
    uint64_t visited; /* a small pickle may show one object in many places */
    uint64_t reserved, reserved_low, reserved_high; /* of segments: since the beginning, which was `0` */
    strata_ids_t stacks; /* a list of frames, by its address in the pickle */
    struct named {
        char *tag;
        uint32_t stack; /* its number in the rows' stacks */
    } * named; /* by the number of the list */
    size_t stack_capacity;
} snapshot_t;

static strata_status_t wrong(const snapshot_t *s, const char *where, size_t index, const char *what) {
    return strata_fail(STRATA_E_FORMAT, 0, "%s: %s %zu of the snapshot: %s", s->gathered->path, where, index, what);
}

static strata_status_t visit(snapshot_t *s) {
    if (++s->visited <= VISITS_MOST) return STRATA_OK;
    return strata_fail(STRATA_E_FORMAT, 0, "%s: the snapshot has more than %d segments, blocks and events", s->gathered->path,
                       VISITS_MOST);
}

static bool number(const value_t *value, uint64_t *into) {
    if (value->kind != STRATA_PICKLE_INTEGER || value->integer < 0) return false;
    *into = (uint64_t)value->integer;
    return true;
}

/* ---- tags: the line of the program that asked -------------------------------------------------------------------------- */

static bool contains(const value_t *text, const char *part) { return memmem(text->text, text->length, part, strlen(part)) != NULL; }

/* A line of the user's own Python, not of PyTorch's. */
static bool is_users(const value_t *file) {
    bool python = file->length > 3 && memcmp(file->text + file->length - 3, ".py", 3) == 0;
    return python && !contains(file, "/torch/") && !contains(file, "/site-packages/") && !contains(file, "<frozen");
}

/* "train.py:31 forward"; "" if the frame has no file. */
static size_t name_frame(const value_t *frame, char *text, size_t room) {
    value_t file = strata_pickle_member(frame, "filename"), line = strata_pickle_member(frame, "line");
    value_t name = strata_pickle_member(frame, "name");
    text[0] = '\0';
    if (file.kind != STRATA_PICKLE_TEXT) return 0;
    const char *base = file.text;
    size_t length = file.length;
    for (size_t i = 0; i < file.length; i++) {
        if (file.text[i] != '/') continue;
        base = file.text + i + 1;
        length = file.length - i - 1;
    }
    bool named = name.kind == STRATA_PICKLE_TEXT;
    int written = snprintf(text, room, "%.*s:%lld %.*s", (int)strata_min(length, 80), base,
                           line.kind == STRATA_PICKLE_INTEGER ? (long long)line.integer : 0,
                           named ? (int)strata_min(name.length, 120) : 0, named ? name.text : "");
    return strata_min(written > 0 ? (size_t)written : 0, room - 1);
}

/* Of the innermost frame of the user's own, else the innermost of Python's, else the innermost. */
static void name_tag(const value_t *frames, char *text) {
    value_t best = {0};
    int rank = -1;
    size_t count = strata_pickle_count(frames);
    for (size_t i = 0; i < count && i < FRAMES_MOST && rank < 2; i++) {
        value_t file = strata_pickle_member(&frames->items->all[i], "filename");
        if (file.kind != STRATA_PICKLE_TEXT) continue;
        bool python = file.length > 3 && memcmp(file.text + file.length - 3, ".py", 3) == 0;
        int its = is_users(&file) ? 2 : python;
        if (its <= rank) continue;
        rank = its;
        best = frames->items->all[i];
    }
    text[0] = '\0';
    if (rank >= 0) (void)name_frame(&best, text, TEXT_BYTES);
}

/* The frames that are whole within the room. */
static void name_stack(const value_t *frames, char *text) {
    size_t count = strata_pickle_count(frames), length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count && i < FRAMES_MOST; i++) {
        char frame[TEXT_BYTES];
        size_t more = name_frame(&frames->items->all[i], frame, sizeof frame);
        if (length + more + 2 > STRATA_TRACE_STACK_BYTES) return;
        for (char *at = frame; *at; at++)
            if (*at == ';') *at = ' ';
        if (more) length += (size_t)snprintf(text + length, STRATA_TRACE_STACK_BYTES - length, "%s%s", length ? ";" : "", frame);
    }
}

static strata_status_t name_list(snapshot_t *s, const value_t *frames, struct named *named) {
    char tag[TEXT_BYTES], stack[STRATA_TRACE_STACK_BYTES];
    const char *added = NULL;
    name_tag(frames, tag);
    name_stack(frames, stack);
    *named = (struct named){.tag = strata_host_strdup(tag)};
    strata_status_t status = named->tag ? STRATA_OK : STRATA_E_HOST_MEMORY;
    if (status == STRATA_OK && *stack) status = strata_stacks_add(&s->gathered->stacks, stack, &added);
    if (added) named->stack = (uint32_t)s->gathered->stacks.count;
    return status;
}

/* Events of one stack share its list of frames, so each list is looked at once. */
static strata_status_t tag_of(snapshot_t *s, const value_t *frames, strata_gathered_event_t *event) {
    event->tag = NULL;
    event->stack = 0;
    if (strata_pickle_count(frames) == 0) return STRATA_OK;
    uint64_t key = (uintptr_t)frames->items;
    uint32_t found = strata_ids_find(&s->stacks, key);
    if (found == STRATA_IDS_NONE) {
        found = s->stacks.count;
        if (found == s->stack_capacity) {
            size_t larger = s->stack_capacity * 2 + 64;
            struct named *grown = strata_host_resize(s->named, larger, sizeof *grown);
            if (!grown) return STRATA_E_HOST_MEMORY;
            s->named = grown;
            s->stack_capacity = larger;
        }
        strata_status_t status = name_list(s, frames, &s->named[found]);
        if (status == STRATA_OK) status = strata_ids_add(&s->stacks, key);
        if (status != STRATA_OK) {
            strata_host_delete(s->named[found].tag);
            return status;
        }
    }
    event->tag = s->named[found].tag;
    event->stack = s->named[found].stack;
    return STRATA_OK;
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
                 {"snapshot", ACTION_OTHER},
                 {"workspace_snapshot", ACTION_OTHER}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strata_pickle_is(word, known[i].word)) return known[i].action;
    return ACTION_UNKNOWN;
}

static strata_status_t read_entry(snapshot_t *s, size_t index, const value_t *value, entry_t *entry) {
    *entry = (entry_t){.action = ACTION_UNKNOWN};
    bool address = false, size = false, action = false, stream = true;
    if (value->kind != STRATA_PICKLE_DICT) return wrong(s, "event", index, "it is no dict");
    for (size_t i = 0; i < value->items->count; i += 2) {
        const value_t *name = &value->items->all[i], *member = name + 1;
        if (strata_pickle_is(name, "action")) {
            action = member->kind == STRATA_PICKLE_TEXT;
            entry->action = action_of(member);
        } else if (strata_pickle_is(name, "addr")) {
            address = number(member, &entry->address);
        } else if (strata_pickle_is(name, "size")) {
            size = number(member, &entry->size);
        } else if (strata_pickle_is(name, "stream")) {
            stream = number(member, &entry->stream);
        } else if (strata_pickle_is(name, "time_us")) {
            entry->has_time = number(member, &entry->time_us);
        } else if (strata_pickle_is(name, "frames")) {
            entry->frames = *member;
        }
    }
    if (!action) return wrong(s, "event", index, "it has no action");
    bool bare = entry->action == ACTION_OTHER || entry->action == ACTION_UNKNOWN;
    if (!bare && !size) return wrong(s, "event", index, "it has no size");
    if (!bare && !stream) return wrong(s, "event", index, "its stream is no number");
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

/* What the recorded allocator held, from one moment to the next. Where it began is known only at the end. */
static void reserve(snapshot_t *s, const entry_t *entry) {
    s->reserved += entry->action == ACTION_GROW ? entry->size : 0 - entry->size;
    if ((int64_t)(s->reserved - s->reserved_high) > 0) s->reserved_high = s->reserved;
}

static strata_status_t carry_out(snapshot_t *s, uint32_t number, uint64_t time_us) {
    device_t *device = &s->devices[number];
    const entry_t entry = device->head;
    strata_gathered_event_t event = {
        .time_us = time_us, .address = entry.address, .size = entry.size, .stream = entry.stream, .device = number};
    strata_status_t status = advance(s, device);
    if (status == STRATA_OK) status = tag_of(s, &entry.frames, &event);
    if (status != STRATA_OK) return status;
    switch (entry.action) {
    case ACTION_ALLOC: return strata_gathered_alloc(s->gathered, &event);
    case ACTION_FREE_REQUESTED: {
        bool over = device->has_head && device->head.action == ACTION_FREE_COMPLETED && device->head.address == entry.address;
        event.tag = NULL, event.stack = 0; /* who frees is not who asked */
        status = strata_gathered_free(s->gathered, &event, s->completes && !over);
        return status == STRATA_OK && over ? advance(s, device) : status;
    }
    case ACTION_FREE_COMPLETED: event.tag = NULL, event.stack = 0; return strata_gathered_passed(s->gathered, &event);
    case ACTION_OOM: return strata_gathered_failed(s->gathered, &event);
    case ACTION_GROW:
    case ACTION_SHRINK: reserve(s, &entry); return STRATA_OK;
    case ACTION_UNKNOWN: s->gathered->notes.other_actions++; return STRATA_OK;
    case ACTION_OTHER: break;
    }
    return STRATA_OK;
}

/* ---- the record: the devices' events by time --------------------------------------------------------------------------- */

static strata_status_t look_ahead(snapshot_t *s, device_t *device) {
    size_t count = device->entries ? device->entries->count : 0;
    for (size_t i = 0; i < count; i++) {
        entry_t entry;
        strata_status_t status = visit(s);
        if (status == STRATA_OK) status = read_entry(s, i, &device->entries->all[i], &entry);
        if (status != STRATA_OK) return status;
        s->completes |= entry.action == ACTION_FREE_COMPLETED;
        s->untimed |= !entry.has_time;
    }
    return STRATA_OK;
}

static strata_status_t begin_devices(snapshot_t *s, const value_t *traces) {
    size_t count = strata_pickle_count(traces);
    if (count > STRATA_TRACE_DEVICES) return wrong(s, "device", STRATA_TRACE_DEVICES, "a trace has 16 devices at most");
    s->device_count = (uint32_t)count;
    strata_status_t status = STRATA_OK;
    for (size_t i = 0; i < count && status == STRATA_OK; i++) {
        const value_t *events = &traces->items->all[i];
        if (events->kind != STRATA_PICKLE_LIST) return wrong(s, "device", i, "its events are no list");
        s->devices[i].entries = events->items;
        status = look_ahead(s, &s->devices[i]);
    }
    for (size_t i = 0; i < count && status == STRATA_OK; i++) status = advance(s, &s->devices[i]);
    return status;
}

/* The device whose next event is the earliest; device_count: there is none. */
static uint32_t earliest(const snapshot_t *s) {
    uint32_t best = s->device_count;
    for (uint32_t i = 0; i < s->device_count; i++) {
        if (!s->devices[i].has_head) continue;
        if (best == s->device_count || (!s->untimed && s->devices[i].head.time_us < s->devices[best].head.time_us)) best = i;
    }
    return best;
}

static strata_status_t read_traces(snapshot_t *s, const value_t *traces) {
    strata_status_t status = begin_devices(s, traces);
    while (status == STRATA_OK) {
        uint32_t next = earliest(s);
        if (next == s->device_count) break;
        uint64_t time_us = s->devices[next].head.time_us;
        if (s->untimed) time_us = s->gathered->notes.untimed++;
        status = carry_out(s, next, time_us);
    }
    return status;
}

/* ---- what was there at the end ----------------------------------------------------------------------------------------- */

/* Up to 2.0 what was asked for stands in the block's newest entry of `history`, and a block has no address. */
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
    if (!number(&size, &bytes)) return wrong(s, "segment", index, "a block of it has no size");
    if (state.kind != STRATA_PICKLE_TEXT) return wrong(s, "segment", index, "a block of it has no state");
    uint64_t expected = at->address;
    (void)number(&address, &at->address);
    at->size = requested(block, bytes, &frames);
    status = tag_of(s, &frames, at);
    if (status == STRATA_OK && !strata_pickle_is(&state, "inactive")) status = strata_gathered_lives(s->gathered, at);
    at->address = expected + bytes;
    return status;
}

static strata_status_t read_segment(snapshot_t *s, size_t index, const value_t *segment, uint64_t *held) {
    value_t device = strata_pickle_member(segment, "device"), address = strata_pickle_member(segment, "address");
    value_t stream = strata_pickle_member(segment, "stream"), size = strata_pickle_member(segment, "total_size");
    value_t blocks = strata_pickle_member(segment, "blocks");
    strata_gathered_event_t at = {.device = 0};
    uint64_t ordinal = 0, bytes = 0;
    strata_status_t status = visit(s);
    if (status != STRATA_OK) return status;
    if (segment->kind != STRATA_PICKLE_DICT) return wrong(s, "segment", index, "it is no dict");
    if (!number(&address, &at.address)) return wrong(s, "segment", index, "it has no address");
    if (!number(&size, &bytes)) return wrong(s, "segment", index, "it has no total_size");
    if (blocks.kind != STRATA_PICKLE_LIST) return wrong(s, "segment", index, "it has no list of blocks");
    if (!number(&stream, &at.stream)) at.stream = 0;
    if (number(&device, &ordinal) && ordinal >= STRATA_TRACE_DEVICES) return wrong(s, "segment", index, "its device is above 15");
    at.device = (uint32_t)ordinal;
    *held += bytes;
    for (size_t i = 0; i < blocks.items->count && status == STRATA_OK; i++)
        status = read_block(s, index, &blocks.items->all[i], &at);
    return status;
}

/* The held bytes at the end tell those at the beginning, and so the highest. */
static strata_status_t read_segments(snapshot_t *s, const value_t *segments) {
    uint64_t held = 0;
    strata_status_t status = STRATA_OK;
    if (segments->kind != STRATA_PICKLE_LIST) return wrong(s, "the list", 0, "it has no segments");
    for (size_t i = 0; i < segments->items->count && status == STRATA_OK; i++)
        status = read_segment(s, i, &segments->items->all[i], &held);
    uint64_t peak = held - s->reserved + s->reserved_high;
    if (peak <= STRATA_TRACE_LIVE_MAX) s->gathered->notes.reserved_peak = peak;
    return status;
}

/* ---- the file ---------------------------------------------------------------------------------------------------------- */

static strata_status_t read_root(snapshot_t *s, const value_t *root) {
    if (root->kind == STRATA_PICKLE_LIST) return read_segments(s, root);
    value_t segments = strata_pickle_member(root, "segments"), traces = strata_pickle_member(root, "device_traces");
    if (segments.kind != STRATA_PICKLE_LIST)
        return strata_fail(STRATA_E_FORMAT, 0,
                           "%s: the pickle is no memory snapshot: it has no list \"segments\"; write it with "
                           "torch.cuda.memory._dump_snapshot()",
                           s->gathered->path);
    strata_status_t status = read_traces(s, &traces);
    return status == STRATA_OK ? read_segments(s, &segments) : status;
}

static strata_status_t gather(strata_gathered_t *gathered, strata_input_t *input) {
    snapshot_t s = {.gathered = gathered};
    strata_pickle_t *pickle = NULL;
    char *bytes = NULL;
    size_t count = 0;
    strata_status_t status = strata_input_rest(input, FILE_MOST, &bytes, &count);
    if (status != STRATA_OK) status = strata_fail_context("%s", gathered->path);
    if (status == STRATA_OK) status = strata_pickle_read(gathered->path, bytes, count, &pickle);
    if (status == STRATA_OK) status = read_root(&s, strata_pickle_root(pickle));
    for (uint32_t i = 0; i < s.stacks.count; i++) strata_host_delete(s.named[i].tag);
    strata_host_delete(s.named);
    strata_ids_clear(&s.stacks);
    strata_pickle_delete(pickle);
    strata_host_delete(bytes);
    return status;
}

static strata_status_t open_snapshot(const char *path, strata_input_t *input, void **state) {
    return strata_gathered_open(path, input, gather, state);
}

/* The first byte of every pickle since protocol 2; no text begins with it. */
static bool recognises(const char *head, size_t count) { return count >= 2 && (unsigned char)head[0] == 0x80; }

const strata_trace_format_t strata_trace_pytorch = {.name = "pytorch",
                                                    .meaning = "a memory snapshot of PyTorch (torch.cuda.memory._dump_snapshot)",
                                                    .recognises = recognises,
                                                    .open = open_snapshot,
                                                    .read = strata_gathered_read,
                                                    .columns = strata_gathered_columns,
                                                    .notes = strata_gathered_notes,
                                                    .close = strata_gathered_close};
