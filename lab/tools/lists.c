/* The commands that print lists. */
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "lab/replay/run/figures.h"
#include "lab/tools/options/named.h"
#include "lab/tools/options/options.h"
#include "lab/tools/screen/terminal.h"
#include "platform/text/printable.h"
#include "strategy/registry/code.h"

enum { WIDTH = 80, ONE_LINE = 10000, SETS = 64 };

#define ALLOW_CODE(type, member)                                                                                                   \
    {                                                                                                                              \
        "--allow-code", NULL, STRATA_ONCE, strata_parse_flag, offsetof(type, member), 0, 0,                                        \
            "lets strategies load shared objects with layers (load:), which runs their code"                                       \
    }

/* ---- check ---- */

typedef struct check {
    bool allow_code;
} check_t;

static const strata_option_t check_options[] = {ALLOW_CODE(check_t, allow_code), STRATA_OPTIONS_END};

static int run_check(const strata_command_t *self, int argc, char **argv) {
    check_t check = {.allow_code = false};
    size_t wrong = 0;
    int files;
    int status = strata_options_read(self, &check, argc, argv, &files);
    if (status != STRATA_EXIT_DONE) return status;
    if (files == 0) return strata_usage_error(self, "no file; write a strategy file, such as mine.yaml");
    for (int i = 0; i < files; i++)
        if (strata_preset_text(argv[i]) && access(argv[i], F_OK) != 0)
            return strata_usage_error(self, "%s is a preset, not a file; strata explain %s shows it", argv[i], argv[i]);
    for (int i = 0; i < files; i++) wrong += strata_config_check(argv[i], check.allow_code, stderr);
    return wrong ? STRATA_EXIT_USAGE : STRATA_EXIT_DONE;
}

const strata_command_t strata_command_check = {
    .name = "check",
    .run = run_check,
    .words = "FILE...",
    .help = "checks strategy files; prints nothing if they are valid",
    .options = check_options,
    .example = "mine.yaml",
    .more = "Prints a line for each error, file:line:column, on standard error. Exit status: 0 good, 2 wrong."};

/* ---- layers ---- */

typedef struct layers {
    bool markdown;
} layers_t;

static int parse_load(const strata_parsing_t *parsing, const char *path) {
    (void)parsing;
    return strata_code_load(path, NULL) == STRATA_OK ? STRATA_EXIT_DONE : strata_print_failure();
}

static const strata_option_t layers_options[] = {
    {"--markdown", NULL, STRATA_ONCE, strata_parse_flag, offsetof(layers_t, markdown), 0, 0, "prints docs/layers.md"},
    {"--load", "FILE.so", STRATA_MANY, parse_load, 0, 0, 0, "also lists the layers of a shared object, which runs its code"},
    STRATA_OPTIONS_END,
};

/* An unknown name is the caller's fault; output that cannot be written is not. */
static int print_layer(const char *name) {
    strata_status_t status = strata_config_layer(stdout, name, strata_terminal_width(WIDTH));
    return status == STRATA_E_IO ? strata_check_written(status) : status == STRATA_OK ? STRATA_EXIT_DONE : strata_print_failure();
}

static int run_layers(const strata_command_t *self, int argc, char **argv) {
    layers_t layers = {.markdown = false};
    int names;
    int status = strata_options_read(self, &layers, argc, argv, &names);
    if (status != STRATA_EXIT_DONE) return status;
    if (layers.markdown && names > 0)
        return strata_usage_error(self, "--markdown prints all layers; write it without %.40s", argv[0]);
    if (names == 0) return strata_check_written(strata_config_layers(stdout, layers.markdown));
    for (int i = 0; i < names && status == STRATA_EXIT_DONE; i++) {
        if (i > 0) putchar('\n');
        status = print_layer(argv[i]);
    }
    return status;
}

const strata_command_t strata_command_layers = {.name = "layers",
                                                .run = run_layers,
                                                .words = "[NAME]...",
                                                .help = "lists the layers and their options, or describes one layer",
                                                .options = layers_options,
                                                .example = "auto_growth"};

/* ---- presets, grammar, fields ---- */

static int run_presets(const strata_command_t *self, int argc, char **argv) {
    int names;
    int status = strata_options_read(self, NULL, argc, argv, &names);
    if (status != STRATA_EXIT_DONE) return status;
    if (names > 1) return strata_usage_error(self, "takes one name");
    if (names == 0) return strata_check_written(strata_config_presets(stdout, strata_terminal_width(ONE_LINE)));
    const char *text = strata_preset_text(argv[0]);
    if (!text) {
        (void)strata_config_no_preset(argv[0]);
        return strata_print_failure();
    }
    fputs(text, stdout);
    return STRATA_EXIT_DONE;
}

const strata_command_t strata_command_presets = {.name = "presets",
                                                 .run = run_presets,
                                                 .words = "[NAME]",
                                                 .help = "lists the presets, or prints one as a strategy file",
                                                 .example = "strata"};

static int run_grammar(const strata_command_t *self, int argc, char **argv) {
    int words;
    int status = strata_options_read(self, NULL, argc, argv, &words);
    if (status != STRATA_EXIT_DONE) return status;
    if (words > 0) return strata_usage_error(self, "takes no arguments");
    return strata_check_written(strata_config_grammar(stdout));
}

const strata_command_t strata_command_grammar = {
    .name = "grammar", .run = run_grammar, .words = "", .help = "explains strategy files (docs/strategy.md)", .example = ""};

enum { FIELDS_ROOM = 1 << 16 };

static int run_fields(const strata_command_t *self, int argc, char **argv) {
    int words;
    int status = strata_options_read(self, NULL, argc, argv, &words);
    if (status != STRATA_EXIT_DONE) return status;
    if (words > 0) return strata_usage_error(self, "takes no arguments");
    /* The buffer has room for everything, because text that cannot be written in between is lost without a reason. */
    static char room[FIELDS_ROOM];
    (void)setvbuf(stdout, room, _IOFBF, sizeof room);
    strata_figures_page(stdout);
    return STRATA_EXIT_DONE;
}

const strata_command_t strata_command_fields = {.name = "fields",
                                                .run = run_fields,
                                                .words = "",
                                                .help = "explains the figures of a comparison (docs/fields.md)",
                                                .example = ""};

/* ---- diff ---- */

typedef struct differing {
    bool allow_code;
} differing_t;

static const strata_option_t diff_options[] = {ALLOW_CODE(differing_t, allow_code), STRATA_OPTIONS_END};

static int run_diff(const strata_command_t *self, int argc, char **argv) {
    strata_strategy_t *strategies[2] = {NULL, NULL};
    differing_t differing = {.allow_code = false};
    int words;
    int exit_status = strata_options_read(self, &differing, argc, argv, &words);
    if (exit_status != STRATA_EXIT_DONE) return exit_status;
    strata_status_t status = STRATA_OK;
    if (words != 2) return strata_usage_error(self, "needs two strategies: strata diff A B");
    for (int i = 0; i < 2 && status == STRATA_OK; i++) {
        strata_config_request_t request = {.allow_code = differing.allow_code};
        strata_named_strategy(argv[i], &request);
        status = strata_config_load(&request, &strategies[i]);
    }
    for (int i = 0; i < 2; i++) strata_make_printable(argv[i], false);
    exit_status = status == STRATA_OK
                      ? strata_check_written(strata_config_diff(strategies[0], strategies[1], argv[0], argv[1], stdout))
                      : strata_print_failure();
    for (int i = 0; i < 2; i++) strata_strategy_delete(strategies[i]);
    return exit_status;
}

const strata_command_t strata_command_diff = {
    .name = "diff",
    .run = run_diff,
    .words = "NAME|FILE NAME|FILE",
    .options = diff_options,
    .help = "shows the differences between two strategies",
    .example = "strata mine.yaml",
    .more = "Prints layers that only one of them has, and values that differ, each with its origin. STRATA_SET of the environment "
            "is ignored. Exit status: 0 done, 2 wrong."};

/* ---- explain ---- */

typedef struct explaining {
    strata_config_request_t request;
    const char *set[SETS];
    bool only_set;
} explaining_t;

static int parse_set(const strata_parsing_t *parsing, const char *value) {
    explaining_t *explaining = parsing->into;
    if (!strchr(value, '=')) return strata_usage_error(parsing->self, "--set needs PATH=VALUE");
    if (explaining->request.set_count == SETS) return strata_usage_error(parsing->self, "--set is given more than %d times", SETS);
    explaining->set[explaining->request.set_count++] = value;
    return STRATA_EXIT_DONE;
}

static const strata_option_t explain_options[] = {
    {"--set", "PATH=VALUE", STRATA_MANY, parse_set, 0, 0, 0, "sets an option"},
    {"--short", NULL, STRATA_ONCE, strata_parse_flag, offsetof(explaining_t, only_set), 0, 0,
     "leaves out values that are defaults of the layers"},
    ALLOW_CODE(explaining_t, request.allow_code),
    STRATA_OPTIONS_END,
};

static int explain(const explaining_t *explaining) {
    strata_strategy_t *strategy = NULL;
    strata_status_t status = strata_config_load(&explaining->request, &strategy);
    int exit_status = STRATA_EXIT_DONE;
    if (status != STRATA_OK) exit_status = strata_print_failure();
    else if (explaining->only_set) exit_status = strata_check_written(strata_config_explain_short(strategy, stdout));
    else exit_status = strata_check_written(strata_config_explain(strategy, stdout));
    strata_strategy_delete(strategy);
    return exit_status;
}

static int run_explain(const strata_command_t *self, int argc, char **argv) {
    explaining_t explaining = {.request = {.environment = true}};
    int words;
    explaining.request.set = explaining.set;
    int status = strata_options_read(self, &explaining, argc, argv, &words);
    if (status != STRATA_EXIT_DONE) return status;
    if (words > 1) return strata_usage_error(self, "takes one strategy; strata diff compares two");
    if (words == 1) strata_named_strategy(argv[0], &explaining.request);
    return explain(&explaining);
}

const strata_command_t strata_command_explain = {
    .name = "explain",
    .run = run_explain,
    .words = "[NAME|FILE]",
    .help = "prints each stack as built, with the origin of every value",
    .options = explain_options,
    .example = "mine.yaml --short",
    .more = "STRATA_SET of the environment applies. Without a name, STRATA_STRATEGY is explained, or else the preset strata."};
