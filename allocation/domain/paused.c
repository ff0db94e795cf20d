#include "allocation/domain/paused.h"

#include <time.h>

#include "allocation/domain/domain.h"

strata_status_t strata_group_refuse_paused(const strata_group_t *group) {
    char name[STRATA_GROUP_NAME];
    if (!strata_group_is_paused(group)) return STRATA_OK;
    const char *called = strata_group_name(group, name);
    return strata_fail(STRATA_E_BUSY, 0, "%s%s is paused and serves no requests until strata_resume()",
                       *called ? "the pool " : "the memory outside pools", called);
}

/* The flag is set before the bits. A call that has entered a stack checks the flag afterwards, and a stack
 * that is listed concurrently inherits it. */
void strata_group_set_paused(strata_group_t *group, bool paused) {
    atomic_store(&group->paused, paused);
    STRATA_DOMAIN_EACH_OF(group->domain, group, stack) {
        strata_stack_lock(stack);
        if (stack->open && !stack->is_shared) strata_stack_close(stack, STRATA_CLOSED_PAUSED, paused);
        strata_stack_unlock(stack);
    }
}

void strata_group_inherit(strata_stack_t *stack) {
    if (strata_group_is_paused(stack->group)) strata_stack_close(stack, STRATA_CLOSED_PAUSED, true);
}

strata_status_t strata_domain_refuse_launch(strata_domain_t *domain) {
    strata_group_t *group = NULL;
    strata_status_t status = STRATA_OK;
    if (atomic_load(&domain->graph_pools) == 0) return STRATA_OK;
    while (status == STRATA_OK && (group = strata_domain_next_group(domain, group)) != NULL)
        if (group->graph) status = strata_group_refuse_paused(group);
    return status;
}

/* ---- calls that began before the pause ---- */

/* A group that lends also serves requests that have entered a stack outside it. */
void strata_group_drain(strata_group_t *group) {
    STRATA_DOMAIN_EACH(group->domain, stack) {
        bool inside = stack->group == group || group->lends;
        while (inside) {
            strata_stack_lock_own(stack);
            inside = stack->holds.calls > 0;
            strata_unlock(&stack->lock);
            if (inside) (void)nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
        }
    }
}
