/* The presets: the YAML files of strategy/presets, compiled in. */
#include "strategy/presets.h"

#include <string.h>

#include "config/config.h"
#include "config/hint.h"
#include "config/words.h"

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

strata_status_t strata_config_no_preset(const char *name) {
    strata_hint_t hint = strata_hint(name, strata_preset_words(), strata_preset_word, NULL);
    return strata_fail(STRATA_E_STRATEGY, 0, "there is no preset \"%.40s\"; %s", name, hint.text);
}

strata_status_t strata_config_presets(FILE *out, size_t width) {
    enum { NAMES = 20 };
    strata_status_t status = STRATA_OK;
    for (size_t i = 0; strata_preset_name(i) && status == STRATA_OK; i++) {
        strata_strategy_t *strategy = NULL;
        char text[1024];
        status = strata_config_load(&(strata_config_request_t){.preset = strata_preset_name(i)}, &strategy);
        if (status != STRATA_OK) break;
        snprintf(text, sizeof text, "%.400s%s%.400s%s", strategy->description, strategy->peer ? " (reproduces " : "",
                 strategy->peer ? strategy->peer : "", strategy->peer ? ")" : "");
        fprintf(out, "%-*s ", NAMES - 1, strata_preset_name(i));
        strata_print_wrapped(out, text, NAMES, width);
        strata_strategy_delete(strategy);
    }
    return status == STRATA_OK ? strata_config_written(out) : status;
}
