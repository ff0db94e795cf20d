/* strata convert: converts a record of another tool to a trace. */
#include <stdio.h>
#include <string.h>

#include "lab/tools/options/options.h"
#include "lab/tools/screen/notes.h"
#include "lab/tools/screen/report_file.h"

typedef struct arguments {
    bool no_tags;
} arguments_t;

static const strata_option_t options[] = {
    {"--no-tags", NULL, STRATA_ONCE, strata_parse_flag, offsetof(arguments_t, no_tags), 0, 0,
     "leaves out the origin of each block (columns tag and stack)"},
    STRATA_OPTIONS_END,
};

typedef struct copying {
    strata_trace_writer_t *writer;
    bool no_tags;
} copying_t;

static strata_status_t copy_row(void *context, const strata_trace_record_t *record) {
    const copying_t *copying = context;
    strata_trace_record_t row = *record;
    if (copying->no_tags) row.tag = row.stack = NULL;
    return strata_trace_write(copying->writer, &row);
}

/* Rows are checked against each other on the way, so that the output is a well-formed trace. */
static strata_status_t convert(strata_trace_reader_t *reader, const char *from, const char *to, bool no_tags,
                               strata_trace_t **trace) {
    uint32_t columns = strata_trace_reader_columns(reader);
    copying_t copying = {.no_tags = no_tags};
    if (no_tags) columns &= ~(1u << STRATA_COLUMN_tag | 1u << STRATA_COLUMN_stack);
    strata_status_t status = strata_trace_writer_open(to, columns, &copying.writer);
    if (status != STRATA_OK) return status;
    status = strata_trace_load_from(reader, from, copy_row, &copying, trace);
    if (status == STRATA_OK) return strata_trace_writer_finish(copying.writer);
    strata_trace_writer_abandon(copying.writer);
    return status;
}

static void print_summary(const strata_trace_t *trace) {
    strata_notes_print(trace->path, trace->format, &trace->notes);
    fprintf(stderr, "strata: %s (%s): %zu rows\n", trace->path, trace->format, trace->count);
}

static int run_convert(const strata_command_t *self, int argc, char **argv) {
    arguments_t arguments = {.no_tags = false};
    int words;
    int status = strata_options_read(self, &arguments, argc, argv, &words);
    if (status != STRATA_EXIT_DONE) return status;
    if (words != 2) return strata_usage_error(self, "needs two files, the record and the trace to write: IN OUT");
    strata_trace_reader_t *reader;
    strata_trace_t *trace = NULL;
    strata_status_t done = strata_marked_check(argv[1], "OUT", "# strata-trace");
    strata_reading_begin(argv[0]);
    if (done == STRATA_OK) done = strata_trace_reader_open(argv[0], &reader);
    bool opened = done == STRATA_OK;
    if (opened) done = convert(reader, argv[0], argv[1], arguments.no_tags, &trace);
    strata_reading_end();
    if (!opened) return strata_print_failure();
    status = done == STRATA_OK ? STRATA_EXIT_DONE : done == STRATA_E_IO ? strata_check_written(done) : strata_print_failure();
    if (done == STRATA_OK) print_summary(trace);
    strata_trace_delete(trace);
    strata_trace_reader_close(reader);
    return status;
}

const strata_command_t strata_command_convert = {
    .name = "convert",
    .run = run_convert,
    .words = "IN OUT.csv",
    .help = "converts a record of another tool to a trace",
    .options = options,
    .example = "snapshot.pickle run.csv.gz",
    .more =
        "IN is a memory snapshot of PyTorch, a trace of torch.profiler (profile_memory=True), or a log of RMM or Umpire. It may "
        "also be a buffer table of MiniMalloc, or a trace. The contents decide the format, plain or gzip. compare, replay, stats and "
        "plan read the same files directly. OUT is compressed if its name ends in .gz; - is standard output. docs/records.md "
        "describes each conversion.\n"
        "\n"
        "Exit status: 0 done, 1 OUT was not written, 2 a wrong record."};
