#include "tests/tools/support/ran.h"
#include "tests/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness/files.h"
#include "tests/harness/test.h"

char *written_text(const char *name) {
    size_t count = 0;
    char *text = read_bytes(temporary(name), &count);
    if (text) text[count] = '\0';
    return text;
}

const char *command_path(void) {
    const char *named = getenv("STRATA_TEST_COMMAND");
    return named ? named : STRATA_COMMAND;
}

/* Runs `words` of a shell in the test's folder, by env(1) with these variables. */
static ran_t run_words(const char *variables, const char *words) {
    static char *last_out, *last_errors;
    char command[16384], folder[256];
    snprintf(folder, sizeof folder, "%s", temporary("."));
    snprintf(command, sizeof command,
             "cd %s && env -u STRATA_SET -u STRATA_STRATEGY -u COLUMNS %s %s > out.txt 2> errors.txt < /dev/null", folder,
             variables, words);
    setenv("TRACES", STRATA_SOURCE_DIR "/traces", 1);
    int status = system(command);
    free(last_out);
    free(last_errors);
    ran_t ran = {.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1};
    ran.out = last_out = written_text("out.txt");
    ran.errors = last_errors = written_text("errors.txt");
    return ran;
}

static ran_t run(const char *arguments, va_list list) {
    char rest[4096], words[8192];
    vsnprintf(rest, sizeof rest, arguments, list);
    char *dashes = strstr(rest, " -- ");
    if (dashes) *dashes = '\0';
    snprintf(words, sizeof words, "%s %s", command_path(), dashes ? dashes + 4 : rest);
    return run_words(dashes ? rest : "", words);
}

/* A second time it is there already. */
static void link_once(const char *target, const char *name) {
    const char *path = temporary(name);
    if (symlink(target, path) != 0 && errno != EEXIST) FAIL_TEST("%s cannot be linked", path);
}

ran_t run_line(const char *line) {
    char variables[512];
    if (mkdir(temporary("bin"), 0777) != 0 && errno != EEXIST) FAIL_TEST("no folder for the command");
    link_once(command_path(), "bin/strata");
    link_once(STRATA_SOURCE_DIR "/traces", "traces");
    write_text("line.sh", line);
    snprintf(variables, sizeof variables, "PATH=\"%s:$PATH\"", temporary("bin"));
    return run_words(variables, "sh line.sh");
}

ran_t run_command(const char *arguments, ...) {
    va_list list;
    va_start(list, arguments);
    ran_t ran = run(arguments, list);
    va_end(list);
    return ran;
}

ran_t run_command_well(const char *file, int line, const char *arguments, ...) {
    va_list list;
    va_start(list, arguments);
    ran_t ran = run(arguments, list);
    va_end(list);
    if (ran.exit_status != 0) strata_test_failed(file, line, "it ended with %d: %s", ran.exit_status, ran.errors);
    return ran;
}

void expect_wrong_use(const char *arguments, const char *part) {
    ran_t ran = run_command("%s", arguments);
    if (ran.exit_status != 2 || !strstr(ran.errors, part) || ran.out[0])
        FAIL_TEST("strata %s ended with %d: \"%s\" is not in \"%s\", or \"%s\" is printed", arguments, ran.exit_status, part,
                  ran.errors, ran.out);
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* `parts` ends with NULL, or after `count`. */
static void expect_parts(const char *arguments, const char *text, const char *const *parts, size_t count) {
    for (size_t i = 0; i < count && parts[i]; i++) {
        bool whole = parts[i][0] == '=', none = parts[i][0] == '\0';
        if (whole || none ? strcmp(text, parts[i] + whole) != 0 : !strstr(text, parts[i]))
            FAIL_TEST("strata %s: \"%s\" is not what is in \"%s\"", arguments, parts[i], text);
    }
}

void expect_session(const session_t *session) {
    for (size_t i = 0; i < COUNT(session->files) && session->files[i][0]; i++)
        write_text(session->files[i][0], session->files[i][1]);
    if (session->prepare) session->prepare();
    for (const run_t *run = session->runs; run < session->runs + COUNT(session->runs) && run->arguments; run++) {
        ran_t ran = run_command("%s", run->arguments);
        if (ran.exit_status != run->exit_status)
            FAIL_TEST("strata %s ended with %d, not %d: %s", run->arguments, ran.exit_status, run->exit_status, ran.errors);
        expect_parts(run->arguments, ran.out, run->out, COUNT(run->out));
        expect_parts(run->arguments, ran.errors, run->errors, COUNT(run->errors));
        for (size_t i = 0; i < COUNT(run->lacks) && run->lacks[i]; i++)
            if (strstr(ran.out, run->lacks[i])) FAIL_TEST("strata %s: \"%s\" is in \"%s\"", run->arguments, run->lacks[i], ran.out);
    }
    for (size_t i = 0; i < COUNT(session->wrong) && session->wrong[i][0]; i++)
        expect_wrong_use(session->wrong[i][0], session->wrong[i][1]);
}

const char *project_trace_path(const char *name) {
    static char paths[4][1024];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof *paths, "%s/traces/%s", STRATA_SOURCE_DIR, name);
    return path;
}

const char *run_on_terminal(const char *line) {
    static char text[65536];
    size_t length = 0;
    int master = posix_openpt(O_RDWR | O_NOCTTY), slave = -1;
    if (master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0) slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    if (slave < 0) {
        if (master >= 0) close(master);
        return NULL;
    }
    pid_t child = fork();
    if (child == 0) {
        dup2(slave, STDOUT_FILENO);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    close(slave);
    /* Linux can report the end of a terminal while its last bytes are still under way. They are there once the child has ended. */
    for (bool ended = false;;) {
        ssize_t got = read(master, text + length, sizeof text - 1 - length);
        if (got > 0) {
            length += (size_t)got;
        } else {
            if (ended) break;
            ended = waitpid(child, NULL, 0) == child;
        }
    }
    text[length] = '\0';
    close(master);
    return text;
}
