/* How far torture is: on a terminal, and where it is asked for. */
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness/test.h"
#include "tests/paths.h"
#include "tests/tools/support/ran.h"

#define FEW "torture --programs 4 --stacks 1 --jobs 2 --strategy strata"

TEST(progress, is_told_where_it_is_asked_for) {
    ran_t ran = run_well(FEW " --progress");
    EXPECT_CONTAINS(ran.errors, " of 4 programs, 0 failed so far");
    EXPECT_TRUE(strchr(ran.errors, '\r') == NULL && strchr(ran.errors, '\033') == NULL);
    EXPECT_CONTAINS(ran.out, "4 programs, ");
}

TEST(progress, is_not_told_where_nobody_looks) {
    ran_t ran = run_well(FEW);
    EXPECT_STREQ(ran.errors, "");
}

#define TAKEN_AWAY "\r\033[K"

static bool ends_with(const char *text, const char *with) {
    size_t length = strlen(text), wanted = strlen(with);
    return length >= wanted && strcmp(text + length - wanted, with) == 0;
}

/* What was written into a terminal comes out of it a little later, and not all at once. */
static bool readable(int terminal) { return poll(&(struct pollfd){.fd = terminal, .events = POLLIN}, 1, 60000) == 1; }

TEST(progress, is_one_line_on_a_terminal_and_taken_away) {
    char said[4096] = "", name[256];
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) TEST_SKIP("there are no terminals to open here");
    snprintf(name, sizeof name, "%s", ptsname(terminal));
    int end = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (end < 0) TEST_SKIP("the end of a terminal cannot be opened here");
    pid_t child = fork();
    if (child == 0) {
        int nowhere = open("/dev/null", O_WRONLY);
        (void)dup2(nowhere, STDOUT_FILENO);
        (void)dup2(end, STDERR_FILENO);
        (void)execlp("sh", "sh", "-c", "exec " STRATA_COMMAND " " FEW, NULL);
        _exit(127);
    }
    int how = 0;
    EXPECT_EQ(waitpid(child, &how, 0), child);
    EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    size_t length = 0;
    bool more = true;
    while (more && !ends_with(said, TAKEN_AWAY)) {
        ssize_t got = readable(terminal) ? read(terminal, said + length, sizeof said - 1 - length) : 0;
        more = got > 0;
        length += more ? (size_t)got : 0;
    }
    close(terminal);
    close(end);
    EXPECT_EQ(strncmp(said, TAKEN_AWAY, strlen(TAKEN_AWAY)), 0);
    EXPECT_CONTAINS(said, " of 4 programs, 0 failed so far");
    EXPECT_EQ(strchr(said, '\n'), NULL);
    EXPECT_TRUE(ends_with(said, TAKEN_AWAY));
}
