/* What is measured while a trace runs. */
#ifndef STRATA_REPLAY_MEASURE_H
#define STRATA_REPLAY_MEASURE_H

#include "facade/registry/facade.h"
#include "lab/replay/run/meter.h"
#include "lab/replay/run/run.h"
#include "platform/arithmetic.h"

/* The state of a device at one moment. */
typedef struct strata_measure_mark {
    uint64_t call_ns;
    uint64_t stall_ns;
} strata_measure_mark_t;

/* The state before the next row, after a row that called a device. */
typedef struct strata_measure_then {
    size_t row;
    strata_measure_mark_t mark;
} strata_measure_then_t;

typedef struct strata_measure {
    const strata_trace_t *trace;
    const strata_machine_t *machine;
    const strata_timeline_t *timeline;
    strata_t facade;
    strata_figures_t *figures;
    uint64_t requested, allocated; /* live now, in device memory only */
    uint64_t host_requested[STRATA_PLACE_KINDS]; /* live requested bytes by place; pinned and host memory only */
    uint64_t host_requested_peak[STRATA_PLACE_KINDS];
    uint64_t reserved_now; /* after the last call that may have changed it */
    uint64_t reserved; /* highest sum seen after a call */
    uint64_t reserved_top; /* highest within a call so far; of a single place */
    uint64_t allocated_then; /* and what was allocated then */
    uint64_t held, held_since, rows_since; /* reserved now; since when, and when the rows began, by the virtual clock */
    double held_ns; /* bytes times ns until `held_since` */
    uint64_t device_used; /* highest sum of physical memory seen after a call; only on simulated devices */
    uint64_t made; /* device calls of all kinds that the next two have seen */
    uint64_t chunk_calls; /* calls that may change what is reserved, so far */
    strata_device_ledger_t *ledger; /* of a followed run; else NULL */
    uint64_t wall_ns; /* inside the facade, only by operations that are timed */
    uint64_t timed, timed_every; /* those so far; on average one of so many is */
    bool timing; /* the ones that come now are, until so many have come */
    uint64_t until_switch;
    uint64_t drawn; /* what the distance of groups comes from */
    uint64_t opened_ns; /* inside the devices, before the first row */
    uint64_t clock_ns; /* for reading the clock, to be subtracted for each timed operation and device call */
    uint64_t calls[STRATA_DEVICE_CALLS]; /* of all devices, at the beginning */
    strata_measure_mark_t began, steady;
    strata_measure_then_t *then; /* row by row, as far as they may matter; NULL: the rows are known before they run */
    size_t then_count, then_capacity;
    uint64_t then_made; /* device calls that the last of them has seen */
    strata_meter_t meters[STRATA_PLACE_PINNED][STRATA_TRACE_DEVICES]; /* of gpu and managed places on simulated devices */
} strata_measure_t;

/* Measures what is deferred, where the devices know it. The facade has begun and is not ready. E_HOST_MEMORY. */
strata_status_t strata_measure_deferred(strata_measure_t *measure);
/* The facade is closed. */
void strata_measure_end(strata_measure_t *measure);
/* From now on everything belongs to the strategy. */
void strata_measure_begin(strata_measure_t *measure);
/* Whether it has since made calls that are shown. */
bool strata_measure_made_calls(const strata_measure_t *measure);
/* Before the first row of about so many. */
void strata_measure_rows(strata_measure_t *measure, size_t rows);
/* Begins or ends a group of timed operations. */
void strata_measure_switch(strata_measure_t *measure);
/* Before each call of the facade for a row: whether it is timed. */
static inline bool strata_measure_is_timed(strata_measure_t *measure) {
    if (--measure->until_switch == 0) strata_measure_switch(measure);
    return measure->timing;
}
static inline void strata_measure_timed(strata_measure_t *measure, uint64_t began) {
    measure->wall_ns += strata_real_now() - began;
    measure->timed++;
}
/* Of all kinds, by all devices. */
static inline uint64_t strata_measure_calls(const strata_measure_t *measure) {
    uint64_t made = 0;
    for (uint32_t i = 0; i < measure->machine->count; i++)
        made += atomic_load_explicit(&measure->machine->devices[i]->made, memory_order_relaxed);
    return made;
}
/* The row that the last third of so many begins with. */
static inline size_t strata_measure_steady_row(size_t rows) { return rows - rows / 3; }
/* Before that row. */
void strata_measure_steady(strata_measure_t *measure);
/* Where nobody knows yet how many rows there are: after each row, and at the end that the last third began with row `steady`.
 * E_HOST_MEMORY. */
strata_status_t strata_measure_remember(strata_measure_t *measure, size_t row);
static inline strata_status_t strata_measure_after(strata_measure_t *measure, size_t row) {
    return strata_measure_calls(measure) == measure->then_made ? STRATA_OK : strata_measure_remember(measure, row);
}
void strata_measure_steady_from(strata_measure_t *measure, size_t steady);
void strata_measure_look_at_reserved(strata_measure_t *measure);
/* After each call of the facade that may have changed what is reserved: without a device call none has. */
static inline void strata_measure_reserved(strata_measure_t *measure) {
    uint64_t made = strata_measure_calls(measure);
    if (made == measure->made) return;
    measure->made = made;
    strata_measure_look_at_reserved(measure);
}
static inline void strata_measure_live(strata_measure_t *measure, uint64_t requested, uint64_t allocated) {
    strata_figures_t *figures = measure->figures;
    measure->requested += requested;
    measure->allocated += allocated;
    figures->peak_requested_bytes = strata_max(figures->peak_requested_bytes, measure->requested);
    figures->peak_allocated_bytes = strata_max(figures->peak_allocated_bytes, measure->allocated);
}
static inline void strata_measure_dead(strata_measure_t *measure, uint64_t requested, uint64_t allocated) {
    measure->requested -= requested;
    measure->allocated -= allocated;
}
/* Counts a live block of pinned or host memory. */
static inline void strata_measure_host_live(strata_measure_t *measure, strata_place_kind_t place, uint64_t requested) {
    uint64_t live = measure->host_requested[place] += requested;
    measure->host_requested_peak[place] = strata_max(measure->host_requested_peak[place], live);
}
static inline void strata_measure_host_dead(strata_measure_t *measure, strata_place_kind_t place, uint64_t requested) {
    measure->host_requested[place] -= requested;
}
/* From the beginning on: device calls are entered in the result's ledger. */
void strata_measure_follow(strata_measure_t *measure, strata_device_ledger_t *ledger);
/* After each row: what is held, to whoever follows. */
void strata_measure_sample(strata_measure_t *measure, size_t row, const strata_run_follow_t *follow);
/* The program has ended; the facade is still open. */
void strata_measure_finish(strata_measure_t *measure, double *host_ns_per_op);

/* The place of a kind of memory on a device of the trace. */
static inline strata_place_t strata_measure_place(const strata_machine_t *machine, strata_place_kind_t kind, uint32_t device) {
    if (kind == STRATA_PLACE_PINNED) return strata_pinned();
    if (kind == STRATA_PLACE_HOST) return strata_host();
    return strata_place(kind, machine->devices[device]->ordinal);
}

#endif
