/* Memory that graphs allocate themselves, at each launch (cuda_malloc_async): where it lies, and in which capture it was asked for.
 *
 * The address is the graph's as long as the graph exists. Then it is whoever's who still has to free what the last launch left; if no
 * launch left anything, the driver gives the address to the next who asks, and tells nobody. So who is served at an address shows
 * that there is nothing left of those who had it before: their memory is *gone*, and a free of it would take another's.
 *
 * Only memory of the same place is seen here. (What another library of the process gets at an address that Strata had from a graph which
 * was never launched is not.) */
#ifndef STRATA_ALLOCATION_DRIVER_MEMORY_H
#define STRATA_ALLOCATION_DRIVER_MEMORY_H

#include "allocation/domain/domain.h"

/* An entry for memory that is about to be asked for in a capture; 0: E_LIMIT, E_HOST_MEMORY. No lock is held. */
uint32_t strata_driver_memory_new(strata_domain_t *domain, uint64_t capture);
/* Where it turned out to lie. Like those that follow: also under a stack's lock. */
void strata_driver_memory_lies(strata_domain_t *domain, uint32_t entry, uint64_t address);
bool strata_driver_memory_is_of(strata_domain_t *domain, uint32_t entry, uint64_t capture);
bool strata_driver_memory_is_gone(strata_domain_t *domain, uint32_t entry);
void strata_driver_memory_delete(strata_domain_t *domain, uint32_t entry);
/* Anybody is served at an address. */
void strata_driver_memory_served(strata_domain_t *domain, uint64_t address);
/* With the domain. */
void strata_driver_memory_end(strata_domain_t *domain);

#endif
