/* Prints sizes so that a person can compare them: all sizes of a sentence have one unit. */
#ifndef STRATA_FACADE_AMOUNTS_H
#define STRATA_FACADE_AMOUNTS_H

#include <stddef.h>

#include "facade/registry/text.h"

/* Returns the unit of the largest size, as an index of B, KiB, MiB, GiB. It is the next smaller unit if
 * another size is below a tenth of it, or if two different sizes would look alike. */
unsigned strata_amounts_unit(const uint64_t *bytes, size_t count);
/* Prints a size, rounded down: "9.51GiB", "81,920MiB", "0". A size below a hundredth of the unit has its
 * own unit: "4KiB". */
void strata_amount_print(uint64_t bytes, unsigned unit, char *text, size_t capacity);

/* Writes `format`, with the next size for each `%`. All sizes have one unit. */
void strata_text_append_amounts(strata_text_t *text, const char *format, const uint64_t *bytes, size_t count);
#define STRATA_APPEND_AMOUNTS(text, format, ...)                                                                                   \
    strata_text_append_amounts((text), (format), (const uint64_t[]){__VA_ARGS__},                                                  \
                               sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

#endif
