/* `out_of_memory:` beside a stack: the layer `retry` of the stack, by its other name. */
#include <string.h>

#include "config/page.h"
#include "config/reader/reader.h"

static strata_status_t check_where(const strata_text_t *text, const strata_tree_t *node, const strata_model_stack_t *stack) {
    strata_origin_t key = strata_origin_of(text, node->key_line, node->key_column);
    const strata_model_layer_t *said = strata_model_reclaim(stack);
    if (stack->count == 0)
        return strata_fail_origin(
            &key, "\"%s\" is a property of a stack, and none stands beside it; write stack: too, or extends: strata",
            STRATA_RECLAIM_KEY);
    if (said && said->origin.file == text->file)
        return strata_fail_origin(&key, "\"%s\" in line %u says this for the same stack; take one out", said->name,
                                  said->origin.line);
    if (node->kind != STRATA_TREE_MAP && !node->empty)
        return strata_fail_origin(&key, "\"%s\" is a mapping; write %s: {timeout: 100ms}", STRATA_RECLAIM_KEY, STRATA_RECLAIM_KEY);
    const strata_tree_t *name = node->empty ? NULL : strata_tree_get(node, "name");
    if (!name) return STRATA_OK;
    key = strata_origin_of(text, name->key_line, name->key_column);
    return strata_fail_origin(&key, "\"%s\" has no option \"name\"; take it out", STRATA_RECLAIM_KEY);
}

/* What an extended text said of the same stack is replaced. */
static strata_status_t place(strata_arena_t *arena, strata_model_stack_t *stack, const strata_model_layer_t *layer) {
    strata_model_layer_t *said = strata_model_reclaim(stack);
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

strata_status_t strata_read_reclaim(strata_reader_t *reader, const strata_text_t *text, const strata_tree_t *map,
                                    strata_model_stack_t *stack) {
    const strata_tree_t *node = strata_tree_get(map, STRATA_RECLAIM_KEY);
    if (!node) return STRATA_OK;
    strata_origin_t key = strata_origin_of(text, node->key_line, node->key_column);
    strata_model_layer_t layer;
    strata_status_t status = check_where(text, node, stack);
    if (status == STRATA_OK) status = strata_model_layer_init(reader->strategy->memory, &layer, &strata_retry_type, &key);
    if (status != STRATA_OK) return status;
    layer.name = STRATA_RECLAIM_KEY;
    status = strata_read_options(reader, text, &layer, node);
    return status ? status : place(reader->strategy->memory, stack, &layer);
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
