/* Reads strategies from YAML, presets, the environment, the command line or the API, and describes them. */
#ifndef STRATA_CONFIG_CONFIG_H
#define STRATA_CONFIG_CONFIG_H

#include <stdio.h>

#include "strategy/model.h"

/* What to load, and what overrides it. Later ones override earlier ones: layer default, preset, file, environment (STRATA_SET),
 * set. */
typedef struct strata_config_request {
    const char
        *preset; /* one of these four, also "import:PEER"; none: STRATA_STRATEGY of the environment, else the preset "strata" */
    const char *file;
    const char *text; /* YAML; errors call it "<text>" */
    struct strata_import *import; /* or the settings of another allocator, parsed (config/import/import.h) */
    const char *const *set; /* "path=value" */
    size_t set_count;
    const char *devices; /* override the strategy's; NULL: do not */
    bool environment; /* read STRATA_STRATEGY and STRATA_SET */
    bool by_program; /* asked by a program: errors name its own `devices` and `set`, not the options of the command */
    bool allow_code; /* the strategy may load shared objects, and so run their code */
} strata_config_request_t;

/* A complete strategy: places that it does not list are as in the preset strata. E_STRATEGY, E_IO, E_HOST_MEMORY; the thread's last
 * error has file:line:column. strata_strategy_delete() ends it. */
strata_status_t strata_config_load(const strata_config_request_t *request, strata_strategy_t **strategy);

/* Names of the presets by index, NULL after the last. */
const char *strata_preset_name(size_t index);
/* NULL: unknown. */
const char *strata_preset_text(const char *name);

/* The presets, each with its description and the peer that it reproduces. */
strata_status_t strata_config_presets(FILE *out, size_t width);
/* E_STRATEGY: there is no such preset; the error has the nearest name. */
strata_status_t strata_config_no_preset(const char *name);

/* Checks one file, loading the code that it names if that is allowed. Writes one line per error, "file:line:column: what is wrong;
 * what to write", as many as can be separated. Returns their number. */
size_t strata_config_check(const char *file, bool allow_code, FILE *errors);
/* Each stack as built: layers, scopes, what is shared, and every value with its origin. */
strata_status_t strata_config_explain(const strata_strategy_t *strategy, FILE *out);
/* The same without the options that have their layers' defaults. */
strata_status_t strata_config_explain_short(const strata_strategy_t *strategy, FILE *out);
/* Writes the whole strategy as a file with every option, without comments or origins. For two strategies with equal stacks the texts
 * differ only in name and devices. Loading the text gives the same stacks; layers of shared objects must be loaded first. E_IO. */
strata_status_t strata_config_text(const strata_strategy_t *strategy, FILE *out);
/* Writes one stack in the form of that text, on one line. */
void strata_config_stack_text(const strata_model_stack_t *stack, FILE *out);
/* How they differ: layers, and values with their origins; or "no difference". */
strata_status_t strata_config_diff(const strata_strategy_t *a, const strata_strategy_t *b, const char *name_of_a,
                                   const char *name_of_b, FILE *out);
/* The layers and their options as text, or as docs/layers.md. */
strata_status_t strata_config_layers(FILE *out, bool markdown);
/* One layer, for people: what it is, its options, its figures, an example of a stack with it. E_STRATEGY: there is no such layer;
 * the error has the nearest name. */
strata_status_t strata_config_layer(FILE *out, const char *name, size_t width);
/* The grammar of strategy files: docs/strategy.md. */
strata_status_t strata_config_grammar(FILE *out);

#endif
