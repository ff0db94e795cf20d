/* Hostile strategies given to the command as a user would: an error within seconds, in a process of 64 MiB of address space. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "platform/clock.h"
#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "tests/tools/support/ran.h"

enum { WRONG = 2, NINES = 9 };

/* Runs `strata ARGUMENTS` with `before` in front of it in the shell; the exit status, -1 if it did not end by itself. *errors gets
 * the first line of what it said, valid until the next call. */
static int run_limited(const char *before, const char *arguments, const char **errors) {
    static char line[1024];
    char command[2048];
    snprintf(command, sizeof command, "ulimit -v 65536; %s %s %s 2>&1 >/dev/null", before, command_path(), arguments);
    *line = '\0';
    *errors = line;
    FILE *said = popen(command, "r");
    if (!said) return -1;
    if (!fgets(line, sizeof line, said)) *line = '\0';
    char rest[1024];
    while (fgets(rest, sizeof rest, said)) continue;
    int status = pclose(said);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Every command that reads a strategy refuses it with this text. */
static void expect_refused(const char *before, const char *path, const char *what) {
    static const char *const commands[] = {"check %s", "explain %s", "compare --device sim --strategy %s /dev/null"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char arguments[1024];
        const char *errors;
        snprintf(arguments, sizeof arguments, commands[i], path);
        uint64_t began = strata_real_now();
        EXPECT_EQ(run_limited(before, arguments, &errors), WRONG);
        EXPECT_LT(strata_real_now() - began, UINT64_C(10000000000));
        EXPECT_CONTAINS(errors, what);
    }
}

TEST(hostile_command, aliases_that_multiply) {
    if (*STRATA_SANITIZERS) TEST_SKIP("sanitizers take terabytes of address space");
    char text[2048] = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i <= NINES; i++)
        sprintf(text + strlen(text), "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i, i - 1, i - 1,
                i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
    expect_refused("", write_text("bomb.yaml", text), "bomb.yaml:2:10: ");
}

TEST(hostile_command, ten_thousand_layers) {
    if (*STRATA_SANITIZERS) TEST_SKIP("sanitizers take terabytes of address space");
    static char text[10000 * 16 + 64];
    size_t length = (size_t)sprintf(text, "stack:\n");
    for (int i = 0; i < 10000; i++) length += (size_t)sprintf(text + length, "- auto_growth\n");
    sprintf(text + length, "- system\n");
    expect_refused("", write_text("layers.yaml", text), "layers.yaml:66:3: a stack has at most 64 layers");
}

/* Each is to be compared with all before it, says YAML. */
TEST(hostile_command, directives_without_end) {
    if (*STRATA_SANITIZERS) TEST_SKIP("sanitizers take terabytes of address space");
    static char text[1 << 20];
    size_t length = 0;
    for (unsigned i = 0; length < sizeof text - 64; i++) length += (size_t)sprintf(text + length, "%%TAG !%x! !\n", i);
    sprintf(text + length, "---\nstack: [system]\n");
    expect_refused("", write_text("directives.yaml", text), "directives.yaml:1:1: ");
}

/* Through a pipe, so that nobody has to write it; what is not read is never made. */
TEST(hostile_command, a_scalar_of_a_gibibyte) {
    if (*STRATA_SANITIZERS) TEST_SKIP("sanitizers take terabytes of address space");
    expect_refused("{ printf 'strategy: '; yes xxxxxxxx | tr -d '\\n' | head -c 1073741824; } |", "/dev/stdin",
                   "the file is larger than 1 MiB");
}
