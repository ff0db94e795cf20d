#include "doors/preload/serve.h"

bool strata_serve(strata_row_t row, strata_place_kind_t kind, int device, size_t size, void **address) {
    strata_door_t *door = size ? strata_process_begin() : NULL;
    strata_place_t place;
    bool done = door && strata_process_place(door, STRATA_PLACE_GPU, device, &place);
    if (done && kind == STRATA_PLACE_MANAGED) place = strata_managed((uint32_t)device);
    if (done && kind == STRATA_PLACE_PINNED) place = strata_pinned();
    if (done) done = strata_door_allocate(door, place, size, address) == STRATA_OK;
    if (door) strata_process_end();
    strata_process_count(row, done);
    return done;
}

bool strata_serve_on(strata_row_t row, int device, void *stream, size_t size, void **address) {
    strata_door_t *door = size ? strata_process_begin() : NULL;
    strata_place_t place;
    bool done = door && strata_process_place(door, STRATA_PLACE_GPU, device, &place) &&
                strata_process_owns_stream(door, place, stream) &&
                strata_door_allocate_on(door, place, stream, size, address) == STRATA_OK;
    if (door) strata_process_end();
    strata_process_count(row, done);
    return done;
}

static bool finish_free(strata_row_t row, strata_status_t status, void **address) {
    static char invalid_address; /* host memory that CUDA never allocated */
    if (status != STRATA_OK && status != STRATA_E_UNKNOWN_POINTER) *address = &invalid_address;
    strata_process_count(row, status == STRATA_OK);
    return status == STRATA_OK;
}

bool strata_serve_free(strata_row_t row, strata_door_memory_t memory, void **address) {
    strata_door_t *door = *address ? strata_process_begin_if_open() : NULL;
    strata_status_t status = door ? strata_door_free(door, memory, *address) : STRATA_E_UNKNOWN_POINTER;
    if (door) strata_process_end();
    return finish_free(row, status, address);
}

bool strata_serve_free_on(strata_row_t row, strata_door_memory_t memory, void **address, void *stream) {
    strata_door_t *door = *address ? strata_process_begin_if_open() : NULL;
    strata_status_t status = door ? strata_door_free_on(door, memory, *address, stream) : STRATA_E_UNKNOWN_POINTER;
    if (door) strata_process_end();
    return finish_free(row, status, address);
}

void strata_serve_mem_info(strata_row_t row, int device, size_t *unused, size_t total) {
    strata_door_t *door = device >= 0 ? strata_process_begin_if_open() : NULL;
    uint64_t idle = door ? strata_door_idle(door, strata_gpu((uint32_t)device)) : 0;
    if (door) strata_process_end();
    *unused = idle > total - *unused ? total : *unused + (size_t)idle;
    strata_process_count(row, door != NULL);
}

void strata_serve_forget(strata_row_t row, void *stream) {
    strata_door_t *door = stream ? strata_process_begin_if_open() : NULL;
    if (door) strata_door_forget_stream(door, stream);
    if (door) strata_process_end();
    strata_process_count(row, door != NULL);
}

bool strata_serve_is_inside(strata_row_t row, void *address) {
    strata_door_t *door = strata_process_begin_if_open();
    strata_block_t block;
    void *base;
    size_t size;
    bool known = door && strata_base_pointer(strata_door_facade(door), address, &block) == STRATA_OK;
    bool inside = known && (strata_base_of(strata_door_facade(door), block.ref, &base, &size) != STRATA_OK || base != address);
    if (door) strata_process_end();
    strata_process_count(row, inside);
    return inside;
}

bool strata_serve_release_idle(bool of_host, int device) {
    strata_door_t *door = of_host || device >= 0 ? strata_process_begin_if_open() : NULL;
    uint64_t given = door ? strata_door_release_idle(door, of_host ? strata_pinned() : strata_gpu((uint32_t)device)) : 0;
    if (door) strata_process_end();
    return given != 0;
}
