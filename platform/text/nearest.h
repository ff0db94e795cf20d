/* The right word for a misspelt one. */
#ifndef STRATA_PLATFORM_NEAREST_H
#define STRATA_PLATFORM_NEAREST_H

#include <stddef.h>

/* The nearest of `count` words to a misspelt one, by the fewest letters changed, added, left out or swapped; NULL if none is near.
 * `word(i, context)` gives the i-th. */
const char *strata_nearest_word(const char *misspelt, size_t count, const char *(*word)(size_t, const void *), const void *context);

#endif
