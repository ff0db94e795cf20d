/* Pages of the project that show commands: what a page shows under a command is what the command prints.
 *
 * A block begins with "    $ COMMAND"; what follows is its output, standard error before standard output. "..." stands for any lines.
 * Blanks are counted as one, for a column is as wide as its widest cell; of host_ns_per_op, which no run has twice, the name alone is
 * compared. A fenced block with a name after its kind ("```yaml mine.yaml") is a file that the commands read.
 */
#ifndef STRATA_TESTS_TOOLS_SHOWN_H
#define STRATA_TESTS_TOOLS_SHOWN_H

#include <stdbool.h>
#include <stddef.h>

typedef struct shown {
    char command[512];
    const char *output; /* as shown, until the next block */
} shown_t;

/* The text of a page of the project, to be freed; NULL and a failed test if it cannot be read. */
char *page_text(const char *page);
/* The next block of the page whose command begins with `begins`; *at moves past it. */
bool next_shown(const char **at, const char *begins, shown_t *shown);
/* Writes the files of a page, in the folder where its commands run; how many. */
size_t write_shown_files(const char *text);
/* Runs the command as a person would who stands in the project's folder: `strata` is in PATH, traces/ is there.
 * Its exit status. */
int expect_shown(const char *page, const shown_t *shown);
/* NULL: the output is what is shown; else the first line that is not there. */
const char *missing_line(const char *shown, const char *printed);

#endif
