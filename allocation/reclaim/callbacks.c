#include "allocation/reclaim/callbacks.h"
#include "allocation/reclaim/ladder.h"
#include "allocation/reclaim/refusal.h"

uint64_t strata_callbacks_ask(strata_domain_t *domain, size_t size) {
    const strata_refusal_t refusal = strata_refusal_last();
    const strata_climbed_t climbed = strata_ladder_last();
    atomic_fetch_add(&domain->held_up, 1);
    uint64_t freed = domain->free_memory(domain->free_memory_context, domain->place, size);
    atomic_fetch_sub(&domain->held_up, 1);
    strata_refusal_note(&refusal);
    strata_ladder_restore(&climbed);
    return freed;
}
