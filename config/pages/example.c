#include "config/pages/example.h"

#include <string.h>

#include "allocation/options/option.h"
#include "config/config.h"
#include "config/reader/reader.h"

enum { TEXT = 1024, OPTION = 256 };

/* Writes " {name: default}" for the first option that is not free text. */
static void show_option(const strata_layer_type_t *type, char text[OPTION]) {
    *text = '\0';
    for (const strata_option_row_t *row = type->options; row && row->name; row++) {
        if (row->kind == STRATA_OPTION_TEXT) continue;
        snprintf(text, OPTION, ": {%s: %s}", row->name, row->default_text);
        return;
    }
}

/* Writes the option that a router's branches set, without its number: "up_to". */
static void show_branches(const strata_layer_type_t *type, char text[OPTION]) {
    const char *key = strata_branches_key(type);
    const char *number = type->options && type->options->name ? strrchr(type->options->name, '_') : NULL;
    if (strcmp(key, "routes") == 0 && number)
        snprintf(text, OPTION, ":\n      routes:\n        - {%.*s: %s, stack: [auto_growth, system]}\n        - {stack: [system]}",
                 (int)(number - type->options->name), type->options->name, "1MiB");
    else snprintf(text, OPTION, ": {%s: [[auto_growth, system], [system]]}", key);
}

static bool loads(const char *text) {
    strata_strategy_t *strategy = NULL;
    bool loaded = strata_config_load(&(strata_config_request_t){.text = text, .allow_code = false}, &strategy) == STRATA_OK;
    strata_strategy_delete(strategy);
    return loaded;
}

/* Tries the layer with its option, then without, in ever larger stacks. */
static bool find(const strata_layer_type_t *type, const char *options, char text[TEXT]) {
    static const char *const below[] = {"", "  - system\n", "  - vmm\n", "  - auto_growth\n  - system\n",
                                        "  - stream_safe\n  - auto_growth\n  - system\n"};
    static const char *const above[] = {"", "  - stream_safe\n"};
    for (size_t i = 0; i < sizeof below / sizeof *below; i++)
        for (size_t k = 0; k < sizeof above / sizeof *above; k++) {
            snprintf(text, TEXT, "stack:\n%s  - %s%s\n%s", above[k], type->name, options, below[i]);
            if (loads(text)) return true;
        }
    return false;
}

void strata_config_example(const strata_layer_type_t *type, FILE *out) {
    char text[TEXT], option[OPTION];
    if (type->role == STRATA_ROUTER) show_branches(type, option);
    else show_option(type, option);
    if (!find(type, option, text) && !find(type, "", text)) return;
    fprintf(out, "\nexample\n");
    for (const char *at = text; *at; at += strcspn(at, "\n") + 1) fprintf(out, "  %.*s\n", (int)strcspn(at, "\n"), at);
}
