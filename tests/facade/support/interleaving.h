/* What another thread does in the middle of a call: the windows in which a call has its locks open, made certain instead of
 * left to chance. */
#ifndef STRATA_TESTS_FACADE_BETWEEN_H
#define STRATA_TESTS_FACADE_BETWEEN_H

#include <pthread.h>

#include "tests/facade/support/fixture.h"

typedef void (*between_fn)(void *context);

/* ---- in front of a device call ---- */

typedef struct between {
    strata_device_operations_t table; /* first: a device that goes through it finds the rest */
    const strata_device_operations_t *real;
    strata_device_t *device;
    strata_device_call_t call;
    between_fn act;
    void *context;
    bool acted;
} between_t;

/* Runs `act` once, in front of the next device call of this kind (event_create, event_synchronise, stream_create,
 * stream_synchronise, capture_status, malloc) of the rig's first device, or after it (synchronise, free_async, host_free).
 * `act` runs on a thread of its own, which ends before the caller continues. */
void between_begin(between_t *between, rig_t *rig, strata_device_call_t call, between_fn act, void *context);
/* Answers whether it ran. */
bool between_end(between_t *between);

/* ---- in front of a lock ---- */

typedef struct before_lock {
    strata_lock_observer_t observer; /* first */
    strata_lock_observer_t *real; /* the lock's own */
    strata_lock_t *lock;
    pthread_t caller;
    uint32_t left; /* of the caller's takings, up to the one that `act` comes before; 0: it came */
    between_fn act;
    void *context;
} before_lock_t;

/* In front of the n-th time from now on (1 = the next) that the calling thread takes `lock`, `act` runs as above, as if another
 * thread had been quicker. */
void before_lock_begin(before_lock_t *before, strata_lock_t *lock, uint32_t n, between_fn act, void *context);
bool before_lock_end(before_lock_t *before);

#endif
