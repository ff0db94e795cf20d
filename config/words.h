/* Words for the enumerations of the layer contract, and helpers that print text. */
#ifndef STRATA_CONFIG_WORDS_H
#define STRATA_CONFIG_WORDS_H

#include <stdio.h>

#include "strategy/model.h"

const char *strata_role_word(strata_role_t role);
const char *strata_scope_word(strata_scope_t scope);
const char *strata_kind_word(strata_option_kind_t kind);

/* Formats an origin, as in "preset strata:8:19", "training.yaml:4:1", "STRATA_SET" or "default". */
void strata_origin_text(const strata_origin_t *origin, char *text, size_t capacity);

/* Prints the words of `text`. Starts a new line at each line feed in it and where the line would exceed
 * `width`. Lines after the first begin at column `indent`, which must be the current column of the
 * output. Ends with a line feed. */
void strata_print_wrapped(FILE *out, const char *text, size_t indent, size_t width);

/* Returns E_IO if any output since the last call was lost. Each loss is reported once. */
strata_status_t strata_config_written(FILE *out);

#endif
