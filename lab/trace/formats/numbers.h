/* Reads numbers as other tools write them. */
#ifndef STRATA_TRACE_NUMBERS_H
#define STRATA_TRACE_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/text/json_scan.h"

/* Reads decimal digits only. */
bool strata_parse_whole(const char *text, uint64_t *number);
/* Reads hexadecimal digits, with or without 0x. "(nil)" is 0. */
bool strata_parse_address(const char *text, uint64_t *number);

/* Reads a JSON number and truncates its fraction. If `negative` is NULL, numbers below 0 are refused.
 * Otherwise *number is the magnitude. */
bool strata_json_whole(strata_json_slice_t value, uint64_t *number, bool *negative);
/* Reads a number with three digits of its fraction, times 1000. */
bool strata_json_thousandths(strata_json_slice_t value, uint64_t *number);
/* Reads a decimal number, or an address in a string: "0x...". Writers with signed addresses write those from
 * 2^63 on as negative numbers. */
bool strata_json_address(strata_json_slice_t value, uint64_t *number);

#endif
