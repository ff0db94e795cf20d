#include "doors/common/door.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <strings.h>

#include "doors/common/unordered.h"
#include "facade/registry/facade.h"
#include "facade/serve/slow_path.h"
#include "platform/host/host_memory.h"
#include "platform/place.h"

struct strata_door {
    strata_t facade;
    pthread_mutex_t mutex; /* held while a thread makes an unordered place */
    strata_unordered_t *_Atomic places[STRATA_PLACE_KINDS][STRATA_FACADE_DEVICES];
};

strata_t strata_door_facade(const strata_door_t *door) { return door->facade; }

/* ---- open and close ---- */

bool strata_door_is_bypassed(void) {
    static const char *const falsy[] = {"", "0", "false", "no", "off"};
    const char *value = getenv("STRATA_BYPASS");
    for (size_t i = 0; value && i < sizeof falsy / sizeof *falsy; i++)
        if (strcasecmp(value, falsy[i]) == 0) return false;
    return value != NULL;
}

static bool is_host(strata_place_t place) { return strata_place_is_ownerless(strata_place_kind(place)); }

static strata_unordered_t *unordered_at(strata_door_t *door, strata_place_t place) {
    uint32_t device = strata_place_device(place);
    return device < STRATA_FACADE_DEVICES ? atomic_load(&door->places[strata_place_kind(place)][device]) : NULL;
}

/* Completes the pending frees of all memory of the place's device, or of the host. Returns the bytes freed. */
static uint64_t drain(strata_door_t *door, strata_place_t place) {
    uint64_t freed = 0, bytes;
    for (uint32_t kind = 0; kind < STRATA_PLACE_KINDS; kind++) {
        strata_place_t other = strata_place((strata_place_kind_t)kind, is_host(place) ? 0 : strata_place_device(place));
        strata_unordered_t *unordered = is_host(other) == is_host(place) ? unordered_at(door, other) : NULL;
        if (unordered && strata_unordered_drain(unordered, &bytes) == STRATA_OK) freed += bytes;
    }
    return freed;
}

static uint64_t out_of_memory(strata_place_t place, size_t size, void *door) {
    (void)size;
    return drain(door, place);
}

static bool is_simulated(strata_t handle) {
    strata_facade_t *facade = strata_facade_of(handle);
    return facade && facade->world;
}

strata_status_t strata_door_open(const strata_open_options_t *options, bool simulated, strata_door_t **door) {
    strata_door_t *made = strata_host_new(1, sizeof *made);
    if (!made) return STRATA_E_HOST_MEMORY;
    strata_status_t status = strata_open(options, &made->facade);
    bool opened = status == STRATA_OK;
    if (opened && !simulated && is_simulated(made->facade))
        status = strata_fail(STRATA_E_UNSUPPORTED, 0,
                             "the strategy's devices are simulated: real kernels must not get their addresses");
    if (status == STRATA_OK) status = strata_add_free_memory_callback(made->facade, out_of_memory, made, NULL);
    if (status == STRATA_OK) {
        pthread_mutex_init(&made->mutex, NULL);
        *door = made;
        return STRATA_OK;
    }
    strata_error_t why = *strata_last_error();
    if (opened) (void)strata_close(made->facade, STRATA_CLOSE_FORCE, NULL, NULL);
    strata_host_delete(made);
    return strata_fail(why.status, why.device_code, "%s", why.text);
}

strata_status_t strata_door_close(strata_door_t *door) {
    strata_status_t status = strata_close(door->facade, STRATA_CLOSE_FORCE, NULL, NULL);
    for (uint32_t kind = 0; kind < STRATA_PLACE_KINDS; kind++)
        for (uint32_t i = 0; i < STRATA_FACADE_DEVICES; i++) strata_unordered_delete(atomic_load(&door->places[kind][i]));
    pthread_mutex_destroy(&door->mutex);
    strata_host_delete(door);
    return status;
}

/* ---- requests ---- */

static strata_status_t unordered_of(strata_door_t *door, strata_place_t place, strata_unordered_t **unordered) {
    if (strata_place_device(place) >= STRATA_FACADE_DEVICES || strata_place_kind(place) >= STRATA_PLACE_KINDS)
        return strata_fail(STRATA_E_LIMIT, 0, "a door serves at most %d devices", STRATA_FACADE_DEVICES);
    *unordered = unordered_at(door, place);
    if (*unordered) return STRATA_OK;
    strata_unordered_t *made = NULL;
    pthread_mutex_lock(&door->mutex);
    *unordered = unordered_at(door, place);
    strata_status_t status = *unordered ? STRATA_OK : strata_unordered_new(door->facade, place, &made);
    if (made) {
        *unordered = made;
        atomic_store(&door->places[strata_place_kind(place)][strata_place_device(place)], made);
    }
    pthread_mutex_unlock(&door->mutex);
    return status;
}

strata_status_t strata_door_allocate(strata_door_t *door, strata_place_t place, size_t size, void **address) {
    strata_unordered_t *unordered = NULL;
    strata_block_t block;
    strata_status_t status = unordered_of(door, place, &unordered);
    if (status == STRATA_OK) status = strata_unordered_allocate(unordered, size, &block);
    if (status == STRATA_OK) *address = block.ptr;
    return status;
}

strata_status_t strata_door_allocate_on(strata_door_t *door, strata_place_t place, strata_stream_t stream, size_t size,
                                        void **address) {
    strata_block_t block;
    strata_status_t status = strata_allocate(door->facade, place, stream, size, &block);
    if (status == STRATA_OK) *address = block.ptr;
    return status;
}

/* Finds the live block that begins at the address, and its place. The block must be of the given kind of memory. */
static strata_status_t find_block(strata_door_t *door, strata_door_memory_t memory, void *address, strata_block_t *block,
                                  strata_place_t *place) {
    strata_facade_t *facade = strata_facade_of(door->facade);
    strata_status_t status = strata_block_of(door->facade, address, block);
    if (status == STRATA_E_UNKNOWN_POINTER && facade && strata_facade_holds(facade, address))
        return strata_fail(STRATA_E_INVALID, 0,
                           "no live block begins there: it was freed before, or the address is inside a block");
    if (status == STRATA_OK) status = strata_place_of(door->facade, block->ref, place);
    if (status == STRATA_OK && is_host(*place) != (memory == STRATA_DOOR_HOST))
        return strata_fail(STRATA_E_INVALID, 0, "the block is %s memory", is_host(*place) ? "pinned" : "device");
    return status;
}

strata_status_t strata_door_free(strata_door_t *door, strata_door_memory_t memory, void *address) {
    strata_block_t block;
    strata_place_t place;
    strata_unordered_t *unordered = NULL;
    strata_status_t status = find_block(door, memory, address, &block, &place);
    if (status == STRATA_OK) status = unordered_of(door, place, &unordered);
    return status == STRATA_OK ? strata_unordered_free(unordered, &block) : status;
}

strata_status_t strata_door_free_on(strata_door_t *door, strata_door_memory_t memory, void *address, strata_stream_t stream) {
    strata_block_t block;
    strata_place_t place;
    strata_status_t status = find_block(door, memory, address, &block, &place);
    strata_unordered_t *unordered = status == STRATA_OK ? unordered_at(door, place) : NULL;
    if (unordered && strata_unordered_is_pending(unordered, block.ref))
        return strata_fail(STRATA_E_INVALID, 0, "the block was freed already");
    return status == STRATA_OK ? strata_free_on(door->facade, block.ref, stream) : status;
}

/* Visits open places only, because no stream was used in the others. */
void strata_door_forget_stream(strata_door_t *door, strata_stream_t stream) {
    strata_facade_t *facade = strata_facade_of(door->facade);
    for (uint32_t kind = 0; facade && kind < STRATA_PLACE_KINDS; kind++)
        for (uint32_t i = 0; i < STRATA_FACADE_DEVICES; i++)
            if (atomic_load(&facade->domains[kind][i]))
                (void)strata_stream_forget(door->facade, strata_place((strata_place_kind_t)kind, i), stream);
}

/* ---- the budget ---- */

uint64_t strata_door_idle(strata_door_t *door, strata_place_t place) {
    strata_mem_info_t info = {.struct_size = sizeof info};
    if (strata_mem_info(door->facade, place, &info) != STRATA_OK) return 0;
    strata_unordered_t *unordered = unordered_at(door, place);
    return info.cached + (unordered ? strata_unordered_pending(unordered) : 0);
}

uint64_t strata_door_release_idle(strata_door_t *door, strata_place_t place) {
    uint64_t all = 0, bytes;
    strata_facade_t *facade = strata_facade_of(door->facade);
    (void)drain(door, place);
    for (uint32_t kind = 0; facade && kind < STRATA_PLACE_KINDS; kind++) {
        uint32_t device = is_host(place) ? 0 : strata_place_device(place);
        strata_place_t other = strata_place((strata_place_kind_t)kind, device);
        if (is_host(other) != is_host(place) || device >= STRATA_FACADE_DEVICES) continue;
        if (!atomic_load(&facade->domains[kind][device])) continue;
        if (strata_release(door->facade, other, &bytes) == STRATA_OK) all += bytes;
    }
    return all;
}

bool strata_door_has_other_users(strata_door_t *door, uint32_t device) {
    strata_facade_t *facade = strata_facade_of(door->facade);
    strata_statistics_t figures = {.struct_size = sizeof figures};
    for (uint32_t kind = 0; facade && kind < STRATA_PLACE_KINDS; kind++)
        for (uint32_t i = 0; i < STRATA_FACADE_DEVICES; i++) {
            strata_place_t place = strata_place((strata_place_kind_t)kind, i);
            if (i == device || is_host(place) || !atomic_load(&facade->domains[kind][i])) continue;
            if (strata_statistics_all(door->facade, place, &figures) == STRATA_OK && figures.live_allocations) return true;
        }
    return false;
}
