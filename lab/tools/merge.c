/* strata merge: merges the comparisons of several shards. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/tools/options/options.h"
#include "lab/tools/screen/report_file.h"
#include "platform/host/host_memory.h"
#include "trace/text/input.h"
#include "trace/text/json_scan.h"
#include "trace/text/output.h"

enum { MAX_BYTES = 64 << 20, MAX_RUNS = 1 << 20 };

typedef struct run {
    strata_json_slice_t text, trace, label;
    const char *file;
} run_t;

/* The other lists of a comparison. The lists of all files are concatenated. */
static const char *const lists[] = {"provenance", "errors", "verdicts"};
enum { LISTS = sizeof lists / sizeof *lists };

typedef struct merge {
    char **texts; /* one per file */
    strata_json_slice_t (*others)[LISTS]; /* by file: the text between the brackets of each list */
    int files;
    run_t *runs;
    size_t count, capacity;
    /* These belong to the file that is being read. */
    const char *file;
    bool schema;
    const char *bad_run; /* the position of an invalid run; NULL if there is none */
    strata_status_t refused; /* status of an invalid text: E_FORMAT, or another one if there is no room for its runs */
} merge_t;

static strata_status_t read_text(const char *path, char **text) {
    strata_input_t *input = NULL;
    size_t length = 0;
    strata_status_t status = strata_input_open(path, &input);
    while (status == STRATA_OK) {
        const char *bytes;
        size_t count;
        status = strata_input_read(input, &bytes, &count);
        if (status != STRATA_OK) status = strata_fail_context("%s", path);
        if (status != STRATA_OK || count == 0) break;
        if (length + count > MAX_BYTES) status = strata_fail(STRATA_E_LIMIT, 0, "%s: more than 64 MiB", path);
        char *grown = status == STRATA_OK ? strata_host_resize(*text, length + count + 1, 1) : NULL;
        if (!grown) status = strata_last_error()->status;
        if (status != STRATA_OK) break;
        *text = grown;
        memcpy(grown + length, bytes, count);
        length += count;
        grown[length] = '\0';
    }
    strata_input_close(input);
    if (status == STRATA_OK && (!*text || strlen(*text) != length))
        status = strata_fail_at(STRATA_E_FORMAT, 1, 0, "%s:1: not JSON; give files that strata compare --json wrote", path);
    return status;
}

/* ---- what a comparison holds ------------------------------------------------------------------------------------------- */

static const char *run_member(void *context, strata_json_slice_t name, strata_json_slice_t value) {
    run_t *run = context;
    if (strata_json_is(name, "trace")) run->trace = value;
    if (strata_json_is(name, "label")) run->label = value;
    return NULL;
}

static const char *add_run(void *context, strata_json_slice_t name, strata_json_slice_t value) {
    merge_t *merge = context;
    strata_json_scan_t scan = {.begin = value.at};
    run_t run = {.text = value, .file = merge->file};
    (void)name;
    if (*value.at != '{') return "a run is not an object; give files that strata compare --json wrote";
    strata_json_value(&scan, value.at, run_member, &run);
    if (!run.trace.length || !run.label.length) return "the run has no trace or no label";
    if (merge->count == MAX_RUNS) {
        merge->refused = STRATA_E_LIMIT;
        return "too many runs";
    }
    if (merge->count == merge->capacity) {
        size_t capacity = merge->capacity ? merge->capacity * 2 : 64;
        run_t *grown = strata_host_resize(merge->runs, capacity, sizeof *grown);
        if (!grown) {
            merge->refused = STRATA_E_HOST_MEMORY;
            return "out of host memory";
        }
        merge->runs = grown;
        merge->capacity = capacity;
    }
    merge->runs[merge->count++] = run;
    return NULL;
}

static const char *file_member(void *context, strata_json_slice_t name, strata_json_slice_t value) {
    merge_t *merge = context;
    strata_json_scan_t scan = {.begin = value.at};
    if (strata_json_is(name, "schema")) {
        merge->schema = strata_json_is(value, "1");
        return merge->schema ? NULL : "unknown schema; this version reads 1";
    }
    for (size_t i = 0; i < LISTS; i++) {
        if (!strata_json_is(name, lists[i])) continue;
        if (*value.at != '[') return "provenance, errors and verdicts must be arrays";
        const char *first = strata_json_spaces(value.at + 1), *end = value.at + value.length - 1;
        while (end > first && (end[-1] == ' ' || end[-1] == '\n' || end[-1] == '\r' || end[-1] == '\t')) end--;
        merge->others[merge->files - 1][i] = (strata_json_slice_t){.at = first, .length = (size_t)(end - first)};
    }
    if (!strata_json_is(name, "runs")) return NULL;
    if (*value.at != '[') return "runs is not an array";
    if (strata_json_value(&scan, value.at, add_run, merge)) return NULL;
    merge->bad_run = scan.at;
    return scan.error;
}

static strata_status_t merge_file(merge_t *merge, const char *path) {
    char **text = &merge->texts[merge->files++];
    strata_status_t status = read_text(path, text);
    if (status != STRATA_OK) return status;
    strata_json_scan_t scan = {.begin = *text};
    merge->file = path;
    merge->schema = false;
    merge->bad_run = NULL;
    merge->refused = STRATA_E_FORMAT;
    const char *end = strata_json_value(&scan, *text, file_member, merge);
    if (end && *strata_json_spaces(end)) {
        scan.at = strata_json_spaces(end);
        scan.error = "more text after the end";
    } else if (end && !merge->schema) {
        scan.at = *text;
        scan.error = "no \"schema\": 1; give files that strata compare --json wrote";
    }
    if (!scan.error) return STRATA_OK;
    if (merge->refused == STRATA_E_HOST_MEMORY) return merge->refused; /* not the file's fault, and reported already */
    if (merge->bad_run) scan.at = merge->bad_run;
    unsigned line = strata_json_line(&scan);
    bool ours = merge->refused == STRATA_E_FORMAT && !strstr(scan.error, "; ");
    return strata_fail_at(merge->refused, line, 0, "%s:%u: %s%s", path, line, scan.error,
                          ours ? "; give files that strata compare --json wrote" : "");
}

/* ---- one of each ------------------------------------------------------------------------------------------------------- */

static int by_slice(strata_json_slice_t a, strata_json_slice_t b) {
    int order = memcmp(a.at, b.at, a.length < b.length ? a.length : b.length);
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

static int by_key(const void *a, const void *b) {
    const run_t *const *x = a, *const *y = b;
    int order = by_slice((*x)->trace, (*y)->trace);
    return order ? order : by_slice((*x)->label, (*y)->label);
}

/* Returns the number of bytes that a message shows. */
static int shown(strata_json_slice_t slice) { return slice.length < 200 ? (int)slice.length : 200; }

static strata_status_t check_unique(const merge_t *merge) {
    const run_t **sorted = strata_host_new(merge->count + 1, sizeof *sorted);
    if (!sorted) return STRATA_E_HOST_MEMORY;
    strata_status_t status = STRATA_OK;
    for (size_t i = 0; i < merge->count; i++) sorted[i] = &merge->runs[i];
    qsort(sorted, merge->count, sizeof *sorted, by_key);
    for (size_t i = 1; i < merge->count && status == STRATA_OK; i++) {
        if (by_key(&sorted[i - 1], &sorted[i]) != 0) continue;
        status = strata_fail(STRATA_E_FORMAT, 0, "trace %.*s, label %.*s occurs twice, in %s and in %s; merge each shard once",
                             shown(sorted[i]->trace), sorted[i]->trace.at, shown(sorted[i]->label), sorted[i]->label.at,
                             sorted[i - 1]->file, sorted[i]->file);
    }
    strata_host_delete(sorted);
    return status;
}

/* Lists that no file has are left out. */
static void write_list(const merge_t *merge, size_t list, strata_output_t *out) {
    bool any = false;
    for (int i = 0; i < merge->files; i++) {
        strata_json_slice_t part = merge->others[i][list];
        if (part.length == 0) continue;
        if (any) strata_output_print(out, ",\n");
        else strata_output_print(out, "\"%s\": [", lists[list]);
        strata_output_write(out, part.at, part.length);
        any = true;
    }
    if (any) strata_output_print(out, "],\n");
}

static int write_all(const merge_t *merge, const char *path) {
    strata_output_t *out = NULL;
    strata_status_t status = strata_report_open(path, &out);
    if (status == STRATA_E_INVALID) return strata_print_failure();
    if (status != STRATA_OK) return strata_check_written(status);
    strata_output_print(out, "{\"schema\": 1, ");
    for (size_t i = 0; i < LISTS; i++) write_list(merge, i, out);
    strata_output_print(out, "\"runs\": [");
    for (size_t i = 0; i < merge->count; i++) {
        if (i > 0) strata_output_print(out, ", ");
        strata_output_write(out, merge->runs[i].text.at, merge->runs[i].text.length);
    }
    strata_output_print(out, "]}\n");
    return strata_check_written(strata_output_finish(out));
}

static int merge_all(const char *json, char **paths, int count) {
    merge_t merge = {.texts = strata_host_new((size_t)count, sizeof *merge.texts),
                     .others = strata_host_new((size_t)count, sizeof *merge.others)};
    strata_status_t status = merge.texts && merge.others ? STRATA_OK : STRATA_E_HOST_MEMORY;
    for (int i = 0; i < count && status == STRATA_OK; i++) status = merge_file(&merge, paths[i]);
    if (status == STRATA_OK) status = check_unique(&merge);
    int exit_status = status == STRATA_OK ? write_all(&merge, json) : strata_print_failure();
    for (int i = 0; i < merge.files; i++) strata_host_delete(merge.texts[i]);
    strata_host_delete(merge.texts);
    strata_host_delete(merge.others);
    strata_host_delete(merge.runs);
    return exit_status;
}

typedef struct arguments {
    const char *json;
} arguments_t;

static const strata_option_t options[] = {
    {"--json", "FILE|-", STRATA_ONCE, strata_parse_text, offsetof(arguments_t, json), 0, 0,
     "file for the comparison (-, standard output)"},
    STRATA_OPTIONS_END,
};

static int run_merge(const strata_command_t *self, int argc, char **argv) {
    arguments_t arguments = {.json = "-"};
    int files;
    int status = strata_options_read(self, &arguments, argc, argv, &files);
    if (status != STRATA_EXIT_DONE) return status;
    return files ? merge_all(arguments.json, argv, files)
                 : strata_usage_error(self, "no files; give files that strata compare --json wrote");
}

const strata_command_t strata_command_merge = {
    .name = "merge",
    .run = run_merge,
    .words = "FILE...",
    .help = "merges the JSON files of several shards into one comparison",
    .options = options,
    .example = "--json all.json shard0.json shard1.json",
    .more = "A trace may occur once for each label. The provenance, the traces that were left out and the "
            "verdicts of all files are kept."};
