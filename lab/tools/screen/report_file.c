#include "lab/tools/screen/report_file.h"

#include <string.h>
#include <sys/stat.h>

#include "trace/text/input.h"
#include "trace/text/json_scan.h"

/* Returns true if these first bytes, which end with a zero, are those of a file of this command. */
typedef bool (*begins_fn)(const char *bytes, const char *mark);

static bool begins_as_report(const char *bytes, const char *unused) {
    (void)unused;
    static const char *const words[] = {"{", "\"schema\"", ":"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        bytes = strata_json_spaces(bytes);
        if (strncmp(bytes, words[i], strlen(words[i])) != 0) return false;
        bytes += strlen(words[i]);
    }
    return true;
}

static bool begins_with_mark(const char *bytes, const char *mark) { return strncmp(bytes, mark, strlen(mark)) == 0; }

/* Returns false for a file that cannot be read. */
static bool is_own_report(const char *path, begins_fn begins, const char *mark) {
    enum { PREFIX_BYTES = 256 };
    char first[PREFIX_BYTES + 1] = "";
    strata_input_t *input = NULL;
    const char *bytes;
    size_t count = 0;
    if (strata_input_open(path, &input) != STRATA_OK) return false;
    bool read = strata_input_read(input, &bytes, &count) == STRATA_OK;
    if (read) memcpy(first, bytes, count < PREFIX_BYTES ? count : PREFIX_BYTES);
    strata_input_close(input);
    return read && begins(first, mark);
}

static bool may_replace(const char *path, begins_fn begins, const char *mark) {
    struct stat there;
    bool filled = strcmp(path, "-") != 0 && lstat(path, &there) == 0 && S_ISREG(there.st_mode) && there.st_size > 0;
    return !filled || is_own_report(path, begins, mark);
}

strata_status_t strata_report_open(const char *path, strata_output_t **out) {
    if (!may_replace(path, begins_as_report, NULL))
        return strata_fail(STRATA_E_INVALID, 0,
                           "--json %s: the file exists and is not a comparison of strata; write another "
                           "name, or remove it first",
                           path);
    return strata_output_open(path, out);
}

strata_status_t strata_marked_check(const char *path, const char *option, const char *mark) {
    if (may_replace(path, begins_with_mark, mark)) return STRATA_OK;
    return strata_fail(STRATA_E_INVALID, 0,
                       "%s %s: the file exists and is not of this command; write another name, or remove it first", option, path);
}

strata_status_t strata_marked_open(const char *path, const char *option, const char *mark, strata_output_t **out) {
    strata_status_t status = strata_marked_check(path, option, mark);
    return status == STRATA_OK ? strata_output_open(path, out) : status;
}
