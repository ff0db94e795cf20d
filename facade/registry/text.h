/* Writes text into a buffer and counts what does not fit; needs no host memory. */
#ifndef STRATA_FACADE_TEXT_H
#define STRATA_FACADE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "strata/status.h"

typedef struct strata_text {
    char *text; /* ends with a zero if the capacity is not 0 */
    size_t capacity;
    size_t length; /* of everything that was written */
} strata_text_t;

void strata_text_append(strata_text_t *text, const char *format, ...) STRATA_PRINTF(2, 3);
/* Writes `before`, then the shortest exact text of a size. */
void strata_text_append_size(strata_text_t *text, const char *before, uint64_t bytes);

#endif
