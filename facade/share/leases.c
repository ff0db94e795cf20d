/* Leases of imported blocks. There is one copy for each block and device, no matter how often the block
 * is imported there. The system's number of a pipe identifies the block, because no sender can choose it. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "facade/share/share.h"
#include "platform/host/host_memory.h"

static strata_status_t add(strata_lease_t **list, const strata_lease_t *named, int descriptor) {
    strata_lease_t *made = strata_host_new(1, sizeof *made);
    if (!made) return STRATA_E_HOST_MEMORY;
    *made = *named;
    made->next = *list;
    made->descriptor = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (made->descriptor < 0) {
        strata_host_delete(made);
        return strata_fail(STRATA_E_DEVICE, 0, "strata_import: no file descriptor is left for the lease; raise ulimit -n");
    }
    *list = made;
    return STRATA_OK;
}

static bool is_same(const strata_lease_t *a, const strata_lease_t *b) {
    return a->number == b->number && a->file_system == b->file_system && a->device == b->device;
}

strata_status_t strata_lease_acquire(strata_lease_t **list, int descriptor, const strata_device_t *device, strata_lease_t **lease) {
    struct stat about;
    if (fstat(descriptor, &about) != 0 || !S_ISFIFO(about.st_mode))
        return strata_fail(STRATA_E_FORMAT, 0, "shared memory: descriptor %d, the lease of the message, is not a pipe", descriptor);
    const strata_lease_t named = {.file_system = about.st_dev, .number = about.st_ino, .device = device};
    strata_lease_t *found = *list;
    while (found && !is_same(found, &named)) found = found->next;
    strata_status_t status = found ? STRATA_OK : add(list, &named, descriptor);
    if (status != STRATA_OK) return status;
    *lease = found ? found : *list;
    (*lease)->imports++;
    (*lease)->users++;
    return STRATA_OK;
}

void strata_lease_release(strata_lease_t **list, strata_lease_t *lease) {
    if (--lease->imports > 0) return;
    while (*list != lease) list = &(*list)->next;
    *list = lease->next;
    close(lease->descriptor);
    strata_host_delete(lease);
}

void strata_leases_end(strata_lease_t **list) {
    while (*list) {
        (*list)->imports = 1;
        strata_lease_release(list, *list);
    }
}
