#include "lab/tools/calibrate/fit.h"

#include <stdio.h>
#include <string.h>

#include "platform/arithmetic.h"

#define MIB_BYTES  1048576.0
#define MIB_IN_GIB 1024.0

/* The size by which a call is priced. */
typedef enum by {
    BY_SIZE, /* of the call, or of one handle */
    BY_RANGE, /* of all handles together */
    BY_HANDLE, /* of one of the handles that the call covers, which share its time */
    BY_CHUNK, /* of the chunk that a pool takes or returns */
    BY_GROWTH /* of the chunk, for the time beyond a warm request */
} by_t;

/* The measured call that determines a field of the profile. */
typedef struct rule {
    const char *call;
    const char *field;
    size_t offset;
    by_t by;
} rule_t;

#define OF(call, field, by)                                                                                                        \
    { #call, #field, offsetof(strata_sim_profile_t, field), by }
/* The order matters, because growth is the rest of the time beyond malloc_async. */
static const rule_t rules[] = {
    OF(malloc, malloc, BY_SIZE),
    OF(free, free, BY_SIZE),
    OF(managed_malloc, managed_malloc, BY_SIZE),
    OF(managed_free, managed_free, BY_SIZE),
    OF(host_alloc, host_alloc, BY_SIZE),
    OF(host_free, host_free, BY_SIZE),
    OF(malloc_async, malloc_async, BY_SIZE),
    OF(free_async, free_async, BY_SIZE),
    OF(malloc_async_cold, pool_grow, BY_GROWTH),
    OF(pool_trim, pool_shrink, BY_CHUNK),
    OF(reserve, reserve, BY_RANGE),
    OF(unreserve, unreserve, BY_RANGE),
    OF(create, create, BY_SIZE),
    OF(map, map, BY_SIZE),
    OF(set_access, set_access, BY_HANDLE),
    OF(unmap, unmap, BY_HANDLE),
    OF(release, release, BY_SIZE),
    OF(event_create, event_create, BY_SIZE),
    OF(event_destroy, event_destroy, BY_SIZE),
    OF(event_record, event_record, BY_SIZE),
    OF(event_query, event_query, BY_SIZE),
    OF(stream_query, event_query, BY_SIZE),
    OF(stream_wait, stream_wait, BY_SIZE),
    OF(stream_create, stream_create, BY_SIZE),
    OF(stream_destroy, stream_destroy, BY_SIZE),
    OF(synchronise, synchronise, BY_SIZE),
    OF(stream_synchronise, synchronise, BY_SIZE),
    OF(event_synchronise, synchronise, BY_SIZE),
    OF(mem_info, mem_info, BY_SIZE),
    OF(capture_status, capture_status, BY_SIZE),
    OF(work, launch, BY_SIZE),
    OF(prefetch, prefetch, BY_SIZE),
    OF(export_memory, peer, BY_SIZE),
    OF(import_memory, peer, BY_SIZE),
};
enum { RULES = sizeof rules / sizeof *rules };

/* ---- a line ---- */

static double farthest(const strata_fit_point_t *points, size_t count, const strata_sim_cost_t *cost) {
    double worst = 0;
    for (size_t i = 0; i < count; i++) {
        double off = cost->fixed_ns + cost->per_mib_ns * points[i].mib - points[i].ns;
        double part = (off < 0 ? -off : off) / (points[i].ns < 1 ? 1 : points[i].ns);
        if (part > worst) worst = part;
    }
    return worst;
}

double strata_fit_line(const strata_fit_point_t *points, size_t count, strata_sim_cost_t *cost) {
    double w = 0, wx = 0, wxx = 0, wy = 0, wxy = 0;
    for (size_t i = 0; i < count; i++) {
        double x = points[i].mib, y = points[i].ns, weight = 1 / (y < 1 ? 1 : y * y);
        w += weight;
        wx += weight * x;
        wxx += weight * x * x;
        wy += weight * y;
        wxy += weight * x * y;
    }
    double spread = w * wxx - wx * wx;
    strata_sim_cost_t line = {.fixed_ns = wy / w};
    if (spread > 1e-9 * w * wxx) { /* otherwise there is only one size */
        double slope = (w * wxy - wx * wy) / spread, fixed = (wy - slope * wx) / w;
        if (slope > 0 && fixed >= 0) line = (strata_sim_cost_t){.fixed_ns = fixed, .per_mib_ns = slope};
        if (fixed < 0) line = (strata_sim_cost_t){.per_mib_ns = wxy / wxx};
    }
    *cost = line;
    return farthest(points, count, &line);
}

/* ---- a profile ---- */

static strata_fit_point_t point_of(const strata_measured_row_t *row, by_t by, const strata_sim_profile_t *profile) {
    double size = (double)row->size / MIB_BYTES, chunk = (double)row->chunk / MIB_BYTES, ns = (double)row->median;
    double handles = row->handles ? (double)row->handles : 1;
    double range = size * handles, most = (double)STRATA_SIM_RANGE_CHARGED / MIB_BYTES;
    if (by == BY_RANGE) return (strata_fit_point_t){range < most ? range : most, ns};
    if (by == BY_HANDLE) return (strata_fit_point_t){size, ns / handles};
    if (by == BY_CHUNK) return (strata_fit_point_t){chunk, ns};
    if (by == BY_SIZE) return (strata_fit_point_t){size, ns};
    ns -= profile->malloc_async.fixed_ns + profile->malloc_async.per_mib_ns * size;
    return (strata_fit_point_t){chunk, ns < 0 ? 0 : ns};
}

static size_t points_of(const strata_measure_t *measure, size_t offset, const strata_sim_profile_t *profile,
                        strata_fit_point_t *points) {
    size_t count = 0;
    for (size_t r = 0; r < RULES; r++)
        for (size_t i = 0; i < measure->count && rules[r].offset == offset; i++)
            if (strcmp(measure->rows[i].call, rules[r].call) == 0)
                points[count++] = point_of(&measure->rows[i], rules[r].by, profile);
    return count;
}

static void note(strata_fitted_t *fitted, const char *key, const char *text) {
    size_t most = sizeof fitted->notes / sizeof *fitted->notes;
    if (fitted->note_count == most) return;
    fitted->notes[fitted->note_count].key = key;
    snprintf(fitted->notes[fitted->note_count++].note, sizeof fitted->notes[0].note, "%s", text);
}

/* Rounds to four digits, because the measurement is no more exact and people read the value. */
static double rounded(double value) {
    double unit = 1;
    while (value / unit >= 10000) unit *= 10;
    return (double)(uint64_t)(value / unit + 0.5) * unit;
}

static void fit_costs(const strata_measure_t *measure, strata_fitted_t *fitted) {
    strata_fit_point_t points[STRATA_ROWS_MAX];
    for (size_t r = 0; r < RULES; r++) {
        size_t count = points_of(measure, rules[r].offset, &fitted->profile, points);
        if (count == 0 || (r > 0 && rules[r].offset == rules[r - 1].offset)) continue;
        strata_sim_cost_t *cost = (strata_sim_cost_t *)((char *)&fitted->profile + rules[r].offset);
        double off = strata_fit_line(points, count, cost);
        cost->fixed_ns = rounded(cost->fixed_ns);
        cost->per_mib_ns = rounded(cost->per_mib_ns * MIB_IN_GIB) / MIB_IN_GIB;
        char text[64] = "measured";
        if (count > 1) snprintf(text, sizeof text, "measured, at most %.0f %% off", 100 * off);
        note(fitted, rules[r].field, text);
    }
}

void strata_fit_profile(const strata_measure_t *measure, const strata_sim_profile_t *base, strata_fitted_t *fitted) {
    const strata_device_capabilities_t *can = &measure->device->capabilities;
    *fitted = (strata_fitted_t){.profile = *base};
    strata_sim_profile_t *profile = &fitted->profile;
    profile->total_bytes = measure->total_bytes;
    note(fitted, "total_bytes", "measured");
    if (can->virtual_memory) {
        profile->granule_bytes = can->granularity;
        note(fitted, "granule_bytes", "measured");
    }
    profile->context_bytes = strata_min(profile->context_bytes, profile->total_bytes);
    if (profile->pack_below_bytes > profile->granule_bytes) profile->pack_below_bytes = profile->granule_bytes;
    if (measure->chunk_bytes) {
        profile->pool_chunk_bytes = measure->chunk_bytes;
        note(fitted, "pool_chunk_bytes", "measured");
    }
    if (measure->waits_known) {
        profile->free_waits = measure->free_waits;
        note(fitted, "free_waits", "measured");
    }
    fit_costs(measure, fitted);
}

const char *strata_fit_note(const char *key, const void *context) {
    const strata_fitted_t *fitted = context;
    for (size_t i = 0; i < fitted->note_count; i++)
        if (strcmp(fitted->notes[i].key, key) == 0) return fitted->notes[i].note;
    return "not measured: as in h100";
}
