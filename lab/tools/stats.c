/* strata stats: prints the state of a strategy at a row of a trace. */
#include <stdio.h>

#include "lab/replay/stats/stats.h"
#include "lab/tools/options/candidates.h"
#include "lab/tools/screen/notes.h"
#include "lab/tools/screen/terminal.h"
#include "platform/host/host_memory.h"

typedef struct session {
    strata_arguments_t arguments;
    strata_candidates_t candidates;
    strata_trace_t *trace;
    strata_run_result_t result;
} session_t;

static strata_status_t load(session_t *session) {
    strata_status_t status = strata_candidates_load(&session->arguments, &session->candidates);
    if (status == STRATA_OK) status = strata_trace_load(strata_arguments_trace(&session->arguments, 0), &session->trace);
    if (status != STRATA_OK) return status;
    size_t rows = session->trace->count;
    if (rows == 0) return strata_fail(STRATA_E_FORMAT, 0, "%s: the trace has no rows", session->trace->path);
    if (session->arguments.at > rows)
        return strata_fail(STRATA_E_INVALID, 0, "--at %zu: %s has %zu rows; write 1 to %zu, peak or end", session->arguments.at,
                           session->trace->path, rows, rows);
    return STRATA_OK;
}

static void ignore_row(void *context, const strata_series_sample_t *sample) {
    (void)context;
    (void)sample;
}

static strata_status_t run(session_t *session, size_t rows, strata_stats_t *stats) {
    const strata_candidate_t *candidate = &session->candidates.all[0];
    bool steps = stats && stats->steps;
    strata_run_follow_t follow = {.row = steps ? strata_stats_sample : ignore_row,
                                  .refused = strata_stats_refused,
                                  .moment = steps ? strata_stats_step : NULL,
                                  .context = stats};
    strata_run_options_t options = {
        .target = candidate->target,
        .timeline = {.lag_ns = session->arguments.lag_ns, .legacy_default = session->arguments.legacy_default},
        .rows = rows,
        .inspect = stats ? strata_stats_write : NULL,
        .inspect_context = stats,
        .follow = stats ? &follow : NULL,
    };
    return strata_run(session->trace, candidate->strategy, &options, &session->result);
}

/* A replay is deterministic, so the second run stops at the row that the first one found. */
static strata_status_t find_row(session_t *session, size_t *row) {
    const strata_arguments_t *arguments = &session->arguments;
    *row = arguments->at_end ? session->trace->count : arguments->at;
    if (*row) return STRATA_OK;
    strata_status_t status = run(session, 0, NULL);
    if (status != STRATA_OK) return status;
    *row = session->result.peak_row;
    if (*row) return STRATA_OK;
    return strata_fail(STRATA_E_INVALID, 0, "--at peak: %s reserves no device memory; write --at end, or a row",
                       session->trace->path);
}

/* Reading is complete, so E_IO can only be from writing. */
static int print_stats(session_t *session, size_t row) {
    const strata_arguments_t *arguments = &session->arguments;
    strata_stats_t stats = {.blocks = arguments->blocks,
                            .steps = arguments->steps,
                            .width = strata_terminal_width(0),
                            .form = arguments->json         ? STRATA_STATS_JSON
                                    : arguments->prometheus ? STRATA_STATS_PROMETHEUS
                                                            : STRATA_STATS_TABLE};
    strata_status_t status = strata_output_open("-", &stats.out);
    if (status == STRATA_OK) status = run(session, row, &stats);
    strata_host_delete(stats.refused);
    if (status == STRATA_OK) status = stats.status;
    if (status == STRATA_OK) return strata_check_written(strata_output_finish(stats.out));
    strata_output_abandon(stats.out);
    return status == STRATA_E_IO ? strata_check_written(status) : strata_print_failure();
}

static int end(session_t *session, int exit_status) {
    const strata_figures_t *figures = &session->result.figures;
    if (exit_status == STRATA_EXIT_DONE && figures->failed_operations != figures->oom_count) {
        fprintf(stderr, "strata: %s\n", session->result.first_failure);
        exit_status = STRATA_EXIT_FAILED;
    }
    if (*session->result.ended.close_error) {
        fprintf(stderr, "strata: at the close: %s\n", session->result.ended.close_error);
        if (exit_status == STRATA_EXIT_DONE) exit_status = STRATA_EXIT_FAILED;
    }
    if (session->trace && session->candidates.count > 0)
        strata_unmatched_print(session->candidates.all[0].label, session->candidates.all[0].strategy, session->trace);
    if (session->result.work_left_out)
        fprintf(stderr, "strata: %s cannot run the work of a trace; kernels are left out\n", session->result.device);
    strata_trace_delete(session->trace);
    strata_candidates_delete(&session->candidates);
    return exit_status;
}

static int run_stats(const strata_command_t *self, int argc, char **argv) {
    static session_t session; /* too large for a stack */
    int exit_status = strata_arguments_read(self, argc, argv, &session.arguments);
    if (exit_status != STRATA_EXIT_DONE) return exit_status;
    size_t row = 0;
    strata_status_t status = load(&session);
    if (status == STRATA_OK) status = find_row(&session, &row);
    return end(&session, status == STRATA_OK ? print_stats(&session, row) : strata_print_failure());
}

const strata_command_t strata_command_stats = {
    .name = "stats",
    .run = run_stats,
    .words = "TRACE",
    .help = "prints the memory of every place, stream and layer at a row of a trace",
    .options = strata_stats_options,
    .example = "--device sim:h100 --strategy mine.yaml --at 1200 run.csv.gz",
    .more = "Replays the trace up to a row. If requests failed for lack of memory, the first report is above the table. The command "
            "strata layers NAME explains the figures of a layer, and strata.h all others.\n"
            "\n"
            "Exit status: 0 done (out-of-memory is reported); 1 another operation failed; 2 wrong usage, strategy or trace, or "
            "the strategy cannot be opened for lack of memory."};
