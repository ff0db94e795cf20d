/* The commands of `strata`: each is a row beside its function, and its name is in the table of lab/tools/help.c. */
#ifndef STRATA_TOOLS_COMMAND_H
#define STRATA_TOOLS_COMMAND_H

#include <stdbool.h>
#include <stdio.h>

#include "platform/status.h"

enum {
    STRATA_EXIT_DONE = 0,
    STRATA_EXIT_FAILED = 1, /* a failure that is not the caller's fault */
    STRATA_EXIT_USAGE = 2 /* wrong usage, strategy or trace */
};

typedef struct strata_command strata_command_t;
struct strata_command {
    const char *name;
    int (*run)(const strata_command_t *self, int argc, char **argv); /* argv[0] is the first argument after the name */
    const char *words; /* the words after the options in the usage */
    const char *help; /* one line */
    const struct strata_option *options; /* ends with a NULL name; NULL if there are none */
    const char *example; /* the words after the name */
    const char *more; /* further paragraphs; may be NULL */
    bool may_be_empty; /* an empty word is allowed; otherwise it is an error */
};

extern const strata_command_t strata_command_compare, strata_command_replay, strata_command_report, strata_command_stats,
    strata_command_merge, strata_command_check, strata_command_explain, strata_command_diff, strata_command_layers,
    strata_command_conform, strata_command_torture, strata_command_grammar, strata_command_presets, strata_command_import,
    strata_command_fields, strata_command_calibrate, strata_command_plan, strata_command_run, strata_command_convert,
    strata_command_export, strata_command_help, strata_command_version;

/* Returns NULL if there is no such command. */
const strata_command_t *strata_command_find(const char *name);
/* Reports an unknown command and the nearest name. Returns STRATA_EXIT_USAGE. */
int strata_command_unknown(const char *name);
/* Prints all commands, one line each. */
void strata_commands_print(FILE *out);
/* Prints the purpose of a command, its usage, its options and an example. */
void strata_command_print(const strata_command_t *command, FILE *out);

/* Prints the error in the arguments and its remedy. Returns STRATA_EXIT_USAGE. */
int strata_usage_error(const strata_command_t *self, const char *format, ...) STRATA_PRINTF(2, 3);
/* Prints the thread's last error. Returns the matching exit status. */
int strata_print_failure(void);
/* Call after writing. If output was lost, prints the reason and returns STRATA_EXIT_FAILED. That is never the
 * caller's fault. */
int strata_check_written(strata_status_t status);

#endif
