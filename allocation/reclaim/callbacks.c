#include "allocation/reclaim/callbacks.h"

uint64_t strata_callbacks_call(strata_domain_t *domain, size_t size) {
    atomic_fetch_add(&domain->blocked, 1);
    uint64_t freed = domain->free_memory(domain->free_memory_context, domain->place, size);
    atomic_fetch_sub(&domain->blocked, 1);
    return freed;
}
