/* Fetches descriptors through the system, from a process that has no socket to this one. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "facade/share/share.h"
#include "platform/arguments.h"

/* On failure, closes all descriptors that were taken. */
static bool fetch_descriptors(int process, const strata_shared_t *message, strata_shared_t *taken) {
    taken->count = 0;
    taken->lease = -1;
    while (taken->count < message->count) {
        int mine = (int)syscall(SYS_pidfd_getfd, process, message->descriptors[taken->count], 0);
        if (mine < 0) break;
        taken->descriptors[taken->count++] = mine;
    }
    if (taken->count == message->count) taken->lease = (int)syscall(SYS_pidfd_getfd, process, message->lease, 0);
    int why = errno;
    if (taken->lease >= 0) return true;
    strata_shared_close(taken);
    errno = why;
    return false;
}

strata_status_t strata_share_fetch(uint64_t process, strata_shared_t *shared) {
    STRATA_REFUSE_NULL(shared);
    strata_status_t status = strata_shared_check(shared);
    if (status != STRATA_OK) return status;
    strata_shared_t taken = *shared;
    errno = ESRCH;
    taken.sender = process;
    int other = process > INT_MAX ? -1 : (int)syscall(SYS_pidfd_open, (pid_t)process, 0);
    bool whole = other >= 0 && fetch_descriptors(other, shared, &taken);
    int why = errno;
    if (other >= 0) close(other);
    if (whole) {
        *shared = taken;
        return STRATA_OK;
    }
    return strata_fail(
        STRATA_E_IO, 0,
        "shared memory: process %llu, its owner, gives no descriptor: it has exited, it has freed the memory, or this process "
        "lacks permission (%s)",
        (unsigned long long)process, strerror(why));
}
