/* strata import: strings of other allocators. */
#include <string.h>

#include "config/config.h"
#include "config/import/import.h"
#include "tools/command.h"

static int print_strategy(const strata_import_request_t *request) {
    strata_import_t *import = NULL;
    strata_strategy_t *strategy = NULL;
    strata_status_t status = strata_import_new(request, &import);
    if (status == STRATA_OK) status = strata_config_load(&(strata_config_request_t){.import = import}, &strategy);
    int exit_status = status == STRATA_OK ? strata_tell_written(strata_import_write(import, strategy, stdout))
                                          : strata_tell_failure();
    if (exit_status == STRATA_EXIT_DONE) (void)strata_import_tell(import, "", stderr);
    strata_strategy_delete(strategy);
    strata_import_delete(import);
    return exit_status;
}

int strata_command_import(const strata_command_t *self, int argc, char **argv) {
    strata_import_request_t request = {.peer = NULL};
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--as-of") == 0) {
            if (i + 1 == argc) return strata_wrong_usage(self, "--as-of wants a version");
            request.as_of = argv[++i];
        } else if (argv[i][0] == '-' && strcmp(argv[i], "--markdown") != 0) {
            return strata_wrong_usage(self, "unknown argument \"%.40s\"", argv[i]);
        } else if (!request.peer) {
            request.peer = argv[i];
        } else if (!request.text) {
            request.text = argv[i];
        } else {
            return strata_wrong_usage(self, "one string at most: put it in quotes");
        }
    }
    if (!request.peer) return strata_wrong_usage(self, "whose string? pytorch, paddle or tensorflow");
    if (strcmp(request.peer, "--markdown") == 0) return strata_tell_written(strata_import_page(stdout));
    return print_strategy(&request);
}
