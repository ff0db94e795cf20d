#include "allocation/family.h"

#include <string.h>

#include "allocation/domain.h"
#include "allocation/option.h"
#include "platform/host_memory.h"

strata_family_t *strata_domain_next_family(strata_domain_t *domain, const strata_family_t *previous) {
    strata_lock(&domain->lock);
    strata_family_t *next = previous ? previous->next : &domain->ordinary;
    strata_unlock(&domain->lock);
    return next;
}

strata_family_t *strata_domain_family(strata_domain_t *domain, uint64_t pool, const char *name) {
    strata_family_t *family = NULL;
    while ((family = strata_domain_next_family(domain, family)) != NULL)
        if (family->pool == pool && strcmp(family->name, name) == 0) return family;
    return NULL;
}

/* Behind the last. */
static void list(strata_domain_t *domain, strata_family_t *family) {
    strata_lock(&domain->lock);
    strata_family_t *last = &domain->ordinary;
    while (last->next) last = last->next;
    last->next = family;
    strata_unlock(&domain->lock);
}

static bool any_lends(const strata_plan_t *plan) {
    for (uint32_t n = 1; n <= plan->count; n++) {
        const strata_option_row_t *row = strata_option_find(plan->nodes[n].type, "pools_on_oom");
        if (row && row->kind == STRATA_OPTION_BOOL && *((const bool *)plan->nodes[n].options + row->offset)) return true;
    }
    return false;
}

strata_status_t strata_domain_add_family(strata_domain_t *domain, uint64_t pool, const char *name, const strata_plan_t *plan,
                                         bool keeps, strata_family_t **out) {
    strata_family_t *family = strata_host_new(1, sizeof *family);
    if (!family) return STRATA_E_HOST_MEMORY;
    family->domain = domain;
    family->plan = plan;
    family->name = name;
    family->pool = pool;
    family->keeps = keeps;
    family->lends = pool != 0 && any_lends(plan);
    strata_stack_t *trunk;
    strata_status_t status = strata_trunk_create(family, &trunk);
    if (status != STRATA_OK) {
        strata_host_delete(family);
        return status;
    }
    list(domain, family);
    *out = family;
    return STRATA_OK;
}
