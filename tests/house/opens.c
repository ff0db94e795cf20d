/* Files are opened by name in few places, so that what is promised of reading and writing them holds everywhere. */
#include "tests/harness/test.h"
#include "tests/house/house.h"

/* Each with the one reason why it may. */
static const char *const may_open[] = {
    "platform/host/file.c", /* what is read */
    "trace/text/output.c", /* what is written */
    "trace/text/partial.c", /* what was being written when a signal ended the command */
    "strategy/registry/code.c", /* layers from outside */
    "platform/cuda/driver/cuda_driver.c", /* the driver */
    "doors/preload/real.c", /* libraries that the process has loaded already */
    "lab/tools/run.c", /* the program to run */
    NULL,
};

static void check_opens(const char *path, const char *text, report_t *report) {
    static const char *const calls[] = {"open",   "openat", "creat",   "fopen", "freopen", "gzopen", "mkstemp", "dlopen", "rename",
                                        "remove", "unlink", "opendir", "popen", "system",  "execv",  "execvp",  "socket", NULL};
    report_calls(path, text, calls, may_open, report);
}

TEST(house, files_are_opened_in_few_places) { expect_clean(c_files, check_opens); }

TEST(house, files_opened_rule_can_fail) {
    expect_found(check_opens, "config/x.c", "int f = open(path, 0);\n", "config/x.c: calls open()");
    expect_found(check_opens, "lab/tools/x.c", "if (!fopen(path, \"r\")) return;\n", "calls fopen()");
    expect_found(check_opens, "facade/x.c", "\tsystem(\"rm\");\n", "calls system()");
    expect_nothing(check_opens, "platform/host/file.c", "int f = open(path, 0);\n");
    expect_nothing(check_opens, "tests/x.c", "int f = open(path, 0);\n");
    expect_nothing(check_opens, "config/x.c", "reader_open(path); self->open(path); /* as open() does */\n");
}

/* ---- signals belong to the program ---- */

static const char *const may_handle[] = {"lab/tools/screen/signals.c", NULL};

static void check_signals(const char *path, const char *text, report_t *report) {
    static const char *const calls[] = {"signal", "sigaction", "sigset", "sigwait", "signalfd", NULL};
    report_calls(path, text, calls, may_handle, report);
}

TEST(house, signals_are_handled_by_the_command_alone) {
    expect_clean(c_files, check_signals);
    expect_found(check_signals, "facade/x.c", "(void)signal(SIGINT, end);\n", "facade/x.c: calls signal()");
    expect_found(check_signals, "lab/tools/x.c", "if (sigaction(SIGINT, &a, NULL)) return;\n", "calls sigaction()");
    expect_nothing(check_signals, "lab/tools/screen/signals.c", "sigaction(SIGINT, &a, NULL);\n");
}

/* ---- so does its end: but a thread of the library has to stop before the driver does ---- */

static const char *const may_end[] = {"facade/open/worker.c", NULL};

static void check_ends(const char *path, const char *text, report_t *report) {
    static const char *const calls[] = {"atexit", "on_exit", NULL};
    report_calls(path, text, calls, may_end, report);
}

TEST(house, the_end_of_the_process_is_the_programs) {
    expect_clean(c_files, check_ends);
    expect_found(check_ends, "facade/x.c", "(void)atexit(end);\n", "facade/x.c: calls atexit()");
    expect_nothing(check_ends, "facade/open/worker.c", "(void)atexit(stop_all);\n");
}
