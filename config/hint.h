/* Builds the hint of an error message: the nearest correct word, or all of them. */
#ifndef STRATA_CONFIG_HINT_H
#define STRATA_CONFIG_HINT_H

#include <stddef.h>

typedef const char *(*strata_word_fn)(size_t index, const void *context);

typedef struct strata_hint {
    char text[512]; /* "write chunk_size", "write one of a, b, c" */
} strata_hint_t;

strata_hint_t strata_hint(const char *misspelt, size_t count, strata_word_fn word, const void *context);

/* Lists of allowed words, for strata_hint(). */
const char *strata_layer_word(size_t index, const void *context); /* names of layers */
size_t strata_layer_words(void);
const char *strata_preset_word(size_t index, const void *context); /* names of presets */
size_t strata_preset_words(void);
const char *strata_option_word(size_t index, const void *type); /* options of a strata_layer_type_t */

#endif
