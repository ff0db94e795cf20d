/* A plan: one place's stack as the builder wants it, checked and numbered. Stacks are made from it (allocation/stack/stack.h). */
#ifndef STRATA_ALLOCATION_PLAN_H
#define STRATA_ALLOCATION_PLAN_H

#include "strata/layer.h"

enum {
    STRATA_PLAN_NODES = 64, /* layers of one plan, those of routers' branches included */
    STRATA_PLAN_BRANCHES = 8, /* layers below one router */
    STRATA_ROUTE_LAYERS = 8 /* layers in one route: from the top, or from below a cache, to the next boundary */
};

/* What `idle:` of a stack says, or the layer `idle` in its list: the options of that layer. */
typedef struct strata_idleness {
    uint64_t after; /* ns of the device's clock: when it has had no request for so long, what it keeps idle has gone back */
    double keep; /* except so large a share of its live bytes, */
    uint64_t keep_least; /* and at least so many bytes */
} strata_idleness_t;

/* Its memory may become a captured graph's own: the driver keeps what a graph uses. */
extern const strata_layer_type_t strata_cuda_malloc_async_type;

typedef struct strata_plan_node {
    const strata_layer_type_t *type;
    const void *options; /* owned by the strategy, which outlives every stack */
    const char *name; /* as named in the file, else the type's */
    strata_scope_t scope; /* how widely the instances are shared: the type's scope, or per stream where the options say so */
    uint32_t below_count;
    uint8_t below[STRATA_PLAN_BRANCHES]; /* numbers of nodes */
} strata_plan_node_t;

/* Node numbers are the layer numbers of routes: 1 is the top, 0 none. A node's number is smaller than those below it. */
typedef struct strata_plan {
    strata_place_kind_t place;
    uint32_t count; /* nodes 1 .. count */
    bool threaded; /* a layer has thread scope: every thread has stacks of its own */
    uint64_t alignment; /* the largest that a request may ask for */
    const strata_idleness_t *idle; /* NULL: what lies idle stays */
    strata_plan_node_t nodes[STRATA_PLAN_NODES + 1];
} strata_plan_t;

/* Whether stacks of the plan can be the private pools of captured graphs: every way from the top to a source passes a cache, or ends
 * in cuda_malloc_async. Another source would give memory back to the device while a graph may still use it. E_UNSUPPORTED: the text
 * names the source and what to write. */
strata_status_t strata_plan_serves_graphs(const strata_plan_t *plan);

#endif
