/* Releases idle memory for a program: all of it, down to a bound, or that of one pool. */
#include "allocation/reclaim/over_limit.h"
#include "allocation/report/log.h"
#include "facade/pause/pause.h"

/* Memory that a cache returned to a cache below it, or to a driver's pool, counts only once, when the device gets it. */
static uint64_t give_back(strata_domain_t *domain, uint64_t keep) {
    strata_pending_t pending;
    (void)strata_domain_poll(domain, &pending);
    uint64_t before = atomic_load(&domain->returned_bytes);
    if (keep) strata_domain_trim(domain, keep);
    else (void)strata_domain_release(domain, NULL);
    return atomic_load(&domain->returned_bytes) - before;
}

static strata_status_t release_or_trim(strata_t handle, strata_place_t place, uint64_t keep, uint64_t *released) {
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    strata_domain_t *domain;
    strata_status_t status = strata_facade_domain(facade, place, &domain);
    if (status != STRATA_OK) return status;
    strata_facade_sweep_pauses(facade);
    uint64_t bytes = give_back(domain, keep);
    if (released) *released = bytes;
    return STRATA_OK;
}

static void notify_release(strata_t handle, strata_place_t place) {
    strata_facade_t *facade = strata_facade_of(handle);
    strata_notice_t notice = {.struct_size = sizeof notice, .kind = STRATA_NOTICE_RELEASE};
    strata_domain_t *domain;
    if (facade && strata_facade_domain(facade, place, &domain) == STRATA_OK) strata_domain_notify(domain, &notice);
}

strata_status_t strata_release(strata_t handle, strata_place_t place, uint64_t *released) {
    strata_status_t status = release_or_trim(handle, place, 0, released);
    if (status == STRATA_OK) notify_release(handle, place);
    strata_log_flush();
    return status;
}

strata_status_t strata_trim(strata_t handle, strata_place_t place, uint64_t keep, uint64_t *released) {
    strata_status_t status = release_or_trim(handle, place, keep, released);
    strata_log_flush();
    return status;
}

/* Releases idle memory as far as the new limit requires; live blocks stay. */
strata_status_t strata_set_limit(strata_t handle, strata_place_t place, uint64_t limit) {
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    strata_domain_t *domain;
    strata_status_t status = strata_facade_domain(facade, place, &domain);
    if (status != STRATA_OK) return status;
    strata_over_limit_set(domain, limit);
    strata_log_flush();
    return STRATA_OK;
}

/* There are several groups outside pools, including those of streams by name. */
static void release_groups(strata_domain_t *domain, uint64_t pool) {
    strata_pending_t pending;
    (void)strata_domain_poll(domain, &pending);
    strata_group_t *group = NULL;
    while ((group = strata_domain_next_group(domain, group)) != NULL)
        if (group->pool == pool) (void)strata_domain_release_group(domain, group);
}

strata_status_t strata_release_pool(strata_t handle, strata_place_t place, uint64_t pool, uint64_t *released) {
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    strata_domain_t *domain;
    uint64_t meant;
    strata_status_t status = strata_facade_domain(facade, place, &domain);
    if (status == STRATA_OK) status = strata_facade_pool(facade, place, pool, &meant);
    if (status != STRATA_OK) return status;
    uint64_t before = atomic_load(&domain->returned_bytes);
    release_groups(domain, meant);
    strata_facade_sweep_pauses(facade);
    if (released) *released = atomic_load(&domain->returned_bytes) - before;
    strata_log_flush();
    return STRATA_OK;
}
