/* Reads the stacks below a router. The form is `routes: [{up_to: 1MiB, stack: [...]}, {stack: [...]}]` if
 * branches have values, else `stacks: [[...], [...]]`. */
#include <stdio.h>
#include <string.h>

#include "allocation/options/option.h"
#include "config/hint.h"
#include "config/page.h"
#include "config/reader/reader.h"

/* Returns the type's first branch option by its name in a route, or "" if it has none. */
static void branch_option_name(const strata_layer_type_t *type, char *name, size_t capacity) {
    *name = '\0';
    for (const strata_option_row_t *row = type->options; row && row->name && !*name; row++) {
        int letters = strata_option_branch(row) == 1 ? (int)(strrchr(row->name, '_') - row->name) : 0;
        snprintf(name, capacity, "%.*s", letters, row->name);
    }
}

const char *strata_branches_key(const strata_layer_type_t *type) {
    char name[64];
    branch_option_name(type, name, sizeof name);
    return *name ? "routes" : "stacks";
}

/* Writes an example such as "binning: {routes: [{up_to: 64KiB, stack: [...]}, {stack: [...]}]}". */
static void example(const strata_layer_type_t *type, char *text, size_t capacity) {
    char name[64];
    branch_option_name(type, name, sizeof name);
    if (*name) snprintf(text, capacity, "%s: {routes: [{%s: 64KiB, stack: [...]}, {stack: [...]}]}", type->name, name);
    else snprintf(text, capacity, "%s: {stacks: [[...], [...]]}", type->name);
}

strata_status_t strata_fail_no_branches(const strata_model_layer_t *layer) {
    char text[256];
    example(layer->type, text, sizeof text);
    return strata_fail_origin(&layer->origin, "\"%s\" needs several stacks below it, but none is given; write - %s",
                              layer->type->name, text);
}

typedef struct route_words {
    const strata_layer_type_t *type;
    char name[64];
} route_words_t;

static const char *route_word(size_t index, const void *context) {
    return index == 0 ? "stack" : index == 1 ? STRATA_RECLAIM_KEY : ((const route_words_t *)context)->name;
}

static strata_status_t read_route_value(const strata_text_t *text, strata_model_layer_t *layer, uint32_t number,
                                        const strata_tree_t *node) {
    strata_origin_t key = strata_origin_of(text, node->key_line, node->key_column);
    strata_origin_t value = strata_origin_of(text, node->line, node->column);
    const strata_option_row_t *row = strata_branch_option(layer->type, node->key, number);
    if (!row && strata_branch_option(layer->type, node->key, 1))
        return strata_fail_origin(&key, "route %u is the last possible one and takes all other requests; remove %s", number,
                                  node->key);
    if (!row) {
        route_words_t words = {.type = layer->type};
        branch_option_name(layer->type, words.name, sizeof words.name);
        strata_hint_t hint = strata_hint(node->key, 3, route_word, &words);
        return strata_fail_origin(&key, "a route of \"%s\" has no \"%.40s\"; %s", layer->type->name, node->key, hint.text);
    }
    if (node->kind != STRATA_TREE_SCALAR_NODE || node->empty)
        return strata_fail_origin(node->empty ? &key : &value, "%s needs one value; write %s: 64KiB", node->key, node->key);
    if (node->broken) return strata_fail_broken(&value);
    strata_status_t status = strata_model_layer_set(layer, row, node->text, &value);
    return status == STRATA_E_STRATEGY ? strata_fail_origin(&value, "%s", strata_last_error()->text) : status;
}

static strata_status_t read_route(strata_reader_t *reader, const strata_text_t *text, strata_model_layer_t *layer, uint32_t number,
                                  const strata_tree_t *item) {
    strata_origin_t origin = strata_origin_of(text, item->line, item->column);
    const strata_tree_t *stack = strata_tree_get(item, "stack");
    if (item->kind != STRATA_TREE_MAP || !stack) {
        char whole[256];
        example(layer->type, whole, sizeof whole);
        return strata_fail_origin(&origin, "a route must be a mapping with a stack; write - %s", whole);
    }
    strata_status_t status = STRATA_OK;
    for (const strata_tree_t *child = item->first; child && status == STRATA_OK; child = child->next)
        if (child != stack && strcmp(child->key, STRATA_RECLAIM_KEY) != 0)
            status = strata_note_error(reader->error_sink, read_route_value(text, layer, number, child));
    if (status == STRATA_OK) status = strata_read_list(reader, text, stack, &layer->branches[number - 1]);
    return status ? status : strata_read_reclaim(reader, text, item, &layer->branches[number - 1]);
}

strata_status_t strata_read_branches(strata_reader_t *reader, const strata_text_t *text, strata_model_layer_t *layer,
                                     const strata_tree_t *node) {
    bool routes = strcmp(strata_branches_key(layer->type), "routes") == 0;
    strata_origin_t origin = strata_origin_of(text, node->line, node->column);
    if (node->kind != STRATA_TREE_LIST || node->count == 0) {
        char whole[256];
        example(layer->type, whole, sizeof whole);
        return strata_fail_origin(&origin, "\"%s\" must be a list of 1 to %d %s; write - %s", node->key, STRATA_PLAN_BRANCHES,
                                  routes ? "routes" : "stacks", whole);
    }
    if (node->count > STRATA_PLAN_BRANCHES)
        return strata_fail_origin(&origin, "\"%s\" has %zu stacks below it, and the maximum is %d; remove some", layer->type->name,
                                  node->count, STRATA_PLAN_BRANCHES);
    layer->branches = strata_arena_alloc(reader->strategy->memory, node->count, sizeof *layer->branches);
    if (!layer->branches) return STRATA_E_HOST_MEMORY;
    uint32_t number = 0;
    for (const strata_tree_t *item = node->first; item; item = item->next) {
        layer->branch_count = ++number;
        strata_status_t status = routes ? read_route(reader, text, layer, number, item)
                                        : strata_read_list(reader, text, item, &layer->branches[number - 1]);
        if (status) return status;
    }
    return STRATA_OK;
}

/* ---- the page ---- */

static const char about_routers[] = "\n### Several stacks below one layer\n\n"
                                    "A router is the last layer of its stack and has up to %d stacks below it.\n\n"
                                    "| router | description | key of its stacks | value of each |\n|---|---|---|---|\n";
static const char about_branches[] =
    "\nEvery route except the last has its value; the last serves all other requests. The route of a request is recorded with\n"
    "the block (`strata_allocation_route()`), and its free takes the same route.\n\n"
    "```yaml\n"
    "stack:\n"
    "  - retry: {timeout: 100ms}\n"
    "  - stream_safe\n"
    "  - binning:\n"
    "      routes:\n"
    "        - up_to: 64KiB\n"
    "          stack:\n"
    "            - auto_growth: {name: small, chunk_size: 2MiB}\n"
    "            - system\n"
    "        - stack:\n"
    "            - fallback:\n"
    "                stacks:\n"
    "                  - [auto_growth: {name: large, chunk_size: 20MiB}, system]\n"
    "                  - [buffered, system: {memory: pinned}]\n"
    "```\n\n"
    "A source of the place gpu may serve managed memory (`system: {memory: managed}`), as FLAGS_use_cuda_managed_memory does.\n"
    "The place is then larger than the device. Otherwise a source may serve another kind of memory only below a `fallback`, and\n"
    "only if the users of the place can access it:\n"
    "\n"
    "| place | memory of a source below a fallback |\n"
    "|---|---|\n"
    "| gpu | `device`, `managed`, `pinned` |\n"
    "| managed | `managed`, `pinned` |\n"
    "| pinned | `pinned`, `managed` |\n"
    "| host | `host`, `pinned`, `managed` |\n"
    "\n"
    "The memory counts as reserved in the place that it serves. For a request that forbids growth, a fallback tries only its\n"
    "first stack. A `retry` above a fallback acts when all of its stacks are out of memory. A `retry` in the first stack acts\n"
    "before the second stack is tried.\n";

void strata_page_branches(FILE *out) {
    const strata_layer_type_t *type;
    char name[64];
    fprintf(out, about_routers, STRATA_PLAN_BRANCHES);
    for (size_t i = 0; (type = strata_layer_at(i)); i++) {
        if (type->role != STRATA_ROUTER) continue;
        branch_option_name(type, name, sizeof name);
        fprintf(out, "| [%s](layers.md#%s) | %s | `%s:` |", type->name, type->name, type->doc, strata_branches_key(type));
        fprintf(out, *name ? " `%s` |\n" : " none%s |\n", name);
    }
    fputs(about_branches, out);
}
