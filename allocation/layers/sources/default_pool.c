#include "allocation/layers/sources/default_pool.h"

#include <string.h>

const strata_pool_attribute_t strata_pool_settings[STRATA_POOL_SETTINGS] = {
    STRATA_POOL_REUSE_FOLLOW_EVENTS, STRATA_POOL_REUSE_OPPORTUNISTIC, STRATA_POOL_REUSE_INTERNAL, STRATA_POOL_RELEASE_THRESHOLD};

/* The devices are called with no lock held. So `locked` gives the joining or leaving thread exclusive use of
 * the list. */
static strata_lock_t lock = {.rank = STRATA_RANK_FACADE};
static strata_condition_t unlocked;
static bool locked;
static strata_pool_sharer_t *sharers;

static void lock_sharers(void) {
    strata_lock(&lock);
    while (locked) strata_condition_wait(&unlocked, &lock, UINT64_MAX);
    locked = true;
    strata_unlock(&lock);
}

static void unlock_sharers(void) {
    strata_lock(&lock);
    locked = false;
    strata_condition_broadcast(&unlocked);
    strata_unlock(&lock);
}

static strata_pool_sharer_t *sharer_of(const strata_device_t *device) {
    strata_pool_sharer_t *sharer = sharers;
    while (sharer && !strata_device_is_same(sharer->device, device)) sharer = sharer->next;
    return sharer;
}

strata_status_t strata_pool_set_all(strata_device_t *device, strata_handle_t pool, const uint64_t *values) {
    strata_status_t status = STRATA_OK;
    for (int i = 0; i < STRATA_POOL_SETTINGS && status == STRATA_OK; i++)
        status = strata_device_pool_set(device, pool, strata_pool_settings[i], values[i]);
    return status;
}

static void restore_settings(strata_device_t *device, const uint64_t *values) {
    for (int i = 0; i < STRATA_POOL_SETTINGS; i++) (void)strata_device_pool_set(device, NULL, strata_pool_settings[i], values[i]);
}

static strata_status_t add_sharer(strata_pool_sharer_t *self, strata_device_t *device, const uint64_t *values) {
    uint64_t now[STRATA_POOL_SETTINGS];
    strata_status_t status = STRATA_OK;
    for (int i = 0; i < STRATA_POOL_SETTINGS && status == STRATA_OK; i++)
        status = strata_device_pool_get(device, NULL, strata_pool_settings[i], &now[i]);
    if (status != STRATA_OK) return status;
    status = strata_pool_set_all(device, NULL, values);
    if (status != STRATA_OK) {
        strata_error_t reason = *strata_last_error();
        restore_settings(device, now);
        return strata_fail_again(&reason);
    }
    const strata_pool_sharer_t *other = sharer_of(device);
    memcpy(self->before, other ? other->before : now, sizeof self->before);
    self->device = device;
    self->next = sharers;
    sharers = self;
    return STRATA_OK;
}

strata_status_t strata_default_pool_attach(strata_pool_sharer_t *self, strata_device_t *device, const uint64_t *values) {
    lock_sharers();
    strata_status_t status = self->device ? STRATA_OK : add_sharer(self, device, values);
    unlock_sharers();
    return status;
}

void strata_default_pool_detach(strata_pool_sharer_t *self) {
    lock_sharers();
    strata_pool_sharer_t **link = &sharers;
    while (*link != self) link = &(*link)->next;
    *link = self->next;
    if (!sharer_of(self->device)) restore_settings(self->device, self->before);
    self->device = NULL;
    unlock_sharers();
}
