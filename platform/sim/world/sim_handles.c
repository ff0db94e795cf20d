/* Handles: kind (4 bits), world (20), device (8), slot (28), 4 bits of 0. Such a value is never 0, 1 or 2. */
#include <stdlib.h>

#include "platform/sim/world/sim_internal.h"

#define SLOTS_MAX (UINT32_C(1) << 28)

static const char *const kind_names[SIM_HANDLE_KINDS] = {"stream", "event", "physical handle", "pool", "graph"};

static uint64_t encode(const sim_device_t *device, sim_handle_kind_t kind, uint32_t slot) {
    return ((uint64_t)kind + 1) << 60 | (device->world->serial & 0xfffff) << 40 | (uint64_t)device->base.ordinal << 32 |
           (uint64_t)slot << 4;
}

static bool grow(sim_slots_t *slots) {
    uint32_t room = slots->room ? slots->room * 2 : 64;
    if (room > SLOTS_MAX) return false;
    void **items = realloc(slots->items, room * sizeof *items);
    if (!items) return false;
    slots->items = items;
    uint32_t *list = realloc(slots->free, room * sizeof *list);
    if (!list) return false;
    slots->free = list;
    slots->room = room;
    return true;
}

bool sim_handle_new(sim_device_t *device, sim_handle_kind_t kind, void *item, uint64_t *handle) {
    sim_slots_t *slots = &device->slots[kind];
    if (!slots->free_count) {
        if (slots->count == slots->room && !grow(slots)) return false;
        slots->free[slots->free_count++] = slots->count++;
    }
    uint32_t slot = slots->free[--slots->free_count];
    slots->items[slot] = item;
    *handle = encode(device, kind, slot);
    return true;
}

static uint32_t slot_of(uint64_t handle) { return (uint32_t)(handle >> 4) & (SLOTS_MAX - 1); }

void *sim_handle_find(sim_device_t *device, sim_handle_kind_t kind, uint64_t handle, strata_status_t dead) {
    const sim_slots_t *slots = &device->slots[kind];
    uint32_t slot = slot_of(handle);
    if (handle != encode(device, kind, slot)) {
        strata_fail(STRATA_E_DEVICE, SIM_CU_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE: 0x%llx is not a valid %s of %s:%u",
                    (unsigned long long)handle, kind_names[kind], device->base.name, device->base.ordinal);
        return NULL;
    }
    if (slot >= slots->count || !slots->items[slot]) {
        strata_fail(dead, SIM_CU_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE: %s 0x%llx no longer exists", kind_names[kind],
                    (unsigned long long)handle);
        return NULL;
    }
    return slots->items[slot];
}

sim_device_t *sim_handle_owner(strata_sim_t *world, uint64_t handle) {
    uint32_t ordinal = (uint32_t)(handle >> 32) & 0xff;
    return ordinal < world->devices ? world->device[ordinal] : NULL;
}

void sim_handle_drop(sim_device_t *device, sim_handle_kind_t kind, uint64_t handle) {
    sim_slots_t *slots = &device->slots[kind];
    uint32_t slot = slot_of(handle);
    slots->items[slot] = NULL;
    slots->free[slots->free_count++] = slot;
}
