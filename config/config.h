/* Reading strategies: YAML, presets, the environment, the command line or the API; and telling about them. */
#ifndef STRATA_CONFIG_CONFIG_H
#define STRATA_CONFIG_CONFIG_H

#include <stdio.h>

#include "strategy/model.h"

/* What to load and what to lay over it. Precedence: layer default < preset < file < environment (STRATA_SET) < set. */
typedef struct strata_config_request {
    const char *preset; /* one of these four; "import:PEER" too; none: STRATA_STRATEGY of the environment, else the preset "strata" */
    const char *file;
    const char *text; /* YAML; errors call it "<text>" */
    struct strata_import *import; /* or a string of another allocator, taken apart (config/import/import.h) */
    const char *const *set; /* "path=value" */
    size_t set_count;
    const char *devices; /* over the strategy's; NULL: as it says */
    bool environment; /* read STRATA_STRATEGY and STRATA_SET */
    bool by_program; /* a program asks: errors and explanations name its own `devices` and `set`, not the command's words */
    bool allow_code; /* the strategy may load shared objects, and so run their code */
} strata_config_request_t;

/* A complete strategy: places that it does not list get the preset strata's. E_STRATEGY, E_IO, E_HOST_MEMORY; the thread's
 * last error has file:line:column. strata_strategy_delete() ends it. */
strata_status_t strata_config_load(const strata_config_request_t *request, strata_strategy_t **strategy);

/* Names of the presets by index, NULL behind the last. */
const char *strata_preset_name(size_t index);
/* NULL: unknown. */
const char *strata_preset_text(const char *name);

/* The presets, each with its description and whose behaviour it reproduces. */
strata_status_t strata_config_presets(FILE *out, size_t width);
/* E_STRATEGY: there is no preset of that name; the error tells the nearest. */
strata_status_t strata_config_no_preset(const char *name);

/* Checks one file (loading the code that it names, if that is allowed) and writes one line an error, "file:line:column: what is
 * wrong; what to write", as many as can be told apart. Returns their number. */
size_t strata_config_check(const char *file, bool allow_code, FILE *errors);
/* Each stack as built: layers, every value with where it came from, scope, what is shared. */
strata_status_t strata_config_explain(const strata_strategy_t *strategy, FILE *out);
/* The same without the options that are as their layers have them by default. */
strata_status_t strata_config_explain_short(const strata_strategy_t *strategy, FILE *out);
/* What they differ in: layers, and values with where they came from; "no difference". */
strata_status_t strata_config_diff(const strata_strategy_t *a, const strata_strategy_t *b, const char *name_of_a,
                                   const char *name_of_b, FILE *out);
/* The layers and their options as text, or as docs/layers.md. */
strata_status_t strata_config_layers(FILE *out, bool markdown);
/* One layer, for people: what it is, its options, its figures, an example of a stack with it. E_STRATEGY: there is none of that
 * name; the error tells the nearest. */
strata_status_t strata_config_layer(FILE *out, const char *name, size_t width);
/* The grammar of strategy files: docs/strategy.md. */
strata_status_t strata_config_grammar(FILE *out);

#endif
