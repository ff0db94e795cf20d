/* One process shares a block with another over a socket, and the other uses it.
 *
 *     cc two_processes.c $(pkg-config --cflags --libs strata) && ./a.out          # on the simulated device
 *     ./a.out gpu:0                                                               # on a GPU
 */
#include <stdio.h>
#include <stdlib.h>
#include <strata/strata.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void check(strata_status_t status) {
    if (status == STRATA_OK) return;
    fprintf(stderr, "%s: %s\n", strata_status_name(status), strata_last_error()->text);
    exit(1);
}

/* Each process opens the device itself, after the fork, because a child cannot use its parent's device. */
static strata_t open_here(const char *devices) {
    strata_t s;
    check(strata_open(&(strata_open_options_t){.struct_size = sizeof(strata_open_options_t),
                                               .text = "stack: [stream_safe, auto_growth, vmm: {registrable: true}]\n",
                                               .devices = devices},
                      &s));
    return s;
}

static void give(strata_t s, int socket) {
    strata_block_t block;
    strata_shared_t shared;
    char done;
    check(strata_allocate(s, strata_gpu(0), NULL, 3 << 20, &block));
    check(strata_export(s, block.ref, &shared));
    check(strata_share_send(socket, &shared));
    strata_shared_close(&shared);
    if (read(socket, &done, 1) != 1) exit(1); /* the other process has ended its use */
    check(strata_free(s, block.ref));
}

static void use(strata_t s, int socket) {
    strata_shared_t shared;
    strata_imported_t there;
    check(strata_share_receive(socket, &shared));
    check(strata_import(s, strata_gpu(0), &shared, &there));
    printf("%zu bytes of another process, in %u handle\n", there.size, shared.count);
    strata_shared_close(&shared);
    check(strata_import_end(s, there.id)); /* after the work on there.ptr, which it waits for */
    if (write(socket, "", 1) != 1) exit(1);
}

int main(int argc, char **argv) {
    int ends[2], how = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
    pid_t other = fork();
    strata_t s = open_here(argc > 1 ? argv[1] : "sim");
    (other ? give : use)(s, ends[other ? 0 : 1]);
    check(strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL));
    return other && (waitpid(other, &how, 0) != other || how != 0);
}
