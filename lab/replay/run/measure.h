/* Metrics of a replay, collected while the trace runs. */
#ifndef STRATA_REPLAY_MEASURE_H
#define STRATA_REPLAY_MEASURE_H

#include "facade/registry/facade.h"
#include "lab/replay/run/meter.h"
#include "lab/replay/run/run.h"
#include "platform/arithmetic.h"

/* The cost counters of all devices at one moment. */
typedef struct strata_measure_mark {
    uint64_t call_ns;
    uint64_t stall_ns;
} strata_measure_mark_t;

/* The counters before the next row, after a row that called a device. */
typedef struct strata_measure_point {
    size_t row;
    strata_measure_mark_t mark;
} strata_measure_point_t;

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
    uint64_t reserved_in_call; /* highest within a call so far; used for a single place only */
    uint64_t allocated_at_peak; /* allocated bytes when `reserved` was highest */
    uint64_t held, held_since, rows_since; /* bytes reserved now, since when, and when the rows began, by the virtual clock */
    double held_ns; /* bytes times ns until `held_since` */
    uint64_t device_used; /* highest sum of physical memory seen after a call; only on simulated devices */
    uint64_t made; /* device calls of all kinds at the last look at reserved memory */
    uint64_t chunk_calls; /* calls so far that may change reserved memory */
    strata_device_ledger_t *ledger; /* of a followed run, else NULL */
    uint64_t wall_ns; /* inside the facade, by timed operations only */
    uint64_t timed, timed_every; /* timed operations so far; on average one in `timed_every` operations is timed */
    bool timing; /* operations are timed now; this switches after `until_switch` operations */
    uint64_t until_switch;
    uint64_t drawn; /* random state for the gaps between groups */
    uint64_t opened_ns; /* ns inside the devices before the first row */
    uint64_t clock_ns; /* ns to read the clock, subtracted for each timed operation and device call */
    uint64_t calls[STRATA_DEVICE_CALLS]; /* of all devices, at the beginning */
    strata_measure_mark_t began, steady;
    /* moments after rows that called a device, as far as needed; NULL if the number of rows is known in advance */
    strata_measure_point_t *points;
    size_t point_count, point_capacity;
    uint64_t point_calls; /* device calls at the last of these moments */
    strata_meter_t meters[STRATA_PLACE_PINNED][STRATA_TRACE_DEVICES]; /* of gpu and managed places on simulated devices */
} strata_measure_t;

/* Starts measuring deferred bytes, on simulated devices only. Call after the facade has begun and before it
 * is ready. Fails with E_HOST_MEMORY. */
strata_status_t strata_measure_deferred(strata_measure_t *measure);
/* Call when the facade is closed. */
void strata_measure_end(strata_measure_t *measure);
/* Starts the metrics. All device calls from now on belong to the strategy. */
void strata_measure_begin(strata_measure_t *measure);
/* Returns true if the strategy has made device calls since then that are shown. */
bool strata_measure_made_calls(const strata_measure_t *measure);
/* Call before the first row. `rows` is their number, or an estimate. */
void strata_measure_rows(strata_measure_t *measure, size_t rows);
/* Begins or ends a group of timed operations. */
void strata_measure_switch(strata_measure_t *measure);
/* Call before each facade call for a row. Returns true if that call is timed. */
static inline bool strata_measure_is_timed(strata_measure_t *measure) {
    if (--measure->until_switch == 0) strata_measure_switch(measure);
    return measure->timing;
}
static inline void strata_measure_timed(strata_measure_t *measure, uint64_t began) {
    measure->wall_ns += strata_real_now() - began;
    measure->timed++;
}
/* Returns the number of calls of all kinds, by all devices. */
static inline uint64_t strata_measure_calls(const strata_measure_t *measure) {
    uint64_t made = 0;
    for (uint32_t i = 0; i < measure->machine->count; i++)
        made += atomic_load_explicit(&measure->machine->devices[i]->made, memory_order_relaxed);
    return made;
}
/* Returns the first row of the last third of `rows` rows. */
static inline size_t strata_measure_steady_row(size_t rows) { return rows - rows / 3; }
/* Call before that row. */
void strata_measure_steady(strata_measure_t *measure);
/* For runs with an unknown number of rows. Call strata_measure_after() after each row. At the end, call
 * strata_measure_steady_from() with the first row of the last third. Fails with E_HOST_MEMORY. */
strata_status_t strata_measure_add_point(strata_measure_t *measure, size_t row);
static inline strata_status_t strata_measure_after(strata_measure_t *measure, size_t row) {
    return strata_measure_calls(measure) == measure->point_calls ? STRATA_OK : strata_measure_add_point(measure, row);
}
void strata_measure_steady_from(strata_measure_t *measure, size_t steady);
void strata_measure_update_reserved(strata_measure_t *measure);
/* Call after each facade call that may have changed reserved memory. Without a device call, it has not changed. */
static inline void strata_measure_reserved(strata_measure_t *measure) {
    uint64_t made = strata_measure_calls(measure);
    if (made == measure->made) return;
    measure->made = made;
    strata_measure_update_reserved(measure);
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
/* Call at the beginning. Device calls are then entered in the result's ledger. */
void strata_measure_follow(strata_measure_t *measure, strata_device_ledger_t *ledger);
/* Passes the held bytes to the follower. Call after each row. */
void strata_measure_sample(strata_measure_t *measure, size_t row, const strata_run_follow_t *follow);
/* Call when the program has ended and the facade is still open. */
void strata_measure_finish(strata_measure_t *measure, double *host_ns_per_op);

/* Returns the place of a kind of memory on a device of the trace. */
static inline strata_place_t strata_measure_place(const strata_machine_t *machine, strata_place_kind_t kind, uint32_t device) {
    if (kind == STRATA_PLACE_PINNED) return strata_pinned();
    if (kind == STRATA_PLACE_HOST) return strata_host();
    return strata_place(kind, machine->devices[device]->ordinal);
}

#endif
