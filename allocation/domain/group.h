/* A group: the stacks of one plan in a domain, and the instances of device scope that they share. A domain has one group of
 * ordinary stacks, one for each named pool in use, and one for each pattern of streams with stacks of their own. */
#ifndef STRATA_ALLOCATION_GROUP_H
#define STRATA_ALLOCATION_GROUP_H

#include <stdatomic.h>

#include "allocation/stack/plan.h"
#include "allocation/stack/stack.h"

/* How a group is seen by whoever looks for idleness, one thread at a time (allocation/reclaim/idle.h). */
typedef struct strata_idle_watch {
    uint64_t calls; /* allocations and frees when they were counted last */
    uint64_t seen_at; /* when their number was another last, by the device's clock */
    enum { STRATA_IDLE_BUSY, STRATA_IDLE_MARKED, STRATA_IDLE_GIVEN } stage; /* MARKED: its streams were given events */
} strata_idle_watch_t;

/* Constant once made, unless said otherwise. */
struct strata_group {
    strata_domain_t *domain;
    const strata_plan_t *plan; /* outlives the domain */
    const char *name; /* a pool's, or a pattern of streams; "": ordinary. Outlives the domain */
    _Atomic uint64_t pool; /* as requests name it; 0: no pool. That of graphs changes while nothing of the group is live */
    bool lends; /* its free blocks serve requests outside pools that would fail: `pools_on_oom` of a layer */
    bool keeps; /* its idle chunks go back only for its own requests and by strata_domain_release_group() */
    strata_graph_pool_t *_Atomic graph; /* of a group that serves captured graphs: allocation/graphs/graphs.h; NULL: any other */
    _Atomic bool paused; /* it serves nothing: allocation/domain/paused.h */
    _Atomic bool pinned; /* what lies idle in it stays where it is: a graph may use it */
    strata_layer_t *shared[STRATA_PLAN_NODES + 1]; /* instances of device scope, by number */
    strata_idle_watch_t idle; /* only whoever looks */
    _Atomic uint32_t recalls; /* stacks with something to come back after idleness; changed under the stack's lock */
    _Atomic uint64_t ladders;
    _Atomic uint64_t out_of_memory;
    strata_statistics_t ended; /* the counts of stacks that have ended; guarded by the domain's lock */
    strata_group_t *next; /* in order of making; guarded by the domain's lock */
    strata_stack_t *first_stack, *last_stack; /* of its own, orphans included; guarded by the domain's lock */
};

#define STRATA_GRAPH_POOL_ENDED UINT64_MAX /* the number of a group of graphs that waits for its next pool */
static inline bool strata_group_has_ended(const strata_group_t *group) { return group->pool == STRATA_GRAPH_POOL_ENDED; }
/* Its name for reports: that of a pool of graphs has the pool's number. */
enum { STRATA_GROUP_NAME = 24 };
const char *strata_group_name(const strata_group_t *group, char text[STRATA_GROUP_NAME]);

/* The group of a pool, or (pool 0) of the streams that a pattern matches; NULL: not used yet. */
strata_group_t *strata_domain_group(strata_domain_t *domain, uint64_t pool, const char *name);
/* Makes it, with its shared stack; `keeps` as above. One thread at a time, no lock held. E_LIMIT, E_HOST_MEMORY, errors of the
 * layers. */
strata_status_t strata_domain_add_group(strata_domain_t *domain, uint64_t pool, const char *name, const strata_plan_t *plan,
                                        bool keeps, strata_group_t **group);
/* The groups in order of making: the one after `previous` (NULL: the first); NULL after the last. They never end. */
strata_group_t *strata_domain_next_group(strata_domain_t *domain, const strata_group_t *previous);

#endif
