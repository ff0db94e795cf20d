#include "lab/tools/curves.h"

#include "platform/host/host_memory.h"

enum { COLUMNS = 1024, REACH = 1 };

typedef struct curve {
    strata_series_t *series;
    const strata_run_follow_t *other; /* may be NULL */
} curve_t;

struct strata_curves {
    size_t runs;
    strata_series_t *series;
    curve_t *curves;
    strata_run_follow_t *follows;
};

static void add_row(void *context, const strata_series_sample_t *sample) {
    const curve_t *curve = context;
    strata_series_add(curve->series, sample);
    if (curve->other) curve->other->row(curve->other->context, sample);
}

static void add_refusal(void *context, size_t row, uint64_t time_ns, const strata_trace_event_t *event, const char *text) {
    const curve_t *curve = context;
    if (curve->other) curve->other->refused(curve->other->context, row, time_ns, event, text);
}

strata_status_t strata_curves_begin(size_t runs, strata_curves_t **curves) {
    strata_curves_t *made = strata_host_new(1, sizeof *made);
    if (!made) return STRATA_E_HOST_MEMORY;
    made->series = strata_host_new(runs + 1, sizeof *made->series);
    made->curves = strata_host_new(runs + 1, sizeof *made->curves);
    made->follows = strata_host_new(runs + 1, sizeof *made->follows);
    strata_status_t status = made->series && made->curves && made->follows ? STRATA_OK : STRATA_E_HOST_MEMORY;
    for (; made->runs < runs && status == STRATA_OK; made->runs++) {
        curve_t *curve = &made->curves[made->runs];
        curve->series = &made->series[made->runs];
        made->follows[made->runs] = (strata_run_follow_t){.row = add_row, .refused = add_refusal, .context = curve};
        status = strata_series_init(curve->series, COLUMNS, REACH);
    }
    if (status != STRATA_OK) {
        strata_curves_delete(made);
        return status;
    }
    *curves = made;
    return STRATA_OK;
}

void strata_curves_delete(strata_curves_t *curves) {
    if (!curves) return;
    for (size_t i = 0; i < curves->runs; i++) strata_series_destroy(&curves->series[i]);
    strata_host_delete(curves->series);
    strata_host_delete(curves->curves);
    strata_host_delete(curves->follows);
    strata_host_delete(curves);
}

strata_status_t strata_curves_reset(strata_curves_t *curves, size_t first, size_t count) {
    strata_status_t status = STRATA_OK;
    for (size_t i = first; i < first + count && status == STRATA_OK; i++) {
        strata_series_destroy(&curves->series[i]);
        status = strata_series_init(&curves->series[i], COLUMNS, REACH);
    }
    return status;
}

const strata_run_follow_t *strata_curves_follow(strata_curves_t *curves, size_t first, size_t count,
                                                const strata_run_follow_t *others) {
    for (size_t i = 0; i < count && others; i++) curves->curves[first + i].other = &others[i];
    return &curves->follows[first];
}

const strata_series_t *strata_curves_finish(strata_curves_t *curves, size_t first, size_t count) {
    for (size_t i = 0; i < count; i++) strata_series_finish(&curves->series[first + i]);
    return &curves->series[first];
}
