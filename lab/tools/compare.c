/* The commands that replay traces. strata compare prints a table of several strategies, strata replay does it
 * for one, and strata report writes a page. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "config/words.h"
#include "lab/tools/curves.h"
#include "lab/tools/draw.h"
#include "lab/tools/findings.h"
#include "lab/tools/options/defaults.h"
#include "lab/tools/page.h"
#include "lab/tools/screen/notes.h"
#include "lab/tools/screen/report_file.h"
#include "lab/tools/screen/shell.h"
#include "lab/tools/screen/terminal.h"
#include "platform/host/host_memory.h"

enum { VERDICT_WIDTH = 110 /* characters per line if the width is unknown */ };

typedef struct session {
    strata_arguments_t arguments;
    strata_candidates_t candidates;
    strata_trace_t **traces;
    strata_trace_feed_t *feed; /* in place of the only trace, until it is read */
    strata_run_result_t *results; /* by trace, then by candidate */
    strata_figures_t *figures;
    strata_curves_t *curves; /* by trace, then by candidate; NULL if no curves are drawn */
    strata_output_t *json; /* open from before the first replay; NULL if there is none, or it is written */
    strata_page_file_t page;
    bool only_page; /* write the page instead of a table */
    char *command; /* as a shell command line */
    strata_findings_t findings;
    strata_trace_error_t *errors; /* traces that were left out; capacity for all traces */
} session_t;

/* ---- progress, on a terminal ------------------------------------------------------------------------------------------- */

#define PROGRESS_EVERY_NS UINT64_C(100000000)

static void show_progress(void *context, const char *what, const char *label, uint64_t done, uint64_t all) {
    static uint64_t next;
    uint64_t now = strata_real_now();
    (void)context;
    if (now < next) return;
    next = now + PROGRESS_EVERY_NS;
    fprintf(stderr, "\r\033[K%s %s: %llu", what, label, (unsigned long long)done);
    if (all > 0) fprintf(stderr, " of %llu", (unsigned long long)all);
    fprintf(stderr, " rows");
}

static void end_progress(void) {
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r\033[K");
}

/* ---- the work ---------------------------------------------------------------------------------------------------------- */

static strata_comparison_t comparison_of(const session_t *session) {
    const strata_arguments_t *arguments = &session->arguments;
    return (strata_comparison_t){
        .candidates = session->candidates.all,
        .candidate_count = session->candidates.count,
        .timeline = {.lag_ns = arguments->lag_ns, .legacy_default = arguments->legacy_default},
        .repeat = (uint32_t)arguments->repeat,
        .threads = (uint32_t)arguments->jobs,
        .check = arguments->check,
        .smallest = arguments->smallest,
        .nearest = session->candidates.count > 1 || arguments->report,
        .progress = isatty(STDERR_FILENO) ? show_progress : NULL,
    };
}

/* A second thread, and room for rows that follow, need twice the addresses. */
static bool has_few_addresses(void) {
    struct rlimit all, data;
    bool limited = getrlimit(RLIMIT_AS, &all) == 0 && all.rlim_cur != RLIM_INFINITY;
    return limited || (getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_cur != RLIM_INFINITY);
}

/* A single trace is replayed while it is read, if only figures are requested. Several traces are read before
 * the first is replayed, so that an invalid one is reported at once. */
static bool may_feed(const session_t *session) {
    const strata_arguments_t *arguments = &session->arguments;
    const strata_comparison_t comparison = comparison_of(session);
    bool figures_alone = !arguments->curve && !arguments->report;
    if (has_few_addresses() || arguments->keep_going) return false;
    return figures_alone && session->candidates.count > 0 && arguments->trace_count == 1 && strata_compare_may_feed(&comparison);
}

/* The line about reading remains until the first rows are replayed. */
static strata_status_t begin_feed(session_t *session) {
    const char *path = strata_arguments_trace(&session->arguments, 0);
    strata_reading_begin(path);
    strata_status_t status = strata_trace_feed_begin(path, &session->feed);
    if (status != STRATA_OK) strata_reading_end();
    return status;
}

/* Finishes a feed that will not be replayed. Returns the error of an invalid trace. */
static strata_status_t end_feed(session_t *session) {
    if (!session->feed) return STRATA_OK;
    strata_status_t status = strata_trace_feed_finish(session->feed, &session->traces[0]);
    session->feed = NULL;
    strata_reading_end();
    return status;
}

/* Reports an invalid trace and continues without it. */
static void drop_trace(session_t *session, size_t index) {
    strata_arguments_t *arguments = &session->arguments;
    strata_trace_error_t *error = &session->errors[session->findings.error_count++];
    error->path = strata_arguments_trace(arguments, index);
    error->error = *strata_last_error();
    end_progress();
    (void)strata_print_failure();
    strata_trace_delete(session->traces[index]);
    memmove(session->traces + index, session->traces + index + 1, (arguments->trace_count - index) * sizeof *session->traces);
    strata_arguments_drop_trace(arguments, index);
}

static strata_status_t load_whole(session_t *session) {
    for (size_t i = 0; i < session->arguments.trace_count;) {
        const char *path = strata_arguments_trace(&session->arguments, i);
        strata_reading_begin(path);
        strata_status_t status = strata_trace_load(path, &session->traces[i]);
        strata_reading_end();
        if (status != STRATA_OK && !session->arguments.keep_going) return status;
        if (status != STRATA_OK) {
            drop_trace(session, i);
            continue;
        }
        const strata_trace_t *trace = session->traces[i++];
        strata_notes_print(trace->path, trace->format, &trace->notes);
    }
    return STRATA_OK;
}

static strata_status_t load_traces(session_t *session) {
    session->traces = strata_host_new(session->arguments.trace_count + 1, sizeof *session->traces);
    session->errors = strata_host_new(session->arguments.trace_count + 1, sizeof *session->errors);
    if (!session->traces || !session->errors) return STRATA_E_HOST_MEMORY;
    return may_feed(session) ? begin_feed(session) : load_whole(session);
}

static strata_status_t begin_curves(session_t *session, size_t runs) {
    return session->arguments.curve ? strata_curves_begin(runs, &session->curves) : STRATA_OK;
}

static void draw_curves(session_t *session) {
    size_t candidates = session->candidates.count;
    for (size_t i = 0; session->curves && i < session->arguments.trace_count; i++)
        strata_draw_curves(&session->candidates, session->traces[i], session->results + i * candidates,
                           session->findings.stands_for + i * candidates,
                           strata_curves_finish(session->curves, i * candidates, candidates));
}

/* Returns the name within the printable path, which is as long as the given one. */
static const char *trace_name(const session_t *session, size_t index) {
    size_t folders = (size_t)(strata_arguments_trace_name(&session->arguments, index) -
                              strata_arguments_trace(&session->arguments, index));
    return session->traces[index]->path + folders;
}

/* Runs one trace. The page and the curves follow its runs. */
static strata_status_t run_trace(session_t *session, strata_comparison_t *comparison, size_t index) {
    size_t candidates = session->candidates.count, first = index * candidates;
    if (session->page.out) comparison->follow = strata_page_follow(&session->page.page, index, session->traces[index]);
    if (session->curves) comparison->follow = strata_curves_follow(session->curves, first, candidates, comparison->follow);
    return strata_compare(comparison, session->traces[index], session->results + first);
}

/* Deletes the partial results of a trace if one of its runs failed. */
static strata_status_t forget_trace(session_t *session, size_t index) {
    size_t candidates = session->candidates.count;
    strata_status_t status = STRATA_OK;
    if (session->page.out) status = strata_page_drop_trace(&session->page.page, index);
    if (session->curves && status == STRATA_OK) status = strata_curves_reset(session->curves, index * candidates, candidates);
    return status;
}

static strata_status_t run_loaded(session_t *session, strata_comparison_t *comparison) {
    strata_status_t status = begin_curves(session, session->candidates.count * session->arguments.trace_count);
    for (size_t i = 0; i < session->arguments.trace_count && status == STRATA_OK;) {
        status = run_trace(session, comparison, i);
        if (status == STRATA_OK) {
            i++;
        } else if (session->arguments.keep_going) {
            drop_trace(session, i);
            status = forget_trace(session, i);
        }
    }
    end_progress();
    return status;
}

static strata_status_t run_fed(session_t *session, const strata_comparison_t *comparison) {
    strata_trace_feed_t *feed = session->feed;
    session->feed = NULL;
    strata_status_t status = strata_compare_feed(comparison, feed, &session->traces[0], session->results);
    const strata_trace_t *trace = session->traces[0];
    end_progress();
    if (trace) strata_notes_print(trace->path, trace->format, &trace->notes);
    return status;
}

/* Makes the findings: the verdicts and, if they are written to a file, their provenance. */
static strata_status_t find(session_t *session) {
    strata_findings_t *findings = &session->findings;
    findings->runs = session->figures;
    findings->candidates = session->candidates.count;
    findings->traces = session->arguments.trace_count;
    findings->errors = session->errors;
    findings->searched = session->arguments.smallest;
    strata_status_t status = strata_findings_make(&session->arguments, &session->candidates, session->traces, session->results,
                                                  findings);
    bool written = session->json || session->page.out;
    if (status != STRATA_OK || !written) return status;
    return strata_findings_add_provenance(&session->arguments, &session->candidates, session->command, findings);
}

static strata_status_t run_all(session_t *session) {
    size_t candidates = session->candidates.count, runs = candidates * session->arguments.trace_count;
    strata_comparison_t comparison = comparison_of(session);
    session->results = strata_host_new(runs + 1, sizeof *session->results);
    session->figures = strata_host_new(runs + 1, sizeof *session->figures);
    if (!session->results || !session->figures) return STRATA_E_HOST_MEMORY;
    strata_status_t status = session->feed ? run_fed(session, &comparison) : run_loaded(session, &comparison);
    runs = candidates * session->arguments.trace_count; /* some traces may have been left out */
    for (size_t i = 0; i < runs && status == STRATA_OK; i++) {
        session->results[i].figures.trace = trace_name(session, i / candidates);
        session->figures[i] = session->results[i].figures;
    }
    return status == STRATA_OK ? find(session) : status;
}

static strata_status_t open_json(session_t *session) {
    return session->arguments.json ? strata_report_open(session->arguments.json, &session->json) : STRATA_OK;
}

static strata_status_t write_json(session_t *session) {
    strata_output_t *out = session->json;
    session->json = NULL;
    strata_findings_json(out, &session->findings);
    return strata_output_finish(out);
}

/* Prints the first operation of each run that failed for another reason than memory. */
static int print_failed_operations(const session_t *session, size_t runs) {
    int status = STRATA_EXIT_DONE;
    for (size_t i = 0; i < runs; i++) {
        const strata_figures_t *figures = &session->figures[i];
        if (figures->failed_operations == figures->oom_count) continue;
        fprintf(stderr, "strata: %s: %s\n", figures->label, session->results[i].first_failure);
        status = STRATA_EXIT_FAILED;
    }
    return status;
}

/* Prints the first hazards of each run, and their number. */
static int print_hazards(const session_t *session, size_t runs) {
    int status = STRATA_EXIT_DONE;
    for (size_t i = 0; i < runs; i++) {
        const strata_figures_t *figures = &session->figures[i];
        if (figures->hazards == STRATA_FIGURE_NULL || figures->hazards == 0) continue;
        fprintf(stderr, "strata: %s: %s: %llu hazards; the first:\n%s", figures->trace, figures->label,
                (unsigned long long)figures->hazards, session->results[i].first_hazards);
        status = STRATA_EXIT_FAILED;
    }
    return status;
}

/* Prints the errors at the end of each run. */
static int print_ends(const session_t *session, size_t runs) {
    int status = STRATA_EXIT_DONE;
    for (size_t i = 0; i < runs; i++) {
        const strata_figures_t *figures = &session->figures[i];
        const strata_run_ended_t *ended = &session->results[i].ended;
        const struct {
            const char *what, *text;
        } told[] = {{"a layer is inconsistent at the end", ended->unsound},
                    {"not returned to the device", ended->leaked},
                    {"at the close", ended->close_error}};
        for (size_t k = 0; k < sizeof told / sizeof *told; k++) {
            if (!*told[k].text) continue;
            fprintf(stderr, "strata: %s: %s: %s: %s\n", figures->trace, figures->label, told[k].what, told[k].text);
            status = STRATA_EXIT_FAILED;
        }
    }
    return status;
}

static void print_unmatched(const session_t *session) {
    for (size_t i = 0; i < session->arguments.trace_count; i++)
        for (size_t k = 0; k < session->candidates.count; k++)
            strata_unmatched_print(session->candidates.all[k].label, session->candidates.all[k].strategy, session->traces[i]);
}

static void print_work_left_out(const session_t *session, size_t runs) {
    for (size_t i = 0; i < runs; i++) {
        if (!session->results[i].work_left_out) continue;
        fprintf(stderr, "strata: %s cannot run the work of a trace; kernels are left out\n", session->results[i].device);
        return;
    }
}

/* Draws the maps after the tables, trace by trace. */
static strata_status_t draw(const session_t *session) {
    size_t candidates = session->candidates.count;
    strata_status_t status = STRATA_OK;
    for (size_t i = 0; i < session->arguments.trace_count && status == STRATA_OK; i++)
        status = strata_draw_candidates(&session->arguments, &session->candidates, session->traces[i],
                                        session->results + i * candidates, session->findings.stands_for + i * candidates);
    return status;
}

static void print_table(const session_t *session) {
    const strata_findings_t *findings = &session->findings;
    const strata_table_view_t view = {.columns = findings->candidates,
                                      .width = strata_terminal_width(0),
                                      .searched = findings->searched,
                                      .stands_for = findings->stands_for};
    strata_figures_table(stdout, findings->runs, findings->candidates * findings->traces, &view);
}

/* A single strategy gets no verdict below its table. The command to run next is not wrapped, so that it can be pasted. */
static void print_verdicts(const session_t *session) {
    const strata_findings_t *findings = &session->findings;
    size_t width = strata_terminal_width(VERDICT_WIDTH);
    for (size_t i = 0; findings->candidates > 1 && i < findings->traces; i++) {
        putchar('\n');
        strata_print_wrapped(stdout, findings->verdicts[i].text, 0, width);
        if (findings->next[i]) printf("%s\n", findings->next[i]);
    }
}

/* E_IO can only be from writing. */
static int write_page(session_t *session) {
    strata_status_t status = strata_page_file_write(&session->page, &session->arguments, &session->candidates, session->results,
                                                    &session->findings);
    if (status == STRATA_OK) return STRATA_EXIT_DONE;
    return status == STRATA_E_IO ? strata_check_written(status) : strata_print_failure();
}

static void print_page(const session_t *session) {
    size_t strategies = session->candidates.count, traces = session->arguments.trace_count;
    printf("%s: %zu strateg%s on %zu trace%s\n", session->arguments.report, strategies, strategies == 1 ? "y" : "ies", traces,
           traces == 1 ? "" : "s");
}

static int report(session_t *session) {
    size_t runs = session->candidates.count * session->arguments.trace_count;
    const char *json = session->arguments.json;
    bool table = !session->only_page && (!json || json[0] != '-' || json[1]);
    int written = write_page(session);
    if (written != STRATA_EXIT_DONE) return written;
    if (session->only_page && session->arguments.trace_count > 0) print_page(session);
    if (table) print_table(session);
    if (json && strata_check_written(write_json(session)) != STRATA_EXIT_DONE) return STRATA_EXIT_FAILED;
    print_work_left_out(session, runs);
    print_unmatched(session);
    if (session->arguments.draw && draw(session) != STRATA_OK) return strata_print_failure();
    if (table) draw_curves(session);
    if (table) print_verdicts(session);
    int hazards = print_hazards(session, runs), failed = print_failed_operations(session, runs), ends = print_ends(session, runs);
    if (failed == STRATA_EXIT_DONE) failed = ends;
    if (session->findings.error_count > 0) failed = STRATA_EXIT_FAILED;
    return failed != STRATA_EXIT_DONE ? failed : hazards;
}

/* An invalid trace is reported before a file that cannot be written. A pipe is not waited for, because it may never end. */
static int print_unopened(session_t *session, strata_status_t status) {
    strata_error_t reason = *strata_last_error();
    bool ends = session->feed && strata_trace_feed_expected(session->feed) > 0;
    if (ends && end_feed(session) != STRATA_OK) return strata_print_failure();
    end_progress();
    (void)strata_fail_again(&reason);
    return status == STRATA_E_INVALID ? strata_print_failure() : strata_check_written(status);
}

/* A comparison may take hours, so a JSON file that cannot be written is reported before it begins. */
static int compare(session_t *session) {
    strata_status_t status = open_json(session);
    bool nothing = session->arguments.trace_count == 0 && session->findings.error_count > 0; /* the JSON has the errors */
    if (status == STRATA_OK && !nothing)
        status = strata_page_file_open(&session->page, &session->arguments, session->candidates.count);
    if (status != STRATA_OK) return print_unopened(session, status);
    if (run_all(session) == STRATA_OK) return report(session);
    end_progress();
    return strata_print_failure();
}

static void session_end(session_t *session) {
    strata_curves_delete(session->curves);
    strata_output_abandon(session->json);
    strata_page_file_end(&session->page);
    (void)end_feed(session);
    for (size_t i = 0; session->traces && i < session->arguments.trace_count; i++) strata_trace_delete(session->traces[i]);
    strata_host_delete(session->traces);
    strata_host_delete(session->results);
    strata_host_delete(session->figures);
    strata_findings_end(&session->findings);
    strata_host_delete(session->errors);
    strata_host_delete(session->command);
    strata_candidates_delete(&session->candidates);
}

/* If no strategy is named, the format of the first trace determines them. */
static strata_status_t load(session_t *session) {
    strata_arguments_t *arguments = &session->arguments;
    bool named = arguments->strategy_count > 0;
    strata_status_t status = named ? strata_candidates_load(arguments, &session->candidates) : load_traces(session);
    if (status != STRATA_OK || named) return status == STRATA_OK ? load_traces(session) : status;
    arguments->curve = true;
    strata_arguments_default(arguments, arguments->trace_count ? session->traces[0]->format : "trace");
    return strata_candidates_load(arguments, &session->candidates);
}

static int run_compare(const strata_command_t *self, int argc, char **argv) {
    static session_t session; /* too large for a stack */
    strata_status_t status = strata_shell_line(self->name, argc, argv,
                                               &session.command); /* before parsing reorders the arguments */
    int exit_status = status == STRATA_OK ? strata_arguments_read(self, argc, argv, &session.arguments) : strata_print_failure();
    if (exit_status != STRATA_EXIT_DONE) {
        strata_host_delete(session.command);
        return exit_status;
    }
    session.only_page = self->options == strata_report_options;
    status = load(&session);
    exit_status = status == STRATA_OK ? compare(&session) : strata_print_failure();
    session_end(&session);
    return exit_status;
}

static const char more[] =
    "Replays each trace under each strategy and prints a table, as wide as COLUMNS or the terminal. It also reads records of "
    "other tools: a memory snapshot of PyTorch, a trace of torch.profiler, a log of RMM or Umpire (strata help convert).\n"
    "\n"
    "The verdict follows the table. The best strategy serves every request, its program ends within 1 % of the earliest, and among "
    "these it has the lowest peak of device memory. Ties prefer strata. If no strategy serves every request, the verdict names the "
    "nearest one and the capacity that it needs. Strategies with equal stacks for the trace share a column. The last line is a "
    "command that shows the memory of the best strategy.\n"
    "\n"
    "Exit status: 0 done (out-of-memory is in the table); 1 another operation failed, a hazard was found, or --keep-going left a trace "
    "out; 2 wrong usage, strategy or trace, or a strategy cannot be opened for lack of memory (preallocate), and nothing is compared.";

const strata_command_t strata_command_compare = {.name = "compare",
                                                 .run = run_compare,
                                                 .words = "TRACE...",
                                                 .help = "replays traces under several strategies and compares them",
                                                 .options = strata_compare_options,
                                                 .example = "--device sim:h100 --strategy mine.yaml --strategy strata run.csv.gz",
                                                 .more = more};
const strata_command_t strata_command_replay = {.name = "replay",
                                                .run = run_compare,
                                                .words = "TRACE...",
                                                .help = "replays traces under one strategy",
                                                .options = strata_replay_options,
                                                .example = "--device sim:h100 --capacity 24GiB --strategy mine.yaml run.csv.gz",
                                                .more = more};
const strata_command_t strata_command_report = {
    .name = "report",
    .run = run_compare,
    .words = "TRACE...",
    .help = "writes a page that shows the memory of strategies over time",
    .options = strata_report_options,
    .example = "--device sim:h100 --strategy pytorch --strategy mine.yaml -o mine.html run.csv.gz",
    .more = "Replays each trace under each strategy and writes an HTML page. It shows memory over time, the blocks at the "
            "peak, device calls and waits, out-of-memory reports, and the difference between two strategies. It needs no network. "
            "docs/guide.md explains it. The command only replaces a file that is such a page.\n"
            "\n"
            "Exit status: as strata compare."};
