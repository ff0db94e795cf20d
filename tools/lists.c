/* The commands that print what there is. */
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "platform/printable.h"
#include "replay/figures.h"
#include "strategy/code.h"
#include "tools/command.h"
#include "tools/named.h"

#define ALLOW_CODE "--allow-code"

int strata_command_check(const strata_command_t *self, int argc, char **argv) {
    size_t wrong = 0;
    int files = 0;
    bool allow_code = false;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], ALLOW_CODE) == 0) allow_code = true;
        else argv[files++] = argv[i];
    }
    if (files == 0) return strata_wrong_usage(self, "which file?");
    for (int i = 0; i < files; i++) wrong += strata_config_check(argv[i], allow_code, stderr);
    return wrong ? STRATA_EXIT_WRONG : STRATA_EXIT_DONE;
}

int strata_command_layers(const strata_command_t *self, int argc, char **argv) {
    bool markdown = false;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--markdown") == 0) {
            markdown = true;
        } else if (strcmp(argv[i], "--load") == 0 && i + 1 < argc) {
            if (strata_code_load(argv[++i], NULL) != STRATA_OK) return strata_tell_failure();
        } else {
            return strata_wrong_usage(self, "unknown argument \"%.40s\"", argv[i]);
        }
    }
    return strata_tell_written(strata_config_layers(stdout, markdown));
}

int strata_command_grammar(const strata_command_t *self, int argc, char **argv) {
    (void)argv;
    if (argc > 0) return strata_wrong_usage(self, "takes no arguments");
    return strata_tell_written(strata_config_grammar(stdout));
}

int strata_command_presets(const strata_command_t *self, int argc, char **argv) {
    if (argc > 1) return strata_wrong_usage(self, "one name at most");
    if (argc == 0) {
        for (size_t i = 0; strata_preset_name(i); i++) puts(strata_preset_name(i));
        return STRATA_EXIT_DONE;
    }
    const char *text = strata_preset_text(argv[0]);
    if (!text) return strata_wrong_usage(self, "there is no preset \"%.40s\"", argv[0]);
    fputs(text, stdout);
    return STRATA_EXIT_DONE;
}

int strata_command_fields(const strata_command_t *self, int argc, char **argv) {
    (void)argv;
    if (argc > 0) return strata_wrong_usage(self, "takes no arguments");
    strata_figures_page(stdout);
    return STRATA_EXIT_DONE;
}

int strata_command_diff(const strata_command_t *self, int argc, char **argv) {
    strata_strategy_t *strategies[2] = {NULL, NULL};
    strata_status_t status = STRATA_OK;
    if (argc != 2) return strata_wrong_usage(self, "two strategies, please");
    for (int i = 0; i < 2 && status == STRATA_OK; i++) {
        strata_config_request_t request = {.preset = NULL};
        strata_named_strategy(argv[i], &request);
        status = strata_config_load(&request, &strategies[i]);
    }
    for (int i = 0; i < 2; i++) strata_make_printable(argv[i], false);
    int exit_status = status == STRATA_OK
                          ? strata_tell_written(strata_config_diff(strategies[0], strategies[1], argv[0], argv[1], stdout))
                          : strata_tell_failure();
    for (int i = 0; i < 2; i++) strata_strategy_delete(strategies[i]);
    return exit_status;
}

static int explain(const strata_config_request_t *request) {
    strata_strategy_t *strategy = NULL;
    strata_status_t status = strata_config_load(request, &strategy);
    int exit_status = status == STRATA_OK ? strata_tell_written(strata_config_explain(strategy, stdout)) : strata_tell_failure();
    strata_strategy_delete(strategy);
    return exit_status;
}

int strata_command_explain(const strata_command_t *self, int argc, char **argv) {
    enum { MOST = 64 };
    const char *set[MOST];
    strata_config_request_t request = {.set = set, .environment = true};
    bool named = false;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--set") == 0) {
            if (i + 1 == argc || !strchr(argv[i + 1], '=')) return strata_wrong_usage(self, "--set wants PATH=VALUE");
            if (request.set_count == MOST) return strata_wrong_usage(self, "more than %d --set", MOST);
            set[request.set_count++] = argv[++i];
        } else if (strcmp(argv[i], ALLOW_CODE) == 0) {
            request.allow_code = true;
        } else if (argv[i][0] == '-' || named) {
            return strata_wrong_usage(self, "unknown argument \"%.40s\"", argv[i]);
        } else {
            strata_named_strategy(argv[i], &request);
            named = true;
        }
    }
    return explain(&request);
}
