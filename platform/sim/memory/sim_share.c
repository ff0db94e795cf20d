/* Peers and sharing between the devices of a world.
 *
 * An exported descriptor is a memory file that names the physical memory: it can be duplicated, closed and passed like a
 * driver's. What it names is looked up at import, so a descriptor of another world, of another program or of memory that has
 * gone is refused. */
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "platform/sim/world/sim_internal.h"

#define TICKET_MAGIC UINT64_C(0x7374726174613031)

/* Programs number their worlds alike, and a forked one has its parent's numbers: a world is identified by a random number and its
 * process. */
typedef struct ticket {
    uint64_t magic, secret, process, number;
} ticket_t;

static strata_status_t check_peer(const sim_device_t *device, uint32_t peer) {
    if (peer < device->world->devices && peer != device->base.ordinal) return STRATA_OK;
    return strata_fail(STRATA_E_DEVICE, SIM_CU_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE: %u is no peer of %s:%u", peer,
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

/* Enabling twice is no error here. */
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

static strata_status_t export_memory(sim_device_t *device, strata_physical_t handle, int *descriptor) {
    sim_physical_t *physical = sim_physical(device, handle);
    if (!physical) return STRATA_E_DEVICE;
    if (!physical->shareable)
        return strata_fail(STRATA_E_DEVICE, SIM_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE: made without being shareable");
    strata_sim_t *world = device->world;
    if (!world->secret && getrandom(&world->secret, sizeof world->secret, 0) != (ssize_t)sizeof world->secret)
        return strata_fail(STRATA_E_DEVICE, SIM_CU_OUT_OF_MEMORY, "no random number to export memory with");
    sim_charge(device, &world->profile.peer, 0);
    ticket_t ticket = {TICKET_MAGIC, world->secret, (uint64_t)getpid(), physical->node.key};
    int file = memfd_create("strata-sim-export", MFD_CLOEXEC);
    if (file < 0 || pwrite(file, &ticket, sizeof ticket, 0) != (ssize_t)sizeof ticket) {
        if (file >= 0) close(file);
        return strata_fail(STRATA_E_DEVICE, SIM_CU_OUT_OF_MEMORY, "no descriptor is left to export memory with");
    }
    *descriptor = file;
    return STRATA_OK;
}

strata_status_t sim_op_export_memory(strata_device_t *base, strata_physical_t handle, int *descriptor) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_export_memory);
    if (status != STRATA_OK) return status;
    return sim_end(device, export_memory(device, handle, descriptor));
}

/* The memory that a descriptor names; NULL: none. */
static sim_physical_t *named(strata_sim_t *world, int descriptor) {
    ticket_t ticket;
    if (pread(descriptor, &ticket, sizeof ticket, 0) != (ssize_t)sizeof ticket) return NULL;
    bool here = ticket.secret == world->secret && ticket.process == (uint64_t)getpid();
    if (ticket.magic != TICKET_MAGIC || !here) return NULL;
    sim_node_t *node = sim_tree_floor(&world->shared, ticket.number);
    return node && node->key == ticket.number ? (sim_physical_t *)node : NULL;
}

strata_status_t sim_op_import_memory(strata_device_t *base, int descriptor, strata_physical_t *handle) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_import_memory);
    if (status != STRATA_OK) return status;
    sim_physical_t *physical = named(device->world, descriptor);
    if (!physical)
        return sim_end(device, strata_fail(STRATA_E_DEVICE, SIM_CU_INVALID_VALUE,
                                           "CUDA_ERROR_INVALID_VALUE: descriptor %d names no memory of this world", descriptor));
    if (!sim_handle_new(device, SIM_PHYSICAL, physical, handle)) return sim_end(device, sim_no_host_memory());
    sim_charge(device, &device->world->profile.peer, 0);
    physical->handles++;
    return sim_end(device, STRATA_OK);
}
