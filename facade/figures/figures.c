/* Metrics of places, and of the memory in caches. */
#include <string.h>

#include "allocation/call/figures.h"
#include "allocation/domain/layer.h"
#include "allocation/domain/paused.h"
#include "allocation/reclaim/over_limit.h"
#include "allocation/report/log.h"
#include "allocation/stack/threads.h"
#include "facade/figures/figures.h"
#include "facade/registry/facade.h"
#include "platform/arguments.h"
#include "platform/arithmetic.h"

/* Adds the counters of a stack, under its lock. */
static void add_stack(strata_stack_t *stack, strata_statistics_t *sum) {
    strata_stack_lock(stack);
    strata_stack_add_figures(stack, sum);
    strata_stack_unlock(stack);
}

/* Adds the counters of ended stacks, and those of requests that are counted for the whole group. */
static void add_group(strata_group_t *group, strata_statistics_t *sum) {
    strata_lock(&group->domain->lock);
    strata_statistics_add(sum, &group->ended);
    strata_unlock(&group->domain->lock);
    sum->recoveries += atomic_load(&group->recoveries);
    sum->out_of_memory += atomic_load(&group->out_of_memory);
}

/* Adds blocks that no cache splits; each of them was requested from the device by itself. */
static void add_direct(strata_stack_t *stack, strata_statistics_t *sum) {
    strata_stack_lock_own(stack);
    sum->reserved_bytes += stack->uncached.bytes;
    sum->peak_reserved_bytes += stack->uncached.peak_bytes;
    strata_unlock(&stack->lock);
}

/* Computes the metrics that are not sums over the stacks. */
static void finish(strata_statistics_t *sum) { sum->live_allocations = sum->allocations - sum->frees; }

void strata_facade_stack_figures(strata_stack_t *stack, strata_statistics_t *figures) {
    *figures = (strata_statistics_t){0};
    add_stack(stack, figures);
    add_direct(stack, figures);
    strata_sent_count_stack(stack, figures);
    finish(figures);
}

void strata_facade_place_figures(strata_domain_t *domain, strata_statistics_t *figures) {
    *figures = (strata_statistics_t){0};
    strata_group_t *group = NULL;
    while ((group = strata_domain_next_group(domain, group)) != NULL) add_group(group, figures);
    STRATA_DOMAIN_EACH(domain, stack) add_stack(stack, figures);
    figures->reserved_bytes = strata_domain_reserved(domain);
    figures->quarantined_bytes += atomic_load(&domain->quarantine.bytes);
    figures->peak_reserved_bytes = atomic_load(&domain->peak_reserved_bytes);
    uint64_t peaks[STRATA_MEASURES];
    strata_peaks_read(&domain->peaks, figures->peak_reserved_bytes, peaks);
    figures->peak_requested_bytes = peaks[STRATA_REQUESTED];
    figures->peak_allocated_bytes = peaks[STRATA_ALLOCATED];
    strata_sent_count(domain, figures);
    finish(figures);
}

void strata_facade_pool_figures(strata_domain_t *domain, uint64_t pool, strata_statistics_t *figures) {
    *figures = (strata_statistics_t){0};
    strata_group_t *group = NULL;
    while ((group = strata_domain_next_group(domain, group)) != NULL)
        if (group->pool == pool) add_group(group, figures);
    STRATA_DOMAIN_EACH(domain, stack) {
        if (stack->group->pool != pool) continue;
        add_stack(stack, figures);
        add_direct(stack, figures);
    }
    strata_sent_count_pool(domain, pool, figures);
    figures->reserved_bytes -= strata_min(figures->paused_bytes, figures->reserved_bytes);
    finish(figures);
}

strata_status_t strata_statistics(strata_t handle, strata_place_t place, strata_stream_t stream, strata_statistics_t *out) {
    STRATA_REFUSE_NULL_AS(out, "statistics", STRATA_E_INVALID);
    STRATA_REFUSE_RESULT_AS(out, "statistics");
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    strata_domain_t *domain;
    strata_status_t status = strata_facade_domain(facade, place, &domain);
    if (status != STRATA_OK) return status;
    strata_stream_t key = strata_facade_stream_key(domain, stream);
    strata_stack_t *stack = strata_domain_find(domain, 0, key, key == STRATA_STREAM_PER_THREAD ? strata_threads_self() : 0);
    strata_statistics_t sum = {0};
    if (stack) strata_facade_stack_figures(stack, &sum);
    strata_fill_result(out, &sum, sizeof sum);
    return STRATA_OK;
}

strata_status_t strata_statistics_all(strata_t handle, strata_place_t place, strata_statistics_t *out) {
    STRATA_REFUSE_NULL_AS(out, "statistics", STRATA_E_INVALID);
    STRATA_REFUSE_RESULT_AS(out, "statistics");
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    strata_domain_t *domain;
    strata_status_t status = strata_facade_domain(facade, place, &domain);
    if (status != STRATA_OK) return status;
    strata_statistics_t sum;
    strata_facade_place_figures(domain, &sum);
    strata_fill_result(out, &sum, sizeof sum);
    return STRATA_OK;
}

strata_status_t strata_statistics_pool(strata_t handle, strata_place_t place, uint64_t named_pool, strata_statistics_t *out) {
    STRATA_REFUSE_NULL_AS(out, "statistics", STRATA_E_INVALID);
    STRATA_REFUSE_RESULT_AS(out, "statistics");
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    strata_domain_t *domain;
    uint64_t pool;
    strata_status_t status = strata_facade_domain(facade, place, &domain);
    if (status == STRATA_OK) status = strata_facade_pool(facade, place, named_pool, &pool);
    if (status != STRATA_OK) return status;
    strata_statistics_t sum;
    strata_facade_pool_figures(domain, pool, &sum);
    strata_fill_result(out, &sum, sizeof sum);
    return STRATA_OK;
}

strata_status_t strata_reset_peaks(strata_t handle, strata_place_t place) {
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    strata_domain_t *domain;
    strata_status_t status = strata_facade_domain(facade, place, &domain);
    if (status == STRATA_OK) strata_domain_reset_peaks(domain);
    return status;
}

uint64_t strata_facade_reserved(strata_t handle, strata_place_t place) {
    strata_facade_t *facade = strata_facade_of(handle);
    strata_domain_t *domain;
    if (!facade || strata_facade_domain(facade, place, &domain) != STRATA_OK) return 0;
    return strata_domain_reserved(domain);
}

uint64_t strata_facade_peak_reserved(strata_t handle, strata_place_t place) {
    strata_facade_t *facade = strata_facade_of(handle);
    strata_domain_t *domain;
    if (!facade || strata_facade_domain(facade, place, &domain) != STRATA_OK) return 0;
    return atomic_load(&domain->peak_reserved_bytes);
}

static uint64_t idle_in(strata_domain_t *domain) {
    uint64_t idle = 0;
    STRATA_DOMAIN_EACH(domain, stack)
        if (!strata_group_is_paused(stack->group)) idle += strata_stack_idle_bytes(stack);
    return idle;
}

strata_status_t strata_mem_info(strata_t handle, strata_place_t place, strata_mem_info_t *out) {
    STRATA_REFUSE_NULL_AS(out, "info", STRATA_E_INVALID);
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    STRATA_REFUSE_RESULT_AS(out, "info");
    strata_domain_t *domain;
    strata_status_t status = strata_facade_domain(facade, place, &domain);
    if (status != STRATA_OK) return status;
    strata_mem_info_t info;
    status = strata_device_mem_info(domain->device, &info.free, &info.total);
    if (status != STRATA_OK) return status;
    info.cached = idle_in(domain);
    info.limit = atomic_load(&domain->quota.limit);
    strata_fill_result(out, &info, sizeof info);
    return STRATA_OK;
}

strata_status_t strata_validate(strata_t handle) {
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    uint32_t index = 0;
    strata_domain_t *domain;
    strata_status_t status = STRATA_OK;
    while (status == STRATA_OK && (domain = strata_facade_next_domain(facade, &index)) != NULL)
        STRATA_DOMAIN_EACH(domain, stack)
            if (status == STRATA_OK) status = strata_stack_validate(stack);
    return status;
}
