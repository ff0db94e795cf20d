/* Sizes as a person compares them: those of one sentence in one unit. */
#ifndef STRATA_FACADE_AMOUNTS_H
#define STRATA_FACADE_AMOUNTS_H

#include <stddef.h>

#include "facade/figures/text.h"

/* That of the largest, or the next smaller one where another is less than a tenth of it or two that differ would read alike: an index
 * of B, KiB, MiB, GiB. */
unsigned strata_amounts_unit(const uint64_t *bytes, size_t count);
/* "9.51GiB", "81,920MiB", "0", rounded down; what is less than a hundredth of the unit has its own: "4KiB". */
void strata_amount_print(uint64_t bytes, unsigned unit, char *text, size_t capacity);

/* Says `format`, with a size where it has a `%`, in order. All in one unit. */
void strata_text_say_amounts(strata_text_t *text, const char *format, const uint64_t *bytes, size_t count);
#define STRATA_SAY_AMOUNTS(text, format, ...)                                                                                      \
    strata_text_say_amounts((text), (format), (const uint64_t[]){__VA_ARGS__},                                                     \
                            sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

#endif
