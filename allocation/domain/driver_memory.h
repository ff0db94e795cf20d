/* Memory that graphs allocate themselves at each launch (cuda_malloc_async): its address, and the capture
 * that requested it.
 *
 * The address belongs to the graph while the graph exists. Afterwards it belongs to the owner of the memory
 * that the last launch left. If no launch left any, the driver reuses the address without notice. So a
 * block served at an address shows that earlier memory there no longer exists. That memory is *gone*, and
 * freeing it would free the new block.
 *
 * Only memory of the same place is detected here. If another library of the process gets an address that
 * Strata had from a graph that was never launched, that is not detected. */
#ifndef STRATA_ALLOCATION_DRIVER_MEMORY_H
#define STRATA_ALLOCATION_DRIVER_MEMORY_H

#include "allocation/domain/domain.h"

/* Creates an entry for memory that is about to be requested in a capture. Returns 0 after E_LIMIT or
 * E_HOST_MEMORY. No lock is held. */
uint32_t strata_driver_memory_new(strata_domain_t *domain, uint64_t capture);
/* Sets the address of an entry. Like the functions below, it may be called under a stack's lock. */
void strata_driver_memory_set_address(strata_domain_t *domain, uint32_t entry, uint64_t address);
bool strata_driver_memory_is_of(strata_domain_t *domain, uint32_t entry, uint64_t capture);
bool strata_driver_memory_is_freed(strata_domain_t *domain, uint32_t entry);
void strata_driver_memory_delete(strata_domain_t *domain, uint32_t entry);
/* A block is served at an address, to any caller. */
void strata_driver_memory_served(strata_domain_t *domain, uint64_t address);
/* Called when the domain is destroyed. */
void strata_driver_memory_end(strata_domain_t *domain);

#endif
