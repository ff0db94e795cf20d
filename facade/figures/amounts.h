/* Sizes as a person compares them: all sizes of a sentence in one unit. */
#ifndef STRATA_FACADE_AMOUNTS_H
#define STRATA_FACADE_AMOUNTS_H

#include <stddef.h>

#include "facade/registry/text.h"

/* The unit of the largest, as an index of B, KiB, MiB, GiB. It is the next smaller one if another size is less than a tenth of it,
 * or if two different sizes would read alike. */
unsigned strata_amounts_unit(const uint64_t *bytes, size_t count);
/* "9.51GiB", "81,920MiB", "0", rounded down; what is less than a hundredth of the unit has its own: "4KiB". */
void strata_amount_print(uint64_t bytes, unsigned unit, char *text, size_t capacity);

/* Writes `format`, with the next size for each `%`. All in one unit. */
void strata_text_say_amounts(strata_text_t *text, const char *format, const uint64_t *bytes, size_t count);
#define STRATA_SAY_AMOUNTS(text, format, ...)                                                                                      \
    strata_text_say_amounts((text), (format), (const uint64_t[]){__VA_ARGS__},                                                     \
                            sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

#endif
