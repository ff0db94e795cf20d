/* Words for what the layer contract numbers. */
#ifndef STRATA_CONFIG_WORDS_H
#define STRATA_CONFIG_WORDS_H

#include <stdio.h>

#include "strata/layer.h"

const char *strata_role_word(strata_role_t role);
const char *strata_scope_word(strata_scope_t scope);
const char *strata_kind_word(strata_option_kind_t kind);

/* E_IO if the stream has failed. */
strata_status_t strata_config_written(FILE *out);

#endif
