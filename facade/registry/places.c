/* The places of a facade: their devices, domains and stacks, each built at its first use. */
#include "allocation/call/blocks.h"
#include "allocation/graphs/graphs.h"
#include "allocation/report/log.h"
#include "allocation/stack/threads.h"
#include "facade/registry/devices.h"
#include "facade/registry/diagnose.h"
#include "facade/registry/plans.h"
#include "platform/host/growing.h"
#include "platform/place.h"

/* ---- building: one thread at a time, no lock held ---- */

void strata_facade_begin_building(strata_facade_t *facade) {
    strata_lock(&facade->lock);
    while (facade->building) strata_condition_wait(&facade->built, &facade->lock, UINT64_MAX);
    facade->building = true;
    strata_unlock(&facade->lock);
    strata_log_hold();
}

void strata_facade_end_building(strata_facade_t *facade) {
    strata_log_unhold();
    strata_lock(&facade->lock);
    facade->building = false;
    strata_condition_broadcast(&facade->built);
    strata_unlock(&facade->lock);
}

/* Returns the device that serves a place: its own device, or for host memory the first one that is open. */
static strata_status_t device_of(strata_facade_t *facade, strata_place_t place, strata_device_t **device) {
    uint32_t number = strata_place_device(place);
    if (strata_place_is_ownerless(strata_place_kind(place))) {
        for (number = 0; number < STRATA_FACADE_DEVICES && !facade->devices[number]; number++) {}
    }
    if (number < STRATA_FACADE_DEVICES && !facade->devices[number] && facade->every_device) {
        strata_status_t status = strata_devices_open_one(facade, number);
        if (status != STRATA_OK) return status;
    }
    if (number >= STRATA_FACADE_DEVICES || !facade->devices[number])
        return strata_fail(STRATA_E_INVALID, 0, "the strategy's devices (%s) do not include number %u", facade->strategy->devices,
                           (unsigned)strata_place_device(place));
    *device = facade->devices[number];
    return STRATA_OK;
}

void strata_facade_watch_deferred(strata_t handle, strata_place_t place, strata_deferral_t *deferral) {
    strata_facade_of(handle)->settings[strata_place_kind(place)][strata_place_device(place)].deferral = deferral;
}

static strata_status_t build_domain(strata_facade_t *facade, strata_place_t place, strata_domain_t **out) {
    strata_device_t *device = NULL;
    strata_status_t status = device_of(facade, place, &device);
    if (status != STRATA_OK) return status;
    strata_place_kind_t kind = strata_place_kind(place);
    if (kind == STRATA_PLACE_MANAGED && !device->capabilities.managed)
        return strata_fail(STRATA_E_UNSUPPORTED, 0, "%s has no managed memory", device->name);
    strata_domain_t *domain;
    status = strata_domain_create(device, place, facade->handle, strata_plans_of(facade, place),
                                  facade->directories[kind == STRATA_PLACE_HOST],
                                  &facade->settings[kind][strata_place_device(place)], &domain);
    if (status != STRATA_OK) return status;
    domain->captures = &facade->captures;
    domain->free_memory = facade->free_memory;
    domain->free_memory_context = facade;
    domain->unreported = &facade->unreported;
    domain->devices = facade->devices;
    domain->device_count = STRATA_FACADE_DEVICES;
    domain->pointers_noted = atomic_load(&facade->pointer_directory) != NULL;
    atomic_store(&facade->domains[kind][strata_place_device(place)], domain);
    *out = domain;
    return STRATA_OK;
}

strata_status_t strata_facade_domain(strata_facade_t *facade, strata_place_t place, strata_domain_t **out) {
    uint32_t kind = strata_place_kind(place), number = strata_place_device(place);
    if (kind >= STRATA_PLACE_KINDS || number >= STRATA_FACADE_DEVICES || (strata_place_is_ownerless(kind) && number != 0))
        return strata_fail(STRATA_E_INVALID, 0, "invalid place: kind %u, device %u", kind, number);
    *out = atomic_load(&facade->domains[kind][number]);
    if (*out) return STRATA_OK;
    strata_facade_begin_building(facade);
    *out = atomic_load(&facade->domains[kind][number]);
    strata_status_t status = *out ? STRATA_OK : build_domain(facade, place, out);
    strata_facade_end_building(facade);
    return status;
}

strata_stream_t strata_facade_stream_key(const strata_domain_t *domain, strata_stream_t stream) {
    if (strata_place_is_ownerless(strata_place_kind(domain->place)) || stream == STRATA_STREAM_LEGACY) return NULL;
    return stream ? stream : atomic_load(&domain->default_stream);
}

const strata_named_stream_t *strata_facade_named_stream(const strata_facade_t *facade, strata_place_t place,
                                                        strata_stream_t stream) {
    for (uint32_t i = 0; i < facade->named_stream_count; i++) {
        const strata_named_stream_t *named = &facade->named_streams[i];
        if (named->place == place && named->stream == stream) return named;
    }
    return NULL;
}

void strata_facade_forget_name(strata_facade_t *facade, strata_place_t place, strata_stream_t stream) {
    strata_facade_begin_building(facade);
    strata_named_stream_t *named = (strata_named_stream_t *)(uintptr_t)strata_facade_named_stream(facade, place, stream);
    if (named) *named = facade->named_streams[--facade->named_stream_count];
    strata_facade_end_building(facade);
}

static strata_status_t build_stack(strata_facade_t *facade, strata_domain_t *domain, uint64_t pool, strata_stream_t stream,
                                   uint64_t thread, strata_stack_t **stack) {
    const strata_named_stream_t *named = strata_facade_named_stream(facade, domain->place, stream);
    strata_stack_for_t whose = {.stream = stream, .name = named ? named->name : NULL, .thread = thread};
    strata_group_t *group;
    strata_status_t status = strata_plans_group(facade, domain, pool, whose.name, &group);
    if (status != STRATA_OK) return status;
    /* Threads end without notice, so each new stack collects those of dead threads. */
    if (thread || group->plan->threaded) strata_domain_orphan_exited_threads(domain);
    /* The peers keep a graph's memory by stream. */
    bool may = group->graph && !facade->strategy->peer;
    *stack = may ? strata_graph_pool_hand_over(group->graph, &whose) : NULL;
    return *stack ? STRATA_OK : strata_stack_create(group, &whose, stack);
}

strata_status_t strata_facade_stack_handle(strata_facade_t *facade, strata_place_t place, uint64_t pool, strata_stream_t stream,
                                           strata_stack_handle_t *handle) {
    strata_domain_t *domain;
    strata_status_t status = strata_facade_domain(facade, place, &domain);
    if (status != STRATA_OK) return status;
    strata_stream_t key = strata_facade_stream_key(domain, stream);
    uint64_t thread = key == STRATA_STREAM_PER_THREAD ? strata_threads_self() : 0;
    *handle = strata_domain_find_handle(domain, pool, key, thread);
    if (*handle) return STRATA_OK;
    strata_stack_t *built;
    strata_facade_begin_building(facade);
    *handle = strata_domain_find_handle(domain, pool, key, thread);
    if (!*handle) status = build_stack(facade, domain, pool, key, thread, &built);
    if (!*handle && status == STRATA_OK) *handle = strata_stack_handle_of(built);
    strata_facade_end_building(facade);
    return status;
}

strata_status_t strata_facade_pool_stack(strata_facade_t *facade, strata_place_t place, uint64_t pool, strata_stream_t stream,
                                         strata_stack_t **stack) {
    strata_stack_handle_t handle;
    strata_status_t status = strata_facade_stack_handle(facade, place, pool, stream, &handle);
    if (status == STRATA_OK) *stack = strata_stack_of(strata_stack_handle_number(handle));
    return status;
}

strata_status_t strata_facade_stack(strata_facade_t *facade, strata_place_t place, strata_stream_t stream, strata_stack_t **stack) {
    return strata_facade_pool_stack(facade, place, 0, stream, stack);
}

strata_domain_t *strata_facade_next_domain(strata_facade_t *facade, uint32_t *index) {
    while (*index < STRATA_PLACE_KINDS * STRATA_FACADE_DEVICES) {
        uint32_t at = (*index)++;
        strata_domain_t *domain = atomic_load(&facade->domains[at / STRATA_FACADE_DEVICES][at % STRATA_FACADE_DEVICES]);
        if (domain) return domain;
    }
    return NULL;
}

/* The shared stack is recorded last. By then all other stacks record new blocks, so blocks that they
 * added to its slab earlier are not missed. */
static void note_stacks(strata_domain_t *domain) {
    for (int shared = 0; shared < 2; shared++)
        STRATA_DOMAIN_EACH(domain, stack)
            if (stack->is_shared == (shared != 0)) strata_stack_note_pointers(stack, domain->directory);
}

/* Runs while building, so a domain that is published after this walk records its blocks from the beginning. */
strata_status_t strata_facade_note_pointers(strata_facade_t *facade) {
    strata_facade_begin_building(facade);
    strata_status_t status = strata_directory_begin(facade->directories[0]);
    if (status == STRATA_OK) status = strata_directory_begin(facade->directories[1]);
    uint32_t index = 0;
    strata_domain_t *domain;
    while (status == STRATA_OK && (domain = strata_facade_next_domain(facade, &index)) != NULL) {
        strata_lock(&domain->lock);
        domain->pointers_noted = true;
        strata_unlock(&domain->lock);
        note_stacks(domain);
    }
    if (status == STRATA_OK) atomic_store_explicit(&facade->pointer_directory, facade->directories[0], memory_order_release);
    strata_facade_end_building(facade);
    return status;
}

strata_status_t strata_facade_find(strata_t handle, strata_ref_t ref, strata_call_t *call, strata_record_t **record) {
    /* Check this first: in a child of fork() the lock of the thread list may stay held forever. */
    if (!strata_facade_of(handle)) return strata_last_error()->status;
    strata_growing_grow_if_marked();
    (void)strata_threads_self();
    strata_status_t status = strata_record_find(handle, ref, call, record);
    return status == STRATA_OK ? status : strata_diagnose_ref(handle, ref);
}
