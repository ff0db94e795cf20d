#include "facade/registry/text.h"

#include <stdarg.h>
#include <stdio.h>

#include "allocation/options/option.h"
#include "platform/arithmetic.h"

void strata_text_append(strata_text_t *text, const char *format, ...) {
    va_list arguments;
    size_t at = strata_min(text->length, text->capacity);
    va_start(arguments, format);
    int wrote = vsnprintf(text->capacity ? text->text + at : NULL, text->capacity - at, format, arguments);
    va_end(arguments);
    text->length += wrote > 0 ? (size_t)wrote : 0;
}

void strata_text_append_size(strata_text_t *text, const char *before, uint64_t bytes) {
    char size[64];
    strata_print_size(bytes, size, sizeof size);
    strata_text_append(text, "%s%s", before, size);
}
