#include "planning/problem/sort.h"

#include <string.h>

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS, FEW = 48 };

static void sort_few(strata_keyed_t *keyed, size_t count) {
    for (size_t i = 1; i < count; i++) {
        strata_keyed_t moved = keyed[i];
        size_t at = i;
        for (; at > 0 && keyed[at - 1].key > moved.key; at--) keyed[at] = keyed[at - 1];
        keyed[at] = moved;
    }
}

/* Sorts by one digit, from one array to the other. Returns 0 and moves nothing if all have the same digit. */
static int sort_by_digit(const strata_keyed_t *from, strata_keyed_t *to, size_t count, unsigned shift) {
    size_t begin[DIGITS] = {0}, sum = 0;
    for (size_t i = 0; i < count; i++) begin[from[i].key >> shift & (DIGITS - 1)]++;
    if (begin[from[0].key >> shift & (DIGITS - 1)] == count) return 0;
    for (size_t digit = 0; digit < DIGITS; digit++) {
        size_t here = begin[digit];
        begin[digit] = sum;
        sum += here;
    }
    for (size_t i = 0; i < count; i++) to[begin[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
    return 1;
}

void strata_sort_keyed(strata_keyed_t *keyed, strata_keyed_t *scratch, size_t count) {
    if (count <= FEW) {
        sort_few(keyed, count);
        return;
    }
    strata_keyed_t *from = keyed, *to = scratch;
    for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
        if (!sort_by_digit(from, to, count, shift)) continue;
        strata_keyed_t *other = from;
        from = to;
        to = other;
    }
    if (from != keyed) memcpy(keyed, from, count * sizeof *keyed);
}
