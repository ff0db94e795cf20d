/* The settings of a device's default pool, which is one for the whole process. The last sharer to leave
 * restores the settings that the first one found, whatever facades exist in between. */
#ifndef STRATA_ALLOCATION_DEFAULT_POOL_H
#define STRATA_ALLOCATION_DEFAULT_POOL_H

#include "platform/device.h"

enum { STRATA_POOL_SETTINGS = 4 };

/* `values` arrays have this order. */
extern const strata_pool_attribute_t strata_pool_settings[STRATA_POOL_SETTINGS];

/* One sharer of a default pool. Initialized to zero; it must not move until it has left. */
typedef struct strata_pool_sharer {
    struct strata_pool_sharer *next;
    strata_device_t *device; /* NULL if it shares none */
    uint64_t before[STRATA_POOL_SETTINGS];
} strata_pool_sharer_t;

strata_status_t strata_pool_set_all(strata_device_t *device, strata_handle_t pool, const uint64_t *values);
/* Join gives the device's default pool these settings, until another sharer joins with others. It does
 * nothing if the sharer has already joined. After a failure the pool has its earlier settings. Only a
 * sharer that has joined may leave. Both: any thread, no lock held. */
strata_status_t strata_default_pool_attach(strata_pool_sharer_t *self, strata_device_t *device, const uint64_t *values);
void strata_default_pool_detach(strata_pool_sharer_t *self);

#endif
