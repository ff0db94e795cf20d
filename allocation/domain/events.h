/* The event pool of a domain. Taking and returning an event is quick and allowed under a stack's lock.
 * Creating one is a device call, made in advance with no lock held. Events live until the domain ends. */
#ifndef STRATA_ALLOCATION_EVENTS_H
#define STRATA_ALLOCATION_EVENTS_H

#include "platform/device.h"

enum { STRATA_EVENTS = 1 << 18 }; /* the limit at one time, in one domain */

typedef struct strata_events {
    strata_device_t *device;
    strata_lock_t lock; /* guards the fields below */
    strata_handle_t *free; /* a stack of unused events */
    uint32_t count; /* length of `free` */
    uint32_t made;
    size_t reserved;
} strata_events_t;

strata_status_t strata_events_init(strata_events_t *events, strata_device_t *device);
/* Requires that all events have been returned. */
void strata_events_destroy(strata_events_t *events);
/* Returns NULL if none is available; strata_events_ensure() creates some. */
strata_handle_t strata_events_acquire(strata_events_t *events);
void strata_events_release(strata_events_t *events, strata_handle_t event);
/* Creates events until `count` are available. No lock is held. */
strata_status_t strata_events_ensure(strata_events_t *events, uint32_t count);

#endif
