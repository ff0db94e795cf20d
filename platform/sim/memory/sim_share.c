/* Peers and sharing between the devices of a world, and between processes.
 *
 * An exported descriptor is a memory file. It has the contents of the handle (if the world has
 * contents) and then a ticket that identifies it. It can be duplicated, closed and passed like a
 * driver's. In its own process it names the handle. In another one it is memory of a device there. As
 * far as such memory is concerned, the worlds of two processes are two views of one machine, but each
 * counts its own capacity. A descriptor that names no memory is refused, and so is memory of another
 * world of the same process. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/sim/world/sim_internal.h"

#define TICKET_MAGIC UINT64_C(0x7374726174613032)
#define SEALS        (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* Identifies a world by a random number and its process. A serial number would not do: programs number
 * their worlds alike, and a forked one has its parent's numbers. */
typedef struct ticket {
    uint64_t magic, secret, process, number, size;
} ticket_t;

static strata_status_t check_peer(const sim_device_t *device, uint32_t peer) {
    if (peer < device->world->devices && peer != device->base.ordinal) return STRATA_OK;
    return strata_fail(STRATA_E_DEVICE, SIM_CU_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE: %u is not a peer of %s:%u", peer,
                       device->base.name, device->base.ordinal);
}

strata_status_t sim_op_can_access_peer(strata_device_t *base, uint32_t peer, bool *can) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_can_access_peer);
    if (status != STRATA_OK) return status;
    status = check_peer(device, peer);
    if (status == STRATA_OK) *can = true;
    return sim_end(device, status);
}

/* Enabling a peer twice is no error here. */
strata_status_t sim_op_enable_peer(strata_device_t *base, uint32_t peer) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_enable_peer);
    if (status != STRATA_OK) return status;
    status = check_peer(device, peer);
    if (status == STRATA_OK) {
        sim_charge(device, &device->world->profile.peer, 0);
        device->peers |= UINT32_C(1) << peer;
    }
    return sim_end(device, status);
}

/* ---- export ---- */

/* Maps the handle's own file at every mapping of it. */
static bool map_again(strata_sim_t *world, const sim_physical_t *physical) {
    bool all = true;
    for (sim_node_t *node = sim_tree_ceiling(&world->regions, 0, 0); node; node = sim_tree_next(&world->regions, node)) {
        sim_region_t *region = (sim_region_t *)node;
        if (region->kind != SIM_REGION_RESERVATION || !region->host) continue;
        for (sim_node_t *at = sim_tree_ceiling(&region->mappings, 0, 0); at; at = sim_tree_next(&region->mappings, at)) {
            const sim_mapping_t *mapping = (const sim_mapping_t *)at;
            if (mapping->physical == physical)
                all = sim_contents_map(physical->file, region->host + (at->key - node->key), mapping->size, 0) && all;
        }
    }
    return all;
}

static bool fill_file(strata_sim_t *world, const sim_physical_t *physical, int file) {
    ticket_t ticket = {TICKET_MAGIC, world->secret, world->process, physical->node.key, physical->size};
    if (ftruncate(file, (off_t)(physical->size + sizeof ticket)) != 0) return false;
    if (world->contents && !sim_contents_copy(world->file, physical->file_offset, physical->size, file)) return false;
    return pwrite(file, &ticket, sizeof ticket, (off_t)physical->size) == (ssize_t)sizeof ticket &&
           fcntl(file, F_ADD_SEALS, SEALS) == 0;
}

/* Moves the handle's contents to a separate file, which can be passed to other processes. */
static bool make_file(strata_sim_t *world, sim_physical_t *physical) {
    if (physical->file >= 0) return true;
    if (!world->secret && getrandom(&world->secret, sizeof world->secret, 0) != (ssize_t)sizeof world->secret) return false;
    int file = memfd_create("strata-sim-export", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0 || !fill_file(world, physical, file)) {
        if (file >= 0) close(file);
        return false;
    }
    uint64_t offset = physical->file_offset;
    physical->file = file;
    physical->file_offset = 0;
    if (!map_again(world, physical)) return false;
    if (world->contents) sim_contents_punch(world, offset, physical->size);
    return true;
}

static strata_status_t export_memory(sim_device_t *device, strata_physical_t handle, int *descriptor) {
    sim_physical_t *physical = sim_physical(device, handle);
    if (!physical) return STRATA_E_DEVICE;
    if (!physical->shareable)
        return strata_fail(STRATA_E_DEVICE, SIM_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE: not created as shareable");
    sim_charge(device, &device->world->profile.peer, 0);
    int copy = make_file(device->world, physical) ? fcntl(physical->file, F_DUPFD_CLOEXEC, 0) : -1;
    if (copy < 0) return strata_fail(STRATA_E_DEVICE, SIM_CU_OUT_OF_MEMORY, "no file descriptor is left to export memory");
    *descriptor = copy;
    return STRATA_OK;
}

strata_status_t sim_op_export_memory(strata_device_t *base, strata_physical_t handle, int *descriptor) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_export_memory);
    if (status != STRATA_OK) return status;
    return sim_end(device, export_memory(device, handle, descriptor));
}

/* ---- import ---- */

/* Reads the ticket of a descriptor. Returns false unless the file is as its exporter left it. */
static bool read_ticket(int descriptor, ticket_t *ticket) {
    struct stat file;
    if (fstat(descriptor, &file) != 0 || !S_ISREG(file.st_mode) || file.st_size < (off_t)sizeof *ticket) return false;
    int seals = fcntl(descriptor, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS) return false;
    off_t at = file.st_size - (off_t)sizeof *ticket;
    return pread(descriptor, ticket, sizeof *ticket, at) == (ssize_t)sizeof *ticket && ticket->magic == TICKET_MAGIC &&
           ticket->size == (uint64_t)at;
}

/* Returns the memory of this world that a ticket names, or NULL. */
static sim_physical_t *find_own(strata_sim_t *world, const ticket_t *ticket) {
    if (ticket->secret != world->secret) return NULL;
    sim_node_t *node = sim_tree_floor(&world->shared, ticket->number);
    return node && node->key == ticket->number ? (sim_physical_t *)node : NULL;
}

/* Creates an entry for another process's memory. It belongs to no device here, so it takes no capacity. */
static sim_physical_t *make_foreign(strata_sim_t *world, const ticket_t *ticket, int descriptor) {
    bool fits = ticket->size > 0 && (ticket->size & (world->profile.granule_bytes - 1)) == 0;
    sim_physical_t *physical = fits ? calloc(1, sizeof *physical) : NULL;
    if (!physical) return NULL;
    physical->size = ticket->size;
    physical->node.key = ++world->next_physical;
    physical->file = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (physical->file >= 0) return physical;
    free(physical);
    return NULL;
}

/* Returns the memory that a descriptor names, or NULL. */
static sim_physical_t *named(strata_sim_t *world, int descriptor) {
    ticket_t ticket;
    if (world->process != (uint64_t)getpid() || !read_ticket(descriptor, &ticket)) return NULL;
    return ticket.process == world->process ? find_own(world, &ticket) : make_foreign(world, &ticket, descriptor);
}

strata_status_t sim_op_import_memory(strata_device_t *base, int descriptor, strata_physical_t *handle) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_import_memory);
    if (status != STRATA_OK) return status;
    sim_physical_t *physical = named(device->world, descriptor);
    if (!physical)
        return sim_end(device,
                       strata_fail(STRATA_E_DEVICE, SIM_CU_INVALID_VALUE,
                                   "CUDA_ERROR_INVALID_VALUE: descriptor %d does not refer to memory of this world", descriptor));
    if (!sim_handle_new(device, SIM_PHYSICAL, physical, handle)) {
        sim_physical_free_unused(device->world, physical);
        return sim_end(device, sim_no_host_memory());
    }
    sim_charge(device, &device->world->profile.peer, 0);
    physical->handles++;
    return sim_end(device, STRATA_OK);
}
