/* A place whose limit was set below what is live: until enough has been freed, whole idle chunks go back as they become idle, and
 * nothing is served from them. */
#ifndef STRATA_ALLOCATION_ABOVE_H
#define STRATA_ALLOCATION_ABOVE_H

#include "allocation/domain/domain.h"

/* After a change of the limit: idle chunks go back as far as it requires; what stays above it is watched from now on. No lock is
 * held. */
void strata_above_begin(strata_domain_t *domain);
/* The rare path of the function below. */
void strata_above_give_back(strata_domain_t *domain);
/* Something was freed, or is asked for. No lock is held. */
static inline void strata_above_look(strata_domain_t *domain) {
    if (__builtin_expect(atomic_load_explicit(&domain->above, memory_order_relaxed), 0)) strata_above_give_back(domain);
}

#endif
