#include "strategy/plan/legal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "allocation/options/option.h"
#include "platform/place.h"

static bool ignores_streams(const strata_layer_type_t *type, const void *options) {
    const strata_option_row_t *row = strata_option_find(type, "streams");
    if (!row || row->kind != STRATA_OPTION_CHOICE) return false;
    char word[32];
    if (options) strata_option_print(row, options, word, sizeof word);
    else snprintf(word, sizeof word, "%s", row->default_text);
    return strcmp(word, "ignored") == 0;
}

strata_scope_t strata_scope_of(const strata_layer_type_t *type, const void *options) {
    bool wide = type->scope != STRATA_SCOPE_NONE && type->scope != STRATA_SCOPE_STREAM;
    if (!wide || !(type->gives & STRATA_TRAIT_SINGLE_STREAM) || ignores_streams(type, options)) return type->scope;
    return STRATA_SCOPE_STREAM;
}

/* No ref names memory below a cache, so no stream can borrow it. */
bool strata_adds_stream_safe(const strata_model_layer_t *layer, bool *handled) {
    const strata_layer_type_t *type = layer->type;
    bool handles = type->gives & STRATA_TRAIT_CROSS_STREAM_SAFE && !ignores_streams(type, layer->options);
    bool ends = type->role == STRATA_CACHE || type->role == STRATA_SOURCE, adds = ends && !handles && !*handled;
    *handled = *handled || handles || ends;
    return adds;
}

uint32_t strata_traits_above(const strata_layer_type_t *type, uint32_t below) { return type->gives | (type->passes & below); }

static bool is_shared(strata_scope_t scope) { return scope == STRATA_SCOPE_DEVICE; }

strata_clash_t strata_clash_of_neighbours(const strata_layer_type_t *upper, strata_scope_t scope, const strata_layer_type_t *lower,
                                          uint32_t given) {
    if (upper->role == STRATA_SOURCE) return STRATA_CLASH_BELOW_SOURCE;
    if (upper->needs & ~given) return STRATA_CLASH_NEEDS;
    return strata_clash_of_pair(upper, scope, lower);
}

strata_clash_t strata_clash_of_pair(const strata_layer_type_t *upper, strata_scope_t scope, const strata_layer_type_t *lower) {
    if (upper->guarded && (lower->gives & STRATA_TRAIT_WAITS)) return STRATA_CLASH_WAITS;
    if (is_shared(scope) && lower->role == STRATA_CACHE && upper->role == STRATA_DECORATOR) return STRATA_CLASH_SHARED_LOCK;
    if (is_shared(scope) && (lower->scope == STRATA_SCOPE_STREAM || lower->scope == STRATA_SCOPE_THREAD))
        return STRATA_CLASH_NARROW;
    if (scope == STRATA_SCOPE_THREAD && lower->scope == STRATA_SCOPE_STREAM) return STRATA_CLASH_NARROW;
    if (upper->role == STRATA_CACHE && (lower->gives & STRATA_TRAIT_TELLS_OWNERS)) return STRATA_CLASH_UNSEEN;
    return STRATA_CLASH_NONE;
}

void strata_traits_text(uint32_t traits, const char *separator, char *text, size_t capacity) {
    static const char *const names[] = {
#define NAME(name, bit, meaning) [bit] = #name,
        STRATA_TRAIT_MAP(NAME)
#undef NAME
    };
    size_t length = 0;
    if (capacity) *text = '\0';
    for (size_t bit = 0; bit < sizeof names / sizeof *names; bit++) {
        if (!(traits & (1u << bit))) continue;
        int written = snprintf(text + length, capacity - length, "%s%s", length ? separator : "", names[bit]);
        if (written < 0 || (size_t)written >= capacity - length) return;
        for (size_t end = length + (size_t)written; length < end; length++) text[length] = (char)tolower(text[length]);
    }
}

const char *strata_place_memory(strata_place_kind_t place) {
    return place == STRATA_PLACE_GPU ? "device" : strata_place_name(place);
}

bool strata_place_reaches(strata_place_kind_t place, const char *memory) {
    /* Kernels do not access pageable memory, and the host does not access device memory. */
    static const char *const reached[STRATA_PLACE_KINDS][3] = {
        [STRATA_PLACE_GPU] = {"device", "managed", "pinned"},
        [STRATA_PLACE_MANAGED] = {"managed", "pinned"},
        [STRATA_PLACE_PINNED] = {"pinned", "managed"},
        [STRATA_PLACE_HOST] = {"host", "pinned", "managed"},
    };
    for (size_t i = 0; i < 3; i++)
        if (reached[place][i] && strcmp(reached[place][i], memory) == 0) return true;
    return false;
}
