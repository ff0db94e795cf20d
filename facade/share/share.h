/* What the files of this room share: the way from a block to the handles that it lies in, and what was imported. */
#ifndef STRATA_FACADE_SHARE_H
#define STRATA_FACADE_SHARE_H

#include "allocation/stack/handles.h"
#include "facade/registry/facade.h"

/* The sources of a domain, those of all of its groups: begin with the domain alone. NULL after the last. */
typedef struct strata_share_walk {
    strata_domain_t *domain;
    strata_group_t *group;
    uint32_t number;
} strata_share_walk_t;
strata_layer_t *strata_share_next_source(strata_share_walk_t *walk);
/* What it can do with handles; NULL: it has none. */
const strata_handles_t *strata_share_handles(const strata_layer_t *layer);

typedef struct strata_share_block {
    strata_domain_t *domain;
    strata_layer_t *source;
    uint64_t address, size;
    uint32_t count; /* of handles */
    strata_held_t held[STRATA_SHARE_SEGMENTS];
} strata_share_block_t;

/* Holds the handles of a live block; `what` is said of a failure. */
strata_status_t strata_share_hold(strata_t handle, strata_ref_t ref, strata_hold_t hold, const char *what, uint32_t capacity,
                                  strata_share_block_t *block);

/* E_FORMAT: what it says of its sizes cannot be. */
strata_status_t strata_shared_check(const strata_shared_t *shared);

/* ---- leases of imports; while building ---- */

typedef struct strata_lease {
    struct strata_lease *next;
    uint64_t file_system, number; /* of the pipe, as the system says */
    const strata_device_t *device; /* that uses the block: each is waited for */
    uint64_t users; /* imports that there ever were */
    uint32_t imports;
    int descriptor;
} strata_lease_t;

/* The lease of a message, with one import more. E_FORMAT: it is no pipe; E_DEVICE: no descriptor is left; E_HOST_MEMORY. */
strata_status_t strata_lease_take(strata_lease_t **list, int descriptor, const strata_device_t *device, strata_lease_t **lease);
/* With the last import the copy is closed. */
void strata_lease_drop(strata_lease_t **list, strata_lease_t *lease);
void strata_leases_end(strata_lease_t **list);

/* ---- imports; while building ---- */

/* New peers of a place may use what was imported there. */
strata_status_t strata_imports_add_peers(strata_facade_t *facade, const strata_domain_t *domain);
/* How many are live. Any time. */
uint64_t strata_imports_live(strata_facade_t *facade);
/* The end of the facade: the devices are idle, or lost. */
void strata_imports_end_all(strata_facade_t *facade);

#endif
