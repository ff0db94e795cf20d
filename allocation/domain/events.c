#include "allocation/domain/events.h"

#include <string.h>

#include "platform/host/host_memory.h"

strata_status_t strata_events_init(strata_events_t *events, strata_device_t *device) {
    memset(events, 0, sizeof *events);
    size_t bytes = STRATA_EVENTS * sizeof *events->free;
    events->free = strata_host_reserve(bytes, bytes, &events->reserved);
    if (!events->free) return STRATA_E_HOST_MEMORY;
    events->device = device;
    strata_lock_init(&events->lock, STRATA_RANK_EVENTS, device->lock_observer);
    return STRATA_OK;
}

void strata_events_destroy(strata_events_t *events) {
    if (!events->free) return;
    /* An event that the device refuses to destroy is offered once more, as memory is. */
    for (uint32_t i = 0; i < events->count; i++)
        if (strata_device_event_destroy(events->device, events->free[i]) != STRATA_OK)
            (void)strata_device_event_destroy(events->device, events->free[i]);
    strata_host_unreserve(events->free, events->reserved);
    strata_lock_destroy(&events->lock);
    memset(events, 0, sizeof *events);
}

strata_handle_t strata_events_acquire(strata_events_t *events) {
    strata_lock(&events->lock);
    strata_handle_t event = events->count > 0 ? events->free[--events->count] : NULL;
    strata_unlock(&events->lock);
    return event;
}

void strata_events_release(strata_events_t *events, strata_handle_t event) {
    strata_lock(&events->lock);
    events->free[events->count++] = event;
    strata_unlock(&events->lock);
}

typedef enum claim { THERE, CLAIMED, FULL } claim_t;

/* Checks that `wanted` events are available. If not, claims room in the pool for one more, counted as made.
 * This is one step, because otherwise another thread may take an event in between. */
static claim_t claim(strata_events_t *events, uint32_t wanted) {
    strata_lock(&events->lock);
    claim_t claimed = events->count >= wanted ? THERE : events->made < STRATA_EVENTS ? CLAIMED : FULL;
    if (claimed == CLAIMED) events->made++;
    strata_unlock(&events->lock);
    return claimed;
}

strata_status_t strata_events_ensure(strata_events_t *events, uint32_t count) {
    claim_t claimed;
    while ((claimed = claim(events, count)) == CLAIMED) {
        strata_handle_t event;
        strata_status_t status = strata_device_event_create(events->device, &event);
        if (status != STRATA_OK) {
            strata_lock(&events->lock);
            events->made--;
            strata_unlock(&events->lock);
            return status;
        }
        strata_events_release(events, event);
    }
    if (claimed == THERE) return STRATA_OK;
    return strata_fail(STRATA_E_LIMIT, 0, "%d events are pending in one place, the maximum", STRATA_EVENTS);
}
