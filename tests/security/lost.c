/* What standard output does not take is told, once, and is a failure of the command. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "tests/paths.h"
#include "tests/tools/support/ran.h"

enum { SAID = 16384 };

#define LOST "strata: standard output cannot be written: "

/* In the folder of the test's files. The exit status; `said` is what it said on standard error. */
static int run_lost(const char *arguments, char *said) {
    char command[1200], folder[256];
    snprintf(folder, sizeof folder, "%s", temporary("."));
    snprintf(command, sizeof command, "cd %s && %s %s 2>&1 >/dev/full", folder, command_path(), arguments);
    FILE *pipe = popen(command, "r");
    said[pipe ? fread(said, 1, SAID - 1, pipe) : 0] = '\0';
    int status = pipe ? pclose(pipe) : -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Once. */
static void expect_told(const char *arguments, const char *said, const char *why) {
    char wanted[200];
    snprintf(wanted, sizeof wanted, LOST "%s\n", why);
    const char *told = strstr(said, LOST);
    if (!told || strncmp(told, wanted, strlen(wanted)) != 0 || strstr(told + 1, LOST)) FAIL_TEST("%s: %s", arguments, said);
}

static void expect_lost(const char *arguments) {
    char said[SAID];
    int status = run_lost(arguments, said);
    if (status != 1) FAIL_TEST("%s: exit status %d", arguments, status);
    expect_told(arguments, said, "No space left on device");
}

#define HEADER "op,id,size,stream,time_us\n"
#define SIM    " --device sim --strategy "

/* Every command that prints, in every form that it prints in. */
static const char *const commands[] = {"import pytorch max_split_size_mb:128",
                                       "import --markdown",
                                       "layers",
                                       "layers --markdown",
                                       "presets",
                                       "presets strata",
                                       "explain system",
                                       "diff paddle strata",
                                       "grammar",
                                       "fields",
                                       "calibrate --device sim --repeats 1",
                                       "calibrate --markdown",
                                       "version",
                                       "help",
                                       "help compare",
                                       "merge lost.json",
                                       "compare --repeat 1" SIM "system --strategy strata lost.csv",
                                       "compare --repeat 1" SIM "system --json - lost.csv",
                                       "compare --repeat 1" SIM "system --draw lost.csv",
                                       "replay --repeat 1" SIM "system lost.csv",
                                       "report -o lost.html" SIM "system lost.csv",
                                       "convert lost.csv -",
                                       "export" SIM "strata lost.csv lost.out.csv",
                                       "plan --time 10ms lost.csv",
                                       "plan --time 10ms --json - lost.csv",
                                       "plan --time 10ms -o - lost.csv",
                                       "plan --time 10ms --lines --draw lost.csv",
                                       "plan --time 10ms --compare lost.csv",
                                       "stats" SIM "strata lost.csv",
                                       "stats" SIM "strata --blocks lost.csv",
                                       "stats" SIM "strata --json lost.csv",
                                       "stats" SIM "strata --prometheus lost.csv",
                                       "conform " STRATA_BINARY_DIR "/modules/my_layer.so",
                                       "run --table",
                                       "torture --programs 1 --stacks 1 --jobs 1"};

enum { COMMANDS = sizeof commands / sizeof *commands };

static bool is_tried(const char *name) {
    size_t length = strlen(name);
    for (size_t i = 0; i < COMMANDS; i++)
        if (strncmp(commands[i], name, length) == 0 && (commands[i][length] == ' ' || commands[i][length] == '\0')) return true;
    return false;
}

TEST(lost, every_command_tells_it) {
    if (access("/dev/full", W_OK) != 0) TEST_SKIP("no /dev/full on this machine");
    (void)write_text("lost.csv", HEADER "alloc,1,4096,0,0\nfree,1,0,0,9\n");
    (void)write_text("lost.json", "{\"schema\": 1, \"runs\": []}");
    for (size_t i = 0; i < COMMANDS; i++) expect_lost(commands[i]);
}

/* But `check`, which has nothing to say of what is right. */
TEST(lost, every_command_that_there_is_is_tried) {
    ran_t ran = run_command("help");
    char name[64];
    size_t count = 0;
    for (const char *at = ran.out; (at = strstr(at, "\n  strata ")) != NULL; count++) {
        at += strlen("\n  strata ");
        if (sscanf(at, "%63s", name) == 1 && strcmp(name, "check") != 0 && !is_tried(name)) FAIL_TEST("%s is not tried", name);
    }
    EXPECT_GT(count, 10);
}

TEST(lost, who_says_nothing_loses_nothing) {
    char said[SAID];
    if (access("/dev/full", W_OK) != 0) TEST_SKIP("no /dev/full on this machine");
    (void)write_text("lost.yaml", "stack: [system]\n");
    EXPECT_EQ(run_lost("check lost.yaml", said), 0);
    EXPECT_STREQ(said, "");
}

static void write_live(const char *name, unsigned blocks) {
    static char text[200000];
    size_t length = (size_t)sprintf(text, HEADER);
    for (unsigned i = 1; i <= blocks; i++) length += (size_t)sprintf(text + length, "alloc,%u,4096,0,%u\n", i, i);
    (void)write_text(name, text);
}

/* More than is kept back, by the two ways that lead there. */
TEST(lost, in_the_midst_it_is_told_once) {
    if (access("/dev/full", W_OK) != 0) TEST_SKIP("no /dev/full on this machine");
    write_live("much.csv", 4000);
    expect_lost("stats" SIM "system --at end --blocks --json much.csv");
    expect_lost("stats" SIM "system --at end --blocks much.csv");
    expect_lost("compare --repeat 1" SIM "system --draw=all much.csv");
}

/* The object prints, while it is loaded, what is lost; what the command prints itself arrives. */
TEST(lost, it_is_told_though_there_is_room_later) {
    if (access("/dev/full", W_OK) != 0) TEST_SKIP("no /dev/full on this machine");
    (void)write_text("losing.yaml", "load: [" STRATA_BINARY_DIR "/modules/losing.so]\nstack: [losing, system]\n");
    ran_t ran = run_command("check --allow-code losing.yaml");
    EXPECT_EQ(ran.exit_status, 1);
    expect_told("check", ran.errors, "an earlier write failed");
    ran = run_command("explain --allow-code losing.yaml");
    EXPECT_EQ(ran.exit_status, 1);
    EXPECT_CONTAINS(ran.out, "losing: decorator");
    expect_told("explain", ran.errors, "an earlier write failed");
}

TEST(lost, it_is_told_beside_what_else_is_wrong) {
    char arguments[900], said[SAID];
    if (access("/dev/full", W_OK) != 0) TEST_SKIP("no /dev/full on this machine");
    const char *trace = project_trace_path("streams-prefetch.csv.gz");
    snprintf(arguments, sizeof arguments, "compare --check --repeat 1" SIM "paddle %s", trace);
    EXPECT_EQ(run_lost(arguments, said), 1);
    EXPECT_CONTAINS(said, "79 hazards; the first:");
    expect_told(arguments, said, "No space left on device");
}
