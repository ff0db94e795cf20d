/* strata conform: runs the conformance suite on the layers of a shared object, with a process for each check. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "allocation/options/option.h"
#include "lab/conform/checks.h"
#include "lab/conform/stacks.h"
#include "lab/tools/options/options.h"
#include "lab/torture/isolated.h"
#include "platform/clock.h"
#include "platform/text/nearest.h"
#include "strategy/model.h"
#include "strategy/registry/code.h"

enum { REPORTED_MAX = 20, RANDOM_STACKS = 4, LOOK_MILLISECONDS = 100, HANGS_MAX = 3 };
#define LIMIT_DEFAULT UINT64_C(5000000000)
#define LIMIT_MAX     UINT64_C(86400000000000)

typedef struct arguments {
    uint64_t seed, limit_ns; /* limit_ns: time limit of one check */
    const char *only; /* a pattern, or NULL for every check */
    const char *explain;
} arguments_t;

/* ---- in the process of a check ---- */

static unsigned failures;

/* The user does not have Strata's source tree. The line has the violated rule, and --explain has the reason for the check. */
void strata_test_failed(const char *file, int line, const char *format, ...) {
    va_list arguments;
    (void)file, (void)line;
    if (++failures > REPORTED_MAX) return;
    printf("    ");
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
}

bool strata_test_has_failed(void) { return failures > 0; }

/* The report of a check's process, in memory shared with it and through the pipe. */
typedef struct outcome {
    bool done; /* set at the end of the check, because the code that it runs may call exit() */
    bool skipped;
    bool hung; /* the command killed the process at the limit */
    int how; /* the status from waitpid() */
    size_t length;
    char reason[1024]; /* why the check was skipped */
    char text[8192];
} outcome_t;

static outcome_t *this_check;

static void skip_check(const char *reason) {
    (void)fflush(stdout);
    this_check->skipped = true;
    snprintf(this_check->reason, sizeof this_check->reason, "%s", reason);
    this_check->done = true;
    _exit(STRATA_EXIT_DONE);
}

/* The output of a check goes into the pipe. A layer that hangs or crashes ends only this process. */
static _Noreturn void run_in_child(const check_t *check, const subject_t *subject, int pipe_end, outcome_t *outcome) {
    (void)dup2(pipe_end, STDOUT_FILENO);
    (void)close(pipe_end);
    this_check = outcome;
    conform_skip = skip_check;
    check->run(subject);
    if (failures > REPORTED_MAX) printf("    and %u more\n", failures - REPORTED_MAX);
    (void)fflush(stdout);
    outcome->done = true;
    _exit(failures ? STRATA_EXIT_FAILED : STRATA_EXIT_DONE);
}

/* ---- in the command ---- */

/* Reads once. Keeps the bytes that fit and drops the rest, so that the check can end. Returns true if more may follow. */
static bool read_output(int pipe_end, outcome_t *outcome) {
    char dropped[1024];
    size_t room = sizeof outcome->text - 1 - outcome->length;
    ssize_t got = read(pipe_end, room ? outcome->text + outcome->length : dropped, room ? room : sizeof dropped);
    if (got > 0 && room) outcome->length += (size_t)got;
    return got > 0 || (got < 0 && errno == EINTR);
}

/* Waits for the process of the check, not for the end of the pipe, because processes that a layer left
 * running keep the pipe open. The limit is enforced here, because a layer may block signals in the process of
 * the check. */
static void wait_for_check(pid_t child, int pipe_end, uint64_t limit_ns, outcome_t *outcome) {
    struct pollfd end = {.fd = pipe_end, .events = POLLIN};
    uint64_t begin = strata_real_now();
    pid_t ended = 0;
    while ((ended = waitpid(child, &outcome->how, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
        if (!outcome->hung && strata_real_now() - begin >= limit_ns) {
            outcome->hung = true;
            (void)kill(child, SIGKILL);
        }
        /* The pipe usually closes just before the process ends. */
        if (poll(&end, 1, end.fd < 0 ? 1 : LOOK_MILLISECONDS) > 0 && !read_output(pipe_end, outcome)) end.fd = -1;
    }
    while (end.fd >= 0 && poll(&end, 1, 0) > 0 && read_output(pipe_end, outcome)) {}
}

static strata_status_t run_check(const check_t *check, const subject_t *subject, uint64_t limit_ns, outcome_t *outcome) {
    int ends[2];
    (void)fflush(stdout);
    if (pipe(ends) != 0) return strata_fail(STRATA_E_IO, 0, "cannot create a pipe: %s", strerror(errno));
    memset(outcome, 0, sizeof *outcome);
    pid_t child = torture_fork();
    if (child == 0) {
        (void)close(ends[0]);
        run_in_child(check, subject, ends[1], outcome);
    }
    int failed = errno;
    (void)close(ends[1]);
    if (child > 0) wait_for_check(child, ends[0], limit_ns, outcome);
    (void)close(ends[0]);
    return child > 0 ? STRATA_OK : strata_fail(STRATA_E_IO, 0, "cannot start a process for a check: %s", strerror(failed));
}

typedef struct count {
    const arguments_t *arguments;
    unsigned checks, failed, skipped;
    unsigned hung; /* checks of the current layer that hung */
} count_t;

static void skip(count_t *count, const char *subject, const char *check, const char *reason) {
    printf("skip %s%s%s: %s\n", subject, *check ? ": " : "", check, reason);
    count->skipped++;
}

static void print_failure(const check_t *check, const subject_t *subject, const outcome_t *outcome, uint64_t limit_ns) {
    torture_verdict_t verdict;
    printf("FAIL %s: %s\n%s", subject->name, check->name, outcome->text);
    if (outcome->hung) {
        printf("    did not end within %g s; --limit TIME changes the limit\n", (double)limit_ns / 1e9);
    } else if (!outcome->done || !WIFEXITED(outcome->how)) {
        torture_describe_exit(outcome->how, 0, &verdict);
        printf("    %s\n", verdict.text);
    }
    printf("    to see what it requires: strata conform --explain %s\n", check->name);
}

static void count_check(const check_t *check, const subject_t *subject, const outcome_t *outcome, count_t *count) {
    bool passed = !outcome->hung && outcome->done && WIFEXITED(outcome->how) && WEXITSTATUS(outcome->how) == STRATA_EXIT_DONE;
    if (passed && outcome->skipped) {
        skip(count, subject->name, check->name, outcome->reason);
        return;
    }
    count->checks++;
    count->failed += !passed;
    count->hung += outcome->hung;
    if (passed) printf("ok   %s: %s\n%s", subject->name, check->name, outcome->text);
    else print_failure(check, subject, outcome, count->arguments->limit_ns);
}

static bool has_hung(const count_t *count) { return count->hung >= HANGS_MAX; }

static bool is_wanted(const count_t *count, const check_t *check) {
    return !count->arguments->only || strata_pattern_matches(count->arguments->only, check->name);
}

/* `drawn` is the stack of the subject, or NULL if the subject was not drawn. */
static strata_status_t check_subject(const subject_t *subject, const drawn_stack_t *drawn, count_t *count) {
    unsigned failed = count->failed, left_out = 0;
    strata_status_t status = STRATA_OK;
    outcome_t *outcome = torture_shared_new(sizeof *outcome);
    if (!outcome) return STRATA_E_HOST_MEMORY;
    for (int i = 0; checks[i].name && status == STRATA_OK && !has_hung(count); i++) {
        if (!is_wanted(count, &checks[i])) continue;
        if (drawn && !stack_is_for(drawn, i)) {
            left_out++;
            continue;
        }
        const char *unfit = check_unsupported(i, drawn ? drawn->layers : subject->layers);
        if (unfit) {
            skip(count, subject->name, checks[i].name, unfit);
            continue;
        }
        status = run_check(&checks[i], subject, count->arguments->limit_ns, outcome);
        if (status == STRATA_OK) count_check(&checks[i], subject, outcome, count);
    }
    torture_shared_delete(outcome, sizeof *outcome);
    if (left_out)
        printf("skip %s: %u checks: %s\n", subject->name, left_out,
               subject->may_refuse ? "a layer of the stack is set to refuse requests"
                                   : "a source of the stack serves memory that is not device memory");
    count->skipped += left_out;
    if (drawn && count->failed > failed) printf("%s was this strategy:\n%s", subject->name, drawn->text);
    return status;
}

static void skip_refused(void *context, const char *subject) { skip(context, subject, "", strata_last_error()->text); }

/* A layer without any possible check has not passed. */
static strata_status_t check_layer(const strata_layer_type_t *type, count_t *count) {
    static subject_t subjects[SUBJECTS];
    static drawn_stack_t drawn;
    size_t subject_count = 0;
    unsigned before = count->checks;
    strata_status_t status = STRATA_OK;
    count->hung = 0;
    (void)subjects_of_layer(subjects, &subject_count, type, skip_refused, count);
    (void)subject_on_top(subjects, &subject_count, type, skip_refused, count);
    for (size_t i = 0; i < subject_count && status == STRATA_OK; i++) status = check_subject(&subjects[i], NULL, count);
    uint64_t first = (count->arguments->seed - 1) * RANDOM_STACKS + 1;
    for (uint64_t i = first; i < first + RANDOM_STACKS && status == STRATA_OK && !has_hung(count); i++) {
        if (stack_draw(&drawn, i, type)) status = check_subject(&drawn.subject, &drawn, count);
        else skip(count, type->name, "", "no legal random stack with this layer was found");
    }
    if (has_hung(count))
        printf("stop %s: %d checks did not end within %g s each, so its remaining checks are skipped\n", type->name, HANGS_MAX,
               (double)count->arguments->limit_ns / 1e9);
    if (count->checks > before || status != STRATA_OK) return status;
    printf("FAIL %s: no check could run\n", type->name);
    count->checks++;
    count->failed++;
    return STRATA_OK;
}

/* ---- the command line ---- */

static const char *check_word(size_t index, const void *unused) {
    (void)unused;
    return checks[index].name;
}

/* The message has the nearest check and the list of all checks. */
static int refuse_check(const strata_command_t *self, const char *option, const char *name) {
    char all[1800] = "";
    size_t count = 0, length = 0;
    for (; checks[count].name && length < sizeof all; count++)
        length += (size_t)snprintf(all + length, sizeof all - length, "%s%s", count ? ", " : "", checks[count].name);
    const char *near = strata_nearest_word(name, count, check_word, NULL);
    return strata_usage_error(self, "%s %.60s: there is no such check%s%s; the checks are %s", option, name,
                              near ? "; the nearest is " : "", near ? near : "", all);
}

static int parse_only(const strata_parsing_t *parsing, const char *value) {
    arguments_t *a = parsing->into;
    a->only = value;
    for (size_t i = 0; checks[i].name; i++)
        if (strata_pattern_matches(value, checks[i].name)) return STRATA_EXIT_DONE;
    return refuse_check(parsing->self, "--only", value);
}

static int parse_limit(const strata_parsing_t *parsing, const char *value) {
    arguments_t *a = parsing->into;
    if (strata_parse_time(value, &a->limit_ns) != STRATA_OK)
        return strata_usage_error(parsing->self, "--limit: %s", strata_last_error()->text);
    if (a->limit_ns == 0 || a->limit_ns > LIMIT_MAX)
        return strata_usage_error(parsing->self, "--limit %.40s: write a time from 1ns to 86400s", value);
    return STRATA_EXIT_DONE;
}

static const strata_option_t options[] = {
    {"--seed", "N", STRATA_ONCE, strata_parse_number, offsetof(arguments_t, seed), 1, UINT32_MAX,
     "seed of the random stacks and requests (1)"},
    {"--only", "CHECK", STRATA_ONCE, parse_only, 0, 0, 0, "runs only this check; * matches any characters, as in \"the_bottom_*\""},
    {"--limit", "TIME", STRATA_ONCE, parse_limit, 0, 0, 0,
     "time limit of one check (5s); a layer that exceeds it three times is not checked further"},
    {"--explain", "CHECK", STRATA_ONCE, strata_parse_text, offsetof(arguments_t, explain), 0, 0,
     "explains a check and runs none; all prints docs/conform.md"},
    STRATA_OPTIONS_END,
};

static int explain(const strata_command_t *self, const char *name) {
    if (strcmp(name, "all") == 0) {
        checks_print(stdout);
        return STRATA_EXIT_DONE;
    }
    const check_t *check = checks;
    while (check->name && strcmp(check->name, name) != 0) check++;
    if (!check->name) return refuse_check(self, "--explain", name);
    printf("%s\n\n%s\n", check->name, check->text);
    return STRATA_EXIT_DONE;
}

static int run_conform(const strata_command_t *self, int argc, char **argv) {
    arguments_t arguments = {.seed = 1, .limit_ns = LIMIT_DEFAULT};
    count_t count = {.arguments = &arguments};
    int objects;
    int result = strata_options_read(self, &arguments, argc, argv, &objects);
    if (result != STRATA_EXIT_DONE) return result;
    if (arguments.explain) return explain(self, arguments.explain);
    if (objects == 0) return strata_usage_error(self, "no shared object; write one, such as ./libmine.so");
    conform_seed = arguments.seed - 1;
    for (int i = 0; i < objects; i++) {
        const strata_layer_type_t *const *table;
        strata_status_t status = strata_code_load(argv[i], &table);
        for (size_t n = 0; status == STRATA_OK && table[n]; n++) status = check_layer(strata_layer_find(table[n]->name), &count);
        if (status != STRATA_OK) return strata_print_failure();
    }
    printf("%u checks, %u failed", count.checks, count.failed);
    if (count.skipped) printf(", %u skipped", count.skipped);
    printf("\n");
    return count.failed ? STRATA_EXIT_FAILED : STRATA_EXIT_DONE;
}

const strata_command_t strata_command_conform = {
    .name = "conform",
    .run = run_conform,
    .words = "FILE.so...",
    .help = "runs the conformance suite on the layers of shared objects",
    .options = options,
    .example = "./libmine.so",
    .more = "Loads each object, which runs its code, and checks its layers in the stacks that may contain them. The device is "
            "simulated, and all options have their defaults. Prints a line for each check. A check that does not apply to a stack "
            "is skipped, and its line has the reason (docs/conform.md).\n"
            "\n"
            "Exit status: 0 all checks passed, 1 one failed, 2 the object or its layers cannot be loaded."};
