/* The settings of a device's default pool, which is one for the whole process: the last who leaves puts back what the first found,
 * whatever facades come and go in between. */
#ifndef STRATA_ALLOCATION_DEFAULT_POOL_H
#define STRATA_ALLOCATION_DEFAULT_POOL_H

#include "platform/device.h"

enum { STRATA_POOL_SETTINGS = 4 };

/* In this order. */
extern const strata_pool_attribute_t strata_pool_settings[STRATA_POOL_SETTINGS];

/* One who shares a default pool. All zero at first; it must stay where it is until it has left. */
typedef struct strata_pool_sharer {
    struct strata_pool_sharer *next;
    strata_device_t *device; /* NULL: it shares none */
    uint64_t before[STRATA_POOL_SETTINGS];
} strata_pool_sharer_t;

strata_status_t strata_pool_set_all(strata_device_t *device, strata_handle_t pool, const uint64_t *values);
/* Gives the device's default pool these settings, until another joins with others. A sharer that has joined already is unchanged;
 * after a failure the pool has its earlier settings. Only who has joined leaves. Both: any thread, no lock held. */
strata_status_t strata_default_pool_join(strata_pool_sharer_t *self, strata_device_t *device, const uint64_t *values);
void strata_default_pool_leave(strata_pool_sharer_t *self);

#endif
