/* Reads the keys beside a stack. Each is a layer of its list: `out_of_memory:` is `retry` under another
 * name, and `idle:` is `idle`. */
#include <string.h>

#include "config/page.h"
#include "config/reader/reader.h"

typedef struct stack_key {
    const char *key;
    const strata_layer_type_t *type;
    const char *example;
} stack_key_t;

/* The keys allowed beside a stack. */
static const stack_key_t stack_keys[] = {{STRATA_RECLAIM_KEY, &strata_retry_type, "{timeout: 100ms}"},
                                         {STRATA_IDLE_KEY, &strata_idle_type, "{after: 1s, keep: 10%}"}};
enum { STACK_KEYS = sizeof stack_keys / sizeof *stack_keys };

bool strata_is_stack_key(const char *key) {
    for (size_t i = 0; i < STACK_KEYS; i++)
        if (strcmp(stack_keys[i].key, key) == 0) return true;
    return false;
}

static strata_status_t check_where(const stack_key_t *stack_key, const strata_text_t *text, const strata_tree_t *node,
                                   const strata_model_stack_t *stack) {
    strata_origin_t key = strata_origin_of(text, node->key_line, node->key_column);
    const strata_model_layer_t *existing = strata_model_layer_of(stack, stack_key->type);
    if (stack->count == 0)
        return strata_fail_origin(
            &key, "\"%s\" is a property of a stack, but no stack is beside it; write stack: too, or extends: strata",
            stack_key->key);
    if (existing && existing->origin.file == text->file)
        return strata_fail_origin(&key, "\"%s\" in line %u already sets this for the same stack; remove one", existing->name,
                                  existing->origin.line);
    if (node->kind != STRATA_TREE_MAP && !node->empty)
        return strata_fail_origin(&key, "\"%s\" must be a mapping; write %s: %s", stack_key->key, stack_key->key,
                                  stack_key->example);
    const strata_tree_t *name = node->empty ? NULL : strata_tree_get(node, "name");
    if (!name) return STRATA_OK;
    key = strata_origin_of(text, name->key_line, name->key_column);
    return strata_fail_origin(&key, "\"%s\" has no option \"name\"; remove it", stack_key->key);
}

/* Replaces the layer that an extended text set for the same stack. */
static strata_status_t set_layer(strata_arena_t *arena, strata_model_stack_t *stack, const strata_model_layer_t *layer) {
    strata_model_layer_t *existing = strata_model_layer_of(stack, layer->type);
    if (existing) {
        *existing = *layer;
        return STRATA_OK;
    }
    strata_model_layer_t *layers = strata_arena_alloc(arena, stack->count + 1, sizeof *layers);
    if (!layers) return STRATA_E_HOST_MEMORY;
    layers[0] = *layer;
    memcpy(layers + 1, stack->layers, stack->count * sizeof *layers);
    stack->layers = layers;
    stack->count++;
    return STRATA_OK;
}

static strata_status_t read_one(strata_reader_t *reader, const stack_key_t *stack_key, const strata_text_t *text,
                                const strata_tree_t *map, strata_model_stack_t *stack) {
    const strata_tree_t *node = strata_tree_get(map, stack_key->key);
    if (!node) return STRATA_OK;
    strata_origin_t key = strata_origin_of(text, node->key_line, node->key_column);
    strata_model_layer_t layer;
    strata_status_t status = check_where(stack_key, text, node, stack);
    if (status == STRATA_OK) status = strata_model_layer_init(reader->strategy->memory, &layer, stack_key->type, &key);
    if (status != STRATA_OK) return status;
    layer.name = stack_key->key;
    status = strata_read_options(reader, text, &layer, node);
    return status ? status : set_layer(reader->strategy->memory, stack, &layer);
}

strata_status_t strata_read_reclaim(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *map,
                                    strata_model_stack_t *stack) {
    return read_one(reader, &stack_keys[0], text, map, stack);
}

strata_status_t strata_read_stack_keys(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *map,
                                       strata_model_stack_t *stack) {
    strata_status_t status = STRATA_OK;
    for (size_t i = STACK_KEYS; i > 0 && status == STRATA_OK; i--) status = read_one(reader, &stack_keys[i - 1], text, map, stack);
    return status;
}

/* ---- the page ---- */

static const char about_reclaim[] =
    "\n### Out of memory\n\n"
    "`out_of_memory:` beside a stack defines its recovery when memory runs out. It sets how long a request may wait and\n"
    "whether it waits before idle chunks go back. It also sets whether a cache waits instead of growing. Its options are\n"
    "those of [retry](layers.md#retry), and a `retry` anywhere in the list of layers is equivalent. A stack may have only\n"
    "one of the two.\n\n"
    "```yaml\n"
    "stack: [stream_safe, auto_growth: {chunk_size: 20MiB}, system]\n"
    "out_of_memory: {timeout: 100ms, wait_first: true, patience: true}\n"
    "places:\n"
    "  pinned:                   # a stack is a list, or a mapping of both\n"
    "    stack: [stream_safe, auto_growth: {chunk_size: 8MiB}, system]\n"
    "    out_of_memory: {timeout: 1s}\n"
    "pools:\n"
    "  weights:\n"
    "    stack: [stream_safe, auto_growth: {chunk_size: 1GiB}, system]\n"
    "    out_of_memory: {timeout: 10s}\n"
    "```\n\n"
    "Without `out_of_memory:` and `retry`, idle chunks go back to the device and the request is tried once more, without\n"
    "waiting.\n\n"
    "A `stack:` that replaces an inherited stack also replaces its `out_of_memory:`. An `out_of_memory:` without `stack:`\n"
    "replaces the inherited one and keeps the layers. In both forms the path of an option is `out_of_memory.timeout`, with\n"
    "the stack's place, pool or streams before it.\n\n"
    "A router's branch is a stack too. In a route, `out_of_memory:` is a key beside `stack:`. Each stack of a fallback may\n"
    "be a mapping with both keys. The recovery of a branch runs before the next branch is tried. The recovery of the whole\n"
    "stack runs last.\n";

void strata_page_reclaim(FILE *out) { fputs(about_reclaim, out); }

static const char about_idle[] =
    "\n### Idle\n\n"
    "`idle:` beside a stack gives memory back to the device when the program is idle. The program is idle if the stack got\n"
    "no request for some time and its work is complete. The options are those of [idle](layers.md#idle), which may also be\n"
    "in the list of layers. [virtual-memory.md](virtual-memory.md) has the rules, the cost of the next burst, and\n"
    "measurements.\n\n"
    "```yaml\n"
    "extends: strata\n"
    "idle: {after: 1s, keep: 10%}   # a second after the last request at most 1.1 times the live bytes are held\n"
    "```\n\n"
    "It is allowed once for a whole stack, but not in a router's branch. Each place, pool, stream pattern and device has its\n"
    "own, as it has its own stack. The path is `idle.after`, with the place, pool, stream pattern or device before it.\n";

void strata_page_idle(FILE *out) { fputs(about_idle, out); }
