/* Numbers as other tools write them. */
#ifndef STRATA_TRACE_NUMBERS_H
#define STRATA_TRACE_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/text/json_scan.h"

/* Decimal digits alone. */
bool strata_parse_whole(const char *text, uint64_t *number);
/* Hexadecimal digits, with or without 0x. */
bool strata_parse_address(const char *text, uint64_t *number);

/* Numbers of JSON. A fraction is cut off; an exponent is not taken. Where `negative` is NULL, a number below 0 is none. */
bool strata_json_whole(strata_json_slice_t value, uint64_t *number, bool *negative);
/* A number and three digits of its fraction, times 1000. */
bool strata_json_thousandths(strata_json_slice_t value, uint64_t *number);
/* A number in decimal, or an address in a string: "0x...". */
bool strata_json_address(strata_json_slice_t value, uint64_t *number);

#endif
