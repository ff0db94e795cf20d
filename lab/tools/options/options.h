/* Options of the commands. Reading, usage and help use one table of rows per command. */
#ifndef STRATA_TOOLS_OPTIONS_H
#define STRATA_TOOLS_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "lab/tools/options/command.h"

typedef enum strata_often {
    STRATA_ONCE, /* a second one is refused, except for a flag */
    STRATA_MANY, /* any number of times */
    STRATA_REQUIRED, /* mandatory, once */
    STRATA_REQUIRED_MANY
} strata_often_t;

typedef struct strata_parsing {
    const strata_command_t *self;
    const struct strata_option *option;
    void *into; /* the command's arguments */
} strata_parsing_t;

/* Takes one occurrence. Returns STRATA_EXIT_DONE, or the result of strata_usage_error(). `value` is NULL if none is given. */
typedef int (*strata_parse_fn)(const strata_parsing_t *parsing, const char *value);

typedef struct strata_option {
    const char *name; /* with its dashes */
    const char *value; /* its value in the usage, or NULL for none; a value with "[=" is optional and must follow "=" */
    strata_often_t often;
    strata_parse_fn parse;
    size_t offset; /* for strata_parse_flag(), _text() and _number(): offset of the value in `into` */
    uint64_t low, high; /* bounds of a number */
    const char *meaning;
} strata_option_t;

#define STRATA_OPTIONS_END                                                                                                         \
    { .name = NULL }

int strata_parse_flag(const strata_parsing_t *parsing, const char *none); /* a bool */
int strata_parse_text(const strata_parsing_t *parsing, const char *value); /* a const char *, not empty */
int strata_parse_number(const strata_parsing_t *parsing, const char *value); /* a uint64_t */

/* Returns the default number of concurrent jobs: the processors that the command may use, from 1 to `most`. */
uint64_t strata_processors(uint64_t most);

/* Takes the options of `argv` and moves the other words, *words of them, to its front. "--" ends the options.
 * A value follows "=" or is the next argument. Returns STRATA_EXIT_DONE, or STRATA_EXIT_USAGE after printing
 * the reason. */
int strata_options_read(const strata_command_t *self, void *into, int argc, char **argv, int *words);
/* Returns true if -h or --help is among the arguments and is not the value of an option. */
bool strata_options_has_help(const strata_command_t *self, int argc, char **argv);

#endif
