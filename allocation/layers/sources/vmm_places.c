/* Places handles next to each other, for a cache above that uses adjacent chunks as one
 * (strata_chunks_enable_joining()).
 *
 *     base  |==A==|==B==|......|=C=|....................|  base + size
 *
 * One range of addresses is reserved at the first request. A handle takes the lowest gap (dots) that fits
 * it. So it begins where another one ends, unless it is at the start of the range. Its part becomes a gap
 * again once nothing is mapped there: a handle that the device refuses to unmap keeps its addresses. */
#include "allocation/layers/sources/vmm_state.h"

enum { PARTS = 1 << 20, DEVICES = 4 /* that the range could hold, since gaps between handles may be too small for a request */ };

typedef struct part {
    uint64_t unused; /* a free node begins with the number of the next free one */
    uint64_t address, size;
    strata_order_link_t link;
} part_t;

static part_t *part_at(const vmm_layer_t *self, uint32_t number) { return strata_node(&self->parts, number); }

strata_status_t strata_vmm_place_adjacent(strata_layer_t *base) {
    vmm_layer_t *self = (vmm_layer_t *)base;
    if (((const vmm_options_t *)base->options)->registrable)
        return strata_fail(STRATA_E_UNSUPPORTED, 0, "vmm.registrable keeps each block in one handle");
    if (self->adjacent) return STRATA_OK;
    strata_status_t status = strata_nodes_init(&self->parts, sizeof(part_t), PARTS);
    if (status != STRATA_OK) return status;
    strata_order_init(&self->parts_order, &self->parts, offsetof(part_t, link));
    self->adjacent = true;
    return STRATA_OK;
}

/* No lock is held. If two threads reserve concurrently, the later one releases its range. */
static strata_status_t reserve_room(vmm_layer_t *self) {
    uint64_t available, total, address;
    strata_status_t status = strata_domain_memory(self->base.domain, &available, &total);
    if (status != STRATA_OK) return status;
    uint64_t size = total / self->granularity * self->granularity * DEVICES;
    status = strata_vmm_reserve(&self->base, size, &address);
    if (status != STRATA_OK) return status;
    strata_vmm_lock(self);
    bool first = self->room_size == 0;
    if (first) {
        self->room = address;
        self->room_size = size;
    }
    strata_vmm_unlock(self);
    if (!first) strata_vmm_unreserve(&self->base, address, size);
    return STRATA_OK;
}

/* Returns the lowest gap that fits, or 0 if none is large enough. The lock is held. */
static uint64_t lowest_gap(vmm_layer_t *self, uint64_t size) {
    uint64_t address = self->room;
    for (uint32_t number = strata_order_from(&self->parts_order, &(strata_order_key_t){0}); number;
         number = strata_order_next(&self->parts_order, number)) {
        const part_t *part = part_at(self, number);
        if (part->address - address >= size) return address;
        address = part->address + part->size;
    }
    return self->room + self->room_size - address >= size ? address : 0;
}

strata_status_t strata_vmm_reserve_gap(vmm_layer_t *self, uint64_t size, uint64_t *address) {
    strata_vmm_lock(self);
    bool reserved = self->room_size > 0;
    strata_vmm_unlock(self);
    strata_status_t status = reserved ? STRATA_OK : reserve_room(self);
    if (status != STRATA_OK) return status;
    strata_vmm_lock(self);
    *address = lowest_gap(self, size);
    uint32_t number = *address ? strata_nodes_acquire(&self->parts) : 0;
    if (number) {
        *part_at(self, number) = (part_t){.address = *address, .size = size};
        strata_order_add(&self->parts_order, number, &(strata_order_key_t){*address, 0, 0});
    }
    strata_vmm_unlock(self);
    if (number) return STRATA_OK;
    if (*address)
        return strata_fail(STRATA_E_LIMIT, 0, "vmm: %u handles are adjacent, the maximum of one source; release idle memory",
                           self->parts.capacity - 1);
    return strata_fail(STRATA_E_NO_MEMORY, 0,
                       "vmm: the %llu bytes of addresses for adjacent handles have no gap of %llu bytes; release idle memory",
                       (unsigned long long)self->room_size, (unsigned long long)size);
}

void strata_vmm_release_gap(vmm_layer_t *self, uint64_t address) {
    strata_vmm_lock(self);
    uint32_t number = strata_order_find(&self->parts_order, &(strata_order_key_t){address, 0, 0});
    strata_order_remove(&self->parts_order, number);
    strata_nodes_release(&self->parts, number);
    strata_vmm_unlock(self);
}
