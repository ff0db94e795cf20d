/* The results of a replay. One table of fields generates the struct, the JSON, the printed table and docs/fields.md. */
#ifndef STRATA_REPLAY_FIGURES_H
#define STRATA_REPLAY_FIGURES_H

#include <stdio.h>

#include "platform/device.h"
#include "trace/text/output.h"

/* Each row is X(kind, name, unit, meaning). The kinds are:
 * - TEXT: a string.
 * - OPTIONS: path and value of each --set.
 * - COUNT, BYTES, US: whole numbers.
 * - MS, PART: decimal numbers.
 * - FLAG: true or false.
 * - CALLS: a count for each device call that is shown.
 * - SPREAD: {min, median, max}. */
#define STRATA_FIGURE_MAP(X)                                                                                                       \
    X(TEXT, trace, "", "trace file, with enough folders to be unique in the comparison")                                           \
    X(TEXT, label, "", "unique name of the candidate")                                                                             \
    X(TEXT, strategy, "", "name of the strategy")                                                                                  \
    X(OPTIONS, options, "", "values changed by --set, by path")                                                                    \
    X(TEXT, device, "", "device of the run")                                                                                       \
    X(BYTES, capacity_bytes, "bytes", "max device memory for the strategy; null if unlimited")                                     \
    X(US, gpu_lag_us, "us", "max delay of the GPU behind the host; null if the trace has work")                                    \
    X(COUNT, host_jitter, "", "seed of the modelled host delays; null without delays")                                             \
    X(FLAG, modelled, "",                                                                                                          \
      "true if figures depend on a model: of the driver's undocumented pools, or of a GPU without measurements")                   \
    X(COUNT, operations, "count",                                                                                                  \
      "allocator operations carried out: alloc, free, borrow, unborrow, step, release; "                                           \
      "rows of a failed allocation are skipped")                                                                                   \
    X(COUNT, failed_operations, "count", "failed operations, out-of-memory failures included")                                     \
    X(COUNT, oom_count, "count", "requests that failed for memory after all recovery")                                             \
    X(COUNT, recoveries, "count", "requests that ran recovery for memory, successful or not")                                      \
    X(COUNT, borrows_waited, "count", "borrows that no layer handles; their frees wait on the host")                               \
    X(COUNT, live_at_end, "count", "allocations that the trace never frees")                                                       \
    X(COUNT, pointer_changes, "count",                                                                                             \
      "allocations whose address differs from the previous step's, from the third step on. Counts successive steps with "          \
      "equal requests in equal order; null if there are none")                                                                     \
    X(BYTES, peak_requested_bytes, "bytes", "peak sum of requested bytes of live allocations")                                     \
    X(BYTES, peak_allocated_bytes, "bytes", "peak sum of their blocks, rounding included")                                         \
    X(BYTES, peak_reserved_bytes, "bytes", "peak sum of chunks from the device")                                                   \
    X(BYTES, mean_reserved_bytes, "bytes", "mean of that sum over the time of the trace's rows; null on a real device")            \
    X(BYTES, peak_device_used_bytes, "bytes", "peak physical memory in whole granules; null on a real device")                     \
    X(BYTES, pinned_requested_bytes, "bytes", "peak requested bytes of live pinned blocks; null if the trace has none")            \
    X(BYTES, pinned_reserved_bytes, "bytes", "peak reserved pinned memory; null if the trace has none")                            \
    X(BYTES, host_requested_bytes, "bytes", "peak requested bytes of live host blocks; null if the trace has none")                \
    X(BYTES, host_reserved_bytes, "bytes", "peak reserved host memory; null if the trace has none")                                \
    X(PART, fragmentation, "", "1 - allocated / reserved, at the first peak of reserved")                                          \
    X(CALLS, device_calls, "count", "device calls of the strategy, without the program's own waits")                               \
    X(MS, end_ms, "ms", "end of the program with all work done: the cost of a strategy to its user")                               \
    X(MS, device_call_ms, "ms", "time in the strategy's device calls, without waits (with them on a real device)")                 \
    X(MS, stall_ms, "ms", "host waits for the device inside the strategy; null on a real device")                                  \
    X(MS, steady_device_ms, "ms", "device_call_ms + stall_ms over the last third of the trace's rows")                             \
    X(BYTES, deferred_peak_bytes, "bytes",                                                                                         \
      "peak bytes freed by the caller but still used by a borrower, by the clock. Peaks of places and devices are added. "         \
      "Null on a real device")                                                                                                     \
    X(COUNT, deferred_frees, "count", "frees that had to wait for another stream")                                                 \
    X(SPREAD, host_ns_per_op, "ns",                                                                                                \
      "wall time of the allocator's own code per operation, without device calls and clock reads. Covers the repeats "             \
      "that --check does not observe; null if there are none. On a simulated device, runs of more than 65,536 rows time a sample") \
    X(COUNT, hazards, "count", "with --check: stream-safety faults found by the happens-before checker; else null")                \
    X(BYTES, smallest_device_bytes, "bytes",                                                                                       \
      "with --smallest: minimum capacity (to 2 MiB) without a failed operation; else null, or null if more capacity does not help")

#define STRATA_FIGURE_NULL UINT64_MAX /* no value, for COUNT, BYTES, US; MS, PART use NaN, and SPREAD a count of 0 */
enum { STRATA_FIGURE_REPEATS = 1000 };

typedef struct strata_figure_options {
    const char *const *set; /* "path=value" */
    size_t count;
} strata_figure_options_t;

typedef struct strata_figure_calls {
    uint64_t made[STRATA_DEVICE_CALLS];
} strata_figure_calls_t;

typedef struct strata_figure_spread {
    double min, median, max;
    size_t count; /* of repeats */
} strata_figure_spread_t;

/* Sorts the values. The median of an even number is the mean of the middle two. */
strata_figure_spread_t strata_figure_spread(double *values, size_t count);

typedef const char *strata_figure_TEXT_t;
typedef strata_figure_options_t strata_figure_OPTIONS_t;
typedef uint64_t strata_figure_COUNT_t;
typedef uint64_t strata_figure_BYTES_t;
typedef uint64_t strata_figure_US_t;
typedef double strata_figure_MS_t;
typedef double strata_figure_PART_t;
typedef bool strata_figure_FLAG_t;
typedef strata_figure_calls_t strata_figure_CALLS_t;
typedef strata_figure_spread_t strata_figure_SPREAD_t;

/* Strings are owned by the caller that sets them. */
typedef struct strata_figures {
#define STRATA_FIGURE_FIELD(kind, name, unit, meaning) strata_figure_##kind##_t name;
    STRATA_FIGURE_MAP(STRATA_FIGURE_FIELD)
#undef STRATA_FIGURE_FIELD
} strata_figures_t;

/* Returns true if every operation succeeded. */
static inline bool strata_figures_serve(const strata_figures_t *figures) { return figures->failed_operations == 0; }

/* Writes an array of runs as JSON: [{...}, ...]. */
strata_status_t strata_figures_json(strata_output_t *out, const strata_figures_t *runs, size_t count);
typedef struct strata_table_view {
    size_t columns; /* runs of each trace, at most 64 */
    size_t width; /* in characters, or 0 if unlimited; longer text is cut, and too many columns become several tables */
    bool searched; /* show the row of the minimum capacity even if none was found */
    /* for each run, the index within its trace of the run that represents it in the table; NULL if every run has a column */
    const size_t *stands_for;
} strata_table_view_t;
/* Prints a table for every `columns` runs, which belong to one trace, with one column per run. */
void strata_figures_table(FILE *out, const strata_figures_t *runs, size_t count, const strata_table_view_t *view);
/* Prints the page of the fields, docs/fields.md. */
void strata_figures_page(FILE *out);

#endif
