/* What the writers of JSON share. */
#ifndef STRATA_REPLAY_JSON_H
#define STRATA_REPLAY_JSON_H

#include "trace/text/output.h"

/* A string in quotes; bytes that are not UTF-8 become U+FFFD, and "<" is written as \u003c, so that no string ends
 * the element of a page that holds it. NULL is "". */
void strata_json_text(strata_output_t *out, const char *text);

#endif
