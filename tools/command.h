/* The commands of `strata`: each a function, one line of the table in main.c. */
#ifndef STRATA_TOOLS_COMMAND_H
#define STRATA_TOOLS_COMMAND_H

#include "platform/status.h"

enum {
    STRATA_EXIT_DONE = 0,
    STRATA_EXIT_FAILED = 1, /* something went wrong that the caller is not to blame for */
    STRATA_EXIT_WRONG = 2   /* wrong usage, strategy or trace */
};

typedef struct strata_command {
    const char *name;
    int (*run)(const struct strata_command *self, int argc, char **argv); /* argv[0] is the first argument behind the name */
    const char *usage; /* what follows the name */
    const char *help;  /* one line */
    const char *more;  /* paragraphs for `strata help NAME`; NULL: none */
} strata_command_t;

/* Closed by a NULL name. */
extern const strata_command_t strata_commands[];

int strata_command_compare(const strata_command_t *self, int argc, char **argv);
int strata_command_stats(const strata_command_t *self, int argc, char **argv);
int strata_command_merge(const strata_command_t *self, int argc, char **argv);
int strata_command_check(const strata_command_t *self, int argc, char **argv);
int strata_command_explain(const strata_command_t *self, int argc, char **argv);
int strata_command_diff(const strata_command_t *self, int argc, char **argv);
int strata_command_conform(const strata_command_t *self, int argc, char **argv);
int strata_command_torture(const strata_command_t *self, int argc, char **argv);
int strata_command_layers(const strata_command_t *self, int argc, char **argv);
int strata_command_grammar(const strata_command_t *self, int argc, char **argv);
int strata_command_presets(const strata_command_t *self, int argc, char **argv);
int strata_command_import(const strata_command_t *self, int argc, char **argv);
int strata_command_fields(const strata_command_t *self, int argc, char **argv);
int strata_command_help(const strata_command_t *self, int argc, char **argv);
int strata_command_version(const strata_command_t *self, int argc, char **argv);

/* Says what is wrong with the arguments and how to go on; answers STRATA_EXIT_WRONG. */
int strata_wrong_usage(const strata_command_t *self, const char *format, ...) STRATA_PRINTF(2, 3);
/* Says the thread's last error; answers the exit status that fits it. */
int strata_tell_failure(void);
/* Of what was written: STRATA_EXIT_FAILED, and why, if it is lost, which is never the caller's fault. */
int strata_tell_written(strata_status_t status);

#endif
