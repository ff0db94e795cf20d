/* Frees that carry a count: the program's counter of a place, and the frontier, the count up to which the
 * GPU has finished its work. */
#include "allocation/reclaim/waiting.h"
#include "facade/registry/facade.h"
#include "platform/arguments.h"

static strata_status_t domain_of(strata_t handle, strata_place_t place, strata_domain_t **domain) {
    strata_facade_t *facade = strata_facade_of(handle);
    return facade ? strata_facade_domain(facade, place, domain) : strata_last_error()->status;
}

strata_status_t strata_next_count(strata_t handle, strata_place_t place, uint64_t *count) {
    STRATA_REFUSE_NULL(count);
    strata_domain_t *domain;
    strata_status_t status = domain_of(handle, place, &domain);
    if (status == STRATA_OK) *count = atomic_fetch_add(&domain->count, 1) + 1;
    return status;
}

strata_status_t strata_set_safe_frontier(strata_t handle, strata_place_t place, uint64_t count) {
    strata_domain_t *domain;
    strata_status_t status = domain_of(handle, place, &domain);
    if (status != STRATA_OK) return status;
    bool any = false;
    STRATA_DOMAIN_EACH(domain, stack) any = strata_stack_set_frontier(stack, count) || any;
    if (!any)
        return strata_fail(STRATA_E_UNSUPPORTED, 0,
                           "no layer of this place has frees with counts; set bfc.timestamps: "
                           "true");
    strata_domain_wake(domain);
    return STRATA_OK;
}
