/* Reads the keys beside a stack. Each is a layer of its list: `out_of_memory:` is `retry` under another
 * name, and `idle:` is `idle`. */
#include <string.h>

#include "config/page.h"
#include "config/reader/reader.h"

typedef struct beside {
    const char *key;
    const strata_layer_type_t *type;
    const char *example;
} beside_t;

/* The keys allowed beside a stack. */
static const beside_t besides[] = {{STRATA_RECLAIM_KEY, &strata_retry_type, "{timeout: 100ms}"},
                                   {STRATA_IDLE_KEY, &strata_idle_type, "{after: 1s, keep: 10%}"}};
enum { BESIDES = sizeof besides / sizeof *besides };

bool strata_stands_beside(const char *key) {
    for (size_t i = 0; i < BESIDES; i++)
        if (strcmp(besides[i].key, key) == 0) return true;
    return false;
}

static strata_status_t check_where(const beside_t *beside, const strata_text_t *text, const strata_tree_t *node,
                                   const strata_model_stack_t *stack) {
    strata_origin_t key = strata_origin_of(text, node->key_line, node->key_column);
    const strata_model_layer_t *said = strata_model_layer_of(stack, beside->type);
    if (stack->count == 0)
        return strata_fail_origin(
            &key, "\"%s\" is a property of a stack, and none stands beside it; write stack: too, or extends: strata", beside->key);
    if (said && said->origin.file == text->file)
        return strata_fail_origin(&key, "\"%s\" in line %u says this for the same stack; take one out", said->name,
                                  said->origin.line);
    if (node->kind != STRATA_TREE_MAP && !node->empty)
        return strata_fail_origin(&key, "\"%s\" is a mapping; write %s: %s", beside->key, beside->key, beside->example);
    const strata_tree_t *name = node->empty ? NULL : strata_tree_get(node, "name");
    if (!name) return STRATA_OK;
    key = strata_origin_of(text, name->key_line, name->key_column);
    return strata_fail_origin(&key, "\"%s\" has no option \"name\"; take it out", beside->key);
}

/* Replaces the layer that an extended text set for the same stack. */
static strata_status_t place(strata_arena_t *arena, strata_model_stack_t *stack, const strata_model_layer_t *layer) {
    strata_model_layer_t *said = strata_model_layer_of(stack, layer->type);
    if (said) {
        *said = *layer;
        return STRATA_OK;
    }
    strata_model_layer_t *layers = strata_arena_take(arena, stack->count + 1, sizeof *layers);
    if (!layers) return STRATA_E_HOST_MEMORY;
    layers[0] = *layer;
    memcpy(layers + 1, stack->layers, stack->count * sizeof *layers);
    stack->layers = layers;
    stack->count++;
    return STRATA_OK;
}

static strata_status_t read_one(strata_reader_t *reader, const beside_t *beside, const strata_text_t *text,
                                const strata_tree_t *map, strata_model_stack_t *stack) {
    const strata_tree_t *node = strata_tree_get(map, beside->key);
    if (!node) return STRATA_OK;
    strata_origin_t key = strata_origin_of(text, node->key_line, node->key_column);
    strata_model_layer_t layer;
    strata_status_t status = check_where(beside, text, node, stack);
    if (status == STRATA_OK) status = strata_model_layer_init(reader->strategy->memory, &layer, beside->type, &key);
    if (status != STRATA_OK) return status;
    layer.name = beside->key;
    status = strata_read_options(reader, text, &layer, node);
    return status ? status : place(reader->strategy->memory, stack, &layer);
}

strata_status_t strata_read_reclaim(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *map,
                                    strata_model_stack_t *stack) {
    return read_one(reader, &besides[0], text, map, stack);
}

strata_status_t strata_read_beside(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *map,
                                   strata_model_stack_t *stack) {
    strata_status_t status = STRATA_OK;
    for (size_t i = BESIDES; i > 0 && status == STRATA_OK; i--) status = read_one(reader, &besides[i - 1], text, map, stack);
    return status;
}

/* ---- the page ---- */

static const char about_reclaim[] =
    "\n### Out of memory\n\n"
    "`out_of_memory:` beside a stack says what happens when it is out of memory: how long a request may wait, whether it waits\n"
    "before idle chunks go back, whether a cache waits instead of growing. Its options are those of [retry](layers.md#retry).\n"
    "`retry` anywhere in the list of layers says the same. It may be said once for a stack.\n\n"
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
    "A stack that says nothing is tried once more after what lies idle has gone back, without waiting. A `stack:` that replaces\n"
    "the one of `extends:` replaces what that said here too; alone, `out_of_memory:` replaces it and leaves the layers. Its\n"
    "path is `out_of_memory.timeout`, with the stack's place, pool or streams before it, however it is written.\n\n"
    "A router's branch is a stack: in a route `out_of_memory:` stands beside `stack:`, and each of a fallback's stacks may be "
    "such\n"
    "a mapping. The ladder of a branch comes before the next branch is asked; then that of the whole stack.\n";

void strata_page_reclaim(FILE *out) { fputs(about_reclaim, out); }

static const char about_idle[] =
    "\n### Idle\n\n"
    "`idle:` beside a stack gives memory back to the device when the program is idle: when nothing was asked of the stack for a\n"
    "while and its work is done. Its options are those of [idle](layers.md#idle); it may also stand in the list of layers.\n"
    "[virtual-memory.md](virtual-memory.md) has the rules, the cost of the next burst, and measurements.\n\n"
    "```yaml\n"
    "extends: strata\n"
    "idle: {after: 1s, keep: 10%}   # a second after the last request at most 1.1 times the live bytes are held\n"
    "```\n\n"
    "It is said once for a whole stack, not for a router's branch. Each place, pool, pattern of streams and device has its own,\n"
    "as it has its own stack; its path is `idle.after`, with those words before it.\n";

void strata_page_idle(FILE *out) { fputs(about_idle, out); }
