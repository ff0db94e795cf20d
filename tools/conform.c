/* strata conform: the conformance suite on the layers of a shared object, each check in a process of its own. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conform/checks.h"
#include "conform/stacks.h"
#include "strategy/code.h"
#include "tools/command.h"

enum { CHECK_SECONDS = 120, TOLD_MOST = 20, RANDOM_STACKS = 4 };

/* ---- in the process of a check ---- */

static unsigned failures;

void strata_test_failed(const char *file, int line, const char *format, ...) {
    const char *slash = strrchr(file, '/');
    va_list arguments;
    if (++failures > TOLD_MOST) return;
    printf("    %s:%d: ", slash ? slash + 1 : file, line);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
}

bool strata_test_has_failed(void) {
    return failures > 0;
}

/* What a check says goes into the pipe; a layer that hangs or crashes takes this process alone with it. */
static _Noreturn void be_the_check(const check_t *check, const subject_t *subject, int pipe_end) {
    (void)dup2(pipe_end, STDOUT_FILENO);
    (void)close(pipe_end);
    (void)alarm(CHECK_SECONDS);
    check->run(subject);
    if (failures > TOLD_MOST) printf("    and %u more\n", failures - TOLD_MOST);
    (void)fflush(stdout);
    _exit(failures ? STRATA_EXIT_FAILED : STRATA_EXIT_DONE);
}

/* ---- in the command ---- */

typedef struct told {
    char text[8192];
    size_t length;
    int how; /* of waitpid() */
} told_t;

/* Takes what fits; the rest is read and dropped, so that the check can end. */
static void hear(int pipe_end, told_t *told) {
    char dropped[1024];
    for (;;) {
        size_t room = sizeof told->text - 1 - told->length;
        ssize_t got = read(pipe_end, room ? told->text + told->length : dropped, room ? room : sizeof dropped);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return;
        if (room) told->length += (size_t)got;
    }
}

static strata_status_t run_check(const check_t *check, const subject_t *subject, told_t *told) {
    int ends[2];
    (void)fflush(stdout);
    if (pipe(ends) != 0) return strata_fail(STRATA_E_IO, 0, "no pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        (void)close(ends[0]);
        be_the_check(check, subject, ends[1]);
    }
    int failed = errno;
    (void)close(ends[1]);
    *told = (told_t){.length = 0};
    if (child > 0) hear(ends[0], told);
    (void)close(ends[0]);
    if (child < 0) return strata_fail(STRATA_E_IO, 0, "no process for a check: %s", strerror(failed));
    while (waitpid(child, &told->how, 0) < 0 && errno == EINTR) {}
    return STRATA_OK;
}

typedef struct count {
    unsigned checks, failed;
} count_t;

static void tell_check(const check_t *check, const subject_t *subject, const told_t *told, bool passed) {
    printf("%-4s %s: %s\n%s", passed ? "ok" : "FAIL", subject->name, check->name, told->text);
    if (WIFSIGNALED(told->how) && WTERMSIG(told->how) == SIGALRM) printf("    not done after %d s\n", CHECK_SECONDS);
    else if (WIFSIGNALED(told->how))
        printf("    ended by signal %d (%s)\n", WTERMSIG(told->how), strsignal(WTERMSIG(told->how)));
}

/* `drawn`: the subject is that stack's, else NULL. */
static strata_status_t check_subject(const subject_t *subject, const drawn_stack_t *drawn, count_t *count) {
    static told_t told;
    unsigned failed = count->failed;
    for (int i = 0; checks[i].name; i++) {
        if (drawn && !stack_is_for(drawn, i)) continue;
        strata_status_t status = run_check(&checks[i], subject, &told);
        if (status != STRATA_OK) return status;
        bool passed = WIFEXITED(told.how) && WEXITSTATUS(told.how) == STRATA_EXIT_DONE;
        count->checks++;
        count->failed += !passed;
        tell_check(&checks[i], subject, &told, passed);
    }
    if (drawn && count->failed > failed) printf("%s was this strategy:\n%s", subject->name, drawn->text);
    return STRATA_OK;
}

/* A layer that fits nowhere can be used nowhere. */
static strata_status_t check_layer(const strata_layer_type_t *type, count_t *count) {
    static subject_t subjects[SUBJECTS];
    static drawn_stack_t drawn;
    size_t subject_count = 0;
    strata_status_t status = STRATA_OK;
    if (subjects_of_layer(subjects, &subject_count, type) == 0) {
        printf("FAIL %s: it may stand in none of the suite's stacks: %s\n", type->name, strata_last_error()->text);
        count->checks++;
        count->failed++;
    }
    for (size_t i = 0; i < subject_count && status == STRATA_OK; i++) status = check_subject(&subjects[i], NULL, count);
    for (uint64_t seed = 1; seed <= RANDOM_STACKS && subject_count > 0 && status == STRATA_OK; seed++)
        if (stack_draw(&drawn, seed, type)) status = check_subject(&drawn.subject, &drawn, count);
    return status;
}

int strata_command_conform(const strata_command_t *self, int argc, char **argv) {
    count_t count = {0};
    if (argc == 0) return strata_wrong_usage(self, "which shared object?");
    for (int i = 0; i < argc; i++) {
        const strata_layer_type_t *const *table;
        if (argv[i][0] == '-') return strata_wrong_usage(self, "unknown argument \"%.40s\"", argv[i]);
        strata_status_t status = strata_code_load(argv[i], &table);
        for (size_t n = 0; status == STRATA_OK && table[n]; n++)
            status = check_layer(strata_layer_find(table[n]->name), &count);
        if (status != STRATA_OK) return strata_tell_failure();
    }
    printf("%u checks, %u failed\n", count.checks, count.failed);
    return count.failed ? STRATA_EXIT_FAILED : STRATA_EXIT_DONE;
}
