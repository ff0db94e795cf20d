/* The presets by name: the YAML files of strategy/presets, compiled in. */
#include "strategy/presets.h"

#include <string.h>

#include "config/config.h"

const char *strata_preset_name(size_t index) {
    for (size_t i = 0; strata_preset_texts[i].name; i++)
        if (i == index) return strata_preset_texts[i].name;
    return NULL;
}

const char *strata_preset_text(const char *name) {
    for (size_t i = 0; strata_preset_texts[i].name; i++)
        if (strcmp(strata_preset_texts[i].name, name) == 0) return strata_preset_texts[i].text;
    return NULL;
}
