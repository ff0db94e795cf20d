#include "lab/replay/compare/compare.h"

#include <pthread.h>
#include <string.h>

#include "lab/replay/compare/jobs.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

#define STEP_BYTES ((uint64_t)2 << 20) /* the search for the minimum capacity ends here */

typedef struct reporter {
    const strata_comparison_t *comparison;
    const char *what;
    const char *label;
    uint64_t all;
} reporter_t;

/* Serializes the progress calls of concurrent runs. */
static void report_progress(void *context, uint64_t rows) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const reporter_t *reporter = context;
    pthread_mutex_lock(&lock);
    reporter->comparison->progress(reporter->comparison->progress_context, reporter->what, reporter->label, rows, reporter->all);
    pthread_mutex_unlock(&lock);
}

static strata_run_options_t options_of(const strata_comparison_t *comparison, const strata_candidate_t *candidate,
                                       reporter_t *reporter) {
    strata_run_options_t options = {.target = candidate->target, .timeline = comparison->timeline};
    if (comparison->progress) {
        options.progress = report_progress;
        options.progress_context = reporter;
    }
    return options;
}

static strata_status_t run_once(const strata_comparison_t *comparison, const strata_trace_t *trace,
                                const strata_candidate_t *candidate, const char *what, bool check,
                                const strata_run_follow_t *follow, strata_run_result_t *result) {
    reporter_t reporter = {.comparison = comparison, .what = what, .label = candidate->label, .all = trace->count};
    strata_run_options_t options = options_of(comparison, candidate, &reporter);
    options.check = check;
    options.follow = follow;
    return strata_run(trace, candidate->strategy, &options, result);
}

/* ---- the minimum capacity --------------------------------------------------------------------------------------------- */

static uint64_t whole_steps(uint64_t bytes) { return (bytes + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES; }

/* Replays under one capacity. *used is the peak that the device held, in whole steps, or 0 if the capacity is
 * too small. It is also too small if the open fails for lack of memory. */
static strata_status_t try_capacity(const strata_comparison_t *comparison, const strata_trace_t *trace,
                                    strata_candidate_t candidate, uint64_t capacity, uint64_t *used) {
    strata_run_result_t *result = strata_host_new(1, sizeof *result);
    if (!result) return STRATA_E_HOST_MEMORY;
    candidate.target.capacity = capacity;
    strata_status_t status = run_once(comparison, trace, &candidate, "smallest", false, NULL, result);
    bool serves = status == STRATA_OK && strata_figures_serve(&result->figures);
    *used = serves ? whole_steps(strata_max(result->figures.peak_device_used_bytes, 1)) : 0;
    strata_host_delete(result);
    return status == STRATA_E_NO_MEMORY ? STRATA_OK : status;
}

enum { FIRST_STEPS = 8 /* from the first try to the second */ };
#define FAR_ENOUGH_BYTES ((uint64_t)1 << 40) /* the search tries at least this capacity */

/* The largest capacity that is worth a try. A strategy that fails with 16 times the live bytes fails for another reason. */
static uint64_t largest_try(const strata_trace_t *trace, const strata_figures_t *figures) {
    uint64_t live = strata_min(trace->peak_requested, UINT64_MAX / 32);
    return strata_max(figures->capacity_bytes, strata_max(FAR_ENOUGH_BYTES, 16 * live));
}

static uint64_t overhead_of(const strata_figures_t *figures) {
    uint64_t used = strata_min(figures->peak_device_used_bytes, FAR_ENOUGH_BYTES);
    return used - strata_min(used, figures->peak_requested_bytes);
}

/* Finds a capacity that serves everything while 2 MiB less does not. Both were replayed.
 *
 * If the given capacity was enough, the first try is the peak that was used. Later tries double, because a
 * strategy may be limited to a share of the device and need more than it uses. Then the search is binary.
 *
 * If the given capacity was too small, the first try is the peak of the live bytes plus the overhead of the
 * failed run. Tries go up in steps that double. The peak that a successful replay used is tried next, because
 * it is mostly the answer. From there tries go down in steps that double. */
static strata_status_t search_smallest(const strata_comparison_t *comparison, const strata_trace_t *trace,
                                       const strata_candidate_t *candidate, strata_run_result_t *result) {
    const strata_figures_t *figures = &result->figures;
    uint64_t high, low = 0, most = largest_try(trace, figures); /* `low` is too small, `high` is enough */
    uint64_t below = STEP_BYTES, above = FIRST_STEPS * STEP_BYTES, used = 0;
    bool near = false, live = !strata_figures_serve(figures); /* near: the answer is probably just below `high` */
    if (figures->failed_operations > figures->oom_count) return STRATA_OK; /* more capacity does not help */
    if (!live) {
        high = whole_steps(strata_max(figures->peak_device_used_bytes, 1));
    } else {
        low = figures->capacity_bytes / STEP_BYTES * STEP_BYTES;
        if (low >= most / 2) return STRATA_OK;
        high = strata_max(low + STEP_BYTES, whole_steps(trace->peak_requested + overhead_of(figures)));
        near = true;
    }
    strata_status_t status = try_capacity(comparison, trace, *candidate, high, &used);
    while (status == STRATA_OK && used == 0 && high < most) {
        low = high;
        near = false;
        high = strata_min(most, high > UINT64_MAX / 4 ? most : live ? high + above : 2 * high);
        above *= 2;
        status = try_capacity(comparison, trace, *candidate, high, &used);
    }
    if (status != STRATA_OK || used == 0) return status;
    while (high - low > STEP_BYTES && status == STRATA_OK) {
        uint64_t half = strata_max((high - low) / STEP_BYTES / 2, 1) * STEP_BYTES;
        bool fits = live && low < used && used < high;
        uint64_t tried = fits ? used : near ? high - strata_min(below, half) : low + half;
        status = try_capacity(comparison, trace, *candidate, tried, &used);
        if (used > 0) {
            if (!fits) below *= 2;
            high = tried;
            near |= fits;
        } else {
            low = tried;
            near = false;
        }
    }
    if (status == STRATA_OK) result->needed_bytes = high;
    return status;
}

/* ---- all runs ---------------------------------------------------------------------------------------------------------- */

typedef struct all_runs {
    const strata_comparison_t *comparison;
    const strata_trace_t *trace;
    strata_trace_feed_t *feed; /* the source of rows until the whole trace is read */
    bool *done; /* by candidate: the feed has run its first repeat */
    strata_run_result_t *results;
    double *times; /* of each run, grouped by candidate */
} all_runs_t;

/* The first repeat fills the results. Every repeat adds its time, except a checked one, because its time
 * would include the checker's. */
static strata_status_t run_job(void *context, size_t job) {
    const all_runs_t *all = context;
    const strata_comparison_t *comparison = all->comparison;
    size_t repeat = job / comparison->candidate_count, i = job % comparison->candidate_count;
    bool first = repeat == 0;
    if (first && all->done && all->done[i]) return STRATA_OK;
    strata_run_result_t *scratch = first ? NULL : strata_host_new(1, sizeof *scratch);
    strata_run_result_t *result = first ? &all->results[i] : scratch;
    if (!result) return STRATA_E_HOST_MEMORY;
    const strata_run_follow_t *follow = first && comparison->follow ? &comparison->follow[i] : NULL;
    strata_status_t status = run_once(comparison, all->trace, &comparison->candidates[i], "replay", comparison->check && first,
                                      follow, result);
    double *times = all->times + i * comparison->repeat;
    if (!comparison->check) times[repeat] = result->host_ns_per_op;
    else if (repeat > 0) times[repeat - 1] = result->host_ns_per_op;
    strata_host_delete(scratch);
    return status;
}

static strata_status_t feed_job(void *context, size_t i) {
    const all_runs_t *all = context;
    const strata_comparison_t *comparison = all->comparison;
    const strata_candidate_t *candidate = &comparison->candidates[i];
    reporter_t reporter = {.comparison = comparison, .what = "replay", .label = candidate->label};
    strata_run_options_t options = options_of(comparison, candidate, &reporter);
    options.at_once = strata_min(comparison->threads, comparison->candidate_count);
    bool outgrown;
    strata_status_t status = strata_run_feed(all->feed, candidate->strategy, &options, &outgrown, &all->results[i]);
    all->done[i] = !outgrown;
    all->times[i * comparison->repeat] = all->results[i].host_ns_per_op;
    return status;
}

/* Returns true if this candidate has the fewest failed operations, or if --smallest asks for a search of all. */
static bool is_searched(const all_runs_t *all, size_t candidate) {
    uint64_t fewest = UINT64_MAX;
    if (all->comparison->smallest) return true;
    for (size_t i = 0; i < all->comparison->candidate_count; i++)
        fewest = strata_min(fewest, all->results[i].figures.failed_operations);
    return all->comparison->nearest && fewest > 0 && all->results[candidate].figures.failed_operations == fewest;
}

static strata_status_t search_job(void *context, size_t job) {
    const all_runs_t *all = context;
    strata_run_result_t *result = &all->results[job];
    if (!is_searched(all, job)) return STRATA_OK;
    strata_status_t status = search_smallest(all->comparison, all->trace, &all->comparison->candidates[job], result);
    if (all->comparison->smallest) result->figures.smallest_device_bytes = result->needed_bytes;
    return status;
}

static void finish_figures(const all_runs_t *all, size_t i) {
    const strata_comparison_t *comparison = all->comparison;
    const strata_candidate_t *candidate = &comparison->candidates[i];
    strata_figures_t *figures = &all->results[i].figures;
    figures->trace = strata_run_trace_name(all->trace);
    figures->label = candidate->label;
    figures->options = candidate->options;
    figures->device = all->results[i].device;
    figures->host_ns_per_op = strata_figure_spread(all->times + i * comparison->repeat, comparison->repeat - comparison->check);
    figures->smallest_device_bytes = all->results[i].needed_bytes = STRATA_FIGURE_NULL;
}

static strata_status_t check_devices(const strata_comparison_t *comparison) {
    for (size_t i = 0; i < comparison->candidate_count && comparison->smallest; i++)
        if (!comparison->candidates[i].target.profile)
            return strata_fail(STRATA_E_UNSUPPORTED, 0, "--smallest works only on simulated devices; write --device sim");
    return STRATA_OK;
}

static bool all_simulated(const strata_comparison_t *comparison) {
    bool all = true;
    for (size_t i = 0; i < comparison->candidate_count; i++) all = all && comparison->candidates[i].target.profile;
    return all;
}

/* There is only one real device. Concurrent runs share the stack numbers of the process. */
static size_t runs_at_once(const strata_comparison_t *comparison, const strata_trace_t *trace) {
    if (!all_simulated(comparison)) return 1;
    return strata_min(strata_min(comparison->threads, comparison->candidate_count), STRATA_RUN_STACKS / strata_run_stacks(trace));
}

static strata_status_t begin(all_runs_t *all) {
    const strata_comparison_t *comparison = all->comparison;
    strata_status_t status = check_devices(comparison);
    if (status != STRATA_OK) return status;
    all->times = strata_host_new(comparison->candidate_count * comparison->repeat, sizeof *all->times);
    return all->times ? STRATA_OK : STRATA_E_HOST_MEMORY;
}

static strata_status_t run_all(all_runs_t *all) {
    const strata_comparison_t *comparison = all->comparison;
    size_t candidates = comparison->candidate_count, threads = runs_at_once(comparison, all->trace);
    strata_status_t status = strata_jobs_run(candidates * comparison->repeat, threads, run_job, all);
    for (size_t i = 0; i < candidates && status == STRATA_OK; i++) finish_figures(all, i);
    bool search = comparison->smallest || (comparison->nearest && all_simulated(comparison));
    if (status == STRATA_OK && search) status = strata_jobs_run(candidates, threads, search_job, all);
    return status;
}

strata_status_t strata_compare(const strata_comparison_t *comparison, const strata_trace_t *trace, strata_run_result_t *results) {
    all_runs_t all = {.comparison = comparison, .trace = trace, .results = results};
    strata_status_t status = begin(&all);
    if (status == STRATA_OK) status = run_all(&all);
    strata_host_delete(all.times);
    return status;
}

/* ---- while the trace is still being read -------------------------------------------------------------------------------- */

bool strata_compare_may_feed(const strata_comparison_t *comparison) {
    return !comparison->check && !comparison->follow && all_simulated(comparison);
}

/* If there are fewer threads than candidates, the later runs start late and find all rows already read. */
static strata_status_t run_from_feed(all_runs_t *all) {
    const strata_comparison_t *comparison = all->comparison;
    strata_trace_t view = {.count = 0};
    bool end;
    strata_status_t status = strata_trace_feed_wait(all->feed, &view, &end);
    all->done = strata_host_new(comparison->candidate_count, sizeof *all->done);
    if (status != STRATA_OK || !all->done) return status == STRATA_OK ? STRATA_E_HOST_MEMORY : status;
    return strata_jobs_run(comparison->candidate_count, runs_at_once(comparison, &view), feed_job, all);
}

/* An error in the file takes precedence over a failed run of its first rows. */
static strata_status_t finish_feed(strata_trace_feed_t *feed, strata_status_t status, strata_trace_t **trace) {
    const strata_error_t kept = *strata_last_error();
    strata_status_t wrong = strata_trace_feed_finish(feed, trace);
    if (wrong != STRATA_OK || status == STRATA_OK) return wrong;
    return strata_fail_again(&kept);
}

strata_status_t strata_compare_feed(const strata_comparison_t *comparison, strata_trace_feed_t *feed, strata_trace_t **trace,
                                    strata_run_result_t *results) {
    all_runs_t all = {.comparison = comparison, .feed = feed, .results = results};
    *trace = NULL;
    strata_status_t status = begin(&all);
    if (status == STRATA_OK) status = run_from_feed(&all);
    status = finish_feed(feed, status, trace);
    all.trace = *trace;
    if (status == STRATA_OK) status = run_all(&all);
    strata_host_delete(all.times);
    strata_host_delete(all.done);
    return status;
}
