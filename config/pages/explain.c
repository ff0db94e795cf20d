/* Writes the built strategy as text: each stack, each value with its origin, and the shared instances. */
#include <stdio.h>
#include <string.h>

#include "allocation/options/option.h"
#include "config/config.h"
#include "config/reader/reader.h"
#include "config/words.h"
#include "platform/host/host_memory.h"
#include "platform/place.h"
#include "strategy/plan/legal.h"

void strata_origin_text(const strata_origin_t *origin, char *text, size_t capacity) {
    if (origin->source == STRATA_FROM_DEFAULT || !origin->file) {
        snprintf(text, capacity, "default");
    } else if (origin->line == 0) {
        snprintf(text, capacity, "%s", origin->file);
    } else {
        snprintf(text, capacity, "%s:%u:%u", origin->file, origin->line, origin->column);
    }
}

static const char *shared_text(const strata_model_layer_t *layer, strata_place_kind_t place) {
    strata_scope_t scope = strata_scope_of(layer->type, layer->options);
    if (scope == STRATA_SCOPE_STREAM && layer->type->scope == STRATA_SCOPE_THREAD)
        return strata_place_is_ownerless(place) ? "one instance for each thread" : "one instance for each stream of each thread";
    switch (scope) {
    case STRATA_SCOPE_NONE: return "keeps no state";
    case STRATA_SCOPE_STREAM:
        return strata_place_is_ownerless(place) ? "one instance, for all streams" : "one instance for each stream";
    case STRATA_SCOPE_THREAD:
        return strata_place_is_ownerless(place) ? "one instance for each thread"
                                                : "one instance for each thread, shared by all its streams";
    case STRATA_SCOPE_DEVICE:
        return strata_place_is_ownerless(place) ? "one instance, for all streams"
                                                : "one instance for each device, shared by all its streams";
    }
    return "";
}

/* The lines and indentation in front of a branch, and the set of values to print. */
typedef struct margin {
    char text[256];
    bool only_set; /* print values set by a preset, a file, the environment and so on, but no defaults */
} margin_t;

static margin_t margin_in(const margin_t *margin, const char *more) {
    margin_t inner;
    snprintf(inner.text, sizeof inner.text, "%.200s%s", margin->text, more);
    inner.only_set = margin->only_set;
    return inner;
}

static void explain_option(const strata_model_layer_t *layer, const strata_option_row_t *row, FILE *out) {
    char where[4200], value[STRATA_OPTION_TEXT_BYTES];
    strata_option_print(row, layer->options, value, sizeof value);
    strata_origin_text(&layer->option_origins[row - layer->type->options], where, sizeof where);
    fprintf(out, "%-12s %s", value, where);
}

/* Compares with the default value, no matter where the value was set. */
static bool is_default(const strata_model_layer_t *layer, const strata_option_row_t *row) {
    char value[STRATA_OPTION_TEXT_BYTES], usual[STRATA_OPTION_TEXT_BYTES];
    void *options = strata_host_new(layer->type->options_size, 1);
    bool known = options && strata_option_set(row, options, row->default_text) == STRATA_OK;
    if (known) strata_option_print(row, options, usual, sizeof usual);
    strata_option_print(row, layer->options, value, sizeof value);
    strata_host_delete(options);
    return known && strcmp(value, usual) == 0;
}

static void explain_layer(const strata_model_layer_t *layer, strata_place_kind_t place, const margin_t *margin, FILE *out) {
    const strata_layer_type_t *type = layer->type;
    char where[4200];
    strata_origin_text(&layer->origin, where, sizeof where);
    fprintf(out, "%s%s", margin->text, layer->name);
    if (strcmp(layer->name, STRATA_RECLAIM_KEY) == 0) {
        fprintf(out, ": recovery of this stack  [%s]\n", where);
    } else {
        if (strcmp(layer->name, type->name) != 0) fprintf(out, " (%s)", type->name);
        fprintf(out, ": %s of scope %s, %s  [%s]\n", strata_role_word(type->role), strata_scope_word(type->scope),
                shared_text(layer, place), where);
    }
    for (const strata_option_row_t *row = type->options; row && row->name; row++) {
        if (layer->branch_count > 0 && strata_option_branch(row)) continue; /* printed with the branch */
        if (margin->only_set && is_default(layer, row)) continue;
        fprintf(out, "%s  %-24s ", margin->text, row->name);
        explain_option(layer, row, out);
        fprintf(out, "\n");
    }
}

static void explain_branch(const strata_model_layer_t *layer, size_t branch, FILE *out) {
    const char *kind = strcmp(strata_branches_key(layer->type), "routes") == 0 ? "route" : "stack";
    fprintf(out, "%s %zu of %zu", kind, branch + 1, layer->branch_count);
    for (const strata_option_row_t *row = layer->type->options; row && row->name; row++) {
        if (strata_option_branch(row) != branch + 1 || branch + 1 == layer->branch_count) continue;
        fprintf(out, ", %.*s ", (int)(strrchr(row->name, '_') - row->name), row->name);
        explain_option(layer, row, out);
    }
    fprintf(out, "\n");
}

/* Writes a tree: the layers below a router are indented, each branch with its own line. For `handled` see
 * strata_adds_stream_safe(). */
static void explain_layers(const strata_model_stack_t *stack, strata_place_kind_t place, const margin_t *margin, bool handled,
                           FILE *out) {
    for (size_t i = 0; i < stack->count; i++) {
        const strata_model_layer_t *layer = &stack->layers[i];
        if (strata_adds_stream_safe(layer, &handled))
            fprintf(out, "%sstream_safe: waits on the host: added, because no layer handles borrows  [default]\n", margin->text);
        explain_layer(layer, place, margin, out);
        for (size_t b = 0; b < layer->branch_count; b++) {
            bool last = b + 1 == layer->branch_count;
            margin_t inner = margin_in(margin, last ? "     " : "  |  ");
            fprintf(out, "%s  +- ", margin->text);
            explain_branch(layer, b, out);
            explain_layers(&layer->branches[b], place, &inner, handled, out);
        }
    }
}

static void explain_stack(const strata_model_stack_t *stack, strata_place_kind_t place, bool only_set, FILE *out) {
    margin_t margin = {"  ", only_set};
    if (!strata_model_reclaim(stack))
        fprintf(out, "%sretry: {timeout: 0}: added, because the stack has none  [default]\n", margin.text);
    explain_layers(stack, place, &margin, false, out);
}

static void explain_place(const strata_strategy_t *strategy, strata_place_kind_t place, bool only_set, FILE *out) {
    const char *name = strata_place_name(place);
    if (place == STRATA_PLACE_GPU) {
        fprintf(out, "\nstack (%s), outermost first\n", name);
    } else {
        fprintf(out, "\n%s, outermost first%s\n", name, strata_place_is_ownerless(place) ? "; one stack serves all streams" : "");
    }
    explain_stack(&strategy->stacks[place], place, only_set, out);
    for (size_t i = 0; i < strategy->own_count; i++) {
        const strata_model_device_t *own = &strategy->own[i];
        if (own->stacks[place].count == 0) continue;
        fprintf(out, "\n%s:%u, its own stack, outermost first\n", name, own->number);
        explain_stack(&own->stacks[place], place, only_set, out);
    }
}

/* The stacks of a pool have their own instances, even if their layers are those of the place. */
static void explain_head(const strata_model_named_t *named, strata_named_kind_t kind, FILE *out) {
    static const char *const what[STRATA_NAMED_KINDS] = {
        [STRATA_NAMED_POOL] = "a pool with its own stacks",
        [STRATA_NAMED_STREAM] = "streams with a matching name, with their own stacks",
        [STRATA_NAMED_GRAPH] = "private pools of captured graphs, with their own stacks",
        [STRATA_NAMED_PLAIN] = "the stacks on a device without virtual memory"};
    char where[4200];
    bool streams = kind == STRATA_NAMED_STREAM, pool = kind == STRATA_NAMED_POOL;
    strata_origin_text(&named->origin, where, sizeof where);
    fprintf(out, "\n%s, %s", named->path, what[kind]);
    const char *before = streams ? "; the usual stacks serve them in " : "; the place's layers serve ";
    const strata_place_kind_t end = pool ? STRATA_PLACE_KINDS : kind == STRATA_NAMED_PLAIN ? STRATA_PLACE_GPU : STRATA_PLACE_PINNED;
    for (strata_place_kind_t place = STRATA_PLACE_GPU; place < end; place++) {
        if (named->stacks[place].count > 0) continue;
        fprintf(out, "%s%s", before, strata_place_name(place));
        before = ", ";
    }
    fprintf(out, "  [%s]\n", where);
    if (!pool) return;
    strata_origin_text(&named->keep_origin, where, sizeof where);
    fprintf(out, "  %-26s %-12s %s\n", "keep", named->keep ? "true" : "false", where);
}

static void explain_named(const strata_strategy_t *strategy, strata_named_kind_t kind, bool only_set, FILE *out) {
    const strata_model_names_t *names = &strategy->named[kind];
    for (size_t i = 0; i < names->count; i++) {
        const strata_model_named_t *named = &names->list[i];
        explain_head(named, kind, out);
        for (strata_place_kind_t place = STRATA_PLACE_GPU; place < STRATA_PLACE_KINDS; place++) {
            if (named->stacks[place].count == 0) continue;
            fprintf(out, "\n%s.%s, outermost first%s\n", named->path, strata_place_name(place),
                    strata_place_is_ownerless(place) ? "; one stack serves all streams" : "");
            explain_stack(&named->stacks[place], place, only_set, out);
        }
    }
}

static strata_status_t explain(const strata_strategy_t *strategy, bool only_set, FILE *out) {
    char where[4200];
    fprintf(out, "strategy %s", strategy->name);
    if (*strategy->description) fprintf(out, ": %s", strategy->description);
    strata_origin_text(&strategy->origin, where, sizeof where);
    fprintf(out, "  [%s]\n", where);
    if (strategy->peer) fprintf(out, "peer: %s\n", strategy->peer);
    if (strategy->short_report) fprintf(out, "report: short\n");
    strata_origin_text(&strategy->devices_origin, where, sizeof where);
    fprintf(out, "devices: %s  [%s]\n", strategy->devices, where);
    for (strata_place_kind_t place = STRATA_PLACE_GPU; place < STRATA_PLACE_KINDS; place++)
        explain_place(strategy, place, only_set, out);
    for (int kind = 0; kind < STRATA_NAMED_KINDS; kind++) explain_named(strategy, (strata_named_kind_t)kind, only_set, out);
    return strata_config_written(out);
}

strata_status_t strata_config_explain(const strata_strategy_t *strategy, FILE *out) { return explain(strategy, false, out); }

strata_status_t strata_config_explain_short(const strata_strategy_t *strategy, FILE *out) { return explain(strategy, true, out); }
