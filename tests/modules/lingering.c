/* A layer that leaves a process behind, as one with a helper program may: who runs it apart must not wait for that one. */
#define _DEFAULT_SOURCE
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/modules/pass.h"

enum { LINGERS_MILLISECONDS = 500 * 1000 };

static bool *left; /* shared with the processes of the checks: one of them leaves one process */

__attribute__((constructor)) static void share(void) {
    left = mmap(NULL, sizeof *left, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* Holds the standard output, and ends before its time only when nobody reads that any more. */
static void linger(void) {
    struct pollfd out = {.fd = STDOUT_FILENO, .events = 0};
    (void)poll(&out, 1, LINGERS_MILLISECONDS);
    _exit(0);
}

static void lingering_free(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    (void)self;
    if (!*left) {
        *left = true;
        if (fork() == 0) linger();
    }
    strata_below_free(record, call);
}

PASS_TYPE(lingering, .free = lingering_free);

STRATA_LAYERS(&lingering_type);
