/* Imports memory of other processes.
 *
 *     import -> view   |--segment--|--segment--|   a range of addresses
 *
 * A *segment* is a handle from outside; it is imported once. A *view* is a range of addresses that maps a
 * row of segments, one after the other. An *import* is a block in a view. A new block is first looked up
 * in the existing views, so blocks with the same segments share addresses too. If the device fails to
 * release something, it remains without users, and the next end tries again.
 *
 * Everything runs while building: one thread at a time, with no lock held. */
#include <string.h>

#include "allocation/tables/nodes.h"
#include "facade/share/share.h"
#include "platform/arguments.h"
#include "platform/host/host_memory.h"

enum { IMPORTS = 1 << 20, NUMBER_BITS = 20 };

typedef struct segment {
    struct segment *next;
    uint64_t owner[2], sender, number, size;
    strata_device_t *device;
    strata_physical_t physical; /* 0 if ended */
    uint32_t views; /* number of current and planned mappings */
} segment_t;

typedef struct view {
    struct view *next;
    strata_device_t *device;
    uint64_t base, size; /* base is 0 without addresses */
    uint64_t mapped; /* bytes, from the base on */
    uint64_t users; /* count of all imports so far */
    uint32_t imports, count;
    segment_t *segments[];
} view_t;

typedef struct import {
    uint64_t unused; /* a free node begins with the number of the next free one */
    uint64_t id; /* 0 if ended */
    view_t *view;
    strata_lease_t *lease;
} import_t;

struct strata_imports {
    strata_nodes_t nodes;
    segment_t *segments;
    view_t *views;
    strata_lease_t *leases;
    uint64_t count; /* of all imports so far */
    _Atomic uint64_t live;
};

static bool is_released(strata_status_t status) { return status == STRATA_OK || status == STRATA_E_SHUTDOWN; }

static strata_status_t table_of(strata_facade_t *facade, strata_imports_t **imports) {
    *imports = facade->imports;
    if (*imports) return STRATA_OK;
    strata_imports_t *made = strata_host_new(1, sizeof *made);
    if (!made) return STRATA_E_HOST_MEMORY;
    strata_status_t status = strata_nodes_init(&made->nodes, sizeof(import_t), IMPORTS);
    if (status != STRATA_OK) {
        strata_host_delete(made);
        return status;
    }
    atomic_store(&facade->imports, made);
    *imports = made;
    return STRATA_OK;
}

/* ---- segments ---- */

static bool is_named(const segment_t *segment, const strata_shared_t *shared, uint32_t i, const strata_device_t *device) {
    return segment->physical && segment->device == device && segment->number == shared->segments[i].number &&
           segment->sender == shared->sender && memcmp(segment->owner, shared->owner, sizeof segment->owner) == 0;
}

static strata_status_t import_segment(strata_imports_t *self, strata_device_t *device, const strata_shared_t *shared, uint32_t i,
                                      segment_t **segment) {
    segment_t *made = strata_host_new(1, sizeof *made);
    if (!made) return STRATA_E_HOST_MEMORY;
    *made = (segment_t){.next = self->segments,
                        .sender = shared->sender,
                        .number = shared->segments[i].number,
                        .size = shared->segments[i].size,
                        .device = device};
    memcpy(made->owner, shared->owner, sizeof made->owner);
    strata_status_t status = strata_device_import_memory(device, shared->descriptors[i], &made->physical);
    if (status != STRATA_OK) {
        strata_host_delete(made);
        return status;
    }
    *segment = self->segments = made;
    return STRATA_OK;
}

/* Returns the segment that the message names, with one more user. */
static strata_status_t use_segment(strata_imports_t *self, strata_device_t *device, const strata_shared_t *shared, uint32_t i,
                                   segment_t **segment) {
    strata_status_t status = STRATA_OK;
    *segment = self->segments;
    while (*segment && !is_named(*segment, shared, i, device)) *segment = (*segment)->next;
    if (*segment && (*segment)->size != shared->segments[i].size)
        return strata_fail(STRATA_E_FORMAT, 0, "shared memory: a segment had %llu bytes before, and now has %llu",
                           (unsigned long long)(*segment)->size, (unsigned long long)shared->segments[i].size);
    if (!*segment) status = import_segment(self, device, shared, i, segment);
    if (status == STRATA_OK) (*segment)->views++;
    return status;
}

/* Releases segments without users. Those that the device fails to release stay in the list. */
static void sweep_segments(strata_imports_t *self) {
    for (segment_t **at = &self->segments; *at;) {
        segment_t *segment = *at;
        if (segment->views == 0 && is_released(strata_device_release(segment->device, segment->physical))) {
            *at = segment->next;
            strata_host_delete(segment);
        } else {
            at = &segment->next;
        }
    }
}

/* ---- views ---- */

/* Returns the offset of the row in a view, or UINT64_MAX if it is not mapped there. */
static uint64_t place_in(const view_t *view, segment_t *const *row, uint32_t count) {
    uint64_t at = 0;
    for (uint32_t i = 0; view->mapped == view->size && i + count <= view->count; at += view->segments[i++]->size)
        if (memcmp(&view->segments[i], row, count * sizeof *row) == 0) return at;
    return UINT64_MAX;
}

static view_t *find_view(const strata_imports_t *self, segment_t *const *row, uint32_t count, uint64_t *at) {
    for (view_t *view = self->views; view; view = view->next)
        if ((*at = place_in(view, row, count)) != UINT64_MAX) return view;
    return NULL;
}

static strata_status_t give_access(const view_t *view, uint64_t at, uint64_t size, uint32_t mask) {
    uint32_t peers[STRATA_FACADE_DEVICES], count = 0;
    for (uint32_t i = 0; i < STRATA_FACADE_DEVICES; i++)
        if (mask >> i & 1) peers[count++] = i;
    return strata_device_set_access(view->device, view->base + at, size, count ? peers : NULL, count);
}

static strata_status_t map_all(view_t *view, uint32_t peers) {
    strata_status_t status = strata_device_reserve(view->device, view->size, 0, &view->base);
    for (uint32_t i = 0; i < view->count && status == STRATA_OK; i++) {
        const segment_t *segment = view->segments[i];
        uint64_t at = view->mapped;
        status = strata_device_map(view->device, view->base + at, segment->size, segment->physical);
        if (status != STRATA_OK) break;
        view->mapped += segment->size;
        status = give_access(view, at, segment->size, peers);
    }
    return status;
}

/* Returns true if nothing remains of the view except the segments, which lose one user each. */
static bool end_view(view_t *view) {
    if (view->mapped && is_released(strata_device_unmap(view->device, view->base, view->mapped))) view->mapped = 0;
    if (view->mapped == 0 && view->base && is_released(strata_device_unreserve(view->device, view->base, view->size)))
        view->base = 0;
    if (view->mapped || view->base) return false;
    for (uint32_t i = 0; i < view->count; i++) view->segments[i]->views--;
    return true;
}

/* Ends unused views and segments. */
static void sweep(strata_imports_t *self) {
    for (view_t **at = &self->views; *at;) {
        view_t *view = *at;
        if (view->imports == 0 && end_view(view)) {
            *at = view->next;
            strata_host_delete(view);
        } else {
            at = &view->next;
        }
    }
    sweep_segments(self);
}

/* Makes a view, which becomes a user of each segment. After a failure it stays in the list until the next sweep. */
static strata_status_t make_view(strata_imports_t *self, const strata_domain_t *domain, segment_t *const *row, uint32_t count,
                                 view_t **view) {
    view_t *made = strata_host_new(1, sizeof *made + count * sizeof *row);
    if (!made) return STRATA_E_HOST_MEMORY;
    *made = (view_t){.next = self->views, .device = domain->device, .count = count};
    memcpy(made->segments, row, count * sizeof *row);
    for (uint32_t i = 0; i < count; i++) {
        made->size += row[i]->size;
        row[i]->views++;
    }
    *view = self->views = made;
    return map_all(made, atomic_load(&domain->peers));
}

/* ---- imports ---- */

static strata_status_t add_import(strata_imports_t *self, view_t *view, strata_lease_t *lease, uint64_t *id) {
    uint32_t number = strata_nodes_acquire(&self->nodes);
    if (number == 0)
        return strata_fail(STRATA_E_LIMIT, 0, "strata_import: %llu imports are live, the maximum",
                           (unsigned long long)atomic_load(&self->live));
    import_t *import = strata_node(&self->nodes, number);
    *import = (import_t){.id = ++self->count << NUMBER_BITS | number, .view = view, .lease = lease};
    view->imports++;
    view->users++;
    atomic_fetch_add(&self->live, 1);
    *id = import->id;
    return STRATA_OK;
}

static strata_status_t import_row(strata_imports_t *self, const strata_domain_t *domain, const strata_shared_t *shared,
                                  segment_t **row, strata_lease_t *lease, strata_imported_t *imported) {
    uint64_t at = 0, id = 0;
    view_t *view = find_view(self, row, shared->count, &at);
    strata_status_t status = STRATA_OK;
    if (!view) {
        at = 0;
        status = make_view(self, domain, row, shared->count, &view);
    }
    if (status == STRATA_OK) status = add_import(self, view, lease, &id);
    if (status != STRATA_OK) return status;
    *imported = (strata_imported_t){(void *)(uintptr_t)(view->base + at + shared->offset), (size_t)shared->size, id};
    return STRATA_OK;
}

/* The row is a user of its segments during the import, so that no sweep ends them. */
static strata_status_t import(strata_facade_t *facade, const strata_domain_t *domain, const strata_shared_t *shared,
                              strata_imported_t *imported) {
    strata_imports_t *self;
    segment_t *row[STRATA_SHARE_SEGMENTS];
    uint32_t count = 0;
    strata_lease_t *lease;
    strata_status_t status = table_of(facade, &self);
    if (status == STRATA_OK) status = strata_lease_acquire(&self->leases, shared->lease, domain->device, &lease);
    if (status != STRATA_OK) return status;
    while (count < shared->count && status == STRATA_OK) {
        status = use_segment(self, domain->device, shared, count, &row[count]);
        count += status == STRATA_OK;
    }
    if (status == STRATA_OK) status = import_row(self, domain, shared, row, lease, imported);
    for (uint32_t i = 0; i < count; i++) row[i]->views--;
    if (status == STRATA_OK) return STRATA_OK;
    const strata_error_t reason = *strata_last_error();
    sweep(self);
    strata_lease_release(&self->leases, lease);
    return strata_fail_again(&reason);
}

static strata_status_t check(const strata_domain_t *domain, const strata_shared_t *shared) {
    const strata_device_capabilities_t *can = &domain->device->capabilities;
    if (!can->share || !can->virtual_memory)
        return strata_fail(STRATA_E_UNSUPPORTED, 0, "strata_import: %s cannot map memory of other processes", domain->device->name);
    for (uint32_t i = 0; i < shared->count; i++)
        if (shared->segments[i].size % can->granularity != 0)
            return strata_fail(STRATA_E_FORMAT, 0, "shared memory: no handle of %s has %llu bytes", domain->device->name,
                               (unsigned long long)shared->segments[i].size);
    return STRATA_OK;
}

strata_status_t strata_import(strata_t handle, strata_place_t place, const strata_shared_t *shared, strata_imported_t *imported) {
    STRATA_REFUSE_NULL(shared);
    STRATA_REFUSE_NULL(imported);
    strata_facade_t *facade = strata_facade_of(handle);
    strata_domain_t *domain;
    if (!facade) return strata_last_error()->status;
    if (strata_place_kind(place) != STRATA_PLACE_GPU)
        return strata_fail(STRATA_E_UNSUPPORTED, 0, "strata_import: memory of other processes can be mapped only in gpu places");
    strata_status_t status = strata_facade_domain(facade, place, &domain);
    if (status == STRATA_OK) status = strata_shared_check(shared);
    if (status == STRATA_OK) status = check(domain, shared);
    if (status != STRATA_OK) return status;
    strata_facade_begin_building(facade);
    status = import(facade, domain, shared, imported);
    strata_facade_end_building(facade);
    return status;
}

/* ---- ends ---- */

static uint32_t number_of(uint64_t id) { return (uint32_t)id & ((UINT32_C(1) << NUMBER_BITS) - 1); }

static import_t *find_import(const strata_facade_t *facade, uint64_t id) {
    const strata_imports_t *self = facade->imports;
    uint32_t number = number_of(id);
    import_t *import = self && id && number < self->nodes.used ? strata_node(&self->nodes, number) : NULL;
    return import && import->id == id ? import : NULL;
}

static void end_import(strata_imports_t *self, import_t *import) {
    uint32_t number = number_of(import->id);
    import->view->imports--;
    import->id = 0;
    strata_lease_t *lease = import->lease;
    strata_nodes_release(&self->nodes, number);
    atomic_fetch_sub(&self->live, 1);
    sweep(self);
    strata_lease_release(&self->leases, lease);
}

/* Ends an import. The last import of a block or a view ends only after a wait for the device, which runs
 * outside building. `waited` is the count of imports that both had had before that wait; if it has
 * changed since, the caller waits again. */
static strata_status_t try_end(strata_facade_t *facade, uint64_t id, uint64_t *waited, strata_device_t **device) {
    import_t *found = find_import(facade, id);
    if (!found) return strata_fail(STRATA_E_STALE, 0, "strata_import_end: %#llx is not a live import", (unsigned long long)id);
    bool is_last = found->view->imports == 1 || found->lease->imports == 1;
    uint64_t users = found->view->users + found->lease->users;
    if (is_last && *waited != users) {
        *waited = users;
        *device = found->view->device;
        return STRATA_E_NOT_READY;
    }
    end_import(facade->imports, found);
    return STRATA_OK;
}

static bool is_captured(strata_facade_t *facade, const strata_device_t *device) {
    strata_domain_t *domain;
    if (strata_facade_domain(facade, strata_gpu(device->ordinal), &domain) != STRATA_OK) return false;
    return !strata_domain_wait_for_own(domain) && strata_last_error()->status == STRATA_E_CAPTURE;
}

strata_status_t strata_import_end(strata_t handle, uint64_t id) {
    strata_facade_t *facade = strata_facade_of(handle);
    strata_status_t status = STRATA_E_NOT_READY;
    uint64_t waited = 0;
    if (!facade) return strata_last_error()->status;
    while (status == STRATA_E_NOT_READY) {
        strata_device_t *device = NULL;
        strata_facade_begin_building(facade);
        status = try_end(facade, id, &waited, &device);
        strata_facade_end_building(facade);
        if (status == STRATA_E_NOT_READY && is_captured(facade, device)) return STRATA_E_CAPTURE;
    }
    return status;
}

uint64_t strata_imports_live(strata_facade_t *facade) {
    strata_imports_t *self = facade->imports;
    return self ? atomic_load(&self->live) : 0;
}

strata_status_t strata_imports_add_peers(strata_facade_t *facade, const strata_domain_t *domain) {
    strata_imports_t *self = facade->imports;
    strata_status_t status = STRATA_OK;
    for (view_t *view = self ? self->views : NULL; view && status == STRATA_OK; view = view->next)
        if (view->device == domain->device && view->mapped)
            status = give_access(view, 0, view->mapped, atomic_load(&domain->peers));
    return status;
}

void strata_imports_end_all(strata_facade_t *facade) {
    strata_imports_t *self = facade->imports;
    if (!self) return;
    for (view_t *view = self->views; view; view = view->next) view->imports = 0;
    sweep(self);
    strata_leases_end(&self->leases);
    if (self->views || self->segments) sweep(self);
    for (view_t *view = self->views, *next; view; view = next) {
        next = view->next;
        strata_host_delete(view);
    }
    for (segment_t *segment = self->segments, *next; segment; segment = next) {
        next = segment->next;
        strata_host_delete(segment);
    }
    strata_nodes_destroy(&self->nodes);
    strata_host_delete(self);
    atomic_store(&facade->imports, NULL);
}
