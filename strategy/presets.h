/* The presets' YAML: every YAML file in strategy/presets, compiled in by cmake/StrataEmbed.cmake. */
#ifndef STRATA_STRATEGY_PRESETS_H
#define STRATA_STRATEGY_PRESETS_H

typedef struct strata_preset_text {
    const char *name; /* the file's name without .yaml */
    const char *text; /* the whole file */
} strata_preset_text_t;

/* In the order of the names; ends with a row that has a NULL name. */
extern const strata_preset_text_t strata_preset_texts[];

#endif
