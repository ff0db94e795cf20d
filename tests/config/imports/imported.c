#include "tests/config/imports/imported.h"

#include <stdlib.h>
#include <unistd.h>

imported_t import_string(const char *peer, const char *text, const char *as_of) {
    imported_t made = {.import = NULL};
    size_t told_length, file_length;
    FILE *told = open_memstream(&made.told, &told_length), *file = open_memstream(&made.file, &file_length);
    made.status = strata_import_new(&(strata_import_request_t){.peer = peer, .text = text, .as_of = as_of}, &made.import);
    if (made.status == STRATA_OK)
        made.status = strata_config_load(&(strata_config_request_t){.import = made.import}, &made.strategy);
    if (made.status == STRATA_OK) {
        strata_import_print(made.import, "", told);
        EXPECT_OK(strata_import_write(made.import, made.strategy, file));
    }
    fclose(told);
    fclose(file);
    return made;
}

void delete_imported(imported_t *made) {
    strata_strategy_delete(made->strategy);
    strata_import_delete(made->import);
    free(made->told);
    free(made->file);
}

imported_t import_right(const char *peer, const char *text, const char *as_of) {
    imported_t made = import_string(peer, text, as_of);
    if (made.status != STRATA_OK) FAIL_TEST("%s \"%s\": %s", peer, text, strata_last_error()->text);
    return made;
}

void expect_not_imported(const char *peer, const char *text, const char *as_of, const char *what) {
    imported_t made CLOSED_BY(delete_imported) = import_string(peer, text, as_of);
    if (made.status != STRATA_E_STRATEGY || !strstr(strata_last_error()->text, what))
        FAIL_TEST("%s \"%.200s\": %s, \"%s\" and not \"%s\"", peer, text, strata_status_name(made.status),
                  made.status == STRATA_OK ? "" : strata_last_error()->text, what);
}

void expect_round_trip(const imported_t *made) {
    FILE *errors = tmpfile(), *difference = tmpfile();
    char name[64];
    snprintf(name, sizeof name, "imported.%ld.yaml", (long)getpid());
    const char *path = file_of(name, made->file);
    strata_strategy_t *again = NULL;
    EXPECT_EQ(strata_config_check(path, false, errors), 0);
    EXPECT_STREQ(read_back(errors), "");
    EXPECT_OK(strata_config_load(&(strata_config_request_t){.file = path}, &again));
    if (again) EXPECT_OK(strata_config_diff(made->strategy, again, "a", "b", difference));
    EXPECT_CONTAINS(read_back(difference), "no difference");
    strata_strategy_delete(again);
    (void)remove(path);
}

const char *layers_in(const strata_strategy_t *strategy, strata_place_kind_t place) {
    static char names[256];
    const strata_model_stack_t *stack = &strategy->stacks[place];
    names[0] = '\0';
    for (size_t i = 0; i < stack->count; i++) {
        if (i > 0) strcat(names, " ");
        strcat(names, stack->layers[i].type->name);
    }
    return names;
}
