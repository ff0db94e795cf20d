/* Words for the numbers of the layer contract. */
#ifndef STRATA_CONFIG_WORDS_H
#define STRATA_CONFIG_WORDS_H

#include <stdio.h>

#include "strategy/model.h"

const char *strata_role_word(strata_role_t role);
const char *strata_scope_word(strata_scope_t scope);
const char *strata_kind_word(strata_option_kind_t kind);

/* "preset strata:8:19", "training.yaml:4:1", "STRATA_SET", "default". */
void strata_origin_text(const strata_origin_t *origin, char *text, size_t capacity);

/* Prints the words of `text`, with a line feed where it has one or where the line would be wider than `width`. Lines after the
 * first begin at column `indent`, where the caller stands too. Ends with a line feed. */
void strata_print_wrapped(FILE *out, const char *text, size_t indent, size_t width);

/* E_IO if anything written since the last call is lost. A loss is reported once. */
strata_status_t strata_config_written(FILE *out);

#endif
