#include "tests/share/share.h"

#include <dirent.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

strata_block_t make_join(rig_t *rig) {
    strata_block_t blocks[32];
    for (size_t i = 0; i < COUNT(blocks); i++) blocks[i] = rig_allocate(rig, NULL, 4 * MIB);
    for (size_t i = 0; i < COUNT(blocks); i += 2) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
    return rig_allocate(rig, NULL, 40 * MIB);
}

static void add_joins(const strata_layer_figure_t *figure, void *context) {
    if (strcmp(figure->name, "joins") == 0) *(uint64_t *)context += figure->value;
}

uint64_t joins_of(rig_t *rig) {
    uint64_t joins = 0;
    EXPECT_OK(strata_layer_figures(rig->s, rig->gpu, add_joins, &joins));
    return joins;
}

int open_descriptors(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder)) count++;
    if (folder) closedir(folder);
    return count;
}

other_t other_start(const char *role) {
    other_t other = {.socket = -1};
    int ends[2];
    char number[16];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    int theirs = dup(ends[1]); /* which stays open in the child */
    snprintf(number, sizeof number, "%d", theirs);
    char *arguments[] = {(char *)(uintptr_t)STRATA_SHARE_CHILD, (char *)(uintptr_t)role, number, NULL};
    EXPECT_EQ(posix_spawn(&other.process, STRATA_SHARE_CHILD, NULL, NULL, arguments, environ), 0);
    close(theirs);
    close(ends[1]);
    other.socket = ends[0];
    return other;
}

uint8_t other_byte(const other_t *other) {
    uint8_t byte = 0;
    EXPECT_EQ(read(other->socket, &byte, 1), 1);
    return byte;
}

void other_end(other_t *other, bool kills) {
    int how = 0;
    if (kills) kill(other->process, SIGKILL);
    close(other->socket);
    EXPECT_EQ(waitpid(other->process, &how, 0), other->process);
    EXPECT_TRUE(kills ? WIFSIGNALED(how) : WIFEXITED(how) && WEXITSTATUS(how) == 0);
}
