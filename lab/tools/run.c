/* strata run: runs a CUDA program with a strategy's memory, by LD_PRELOAD. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "doors/preload/table.h"
#include "lab/tools/options/options.h"
#include "lab/tools/run/program.h"

enum { SETTINGS = 64, SETTINGS_ROOM = 8192 };

typedef struct arguments {
    const char *strategy;
    const char *set[SETTINGS];
    size_t set_count;
    const char *report; /* NULL for none, "1" for standard error, or a file */
    bool table;
} arguments_t;

static int parse_set(const strata_parsing_t *parsing, const char *text) {
    arguments_t *a = parsing->into;
    if (a->set_count == SETTINGS) return strata_usage_error(parsing->self, "--set is given more than %d times", SETTINGS);
    if (strchr(text, ','))
        return strata_usage_error(parsing->self, "--set %.60s: write one setting without a comma, and repeat --set for others",
                                  text);
    a->set[a->set_count++] = text;
    return STRATA_EXIT_DONE;
}

static int parse_report(const strata_parsing_t *parsing, const char *file) {
    if (file && !*file) return strata_usage_error(parsing->self, "--report= has no file name");
    ((arguments_t *)parsing->into)->report = file ? file : "1";
    return STRATA_EXIT_DONE;
}

static const strata_option_t options[] = {
    {"--strategy", "NAME|FILE", STRATA_ONCE, strata_parse_text, offsetof(arguments_t, strategy), 0, 0,
     "a preset or a strategy file (STRATA_STRATEGY, else strata)"},
    {"--set", "PATH=VALUE", STRATA_MANY, parse_set, 0, 0, 0, "overrides an option of the strategy"},
    {"--report", "[=FILE]", STRATA_ONCE, parse_report, 0, 0, 0,
     "at the end of each process, writes how many calls of each function Strata and CUDA served, to standard error or to a file; "
     "%p in its name is the process ID"},
    {"--table", NULL, STRATA_ONCE, strata_parse_flag, offsetof(arguments_t, table), 0, 0,
     "prints the table of docs/integrations.md: the intercepted functions and their treatment"},
    STRATA_OPTIONS_END,
};

/* ---- the table ---- */

static int print_table(void) {
    static const char *const treatments[] = {"served", "corrected", "retried", "refused"};
    static const struct {
        strata_treatment_t treatment;
        const char *name, *text;
    } rows[] = {
#define ROW(treatment, name, arguments, passed, text) {STRATA_##treatment, #name, text},
        STRATA_PRELOAD_MAP(ROW)
#undef ROW
    };
    printf("| function | treatment | |\n|---|---|---|\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        printf("| `%s` | %s | %s |\n", rows[i].name, treatments[rows[i].treatment], rows[i].text);
    return STRATA_EXIT_DONE;
}

/* ---- the program's environment ---- */

/* Reports a mistake in the strategy before the program runs. The environment is read as the library will read it. */
static strata_status_t check_strategy(void) {
    strata_strategy_t *strategy = NULL;
    strata_status_t status = strata_config_load(&(strata_config_request_t){.devices = "gpu", .environment = true}, &strategy);
    strata_strategy_delete(strategy);
    return status;
}

/* Finds the library beside the command in a build, else where it is installed. */
static bool find_library(char *path, size_t capacity) {
    static const char *const places[] = {"", "../" STRATA_INSTALL_LIBDIR "/strata/", "../lib/strata/"};
    char command[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", command, sizeof command - 1);
    if (length <= 0) return false;
    command[length] = '\0';
    *strrchr(command, '/') = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        int whole = snprintf(path, capacity, "%s/%slibstrata_preload.so", command, places[i]);
        if (whole > 0 && (size_t)whole < capacity && access(path, R_OK) == 0) return true;
    }
    return false;
}

/* Puts the text in front of the variable's value, separated by `before`. */
static bool prepend_variable(const char *name, const char *text, char before) {
    char whole[SETTINGS_ROOM];
    const char *old = getenv(name);
    int length = old && *old ? snprintf(whole, sizeof whole, "%s%c%s", text, before, old)
                             : snprintf(whole, sizeof whole, "%s", text);
    return length >= 0 && (size_t)length < sizeof whole && setenv(name, whole, 1) == 0;
}

/* Later settings take precedence, so those of the command line follow the environment's. */
static bool add_setting(const char *setting) {
    char whole[SETTINGS_ROOM];
    const char *old = getenv("STRATA_SET");
    int length = snprintf(whole, sizeof whole, "%s%s%s", old ? old : "", old && *old ? "," : "", setting);
    return length >= 0 && (size_t)length < sizeof whole && setenv("STRATA_SET", whole, 1) == 0;
}

/* Makes the path absolute, because processes may change their folder. */
static bool set_report(const char *file) {
    char whole[PATH_MAX], folder[PATH_MAX];
    if (strcmp(file, "1") == 0 || *file == '/') return setenv("STRATA_RUN_REPORT", file, 1) == 0;
    int length = getcwd(folder, sizeof folder) ? snprintf(whole, sizeof whole, "%s/%s", folder, file) : -1;
    return length > 0 && (size_t)length < sizeof whole && setenv("STRATA_RUN_REPORT", whole, 1) == 0;
}

/* Processes append to a shared file, so it starts empty. For a file per process, checks that the folder is writable. */
static int check_report(const strata_command_t *self, const char *file) {
    char folder[PATH_MAX];
    if (strcmp(file, "1") == 0) return STRATA_EXIT_DONE;
    snprintf(folder, sizeof folder, "%s", file);
    char *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = '\0';
    int made = strstr(file, "%p") ? access(slash ? folder : ".", W_OK) : open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (made < 0) return strata_usage_error(self, "--report=%.200s: %s", file, strerror(errno));
    if (!strstr(file, "%p")) close(made);
    return STRATA_EXIT_DONE;
}

static bool prepare(const arguments_t *a, const char *library) {
    bool fits = prepend_variable("LD_PRELOAD", library, ':') && (!a->strategy || setenv("STRATA_STRATEGY", a->strategy, 1) == 0) &&
                (!a->report || set_report(a->report));
    for (size_t i = 0; i < a->set_count && fits; i++) fits = add_setting(a->set[i]);
    return fits;
}

/* ---- the program ---- */

static int check_program(const strata_command_t *self, const char *name) {
    char path[PATH_MAX];
    if (!strata_program_find(name, path, sizeof path)) return strata_usage_error(self, "%.200s: there is no such program", name);
    strata_program_kind_t kind = strata_program_kind(path);
    if (kind == STRATA_PROGRAM_STATIC)
        return strata_usage_error(self, "%.200s is linked statically, so no library can be preloaded into it", path);
    if (kind == STRATA_PROGRAM_OWN_RUNTIME)
        fprintf(
            stderr,
            "strata: %s links its CUDA runtime statically, so its own requests do not reach Strata; those of its libraries may. "
            "Link it with -cudart shared\n",
            path);
    strata_program_preload_t heeded = strata_program_preload_of(path);
    if (heeded != STRATA_PRELOAD_HEEDED)
        fprintf(
            stderr,
            "strata: %s changes user, group or capabilities when it starts (setuid, setgid), so the loader ignores LD_PRELOAD%s\n",
            path,
            heeded == STRATA_PRELOAD_IGNORED ? ", and Strata serves none of its requests" : " unless its own user runs it, as now");
    return STRATA_EXIT_DONE;
}

static int start(const strata_command_t *self, const arguments_t *a, char **program) {
    char library[PATH_MAX + 64];
    int status = check_program(self, program[0]);
    if (status == STRATA_EXIT_DONE && a->report) status = check_report(self, a->report);
    if (status != STRATA_EXIT_DONE) return status;
    if (!find_library(library, sizeof library) || strpbrk(library, " :")) {
        fprintf(
            stderr,
            "strata run: libstrata_preload.so is neither next to the command nor installed, or its path has a blank or a colon\n");
        return STRATA_EXIT_FAILED;
    }
    if (!prepare(a, library)) {
        fprintf(stderr, "strata run: the settings do not fit into the environment\n");
        return STRATA_EXIT_FAILED;
    }
    if (check_strategy() != STRATA_OK) return strata_print_failure();
    fflush(NULL);
    execvp(program[0], program);
    fprintf(stderr, "strata run: %s: %s\n", program[0], strerror(errno));
    return STRATA_EXIT_FAILED;
}

static int run_run(const strata_command_t *self, int argc, char **argv) {
    arguments_t arguments = {.strategy = NULL};
    int words;
    int status = strata_options_read(self, &arguments, argc, argv, &words);
    if (status != STRATA_EXIT_DONE) return status;
    if (arguments.table) return words ? strata_usage_error(self, "--table takes no arguments") : print_table();
    if (words == 0) return strata_usage_error(self, "no program; write -- ./program and its arguments");
    argv[words] = NULL; /* argv ends with NULL, and the words are at its front */
    return start(self, &arguments, argv);
}

const strata_command_t strata_command_run = {
    .name = "run",
    .run = run_run,
    .words = "-- PROGRAM [ARGUMENT...]",
    .help = "runs a CUDA program under a strategy (LD_PRELOAD)",
    .options = options,
    .may_be_empty = true,
    .example = "--strategy pytorch --report -- ./train",
    .more =
        "The strategy serves the memory requests of the program and its libraries: cudaMalloc, cudaMallocAsync, cudaMallocHost, "
        "cudaMallocManaged, their frees, and the corresponding functions of the driver. All other calls go to CUDA. If CUDA is out "
        "of memory, Strata releases its idle memory and repeats the call. docs/integrations.md has the table.\n"
        "\n"
        "With STRATA_BYPASS=1 in the environment, CUDA's own allocator serves, which shows whether a fault is Strata's.\n"
        "\n"
        "The exit status is the program's; 1: it could not be started, 2: wrong usage or strategy."};
