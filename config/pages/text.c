/* Writes a strategy as a complete file with every option of every layer, independent of how it was built.
 * Loading the file gives the same stacks. */
#include <stdio.h>
#include <string.h>

#include "allocation/options/option.h"
#include "config/config.h"
#include "config/reader/reader.h"
#include "config/words.h"
#include "platform/place.h"

/* Writes a double-quoted scalar. Strategy files contain no control characters except tabs and line ends. */
static void put_quoted(const char *text, FILE *out) {
    fputc('"', out);
    for (; *text; text++) {
        if ((unsigned char)*text < ' ') fprintf(out, "\\x%02x", (unsigned)*text);
        else fprintf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    }
    fputc('"', out);
}

static void put_stack(const strata_model_stack_t *stack, FILE *out);

static void put_value(const strata_model_layer_t *layer, const strata_option_row_t *row, FILE *out) {
    char value[STRATA_OPTION_TEXT_BYTES];
    strata_option_print(row, layer->options, value, sizeof value);
    if (row->kind == STRATA_OPTION_TEXT) put_quoted(value, out);
    else fputs(value, out);
}

static void put_branches(const strata_model_layer_t *router, FILE *out) {
    const char *key = strata_branches_key(router->type);
    bool routes = strcmp(key, "routes") == 0;
    fprintf(out, "%s: [", key);
    for (size_t i = 0; i < router->branch_count; i++) {
        fputs(i > 0 ? ", " : "", out);
        if (routes) fputc('{', out);
        for (const strata_option_row_t *row = router->type->options; row && row->name; row++) {
            if (strata_option_branch(row) != i + 1 || i + 1 == router->branch_count) continue;
            fprintf(out, "%.*s: ", (int)(strrchr(row->name, '_') - row->name), row->name);
            put_value(router, row, out);
            fputs(", ", out);
        }
        if (routes) fputs("stack: ", out);
        put_stack(&router->branches[i], out);
        if (routes) fputc('}', out);
    }
    fputc(']', out);
}

static void put_layer(const strata_model_layer_t *layer, FILE *out) {
    const char *comma = "";
    bool own_name = strcmp(layer->name, layer->type->name) != 0 && strcmp(layer->name, STRATA_RECLAIM_KEY) != 0;
    fprintf(out, "%s: {", layer->type->name);
    if (own_name) {
        fprintf(out, "name: %s", layer->name);
        comma = ", ";
    }
    for (const strata_option_row_t *row = layer->type->options; row && row->name; row++) {
        if (layer->branch_count > 0 && strata_option_branch(row)) continue;
        fprintf(out, "%s%s: ", comma, row->name);
        put_value(layer, row, out);
        comma = ", ";
    }
    if (layer->branch_count > 0) {
        fputs(comma, out);
        put_branches(layer, out);
    }
    fputc('}', out);
}

static void put_stack(const strata_model_stack_t *stack, FILE *out) {
    fputc('[', out);
    for (size_t i = 0; i < stack->count; i++) {
        fputs(i > 0 ? ", " : "", out);
        put_layer(&stack->layers[i], out);
    }
    fputc(']', out);
}

/* Writes the gpu stack and the stacks of other places as members of a mapping, on one line. */
static void put_members(const strata_model_stack_t *stacks, const char *comma, FILE *out) {
    if (stacks[STRATA_PLACE_GPU].count > 0) {
        fprintf(out, "%sstack: ", comma);
        put_stack(&stacks[STRATA_PLACE_GPU], out);
        comma = ", ";
    }
    const char *before = "places: {";
    for (strata_place_kind_t place = STRATA_PLACE_MANAGED; place < STRATA_PLACE_KINDS; place++) {
        if (stacks[place].count == 0) continue;
        fprintf(out, "%s%s%s: ", comma, before, strata_place_name(place));
        put_stack(&stacks[place], out);
        comma = "";
        before = ", ";
    }
    if (*before == ',') fputc('}', out);
}

static void put_block(const char *indent, const strata_model_stack_t *stack, FILE *out) {
    for (size_t i = 0; i < stack->count; i++) {
        fprintf(out, "%s- ", indent);
        put_layer(&stack->layers[i], out);
        fputc('\n', out);
    }
}

static void put_devices(const strata_strategy_t *strategy, FILE *out) {
    fputs(strategy->own_count > 0 ? "devices:\n  use: " : "devices: ", out);
    put_quoted(strategy->devices, out);
    fputc('\n', out);
    for (size_t i = 0; i < strategy->own_count; i++) {
        fprintf(out, "  \"gpu:%u\": {", strategy->own[i].number);
        put_members(strategy->own[i].stacks, "", out);
        fputs("}\n", out);
    }
}

static void put_named(const strata_strategy_t *strategy, strata_named_kind_t kind, FILE *out) {
    const strata_model_names_t *names = &strategy->named[kind];
    bool single = strata_named_is_single(kind);
    if (names->count > 0) fprintf(out, "%s:%s", strata_named_key(kind), single ? " " : "\n");
    for (size_t i = 0; i < names->count; i++) {
        const strata_model_named_t *named = &names->list[i];
        if (!single) {
            fputs("  ", out);
            put_quoted(named->name, out);
            fputs(": ", out);
        }
        fputc('{', out);
        if (kind == STRATA_NAMED_POOL) fprintf(out, "keep: %s", named->keep ? "true" : "false");
        put_members(named->stacks, kind == STRATA_NAMED_POOL ? ", " : "", out);
        fputs("}\n", out);
    }
}

strata_status_t strata_config_text(const strata_strategy_t *strategy, FILE *out) {
    fputs("version: 1\nstrategy: ", out);
    put_quoted(strategy->name, out);
    fprintf(out, "\nreport: %s\n", strategy->short_report ? "short" : "full");
    put_devices(strategy, out);
    fputs("stack:\n", out);
    put_block("  ", &strategy->stacks[STRATA_PLACE_GPU], out);
    fputs("places:\n", out);
    for (strata_place_kind_t place = STRATA_PLACE_MANAGED; place < STRATA_PLACE_KINDS; place++) {
        fprintf(out, "  %s:\n", strata_place_name(place));
        put_block("    ", &strategy->stacks[place], out);
    }
    for (int kind = 0; kind < STRATA_NAMED_KINDS; kind++) put_named(strategy, (strata_named_kind_t)kind, out);
    return strata_config_written(out);
}

void strata_config_stack_text(const strata_model_stack_t *stack, FILE *out) { put_stack(stack, out); }
