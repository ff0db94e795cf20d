/* How the command ends by a signal: nothing half written is left, and nobody that it began runs on. */
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "tests/paths.h"
#include "tests/tools/support/ran.h"

enum { WORDS = 32, PATIENCE_MS = 60000 };

#define BEFORE "{\"schema\": 1, \"what\": \"stood there before\"}\n"

/* ---- a command under way ---- */

/* `errors` takes what the command, and all that it begins, say on standard error; -1: nobody hears it. */
static pid_t begin(const char *const *words, int ignored, int errors) {
    char *argv[WORDS] = {(char *)(uintptr_t)STRATA_COMMAND};
    for (int i = 0; words[i] && i + 2 < WORDS; i++) argv[i + 1] = (char *)(uintptr_t)words[i];
    char folder[256];
    snprintf(folder, sizeof folder, "%s", temporary("."));
    pid_t child = fork();
    if (child != 0) return child;
    int nowhere = open("/dev/null", O_WRONLY);
    if (ignored) (void)signal(ignored, SIG_IGN);
    (void)dup2(nowhere, STDOUT_FILENO);
    (void)dup2(errors < 0 ? nowhere : errors, STDERR_FILENO);
    if (chdir(folder) == 0) (void)execv(STRATA_COMMAND, argv);
    _exit(127);
}

static bool readable(int file) { return poll(&(struct pollfd){.fd = file, .events = POLLIN}, 1, PATIENCE_MS) == 1; }

static int end_of(pid_t child) {
    int how = 0;
    while (waitpid(child, &how, 0) != child) {}
    return how;
}

static size_t count_parts(void) {
    glob_t found;
    char pattern[300];
    snprintf(pattern, sizeof pattern, "%s", temporary("*.part"));
    if (glob(pattern, 0, NULL, &found) != 0) return 0;
    size_t count = found.gl_pathc;
    globfree(&found);
    return count;
}

/* Begins, waits until a file is being written, and sends `number`. */
static int interrupt(const char *const *words, int ignored, int number) {
    char seen[4096] __attribute__((aligned(8)));
    int watch = inotify_init1(IN_CLOEXEC);
    EXPECT_TRUE(watch >= 0 && inotify_add_watch(watch, temporary("."), IN_CREATE) >= 0);
    pid_t child = begin(words, ignored, -1);
    bool begun = false;
    while (!begun && readable(watch)) {
        ssize_t got = read(watch, seen, sizeof seen);
        for (char *at = seen; at < seen + got; at += sizeof(struct inotify_event) + ((struct inotify_event *)(void *)at)->len)
            begun = begun || strstr(((struct inotify_event *)(void *)at)->name, ".part");
    }
    EXPECT_TRUE(begun);
    close(watch);
    if (ignored) (void)kill(child, ignored);
    (void)kill(child, number);
    return end_of(child);
}

static void expect_before(const char *name) {
    size_t count = 0;
    char *bytes = read_bytes(temporary(name), &count);
    EXPECT_TRUE(bytes && count == strlen(BEFORE) && memcmp(bytes, BEFORE, count) == 0);
    free(bytes);
    EXPECT_EQ(count_parts(), 0);
}

/* ---- files ---- */

static const int ending[] = {SIGINT, SIGTERM, SIGHUP};

TEST(signals, a_comparison_that_is_ended_leaves_what_was_there) {
    const char *const words[] = {"compare",    "--device", "sim",    "--repeat",  "1000",
                                 "--strategy", "strata",   "--json", "kept.json", project_trace_path("alexnet-training.csv.gz"),
                                 NULL};
    write_text("kept.json", BEFORE);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
        int how = interrupt(words, 0, ending[i]);
        EXPECT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == ending[i]);
        expect_before("kept.json");
    }
}

/* What `nohup` ignores stays ignored. */
TEST(signals, what_the_caller_ignores_ends_nothing) {
    const char *const words[] = {"compare",    "--device", "sim",    "--repeat",  "1000",
                                 "--strategy", "strata",   "--json", "kept.json", project_trace_path("alexnet-training.csv.gz"),
                                 NULL};
    write_text("kept.json", BEFORE);
    int how = interrupt(words, SIGHUP, SIGTERM);
    EXPECT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGTERM);
    expect_before("kept.json");
}

TEST(signals, a_trace_layer_that_is_ended_leaves_what_was_there) {
    const char *const words[] = {"replay", "--device",   "sim",           "--repeat",
                                 "1000",   "--strategy", "recorded.yaml", project_trace_path("alexnet-training.csv.gz"),
                                 NULL};
    write_text("recorded.csv", BEFORE);
    write_text("recorded.yaml", "stack: [retry, trace: {path: recorded.csv, events: 64}, stream_safe, auto_growth, system]\n");
    int how = interrupt(words, 0, SIGINT);
    EXPECT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGINT);
    EXPECT_EQ(count_parts(), 0);
}

/* A limit that the shell sets ends what does not ignore its signal. */
TEST(signals, a_file_that_grows_too_large_is_taken_away) {
    char command[2048], folder[256];
    write_text("recorded.csv", BEFORE);
    write_text("recorded.yaml", "stack: [retry, trace: {path: recorded.csv, events: 64}, stream_safe, auto_growth, system]\n");
    snprintf(folder, sizeof folder, "%s", temporary("."));
    snprintf(command, sizeof command,
             "cd %s && ulimit -f 2 && exec %s replay --device sim --repeat 1 --strategy recorded.yaml %s 2>&1", folder,
             STRATA_COMMAND, project_trace_path("alexnet-training.csv.gz"));
    FILE *said = popen(command, "r");
    ASSERT_NE(said, NULL);
    int how = pclose(said);
    EXPECT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGXFSZ);
    expect_before("recorded.csv");
}

/* ---- processes ---- */

/* Sends `number` once the command says something on standard error. Whoever else holds that pipe ends too, or it has no end. */
static void expect_all_ended(const char *const *words, int number) {
    int ends[2];
    char said[4096];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = begin(words, 0, ends[1]);
    close(ends[1]);
    EXPECT_TRUE(readable(ends[0]) && read(ends[0], said, sizeof said) > 0);
    (void)kill(child, number);
    int how = end_of(child);
    EXPECT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == number);
    bool ended = false;
    while (!ended && readable(ends[0])) ended = read(ends[0], said, sizeof said) <= 0;
    EXPECT_TRUE(ended);
    close(ends[0]);
}

TEST(signals, no_worker_of_torture_outlives_it) {
    static const char *const words[] = {"torture", "--progress", "--programs", "1000000", "--stacks", "1", "--jobs", "3", NULL};
    static const int numbers[] = {SIGKILL, SIGTERM, SIGINT};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) expect_all_ended(words, numbers[i]);
}

/* The layer says when its check hangs. */
TEST(signals, no_check_of_conform_outlives_it) {
    static const char *const words[] = {"conform", STRATA_BINARY_DIR "/modules/hanging.so", NULL};
    expect_all_ended(words, SIGKILL);
}
