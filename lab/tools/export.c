/* strata export: writes a run of a trace under a strategy as a file for other tools. */
#include <stdio.h>
#include <string.h>

#include "lab/replay/export/counters.h"
#include "lab/replay/export/snapshot.h"
#include "lab/tools/options/candidates.h"
#include "lab/tools/screen/notes.h"
#include "lab/tools/screen/report_file.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

enum { SAMPLES = 4000 }; /* about as many as a picture can show */

typedef enum kind { KIND_SNAPSHOT, KIND_CHROME, KIND_CSV, KIND_NONE } kind_t;

typedef struct session {
    strata_arguments_t arguments;
    strata_candidates_t candidates;
    strata_trace_t *trace;
    strata_output_t *out;
    strata_run_result_t result;
} session_t;

static kind_t kind_of(const char *path) {
    static const struct {
        const char *ending;
        kind_t kind;
    } endings[] = {{".pickle", KIND_SNAPSHOT}, {".pickle.gz", KIND_SNAPSHOT}, {".json", KIND_CHROME}, {".json.gz", KIND_CHROME},
                   {".csv", KIND_CSV},         {".csv.gz", KIND_CSV}};
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t wanted = strlen(endings[i].ending);
        if (length > wanted && strcmp(path + length - wanted, endings[i].ending) == 0) return endings[i].kind;
    }
    return KIND_NONE;
}

/* Returns the first bytes of such a file if this command wrote it. */
static const char *mark_of(kind_t kind) {
    switch (kind) {
    case KIND_SNAPSHOT: return "\x80\x04}(X\x08";
    case KIND_CHROME: return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":1";
    default: return "row,time_us,";
    }
}

static strata_status_t run(session_t *session, const strata_run_follow_t *follow, strata_run_inspect_fn look, void *context) {
    const strata_candidate_t *candidate = &session->candidates.all[0];
    strata_run_options_t options = {
        .target = candidate->target,
        .timeline = {.lag_ns = session->arguments.lag_ns, .legacy_default = session->arguments.legacy_default},
        .follow = follow,
        .inspect = look,
        .inspect_context = context,
    };
    return strata_run(session->trace, candidate->strategy, &options, &session->result);
}

static void ignore_row(void *context, const strata_series_sample_t *sample) {
    (void)context;
    (void)sample;
}

/* The entries are the first member, so the file is the context of both. */
static strata_status_t write_snapshot(session_t *session) {
    strata_snapshot_file_t file = {.out = session->out, .strategy = session->candidates.all[0].label};
    strata_run_follow_t follow = {
        .row = ignore_row, .refused = strata_entries_refused, .moment = strata_entries_moment, .context = &file.entries};
    strata_status_t status = strata_entries_begin(&file.entries, session->trace);
    if (status == STRATA_OK) status = run(session, &follow, strata_snapshot_write, &file);
    if (status == STRATA_OK) status = file.status;
    strata_entries_end(&file.entries);
    return status;
}

static strata_status_t write_counters(session_t *session, strata_counters_form_t form) {
    strata_counters_t counters = {.form = form,
                                  .out = session->out,
                                  .label = session->candidates.all[0].label,
                                  .every = strata_max(session->trace->count / SAMPLES, 1)};
    strata_run_follow_t follow = {
        .row = strata_counters_row, .refused = strata_counters_refused, .moment = strata_counters_moment, .context = &counters};
    strata_status_t status = run(session, &follow, NULL, NULL);
    strata_counters_finish(&counters);
    return status == STRATA_OK ? counters.status : status;
}

static strata_status_t write_file(session_t *session, kind_t kind) {
    if (kind == KIND_SNAPSHOT) return write_snapshot(session);
    return write_counters(session, kind == KIND_CHROME ? STRATA_COUNTERS_CHROME : STRATA_COUNTERS_CSV);
}

static int export(session_t *session, const char *to, kind_t kind) {
    strata_arguments_t *arguments = &session->arguments;
    const char *from = strata_arguments_trace(arguments, 0);
    strata_status_t status = strata_candidates_load(arguments, &session->candidates);
    if (status == STRATA_OK) status = strata_trace_load(from, &session->trace);
    if (status == STRATA_OK && session->trace->count == 0)
        status = strata_fail(STRATA_E_FORMAT, 0, "%s: the trace has no rows", session->trace->path);
    if (status == STRATA_OK) status = strata_marked_open(to, "OUT", mark_of(kind), &session->out);
    if (status == STRATA_E_IO && session->trace) return strata_check_written(status);
    if (status != STRATA_OK) return strata_print_failure();
    strata_notes_print(session->trace->path, session->trace->format, &session->trace->notes);
    if (write_file(session, kind) != STRATA_OK) return strata_print_failure();
    strata_output_t *out = session->out;
    session->out = NULL;
    int written = strata_check_written(strata_output_finish(out));
    if (written == STRATA_EXIT_DONE)
        printf("%s: %s on %s, %zu rows\n", to, session->candidates.all[0].label, session->trace->path, session->trace->count);
    return written;
}

static int run_export(const strata_command_t *self, int argc, char **argv) {
    static session_t session; /* too large for a stack */
    int status = strata_arguments_read(self, argc, argv, &session.arguments);
    if (status != STRATA_EXIT_DONE) return status;
    if (session.arguments.given_count != 2) return strata_usage_error(self, "needs a trace and the file to write: TRACE OUT");
    const char *to = session.arguments.given[1];
    kind_t kind = kind_of(to);
    if (kind == KIND_NONE)
        return strata_usage_error(
            self, "%.200s: unknown file type; the name must end in .pickle, .json or .csv, or in one of them and .gz", to);
    status = export(&session, to, kind);
    strata_output_abandon(session.out);
    strata_trace_delete(session.trace);
    strata_candidates_delete(&session.candidates);
    return status;
}

const strata_command_t strata_command_export = {
    .name = "export",
    .run = run_export,
    .words = "TRACE OUT",
    .help = "exports the memory of a strategy on a trace to other tools",
    .options = strata_export_options,
    .example = "--device sim:h100 --strategy mine.yaml run.csv.gz mine.pickle",
    .more = "Replays the trace, or a record of another tool, under one strategy. The name of OUT selects the format; a file with "
            ".gz at the end is compressed:\n"
            "\n"
            ".pickle: a memory snapshot of PyTorch, for its memory_viz.\n"
            "\n"
            ".json: counters of memory and of every layer over time, for Perfetto and Chrome.\n"
            "\n"
            ".csv: memory over time.\n"
            "\n"
            "Exit status: 0 done, 1 OUT was not written, 2 wrong usage, strategy or trace."};
