/* Running the built command. */
#ifndef STRATA_TESTS_TOOLS_RAN_H
#define STRATA_TESTS_TOOLS_RAN_H

#include <stdint.h>

typedef struct ran {
    int exit_status; /* -1: it did not end by itself */
    char *out; /* standard output; both until the next run */
    char *errors;
} ran_t;

/* Runs `strata` with these arguments through the shell, in a folder of the test's own, with neither COLUMNS, STRATA_SET nor
 * STRATA_STRATEGY set, and with TRACES, the folder of the project's traces; variables may be set before the arguments, as in "STRATA_SET=a=b -- replay ...". */
ran_t run_command(const char *arguments, ...) __attribute__((__format__(__printf__, 1, 2)));
/* Works like the function above. The command must end with 0. */
#define run_well(...) run_command_well(__FILE__, __LINE__, __VA_ARGS__)
ran_t run_command_well(const char *file, int line, const char *arguments, ...) __attribute__((__format__(__printf__, 3, 4)));
/* Runs a line of a shell in that folder, where traces/ is the project's and `strata` is in PATH. */
ran_t run_line(const char *line);
/* Runs a shell command with a terminal as its standard output, and returns the output; valid until the next run. Returns NULL if the machine
 * has no terminals (/dev/pts is not mounted). */
const char *run_on_terminal(const char *line);
/* The command refuses these arguments as wrong use (exit status 2): `part` is in what it says, and nothing is printed. */
void expect_wrong_use(const char *arguments, const char *part);

/* A run of `strata`. Each text of `out` and `errors` must be a part of what is printed there; "" means that nothing is printed, and a
 * text that begins with '=' is the whole of it. Those of `lacks` must not be in the output. */
typedef struct run {
    const char *arguments;
    int exit_status;
    const char *out[9], *errors[4], *lacks[2];
} run_t;
/* Runs one after the other in one folder: with these files, after `prepare`, and then uses that are refused as expect_wrong_use() tells. */
typedef struct session {
    const char *name;
    const char *files[6][2]; /* name and text */
    run_t runs[6];
    const char *wrong[24][2]; /* arguments and `part` */
    void (*prepare)(void);
} session_t;
void expect_session(const session_t *session);

/* The text of a file of that folder, which the caller frees; NULL: there is none. */
char *written_text(const char *name);
/* The built command, or the one that STRATA_TEST_COMMAND names (scripts/mutants: the command with a mutant in it). */
const char *command_path(void);
/* A trace of the project. Valid for the next four calls. */
const char *project_trace_path(const char *name);

#endif
