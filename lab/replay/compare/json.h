/* JSON output for several writers. */
#ifndef STRATA_REPLAY_JSON_H
#define STRATA_REPLAY_JSON_H

#include "trace/text/output.h"

/* Writes a string in quotes. Bytes that are not UTF-8 become U+FFFD. "<" is written as \u003c, so that no
 * string can end the page element that contains it. A NULL pointer is written as "". */
void strata_json_text(strata_output_t *out, const char *text);

#endif
