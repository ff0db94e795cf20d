/* Finds the word that a misspelled one probably means. */
#ifndef STRATA_PLATFORM_NEAREST_H
#define STRATA_PLATFORM_NEAREST_H

#include <stddef.h>

/* Returns the word that is nearest to a misspelled one by edit distance with swaps, or NULL if none is
 * near. A word is near if at most a third of the misspelled word's letters are wrong. It is also near
 * if the misspelled word is its beginning: at least three letters and half of the word. `word(i,
 * context)` returns word i. */
const char *strata_nearest_word(const char *misspelt, size_t count, const char *(*word)(size_t, const void *), const void *context);
/* Writes a suggestion for a message: the nearest word, or "one of a, b, c" if none is near. A list of one word gives that word. */
void strata_nearest_or_all(const char *misspelt, size_t count, const char *(*word)(size_t, const void *), const void *context,
                           char *text, size_t capacity);

#endif
