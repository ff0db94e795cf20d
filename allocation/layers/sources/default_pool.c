#include "allocation/layers/sources/default_pool.h"

#include <string.h>

const strata_pool_attribute_t strata_pool_settings[STRATA_POOL_SETTINGS] = {
    STRATA_POOL_REUSE_FOLLOW_EVENTS, STRATA_POOL_REUSE_OPPORTUNISTIC, STRATA_POOL_REUSE_INTERNAL, STRATA_POOL_RELEASE_THRESHOLD};

/* The devices are called with no lock held. So `taken` gives the joining or leaving thread exclusive use of
 * the list. */
static strata_lock_t lock = {.rank = STRATA_RANK_FACADE};
static strata_condition_t left;
static bool taken;
static strata_pool_sharer_t *sharers;

static void take(void) {
    strata_lock(&lock);
    while (taken) strata_condition_wait(&left, &lock, UINT64_MAX);
    taken = true;
    strata_unlock(&lock);
}

static void drop(void) {
    strata_lock(&lock);
    taken = false;
    strata_condition_broadcast(&left);
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

static void put_back(strata_device_t *device, const uint64_t *values) {
    for (int i = 0; i < STRATA_POOL_SETTINGS; i++) (void)strata_device_pool_set(device, NULL, strata_pool_settings[i], values[i]);
}

static strata_status_t get_all(strata_device_t *device, uint64_t *values) {
    strata_status_t status = STRATA_OK;
    for (int i = 0; i < STRATA_POOL_SETTINGS && status == STRATA_OK; i++)
        status = strata_device_pool_get(device, NULL, strata_pool_settings[i], &values[i]);
    return status;
}

static strata_status_t join(strata_pool_sharer_t *self, strata_device_t *device, const uint64_t *values) {
    uint64_t now[STRATA_POOL_SETTINGS];
    strata_status_t status = get_all(device, now);
    if (status != STRATA_OK) return status;
    status = strata_pool_set_all(device, NULL, values);
    if (status != STRATA_OK) {
        strata_error_t reason = *strata_last_error();
        put_back(device, now);
        return strata_fail_again(&reason);
    }
    const strata_pool_sharer_t *other = sharer_of(device);
    memcpy(self->before, other ? other->before : now, sizeof self->before);
    self->device = device;
    self->next = sharers;
    sharers = self;
    return STRATA_OK;
}

strata_status_t strata_default_pool_join(strata_pool_sharer_t *self, strata_device_t *device, const uint64_t *values) {
    take();
    strata_status_t status = self->device ? STRATA_OK : join(self, device, values);
    drop();
    return status;
}

void strata_default_pool_leave(strata_pool_sharer_t *self) {
    take();
    strata_pool_sharer_t **link = &sharers;
    while (*link != self) link = &(*link)->next;
    *link = self->next;
    if (!sharer_of(self->device)) put_back(self->device, self->before);
    self->device = NULL;
    drop();
}
