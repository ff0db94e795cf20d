/* The right word for a misspelt one. */
#ifndef STRATA_PLATFORM_NEAREST_H
#define STRATA_PLATFORM_NEAREST_H

#include <stddef.h>

/* The nearest of `count` words to a misspelt one, by the fewest letters changed, added, left out or swapped; NULL if none is near. A word
 * is near if at most a third of the misspelt word's letters are wrong, or if it begins with the misspelt word, which has three letters
 * at least and half of its own. `word(i, context)` gives the i-th. */
const char *strata_nearest_word(const char *misspelt, size_t count, const char *(*word)(size_t, const void *), const void *context);
/* Writes the correction for a message: the nearest word, or "one of a, b, c" if none is near; one word alone stands for itself. */
void strata_nearest_or_all(const char *misspelt, size_t count, const char *(*word)(size_t, const void *), const void *context,
                           char *text, size_t capacity);

#endif
