#include "lab/replay/run/meter.h"

#include "platform/arithmetic.h"

enum { FIRST_ENTRIES = 1 << 10, MAX_ENTRIES = 1 << 20 };

static void update_room(strata_meter_t *meter) {
    meter->room = (uint32_t)(strata_growing_usable(&meter->range) / sizeof *meter->heap);
    if (meter->count >= meter->room / 2) strata_growing_mark(&meter->range, false);
}

static void swap(strata_meter_entry_t *a, strata_meter_entry_t *b) {
    strata_meter_entry_t kept = *a;
    *a = *b;
    *b = kept;
}

static void push(strata_meter_t *meter, strata_meter_entry_t entry) {
    strata_meter_entry_t *heap = meter->heap;
    uint32_t at = meter->count++;
    heap[at] = entry;
    for (; at > 0 && heap[(at - 1) / 2].ready_at > heap[at].ready_at; at = (at - 1) / 2) swap(&heap[at], &heap[(at - 1) / 2]);
}

static void pop(strata_meter_t *meter) {
    strata_meter_entry_t *heap = meter->heap;
    heap[0] = heap[--meter->count];
    for (uint32_t at = 0;;) {
        uint32_t least = at;
        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < meter->count; child++)
            if (heap[child].ready_at < heap[least].ready_at) least = child;
        if (least == at) return;
        swap(&heap[at], &heap[least]);
        at = least;
    }
}

static void expire(strata_meter_t *meter, uint64_t now) {
    while (meter->count > 0 && meter->heap[0].ready_at <= now) {
        meter->bytes -= meter->heap[0].bytes;
        pop(meter);
    }
}

uint64_t strata_meter_bytes(strata_meter_t *meter, uint64_t now) {
    expire(meter, now);
    return meter->bytes;
}

static void add(strata_deferral_t *base, uint64_t now, uint64_t ready_at, uint64_t bytes) {
    strata_meter_t *meter = (strata_meter_t *)base;
    if (ready_at <= now) return;
    expire(meter, now);
    if (meter->count >= meter->room / 2 && meter->room < meter->capacity) update_room(meter);
    /* A full heap drops its earliest entry. Until that entry's time passes, the metric is too low by its bytes. */
    if (meter->count >= strata_min(meter->room, meter->capacity)) {
        meter->bytes -= meter->heap[0].bytes;
        pop(meter);
    }
    push(meter, (strata_meter_entry_t){.ready_at = ready_at, .bytes = bytes});
    meter->bytes += bytes;
    if (meter->bytes > meter->peak) meter->peak = meter->bytes;
}

/* Finds an entry that is ready at that time in the subtree of a heap position. Returns the heap's count if
 * there is none. If an entry is ready later, its subtree cannot contain one. */
static uint32_t find(const strata_meter_t *meter, uint32_t at, uint64_t ready_at, uint64_t bytes) {
    if (at >= meter->count || meter->heap[at].ready_at > ready_at) return meter->count;
    if (meter->heap[at].ready_at == ready_at && meter->heap[at].bytes >= bytes) return at;
    uint32_t found = find(meter, 2 * at + 1, ready_at, bytes);
    return found < meter->count ? found : find(meter, 2 * at + 2, ready_at, bytes);
}

/* The entry may be missing, because a full heap drops entries. */
static void cut(strata_deferral_t *base, uint64_t now, uint64_t ready_at, uint64_t bytes) {
    strata_meter_t *meter = (strata_meter_t *)base;
    expire(meter, now);
    uint32_t at = find(meter, 0, ready_at, bytes);
    if (at == meter->count) return;
    meter->heap[at].bytes -= bytes;
    meter->bytes -= bytes;
}

strata_status_t strata_meter_init(strata_meter_t *meter) {
    *meter = (strata_meter_t){.base = {.add = add, .cut = cut}};
    size_t one = sizeof *meter->heap;
    strata_status_t status = strata_growing_reserve(&meter->range, FIRST_ENTRIES * one, MAX_ENTRIES * one);
    if (status != STRATA_OK) return status;
    meter->heap = meter->range.memory;
    meter->capacity = (uint32_t)(strata_growing_max(&meter->range) / one);
    update_room(meter);
    return STRATA_OK;
}

void strata_meter_destroy(strata_meter_t *meter) {
    strata_growing_release(&meter->range);
    *meter = (strata_meter_t){.heap = NULL};
}
