#include "tests/config/refused.h"

#include <stdio.h>

#include "allocation/options/option.h"
#include "tests/harness/files.h"

void expect_refused(const char *yaml, unsigned line, unsigned column, const char *what, const char *write) {
    strata_strategy_t *strategy = NULL;
    char place[64];
    strata_status_t status = strata_config_load(&(strata_config_request_t){.text = yaml}, &strategy);
    if (status != STRATA_E_STRATEGY) {
        FAIL_TEST("%s, and not refused:\n%s", strata_status_name(status), yaml);
        if (status == STRATA_OK) strata_strategy_delete(strategy);
        return;
    }
    const strata_error_t *error = strata_last_error();
    snprintf(place, sizeof place, "<text>:%u:%u: ", line, column);
    bool right = strncmp(error->text, place, strlen(place)) == 0 && error->line == line && error->column == column;
    const char *found = strstr(error->text, what), *mend = strrchr(error->text, ';');
    right = right && found && mend && found < mend + 1 && strstr(mend, write);
    if (!right) FAIL_TEST("wanted %s%s; %s\ngot    %s\nfor\n%s", place, what, write, error->text, yaml);
}

strata_strategy_t *load_request(const strata_config_request_t *request) {
    strata_strategy_t *strategy = NULL;
    strata_status_t status = strata_config_load(request, &strategy);
    if (status == STRATA_OK) return strategy;
    FAIL_TEST("%s: %s", strata_status_name(status), strata_last_error()->text);
    return NULL;
}

strata_strategy_t *load_text(const char *yaml) { return load_request(&(strata_config_request_t){.text = yaml}); }

void expect_unset(const char *yaml, const char *setting, const char *text) {
    strata_strategy_t *strategy = NULL;
    strata_config_request_t request = {.text = yaml, .set = &setting, .set_count = 1};
    EXPECT_STATUS(STRATA_E_STRATEGY, strata_config_load(&request, &strategy));
    if (strcmp(strata_last_error()->text, text) != 0) FAIL_TEST("%s: %s\nnot %s", setting, strata_last_error()->text, text);
}

const char *value_in(const strata_model_stack_t *stack, const char *layer, const char *option) {
    static char text[STRATA_OPTION_TEXT_BYTES];
    for (size_t i = 0; stack && i < stack->count; i++) {
        const strata_option_row_t *row = strata_option_find(stack->layers[i].type, option);
        if (strcmp(stack->layers[i].name, layer) != 0 || !row) continue;
        strata_option_print(row, stack->layers[i].options, text, sizeof text);
        return text;
    }
    return "none";
}

static const strata_model_layer_t *layer_of(const strata_strategy_t *strategy, const char *name) {
    const strata_model_stack_t *stack = &strategy->stacks[STRATA_PLACE_GPU];
    for (size_t i = 0; i < stack->count; i++)
        if (strcmp(stack->layers[i].name, name) == 0) return &stack->layers[i];
    return NULL;
}

const char *value_of(const strata_strategy_t *strategy, const char *name, const char *option) {
    static char text[128];
    const strata_model_layer_t *layer = strategy ? layer_of(strategy, name) : NULL;
    const strata_option_row_t *row = layer ? strata_option_find(layer->type, option) : NULL;
    if (!row) return NULL;
    strata_option_print(row, layer->options, text, sizeof text);
    return text;
}

const strata_origin_t *origin_of(const strata_strategy_t *strategy, const char *name, const char *option) {
    static const strata_origin_t nobody = {.source = STRATA_FROM_DEFAULT};
    const strata_model_layer_t *layer = strategy ? layer_of(strategy, name) : NULL;
    const strata_option_row_t *row = layer ? strata_option_find(layer->type, option) : NULL;
    return row ? &layer->option_origins[row - layer->type->options] : &nobody;
}

const char *file_of(const char *name, const char *text) {
    const char *path = write_text(name, text);
    return path ? path : "(not written)";
}

const char *read_back(FILE *file) {
    static char text[65536];
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

const char *difference_of(const char *first, const char *second) {
    strata_strategy_t *a = load_text(first), *b = load_text(second);
    FILE *out = tmpfile();
    EXPECT_OK(strata_config_diff(a, b, "one", "two", out));
    strata_strategy_delete(a);
    strata_strategy_delete(b);
    return read_back(out);
}
