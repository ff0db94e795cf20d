/* Sets values by path: [pools.NAME.|streams.PATTERN.|graph.][PLACE[:DEVICE].]LAYER.OPTION. */
#include <stdio.h>
#include <string.h>

#include "allocation/options/option.h"
#include "platform/place.h"
#include "platform/status.h"
#include "platform/text/nearest.h"
#include "strategy/devices.h"
#include "strategy/model.h"

enum { PATH_LETTERS = 300, PATH_WORDS = 5 };

/* The parts of a path; the words are in `text`. */
typedef struct parts {
    char text[PATH_LETTERS];
    char prefix[2 * STRATA_NAME_LETTERS + 16]; /* "pinned.", "stack.", "pools.weights.", "graph." or "" */
    strata_named_kind_t kind; /* the kind of name, if the stack has one */
    const char *name; /* NULL for no name */
    strata_place_kind_t place;
    int device; /* the device with its own stack; -1 for all devices */
    const char *layer, *option;
} parts_t;

/* The layers of the stack that a path selects. */
typedef struct layers {
    const strata_model_layer_t *list[STRATA_PLAN_NODES];
    size_t count;
} layers_t;

/* The layer and option that a path selects. */
typedef struct found {
    const strata_model_layer_t *layer, *other; /* `other` is a second layer that the path matches */
    const strata_option_row_t *row;
} found_t;

static const char *place_word(size_t index, const void *context) {
    (void)context;
    if (index > STRATA_PLACE_KINDS) return strata_named_key(STRATA_NAMED_GRAPH);
    return index == STRATA_PLACE_KINDS ? "stack" : strata_place_name((strata_place_kind_t)index);
}

static const char *layer_word(size_t index, const void *context) { return ((const layers_t *)context)->list[index]->name; }

static const char *option_word(size_t index, const void *context) {
    return ((const strata_layer_type_t *)context)->options[index].name;
}

static strata_status_t fail_syntax(const char *path) {
    return strata_fail(STRATA_E_STRATEGY, 0,
                       "\"%.80s\" is not an option path; write LAYER.OPTION or PLACE.LAYER.OPTION, as in "
                       "auto_growth.chunk_size, or pools.NAME.LAYER.OPTION, or graph.LAYER.OPTION",
                       path);
}

/* Removes the number of "gpu:1" from the word. Returns false if it is no device number. */
static bool parse_device(parts_t *parts, char *word) {
    char *colon = strchr(word, ':');
    if (!colon) return true;
    *colon = '\0';
    parts->device = strata_device_number(colon + 1);
    return parts->device >= 0;
}

static void add_prefix(parts_t *parts, const char *word) {
    size_t length = strlen(parts->prefix);
    snprintf(parts->prefix + length, sizeof parts->prefix - length, "%.*s.", STRATA_NAME_LETTERS, word);
}

static strata_status_t parse_place(parts_t *parts, char *word, const char *path) {
    char before[sizeof parts->prefix];
    strcpy(before, parts->prefix);
    add_prefix(parts, word);
    if (!parse_device(parts, word) || (parts->name && parts->device >= 0)) return fail_syntax(path);
    parts->place = strcmp(word, "stack") == 0 ? STRATA_PLACE_GPU : strata_place_find(word);
    if (parts->place < STRATA_PLACE_KINDS) return STRATA_OK;
    char place[128];
    strata_nearest_or_all(word, STRATA_PLACE_KINDS + (parts->name ? 1 : 2), place_word, NULL, place, sizeof place);
    if (strncmp(place, "one of ", 7) == 0)
        return strata_fail(STRATA_E_STRATEGY, 0, "there is no place \"%.40s\"; write %sPLACE.%s.%s, where PLACE is %s", word,
                           before, parts->layer, parts->option, place);
    return strata_fail(STRATA_E_STRATEGY, 0, "there is no place \"%.40s\"; write %s%s.%s.%s", word, before, place, parts->layer,
                       parts->option);
}

/* Takes "pools.weights", "streams.copy*" or "graph" if a layer and its option follow. Returns the number of words. */
static size_t parse_name(parts_t *parts, char *const *word, size_t count) {
    for (parts->kind = 0; parts->kind < STRATA_NAMED_KINDS; parts->kind++) {
        size_t words = strata_named_is_single(parts->kind) ? 1 : 2;
        if (count < words + 2 || strcmp(word[0], strata_named_key(parts->kind)) != 0) continue;
        parts->name = word[words - 1];
        for (size_t i = 0; i < words; i++) add_prefix(parts, word[i]);
        return words;
    }
    return 0;
}

/* Fills *parts. The place is checked here; the other parts are not. */
static strata_status_t split_path(const char *path, parts_t *parts) {
    char *word[PATH_WORDS] = {parts->text};
    size_t count = 1;
    if (strlen(path) >= sizeof parts->text) return fail_syntax(path);
    strcpy(parts->text, path);
    for (char *at = parts->text; *at; at++) {
        if (*at != '.') continue;
        if (count == PATH_WORDS) return fail_syntax(path);
        *at = '\0';
        word[count++] = at + 1;
    }
    for (size_t i = 0; i < count; i++)
        if (!*word[i]) return fail_syntax(path);
    if (count == 1) return fail_syntax(path);
    parts->layer = word[count - 2];
    parts->option = word[count - 1];
    parts->place = STRATA_PLACE_GPU;
    parts->device = -1;
    parts->name = NULL;
    parts->prefix[0] = '\0';
    size_t named = parse_name(parts, word, count);
    if (count - named > 3) return fail_syntax(path);
    return count - named == 3 ? parse_place(parts, word[named], path) : STRATA_OK;
}

static const char *named_word(size_t index, const void *context) {
    return ((const strata_model_names_t *)context)->list[index].name;
}

static const char *place_prefix(const parts_t *parts) {
    return parts->place == STRATA_PLACE_GPU ? "stack" : strata_place_name(parts->place);
}

static strata_status_t fail_graph(const parts_t *parts) {
    return strata_fail(STRATA_E_STRATEGY, 0,
                       "the strategy has no \"graph\", so graphs have the layers of the place; write graph: {stack: [...]} in "
                       "its file, or %s.%s.%s",
                       place_prefix(parts), parts->layer, parts->option);
}

static strata_status_t fail_name(const strata_strategy_t *strategy, const parts_t *parts) {
    const strata_model_names_t *names = &strategy->named[parts->kind];
    if (parts->kind == STRATA_NAMED_GRAPH) return fail_graph(parts);
    if (parts->kind == STRATA_NAMED_PLAIN)
        return strata_fail(STRATA_E_STRATEGY, 0, "the strategy has no \"%s\"; write %s.%s.%s", parts->name, place_prefix(parts),
                           parts->layer, parts->option);
    const char *key = strata_named_key(parts->kind);
    char name[256];
    strata_nearest_or_all(parts->name, names->count, named_word, names, name, sizeof name);
    if (names->count == 0)
        return strata_fail(STRATA_E_STRATEGY, 0, "the strategy has no %s; write %s: {%.40s: {stack: [...]}} in its file", key, key,
                           parts->name);
    if (strncmp(name, "one of ", 7) == 0)
        return strata_fail(STRATA_E_STRATEGY, 0,
                           "the strategy has no \"%.40s\" among its %s; write %s.NAME.%s.%s, where NAME is %s", parts->name, key,
                           key, parts->layer, parts->option, name);
    return strata_fail(STRATA_E_STRATEGY, 0, "the strategy has no \"%.40s\" among its %s; write %s.%s.%s.%s", parts->name, key, key,
                       name, parts->layer, parts->option);
}

/* Finds the stack that a path selects: of the place, of one device, of a pool or of streams. The strategy
 * must contain that stack. */
static strata_status_t find_stack(const strata_strategy_t *strategy, const parts_t *parts, const strata_model_stack_t **stack) {
    const strata_model_stack_t *common = &strategy->stacks[parts->place];
    *stack = common;
    if (parts->name) {
        const strata_model_named_t *named = strata_strategy_named(strategy, parts->kind, parts->name);
        if (!named) return fail_name(strategy, parts);
        *stack = &named->stacks[parts->place];
        if ((*stack)->count > 0) return STRATA_OK;
        return strata_fail(STRATA_E_STRATEGY, 0, "%s has no own stack for the place %s; write %s.%s.%s", named->path,
                           strata_place_name(parts->place), place_prefix(parts), parts->layer, parts->option);
    }
    if (parts->device >= 0) *stack = strata_strategy_stack(strategy, parts->place, (uint32_t)parts->device);
    if (parts->device < 0 || *stack != common) return STRATA_OK;
    return strata_fail(STRATA_E_STRATEGY, 0, "device %d has no own stack for the place %s; write %s.%s.%s", parts->device,
                       strata_place_name(parts->place), place_prefix(parts), parts->layer, parts->option);
}

static strata_status_t find_layers(const strata_strategy_t *strategy, const parts_t *parts, layers_t *layers) {
    const strata_model_stack_t *stack;
    strata_status_t status = find_stack(strategy, parts, &stack);
    if (status) return status;
    if (strcmp(parts->layer, STRATA_RECLAIM_KEY) == 0) {
        layers->list[0] = strata_model_reclaim(stack);
        layers->count = layers->list[0] != NULL;
        if (layers->list[0]) return STRATA_OK;
        return strata_fail(STRATA_E_STRATEGY, 0, "%s%s: its stack has no such setting; write %s: {%s: ...} beside the stack",
                           parts->prefix, parts->layer, parts->layer, parts->option);
    }
    layers->count = strata_model_layers(stack, layers->list, STRATA_PLAN_NODES);
    if (layers->count > STRATA_PLAN_NODES) layers->count = STRATA_PLAN_NODES;
    return STRATA_OK;
}

/* A layer has the name from the file, and the name of its type. */
static void find_option(const layers_t *layers, const parts_t *parts, found_t *found) {
    *found = (found_t){.layer = NULL};
    for (size_t i = 0; i < layers->count; i++) {
        const strata_model_layer_t *layer = layers->list[i];
        bool named = strcmp(layer->name, parts->layer) == 0 || strcmp(layer->type->name, parts->layer) == 0;
        if (!named && strcmp(parts->layer, STRATA_RECLAIM_KEY) != 0) continue;
        if (found->layer) {
            found->other = layer;
            return;
        }
        found->layer = layer;
        found->row = strata_option_find(layer->type, parts->option);
    }
}

static strata_status_t fail_ambiguous(const parts_t *parts, const found_t *found) {
    return strata_fail(
        STRATA_E_STRATEGY, 0,
        "\"%s%s.%s\" matches two layers, \"%s\" (line %u) and \"%s\" (line %u); give them names with \"name:\" and write "
        "%sNAME.%s",
        parts->prefix, parts->layer, parts->option, found->layer->name, found->layer->origin.line, found->other->name,
        found->other->origin.line, parts->prefix, parts->option);
}

static const char *nearest_option(const strata_layer_type_t *type, const char *option) {
    return strata_nearest_word(option, strata_option_count(type), option_word, type);
}

static strata_status_t fail_layer(const strata_strategy_t *strategy, const layers_t *layers, const parts_t *parts) {
    const strata_model_named_t *named = parts->name ? strata_strategy_named(strategy, parts->kind, parts->name) : NULL;
    const char *where = strata_place_name(parts->place), *in = named ? " in " : "", *name = named ? named->path : "";
    const char *nearest = strata_nearest_word(parts->layer, layers->count, layer_word, layers);
    if (nearest) {
        parts_t near = *parts;
        found_t found;
        near.layer = nearest;
        find_option(layers, &near, &found);
        const char *option = found.row ? parts->option : nearest_option(found.layer->type, parts->option);
        return strata_fail(STRATA_E_STRATEGY, 0, "the stack of the place %s%s%s has no layer \"%s\"; write %s%s.%s", where, in,
                           name, parts->layer, parts->prefix, nearest, option ? option : parts->option);
    }
    char all[512] = "";
    for (size_t i = 0; i < layers->count; i++) {
        size_t length = strlen(all);
        snprintf(all + length, sizeof all - length, "%s%s", i ? ", " : "", layers->list[i]->name);
    }
    return strata_fail(STRATA_E_STRATEGY, 0, "the stack of the place %s%s%s has no layer \"%s\"; its layers are %s", where, in,
                       name, parts->layer, all);
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

/* Returns the pool of a path "pools.weights.keep", or NULL for another path. */
static strata_model_named_t *pool_of_keep(const strata_strategy_t *strategy, const char *path) {
    char name[STRATA_NAME_LETTERS + 1];
    const char *begin = path + strlen("pools."), *dot = strncmp(path, "pools.", strlen("pools.")) == 0 ? strchr(begin, '.') : NULL;
    if (!dot || strcmp(dot, ".keep") != 0 || (size_t)(dot - begin) >= sizeof name) return NULL;
    snprintf(name, sizeof name, "%.*s", (int)(dot - begin), begin);
    return strata_strategy_named(strategy, STRATA_NAMED_POOL, name);
}

static strata_status_t set(strata_strategy_t *strategy, const char *path, const char *value, const strata_origin_t *origin) {
    parts_t parts;
    layers_t layers;
    found_t found;
    strata_model_named_t *pool = pool_of_keep(strategy, path);
    if (strcmp(path, "graph.keep") == 0) return strata_graph_refuse_keep();
    if (pool) return strata_named_set_keep(pool, value, origin);
    strata_status_t status = split_path(path, &parts);
    if (status) return status;
    status = find_layers(strategy, &parts, &layers);
    if (status) return status;
    find_option(&layers, &parts, &found);
    if (!found.layer) return fail_layer(strategy, &layers, &parts);
    if (found.other) return fail_ambiguous(&parts, &found);
    if (!found.row) return fail_option(&parts, found.layer);
    /* The caller may modify the strategy; only the walk is const. */
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
    if (pool_of_keep(strategy, path)) return true;
    if (split_path(path, &parts) || find_layers(strategy, &parts, &layers)) {
        /* A query must not change the thread's last error. */
        strata_fail_at(before.status, before.line, before.column, "%s", before.text);
        return false;
    }
    find_option(&layers, &parts, &found);
    return found.row != NULL;
}
