#include "allocation/callbacks.h"
#include "allocation/refusal.h"

/* What one calls may be out of memory too, in another facade. */
static _Thread_local uint32_t inside;

uint64_t strata_callbacks_ask(strata_domain_t *domain, size_t size) {
    const strata_refusal_t refusal = strata_refusal_last();
    inside++;
    atomic_fetch_add(&domain->held_up, 1);
    uint64_t freed = domain->free_memory(domain->free_memory_context, domain->place, size);
    atomic_fetch_sub(&domain->held_up, 1);
    inside--;
    strata_refusal_note(&refusal);
    return freed;
}

bool strata_callbacks_are_asked(void) {
    return inside > 0;
}
