#include "allocation/stack/plan.h"

void strata_plan_settle(strata_plan_t *plan) {
    uint32_t first[STRATA_PLAN_NODES + 1] = {0, 1}; /* by node: the first of its stack */
    const strata_reclaim_t *says[STRATA_PLAN_NODES + 1] = {NULL}; /* by the first node of a stack */
    for (uint32_t n = 1; n <= plan->count; n++) {
        const strata_plan_node_t *node = &plan->nodes[n];
        if (node->type == &strata_retry_type) says[first[n]] = node->options;
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
