/* Copies the bytes of paused memory. All copies use one dedicated stream, in order, without waiting in
 * between. Pinned memory receives everything at once. A file is written and read through a few slots,
 * while other slots are being copied. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "facade/pause/pause.h"
#include "platform/arithmetic.h"

#define STAGING  (UINT64_C(64) << 20)
#define SLOT_MIN (UINT64_C(1) << 20)

strata_status_t strata_copy_begin(strata_copy_t *copy, strata_facade_t *facade, strata_domain_t *domain, uint64_t staging) {
    strata_device_t *device = domain->device;
    *copy = (strata_copy_t){.facade = facade, .device = device, .events = &domain->events};
    copy->slot_size = strata_max((staging ? staging : STAGING) / STRATA_COPY_SLOTS, SLOT_MIN);
    strata_status_t status = strata_device_stream_create(device, STRATA_STREAM_NON_BLOCKING, 0, &copy->stream);
    copy->has_stream = status == STRATA_OK;
    return status;
}

static strata_status_t take_pinned(const strata_copy_t *copy, uint64_t size, strata_block_t *block) {
    const strata_allocate_options_t options = {
        .struct_size = sizeof options, .size = size, .pool = STRATA_POOL_ORDINARY, .tag = "strata_pause"};
    return strata_allocate_with(copy->facade->handle, strata_pinned(), NULL, &options, block);
}

/* ---- files ---- */

static strata_status_t fail_file(const char *what, ssize_t moved) {
    return strata_fail(STRATA_E_IO, 0, "the file of a pause cannot be %s: %s", what,
                       moved < 0 ? strerror(errno) : "it is too short");
}

static strata_status_t write_slot(const strata_kept_file_t *file, const strata_copy_slot_t *slot) {
    const char *bytes = slot->block.ptr;
    for (uint64_t at = 0; at < slot->size;) {
        ssize_t moved = pwrite(file->descriptor, bytes + at, slot->size - at, (off_t)(slot->offset + at));
        if (moved <= 0 && !(moved < 0 && errno == EINTR)) return fail_file("written", moved);
        at += moved > 0 ? (uint64_t)moved : 0;
    }
    return STRATA_OK;
}

static strata_status_t read_slot(const strata_kept_file_t *file, const strata_copy_slot_t *slot) {
    char *bytes = slot->block.ptr;
    for (uint64_t at = 0; at < slot->size;) {
        ssize_t moved = pread(file->descriptor, bytes + at, slot->size - at, (off_t)(slot->offset + at));
        if (moved <= 0 && !(moved < 0 && errno == EINTR)) return fail_file("read", moved);
        at += moved > 0 ? (uint64_t)moved : 0;
    }
    return STRATA_OK;
}

/* ---- slots ---- */

static strata_status_t make_slot(strata_copy_t *copy, strata_copy_slot_t *slot) {
    if (slot->event) return STRATA_OK;
    strata_status_t status = slot->block.ref ? STRATA_OK : take_pinned(copy, copy->slot_size, &slot->block);
    while (status == STRATA_OK && !slot->event) {
        status = strata_events_ensure(copy->events, 1);
        if (status == STRATA_OK) slot->event = strata_events_acquire(copy->events);
    }
    return status;
}

/* Waits for the copy of a slot. If it came from the device, writes it to the file. */
static strata_status_t finish_slot(const strata_copy_t *copy, strata_copy_slot_t *slot, const strata_kept_file_t *file) {
    if (!slot->busy) return STRATA_OK;
    slot->busy = false;
    strata_status_t status = strata_device_event_synchronise(copy->device, slot->event);
    return status == STRATA_OK && file ? write_slot(file, slot) : status;
}

static strata_status_t start_slot(const strata_copy_t *copy, strata_copy_slot_t *slot, uint64_t address, bool to_host) {
    strata_status_t status = strata_device_copy(copy->device, address, slot->block.ptr, slot->size, to_host, copy->stream);
    if (status == STRATA_OK) status = strata_device_event_record(copy->device, slot->event, copy->stream);
    slot->busy = status == STRATA_OK;
    return status;
}

/* Moves the next `size` bytes of a handle through the next slot. */
static strata_status_t move_piece(strata_copy_t *copy, const strata_kept_t *kept, uint64_t at, uint64_t size, bool to_host) {
    strata_copy_slot_t *slot = &copy->slots[copy->next_slot++ % STRATA_COPY_SLOTS];
    strata_status_t status = make_slot(copy, slot);
    if (status == STRATA_OK) status = finish_slot(copy, slot, to_host ? kept->file : NULL);
    slot->offset = kept->offset + at;
    slot->size = size;
    if (status == STRATA_OK && !to_host) status = read_slot(kept->file, slot);
    return status == STRATA_OK ? start_slot(copy, slot, kept->address + at, to_host) : status;
}

static strata_status_t move_all(strata_copy_t *copy, const strata_kept_t *kept, bool to_host) {
    strata_status_t status = STRATA_OK;
    for (uint64_t at = 0, size; at < kept->size && status == STRATA_OK; at += size) {
        size = strata_min(copy->slot_size, kept->size - at);
        status = move_piece(copy, kept, at, size, to_host);
    }
    return status;
}

/* ---- a handle ---- */

strata_status_t strata_copy_reserve(const strata_copy_t *copy, strata_kept_t *kept, strata_kept_file_t *file) {
    if (!file) return take_pinned(copy, kept->size, &kept->pinned);
    kept->file = file;
    kept->offset = file->end;
    file->users++;
    file->end += kept->size;
    return STRATA_OK;
}

strata_status_t strata_copy_save(strata_copy_t *copy, const strata_kept_t *kept) {
    if (kept->file) return move_all(copy, kept, true);
    return strata_device_copy(copy->device, kept->address, kept->pinned.ptr, kept->size, true, copy->stream);
}

strata_status_t strata_copy_restore(strata_copy_t *copy, const strata_kept_t *kept) {
    if (kept->file) return move_all(copy, kept, false);
    return strata_device_copy(copy->device, kept->address, kept->pinned.ptr, kept->size, false, copy->stream);
}

strata_status_t strata_copy_zero(strata_copy_t *copy, uint64_t address, uint64_t size) {
    return strata_device_fill(copy->device, address, 0, size, copy->stream);
}

/* ---- end of the copies ---- */

strata_status_t strata_copy_finish(strata_copy_t *copy, strata_kept_file_t *written) {
    strata_status_t status = STRATA_OK;
    for (uint32_t i = 0; i < STRATA_COPY_SLOTS && status == STRATA_OK; i++)
        status = finish_slot(copy, &copy->slots[(copy->next_slot + i) % STRATA_COPY_SLOTS], written);
    return status == STRATA_OK ? strata_device_stream_synchronise(copy->device, copy->stream) : status;
}

/* After a failure, copies to memory that is about to be freed may still be running. */
uint64_t strata_copy_end(strata_copy_t *copy) {
    const strata_error_t reason = *strata_last_error();
    if (copy->has_stream) (void)strata_device_stream_synchronise(copy->device, copy->stream);
    for (uint32_t i = 0; i < STRATA_COPY_SLOTS; i++) {
        if (copy->slots[i].event) strata_events_release(copy->events, copy->slots[i].event);
        if (copy->slots[i].block.ref) (void)strata_free(copy->facade->handle, copy->slots[i].block.ref);
    }
    if (copy->has_stream) (void)strata_device_stream_destroy(copy->device, copy->stream);
    (void)strata_fail_again(&reason);
    return strata_real_now() - copy->start_ns;
}
