/* A plan: the layers of one place's stack, checked and numbered by strategy/plan. Stacks (allocation/stack/stack.h) are built from
 * it. */
#ifndef STRATA_ALLOCATION_PLAN_H
#define STRATA_ALLOCATION_PLAN_H

#include "strata/layer.h"

enum {
    STRATA_PLAN_NODES = 64, /* max layers of one plan in a strategy, including those of routers' branches */
    STRATA_PLAN_ALL = 2 * STRATA_PLAN_NODES - 1, /* max with those that the builder adds, at most one per branch */
    STRATA_PLAN_BRANCHES = 8, /* max layers directly below one router */
    STRATA_ROUTE_LAYERS =
        8, /* max layers of one route in a strategy, from the top, or from below a cache, to the next cache or source */
    STRATA_ROUTE_BITS = 7, /* of each number in a route, which has room for one added layer too */
    STRATA_ROUTE_MASK = (1 << STRATA_ROUTE_BITS) - 1
};

/* The options of the layer `idle`, which may also be written as `idle:` beside a stack. */
typedef struct strata_idle_config {
    uint64_t after; /* ns of the device's clock without a request, after which the idle memory has been released */
    double keep; /* the share of its live bytes that may stay idle */
    uint64_t keep_least; /* bytes that may stay idle in any case; the larger of the two applies */
} strata_idle_config_t;

/* A captured graph may own its memory, because the driver keeps the memory that a graph uses. */
extern const strata_layer_type_t strata_cuda_malloc_async_type;

/* The builder adds this layer above a cache or a source if no layer of the branch handles borrows. With these
 * options, which no strategy can name, the free of a borrowed block waits on the host. */
typedef struct strata_stream_safe_options strata_stream_safe_options_t;
extern const strata_layer_type_t strata_stream_safe_type;
extern const strata_stream_safe_options_t strata_stream_safe_on_host;

typedef struct strata_plan_node {
    const strata_layer_type_t *type;
    const void *options; /* owned by the strategy, which outlives every stack */
    const char *name; /* as in the file, or else the type's */
    strata_scope_t scope; /* how widely the instances are shared: the type's scope, or per stream if the options require it */
    uint8_t number; /* in reports, counting the layers of the strategy; 0 if the builder added it, and routes omit it */
    uint32_t below_count;
    uint8_t below[STRATA_PLAN_BRANCHES]; /* numbers of nodes */
} strata_plan_node_t;

/* Node numbers are the layer numbers of routes: 1 is the top, 0 means none. A node's number is smaller than those below it. */
typedef struct strata_plan {
    strata_place_kind_t place;
    uint32_t count; /* nodes 1 .. count */
    bool threaded; /* a layer has thread scope: every thread has stacks of its own */
    uint64_t alignment; /* max alignment of a request */
    const strata_idle_config_t *idle; /* NULL if idleness releases nothing */
    strata_plan_node_t nodes[STRATA_PLAN_ALL + 1];
} strata_plan_t;

/* Returns OK if stacks of the plan can be private pools of captured graphs. For that, every path from the top to a source must pass
 * a cache or end in cuda_malloc_async. Any other source would release memory to the device while a graph may still use it.
 * Otherwise returns E_UNSUPPORTED, with a text that names the source and the correction. */
strata_status_t strata_plan_serves_graphs(const strata_plan_t *plan);

#endif
