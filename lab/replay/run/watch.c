#include "lab/replay/run/watch.h"

#include <stdio.h>

#include "platform/host/host_memory.h"
#include "platform/place.h"

strata_status_t strata_watch_begin(strata_watch_t *watch, const strata_machine_t *machine, const strata_timeline_t *timeline) {
    watch->timeline = timeline;
    if (!machine->world) return strata_fail(STRATA_E_UNSUPPORTED, 0, "only a simulated device can be checked; write --device sim");
    return strata_checker_begin(machine->world, STRATA_CHECKER_LIFETIMES, &watch->checker);
}

static strata_handle_t handle_of(const strata_watch_t *watch, uint32_t stream) { return watch->timeline->streams[stream].handle; }

static strata_device_t *device_of(const strata_watch_t *watch, uint32_t stream) {
    return watch->timeline->machine->devices[watch->timeline->streams[stream].device];
}

/* Returns a lifetime's name for the checker, which is never 0. */
static uint64_t name_of(uint32_t lifetime) { return (uint64_t)lifetime + 1; }

static bool implies_use(const strata_watch_t *watch) { return watch->checker && !watch->timeline->trace->has_work; }

void strata_watch_name_streams(strata_watch_t *watch) {
    if (!watch->checker) return;
    const strata_trace_t *trace = watch->timeline->trace;
    char label[40];
    for (uint32_t i = 0; i < trace->stream_count; i++) {
        const strata_trace_stream_t *stream = &trace->streams[i];
        int length = snprintf(label, sizeof label, "stream %llu", (unsigned long long)stream->number);
        if (trace->devices > 1) snprintf(label + length, sizeof label - (size_t)length, " of gpu:%u", stream->device);
        strata_checker_name(watch->checker, device_of(watch, i), handle_of(watch, i), label);
    }
}

void strata_watch_end(strata_watch_t *watch) {
    strata_checker_end(watch->checker);
    strata_host_delete(watch->names);
    *watch = (strata_watch_t){0};
}

void strata_watch_note_alloc(strata_watch_t *watch, const strata_trace_event_t *event, uint64_t address, uint64_t granted) {
    strata_checker_block_t block = {.name = name_of(event->id),
                                    .device = device_of(watch, event->stream),
                                    .stream = handle_of(watch, event->stream),
                                    .address = address,
                                    .size = granted,
                                    .ownerless = strata_place_is_ownerless(event->place)};
    strata_checker_allocated(watch->checker, &block);
    if (implies_use(watch)) strata_checker_used(watch->checker, block.name, block.stream, true);
}

void strata_watch_borrow(strata_watch_t *watch, const strata_trace_event_t *event) {
    if (watch->checker) strata_checker_borrowed(watch->checker, name_of(event->id), handle_of(watch, event->stream));
}

void strata_watch_unborrow(strata_watch_t *watch, const strata_trace_event_t *event) {
    if (watch->checker) strata_checker_erased(watch->checker, name_of(event->id), handle_of(watch, event->stream));
}

void strata_watch_note_last_use(strata_watch_t *watch, uint32_t lifetime, uint32_t stream) {
    if (implies_use(watch)) strata_checker_used(watch->checker, name_of(lifetime), handle_of(watch, stream), false);
}

void strata_watch_note_free(strata_watch_t *watch, const strata_trace_event_t *event, bool on_another) {
    if (on_another) strata_checker_freed_on(watch->checker, name_of(event->id), handle_of(watch, event->stream));
    else strata_checker_freed(watch->checker, name_of(event->id));
}

strata_status_t strata_watch_access(strata_watch_t *watch, size_t index, uint32_t lifetime) {
    if (!watch->checker) return STRATA_OK;
    if (index >= watch->name_capacity) {
        size_t capacity = index ? index * 2 : 64;
        uint64_t *grown = strata_host_resize(watch->names, capacity, sizeof *grown);
        if (!grown) return STRATA_E_HOST_MEMORY;
        watch->names = grown;
        watch->name_capacity = capacity;
    }
    watch->names[index] = name_of(lifetime);
    return STRATA_OK;
}

void strata_watch_kernel(strata_watch_t *watch, size_t count) {
    if (watch->checker) strata_checker_expect(watch->checker, watch->names, count);
}
