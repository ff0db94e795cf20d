#include "allocation/domain/group.h"

#include <stdio.h>
#include <string.h>

#include "allocation/domain/domain.h"
#include "allocation/options/option.h"
#include "platform/host/host_memory.h"

/* The upper bits of a number belong to the facade. */
const char *strata_group_name(const strata_group_t *group, char text[STRATA_GROUP_NAME]) {
    if (!group->graph) return group->name;
    snprintf(text, STRATA_GROUP_NAME, "%s %u", group->name, (unsigned)(group->pool & 0x7fffff));
    return text;
}

strata_group_t *strata_domain_next_group(strata_domain_t *domain, const strata_group_t *previous) {
    strata_lock(&domain->lock);
    strata_group_t *next = previous ? previous->next : &domain->ordinary;
    strata_unlock(&domain->lock);
    return next;
}

strata_group_t *strata_domain_group(strata_domain_t *domain, uint64_t pool, const char *name) {
    strata_group_t *group = NULL;
    while ((group = strata_domain_next_group(domain, group)) != NULL)
        if (group->pool == pool && strcmp(group->name, name) == 0) return group;
    return NULL;
}

static bool any_lends(const strata_plan_t *plan) {
    for (uint32_t n = 1; n <= plan->count; n++) {
        const strata_option_row_t *row = strata_option_find(plan->nodes[n].type, "pools_on_oom");
        if (row && row->kind == STRATA_OPTION_BOOL && *((const bool *)plan->nodes[n].options + row->offset)) return true;
    }
    return false;
}

strata_status_t strata_domain_add_group(strata_domain_t *domain, uint64_t pool, const char *name, const strata_plan_t *plan,
                                        bool keeps, strata_group_t **out) {
    strata_group_t *group = strata_host_new(1, sizeof *group);
    if (!group) return STRATA_E_HOST_MEMORY;
    group->domain = domain;
    group->plan = plan;
    group->name = name;
    group->pool = pool;
    group->keeps = keeps;
    group->lends = pool != 0 && any_lends(plan);
    strata_stack_t *shared;
    strata_status_t status = strata_shared_stack_create(group, &shared);
    if (status != STRATA_OK) {
        strata_host_delete(group);
        return status;
    }
    strata_lock(&domain->lock);
    strata_group_t *last = &domain->ordinary;
    while (last->next) last = last->next;
    last->next = group;
    strata_unlock(&domain->lock);
    *out = group;
    return STRATA_OK;
}
