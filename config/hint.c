#include "config/hint.h"

#include <stdio.h>
#include <string.h>

#include "allocation/options/option.h"
#include "config/config.h"
#include "platform/text/nearest.h"

strata_hint_t strata_hint(const char *misspelt, size_t count, strata_word_fn word, const void *context) {
    strata_hint_t hint = {.text = "write "};
    strata_nearest_or_all(misspelt, count, word, context, hint.text + strlen(hint.text), sizeof hint.text - strlen(hint.text));
    return hint;
}

const char *strata_layer_word(size_t index, const void *context) {
    (void)context;
    return strata_layer_at(index)->name;
}

size_t strata_layer_words(void) {
    size_t count = 0;
    while (strata_layer_at(count)) count++;
    return count;
}

const char *strata_preset_word(size_t index, const void *context) {
    (void)context;
    return strata_preset_name(index);
}

size_t strata_preset_words(void) {
    size_t count = 0;
    while (strata_preset_name(count)) count++;
    return count;
}

const char *strata_option_word(size_t index, const void *type) { return ((const strata_layer_type_t *)type)->options[index].name; }
