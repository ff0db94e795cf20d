/* Handles a place with a limit below its live memory. Until enough has been freed, whole idle chunks are
 * released as they become idle, and no request is served from them. */
#ifndef STRATA_ALLOCATION_OVER_LIMIT_H
#define STRATA_ALLOCATION_OVER_LIMIT_H

#include "allocation/graphs/graphs.h"

/* Sets another limit, and wakes requests that wait for memory. Releases idle chunks as far as the limit
 * requires, and watches the place while it remains above. No lock is held. */
void strata_over_limit_set(strata_domain_t *domain, uint64_t bytes);
/* The slow path of strata_over_limit_check(). */
void strata_over_limit_trim(strata_domain_t *domain);
/* Called after a free and before a request. No lock is held. */
static inline void strata_over_limit_check(strata_domain_t *domain) {
    if (__builtin_expect(atomic_load_explicit(&domain->over_limit, memory_order_relaxed), 0)) strata_over_limit_trim(domain);
}
/* Ends the pools of graphs that are gone, which frees their blocks. No lock is held. */
static inline void strata_over_limit_sweep(strata_domain_t *domain) {
    strata_graphs_sweep(domain);
    strata_over_limit_check(domain);
}

#endif
