#include "allocation/domain/domain.h"

#include "allocation/domain/driver_memory.h"
#include "allocation/domain/stack_list.h"
#include "allocation/report/log.h"
#include "allocation/report/outcome.h"
#include "allocation/stack/threads.h"
#include "platform/arithmetic.h"

strata_domain_settings_t strata_domain_settings(strata_domain_t *domain) {
    return (strata_domain_settings_t){.limit = atomic_load(&domain->quota.limit),
                                      .count = atomic_load(&domain->count),
                                      .default_stream = atomic_load(&domain->default_stream),
                                      .deferral = domain->deferral,
                                      .peers = atomic_load(&domain->peers)};
}

void strata_domain_note_unreported(strata_domain_t *domain) {
    int nothing = 0;
    if (!domain->unreported || !atomic_compare_exchange_strong(&domain->unreported->state, &nothing, 1)) return;
    domain->unreported->error = *strata_last_error();
    atomic_store(&domain->unreported->state, 2);
}

/* ---- the list of stacks ---- */

/* Moves a walk from one stack to the next. The domain's lock is held. */
static strata_stack_t *advance_walk(strata_stack_t *previous, strata_stack_t *found) {
    if (previous) previous->links.visitors--;
    if (found) found->links.visitors++;
    return found;
}

strata_stack_t *strata_domain_next_stack(strata_domain_t *domain, strata_stack_t *previous) {
    strata_lock(&domain->lock);
    strata_stack_t *found = advance_walk(previous, strata_stack_list_next(domain, previous));
    strata_unlock(&domain->lock);
    return found;
}

strata_stack_t *strata_domain_next_of_group(strata_domain_t *domain, const strata_group_t *group, strata_stack_t *previous) {
    strata_lock(&domain->lock);
    strata_stack_t *found = advance_walk(previous, strata_stack_list_next_of_group(domain, group, previous));
    strata_unlock(&domain->lock);
    return found;
}

strata_stack_t *strata_domain_next_orphan(strata_domain_t *domain, strata_stack_t *previous) {
    strata_lock(&domain->lock);
    strata_stack_t *found = advance_walk(previous, strata_stack_list_next_orphan(domain, previous));
    strata_unlock(&domain->lock);
    return found;
}

bool strata_domain_has_orphans(strata_domain_t *domain) {
    strata_lock(&domain->lock);
    bool has = domain->orphans > 0;
    strata_unlock(&domain->lock);
    return has;
}

void strata_domain_end_walk(strata_domain_t *domain, strata_stack_t *stack) {
    strata_lock(&domain->lock);
    stack->links.visitors--;
    strata_unlock(&domain->lock);
}

void strata_domain_unlist(strata_domain_t *domain, strata_stack_t *stack) {
    strata_stack_list_remove(domain, stack);
    strata_peaks_remove(&domain->peaks, stack);
    strata_stack_add_figures(stack, &stack->group->ended);
    stack->group->ended.peak_reserved_bytes += stack->uncached.peak_bytes;
}

void strata_domain_remove_stack(strata_domain_t *domain, strata_stack_t *stack) {
    strata_lock(&domain->lock);
    strata_domain_unlist(domain, stack);
    strata_unlock(&domain->lock);
}

/* ---- metrics of the device ---- */

strata_status_t strata_domain_claim(strata_domain_t *domain, const strata_request_t *request, uint64_t bytes) {
    if (strata_quota_claim_in_time(&domain->quota, bytes, &domain->lock, NULL)) return STRATA_OK;
    strata_refused_by_place(request, bytes, strata_domain_reserved(domain), atomic_load(&domain->quota.limit));
    return strata_fail(STRATA_E_NO_MEMORY, 0, "strata_set_limit: requested %llu bytes; %llu of %llu are reserved",
                       (unsigned long long)bytes, (unsigned long long)strata_domain_reserved(domain),
                       (unsigned long long)atomic_load(&domain->quota.limit));
}

strata_status_t strata_domain_memory(strata_domain_t *domain, uint64_t *available, uint64_t *total) {
    const uint64_t most = UINT64_C(1) << 40, usual = UINT64_C(80) << 30;
    strata_status_t status = strata_device_mem_info(domain->device, available, total);
    if (status != STRATA_OK || *total <= most) return status;
    *total = usual;
    *available = strata_min(*available, usual);
    return STRATA_OK;
}

void strata_domain_unclaim(strata_domain_t *domain, uint64_t bytes) {
    strata_quota_unclaim(&domain->quota, bytes);
    strata_quota_wake(&domain->quota, &domain->lock);
}

strata_status_t strata_domain_book(strata_domain_t *domain, uint64_t address, uint64_t bytes) {
    strata_driver_memory_served(domain, address);
    strata_status_t status = domain->directory ? strata_directory_cover(domain->directory, address, bytes) : STRATA_OK;
    if (status != STRATA_OK) return status;
    strata_domain_count(domain, bytes);
    return STRATA_OK;
}

void strata_domain_note_peak(strata_domain_t *domain) {
    uint64_t now = strata_domain_reserved(domain), peak = atomic_load(&domain->peak_reserved_bytes);
    while (now > peak && !atomic_compare_exchange_weak(&domain->peak_reserved_bytes, &peak, now)) {}
}

void strata_domain_count(strata_domain_t *domain, uint64_t bytes) {
    strata_quota_serve(&domain->quota, bytes);
    strata_domain_note_peak(domain);
    strata_log_note(STRATA_LOG_GREW, domain->place, bytes, strata_domain_reserved(domain));
    strata_quota_wake(&domain->quota, &domain->lock);
}

void strata_domain_uncover(strata_domain_t *domain, uint64_t address, uint64_t bytes) {
    if (domain->directory) strata_directory_uncover(domain->directory, address, bytes);
}

/* This cannot fail: addresses that were covered before still have their pages. */
void strata_domain_recover(strata_domain_t *domain, uint64_t address, uint64_t bytes) {
    if (domain->directory) (void)strata_directory_cover(domain->directory, address, bytes);
}

void strata_domain_discount(strata_domain_t *domain, uint64_t bytes) {
    strata_quota_return(&domain->quota, bytes);
    strata_log_note(STRATA_LOG_SHRANK, domain->place, bytes, strata_domain_reserved(domain));
}

void strata_domain_unbook(strata_domain_t *domain, uint64_t bytes) {
    strata_domain_discount(domain, bytes);
    atomic_fetch_add(&domain->returned_bytes, bytes);
}

strata_stack_t *strata_domain_thread_shared(strata_group_t *group, uint64_t thread) {
    strata_domain_t *domain = group->domain;
    strata_stack_key_t key = {.pool = group->pool, .of_thread = thread, .is_shared = true};
    strata_lock(&domain->lock);
    strata_stack_t *found = strata_stack_list_find(domain, &key, group);
    strata_unlock(&domain->lock);
    return found;
}

bool strata_domain_serves(strata_domain_t *domain, strata_stream_t stream) {
    bool found = false;
    strata_lock(&domain->lock);
    for (const strata_stack_t *stack = domain->first_stack; stack && !found; stack = stack->links.next)
        found = stack->group->pool == 0 && strata_stack_serves(stack, stream, 0);
    strata_unlock(&domain->lock);
    return found;
}

/* The domain's lock is held. */
static strata_stack_t *find(strata_domain_t *domain, uint64_t pool, strata_stream_t stream, uint64_t thread) {
    strata_stack_key_t anybodys = {.pool = pool, .stream = stream, .thread = thread}, own = anybodys;
    own.of_thread = strata_threads_self();
    strata_stack_t *found = strata_stack_list_find(domain, &anybodys, NULL);
    return found ? found : strata_stack_list_find(domain, &own, NULL);
}

strata_stack_t *strata_domain_find(strata_domain_t *domain, uint64_t pool, strata_stream_t stream, uint64_t thread) {
    strata_lock(&domain->lock);
    strata_stack_t *found = find(domain, pool, stream, thread);
    strata_unlock(&domain->lock);
    return found;
}

strata_stack_handle_t strata_domain_find_handle(strata_domain_t *domain, uint64_t pool, strata_stream_t stream, uint64_t thread) {
    strata_lock(&domain->lock);
    strata_stack_t *found = find(domain, pool, stream, thread);
    strata_stack_handle_t handle = found ? strata_stack_handle_of(found) : 0;
    strata_unlock(&domain->lock);
    return handle;
}
