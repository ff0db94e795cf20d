/* Shadows: addresses that must not be used, because a view (auto_growth_vmm_views.c) or a handle that is being
 * given back is mapped there. Before a mapping ends, an event after the work that may use it must have
 * completed. */
#include "allocation/cache/policies/virtual/auto_growth_vmm_state.h"

strata_status_t strata_growth_vmm_init_shadows(auto_growth_vmm_t *self) {
    strata_status_t status = strata_nodes_init(&self->shadow_nodes, sizeof(vmm_shadow_t), STRATA_VMM_SHADOWS);
    if (status == STRATA_OK) strata_order_init(&self->shadows, &self->shadow_nodes, offsetof(vmm_shadow_t, link));
    return status;
}

uint32_t strata_growth_vmm_block(auto_growth_vmm_t *self, uint64_t at, uint64_t size) {
    uint32_t number = strata_nodes_acquire(&self->shadow_nodes);
    if (number == 0) return 0;
    *strata_growth_vmm_shadow(self, number) = (vmm_shadow_t){.at = at, .size = size};
    strata_order_add(&self->shadows, number, &(strata_order_key_t){at, number, 0});
    return number;
}

void strata_growth_vmm_unblock(auto_growth_vmm_t *self, uint32_t number) {
    vmm_shadow_t *shadow = strata_growth_vmm_shadow(self, number);
    shadow->is_kept = strata_vmm_still_maps(self->vmm, shadow->at);
    if (shadow->is_kept) self->unmappable_shadows++;
    if (shadow->is_kept) return;
    strata_order_remove(&self->shadows, number);
    self->ranges_changed = true;
    strata_nodes_release(&self->shadow_nodes, number);
}

/* Unblocks the addresses that vmm no longer keeps mapped. Each release of vmm retries the unmappings that the
 * device refused. */
static void unblock_kept(auto_growth_vmm_t *self) {
    for (uint32_t number = self->unmappable_shadows ? self->shadows.first[0] : 0, next; number; number = next) {
        next = strata_order_next(&self->shadows, number);
        if (!strata_growth_vmm_shadow(self, number)->is_kept) continue;
        self->unmappable_shadows--;
        strata_growth_vmm_unblock(self, number);
    }
}

void strata_growth_vmm_retire_shadow(auto_growth_vmm_t *self, uint32_t number) {
    strata_growth_vmm_shadow(self, number)->next = 0;
    *(self->last_shadow ? &strata_growth_vmm_shadow(self, self->last_shadow)->next : &self->first_shadow) = number;
    self->last_shadow = number;
}

void strata_growth_vmm_cover_shadows(auto_growth_vmm_t *self, strata_handle_t event) {
    strata_growth_vmm_shadow(self, self->last_shadow)->event = event;
}

/* ---- events ---- */

bool strata_growth_vmm_ensure_event(auto_growth_vmm_t *self, strata_call_t *call) {
    strata_unlocked_t opened = strata_call_unlock(call);
    bool there = strata_events_ensure(&self->growth.base.domain->events, 1) == STRATA_OK;
    strata_call_lock(call, opened);
    return there;
}

/* The stream handle is valid only while the lock is held. */
strata_handle_t strata_growth_vmm_mark_stream(auto_growth_vmm_t *self) {
    strata_layer_t *base = &self->growth.base;
    strata_stream_t stream;
    if (!strata_layer_owner(base, &stream) || strata_domain_refuse_captured(base->domain, stream) != STRATA_OK) return NULL;
    strata_handle_t event = strata_events_acquire(&base->domain->events);
    if (!event || strata_domain_record_event(base->domain, event, stream) == STRATA_OK) return event;
    strata_events_release(&base->domain->events, event);
    return NULL;
}

/* ---- unmapping ---- */

/* Returns how many shadows, from the first on, precede a completed event. */
static uint32_t count_passed(auto_growth_vmm_t *self) {
    uint32_t passed = 0, seen = 0;
    for (uint32_t number = self->first_shadow; number; number = strata_growth_vmm_shadow(self, number)->next) {
        const vmm_shadow_t *shadow = strata_growth_vmm_shadow(self, number);
        seen++;
        if (!shadow->event) continue;
        if (strata_device_event_query(self->growth.base.domain->device, shadow->event) != STRATA_OK) break;
        passed = seen;
    }
    return passed;
}

static void end_mapping(auto_growth_vmm_t *self, const vmm_shadow_t *shadow) {
    if (shadow->alias) (void)strata_vmm_end_alias(self->vmm, shadow->alias);
    if (shadow->is_moved && !strata_vmm_unmap(self->vmm, shadow->at, shadow->size))
        strata_vmm_defer_unmap(self->vmm, shadow->at, shadow->size);
}

/* Takes the first `count` shadows, or all of them. */
static uint32_t take_first(auto_growth_vmm_t *self, uint32_t count) {
    uint32_t chain = self->first_shadow, last = 0;
    for (uint32_t number = chain; number && count > 0; count--, number = strata_growth_vmm_shadow(self, number)->next)
        last = number;
    self->first_shadow = strata_growth_vmm_shadow(self, last)->next;
    if (self->first_shadow == 0) self->last_shadow = 0;
    strata_growth_vmm_shadow(self, last)->next = 0;
    return chain;
}

/* Waits for the event, or for the device if there is no event. */
static bool wait_for_work(auto_growth_vmm_t *self, strata_handle_t event) {
    strata_domain_t *domain = self->growth.base.domain;
    if (event && strata_device_event_synchronise(domain->device, event) == STRATA_OK) return true;
    return strata_domain_wait_for_own(domain) || strata_last_error()->status == STRATA_E_SHUTDOWN;
}

/* Takes all shadows, and waits for the last event, which follows the others. Taking them first keeps other
 * threads from releasing that event while the locks are open. */
static uint32_t take_awaited(auto_growth_vmm_t *self, strata_call_t *call) {
    uint32_t last = self->last_shadow, chain = take_first(self, UINT32_MAX);
    strata_handle_t event = strata_growth_vmm_shadow(self, last)->event;
    strata_unlocked_t opened = strata_call_unlock(call);
    bool done = wait_for_work(self, event);
    strata_call_lock(call, opened);
    if (done) return chain;
    /* They go back to the front of the list, which has got others since. */
    strata_growth_vmm_shadow(self, last)->next = self->first_shadow;
    self->first_shadow = chain;
    if (self->last_shadow == 0) self->last_shadow = last;
    return 0;
}

void strata_growth_vmm_drop_shadows(auto_growth_vmm_t *self, bool wait, strata_call_t *call) {
    unblock_kept(self);
    if (self->first_shadow == 0) return;
    uint32_t passed = wait ? 0 : count_passed(self);
    if (!wait && passed == 0) return;
    uint32_t chain = wait ? take_awaited(self, call) : take_first(self, passed);
    /* The shadows are in no list while the locks are open, and their addresses stay blocked, also if the device refuses. */
    strata_unlocked_t opened = strata_call_unlock(call);
    for (uint32_t number = chain; number; number = strata_growth_vmm_shadow(self, number)->next)
        end_mapping(self, strata_growth_vmm_shadow(self, number));
    strata_call_lock(call, opened);
    for (uint32_t number = chain, next; number; number = next) {
        vmm_shadow_t *shadow = strata_growth_vmm_shadow(self, number);
        next = shadow->next;
        if (shadow->event) strata_events_release(&self->growth.base.domain->events, shadow->event);
        shadow->event = NULL;
        shadow->alias = 0;
        shadow->is_moved = false;
        strata_growth_vmm_unblock(self, number);
    }
}

/* No event follows the work of the remaining views, so the device must be waited for. */
void strata_growth_vmm_end_shadows(auto_growth_vmm_t *self) {
    if (self->mapped > 0) (void)wait_for_work(self, NULL);
    for (uint32_t number = self->shadows.first[0]; number; number = strata_order_next(&self->shadows, number)) {
        const vmm_shadow_t *shadow = strata_growth_vmm_shadow(self, number);
        if (shadow->event) (void)strata_device_event_synchronise(self->growth.base.domain->device, shadow->event);
        if (shadow->event) strata_events_release(&self->growth.base.domain->events, shadow->event);
        end_mapping(self, shadow);
    }
    strata_nodes_destroy(&self->shadow_nodes);
}
