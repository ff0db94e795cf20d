/* The event pool of a domain. Taking an event and giving it back are quick and allowed under a stack's lock; making one is a device
 * call, done in advance with no lock held. Events live until the domain ends. */
#ifndef STRATA_ALLOCATION_EVENTS_H
#define STRATA_ALLOCATION_EVENTS_H

#include "platform/device.h"

enum { STRATA_EVENTS = 1 << 18 }; /* at once, in one domain */

typedef struct strata_events {
    strata_device_t *device;
    strata_lock_t lock; /* guards what follows */
    strata_handle_t *free; /* a stack of handles that nobody has */
    uint32_t count; /* of those */
    uint32_t made;
    size_t reserved;
} strata_events_t;

strata_status_t strata_events_init(strata_events_t *events, strata_device_t *device);
/* All events have been given back. */
void strata_events_destroy(strata_events_t *events);
/* NULL: none is there; strata_events_ensure() makes some. */
strata_handle_t strata_events_take(strata_events_t *events);
void strata_events_give(strata_events_t *events, strata_handle_t event);
/* Makes events until `count` are there. No lock is held. */
strata_status_t strata_events_ensure(strata_events_t *events, uint32_t count);

#endif
