/* Counts, by kind, the resources that a device gave out and did not get back. At the end of a program
 * these are its leaks. */
#include <inttypes.h>
#include <stdio.h>

#include "platform/sim/world/sim_internal.h"

static void count_regions(const sim_device_t *device, strata_sim_held_t *held) {
    const sim_tree_t *regions = &device->world->regions;
    for (sim_node_t *node = sim_tree_ceiling(regions, 0, 0); node; node = sim_tree_next(regions, node)) {
        const sim_region_t *region = (const sim_region_t *)node;
        if (region->device != device) continue;
        if (region->kind == SIM_REGION_PINNED) held->pinned_bytes += region->size;
        if (region->kind == SIM_REGION_HOST) held->host_bytes += region->size;
    }
}

static uint64_t handles_of(const sim_device_t *device, sim_handle_kind_t kind) {
    return device->slots[kind].count - device->slots[kind].free_count;
}

void strata_sim_held(strata_device_t *base, strata_sim_held_t *held) {
    const sim_device_t *device = sim_of(base);
    strata_lock(&device->world->lock);
    *held = (strata_sim_held_t){
        .device_bytes = sim_used(device),
        .address_bytes = device->reserved_addresses,
        .mappings = device->mappings,
        .handles = handles_of(device, SIM_PHYSICAL),
        .events = handles_of(device, SIM_EVENT),
        .pools = handles_of(device, SIM_POOL) - (device->default_pool != NULL),
        .graphs = handles_of(device, SIM_GRAPH),
    };
    count_regions(device, held);
    strata_unlock(&device->world->lock);
}

void strata_sim_held_text(const strata_sim_held_t *held, char *text, size_t room) {
    const struct {
        const char *text;
        uint64_t count;
    } rows[] = {
#define HELD_ROW(member, words) {words, held->member},
        STRATA_SIM_HELD_MAP(HELD_ROW)
#undef HELD_ROW
    };
    size_t length = 0;
    *text = '\0';
    for (size_t i = 0; i < sizeof rows / sizeof *rows && length < room; i++)
        if (rows[i].count)
            length += (size_t)snprintf(text + length, room - length, "%s%" PRIu64 " %s", length ? ", " : "", rows[i].count,
                                       rows[i].text);
}
