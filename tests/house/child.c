#include "tests/house/child.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/house/values.h"

enum { ROOM = 4096, SECONDS = 60 };

const char *child_run(child_fn check, void *context) {
    static char *wrong; /* memory shared with all child processes */
    int status;
    if (!wrong) wrong = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (wrong == MAP_FAILED) return "no memory can be shared";
    wrong[0] = '\0';
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(SECONDS);
        if (values_make(wrong, ROOM)) check(context, wrong, ROOM);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) return "no child can be made";
    if (WIFSIGNALED(status)) snprintf(wrong, ROOM, "ends by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0) snprintf(wrong, ROOM, "ends with status %d", WEXITSTATUS(status));
    return wrong;
}
