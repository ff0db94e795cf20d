#include "platform/text/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Longer words are compared by their first letters only. */
enum { WORD_MAX = 48 };

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Folds the case of a letter, and '-' into '_', so that these differences do not count. */
static char folded(char letter) { return letter == '-' ? '_' : (char)tolower((unsigned char)letter); }

static size_t distance(const char *a, const char *b) {
    size_t rows[3][WORD_MAX + 1];
    size_t length = strnlen(b, WORD_MAX), rounds = strnlen(a, WORD_MAX);
    size_t *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= length; j++) before[j] = last[j] = j;
    for (size_t i = 1; i <= rounds; i++) {
        now[0] = i;
        for (size_t j = 1; j <= length; j++) {
            bool same = folded(a[i - 1]) == folded(b[j - 1]);
            now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + !same);
            bool swapped = i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) && folded(a[i - 2]) == folded(b[j - 1]);
            if (swapped) now[j] = least(now[j], before[j - 2] + 1);
        }
        size_t *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[length];
}

const char *strata_nearest_word(const char *misspelt, size_t count, const char *(*word)(size_t, const void *),
                                const void *context) {
    const char *nearest = NULL;
    size_t length = strnlen(misspelt, WORD_MAX), best = length / 3 + 1;
    for (size_t i = 0; i < count; i++) {
        const char *candidate = word(i, context);
        size_t far = distance(misspelt, candidate);
        /* A word counts as near if at least its first half was typed. */
        bool begins = length >= 3 && 2 * length >= strlen(candidate) && strncmp(candidate, misspelt, length) == 0;
        if (begins) far = least(far, 1);
        if (far >= best || far >= strlen(candidate)) continue;
        best = far;
        nearest = candidate;
    }
    return nearest;
}

void strata_nearest_or_all(const char *misspelt, size_t count, const char *(*word)(size_t, const void *), const void *context,
                           char *text, size_t capacity) {
    const char *nearest = strata_nearest_word(misspelt, count, word, context);
    size_t length = (size_t)snprintf(text, capacity, "%s", nearest ? nearest : count > 1 ? "one of " : "");
    for (size_t i = 0; i < count && !nearest && length < capacity; i++)
        length += (size_t)snprintf(text + length, capacity - length, "%s%s", i ? ", " : "", word(i, context));
}
