/* Pools and streams that have stacks of their own: found by their names. */
#include <ctype.h>
#include <string.h>

#include "strategy/model.h"

const char *strata_named_key(strata_named_kind_t kind) {
    return kind == STRATA_NAMED_POOL ? "pools" : "streams";
}

bool strata_named_is_name(strata_named_kind_t kind, const char *name) {
    const char *others = kind == STRATA_NAMED_POOL ? "_-" : "_-:/*";
    size_t length = strlen(name);
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr(others, name[i])) return false;
    bool begins = kind == STRATA_NAMED_STREAM || isalpha((unsigned char)name[0]);
    bool number = strspn(name, "0123456789") == length;
    return (begins || number) && length > 0 && length <= STRATA_NAME_LETTERS;
}

strata_model_named_t *strata_strategy_named(const strata_strategy_t *strategy, strata_named_kind_t kind, const char *name) {
    const strata_model_names_t *names = &strategy->named[kind];
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->list[i].name, name) == 0) return &names->list[i];
    return NULL;
}

/* A star takes as little as it can, and one letter more whenever what stands behind it does not fit: only the last star needs
 * to be tried again, so the time is that of the product of the lengths. */
bool strata_pattern_fits(const char *pattern, const char *name) {
    const char *star = NULL, *taken = name;
    while (*name) {
        if (*pattern == '*') {
            star = pattern++;
            taken = name;
        } else if (*pattern == *name) {
            pattern++, name++;
        } else if (star) {
            pattern = star + 1;
            name = ++taken;
        } else {
            return false;
        }
    }
    while (*pattern == '*') pattern++;
    return *pattern == '\0';
}

const strata_model_named_t *strata_strategy_pattern(const strata_strategy_t *strategy, const char *stream) {
    const strata_model_names_t *patterns = &strategy->named[STRATA_NAMED_STREAM];
    for (size_t i = 0; i < patterns->count; i++)
        if (strata_pattern_fits(patterns->list[i].name, stream)) return &patterns->list[i];
    return NULL;
}
