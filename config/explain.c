/* What was built, as text: each stack, each value, who said it, what is shared. */
#include <stdio.h>
#include <string.h>

#include "allocation/option.h"
#include "config/config.h"
#include "config/words.h"

/* "preset strata:8:19", "training.yaml:4:1", "STRATA_SET", "default". */
static void origin_text(const strata_origin_t *origin, char *text, size_t capacity) {
    if (origin->source == STRATA_FROM_DEFAULT || !origin->file) {
        snprintf(text, capacity, "default");
    } else if (origin->line == 0) {
        snprintf(text, capacity, "%s", origin->file);
    } else {
        snprintf(text, capacity, "%s:%u:%u", origin->file, origin->line, origin->column);
    }
}

/* Pinned and host memory have no owner stream: one stack serves all streams. */
static bool has_one_stack(strata_place_kind_t place) {
    return place == STRATA_PLACE_PINNED || place == STRATA_PLACE_HOST;
}

static const char *shared_text(strata_scope_t scope, strata_place_kind_t place) {
    switch (scope) {
    case STRATA_SCOPE_NONE: return "keeps no state";
    case STRATA_SCOPE_STREAM: return has_one_stack(place) ? "one instance, for all streams" : "one instance for each stream";
    case STRATA_SCOPE_THREAD: return "one instance for each thread";
    case STRATA_SCOPE_DEVICE:
        return has_one_stack(place) ? "one instance, for all streams"
                                    : "one instance for each device, shared by all its streams";
    case STRATA_SCOPE_PROCESS: return "one instance for the whole process";
    }
    return "";
}

static void explain_layer(const strata_model_layer_t *layer, strata_place_kind_t place, FILE *out) {
    const strata_layer_type_t *type = layer->type;
    char where[4200], value[STRATA_OPTION_TEXT_BYTES];
    origin_text(&layer->origin, where, sizeof where);
    fprintf(out, "  %s", layer->name);
    if (strcmp(layer->name, type->name) != 0) fprintf(out, " (%s)", type->name);
    fprintf(out, ": %s of scope %s, %s  [%s]\n", strata_role_word(type->role), strata_scope_word(type->scope),
            shared_text(type->scope, place), where);
    for (const strata_option_row_t *row = type->options; row && row->name; row++) {
        strata_option_print(row, layer->options, value, sizeof value);
        origin_text(&layer->option_origins[row - type->options], where, sizeof where);
        fprintf(out, "    %-24s %-12s %s\n", row->name, value, where);
    }
}

static void explain_place(const strata_strategy_t *strategy, strata_place_kind_t place, FILE *out) {
    const strata_model_stack_t *stack = &strategy->stacks[place];
    const char *name = strata_place_name(place);
    if (place == STRATA_PLACE_GPU) {
        fprintf(out, "\nstack (%s), outermost first\n", name);
    } else {
        fprintf(out, "\n%s, outermost first%s\n", name, has_one_stack(place) ? "; one stack serves all streams" : "");
    }
    for (size_t i = 0; i < stack->count; i++) explain_layer(&stack->layers[i], place, out);
}

strata_status_t strata_config_explain(const strata_strategy_t *strategy, FILE *out) {
    char where[4200];
    fprintf(out, "strategy %s", strategy->name);
    if (*strategy->description) fprintf(out, ": %s", strategy->description);
    origin_text(&strategy->origin, where, sizeof where);
    fprintf(out, "  [%s]\n", where);
    if (strategy->peer) fprintf(out, "peer: %s\n", strategy->peer);
    origin_text(&strategy->devices_origin, where, sizeof where);
    fprintf(out, "devices: %s  [%s]\n", strategy->devices, where);
    for (strata_place_kind_t place = STRATA_PLACE_GPU; place < STRATA_PLACE_KINDS; place++) explain_place(strategy, place, out);
    return strata_config_written(out);
}
