/* Numbers as other tools write them. */
#ifndef STRATA_TRACE_NUMBERS_H
#define STRATA_TRACE_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/text/json_scan.h"

/* Decimal digits alone. */
bool strata_parse_whole(const char *text, uint64_t *number);
/* Hexadecimal digits, with or without 0x; "(nil)" is 0. */
bool strata_parse_address(const char *text, uint64_t *number);

/* Numbers of JSON. A fraction is cut off. If `negative` is NULL, a number below 0 is refused; else *number is its magnitude. */
bool strata_json_whole(strata_json_slice_t value, uint64_t *number, bool *negative);
/* A number and three digits of its fraction, times 1000. */
bool strata_json_thousandths(strata_json_slice_t value, uint64_t *number);
/* A number in decimal, or an address in a string: "0x...". A writer with signed addresses writes those from 2^63 on as negative. */
bool strata_json_address(strata_json_slice_t value, uint64_t *number);

#endif
