/* A world and its devices: creation, opening and closing, and the begin and end of every call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "platform/sim/graphs/sim_graph.h"

static _Atomic uint64_t serials;

strata_status_t sim_begin(sim_device_t *device, strata_device_call_t call) {
    strata_lock(&device->world->lock);
    sim_streams_submit_promised(device->world);
    strata_status_t status = sim_inject_fault(device, call);
    if (status != STRATA_OK) strata_unlock(&device->world->lock);
    return status;
}

strata_status_t sim_end(sim_device_t *device, strata_status_t status) {
    sim_callback_t *due = device->world->callbacks;
    device->world->callbacks = NULL;
    strata_unlock(&device->world->lock);
    sim_callbacks_run(due);
    return status;
}

static bool is_cost(const strata_sim_cost_t *cost) {
    return cost->fixed_ns >= 0 && cost->fixed_ns <= STRATA_SIM_COST_MAX && cost->per_mib_ns >= 0 &&
           cost->per_mib_ns <= STRATA_SIM_COST_MAX;
}

strata_status_t strata_sim_profile_check(const strata_sim_profile_t *profile) {
    uint64_t taken;
    if (!strata_is_power_of_two(profile->granule_bytes) || profile->granule_bytes < 65536 ||
        profile->granule_bytes > UINT64_C(1) << 40)
        return strata_fail(STRATA_E_INVALID, 0, "granule_bytes must be a power of two from 64 KiB to 1 TiB");
    if (profile->pack_below_bytes > profile->granule_bytes)
        return strata_fail(STRATA_E_INVALID, 0, "pack_below_bytes is more than a granule");
    if (!strata_add(profile->context_bytes, profile->foreign_bytes, &taken) || taken > profile->total_bytes)
        return strata_fail(STRATA_E_INVALID, 0, "context_bytes and foreign_bytes are more than total_bytes");
    if (!(profile->driver_lock_share >= 0 && profile->driver_lock_share <= 1))
        return strata_fail(STRATA_E_INVALID, 0, "driver_lock_share must be 0 to 1");
    if (!profile->address_bytes || profile->address_bytes > UINT64_C(1) << 52)
        return strata_fail(STRATA_E_INVALID, 0, "address_bytes must be 1 to 2^52");
#define CHECK(name, meaning)                                                                                                       \
    if (!is_cost(&profile->name)) return strata_fail(STRATA_E_INVALID, 0, #name " must cost 0 to 900 s, and 0 to 900 s a MiB");
    STRATA_SIM_COST_MAP(CHECK)
#undef CHECK
    return STRATA_OK;
}

strata_status_t strata_sim_new(const strata_sim_options_t *options, strata_sim_t **out) {
    const strata_sim_options_t none = {0};
    if (!options) options = &none;
    const strata_sim_profile_t *profile = options->profile ? options->profile : strata_sim_profile("h100");
    if (options->devices > SIM_DEVICES_MAX)
        return strata_fail(STRATA_E_INVALID, 0, "a simulated world has at most %d devices", SIM_DEVICES_MAX);
    strata_status_t status = strata_sim_profile_check(profile);
    if (status != STRATA_OK) return status;
    strata_sim_t *world = calloc(1, sizeof *world);
    if (!world) return sim_no_host_memory();
    strata_lock_init(&world->lock, STRATA_RANK_DEVICE, NULL);
    world->profile = *profile;
    world->serial = atomic_fetch_add(&serials, 1) + 1;
    world->capacity = options->capacity ? options->capacity
                                        : profile->total_bytes - profile->context_bytes - profile->foreign_bytes;
    world->contents = options->contents;
    world->host_next = options->host_in_order ? SIM_HOST_BEGIN : 0;
    world->host_jitter = options->host_jitter;
    world->devices = options->devices ? options->devices : 1;
    world->file = -1;
    world->process = (uint64_t)getpid();
    sim_threads_init(world);
    *out = world;
    return STRATA_OK;
}

static void world_free(strata_sim_t *world) {
    sim_threads_end(world);
    if (world->file >= 0) close(world->file);
    strata_lock_destroy(&world->lock);
    free(world);
}

void strata_sim_drop(strata_sim_t *world) {
    if (!world) return;
    strata_lock(&world->lock);
    world->dropped = true;
    bool last = world->open == 0;
    strata_unlock(&world->lock);
    if (last) world_free(world);
}

uint32_t strata_sim_devices(const strata_sim_t *world) { return world->devices; }

static strata_device_capabilities_t capabilities(const strata_sim_t *world) {
    return (strata_device_capabilities_t){.alignment = 256,
                                          .granularity = world->profile.granule_bytes,
                                          .managed = true,
                                          .concurrent_managed = true,
                                          .pools = true,
                                          .virtual_memory = world->profile.virtual_memory,
                                          .capture = true,
                                          .captures_known = true,
                                          .peers = world->devices > 1,
                                          .share = true,
                                          .stream_ids = true,
                                          .work = true,
                                          .contents = world->contents,
                                          .simulated = true,
                                          .modelled_pools = true,
                                          .modelled_costs = world->profile.modelled,
                                          .host_nodes = 3};
}

static void device_free(sim_device_t *device) {
    for (int kind = 0; kind < SIM_HANDLE_KINDS; kind++) {
        free(device->slots[kind].items);
        free(device->slots[kind].free);
    }
    free(device);
}

static sim_device_t *device_new(strata_sim_t *world, uint32_t ordinal) {
    sim_device_t *device = calloc(1, sizeof *device);
    if (!device) return NULL;
    device->world = world;
    sim_clock_init(device);
    strata_device_init(&device->base, &sim_operations, ordinal, &device->clock.clock);
    device->base.capabilities = capabilities(world);
    device->base.capabilities.near_node = ordinal & 1;
    snprintf(device->base.name, sizeof device->base.name, "sim:%s", world->profile.name);
    device->base.lock_observer = &world->observer.observer;
    device->capacity = world->capacity;
    device->next_address = SIM_BASE + ordinal * SIM_DEVICE_SPAN;
    sim_stream_init(device, &device->legacy, STRATA_STREAM_BLOCKING);
    device->legacy.legacy = true;
    return device;
}

strata_status_t strata_sim_open(strata_sim_t *world, uint32_t ordinal, strata_device_t **out) {
    if (ordinal >= world->devices)
        return strata_fail(STRATA_E_NO_DEVICE, SIM_CU_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE: this world has %u devices",
                           world->devices);
    sim_device_t *device = device_new(world, ordinal);
    if (!device) return sim_no_host_memory();
    strata_lock(&world->lock);
    strata_status_t status = STRATA_OK;
    if (world->device[ordinal]) status = strata_fail(STRATA_E_BUSY, 0, "simulated device %u is open already", ordinal);
    else status = sim_pools_init(device);
    if (status == STRATA_OK) {
        world->device[ordinal] = device;
        world->open++;
    }
    strata_unlock(&world->lock);
    if (status != STRATA_OK) {
        device_free(device);
        return status;
    }
    *out = &device->base;
    return STRATA_OK;
}

static void op_close(strata_device_t *base) {
    sim_device_t *device = sim_of(base);
    strata_sim_t *world = device->world;
    strata_lock(&world->lock);
    sim_streams_submit_promised(world);
    sim_captures_end(device);
    sim_pools_end(device);
    sim_memory_end(device);
    sim_vmm_end(device);
    sim_streams_end(device);
    world->device[device->base.ordinal] = NULL;
    bool last = --world->open == 0 && world->dropped;
    sim_end(device, STRATA_OK);
    device_free(device);
    if (last) world_free(world);
}

void strata_sim_figures(strata_device_t *base, strata_sim_figures_t *figures) {
    sim_device_t *device = sim_of(base);
    strata_lock(&device->world->lock);
    figures->device_call_ns = device->device_call_ns;
    figures->pool_return_ns = device->pool_return_ns;
    figures->stall_ns = atomic_load_explicit(&device->stall_ns, memory_order_relaxed);
    figures->used_bytes = sim_used(device);
    figures->peak_used_bytes = device->peak_used;
    figures->oversubscribed_bytes = device->peak_oversubscribed;
    strata_unlock(&device->world->lock);
}

const strata_device_operations_t sim_operations = {.malloc = sim_op_malloc,
                                                   .free = sim_op_free,
                                                   .host_alloc = sim_op_host_alloc,
                                                   .host_free = sim_op_host_free,
                                                   .mem_info = sim_op_mem_info,
                                                   .malloc_async = sim_op_malloc_async,
                                                   .free_async = sim_op_free_async,
                                                   .pool_create = sim_op_pool_create,
                                                   .pool_destroy = sim_op_pool_destroy,
                                                   .pool_default = sim_op_pool_default,
                                                   .pool_set = sim_op_pool_set,
                                                   .pool_get = sim_op_pool_get,
                                                   .pool_trim = sim_op_pool_trim,
                                                   .pool_set_access = sim_op_pool_set_access,
                                                   .reserve = sim_op_reserve,
                                                   .unreserve = sim_op_unreserve,
                                                   .create = sim_op_create,
                                                   .release = sim_op_release,
                                                   .map = sim_op_map,
                                                   .unmap = sim_op_unmap,
                                                   .set_access = sim_op_set_access,
                                                   .stream_create = sim_op_stream_create,
                                                   .stream_destroy = sim_op_stream_destroy,
                                                   .stream_query = sim_op_stream_query,
                                                   .stream_synchronise = sim_op_stream_synchronise,
                                                   .stream_wait = sim_op_stream_wait,
                                                   .stream_id = sim_op_stream_id,
                                                   .synchronise = sim_op_synchronise,
                                                   .event_create = sim_op_event_create,
                                                   .event_destroy = sim_op_event_destroy,
                                                   .event_record = sim_op_event_record,
                                                   .event_query = sim_op_event_query,
                                                   .event_synchronise = sim_op_event_synchronise,
                                                   .event_ready_at = sim_op_event_ready_at,
                                                   .event_is_captured = sim_op_event_is_captured,
                                                   .fill = sim_op_fill,
                                                   .copy = sim_op_copy,
                                                   .host_view = sim_op_host_view,
                                                   .prefetch = sim_op_prefetch,
                                                   .advise = sim_op_advise,
                                                   .capture_begin = sim_op_capture_begin,
                                                   .capture_end = sim_op_capture_end,
                                                   .capture_status = sim_op_capture_status,
                                                   .capture_follows = sim_op_capture_follows,
                                                   .graph_on_destroy = sim_op_graph_on_destroy,
                                                   .graph_launch = sim_op_graph_launch,
                                                   .graph_destroy = sim_op_graph_destroy,
                                                   .can_access_peer = sim_op_can_access_peer,
                                                   .enable_peer = sim_op_enable_peer,
                                                   .export_memory = sim_op_export_memory,
                                                   .import_memory = sim_op_import_memory,
                                                   .work = sim_op_work,
                                                   .close = op_close};
