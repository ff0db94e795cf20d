/* Contents of device memory. Malloc memory is in private mappings. Physical handles are in one sparse
 * file. So one handle can be mapped at several addresses, and neighbors in a reservation are
 * neighbors for the host too. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __linux__
#include <fcntl.h>
#include <linux/falloc.h>
#endif

#include "platform/sim/world/checker_hooks.h"
#include "platform/text/pointer.h"

#define KILLED 0xdb /* the value of bytes that were unmapped under running work */

static bool map_private(strata_sim_t *world, uint64_t size, int protection, uint8_t **host) {
    *host = NULL;
    if (!world->contents) return true;
    void *memory = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    *host = memory;
    return true;
}

bool sim_contents_new(strata_sim_t *world, uint64_t size, uint8_t **host) {
    return map_private(world, size, PROT_READ | PROT_WRITE, host);
}

void sim_contents_drop(uint8_t *host, uint64_t size) {
    if (host) munmap(host, size);
}

bool sim_contents_reserve(strata_sim_t *world, uint64_t size, uint8_t **host) { return map_private(world, size, PROT_NONE, host); }

bool sim_contents_file(strata_sim_t *world, uint64_t size, uint64_t *offset) {
    *offset = 0;
    if (!world->contents) return true;
    if (world->file < 0) world->file = memfd_create("strata-sim", MFD_CLOEXEC);
    uint64_t end;
    if (world->file < 0 || !strata_add(world->file_end, size, &end) || end > INT64_MAX) return false;
    if (ftruncate(world->file, (off_t)end) != 0) return false;
    *offset = world->file_end;
    world->file_end = end;
    return true;
}

void sim_contents_punch(strata_sim_t *world, uint64_t offset, uint64_t size) {
    if (world->file < 0) return;
    /* A file system that cannot punch holes keeps the bytes until the world ends. Nothing else depends
     * on it. */
    (void)!fallocate(world->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)size);
}

bool sim_contents_map(int file, uint8_t *host, uint64_t size, uint64_t offset) {
    if (!host) return true;
    return mmap(host, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, (off_t)offset) != MAP_FAILED;
}

/* Skips holes, so that they remain holes. */
bool sim_contents_copy(int from, uint64_t offset, uint64_t size, int to) {
    unsigned char bytes[1 << 14];
    off_t at = (off_t)offset, end = (off_t)(offset + size);
    while (at < end) {
        off_t data = lseek(from, at, SEEK_DATA);
        if (data < 0 || data >= end) return true;
        size_t want = (size_t)(end - data) < sizeof bytes ? (size_t)(end - data) : sizeof bytes;
        ssize_t got = pread(from, bytes, want, data);
        if (got <= 0 || pwrite(to, bytes, (size_t)got, data - (off_t)offset) != got) return false;
        at = data + got;
    }
    return true;
}

void sim_contents_unmap(uint8_t *host, uint64_t size) {
    if (host) mmap(host, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void sim_contents_kill(uint8_t *host, uint64_t size) {
    if (host) memset(host, KILLED, size);
}

/* Returns true if [address, address + size) of a reservation is mapped throughout. With `device`, that
 * device must also have access to it. */
static bool mapped(sim_region_t *region, uint64_t address, uint64_t size, const sim_device_t *device, uint64_t busy_until) {
    uint64_t end = address + size;
    sim_mapping_t *mapping = (sim_mapping_t *)sim_tree_floor(&region->mappings, address);
    for (uint64_t at = address; at < end;) {
        if (!mapping || mapping->node.key > at || at - mapping->node.key >= mapping->size) return false;
        if (device && !(mapping->access & UINT32_C(1) << device->base.ordinal)) return false;
        mapping->busy_until = strata_max(mapping->busy_until, busy_until);
        at = mapping->node.key + mapping->size;
        mapping = (sim_mapping_t *)sim_tree_next(&region->mappings, &mapping->node);
    }
    return true;
}

/* Returns the region that contains the whole range, or NULL. */
static sim_region_t *holder(strata_sim_t *world, strata_address_t address, uint64_t size) {
    sim_region_t *region = sim_region_at(world, address);
    return region && size <= region->size - (address - region->node.key) ? region : NULL;
}

uint8_t *sim_view(strata_sim_t *world, strata_address_t address, uint64_t size) {
    sim_region_t *region = holder(world, address, size);
    if (!region || !region->host) return NULL;
    if (region->kind == SIM_REGION_RESERVATION && !mapped(region, address, strata_max(size, 1), NULL, 0)) return NULL;
    return region->host + (address - region->node.key);
}

bool sim_touch(sim_device_t *device, strata_address_t address, uint64_t size, uint64_t end) {
    if (size == 0 || address < SIM_BASE) return true;
    sim_region_t *region = holder(device->world, address, size);
    if (!region) return false;
    if (region->kind == SIM_REGION_RESERVATION) return mapped(region, address, size, device, end);
    if (region->kind == SIM_REGION_MANAGED || region->device == device) return true;
    if (region->kind == SIM_REGION_BLOCK) return sim_pool_allows(region, device);
    return device->peers & UINT32_C(1) << region->device->base.ordinal;
}

void *sim_op_host_view(strata_device_t *base, strata_address_t address, uint64_t size) {
    sim_device_t *device = sim_of(base);
    strata_lock(&device->world->lock);
    uint8_t *view = sim_view(device->world, address, size);
    strata_unlock(&device->world->lock);
    return view;
}

/* Takes effect when it is submitted, because bytes are not kept per stream (docs/profiles.md, "What is
 * not modelled"). */
static strata_status_t fill(sim_device_t *device, strata_address_t address, uint8_t byte, uint64_t size, strata_handle_t handle) {
    sim_stream_t *stream = sim_stream_for_work(device, handle);
    if (!stream) return strata_last_error()->status;
    if (stream->capture) {
        sim_charge(device, &device->world->profile.launch, 0);
        return sim_capture_fill(stream, address, byte, size);
    }
    uint8_t *view = sim_view(device->world, address, size);
    if (address < SIM_BASE ? !view : !sim_touch(device, address, size, 0))
        return strata_fail(STRATA_E_DEVICE, SIM_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE: fill of 0x%llx, %llu bytes",
                           (unsigned long long)address, (unsigned long long)size);
    sim_charge(device, &device->world->profile.launch, 0);
    sim_touch(device, address, size, sim_submit(stream, 0));
    check_on_fill(stream, address, size, true);
    if (view) memset(view, byte, size);
    return STRATA_OK;
}

strata_status_t sim_op_fill(strata_device_t *base, strata_address_t address, uint8_t byte, uint64_t size, strata_handle_t stream) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_fill);
    if (status != STRATA_OK) return status;
    return sim_end(device, fill(device, address, byte, size, stream));
}

/* Takes effect when it is submitted, as a fill does. */
static strata_status_t copy(sim_device_t *device, strata_address_t address, void *host, uint64_t size, bool to_host,
                            strata_handle_t handle) {
    sim_stream_t *stream = sim_stream_for_work(device, handle);
    if (!stream) return strata_last_error()->status;
    if (stream->capture) return strata_fail(STRATA_E_CAPTURE, 0, "copy: the stream is being captured");
    sim_region_t *pinned = holder(device->world, (uintptr_t)host, size);
    if (address < SIM_BASE || !pinned || pinned->kind != SIM_REGION_PINNED || !sim_touch(device, address, size, 0))
        return strata_fail(STRATA_E_DEVICE, SIM_CU_INVALID_VALUE,
                           "CUDA_ERROR_INVALID_VALUE: copy of %llu bytes at 0x%llx, host memory %s", (unsigned long long)size,
                           (unsigned long long)address, strata_pointer_text(host).text);
    sim_charge(device, &device->world->profile.launch, 0);
    sim_touch(device, address, size, sim_submit(stream, 0));
    check_on_fill(stream, address, size, !to_host);
    check_on_fill(stream, (uintptr_t)host, size, to_host);
    uint8_t *view = sim_view(device->world, address, size);
    if (view && to_host) memcpy(host, view, size);
    else if (view) memcpy(view, host, size);
    return STRATA_OK;
}

strata_status_t sim_op_copy(strata_device_t *base, strata_address_t address, void *host, uint64_t size, bool to_host,
                            strata_handle_t stream) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_copy);
    if (status != STRATA_OK) return status;
    return sim_end(device, copy(device, address, host, size, to_host, stream));
}

/* Managed memory never moves here. The call is only checked and charged. */
static strata_status_t managed_call(sim_device_t *device, strata_address_t address, uint64_t size) {
    sim_region_t *region = holder(device->world, address, size);
    if (!region || region->kind != SIM_REGION_MANAGED)
        return strata_fail(STRATA_E_DEVICE, SIM_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE: 0x%llx is not managed memory",
                           (unsigned long long)address);
    sim_charge(device, &device->world->profile.prefetch, size);
    return STRATA_OK;
}

strata_status_t sim_op_prefetch(strata_device_t *base, strata_address_t address, uint64_t size, bool to_host,
                                strata_handle_t handle) {
    (void)to_host;
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_prefetch);
    if (status != STRATA_OK) return status;
    sim_stream_t *stream = sim_stream_for_work(device, handle);
    if (!stream) return sim_end(device, strata_last_error()->status);
    status = managed_call(device, address, size);
    if (status == STRATA_OK) status = stream->capture ? sim_capture_work(stream, 0, NULL, 0) : STRATA_OK;
    if (status == STRATA_OK && !stream->capture) sim_submit(stream, 0);
    return sim_end(device, status);
}

strata_status_t sim_op_advise(strata_device_t *base, strata_address_t address, uint64_t size, strata_advice_t advice, bool host) {
    (void)host;
    sim_device_t *device = sim_of(base);
    if (advice < STRATA_ADVISE_SET_READ_MOSTLY || advice > STRATA_ADVISE_UNSET_ACCESSED_BY)
        return strata_fail(STRATA_E_INVALID, SIM_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE: advice %d", (int)advice);
    strata_status_t status = sim_begin(device, STRATA_CALL_advise);
    if (status != STRATA_OK) return status;
    return sim_end(device, managed_call(device, address, size));
}
