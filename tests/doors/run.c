#include "tests/doors/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

int run(const char *command, char output[OUTPUT_ROOM]) {
    char whole[4200];
    snprintf(whole, sizeof whole, "{ %s; } 2>&1", command);
    output[0] = '\0';
    FILE *pipe = popen(whole, "r");
    if (!pipe) return -1;
    output[fread(output, 1, OUTPUT_ROOM - 1, pipe)] = '\0';
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

const char *run_preloaded(const char *program, const char *environment, const char *argument) {
    static char output[OUTPUT_ROOM];
    char command[4096];
    snprintf(command, sizeof command,
             "env -u STRATA_STRATEGY -u STRATA_SET -u STRATA_BYPASS %s LD_PRELOAD='" STRATA_PRELOAD "' '%s' %s", environment,
             program, argument);
    EXPECT_EQ(run(command, output), 0);
    return output;
}
