#include "programs/load.h"

#include <string.h>

#include "allocation/options/option.h"
#include "platform/host/host_memory.h"

/* ---- the rules of a strategy for its programs ---- */

static bool records_events_at_use(const strata_model_layer_t *layer) {
    char text[16];
    const strata_option_row_t *row = strata_option_find(layer->type, "event");
    if (!row || row->kind != STRATA_OPTION_CHOICE) return false;
    strata_option_print(row, layer->options, text, sizeof text);
    return strcmp(text, "use") == 0;
}

static torture_dialect_t dialect_of(const strata_strategy_t *strategy) {
    const strata_model_layer_t *layers[STRATA_STACK_LAYERS];
    for (int place = 0; place < STRATA_PLACE_KINDS; place++) {
        for (uint32_t device = 0; device < TORTURE_DEVICES; device++) {
            const strata_model_stack_t *stack = strata_strategy_stack(strategy, (strata_place_kind_t)place, device);
            size_t count = strata_model_layers(stack, layers, STRATA_STACK_LAYERS);
            for (size_t i = 0; i < count && i < STRATA_STACK_LAYERS; i++)
                if (records_events_at_use(layers[i])) return TORTURE_USE_COVERS;
        }
    }
    return TORTURE_FREE_COVERS;
}

/* ---- captured graphs: programs have captures only if the strategy serves them ---- */

static const strata_model_stack_t *graph_stack(const strata_strategy_t *strategy, strata_place_kind_t place, uint32_t device) {
    const strata_model_names_t *graph = &strategy->named[STRATA_NAMED_GRAPH];
    if (graph->count && graph->list[0].stacks[place].count) return &graph->list[0].stacks[place];
    return strata_strategy_stack(strategy, place, device);
}

/* Returns true if a layer uses the driver's pool. In a graph such memory is valid only between two nodes, and no programs are
 * drawn for that. */
static bool uses_driver_pool(const strata_model_stack_t *stack) {
    const strata_model_layer_t *layers[STRATA_STACK_LAYERS];
    size_t count = strata_model_layers(stack, layers, STRATA_STACK_LAYERS);
    for (size_t i = 0; i < count && i < STRATA_STACK_LAYERS; i++)
        if (layers[i]->type == &strata_cuda_malloc_async_type) return true;
    return false;
}

static bool serves_graphs(const strata_strategy_t *strategy, strata_place_kind_t place) {
    bool serves = true;
    strata_plan_t *plan = strata_host_new(1, sizeof *plan);
    for (uint32_t device = 0; device < TORTURE_DEVICES && serves; device++) {
        const strata_model_stack_t *stack = graph_stack(strategy, place, device);
        serves = plan && !uses_driver_pool(stack) && strata_stack_plan(stack, place, plan) == STRATA_OK &&
                 strata_plan_serves_graphs(plan) == STRATA_OK;
    }
    strata_host_delete(plan);
    return serves;
}

/* Returns false if a gpu stack uses the driver's pool. Its memory would stay quarantined after a capture that was not announced. */
static bool detects_captures(const strata_strategy_t *strategy) {
    for (uint32_t device = 0; device < TORTURE_DEVICES; device++)
        if (uses_driver_pool(strata_strategy_stack(strategy, STRATA_PLACE_GPU, device))) return false;
    return true;
}

/* ---- loading ---- */

/* Shortens timeouts, because a request that cannot be served waits in real time while other threads of the program wait for it. */
static strata_status_t shorten_timeouts(const strata_model_stack_t *stack) {
    static const strata_origin_t origin = {.source = STRATA_FROM_COMMAND, .file = "strata torture"};
    strata_status_t status = STRATA_OK;
    for (size_t i = 0; i < stack->count && status == STRATA_OK; i++) {
        strata_model_layer_t *layer = &stack->layers[i];
        const strata_option_row_t *row = strcmp(layer->type->name, "retry") == 0 ? strata_option_find(layer->type, "timeout")
                                                                                 : NULL;
        if (row) status = strata_model_layer_set(layer, row, "500us", &origin);
        for (size_t b = 0; b < layer->branch_count && status == STRATA_OK; b++) status = shorten_timeouts(&layer->branches[b]);
    }
    return status;
}

strata_status_t torture_load(const strata_config_request_t *request, strata_strategy_t **strategy, torture_dialect_t *dialect) {
    strata_status_t status = strata_config_load(request, strategy);
    for (int place = 0; place < STRATA_PLACE_KINDS && status == STRATA_OK; place++) {
        status = shorten_timeouts(&(*strategy)->stacks[place]);
        for (size_t i = 0; i < (*strategy)->own_count && status == STRATA_OK; i++)
            status = shorten_timeouts(&(*strategy)->own[i].stacks[place]);
    }
    if (status != STRATA_OK) return status;
    *dialect = dialect_of(*strategy);
    if (serves_graphs(*strategy, STRATA_PLACE_GPU)) *dialect |= TORTURE_GRAPHS_GPU;
    if (serves_graphs(*strategy, STRATA_PLACE_MANAGED)) *dialect |= TORTURE_GRAPHS_MANAGED;
    if (detects_captures(*strategy)) *dialect |= TORTURE_CAPTURES_UNANNOUNCED;
    return status;
}
