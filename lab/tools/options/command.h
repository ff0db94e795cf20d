/* The commands of `strata`: each is a row beside its function, and its name is in the table of lab/tools/help.c. */
#ifndef STRATA_TOOLS_COMMAND_H
#define STRATA_TOOLS_COMMAND_H

#include <stdbool.h>
#include <stdio.h>

#include "platform/status.h"

enum {
    STRATA_EXIT_DONE = 0,
    STRATA_EXIT_FAILED = 1, /* something went wrong that is not the caller's fault */
    STRATA_EXIT_WRONG = 2 /* wrong usage, strategy or trace */
};

typedef struct strata_command strata_command_t;
struct strata_command {
    const char *name;
    int (*run)(const strata_command_t *self, int argc, char **argv); /* argv[0] is the first argument after the name */
    const char *words; /* what follows the options in the usage */
    const char *help; /* one line */
    const struct strata_option *options; /* closed by a NULL name; NULL: none */
    const char *example; /* what follows the name */
    const char *more; /* paragraphs; NULL: none */
    bool may_be_empty; /* a word may be empty, which is otherwise a mistake */
};

extern const strata_command_t strata_command_compare, strata_command_replay, strata_command_report, strata_command_stats,
    strata_command_merge, strata_command_check, strata_command_explain, strata_command_diff, strata_command_layers,
    strata_command_conform, strata_command_torture, strata_command_grammar, strata_command_presets, strata_command_import,
    strata_command_fields, strata_command_calibrate, strata_command_plan, strata_command_run, strata_command_convert,
    strata_command_export, strata_command_help, strata_command_version;

/* NULL: there is no such command. */
const strata_command_t *strata_command_find(const char *name);
/* Says that there is none, and which is near; returns STRATA_EXIT_WRONG. */
int strata_command_unknown(const char *name);
/* All commands, one line each. */
void strata_commands_print(FILE *out);
/* What a command does, its usage, its options and an example. */
void strata_command_print(const strata_command_t *command, FILE *out);

/* Says what is wrong with the arguments and what to do; returns STRATA_EXIT_WRONG. */
int strata_wrong_usage(const strata_command_t *self, const char *format, ...) STRATA_PRINTF(2, 3);
/* Prints the thread's last error; returns the matching exit status. */
int strata_tell_failure(void);
/* After writing: STRATA_EXIT_FAILED, with the reason, if output was lost. That is never the caller's fault. */
int strata_tell_written(strata_status_t status);

#endif
