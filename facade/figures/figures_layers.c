/* Metrics that the layers of a place count themselves. */
#include "allocation/call/figures.h"
#include "allocation/domain/layer.h"
#include "facade/registry/inside.h"
#include "platform/arguments.h"

static void report_layer(strata_stack_t *stack, strata_layer_t *layer, strata_layer_figure_fn figure, void *context) {
    const strata_plan_node_t *node = &stack->group->plan->nodes[layer->number];
    strata_own_figure_t rows[STRATA_OWN_FIGURES];
    uint32_t count = strata_own_figures(layer, rows);
    strata_layer_figure_t told = {.layer = node->name,
                                  .type = node->type->name,
                                  .number = node->number,
                                  .shared = stack->is_shared,
                                  .stream = stack->stream,
                                  .thread = stack->thread ? stack->thread : stack->of_thread,
                                  .forgotten = stack->forgotten.orphan,
                                  .pool = stack->group->pool};
    for (uint32_t i = 0; i < count; i++) {
        told.name = rows[i].name;
        told.unit = rows[i].unit;
        told.meaning = rows[i].doc;
        told.value = rows[i].value;
        figure(&told, context);
    }
}

strata_status_t strata_layer_figures(strata_t handle, strata_place_t place, strata_layer_figure_fn figure, void *context) {
    STRATA_REFUSE_NULL(figure);
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    strata_domain_t *domain;
    strata_status_t status = strata_facade_domain(facade, place, &domain);
    if (status != STRATA_OK) return status;
    strata_inside_t frame;
    strata_inside_begin(&frame, handle);
    STRATA_DOMAIN_EACH(domain, stack)
        STRATA_EACH_OWN_LAYER(stack, layer) report_layer(stack, layer, figure, context);
    strata_inside_end(&frame);
    return STRATA_OK;
}
