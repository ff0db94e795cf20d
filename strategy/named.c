/* Finds the stacks of pools, streams and graphs by their names. */
#include <ctype.h>
#include <string.h>

#include "allocation/options/option.h"
#include "strategy/model.h"

const char *strata_named_key(strata_named_kind_t kind) {
    static const char *const keys[STRATA_NAMED_KINDS] = {[STRATA_NAMED_POOL] = "pools",
                                                         [STRATA_NAMED_STREAM] = "streams",
                                                         [STRATA_NAMED_GRAPH] = "graph",
                                                         [STRATA_NAMED_PLAIN] = "without_virtual_memory"};
    return keys[kind];
}

bool strata_named_is_name(strata_named_kind_t kind, const char *name) {
    const char *others = kind == STRATA_NAMED_POOL ? "_-" : "_-:/*";
    size_t length = strlen(name);
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr(others, name[i])) return false;
    bool begins = kind == STRATA_NAMED_STREAM || isalpha((unsigned char)name[0]);
    bool number = strspn(name, "0123456789") == length;
    return (begins || number) && length > 0 && length <= STRATA_NAME_LETTERS;
}

strata_model_named_t *strata_strategy_named(const strata_strategy_t *strategy, strata_named_kind_t kind, const char *name) {
    const strata_model_names_t *names = &strategy->named[kind];
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->list[i].name, name) == 0) return &names->list[i];
    return NULL;
}

strata_status_t strata_named_set_keep(strata_model_named_t *pool, const char *text, const strata_origin_t *origin) {
    bool yes = strcmp(text, "true") == 0;
    if (!yes && strcmp(text, "false") != 0)
        return strata_fail(STRATA_E_STRATEGY, 0, "keep: \"%.40s\" is neither true nor false; write keep: true", text);
    pool->keep = yes;
    pool->keep_origin = *origin;
    return STRATA_OK;
}

strata_status_t strata_graph_refuse_keep(void) {
    return strata_fail(STRATA_E_STRATEGY, 0,
                       "graph.keep: the pool of a captured graph keeps its chunks while the graph exists; remove keep");
}

/* Idle memory of a driver pool belongs to the whole pool. Only an own pool counts, because the device's
 * pool belongs to every stack. */
static bool keeps_chunks(const strata_model_layer_t *layer) {
    const strata_option_row_t *row = strata_option_find(layer->type, "pool");
    char value[STRATA_OPTION_TEXT_BYTES] = "";
    if (layer->type->role == STRATA_CACHE) return true;
    if (row && layer->type->role == STRATA_SOURCE) strata_option_print(row, layer->options, value, sizeof value);
    return strcmp(value, "own") == 0;
}

static bool stack_keeps_chunks(const strata_model_stack_t *stack) {
    const strata_model_layer_t *layers[STRATA_PLAN_NODES];
    size_t count = strata_model_layers(stack, layers, STRATA_PLAN_NODES);
    for (size_t i = 0; i < count && i < STRATA_PLAN_NODES; i++)
        if (keeps_chunks(layers[i])) return true;
    return false;
}

strata_status_t strata_named_check_keep(const strata_strategy_t *strategy, const strata_model_named_t *pool) {
    if (!pool->keep || pool->broken) return STRATA_OK;
    bool kept = false, written = false;
    for (size_t place = 0; place < STRATA_PLACE_KINDS; place++) {
        written = written || pool->stacks[place].count > 0;
        kept = kept || stack_keeps_chunks(&pool->stacks[place]);
    }
    for (size_t place = 0; place < STRATA_PLACE_KINDS && !written; place++)
        kept = kept || stack_keeps_chunks(&strategy->stacks[place]);
    if (kept) return STRATA_OK;
    return strata_fail_origin(&pool->keep_origin,
                              "pools.%s.keep: no layer of the pool keeps chunks; put a cache into its stack, as in "
                              "\"- auto_growth\" (or pool: own into cuda_malloc_async), or remove keep",
                              pool->name);
}

/* ---- options of caches that act only in pools ---- */

static const char *const pool_options[] = {"pool_no_split", "pools_on_oom"};

static strata_status_t check_outside(const strata_model_stack_t *stack) {
    const strata_model_layer_t *layers[STRATA_PLAN_NODES];
    size_t count = strata_model_layers(stack, layers, STRATA_PLAN_NODES);
    for (size_t i = 0; i < count && i < STRATA_PLAN_NODES; i++)
        for (size_t k = 0; k < sizeof pool_options / sizeof *pool_options; k++) {
            const strata_option_row_t *row = strata_option_find(layers[i]->type, pool_options[k]);
            if (!row || row->kind != STRATA_OPTION_BOOL || !*((const bool *)layers[i]->options + row->offset)) continue;
            return strata_fail_origin(&layers[i]->option_origins[row - layers[i]->type->options],
                                      "%s.%s: it has no effect outside the stack of a named pool; write it there, as in "
                                      "pools: {NAME: {stack: [%s: {%s: true}, system]}}, or remove it",
                                      layers[i]->name, row->name, layers[i]->name, row->name);
        }
    return STRATA_OK;
}

/* A pool that does not list a place uses the place's layers. */
static bool serves_a_pool(const strata_strategy_t *strategy, strata_place_kind_t place) {
    const strata_model_names_t *pools = &strategy->named[STRATA_NAMED_POOL];
    for (size_t i = 0; i < pools->count; i++)
        if (pools->list[i].stacks[place].count == 0) return true;
    return false;
}

strata_status_t strata_strategy_check_pool_options(const strata_strategy_t *strategy) {
    strata_status_t status = STRATA_OK;
    const strata_model_names_t *streams = &strategy->named[STRATA_NAMED_STREAM], *named = strategy->named;
    for (strata_place_kind_t place = STRATA_PLACE_GPU; place < STRATA_PLACE_KINDS && status == STRATA_OK; place++) {
        bool pooled = serves_a_pool(strategy, place);
        if (!pooled) status = check_outside(&strategy->stacks[place]);
        for (size_t i = 0; i < strategy->own_count && !pooled && status == STRATA_OK; i++)
            status = check_outside(&strategy->own[i].stacks[place]);
        for (size_t i = 0; i < streams->count && status == STRATA_OK; i++) status = check_outside(&streams->list[i].stacks[place]);
        for (int kind = STRATA_NAMED_GRAPH; kind < STRATA_NAMED_KINDS && status == STRATA_OK; kind++)
            if (named[kind].count > 0) status = check_outside(&named[kind].list->stacks[place]);
    }
    return status;
}

/* A star matches as little as possible, and one letter more whenever the rest does not match. Only the
 * last star needs to be tried again, so the time is the product of the lengths. */
bool strata_pattern_matches(const char *pattern, const char *name) {
    const char *star = NULL, *taken = name;
    while (*name) {
        if (*pattern == '*') {
            star = pattern++;
            taken = name;
        } else if (*pattern == *name) {
            pattern++, name++;
        } else if (star) {
            pattern = star + 1;
            name = ++taken;
        } else {
            return false;
        }
    }
    while (*pattern == '*') pattern++;
    return *pattern == '\0';
}

const strata_model_named_t *strata_strategy_pattern(const strata_strategy_t *strategy, const char *stream) {
    const strata_model_names_t *patterns = &strategy->named[STRATA_NAMED_STREAM];
    for (size_t i = 0; i < patterns->count; i++)
        if (strata_pattern_matches(patterns->list[i].name, stream)) return &patterns->list[i];
    return NULL;
}
