#include "allocation/stack/plan.h"

#include "platform/place.h"
#include "platform/status.h"

void strata_plan_settle(strata_plan_t *plan) {
    uint32_t first[STRATA_PLAN_NODES + 1] = {[1] = 1}; /* by node: the first of its stack */
    const strata_reclaim_t *says[STRATA_PLAN_NODES + 1] = {NULL}; /* by the first node of a stack */
    for (uint32_t n = 1; n <= plan->count; n++) {
        const strata_plan_node_t *node = &plan->nodes[n];
        if (node->type == &strata_retry_type) says[first[n]] = node->options;
        if (node->type == &strata_idle_type) plan->idle = node->options;
        for (uint32_t b = 0; b < node->below_count; b++)
            first[node->below[b]] = node->type->role == STRATA_ROUTER ? node->below[b] : first[n];
    }
    plan->nodes[1].reclaim = says[1];
    plan->nodes[1].climbs = true;
    for (uint32_t n = 1; n <= plan->count; n++) {
        const strata_plan_node_t *node = &plan->nodes[n];
        for (uint32_t b = 0; b < node->below_count; b++) {
            strata_plan_node_t *below = &plan->nodes[node->below[b]];
            below->climbs = says[node->below[b]] != NULL;
            below->reclaim = below->climbs ? says[node->below[b]] : node->reclaim;
        }
    }
}

/* A source that a way from node `n` reaches past every cache; 0: none. */
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
