/* What the rules of the house are written with: the files of the tree, a list of violations, other programs' output.
 *
 * A rule reads one file and reports what it breaks. So each rule is tested twice: on the tree, where it must find nothing,
 * and on a planted text, where it must find exactly what was planted.
 */
#ifndef STRATA_TESTS_HOUSE_H
#define STRATA_TESTS_HOUSE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct report {
    char text[16384]; /* one violation a line; what does not fit is only counted */
    size_t length;
    size_t count;
} report_t;

void report_add(report_t *report, const char *format, ...) __attribute__((__format__(__printf__, 2, 3)));

/* `path` is relative to the root of the tree, `text` the whole file. */
typedef void (*rule_fn)(const char *path, const char *text, report_t *report);

/* Runs a rule over every file of the tree whose name ends in one of `endings` (NULL ends them); returns their number. */
size_t tree_check(const char *const *endings, rule_fn rule, report_t *report);
/* The same for folders, with "" as text. */
size_t tree_check_folders(rule_fn rule, report_t *report);
/* Whether root/path is a file or folder. */
bool tree_has(const char *path);
/* The whole file, to be freed; NULL if there is none. */
char *tree_read(const char *path);

/* Standard output of a shell command, to be freed; NULL if it failed. */
char *command_output(const char *command);

/* Copies the next line of *text (without its end) and moves on; false at the end. */
bool next_line(const char **text, char *line, size_t capacity);
bool starts_with(const char *text, const char *with);
bool ends_with(const char *text, const char *with);

/* One test of a rule over the tree: nothing may be found, and files must have been seen. */
void expect_clean(const char *const *endings, rule_fn rule);
/* One planted violation: exactly one must be found, and its text must hold `part`. */
void expect_found(rule_fn rule, const char *path, const char *text, const char *part);
/* And a text that only looks like one. */
void expect_nothing(rule_fn rule, const char *path, const char *text);

/* Reports each of the `calls` (NULL ends them) that a file of the library or of its tools makes, by its whole name, if no name of
 * `exceptions` is the file's or its folder's ("platform/sim/"). */
void report_calls(const char *path, const char *text, const char *const *calls, const char *const *exceptions, report_t *report);

extern const char *const c_files[];
extern const char *const text_files[];

#endif
