/* Reads a stack of a strategy file: its layers and their options. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "allocation/options/option.h"
#include "config/hint.h"
#include "config/page.h"
#include "config/reader/reader.h"
#include "platform/place.h"

/* Finds a layer's name that is followed by more text on its line, as in "auto_growth {chunk_size". */
static const strata_layer_type_t *layer_before_blank(const char *name) {
    char first[64];
    size_t length = strcspn(name, " {");
    if (!name[length] || length >= sizeof first) return NULL;
    snprintf(first, sizeof first, "%.*s", (int)length, name);
    return strata_layer_find(first);
}

static strata_status_t fail_layer(const char *name, const strata_origin_t *origin) {
    const strata_layer_type_t *meant = layer_before_blank(name);
    if (meant)
        return strata_fail_origin(origin, "there is no layer \"%.40s\"; write a colon after the name, as in - %s: {...}", name,
                                  meant->name);
    strata_hint_t hint = strata_hint(name, strata_layer_words(), strata_layer_word, NULL);
    return strata_fail_origin(origin, "there is no layer \"%.40s\"; %s", name, hint.text);
}

/* ---- options ---- */

static bool is_name(const char *name) {
    size_t length = strlen(name);
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)name[i]) && name[i] != '_' && name[i] != '-') return false;
    return length > 0 && length <= STRATA_NAME_LETTERS && isalpha((unsigned char)name[0]);
}

/* The words that a path may begin with instead of a layer's name. */
static bool is_first_word(const char *name) {
    for (int kind = 0; kind < STRATA_NAMED_KINDS; kind++)
        if (strcmp(name, strata_named_key((strata_named_kind_t)kind)) == 0) return true;
    return strcmp(name, "stack") == 0 || strcmp(name, STRATA_RECLAIM_KEY) == 0 || strata_place_find(name) != STRATA_PLACE_KINDS;
}

static strata_status_t read_name(strata_reader_t *reader, strata_model_layer_t *layer, const strata_tree_t *node,
                                 const strata_origin_t *origin) {
    if (node->kind != STRATA_TREE_SCALAR_NODE || !is_name(node->text) || is_first_word(node->text))
        return strata_fail_origin(
            origin, "this is not a valid layer name; write up to 64 letters, digits, - and _, but not the name of a place");
    char *name = strata_arena_strndup(reader->strategy->memory, node->text, strlen(node->text));
    if (!name) return STRATA_E_HOST_MEMORY;
    layer->name = name;
    return STRATA_OK;
}

/* Values of a branch are written in the branch. */
static strata_status_t fail_router_key(const strata_model_layer_t *layer, const strata_tree_t *node, const strata_origin_t *key) {
    const char *name = layer->type->name, *branches = strata_branches_key(layer->type);
    if (strata_option_find(layer->type, node->key))
        return strata_fail_origin(key, "\"%.40s\" belongs in its route; write it without the number in %s", node->key, branches);
    return strata_fail_origin(key, "\"%s\" has no option \"%.40s\"; write %s", name, node->key, branches);
}

static strata_status_t read_option(strata_reader_t *reader, const strata_text_t *text, strata_model_layer_t *layer,
                                   const strata_tree_t *node) {
    const strata_layer_type_t *type = layer->type;
    strata_origin_t key = strata_origin_of(text, node->key_line, node->key_column);
    strata_origin_t value = strata_origin_of(text, node->line, node->column);
    if (strcmp(node->key, "name") == 0) return read_name(reader, layer, node, &value);
    if (type->role == STRATA_ROUTER && strcmp(node->key, strata_branches_key(type)) == 0) {
        strata_status_t status = strata_read_branches(reader, text, layer, node);
        reader->unread_layers += status != STRATA_OK;
        return status;
    }
    const strata_option_row_t *row = strata_option_find(type, node->key);
    if (type->role == STRATA_ROUTER && (!row || strata_option_branch(row))) return fail_router_key(layer, node, &key);
    if (!row && strata_option_count(type) == 0)
        return strata_fail_origin(&key, "\"%s\" has no options; remove \"%.40s\"", type->name, node->key);
    if (!row) {
        strata_hint_t hint = strata_hint(node->key, strata_option_count(type), strata_option_word, type);
        return strata_fail_origin(&key, "\"%s\" has no option \"%.40s\"; %s", layer->name, node->key, hint.text);
    }
    if (node->kind != STRATA_TREE_SCALAR_NODE || node->empty)
        return strata_fail_origin(node->empty ? &key : &value, "%s needs one value; write %s: %s", row->name, row->name,
                                  row->default_text);
    if (node->broken) return strata_fail_broken(&value);
    strata_status_t status = strata_model_layer_set(layer, row, node->text, &value);
    return status == STRATA_E_STRATEGY ? strata_fail_origin(&value, "%s", strata_last_error()->text) : status;
}

strata_status_t strata_read_options(strata_reader_t *reader, const strata_text_t *text, strata_model_layer_t *layer,
                                    const strata_tree_t *node) {
    const char *name = layer->type->name;
    if (node->kind == STRATA_TREE_SCALAR_NODE && node->empty) return STRATA_OK;
    if (node->kind != STRATA_TREE_MAP) {
        strata_origin_t origin = strata_origin_of(text, node->line, node->column);
        const strata_option_row_t *row = strata_option_count(layer->type) ? layer->type->options : NULL;
        return strata_fail_origin(&origin, "the options of \"%s\" must be a mapping; write - %s: {%s%s%s}", name, name,
                                  row ? row->name : "", row ? ": " : "", row ? row->default_text : "");
    }
    strata_status_t status = STRATA_OK;
    for (const strata_tree_t *child = node->first; child && status == STRATA_OK; child = child->next)
        status = strata_note_error(reader->error_sink, read_option(reader, text, layer, child));
    return status;
}

/* ---- layers ---- */

/* Reports a list item that contains more than its layer. In most cases its options are not indented far enough. */
static strata_status_t fail_second_key(const strata_text_t *text, const strata_tree_t *item) {
    const strata_tree_t *second = item->first->next;
    strata_origin_t origin = strata_origin_of(text, second->key_line, second->key_column);
    const strata_layer_type_t *type = strata_layer_find(item->first->key);
    bool option = type && (strata_option_find(type, second->key) || strcmp(second->key, "name") == 0);
    if (option)
        return strata_fail_origin(&origin, "\"%.40s\" is beside \"%s\", not in it; write - %s: {%.40s: ...}", second->key,
                                  type->name, type->name, second->key);
    return strata_fail_origin(&origin,
                              "a list item has one layer, and \"%.40s\" is a second one; write it as a separate item, \"- "
                              "%.40s\"",
                              second->key, second->key);
}

static strata_status_t read_layer(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *item,
                                  strata_model_layer_t *layer) {
    strata_origin_t origin = strata_origin_of(text, item->line, item->column);
    if (item->kind == STRATA_TREE_LIST || item->empty || (item->kind == STRATA_TREE_MAP && item->count == 0))
        return strata_fail_origin(&origin, "a layer is missing here; write its name, as in \"- system\"");
    if (item->kind == STRATA_TREE_MAP && item->count > 1) return fail_second_key(text, item);
    const strata_tree_t *options = item->kind == STRATA_TREE_MAP ? item->first : NULL;
    const char *name = options ? options->key : item->text;
    if (options) origin = strata_origin_of(text, options->key_line, options->key_column);
    const strata_layer_type_t *type = strata_layer_find(name);
    if (!type) return fail_layer(name, &origin);
    size_t unread_layers = reader->unread_layers;
    strata_status_t status = strata_model_layer_init(reader->strategy->memory, layer, type, &origin);
    if (status == STRATA_OK && options) status = strata_read_options(reader, text, layer, options);
    if (status == STRATA_OK && type->role == STRATA_ROUTER && layer->branch_count == 0 && reader->unread_layers == unread_layers) {
        reader->unread_layers++;
        status = strata_fail_no_branches(layer);
    }
    return status;
}

/* Two layers of one name could not be distinguished in a path. Unnamed layers may share their type's name. */
static strata_status_t check_names(const strata_model_stack_t *stack) {
    const strata_model_layer_t *layers[STRATA_PLAN_NODES];
    size_t count = strata_model_layers(stack, layers, STRATA_PLAN_NODES);
    for (size_t i = 0; i < count && i < STRATA_PLAN_NODES; i++)
        for (size_t j = 0; j < i; j++) {
            const strata_model_layer_t *a = layers[j], *b = layers[i];
            if (strcmp(a->name, b->name) != 0 || (a->name == a->type->name && b->name == b->type->name)) continue;
            return strata_fail_origin(&b->origin, "two layers are named \"%s\", the other in line %u; rename one", b->name,
                                      a->origin.line);
        }
    return STRATA_OK;
}

static strata_status_t fail_too_many(const strata_text_t *text, const strata_tree_t *list) {
    const strata_tree_t *item = list->first;
    for (size_t i = 0; i < STRATA_STACK_LAYERS; i++) item = item->next;
    strata_origin_t origin = strata_origin_of(text, item->line, item->column);
    return strata_fail_origin(&origin, "a stack has at most %d layers, but this one has %zu; remove some", STRATA_STACK_LAYERS,
                              list->count);
}

static const char *mapping_word(size_t index, const void *context) {
    (void)context;
    return index == 0 ? "stack" : index == 1 ? STRATA_RECLAIM_KEY : STRATA_IDLE_KEY;
}

static strata_status_t count_layer(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *item) {
    if (++reader->layers <= STRATA_PLAN_NODES) return STRATA_OK;
    strata_origin_t origin = strata_origin_of(text, item->line, item->column);
    return strata_fail_origin(&origin,
                              "the stacks of a place have at most %d layers in total, and this layer is one more; remove some",
                              STRATA_PLAN_NODES);
}

/* Reads `{stack: [...], out_of_memory: {...}, idle: {...}}`, which is allowed in place of a list. */
static strata_status_t read_mapping(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *map,
                                    strata_model_stack_t *stack) {
    const strata_tree_t *list = strata_tree_get(map, "stack");
    for (const strata_tree_t *child = map->first; child; child = child->next) {
        if (child == list || strata_is_stack_key(child->key)) continue;
        strata_origin_t key = strata_origin_of(text, child->key_line, child->key_column);
        strata_hint_t hint = strata_hint(child->key, 3, mapping_word, NULL);
        return strata_fail_origin(&key, "a stack has no \"%.40s\"; %s", child->key, hint.text);
    }
    strata_status_t status = strata_read_list(reader, text, list, stack);
    return status ? status : strata_read_stack_keys(reader, text, map, stack);
}

/* Moves `retry` above the layers of its list that hold no lock, because it recovers everything below it
 * wherever it is written. It must not move silently above a layer that holds a lock; the plan refuses
 * that order. */
static void raise_retry(strata_model_stack_t *stack) {
    size_t at = stack->count - 1;
    const strata_model_layer_t retry = stack->layers[at];
    for (; at > 0; at--) {
        const strata_layer_type_t *above = stack->layers[at - 1].type;
        if (above->role != STRATA_DECORATOR || above->guarded || above == retry.type) break;
        stack->layers[at] = stack->layers[at - 1];
    }
    stack->layers[at] = retry;
}

strata_status_t strata_read_list(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *list,
                                 strata_model_stack_t *stack) {
    if (list->kind == STRATA_TREE_MAP && strata_tree_get(list, "stack")) return read_mapping(reader, text, list, stack);
    strata_origin_t origin = strata_origin_of(text, list->line, list->column);
    if (list->kind != STRATA_TREE_LIST)
        return strata_fail_origin(&origin,
                                  "a stack must be a list of layers, outermost first; write [retry, stream_safe, auto_growth, "
                                  "system]");
    if (list->count == 0) return strata_fail_origin(&origin, "a stack needs at least one layer; write [system]");
    if (list->count > STRATA_STACK_LAYERS) return fail_too_many(text, list);
    *stack = (strata_model_stack_t){.origin = origin};
    stack->layers = strata_arena_alloc(reader->strategy->memory, list->count, sizeof *stack->layers);
    if (!stack->layers) return STRATA_E_HOST_MEMORY;
    for (const strata_tree_t *item = list->first; item; item = item->next) {
        strata_model_layer_t layer = {.type = NULL};
        strata_status_t status = count_layer(reader, text, item);
        if (status) return status;
        status = strata_note_error(reader->error_sink, read_layer(reader, text, item, &layer));
        if (status) return status;
        if (layer.type) stack->layers[stack->count++] = layer;
        if (layer.type == &strata_retry_type) raise_retry(stack);
        reader->unread_layers += layer.type == NULL;
    }
    return STRATA_OK;
}

strata_status_t strata_read_stack(strata_reader_t *reader, const strata_text_t *text, strata_place_kind_t place,
                                  strata_model_device_t *own, const strata_tree_t *list) {
    unsigned *broken = own ? &reader->broken_own[own - reader->strategy->own] : &reader->broken;
    return strata_read_stack_of(reader, text, place, own ? own->stacks : reader->strategy->stacks, broken, list);
}

strata_status_t strata_read_stack_of(strata_reader_t *reader, const strata_text_t *text, strata_place_kind_t place,
                                     strata_model_stack_t *stacks, unsigned *broken, const strata_tree_t *list) {
    strata_model_stack_t *stack = &stacks[place];
    reader->layers = reader->unread_layers = 0;
    strata_status_t status = strata_read_list(reader, text, list, stack);
    bool whole = status == STRATA_OK;
    if (whole) status = check_names(stack);
    status = strata_note_error(reader->error_sink, status);
    /* Invalid options keep their defaults. If a layer is missing, the order of the stack is not checked. */
    *broken &= ~(1u << place);
    if (!whole || reader->unread_layers > 0) *broken |= 1u << place;
    return status;
}

/* ---- the page ---- */

static const char about_layers[] =
    "\nA layer is written as `- layer` or `- layer: {option: value, ...}`. The option `name:` gives it a name for use in\n"
    "paths: up to %d letters, digits, - and _, and not the name of a place. A stack has at most %d layers, including those\n"
    "of its routers' stacks. A `stack:` replaces the whole stack of the file that `extends:` names:\n\n"
    "```yaml\n"
    "extends: paddle\n"
    "stack:\n"
    "  - stream_safe\n"
    "  - auto_growth: {name: small, chunk_size: 2MiB}\n"
    "  - auto_growth: {name: large, chunk_size: 1GiB}\n"
    "  - system\n"
    "```\n";

void strata_page_layers(FILE *out) { fprintf(out, about_layers, STRATA_NAME_LETTERS, STRATA_STACK_LAYERS); }
