/* Releases idle memory of a place or of one pool, all of it or down to a bound. */
#include "allocation/reclaim/over_limit.h"
#include "allocation/report/log.h"
#include "facade/figures/figures.h"
#include "facade/pause/pause.h"
#include "platform/arguments.h"
#include "platform/arithmetic.h"

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

/* ---- one pool ---- */

typedef struct found {
    strata_facade_t *facade;
    strata_domain_t *domain;
    uint64_t pool;
} found_t;

static strata_status_t find_pool(strata_t handle, strata_place_t place, uint64_t pool, found_t *found) {
    found->facade = strata_facade_of(handle);
    if (!found->facade) return strata_last_error()->status;
    strata_status_t status = strata_facade_domain(found->facade, place, &found->domain);
    return status == STRATA_OK ? strata_facade_pool(found->facade, place, pool, &found->pool) : status;
}

/* There are several groups outside pools, including those of streams by name. */
static void release_groups(strata_domain_t *domain, uint64_t pool) {
    strata_pending_t pending;
    (void)strata_domain_poll(domain, &pending);
    strata_group_t *group = NULL;
    while ((group = strata_domain_next_group(domain, group)) != NULL)
        if (group->pool == pool) (void)strata_domain_release_group(domain, group);
}

/* Trims each group of a pool to the part of `keep` that the idle memory of its other groups leaves. */
static void trim_groups(strata_domain_t *domain, uint64_t pool, uint64_t keep, strata_pool_trim_t *trim) {
    strata_pending_t pending;
    strata_group_t *group = NULL;
    (void)strata_domain_poll(domain, &pending);
    while ((group = strata_domain_next_group(domain, group)) != NULL)
        if (group->pool == pool) trim->idle += strata_domain_idle_bytes(domain, group);
    trim->left = trim->idle;
    while (trim->left > keep && (group = strata_domain_next_group(domain, group)) != NULL) {
        if (group->pool != pool) continue;
        uint64_t own = strata_domain_idle_bytes(domain, group), others = trim->left - strata_min(trim->left, own);
        strata_domain_trim_group(domain, group, keep - strata_min(keep, others));
        trim->left = others + strata_domain_idle_bytes(domain, group);
    }
}

strata_status_t strata_trim_pool(strata_t handle, strata_place_t place, uint64_t pool, uint64_t keep, strata_pool_trim_t *out) {
    if (out) STRATA_REFUSE_RESULT_AS(out, "trim");
    found_t found;
    strata_status_t status = find_pool(handle, place, pool, &found);
    if (status != STRATA_OK) return status;
    strata_pool_trim_t trim = {0};
    strata_statistics_t figures;
    uint64_t before = atomic_load(&found.domain->returned_bytes);
    trim_groups(found.domain, found.pool, keep, &trim);
    strata_facade_sweep_pauses(found.facade);
    strata_facade_pool_figures(found.domain, found.pool, &figures);
    trim.pending = figures.deferred_bytes;
    trim.released = atomic_load(&found.domain->returned_bytes) - before;
    if (out) strata_fill_result(out, &trim, sizeof trim);
    strata_log_flush();
    return STRATA_OK;
}

strata_status_t strata_release_pool(strata_t handle, strata_place_t place, uint64_t pool, uint64_t *released) {
    found_t found;
    strata_status_t status = find_pool(handle, place, pool, &found);
    if (status != STRATA_OK) return status;
    uint64_t before = atomic_load(&found.domain->returned_bytes);
    release_groups(found.domain, found.pool);
    strata_facade_sweep_pauses(found.facade);
    if (released) *released = atomic_load(&found.domain->returned_bytes) - before;
    strata_log_flush();
    return STRATA_OK;
}
