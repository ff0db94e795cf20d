#include "allocation/stack/plan.h"

#include "platform/place.h"
#include "platform/status.h"

/* Returns a source that a request can reach from node `n` without passing a cache, or 0. */
static uint32_t bare_source(const strata_plan_t *plan, uint32_t n) {
    const strata_plan_node_t *node = &plan->nodes[n];
    if (node->type->role == STRATA_CACHE || node->type == &strata_cuda_malloc_async_type) return 0;
    if (node->type->role == STRATA_SOURCE) return n;
    uint32_t found = 0;
    for (uint32_t b = 0; b < node->below_count && !found; b++) found = bare_source(plan, node->below[b]);
    return found;
}

strata_status_t strata_plan_serves_graphs(const strata_plan_t *plan) {
    uint32_t source = bare_source(plan, 1);
    if (!source) return STRATA_OK;
    bool gpu = plan->place == STRATA_PLACE_GPU;
    return strata_fail(STRATA_E_UNSUPPORTED, 0,
                       "\"%s\" without a cache above it gives memory back to the device while a captured graph may still use it; "
                       "write graph: {%s%s: [auto_growth, system]%s}",
                       plan->nodes[source].name, gpu ? "" : "places: {", gpu ? "stack" : strata_place_name(plan->place),
                       gpu ? "" : "}");
}
