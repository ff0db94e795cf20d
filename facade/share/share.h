/* Shares memory with other processes, peers and hardware. These are the shared parts: from a block to its
 * handles, and the imports. */
#ifndef STRATA_FACADE_SHARE_H
#define STRATA_FACADE_SHARE_H

#include "allocation/stack/handles.h"
#include "facade/registry/facade.h"

/* A walk over the sources of a domain, in all of its groups. Begin with only the domain set. Returns NULL
 * after the last. */
typedef struct strata_share_walk {
    strata_domain_t *domain;
    strata_group_t *group;
    uint32_t number;
} strata_share_walk_t;
strata_layer_t *strata_share_next_source(strata_share_walk_t *walk);
/* Returns the layer's functions for handles, or NULL if it has none. */
const strata_handles_t *strata_share_handles(const strata_layer_t *layer);

typedef struct strata_share_block {
    strata_domain_t *domain;
    strata_layer_t *source;
    uint64_t address, size;
    uint32_t count; /* of handles */
    strata_held_t held[STRATA_SHARE_SEGMENTS];
} strata_share_block_t;

/* Holds the handles of a live block. `what` is the function that errors name. */
strata_status_t strata_share_hold(strata_t handle, strata_ref_t ref, strata_hold_t hold, const char *what, uint32_t capacity,
                                  strata_share_block_t *block);

/* Returns E_FORMAT if the sizes in the message are impossible. */
strata_status_t strata_shared_check(const strata_shared_t *shared);

/* ---- leases of imports; call these while building ---- */

typedef struct strata_lease {
    struct strata_lease *next;
    uint64_t file_system, number; /* of the pipe, from the system */
    const strata_device_t *device; /* a device that uses the block; each is waited for */
    uint64_t users; /* count of all imports so far */
    uint32_t imports;
    int descriptor;
} strata_lease_t;

/* Returns the lease of a message, with one more import. Returns E_FORMAT if it is no pipe, E_DEVICE if no
 * descriptor is left, or E_HOST_MEMORY. */
strata_status_t strata_lease_acquire(strata_lease_t **list, int descriptor, const strata_device_t *device, strata_lease_t **lease);
/* Ends one import of a lease; the last one closes the copy. */
void strata_lease_release(strata_lease_t **list, strata_lease_t *lease);
void strata_leases_end(strata_lease_t **list);

/* ---- imports; call these while building ---- */

/* Gives new peers of a place access to its imports. */
strata_status_t strata_imports_add_peers(strata_facade_t *facade, const strata_domain_t *domain);
/* Returns the number of live imports. It may be called at any time. */
uint64_t strata_imports_live(strata_facade_t *facade);
/* Ends all imports when the facade closes. The devices must be idle or lost. */
void strata_imports_end_all(strata_facade_t *facade);

#endif
