#include "lab/replay/run/measure.h"

#include <math.h>
#include <string.h>

#include "facade/figures/figures.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

enum {
    CLOCK_TRIES = 1000,
    ALL_TIMED = 1 << 16, /* with up to this many rows, every operation is timed; with more, about this many are */
    GROUP = 64 /* operations timed in a row, because the first one of a group finds the clock's code cold */
};

static bool of_device(strata_place_kind_t kind) { return kind == STRATA_PLACE_GPU || kind == STRATA_PLACE_MANAGED; }

/* ---- sums over the places that the trace uses -------------------------------------------------------------------------- */

typedef void (*each_place_fn)(strata_measure_t *measure, strata_place_t place, bool of_device, void *context);

static void each_place(strata_measure_t *measure, each_place_fn fn, void *context) {
    for (int i = 0; i < STRATA_PLACE_KINDS; i++) {
        strata_place_kind_t kind = (strata_place_kind_t)i;
        if (!(measure->trace->places & 1u << i)) continue;
        uint32_t devices = of_device(kind) ? measure->machine->count : 1;
        for (uint32_t d = 0; d < devices; d++)
            fn(measure, strata_measure_place(measure->machine, kind, d), of_device(kind), context);
    }
}

static bool read_statistics(const strata_measure_t *measure, strata_place_t place, strata_statistics_t *statistics) {
    *statistics = (strata_statistics_t){.struct_size = sizeof *statistics};
    return strata_statistics_all(measure->facade, place, statistics) == STRATA_OK;
}

static void add_reserved(strata_measure_t *measure, strata_place_t place, bool device, void *sum) {
    if (device) *(uint64_t *)sum += strata_facade_reserved(measure->facade, place);
}

/* ---- deferred bytes ---------------------------------------------------------------------------------------------------- */

static strata_meter_t *meter_of(strata_measure_t *measure, strata_place_t place) {
    return &measure->meters[strata_place_kind(place)][strata_place_device(place)];
}

static void begin_meter(strata_measure_t *measure, strata_place_t place, bool device, void *context) {
    strata_status_t *status = context;
    if (!device || *status != STRATA_OK) return;
    strata_meter_t *meter = meter_of(measure, place);
    *status = strata_meter_init(meter);
    if (*status == STRATA_OK) strata_facade_watch_deferred(measure->facade, place, &meter->base);
}

strata_status_t strata_measure_deferred(strata_measure_t *measure) {
    strata_status_t status = STRATA_OK;
    if (measure->machine->world) each_place(measure, begin_meter, &status);
    return status;
}

void strata_measure_end(strata_measure_t *measure) {
    strata_host_delete(measure->points);
    for (uint32_t kind = 0; kind < STRATA_PLACE_PINNED; kind++)
        for (uint32_t i = 0; i < STRATA_TRACE_DEVICES; i++) strata_meter_destroy(&measure->meters[kind][i]);
}

typedef struct totals {
    uint64_t device_places;
    uint64_t host_reserved[STRATA_PLACE_KINDS]; /* peaks of reserved pinned and host memory, by place */
    uint64_t peak_reserved, deferred_peak, deferred_frees, recoveries;
} totals_t;

static void add_totals(strata_measure_t *measure, strata_place_t place, bool device, void *context) {
    totals_t *totals = context;
    strata_statistics_t statistics;
    if (!read_statistics(measure, place, &statistics)) return;
    totals->recoveries += statistics.recoveries;
    totals->host_reserved[strata_place_kind(place)] = statistics.peak_reserved_bytes;
    if (!device) return;
    totals->device_places++;
    totals->peak_reserved += statistics.peak_reserved_bytes;
    totals->deferred_frees += statistics.deferred_frees;
    totals->deferred_peak += meter_of(measure, place)->peak;
}

/* ---- while it runs ----------------------------------------------------------------------------------------------------- */

static strata_measure_mark_t mark(const strata_measure_t *measure) {
    strata_measure_mark_t mark = {0};
    for (uint32_t i = 0; i < measure->machine->count; i++) {
        strata_device_t *device = measure->machine->devices[i];
        strata_sim_figures_t figures = {.device_call_ns = atomic_load(&device->host_ns)};
        if (measure->machine->world) strata_sim_figures(device, &figures);
        mark.call_ns += figures.device_call_ns;
        mark.stall_ns += figures.stall_ns;
    }
    mark.call_ns -= measure->timeline->own.call_ns;
    mark.stall_ns -= measure->timeline->own.stall_ns;
    return mark;
}

static uint64_t sum_of_calls(const strata_machine_t *machine, strata_device_call_t call) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < machine->count; i++)
        sum += atomic_load_explicit(&machine->devices[i]->calls[call], memory_order_relaxed);
    return sum;
}

static uint64_t least_clock_ns(void) {
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < CLOCK_TRIES; i++) {
        uint64_t began = strata_real_now();
        least = strata_min(least, strata_real_now() - began);
    }
    return least;
}

static void time_devices(const strata_measure_t *measure, bool timed) {
    for (uint32_t i = 0; i < measure->machine->count; i++) measure->machine->devices[i]->timed = timed;
}

void strata_measure_begin(strata_measure_t *measure) {
    measure->clock_ns = least_clock_ns();
    for (int i = 0; i < STRATA_DEVICE_CALLS; i++) measure->calls[i] = sum_of_calls(measure->machine, (strata_device_call_t)i);
    time_devices(measure, true);
    measure->began = measure->steady = mark(measure);
}

bool strata_measure_made_calls(const strata_measure_t *measure) {
    for (int i = 0; i < STRATA_DEVICE_CALLS; i++) {
        strata_device_call_t call = (strata_device_call_t)i;
        if (strata_device_call_shown(call) && sum_of_calls(measure->machine, call) != measure->calls[i]) return true;
    }
    return false;
}

/* Returns the time in device calls plus the time to read the clock around them. */
static uint64_t inside_devices(const strata_measure_t *measure) {
    uint64_t inside = 0;
    for (uint32_t i = 0; i < measure->machine->count; i++) {
        strata_device_t *device = measure->machine->devices[i];
        inside += atomic_load(&device->host_ns) + atomic_load(&device->timed_calls) * measure->clock_ns;
    }
    return inside;
}

static uint64_t reserved_now(strata_measure_t *measure) {
    uint64_t reserved = 0;
    each_place(measure, add_reserved, &reserved);
    return reserved;
}

/* Sets the bytes that are reserved from now on. */
static void set_held(strata_measure_t *measure, uint64_t reserved) {
    uint64_t now = measure->machine->world ? strata_sim_now(measure->machine->world) : 0;
    measure->held_ns += (double)measure->held * (double)(now - measure->held_since);
    measure->held_since = now;
    measure->held = reserved;
}

/* Real devices are timed for other metrics too, and a ledger is written only by timed devices. Neither allows sampling. */
static uint64_t timed_every(const strata_measure_t *measure, size_t rows) {
    bool may_skip = measure->machine->world && !measure->ledger;
    return may_skip ? strata_max(1, rows / ALL_TIMED) : 1;
}

/* The gap between two groups has a pseudo-random length, so that groups fall on all parts of a repeating
 * program. The gaps are the same in each run. */
void strata_measure_switch(strata_measure_t *measure) {
    uint64_t most = 2 * GROUP * (measure->timed_every - 1);
    measure->timing = !measure->timing;
    measure->drawn = measure->drawn * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    measure->until_switch = measure->timing ? GROUP : 1 + (measure->drawn >> 33) % most;
    time_devices(measure, measure->timing);
}

void strata_measure_rows(strata_measure_t *measure, size_t rows) {
    measure->timed_every = timed_every(measure, rows);
    measure->timing = true;
    measure->until_switch = measure->timed_every > 1 ? GROUP : UINT64_MAX;
    measure->opened_ns = inside_devices(measure);
    set_held(measure, reserved_now(measure));
    measure->rows_since = measure->held_since;
    measure->held_ns = 0;
    measure->steady = mark(measure);
}

void strata_measure_steady(strata_measure_t *measure) { measure->steady = mark(measure); }

/* Returns the number of moments before row `steady`. */
static size_t moments_before(const strata_measure_t *measure, size_t steady) {
    size_t before = measure->point_count;
    while (before > 0 && measure->points[before - 1].row >= steady) before--;
    return before;
}

/* With more rows the last third never begins earlier, so only the last moment before it is still needed. */
static void forget_moments(strata_measure_t *measure, size_t rows) {
    size_t before = moments_before(measure, strata_measure_steady_row(rows));
    if (before < 2) return;
    measure->point_count -= before - 1;
    memmove(measure->points, measure->points + before - 1, measure->point_count * sizeof *measure->points);
}

static strata_status_t make_room_for_moment(strata_measure_t *measure, size_t rows) {
    if (measure->point_count < measure->point_capacity) return STRATA_OK;
    forget_moments(measure, rows);
    if (measure->point_count < measure->point_capacity / 4 * 3) return STRATA_OK;
    size_t capacity = measure->point_capacity ? measure->point_capacity * 2 : 64;
    strata_measure_point_t *grown = strata_host_resize(measure->points, capacity, sizeof *grown);
    if (!grown) return measure->point_count < measure->point_capacity ? STRATA_OK : STRATA_E_HOST_MEMORY;
    measure->points = grown;
    measure->point_capacity = capacity;
    return STRATA_OK;
}

strata_status_t strata_measure_add_point(strata_measure_t *measure, size_t row) {
    strata_status_t status = make_room_for_moment(measure, row + 1);
    if (status != STRATA_OK) return status;
    measure->points[measure->point_count++] = (strata_measure_point_t){.row = row, .mark = mark(measure)};
    measure->point_calls = strata_measure_calls(measure);
    return STRATA_OK;
}

void strata_measure_steady_from(strata_measure_t *measure, size_t steady) {
    size_t before = moments_before(measure, steady);
    if (before > 0) measure->steady = measure->points[before - 1].mark;
}

/* Each device records its own peak. The peak of the sum is at least the highest of them. */
static void update_used(strata_measure_t *measure) {
    uint64_t used = 0, peak = 0;
    for (uint32_t i = 0; i < measure->machine->count && measure->machine->world; i++) {
        strata_sim_figures_t device;
        strata_sim_figures(measure->machine->devices[i], &device);
        used += device.used_bytes;
        peak = strata_max(peak, device.peak_used_bytes);
    }
    measure->device_used = strata_max(measure->device_used, strata_max(used, peak));
}

void strata_measure_update_reserved(strata_measure_t *measure) {
    static const strata_device_call_t changing[] = {STRATA_CALL_malloc, STRATA_CALL_free,    STRATA_CALL_malloc_async,
                                                    STRATA_CALL_create, STRATA_CALL_release, STRATA_CALL_free_async};
    uint64_t calls = 0;
    for (size_t i = 0; i < sizeof changing / sizeof *changing; i++) calls += sum_of_calls(measure->machine, changing[i]);
    if (calls == measure->chunk_calls) return;
    measure->chunk_calls = calls;
    update_used(measure);
    uint64_t reserved = reserved_now(measure);
    set_held(measure, reserved);
    measure->reserved_now = reserved;
    if (reserved <= measure->reserved) return;
    measure->reserved = reserved;
    measure->allocated_at_peak = measure->allocated;
}

/* ---- for a follower ---------------------------------------------------------------------------------------------------- */

void strata_measure_follow(strata_measure_t *measure, strata_device_ledger_t *ledger) {
    *ledger = (strata_device_ledger_t){.own_ns = 0};
    measure->ledger = ledger;
    for (uint32_t i = 0; i < measure->machine->count; i++) measure->machine->devices[i]->ledger = ledger;
}

typedef struct tops {
    uint32_t places;
    uint64_t reserved, deferred;
} tops_t;

static void add_tops(strata_measure_t *measure, strata_place_t place, bool device, void *context) {
    tops_t *tops = context;
    if (!device) return;
    strata_meter_t *meter = meter_of(measure, place);
    strata_clock_t *clock = measure->machine->devices[0]->clock;
    tops->places++;
    tops->reserved += strata_facade_peak_reserved(measure->facade, place);
    if (meter->heap) tops->deferred += strata_meter_bytes(meter, clock->now(clock));
}

void strata_measure_sample(strata_measure_t *measure, size_t row, const strata_run_follow_t *follow) {
    tops_t tops = {0};
    each_place(measure, add_tops, &tops);
    strata_series_sample_t sample = {.row = row,
                                     .time_ns = strata_timeline_elapsed(measure->timeline),
                                     .cost_ns = measure->ledger->own_ns + measure->ledger->waiting_ns};
    sample.low[STRATA_SERIES_requested] = measure->requested;
    sample.low[STRATA_SERIES_allocated] = measure->allocated;
    sample.low[STRATA_SERIES_reserved] = measure->reserved_now;
    sample.low[STRATA_SERIES_deferred] = tops.deferred;
    for (int i = 0; i < STRATA_SERIES_CURVES; i++) sample.high[i] = sample.low[i];
    /* With several places, the sum of their peaks may never have been reached. */
    if (tops.places == 1 && tops.reserved > measure->reserved_in_call) sample.high[STRATA_SERIES_reserved] = tops.reserved;
    measure->reserved_in_call = tops.reserved;
    follow->row(follow->context, &sample);
}

/* ---- at the end -------------------------------------------------------------------------------------------------------- */

static double ms(uint64_t ns) { return (double)ns / 1e6; }

static void finish_host_bytes(strata_measure_t *measure, const totals_t *totals) {
    strata_figures_t *figures = measure->figures;
    const struct {
        strata_place_kind_t place;
        uint64_t *requested, *reserved;
    } rows[] = {{STRATA_PLACE_PINNED, &figures->pinned_requested_bytes, &figures->pinned_reserved_bytes},
                {STRATA_PLACE_HOST, &figures->host_requested_bytes, &figures->host_reserved_bytes}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool used = measure->trace->places & 1u << rows[i].place;
        *rows[i].requested = used ? measure->host_requested_peak[rows[i].place] : STRATA_FIGURE_NULL;
        *rows[i].reserved = used ? totals->host_reserved[rows[i].place] : STRATA_FIGURE_NULL;
    }
}

static void finish_bytes(strata_measure_t *measure) {
    strata_figures_t *figures = measure->figures;
    totals_t totals = {0};
    each_place(measure, add_totals, &totals);
    finish_host_bytes(measure, &totals);
    /* The place's own peak includes memory that was reserved only briefly within one call. For several places
     * only the observed sum is a peak. */
    figures->peak_reserved_bytes = totals.device_places == 1 ? totals.peak_reserved : measure->reserved;
    figures->deferred_peak_bytes = measure->machine->world ? totals.deferred_peak : STRATA_FIGURE_NULL;
    figures->deferred_frees = totals.deferred_frees;
    figures->recoveries = totals.recoveries;
    bool any = measure->reserved > 0;
    figures->fragmentation = any ? 1 - (double)measure->allocated_at_peak / (double)measure->reserved : (double)NAN;
    update_used(measure);
    figures->peak_device_used_bytes = measure->machine->world ? measure->device_used : STRATA_FIGURE_NULL;
}

static void finish_mean(strata_measure_t *measure) {
    uint64_t mean = measure->held;
    set_held(measure, mean);
    uint64_t took = measure->held_since - measure->rows_since;
    if (took > 0) mean = (uint64_t)(measure->held_ns / (double)took);
    measure->figures->mean_reserved_bytes = measure->machine->world ? mean : STRATA_FIGURE_NULL;
}

static void finish_calls(strata_measure_t *measure) {
    strata_figures_t *figures = measure->figures;
    for (int i = 0; i < STRATA_DEVICE_CALLS; i++)
        figures->device_calls.made[i] = sum_of_calls(measure->machine, (strata_device_call_t)i) - measure->calls[i] -
                                        measure->timeline->own.calls[i];
    for (uint32_t i = 0; i < measure->machine->count; i++) {
        const strata_device_capabilities_t *can = &measure->machine->devices[i]->capabilities;
        bool pools = can->modelled_pools && figures->device_calls.made[STRATA_CALL_malloc_async] > 0;
        figures->modelled |= pools || can->modelled_costs;
    }
}

void strata_measure_finish(strata_measure_t *measure, double *host_ns_per_op) {
    strata_figures_t *figures = measure->figures;
    strata_measure_mark_t end = mark(measure);
    uint64_t inside = inside_devices(measure) - measure->opened_ns;
    bool simulated = measure->machine->world != NULL;
    figures->device_call_ms = ms(end.call_ns - measure->began.call_ns);
    figures->stall_ms = simulated ? ms(end.stall_ns - measure->began.stall_ns) : (double)NAN;
    figures->steady_device_ms = ms(end.call_ns - measure->steady.call_ns + end.stall_ns - measure->steady.stall_ns);
    for (uint32_t i = 0; i < measure->machine->count; i++) measure->machine->devices[i]->ledger = NULL;
    finish_calls(measure);
    finish_bytes(measure);
    finish_mean(measure);
    double own = (double)measure->wall_ns - (double)inside - (double)measure->clock_ns * (double)measure->timed;
    *host_ns_per_op = measure->timed > 0 && own > 0 ? own / (double)measure->timed : 0;
}
