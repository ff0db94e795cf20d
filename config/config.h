/* Reads strategies from YAML, presets, the environment, the command line or the API, and describes them. */
#ifndef STRATA_CONFIG_CONFIG_H
#define STRATA_CONFIG_CONFIG_H

#include <stdio.h>

#include "strategy/model.h"

/* Names the strategy to load and its overrides. Later sources override earlier ones: layer default,
 * preset, file, environment (STRATA_SET), `set`. At most one of `preset`, `file`, `text` and `import` may
 * be set. If none is, STRATA_STRATEGY of the environment is loaded, or else the preset "strata". */
typedef struct strata_config_request {
    const char *preset; /* a preset's name, or "import:PEER" */
    const char *file;
    const char *text; /* YAML; errors call it "<text>" */
    struct strata_import *import; /* the parsed settings of another allocator (config/import/import.h) */
    const char *const *set; /* each is "path=value" */
    size_t set_count;
    const char *devices; /* replaces the devices of the strategy; NULL keeps them */
    bool environment; /* reads STRATA_STRATEGY and STRATA_SET */
    bool by_program; /* true if a program asks: errors then name its `devices` and `set`, not the command's options */
    bool allow_code; /* allows the strategy to load shared objects, and so to run their code */
} strata_config_request_t;

/* Loads a complete strategy; places that it does not list are as in the preset strata. Returns
 * E_STRATEGY, E_IO or E_HOST_MEMORY, and the thread's last error has file:line:column. Free the strategy
 * with strata_strategy_delete(). */
strata_status_t strata_config_load(const strata_config_request_t *request, strata_strategy_t **strategy);

/* Returns the preset's name by index, or NULL after the last. */
const char *strata_preset_name(size_t index);
/* Returns the preset's YAML text, or NULL if there is no such preset. */
const char *strata_preset_text(const char *name);

/* Writes the presets, each with its description and the peer that it reproduces. */
strata_status_t strata_config_presets(FILE *out, size_t width);
/* Returns E_STRATEGY with an error for an unknown preset, which suggests the nearest name. */
strata_status_t strata_config_no_preset(const char *name);

/* Checks one file, and loads the code that it names if `allow_code` is set. Writes one line per error,
 * "file:line:column: what is wrong; what to write", for every error that can be separated. Returns the
 * number of errors. */
size_t strata_config_check(const char *file, bool allow_code, FILE *errors);
/* Writes each stack as built: its layers, scopes, shared instances, and every value with its origin. */
strata_status_t strata_config_explain(const strata_strategy_t *strategy, FILE *out);
/* Works like strata_config_explain(), but leaves out options that have their layer's default. */
strata_status_t strata_config_explain_short(const strata_strategy_t *strategy, FILE *out);
/* Writes the whole strategy as a file with every option, without comments or origins. For two strategies
 * with equal stacks the texts differ only in name and devices. Loading the text gives the same stacks;
 * layers of shared objects must be loaded first. Returns E_IO if the text cannot be written. */
strata_status_t strata_config_text(const strata_strategy_t *strategy, FILE *out);
/* Writes one stack in the form of that text, on one line. */
void strata_config_stack_text(const strata_model_stack_t *stack, FILE *out);
/* Writes the layers and values that differ, values with their origins, or "no difference". */
strata_status_t strata_config_diff(const strata_strategy_t *a, const strata_strategy_t *b, const char *name_of_a,
                                   const char *name_of_b, FILE *out);
/* Writes the layers and their options as text, or as docs/layers.md. */
strata_status_t strata_config_layers(FILE *out, bool markdown);
/* Writes one layer for people: its purpose, options, figures, and an example of a stack with it. Returns
 * E_STRATEGY if there is no such layer; the error suggests the nearest name. */
strata_status_t strata_config_layer(FILE *out, const char *name, size_t width);
/* Writes the grammar of strategy files, docs/strategy.md. */
strata_status_t strata_config_grammar(FILE *out);

#endif
