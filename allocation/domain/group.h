/* A group: the stacks of one plan in a domain, and the instances of device scope that they share. A domain
 * has one group of ordinary stacks. It has one more for each named pool in use, and for each pattern of
 * streams with stacks of their own. */
#ifndef STRATA_ALLOCATION_GROUP_H
#define STRATA_ALLOCATION_GROUP_H

#include <stdatomic.h>

#include "allocation/stack/plan.h"
#include "allocation/stack/stack.h"

/* The state that idleness keeps for a group. One thread at a time uses it (allocation/reclaim/idle.h). */
typedef struct strata_idle_watch {
    uint64_t calls; /* allocations and frees at the last count */
    uint64_t seen_at; /* when that count last changed, by the device's clock */
    enum { STRATA_IDLE_BUSY, STRATA_IDLE_MARKED, STRATA_IDLE_RELEASED } stage; /* MARKED if events were recorded on its streams */
} strata_idle_watch_t;

/* Fields are constant once the group is created, unless a comment gives another rule. */
struct strata_group {
    strata_domain_t *domain;
    const strata_plan_t *plan; /* outlives the domain */
    const char *name; /* of a pool or a pattern of streams, or "" for ordinary stacks; outlives the domain */
    /* The number in requests; 0 means no pool. A graph pool's number changes only while the group has no
     * live blocks. */
    _Atomic uint64_t pool;
    bool lends; /* its free blocks serve requests outside pools that would otherwise fail: `pools_on_oom` of a layer */
    bool keeps; /* its idle chunks are released only for its own requests and by strata_domain_release_group() */
    strata_graph_pool_t *_Atomic graph; /* of a group that serves captured graphs: allocation/graphs/graphs.h; NULL for any other */
    _Atomic bool paused; /* it serves nothing: allocation/domain/paused.h */
    _Atomic bool pinned; /* its idle memory stays in place, because a graph may use it */
    strata_layer_t *shared[STRATA_PLAN_ALL + 1]; /* instances of device scope, by number */
    strata_idle_watch_t idle; /* used only by the thread that looks for idleness */
    _Atomic uint32_t to_regrow; /* stacks with memory to regrow after idleness; changed under the stack's lock */
    _Atomic uint64_t recoveries;
    _Atomic uint64_t out_of_memory;
    strata_statistics_t ended; /* metrics of stacks that have ended; guarded by the domain's lock */
    strata_group_t *next; /* in creation order; guarded by the domain's lock */
    strata_stack_t *first_stack, *last_stack; /* of this group, orphans included; guarded by the domain's lock */
};

#define STRATA_GRAPH_POOL_ENDED UINT64_MAX /* the number of a group for graph pools that waits for its next pool */
static inline bool strata_group_has_ended(const strata_group_t *group) { return group->pool == STRATA_GRAPH_POOL_ENDED; }
/* The name for reports. A graph pool's name contains the pool's number. */
enum { STRATA_GROUP_NAME = 24 };
const char *strata_group_name(const strata_group_t *group, char text[STRATA_GROUP_NAME]);

/* Returns the group of a pool, or with pool 0 the group of the streams that a pattern matches. NULL if it
 * does not exist yet. */
strata_group_t *strata_domain_group(strata_domain_t *domain, uint64_t pool, const char *name);
/* Creates a group with its shared stack; `keeps` as above. One thread at a time, no lock held. E_LIMIT,
 * E_HOST_MEMORY, errors of the layers. */
strata_status_t strata_domain_add_group(strata_domain_t *domain, uint64_t pool, const char *name, const strata_plan_t *plan,
                                        bool keeps, strata_group_t **group);
/* Returns the group after `previous`, or the first for NULL, in creation order. NULL after the last. Groups
 * are never destroyed before the domain. */
strata_group_t *strata_domain_next_group(strata_domain_t *domain, const strata_group_t *previous);

#endif
