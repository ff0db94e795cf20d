/* Prints a line for each row of a run, with the address of its block and the held memory. */
#include <inttypes.h>

#include "lab/replay/stats/stats.h"

void strata_stats_sample(void *context, const strata_series_sample_t *sample) {
    strata_stats_t *stats = context;
    stats->sample = *sample;
}

/* A lifetime that was not served has no address. */
static void write_block(strata_output_t *out, const strata_run_block_t *block) {
    if (!block->address && !block->live) strata_output_print(out, " is not there");
    else
        strata_output_print(out, " at 0x%" PRIx64 ", %" PRIu64 " bytes%s", block->address, block->granted,
                            block->live ? "" : ", freed");
}

void strata_stats_step(void *context, const strata_run_moment_t *moment, bool chunks) {
    (void)chunks;
    strata_stats_t *stats = context;
    strata_output_t *out = stats->out;
    const strata_series_sample_t *sample = &stats->sample;
    const strata_trace_event_t *event = &moment->trace->events[moment->rows - 1];
    const strata_figures_t *figures = &moment->result->figures;
    strata_output_print(out, "%zu %s", moment->rows, strata_trace_op_name((strata_trace_op_t)event->op));
    if (event->id != STRATA_TRACE_NONE) {
        strata_run_block_t block = strata_run_block(moment, event->id);
        strata_output_print(out, " block %" PRIu32, event->id);
        write_block(out, &block);
    }
    if (figures->failed_operations)
        strata_output_print(out, " failed %" PRIu64 ", for memory %" PRIu64, figures->failed_operations, figures->oom_count);
    strata_output_print(out, " time %" PRIu64 " cost %" PRIu64, sample->time_ns, sample->cost_ns);
    for (int i = 0; i < STRATA_SERIES_CURVES; i++)
        strata_output_print(out, " %s %" PRIu64, strata_series_name((strata_series_curve_t)i), sample->low[i]);
    if (sample->high[STRATA_SERIES_reserved] != sample->low[STRATA_SERIES_reserved])
        strata_output_print(out, " reserved at most %" PRIu64, sample->high[STRATA_SERIES_reserved]);
    if (moment->rows % stats->steps == 0) strata_changes_write(&stats->changes, strata_facade_of(moment->facade), out);
    strata_output_print(out, "\n");
}
