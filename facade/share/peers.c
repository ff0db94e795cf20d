/* Gives one GPU access to another GPU's memory. */
#include "allocation/domain/layer.h"
#include "facade/registry/devices.h"
#include "facade/share/share.h"

static strata_status_t open_device(strata_facade_t *facade, uint32_t number, strata_device_t **device) {
    if (number < STRATA_FACADE_DEVICES && !facade->devices[number] && facade->every_device) {
        strata_status_t status = strata_devices_open_one(facade, number);
        if (status != STRATA_OK) return status;
    }
    if (number >= STRATA_FACADE_DEVICES || !facade->devices[number])
        return strata_fail(STRATA_E_INVALID, 0, "the strategy's devices (%s) do not include number %u", facade->strategy->devices,
                           number);
    *device = facade->devices[number];
    return STRATA_OK;
}

/* Gives the peer access to the existing sources. The domain already lists the peer. */
static strata_status_t open_sources(strata_domain_t *domain, uint32_t peer) {
    strata_share_walk_t walk = {.domain = domain};
    strata_layer_t *source;
    strata_status_t status = STRATA_OK;
    while (status == STRATA_OK && (source = strata_share_next_source(&walk)) != NULL) {
        const strata_handles_t *handles = strata_share_handles(source);
        void *pool = STRATA_LAYER_HAS(source->type, driver_pool) ? source->type->driver_pool(source) : NULL;
        if (handles) status = handles->add_peers(source);
        else if (pool) status = strata_device_pool_set_access(domain->device, pool, peer);
    }
    return status;
}

/* Adds the peer to the place's domain, or to the settings of its next domain. */
static strata_status_t open_place(strata_facade_t *facade, uint32_t device, uint32_t peer) {
    uint32_t bit = UINT32_C(1) << peer;
    strata_domain_t *domain = atomic_load(&facade->domains[STRATA_PLACE_GPU][device]);
    if (!domain) {
        facade->settings[STRATA_PLACE_GPU][device].peers |= bit;
        return STRATA_OK;
    }
    uint32_t before = atomic_fetch_or(&domain->peers, bit);
    strata_status_t status = open_sources(domain, peer);
    if (status == STRATA_OK) status = strata_imports_add_peers(facade, domain);
    if (status != STRATA_OK && !(before & bit)) atomic_fetch_and(&domain->peers, ~bit);
    return status;
}

static strata_status_t enable(strata_facade_t *facade, uint32_t number, uint32_t peer_number) {
    strata_device_t *device, *peer;
    bool can = false;
    strata_status_t status = open_device(facade, number, &device);
    if (status == STRATA_OK) status = open_device(facade, peer_number, &peer);
    if (status != STRATA_OK) return status;
    if (number == peer_number) return strata_fail(STRATA_E_INVALID, 0, "gpu:%u is not a peer of itself", number);
    status = strata_device_can_access_peer(peer, number, &can);
    if (status != STRATA_OK) return status;
    if (!can) return strata_fail(STRATA_E_UNSUPPORTED, 0, "%s:%u cannot access memory of gpu:%u", peer->name, peer_number, number);
    status = strata_device_enable_peer(peer, number);
    return status == STRATA_OK ? open_place(facade, number, peer_number) : status;
}

/* Runs while building: one peer at a time, and no group of stacks is created during the call. */
strata_status_t strata_enable_peer(strata_t handle, uint32_t device, uint32_t peer) {
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    strata_facade_begin_building(facade);
    strata_status_t status = enable(facade, device, peer);
    strata_facade_end_building(facade);
    return status;
}
