#include "lab/replay/export/entries.h"

#include <stdlib.h>

#include "facade/figures/chunks.h"
#include "facade/registry/facade.h"
#include "platform/host/host_memory.h"
#include "platform/place.h"

static bool of_device(strata_place_kind_t kind) { return kind == STRATA_PLACE_GPU || kind == STRATA_PLACE_MANAGED; }

/* Returns the slot after the last element of an array, which grows if needed. Returns NULL after a failure. */
static void *next_of(strata_entries_t *entries, void **all, size_t size, size_t count, size_t *capacity) {
    if (entries->status != STRATA_OK) return NULL;
    if (count == *capacity) {
        size_t larger = *capacity * 2 + 256;
        void *grown = strata_host_resize(*all, larger, size);
        if (!grown) {
            entries->status = STRATA_E_HOST_MEMORY;
            return NULL;
        }
        *all = grown;
        *capacity = larger;
    }
    return (char *)*all + count * size;
}

static void add(strata_entries_t *entries, const strata_entry_t *entry) {
    strata_entry_t *to = next_of(entries, (void **)&entries->all, sizeof *to, entries->count, &entries->capacity);
    if (!to) return;
    *to = *entry;
    entries->count++;
}

static void complete(strata_entries_t *entries, strata_entry_t entry, uint64_t time_us) {
    entry.action = STRATA_ENTRY_free_completed;
    entry.time_us = time_us;
    add(entries, &entry);
}

/* Completes the deferred frees that overlap a block before it is handed out. */
static void complete_overlapping(strata_entries_t *entries, const strata_entry_t *next) {
    size_t kept = 0;
    for (size_t i = 0; i < entries->deferred_count; i++) {
        const strata_entry_t *waits = &entries->deferred[i];
        bool meets = waits->device == next->device && waits->address < next->address + next->size &&
                     next->address < waits->address + waits->size;
        if (meets) complete(entries, *waits, next->time_us);
        else entries->deferred[kept++] = *waits;
    }
    entries->deferred_count = kept;
}

/* Completes the deferred frees of a device after another event there, so that the completion does not
 * directly follow its request. */
static void complete_all(strata_entries_t *entries, uint32_t device, uint64_t time_us) {
    size_t kept = 0;
    for (size_t i = 0; i < entries->deferred_count; i++) {
        const strata_entry_t *waits = &entries->deferred[i];
        if (waits->device == device) complete(entries, *waits, time_us);
        else entries->deferred[kept++] = *waits;
    }
    entries->deferred_count = kept;
}

/* ---- segments ---- */

typedef struct reading {
    strata_entries_t *entries;
    const strata_run_moment_t *moment;
    strata_place_t place;
} reading_t;

uint64_t strata_entries_stream(const strata_run_moment_t *moment, strata_place_t place, strata_stream_t stream) {
    const strata_timeline_t *timeline = moment->timeline;
    for (uint32_t i = 0; i < moment->trace->stream_count; i++) {
        const strata_timeline_stream_t *own = &timeline->streams[i];
        if (own->handle == stream && timeline->machine->devices[own->device]->ordinal == strata_place_device(place))
            return moment->trace->streams[i].number;
    }
    return (uintptr_t)stream;
}

static void add_chunk(const strata_chunk_t *chunk, void *context) {
    const reading_t *reading = context;
    strata_entries_t *entries = reading->entries;
    strata_entry_segment_t *to = next_of(entries, (void **)&entries->segments, sizeof *to, entries->segment_count,
                                         &entries->segment_capacity);
    if (!to || chunk->count == 0) return;
    *to = (strata_entry_segment_t){.address = chunk->address,
                                   .size = chunk->size,
                                   .stream = strata_entries_stream(reading->moment, reading->place, chunk->stream),
                                   .device = (uint32_t)strata_place_device(reading->place)};
    entries->segment_count++;
}

static int by_address(const void *a, const void *b) {
    const strata_entry_segment_t *one = a, *other = b;
    if (one->device != other->device) return one->device < other->device ? -1 : 1;
    return one->address < other->address ? -1 : one->address > other->address;
}

static void add_segment_entry(strata_entries_t *entries, strata_entry_action_t action, const strata_entry_segment_t *segment,
                              uint64_t from, uint64_t size, uint64_t time_us) {
    add(entries, &(strata_entry_t){.action = (uint8_t)action,
                                   .address = segment->address + from,
                                   .size = size,
                                   .stream = segment->stream,
                                   .device = (uint8_t)segment->device,
                                   .time_us = time_us});
}

/* Records either the growth or the shrinkage between the earlier and the present segments. If two segments
 * begin at the same address, the segment changed at its end. */
static void add_changes_of(strata_entries_t *entries, bool growth, uint64_t time_us) {
    size_t i = 0, k = 0;
    while (i < entries->previous_count || k < entries->segment_count) {
        const strata_entry_segment_t *old = i < entries->previous_count ? &entries->previous[i] : NULL;
        const strata_entry_segment_t *now = k < entries->segment_count ? &entries->segments[k] : NULL;
        int order = !old ? 1 : !now ? -1 : by_address(old, now);
        if (order < 0 && !growth) add_segment_entry(entries, STRATA_ENTRY_segment_free, old, 0, old->size, time_us);
        if (order > 0 && growth) add_segment_entry(entries, STRATA_ENTRY_segment_alloc, now, 0, now->size, time_us);
        if (order == 0 && growth && now->size > old->size)
            add_segment_entry(entries, STRATA_ENTRY_segment_map, now, old->size, now->size - old->size, time_us);
        if (order == 0 && !growth && now->size < old->size)
            add_segment_entry(entries, STRATA_ENTRY_segment_unmap, now, now->size, old->size - now->size, time_us);
        i += order <= 0;
        k += order >= 0;
    }
}

/* Shrinkage comes first, so a reader that sums event by event never sees more memory than was reserved. */
static void add_changes(strata_entries_t *entries, uint64_t time_us) {
    add_changes_of(entries, false, time_us);
    add_changes_of(entries, true, time_us);
}

static void update_segments(strata_entries_t *entries, const strata_run_moment_t *moment, uint64_t time_us) {
    strata_entry_segment_t *other = entries->previous;
    size_t capacity = entries->previous_capacity;
    reading_t reading = {.entries = entries, .moment = moment};
    uint32_t index = 0;
    strata_domain_t *domain;
    entries->previous = entries->segments;
    entries->previous_count = entries->segment_count;
    entries->previous_capacity = entries->segment_capacity;
    entries->segments = other;
    entries->segment_capacity = capacity;
    entries->segment_count = 0;
    while ((domain = strata_facade_next_domain(strata_facade_of(moment->facade), &index)) != NULL) {
        reading.place = domain->place;
        if (!of_device(strata_place_kind(domain->place)) || entries->status != STRATA_OK) continue;
        strata_status_t status = strata_chunks_each(moment->facade, domain->place, add_chunk, &reading);
        if (entries->status == STRATA_OK) entries->status = status;
    }
    if (entries->segment_count) qsort(entries->segments, entries->segment_count, sizeof *entries->segments, by_address);
    if (entries->status == STRATA_OK) add_changes(entries, time_us);
}

/* ---- rows ---- */

static strata_entry_t entry_of(const strata_entries_t *entries, const strata_trace_event_t *event, uint64_t time_us) {
    const strata_trace_stream_t *stream = &entries->trace->streams[event->stream];
    return (strata_entry_t){.size = event->value,
                            .stream = stream->number,
                            .device = (uint8_t)stream->device,
                            .tag = event->tag,
                            .stack = event->stack,
                            .time_us = time_us};
}

static void add_alloc(strata_entries_t *entries, const strata_run_block_t *block, const strata_trace_event_t *event,
                      uint64_t time_us) {
    strata_entry_t entry = entry_of(entries, event, time_us);
    if (!block->address) return;
    entry.address = block->address;
    entry.action = STRATA_ENTRY_alloc;
    complete_overlapping(entries, &entry);
    add(entries, &entry);
    complete_all(entries, entry.device, time_us);
}

static void add_free(strata_entries_t *entries, const strata_run_block_t *block, const strata_trace_event_t *event, uint64_t size,
                     uint64_t time_us) {
    strata_entry_t entry = entry_of(entries, event, time_us);
    if (!block->address) return;
    entry.address = block->address;
    entry.size = size;
    entry.action = STRATA_ENTRY_free_requested;
    add(entries, &entry);
    bool borrowed = entries->borrowed[event->id];
    if (!borrowed) complete(entries, entry, time_us);
    complete_all(entries, entry.device, time_us);
    if (!borrowed) return;
    strata_entry_t *to = next_of(entries, (void **)&entries->deferred, sizeof *to, entries->deferred_count,
                                 &entries->deferred_capacity);
    if (!to) return;
    *to = entry;
    entries->deferred_count++;
}

void strata_entries_moment(void *context, const strata_run_moment_t *moment, bool chunks) {
    strata_entries_t *entries = context;
    const strata_trace_event_t *event = &entries->trace->events[moment->rows - 1];
    uint64_t time_us = strata_timeline_elapsed(moment->timeline) / 1000;
    bool allocates = event->op == STRATA_TRACE_alloc && of_device((strata_place_kind_t)event->place);
    bool frees = event->op == STRATA_TRACE_free && of_device((strata_place_kind_t)event->place);
    strata_run_block_t block = {.address = 0};
    if (allocates || frees) block = strata_run_block(moment, event->id);
    if (event->op == STRATA_TRACE_borrow) entries->borrowed[event->id] = true;
    if (frees) add_free(entries, &block, event, entries->sizes[event->id], time_us);
    if (chunks) update_segments(entries, moment, time_us);
    if (!allocates) return;
    entries->sizes[event->id] = event->value;
    add_alloc(entries, &block, event, time_us);
}

void strata_entries_refused(void *context, size_t row, uint64_t time_ns, const strata_trace_event_t *event, const char *text) {
    strata_entries_t *entries = context;
    (void)row, (void)text;
    if (event->op != STRATA_TRACE_alloc || !of_device((strata_place_kind_t)event->place)) return;
    strata_entry_t entry = entry_of(entries, event, time_ns / 1000);
    entry.action = STRATA_ENTRY_oom;
    add(entries, &entry);
}

void strata_entries_finish(strata_entries_t *entries) {
    for (size_t i = 0; i < entries->deferred_count; i++) complete(entries, entries->deferred[i], entries->deferred[i].time_us);
    entries->deferred_count = 0;
}

strata_status_t strata_entries_begin(strata_entries_t *entries, const strata_trace_t *trace) {
    *entries = (strata_entries_t){.trace = trace};
    entries->borrowed = strata_host_new((size_t)trace->lifetimes + 1, sizeof *entries->borrowed);
    entries->sizes = strata_host_new((size_t)trace->lifetimes + 1, sizeof *entries->sizes);
    return entries->borrowed && entries->sizes ? STRATA_OK : STRATA_E_HOST_MEMORY;
}

void strata_entries_end(strata_entries_t *entries) {
    strata_host_delete(entries->all);
    strata_host_delete(entries->segments);
    strata_host_delete(entries->previous);
    strata_host_delete(entries->borrowed);
    strata_host_delete(entries->sizes);
    strata_host_delete(entries->deferred);
    *entries = (strata_entries_t){.trace = NULL};
}
