/* Values by path: [PLACE[:DEVICE].]LAYER.OPTION. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocation/option.h"
#include "platform/status.h"
#include "strategy/model.h"

enum { PATH_LETTERS = 200 };

/* A path taken apart; the words lie in `text`. */
typedef struct parts {
    char text[PATH_LETTERS];
    const char *prefix; /* "pinned.", "stack." or "" */
    char prefix_text[STRATA_NAME_LETTERS + 2];
    strata_place_kind_t place;
    int device; /* whose own stack; -1: that of all devices */
    const char *layer, *option;
} parts_t;

/* The layers of the stack that a path means. */
typedef struct layers {
    const strata_model_layer_t *list[STRATA_PLAN_NODES];
    size_t count;
} layers_t;

/* What a path means; the words that are nearest to a misspelt one. */
typedef struct found {
    const strata_model_layer_t *layer, *other; /* `other`: a second one that the path fits */
    const strata_option_row_t *row;
} found_t;

static const char *place_word(size_t index, const void *context) {
    (void)context;
    return index == STRATA_PLACE_KINDS ? "stack" : strata_place_name((strata_place_kind_t)index);
}

static const char *layer_word(size_t index, const void *context) {
    return ((const layers_t *)context)->list[index]->name;
}

static const char *option_word(size_t index, const void *context) {
    return ((const strata_layer_type_t *)context)->options[index].name;
}

static strata_status_t fail_form(const char *path) {
    return strata_fail(STRATA_E_STRATEGY, 0,
                       "\"%.80s\" is no path of an option; write LAYER.OPTION or PLACE.LAYER.OPTION, as in "
                       "auto_growth.chunk_size",
                       path);
}

/* "gpu:1": the number is taken off the word. False: it is none. */
static bool take_device(parts_t *parts, char *word) {
    char *colon = strchr(word, ':');
    if (!colon) return true;
    *colon = '\0';
    size_t digits = strspn(colon + 1, "0123456789");
    if (digits == 0 || digits > 3 || colon[1 + digits]) return false;
    parts->device = atoi(colon + 1);
    return true;
}

static strata_status_t take_place(parts_t *parts, char *word, const char *path) {
    snprintf(parts->prefix_text, sizeof parts->prefix_text, "%.*s.", STRATA_NAME_LETTERS, word);
    if (!take_device(parts, word)) return fail_form(path);
    parts->place = strcmp(word, "stack") == 0 ? STRATA_PLACE_GPU : strata_place_find(word);
    parts->prefix = parts->prefix_text;
    if (parts->place < STRATA_PLACE_KINDS) return STRATA_OK;
    const char *nearest = strata_nearest_word(word, STRATA_PLACE_KINDS + 1, place_word, NULL);
    return strata_fail(STRATA_E_STRATEGY, 0, "there is no place \"%.40s\"; write %s.%s.%s", word, nearest ? nearest : "stack",
                       parts->layer, parts->option);
}

/* Fills *parts; the place is known afterwards, the rest is not looked at. */
static strata_status_t take_apart(const char *path, parts_t *parts) {
    char *word[4] = {parts->text};
    size_t count = 1;
    if (strlen(path) >= sizeof parts->text) return fail_form(path);
    strcpy(parts->text, path);
    for (char *at = parts->text; *at; at++) {
        if (*at != '.') continue;
        if (count == 3) return fail_form(path);
        *at = '\0';
        word[count++] = at + 1;
    }
    for (size_t i = 0; i < count; i++)
        if (!*word[i]) return fail_form(path);
    if (count == 1) return fail_form(path);
    parts->layer = word[count - 2];
    parts->option = word[count - 1];
    parts->place = STRATA_PLACE_GPU;
    parts->device = -1;
    parts->prefix = "";
    return count == 3 ? take_place(parts, word[0], path) : STRATA_OK;
}

/* False: the device has no stack of its own there. */
static bool take_layers(const strata_strategy_t *strategy, const parts_t *parts, layers_t *layers) {
    const strata_model_stack_t *common = &strategy->stacks[parts->place];
    const strata_model_stack_t *stack =
        parts->device < 0 ? common : strata_strategy_stack(strategy, parts->place, (uint32_t)parts->device);
    layers->count = strata_model_layers(stack, layers->list, STRATA_PLAN_NODES);
    if (layers->count > STRATA_PLAN_NODES) layers->count = STRATA_PLAN_NODES;
    return parts->device < 0 || stack != common;
}

/* A layer is called by the name that the file gave it, or by its type. */
static void find(const layers_t *layers, const parts_t *parts, found_t *found) {
    *found = (found_t){.layer = NULL};
    for (size_t i = 0; i < layers->count; i++) {
        const strata_model_layer_t *layer = layers->list[i];
        if (strcmp(layer->name, parts->layer) != 0 && strcmp(layer->type->name, parts->layer) != 0) continue;
        if (found->layer) {
            found->other = layer;
            return;
        }
        found->layer = layer;
        found->row = strata_option_find(layer->type, parts->option);
    }
}

static strata_status_t fail_ambiguous(const parts_t *parts, const found_t *found) {
    return strata_fail(STRATA_E_STRATEGY, 0,
                       "\"%s%s.%s\" fits two layers, \"%s\" (line %u) and \"%s\" (line %u); give them names of "
                       "their own with \"name:\" and write %sNAME.%s",
                       parts->prefix, parts->layer, parts->option, found->layer->name, found->layer->origin.line,
                       found->other->name, found->other->origin.line, parts->prefix, parts->option);
}

static const char *nearest_option(const strata_layer_type_t *type, const char *option) {
    return strata_nearest_word(option, strata_option_count(type), option_word, type);
}

static strata_status_t fail_layer(const layers_t *layers, const parts_t *parts) {
    const char *where = strata_place_name(parts->place);
    const char *nearest = strata_nearest_word(parts->layer, layers->count, layer_word, layers);
    if (nearest) {
        parts_t near = *parts;
        found_t found;
        near.layer = nearest;
        find(layers, &near, &found);
        const char *option = found.row ? parts->option : nearest_option(found.layer->type, parts->option);
        return strata_fail(STRATA_E_STRATEGY, 0, "the stack of the place %s has no layer \"%s\"; write %s%s.%s", where,
                           parts->layer, parts->prefix, nearest, option ? option : parts->option);
    }
    char all[512] = "";
    for (size_t i = 0; i < layers->count; i++) {
        size_t length = strlen(all);
        snprintf(all + length, sizeof all - length, "%s%s", i ? ", " : "", layers->list[i]->name);
    }
    return strata_fail(STRATA_E_STRATEGY, 0, "the stack of the place %s has no layer \"%s\"; its layers are %s", where,
                       parts->layer, all);
}

static strata_status_t fail_option(const parts_t *parts, const strata_model_layer_t *layer) {
    const char *nearest = nearest_option(layer->type, parts->option);
    if (nearest)
        return strata_fail(STRATA_E_STRATEGY, 0, "\"%s\" has no option \"%s\"; write %s%s.%s", parts->layer, parts->option,
                           parts->prefix, parts->layer, nearest);
    char all[512] = "";
    for (size_t i = 0; i < strata_option_count(layer->type); i++) {
        size_t length = strlen(all);
        snprintf(all + length, sizeof all - length, "%s%s", i ? ", " : "", layer->type->options[i].name);
    }
    return strata_fail(STRATA_E_STRATEGY, 0, "\"%s\" has no option \"%s\"; %s%s", parts->layer, parts->option,
                       *all ? "its options are " : "it has none", all);
}

static strata_status_t set(strata_strategy_t *strategy, const char *path, const char *value, const strata_origin_t *origin) {
    parts_t parts;
    layers_t layers;
    found_t found;
    strata_status_t status = take_apart(path, &parts);
    if (status) return status;
    if (!take_layers(strategy, &parts, &layers))
        return strata_fail(STRATA_E_STRATEGY, 0, "device %d has no stack of its own for the place %s; write %s.%s.%s",
                           parts.device, strata_place_name(parts.place),
                           parts.place == STRATA_PLACE_GPU ? "stack" : strata_place_name(parts.place), parts.layer,
                           parts.option);
    find(&layers, &parts, &found);
    if (!found.layer) return fail_layer(&layers, &parts);
    if (found.other) return fail_ambiguous(&parts, &found);
    if (!found.row) return fail_option(&parts, found.layer);
    /* The strategy is ours to write, the walk only reads it. */
    status = strata_model_layer_set((strata_model_layer_t *)(uintptr_t)found.layer, found.row, value, origin);
    /* The text begins with the option's name. */
    return status ? strata_fail(status, 0, "%s%s.%s", parts.prefix, parts.layer, strata_last_error()->text) : STRATA_OK;
}

strata_status_t strata_strategy_set(strata_strategy_t *strategy, const char *path, const char *value,
                                    const strata_origin_t *origin) {
    strata_status_t status = set(strategy, path, value, origin);
    return status ? strata_fail_origin(origin, "%s", strata_last_error()->text) : STRATA_OK;
}

bool strata_strategy_has(const strata_strategy_t *strategy, const char *path) {
    const strata_error_t before = *strata_last_error();
    parts_t parts;
    layers_t layers;
    found_t found = {.layer = NULL};
    if (take_apart(path, &parts)) {
        /* Asking is no failure. */
        strata_fail_at(before.status, before.line, before.column, "%s", before.text);
        return false;
    }
    if (!take_layers(strategy, &parts, &layers)) return false;
    find(&layers, &parts, &found);
    return found.row != NULL;
}
