/* Options of the commands: reading, usage and help come from one table of rows per command. */
#ifndef STRATA_TOOLS_OPTIONS_H
#define STRATA_TOOLS_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "lab/tools/options/command.h"

typedef enum strata_often {
    STRATA_ONCE, /* a second one is refused, except for a flag */
    STRATA_MANY, /* as often as one likes */
    STRATA_NEEDED, /* once, and mandatory */
    STRATA_NEEDED_MANY
} strata_often_t;

typedef struct strata_taking {
    const strata_command_t *self;
    const struct strata_option *option;
    void *into; /* where the command keeps its arguments */
} strata_taking_t;

/* One occurrence: STRATA_EXIT_DONE, or what strata_wrong_usage() returned. `value` is NULL if none is given. */
typedef int (*strata_take_fn)(const strata_taking_t *taking, const char *value);

typedef struct strata_option {
    const char *name; /* with its dashes */
    const char *value; /* its value in the usage; NULL: none; beginning with "[=": optional, and only after "=" */
    strata_often_t often;
    strata_take_fn take;
    size_t offset; /* for strata_take_flag(), _text() and _number(): where in `into` it is kept */
    uint64_t low, high; /* bounds of a number */
    const char *meaning;
} strata_option_t;

#define STRATA_OPTIONS_END                                                                                                         \
    { .name = NULL }

int strata_take_flag(const strata_taking_t *taking, const char *none); /* a bool */
int strata_take_text(const strata_taking_t *taking, const char *value); /* a const char *, not empty */
int strata_take_number(const strata_taking_t *taking, const char *value); /* a uint64_t */

/* For what a command does at once where nothing is said: the processors that it may use, 1 .. `most`. */
uint64_t strata_processors(uint64_t most);

/* Takes the options of `argv` and moves the other words, *words of them, to its front. "--" ends the options. A value comes after
 * "=" or is the next argument. STRATA_EXIT_DONE, or STRATA_EXIT_WRONG after saying why. */
int strata_options_read(const strata_command_t *self, void *into, int argc, char **argv, int *words);
/* Whether -h or --help is among the arguments, where it is not the value of an option. */
bool strata_options_ask_help(const strata_command_t *self, int argc, char **argv);

#endif
