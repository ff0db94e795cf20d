/* Creates and destroys domains, with their ordinary group, and adds stacks to them. */
#include "allocation/domain/domain.h"

#include "allocation/domain/captures.h"
#include "allocation/domain/driver_memory.h"
#include "allocation/domain/layer.h"
#include "allocation/domain/paused.h"
#include "allocation/domain/stack_list.h"
#include "allocation/graphs/graphs.h"
#include "platform/host/host_memory.h"

strata_status_t strata_domain_create(strata_device_t *device, strata_place_t place, strata_t facade, const strata_plan_t *plan,
                                     strata_directory_t *directory, const strata_domain_settings_t *settings,
                                     strata_domain_t **out) {
    strata_domain_t *domain = strata_host_new(1, sizeof *domain);
    if (!domain) return STRATA_E_HOST_MEMORY;
    domain->device = device;
    domain->created_at = device->clock->now(device->clock);
    domain->place = place;
    domain->facade = facade;
    domain->ordinary.domain = domain;
    domain->ordinary.plan = plan;
    domain->ordinary.name = "";
    domain->directory = directory;
    strata_lock_init(&domain->lock, STRATA_RANK_DOMAIN, device->lock_observer);
    strata_lock_init(&domain->borrowers_lock, STRATA_RANK_EVENTS, device->lock_observer);
    strata_sent_init(domain);
    strata_condition_init(&domain->freed);
    strata_captures_init(&domain->own_captures);
    domain->captures = &domain->own_captures;
    strata_peaks_init(&domain->peaks);
    strata_quota_init(&domain->quota, settings->limit);
    atomic_store(&domain->count, settings->count);
    domain->deferral = settings->deferral;
    atomic_store(&domain->peers, settings->peers);
    atomic_store(&domain->default_stream, settings->default_stream);
    atomic_store(&domain->default_from_first, settings->default_stream != NULL);
    strata_stack_t *shared;
    strata_status_t status = strata_events_init(&domain->events, device);
    if (status == STRATA_OK) status = strata_quarantine_init(&domain->quarantine);
    if (status == STRATA_OK) status = strata_shared_stack_create(&domain->ordinary, &shared);
    if (status != STRATA_OK) {
        strata_domain_destroy(domain);
        return status;
    }
    *out = domain;
    return STRATA_OK;
}

void strata_domain_destroy(strata_domain_t *domain) {
    strata_graphs_end(domain);
    /* Quarantined memory is returned before the driver pools that some of it belongs to are destroyed. */
    (void)strata_domain_retry_quarantined(domain);
    /* The youngest first: a shared stack is older than the stacks of its group that use it. */
    while (domain->last_stack) {
        strata_stack_t *stack = domain->last_stack;
        strata_domain_remove_stack(domain, stack);
        strata_stack_destroy(stack);
    }
    (void)strata_domain_retry_quarantined(domain);
    strata_driver_memory_end(domain);
    strata_sent_destroy(domain);
    strata_quarantine_destroy(&domain->quarantine);
    strata_events_destroy(&domain->events);
    strata_condition_destroy(&domain->freed);
    strata_quota_destroy(&domain->quota);
    strata_captures_destroy(&domain->own_captures);
    strata_lock_destroy(&domain->borrowers_lock);
    strata_lock_destroy(&domain->lock);
    strata_host_delete(domain->chains);
    while (domain->ordinary.next) {
        strata_group_t *group = domain->ordinary.next;
        domain->ordinary.next = group->next;
        strata_host_delete(group);
    }
    strata_host_delete(domain);
}

strata_status_t strata_domain_add_stack(strata_domain_t *domain, strata_stack_t *stack) {
    strata_status_t status = strata_stack_list_reserve(domain);
    if (status != STRATA_OK) return status;
    strata_lock(&domain->lock);
    strata_stack_list_add(domain, stack);
    /* A new stack starts with the waiter bit if a thread waits, and with the directory if the program frees by pointer. */
    strata_stack_lock_own(strata_stack_home(stack));
    if (domain->waiters > 0) stack->attention_free = STRATA_ATTENTION_WAITER;
    if (atomic_load(&domain->over_limit)) strata_stack_close(stack, STRATA_CLOSED_ABOVE_LIMIT, true);
    strata_group_inherit(stack);
    strata_unlock(&strata_stack_home(stack)->lock);
    if (domain->pointers_noted) strata_stack_note_pointers(stack, domain->directory);
    strata_unlock(&domain->lock);
    if (stack->group->graph || strata_graphs_open(domain)) strata_graphs_inherit(stack);
    return STRATA_OK;
}
