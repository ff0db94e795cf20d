/* strata import: converts settings of other allocators to a strategy. */
#include <string.h>

#include "config/config.h"
#include "config/import/import.h"
#include "lab/tools/options/options.h"

static int print_strategy(const strata_import_request_t *request) {
    strata_import_t *import = NULL;
    strata_strategy_t *strategy = NULL;
    strata_status_t status = strata_import_new(request, &import);
    if (status == STRATA_OK) status = strata_config_load(&(strata_config_request_t){.import = import}, &strategy);
    int exit_status = status == STRATA_OK ? strata_check_written(strata_import_write(import, strategy, stdout))
                                          : strata_print_failure();
    if (exit_status == STRATA_EXIT_DONE) strata_import_print(import, "", stderr);
    strata_strategy_delete(strategy);
    strata_import_delete(import);
    return exit_status;
}

typedef struct arguments {
    const char *as_of;
    bool markdown;
} arguments_t;

static const strata_option_t options[] = {
    {"--as-of", "VERSION", STRATA_ONCE, strata_parse_text, offsetof(arguments_t, as_of), 0, 0,
     "accepts only the keys of one version"},
    {"--markdown", NULL, STRATA_ONCE, strata_parse_flag, offsetof(arguments_t, markdown), 0, 0,
     "prints docs/import.md: every key and what it becomes"},
    STRATA_OPTIONS_END,
};

static int run_import(const strata_command_t *self, int argc, char **argv) {
    arguments_t arguments = {.as_of = NULL};
    int words;
    int status = strata_options_read(self, &arguments, argc, argv, &words);
    if (status != STRATA_EXIT_DONE) return status;
    if (arguments.markdown && words > 0) return strata_usage_error(self, "--markdown takes no arguments");
    if (arguments.markdown) return strata_check_written(strata_import_page(stdout));
    if (words == 0) return strata_usage_error(self, "no allocator; write pytorch, paddle or tensorflow");
    if (words > 2) return strata_usage_error(self, "takes one string; put it in quotes");
    return print_strategy(
        &(strata_import_request_t){.peer = argv[0], .text = words > 1 ? argv[1] : NULL, .as_of = arguments.as_of});
}

const strata_command_t strata_command_import = {
    .name = "import",
    .run = run_import,
    .words = "pytorch|paddle|tensorflow [STRING]",
    .help = "converts the settings of another allocator to a strategy",
    .options = options,
    .may_be_empty = true,
    .example = "pytorch max_split_size_mb:128",
    .more = "STRING is the value of PYTORCH_CUDA_ALLOC_CONF, or NAME=VALUE NAME=VALUE; without it, the variables of the "
            "environment are read. The strategy goes to standard output. Settings without an equivalent are also reported on "
            "standard error. In a running program, the strategy import:pytorch reads the environment.\n"
            "\n"
            "Exit status: 0 done, 2 a wrong string."};
