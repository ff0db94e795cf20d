/* What the writers of JSON share. */
#ifndef STRATA_REPLAY_JSON_H
#define STRATA_REPLAY_JSON_H

#include "trace/text/output.h"

/* A string in its quotes; what is no UTF-8 becomes U+FFFD. NULL is "". */
void strata_json_text(strata_output_t *out, const char *text);

#endif
