/* Writes the result of an import: the strategy as a file, and the lines about settings without an equivalent. */
#include <string.h>

#include "allocation/options/option.h"
#include "config/import/rows.h"
#include "config/words.h"
#include "platform/place.h"

enum { MARGIN = 128 };

/* ---- lines ---- */

static void print_key(const import_setting_t *setting, const char *before, FILE *out) {
    fprintf(out, "%s%s:%u:%u: %s", before, setting->origin.file, setting->origin.line, setting->origin.column, setting->row->key);
    if (setting->row->kind != IMPORT_CONF) fprintf(out, "%c%.60s", setting->row->inner ? ':' : '=', setting->value);
}

/* An empty reason means that the strategy has no such option. If the reason is a key, that setting takes
 * effect instead. */
static void print_skipped(const strata_import_t *import, const import_setting_t *setting, FILE *out) {
    const char *why = setting->skip_reason;
    const import_setting_t *decided = import->decided;
    bool key = false;
    for (const import_row_t *row = import->peer->rows; row->key; row++) key = key || row->key == why;
    if (*why) fprintf(out, " is ignored: %s%s\n", why, key ? " decides" : "");
    else if (!decided) fprintf(out, " is ignored: the preset %s has no layer with such an option\n", import->preset);
    else
        fprintf(out, " is ignored: %s%c%.60s means the preset %s, which has no such option\n", decided->row->key,
                decided->row->inner ? ':' : '=', decided->value, import->preset);
}

/* An implied default without effect is not listed. */
static void print_setting(const strata_import_t *import, const import_setting_t *setting, const char *before, FILE *out) {
    bool none = setting->action.verb == IMPORT_NONE;
    if (setting->implied || (!none && !setting->skip_reason && !setting->warning)) return;
    print_key(setting, before, out);
    if (setting->skip_reason) print_skipped(import, setting, out);
    else if (none) fprintf(out, " has no equivalent: %s\n", setting->action.what);
    else fprintf(out, " %s\n", setting->warning);
}

void strata_import_print(const strata_import_t *import, const char *before, FILE *out) {
    const import_peer_t *peer = import->peer;
    uint64_t later = 0;
    for (size_t i = 0; i < import->count; i++) print_setting(import, &import->settings[i], before, out);
    if (import->as_of && peer->later && strata_import_version(peer->later, &later) && import->version >= later &&
        strcmp(import->preset, peer->preset) == 0)
        fprintf(out, "%s%s as of %s has no equivalent: %s\n", before, peer->name, import->as_of, peer->later_note);
}

/* ---- a file ---- */

static void write_head(const strata_import_t *import, const strata_strategy_t *strategy, FILE *out) {
    fprintf(out, "# Made by `strata import %s", import->peer->name);
    if (import->input) {
        fputs(" \"", out);
        for (const char *c = import->input; *c; c++) fputc(*c < ' ' ? ' ' : *c, out);
        fputs("\"", out);
    }
    if (import->as_of) fprintf(out, " --as-of %s", import->as_of);
    fprintf(out, "`%s.\n", import->input ? "" : " from the environment");
    fprintf(out, "# Options that no setting changes are as in the preset %s", import->preset);
    fprintf(out, strategy->peer ? " (%s).\n" : ".\n", strategy->peer);
}

static void write_nothing(const strata_import_t *import, FILE *out) {
    for (size_t i = 0; i < import->count; i++) {
        const import_setting_t *setting = &import->settings[i];
        if (setting->skip_reason || setting->implied || setting->action.verb != IMPORT_NOTHING) continue;
        print_key(setting, "# ", out);
        fprintf(out, " needs no setting: %s\n", setting->action.what ? setting->action.what : "this is already the case");
    }
}

static void write_text(const char *text, FILE *out) {
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

/* Returns the setting that set an option, or NULL if the preset did. Several settings can share one
 * position: a variable and its first inner key, or a variable and the default that it implies. So the
 * match is by the option that the setting changes. */
static const import_setting_t *setting_of(const strata_import_t *import, const strata_origin_t *origin, const char *option) {
    char path[64];
    snprintf(path, sizeof path, ".%s", option);
    for (size_t i = 0; i < import->count && origin->file; i++) {
        const import_setting_t *setting = &import->settings[i];
        bool names = !setting->skip_reason && setting->action.what && strstr(setting->action.what, path);
        if (names && setting->origin.line == origin->line && setting->origin.column == origin->column &&
            strcmp(setting->origin.file, origin->file) == 0)
            return setting;
    }
    return NULL;
}

static void write_option(const strata_import_t *import, const strata_model_layer_t *layer, const strata_option_row_t *row,
                         const char *margin, FILE *out) {
    char value[STRATA_OPTION_TEXT_BYTES];
    strata_option_print(row, layer->options, value, sizeof value);
    fprintf(out, "%s    %s: ", margin, row->name);
    if (row->kind == STRATA_OPTION_TEXT) write_text(value, out);
    else fputs(value, out);
    const import_setting_t *setting = setting_of(import, &layer->option_origins[row - layer->type->options], row->name);
    if (setting)
        fprintf(out, "  # %s%c%.60s%s", setting->row->key, setting->row->inner ? ':' : '=', setting->value,
                setting->implied ? ", a default" : "");
    fputc('\n', out);
}

static bool is_set(const strata_model_layer_t *layer, const strata_option_row_t *row) {
    return layer->option_origins[row - layer->type->options].source != STRATA_FROM_DEFAULT;
}

static void write_stack(const strata_import_t *import, const strata_model_stack_t *stack, const char *margin, FILE *out);

/* Returns the row with the value that routes requests to the branch with this number, counted from 1.
 * Returns NULL for the last branch, and if no branch has a value. */
static const strata_option_row_t *row_of_branch(const strata_model_layer_t *layer, size_t number) {
    const strata_option_row_t *row = layer->type->options;
    while (row && row->name && strata_option_branch(row) != number) row++;
    return row && row->name && number < layer->branch_count ? row : NULL;
}

static void write_branches(const strata_import_t *import, const strata_model_layer_t *router, const char *margin, FILE *out) {
    char deeper[MARGIN], value[STRATA_OPTION_TEXT_BYTES];
    bool routes = row_of_branch(router, 1) != NULL;
    snprintf(deeper, sizeof deeper, "%s          ", margin);
    fprintf(out, "%s    %s:\n", margin, routes ? "routes" : "stacks");
    for (size_t i = 0; i < router->branch_count; i++) {
        const strata_option_row_t *row = row_of_branch(router, i + 1);
        fprintf(out, "%s      -", margin);
        if (row) {
            strata_option_print(row, router->options, value, sizeof value);
            fprintf(out, " %.*s: %s\n%s       ", (int)(strrchr(row->name, '_') - row->name), row->name, value, margin);
        }
        fputs(routes ? " stack:\n" : "\n", out);
        write_stack(import, &router->branches[i], deeper, out);
    }
}

static void write_layer(const strata_import_t *import, const strata_model_layer_t *layer, const char *margin, FILE *out) {
    bool named = strcmp(layer->name, layer->type->name) != 0 && strcmp(layer->name, STRATA_RECLAIM_KEY) != 0;
    bool empty = !named && layer->branch_count == 0;
    for (const strata_option_row_t *row = layer->type->options; row && row->name; row++) empty = empty && !is_set(layer, row);
    fprintf(out, "%s- %s:%s\n", margin, layer->type->name, empty ? " {}" : "");
    if (named) fprintf(out, "%s    name: %s\n", margin, layer->name);
    for (const strata_option_row_t *row = layer->type->options; row && row->name; row++)
        if (is_set(layer, row) && !strata_option_branch(row)) write_option(import, layer, row, margin, out);
    if (layer->branch_count > 0) write_branches(import, layer, margin, out);
}

static void write_stack(const strata_import_t *import, const strata_model_stack_t *stack, const char *margin, FILE *out) {
    for (size_t i = 0; i < stack->count; i++) write_layer(import, &stack->layers[i], margin, out);
}

strata_status_t strata_import_write(const strata_import_t *import, const strata_strategy_t *strategy, FILE *out) {
    bool places = false;
    write_head(import, strategy, out);
    strata_import_print(import, "# ", out);
    write_nothing(import, out);
    fprintf(out, "version: 1\nstrategy: %s\nextends: %s\nstack:\n", strategy->name, import->preset);
    write_stack(import, &strategy->stacks[STRATA_PLACE_GPU], "  ", out);
    for (strata_place_kind_t place = STRATA_PLACE_MANAGED; place < STRATA_PLACE_KINDS; place++) {
        if (!import->touched[place]) continue;
        fprintf(out, "%s  %s:\n", places ? "" : "places:\n", strata_place_name(place));
        write_stack(import, &strategy->stacks[place], "    ", out);
        places = true;
    }
    return strata_config_written(out);
}
