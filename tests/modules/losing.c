/* A layer whose object prints, while it is loaded, onto a disk that is full then and has room again afterwards. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/modules/pass.h"

__attribute__((constructor)) static void lose(void) {
    int full = open("/dev/full", O_WRONLY), out = dup(STDOUT_FILENO);
    if (full < 0 || out < 0 || dup2(full, STDOUT_FILENO) < 0) return;
    puts("what nobody reads");
    (void)fflush(stdout);
    (void)dup2(out, STDOUT_FILENO);
    (void)close(full);
    (void)close(out);
}

PASS_TYPE(losing, .free = pass_free);

STRATA_LAYERS(&losing_type);
