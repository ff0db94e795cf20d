#include "replay/compare/compare.h"

#include <string.h>

#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

#define STEP_BYTES ((uint64_t)2 << 20) /* the search for the least capacity ends here */

typedef struct told {
    const strata_comparison_t *comparison;
    const char *what;
    const char *label;
    uint64_t all;
} told_t;

static void tell(void *context, uint64_t rows) {
    const told_t *told = context;
    told->comparison->progress(told->comparison->progress_context, told->what, told->label, rows, told->all);
}

static strata_status_t run_once(const strata_comparison_t *comparison, const strata_trace_t *trace,
                                const strata_contender_t *contender, const char *what, bool check,
                                const strata_run_follow_t *follow, strata_run_result_t *result) {
    told_t told = {.comparison = comparison, .what = what, .label = contender->label, .all = trace->count};
    strata_run_options_t options = {
        .target = contender->target, .timeline = comparison->timeline, .check = check, .follow = follow};
    if (comparison->progress) {
        options.progress = tell;
        options.progress_context = &told;
    }
    return strata_run(trace, contender->strategy, &options, result);
}

/* ---- the least capacity ------------------------------------------------------------------------------------------------ */

/* If the open already fails for memory, the capacity is too little. */
static strata_status_t serves(const strata_comparison_t *comparison, const strata_trace_t *trace, strata_contender_t contender,
                              uint64_t capacity, bool *enough) {
    strata_run_result_t *result = strata_host_new(1, sizeof *result);
    if (!result) return STRATA_E_HOST_MEMORY;
    contender.target.capacity = capacity;
    strata_status_t status = run_once(comparison, trace, &contender, "smallest", false, NULL, result);
    *enough = status == STRATA_OK && result->figures.failed_operations == 0;
    strata_host_delete(result);
    return status == STRATA_E_NO_MEMORY ? STRATA_OK : status;
}

/* The answer was replayed and served everything; with 2 MiB less, where the search looked, something failed. A strategy whose limit
 * is a share of the device needs more capacity than it uses: then more is tried, up to the capacity under which it served
 * everything. */
static strata_status_t search_smallest(const strata_comparison_t *comparison, const strata_trace_t *trace,
                                       const strata_contender_t *contender, strata_figures_t *figures) {
    uint64_t high, low = 0, most = figures->capacity_bytes; /* `low` is too little, in whole steps, `high` is enough */
    bool enough = false;
    if (figures->failed_operations > 0) return STRATA_OK;
    high = strata_max(figures->peak_device_used_bytes, STEP_BYTES);
    high = (high + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
    strata_status_t status = serves(comparison, trace, *contender, high, &enough);
    while (status == STRATA_OK && !enough && high < most) {
        low = high;
        high = high > most / 2 ? most : 2 * high;
        status = serves(comparison, trace, *contender, high, &enough);
    }
    if (status != STRATA_OK || !enough) return status;
    while (high - low > STEP_BYTES && status == STRATA_OK) {
        uint64_t middle = low + strata_max((high - low) / STEP_BYTES / 2, 1) * STEP_BYTES;
        status = serves(comparison, trace, *contender, middle, &enough);
        if (enough) {
            high = middle;
        } else {
            low = middle;
        }
    }
    if (status == STRATA_OK) figures->smallest_device_bytes = high;
    return status;
}

/* ---- repeats ----------------------------------------------------------------------------------------------------------- */

/* The first repeat gives the figures and each its time, except a checked one: the checker's own time would be in it. */
static strata_status_t run_repeats(const strata_comparison_t *comparison, const strata_trace_t *trace, strata_run_result_t *results,
                                   strata_run_result_t *scratch, double *times) {
    for (uint32_t repeat = 0; repeat < comparison->repeat; repeat++) {
        for (size_t i = 0; i < comparison->contender_count; i++) {
            const strata_contender_t *contender = &comparison->contenders[i];
            strata_run_result_t *result = repeat == 0 ? &results[i] : scratch;
            bool first = repeat == 0;
            const strata_run_follow_t *follow = first && comparison->follow ? &comparison->follow[i] : NULL;
            strata_status_t status = run_once(comparison, trace, contender, "replay", comparison->check && first, follow, result);
            if (status != STRATA_OK) return status;
            if (!comparison->check) times[i * comparison->repeat + repeat] = result->host_ns_per_op;
            else if (repeat > 0) times[i * comparison->repeat + repeat - 1] = result->host_ns_per_op;
        }
    }
    return STRATA_OK;
}

static strata_status_t check_devices(const strata_comparison_t *comparison) {
    for (size_t i = 0; i < comparison->contender_count && comparison->smallest; i++)
        if (!comparison->contenders[i].target.profile)
            return strata_fail(STRATA_E_UNSUPPORTED, 0,
                               "the least capacity is searched on simulated devices alone; write --device sim");
    return STRATA_OK;
}

strata_status_t strata_compare(const strata_comparison_t *comparison, const strata_trace_t *trace, strata_run_result_t *results) {
    strata_status_t status = check_devices(comparison);
    if (status != STRATA_OK) return status;
    double *times = strata_host_new(comparison->contender_count * comparison->repeat, sizeof *times);
    strata_run_result_t *scratch = strata_host_new(1, sizeof *scratch);
    status = times && scratch ? run_repeats(comparison, trace, results, scratch, times) : STRATA_E_HOST_MEMORY;
    for (size_t i = 0; i < comparison->contender_count && status == STRATA_OK; i++) {
        const strata_contender_t *contender = &comparison->contenders[i];
        strata_figures_t *figures = &results[i].figures;
        figures->trace = strata_run_trace_name(trace);
        figures->label = contender->label;
        figures->options = contender->options;
        figures->device = results[i].device;
        figures->host_ns_per_op = strata_figure_spread(times + i * comparison->repeat, comparison->repeat - comparison->check);
        figures->smallest_device_bytes = STRATA_FIGURE_NULL;
        if (comparison->smallest) status = search_smallest(comparison, trace, contender, figures);
    }
    strata_host_delete(times);
    strata_host_delete(scratch);
    return status;
}
