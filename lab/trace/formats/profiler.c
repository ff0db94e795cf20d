/* Reads traces of torch.profiler with profile_memory=True. They are Chrome's JSON, in which each allocation
 * and free is an instant event named "[memory]". "[OutOfMemory]" is a failed request, which has no Addr.
 * These are the arguments:
 * - Bytes: negative for a free.
 * - Addr: negative from 2^63 on.
 * - Device Id.
 * - Device Type: 0 for the CPU, 1 for CUDA.
 * - Total Reserved.
 *
 * The profiler does not escape names, so the scan is lenient. A program that ends early leaves a truncated
 * file.
 *
 * The bytes are those of the block, which PyTorch's allocator has rounded up. Streams are not recorded. The
 * events are grouped by thread, so they are sorted by time. */
#include <stdlib.h>
#include <string.h>

#include "lab/trace/formats/gathered.h"
#include "lab/trace/formats/numbers.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

#define FILE_MAX ((size_t)4 << 30) /* bytes, unpacked */
enum { CPU = 0 };

typedef enum kind { KIND_OTHER, KIND_MEMORY, KIND_OUT_OF_MEMORY } kind_t;

typedef struct moment {
    uint64_t time_ns;
    uint64_t address, bytes;
    uint64_t device;
    uint32_t order, thread;
    bool frees, failed;
} moment_t;

typedef struct profile {
    strata_gathered_t *gathered;
    strata_json_scan_t scan;
    moment_t *moments;
    size_t count, capacity;
    uint64_t reserved[STRATA_TRACE_DEVICES]; /* peaks by device */
    bool has_events;
    strata_status_t status; /* of errors that are not the file's fault */
} profile_t;

/* An event, as far as it is read. */
typedef struct event {
    profile_t *profile;
    strata_json_slice_t args;
    kind_t kind;
    bool has_time;
    uint64_t time_ns, thread;
} event_t;

typedef struct args {
    uint64_t bytes, address, device, type, reserved;
    bool has_bytes, has_address, has_device, has_type, has_reserved, frees;
} args_t;

static const char *read_arg(void *context, strata_json_slice_t name, strata_json_slice_t value) {
    args_t *args = context;
    if (strata_json_is(name, "Bytes")) args->has_bytes = strata_json_whole(value, &args->bytes, &args->frees);
    if (strata_json_is(name, "Addr")) args->has_address = strata_json_address(value, &args->address);
    if (strata_json_is(name, "Device Id")) args->has_device = strata_json_whole(value, &args->device, NULL);
    if (strata_json_is(name, "Device Type")) args->has_type = strata_json_whole(value, &args->type, NULL);
    if (strata_json_is(name, "Total Reserved")) args->has_reserved = strata_json_whole(value, &args->reserved, NULL);
    return NULL;
}

static const char *add_moment(profile_t *profile, const event_t *event, const args_t *args) {
    uint32_t device;
    if (profile->count == STRATA_TRACE_EVENTS) return "more memory events than a trace can hold";
    if (profile->count == profile->capacity) {
        size_t larger = profile->capacity * 2 + 1024;
        moment_t *grown = strata_host_resize(profile->moments, larger, sizeof *grown);
        if (!grown) {
            profile->status = STRATA_E_HOST_MEMORY;
            return "";
        }
        profile->moments = grown;
        profile->capacity = larger;
    }
    if (strata_gathered_device(profile->gathered, args->device, &device) != STRATA_OK)
        return "memory events of more than 16 devices";
    if (args->has_reserved) profile->reserved[device] = strata_max(profile->reserved[device], args->reserved);
    profile->moments[profile->count] = (moment_t){.time_ns = event->time_ns,
                                                  .address = args->address,
                                                  .bytes = args->bytes,
                                                  .order = (uint32_t)profile->count,
                                                  .thread = (uint32_t)event->thread,
                                                  .device = args->device,
                                                  .frees = args->frees,
                                                  .failed = event->kind == KIND_OUT_OF_MEMORY};
    profile->count++;
    return NULL;
}

static const char *read_memory(const event_t *event) {
    profile_t *profile = event->profile;
    args_t args = {.bytes = 0};
    strata_json_scan_t scan = profile->scan;
    if (!event->args.at || !strata_json_value(&scan, event->args.at, read_arg, &args)) return "a memory event has no args";
    if (args.has_type && args.type == CPU) {
        profile->gathered->notes.other_memory++;
        return NULL;
    }
    if (!args.has_bytes) return "a memory event has no Bytes";
    if (!args.has_address && event->kind == KIND_MEMORY) return "a memory event has no Addr; PyTorch writes it since 1.13";
    if (!event->has_time) return "a memory event has no ts";
    if (!args.has_device) args.device = 0;
    return add_moment(profile, event, &args);
}

static const char *read_member(void *context, strata_json_slice_t name, strata_json_slice_t value) {
    event_t *event = context;
    if (strata_json_is(name, "name"))
        event->kind = strata_json_is(value, "\"[memory]\"")        ? KIND_MEMORY
                      : strata_json_is(value, "\"[OutOfMemory]\"") ? KIND_OUT_OF_MEMORY
                                                                   : KIND_OTHER;
    if (strata_json_is(name, "ts")) event->has_time = strata_json_thousandths(value, &event->time_ns);
    if (strata_json_is(name, "tid") && !strata_json_whole(value, &event->thread, NULL)) event->thread = 0;
    if (strata_json_is(name, "args")) event->args = value;
    return NULL;
}

static const char *read_event(profile_t *profile, strata_json_slice_t value) {
    event_t event = {.profile = profile};
    strata_json_scan_t scan = profile->scan;
    profile->has_events = true;
    if (*value.at != '{') return NULL;
    (void)strata_json_value(&scan, value.at, read_member, &event);
    return event.kind == KIND_OTHER ? NULL : read_memory(&event);
}

/* Visits a member of the root object, or an element of its list of events, which has no name. */
static const char *read_root(void *context, strata_json_slice_t name, strata_json_slice_t value) {
    profile_t *profile = context;
    if (!name.at) return read_event(profile, value);
    profile->has_events |= strata_json_is(name, "traceEvents") && *value.at == '[';
    return NULL;
}

static int by_time(const void *a, const void *b) {
    const moment_t *one = a, *other = b;
    if (one->time_ns != other->time_ns) return one->time_ns < other->time_ns ? -1 : 1;
    return one->order < other->order ? -1 : 1;
}

static strata_status_t emit_events(profile_t *profile) {
    if (profile->count) qsort(profile->moments, profile->count, sizeof *profile->moments, by_time);
    strata_status_t status = STRATA_OK;
    for (size_t i = 0; i < profile->count && status == STRATA_OK; i++) {
        const moment_t *moment = &profile->moments[i];
        strata_gathered_event_t event = {.time_us = moment->time_ns / 1000,
                                         .address = moment->address,
                                         .size = moment->bytes,
                                         .device = moment->device,
                                         .thread = moment->thread};
        if (moment->failed) status = strata_gathered_failed(profile->gathered, &event);
        else if (moment->frees) status = strata_gathered_free(profile->gathered, &event, false);
        else status = strata_gathered_alloc(profile->gathered, &event);
    }
    for (int i = 0; i < STRATA_TRACE_DEVICES; i++)
        if (profile->reserved[i] <= STRATA_TRACE_SIZE_MAX) profile->gathered->notes.reserved_peak += profile->reserved[i];
    return status;
}

static strata_status_t parse(profile_t *profile, const char *text, size_t count) {
    const char *path = profile->gathered->path;
    if (strlen(text) != count) return strata_fail(STRATA_E_FORMAT, 0, "%s: the file contains a zero byte, but JSON is text", path);
    profile->scan = (strata_json_scan_t){.begin = text, .lenient = true};
    strata_json_scan_t scan = profile->scan;
    scan.within = "traceEvents";
    const char *from = strata_json_begin(text);
    const char *end = strata_json_value(&scan, from, read_root, profile);
    if (profile->status != STRATA_OK) return profile->status;
    bool cut_off = !end && !*scan.at && profile->count > 0;
    profile->gathered->notes.cut_off = cut_off;
    unsigned line = end || cut_off ? 0 : strata_json_line(&scan);
    if (line) return strata_fail_at(STRATA_E_FORMAT, line, 1, "%s:%u:1: %s", path, line, scan.error);
    if (!profile->has_events && *from != '[')
        return strata_fail(STRATA_E_FORMAT, 0, "%s: the JSON has no list \"traceEvents\", so it is not a trace of torch.profiler",
                           path);
    if (profile->count > 0) return STRATA_OK;
    return strata_fail(STRATA_E_FORMAT, 0,
                       "%s: the profile has no GPU memory events; record it with torch.profiler.profile(profile_memory=True)",
                       path);
}

static strata_status_t gather(strata_gathered_t *gathered, strata_input_t *input) {
    profile_t profile = {.gathered = gathered, .status = STRATA_OK};
    char *text = NULL;
    size_t count = 0;
    strata_status_t status = strata_input_read_all(input, FILE_MAX, &text, &count);
    if (status != STRATA_OK) status = strata_fail_context("%s", gathered->path);
    if (status == STRATA_OK) status = parse(&profile, text, count);
    strata_host_delete(text);
    if (status == STRATA_OK) status = emit_events(&profile);
    strata_host_delete(profile.moments);
    return status;
}

static strata_status_t open_profile(const char *path, strata_input_t *input, void **state) {
    return strata_gathered_open(path, input, gather, state);
}

static bool recognises(const char *head, size_t count) {
    const char *at = strata_json_begin(head);
    (void)count;
    return *at == '{' || *at == '[';
}

const strata_trace_format_t strata_trace_profiler = {.name = "profiler",
                                                     .meaning = "a trace of torch.profiler with profile_memory=True",
                                                     .recognises = recognises,
                                                     .open = open_profile,
                                                     .read = strata_gathered_read,
                                                     .columns = strata_gathered_columns,
                                                     .notes = strata_gathered_notes,
                                                     .close = strata_gathered_close};
