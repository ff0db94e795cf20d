/* `load:`: shared objects with layers, loaded where that is allowed. */
#include <stdio.h>
#include <stdlib.h>

#include "config/config.h"
#include "strategy/registry/code.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/paths.h"

#define MODULES STRATA_BINARY_DIR "/modules"

static strata_status_t load(const char *yaml, bool allowed, strata_strategy_t **strategy) {
    return strata_config_load(&(strata_config_request_t){.text = yaml, .allow_code = allowed}, strategy);
}

static void expect_code_refused(const char *yaml, unsigned line, unsigned column, const char *what) {
    strata_strategy_t *strategy = NULL;
    EXPECT_STATUS(STRATA_E_STRATEGY, load(yaml, true, &strategy));
    EXPECT_EQ(strata_last_error()->line, line);
    EXPECT_EQ(strata_last_error()->column, column);
    EXPECT_CONTAINS(strata_last_error()->text, what);
}

TEST(code, is_loaded_only_where_that_is_allowed) {
    static const char yaml[] = "version: 1\nload: [" MODULES "/my_layer.so]\nstack: [my_quota, system]\n";
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = NULL;
    EXPECT_SAYS(STRATA_E_STRATEGY, load(yaml, false, &strategy), "<text>:2:1: the strategy would load code");
    EXPECT_EQ(strata_layer_find("my_quota"), NULL);
    ASSERT_OK(load(yaml, true, &strategy));
    EXPECT_STREQ(strategy->stacks[STRATA_PLACE_GPU].layers[0].type->name, "my_quota");
}

TEST(code, the_order_of_keys_is_free_and_loading_again_changes_nothing) {
    strata_strategy_t *strategy = NULL;
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(load("stack: [retry, my_quota: {most: 3GiB}, system]\nload: [" MODULES "/my_layer.so]\n", true, &strategy));
        const strata_model_layer_t *layer = &strategy->stacks[STRATA_PLACE_GPU].layers[1];
        EXPECT_EQ(*(const uint64_t *)layer->options, 3ull << 30);
        EXPECT_EQ(layer->option_origins[0].line, 1);
        strata_strategy_delete(strategy);
    }
    size_t found = 0;
    for (size_t i = 0; strata_layer_at(i); i++) found += strcmp(strata_layer_at(i)->name, "my_quota") == 0;
    EXPECT_EQ(found, 1);
}

static const char *file_of(const char *name, const char *text) {
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", MODULES, name);
    FILE *file = fopen(path, "w");
    EXPECT_TRUE(file && fputs(text, file) >= 0 && fclose(file) == 0);
    return path;
}

TEST(code, a_list_and_its_paths_have_an_end) {
    static char yaml[8192];
    size_t length = (size_t)sprintf(yaml, "stack: [system]\nload: [");
    for (int i = 0; i < 65; i++) length += (size_t)sprintf(yaml + length, "a.so, ");
    sprintf(yaml + length, "b.so]\n");
    expect_code_refused(yaml, 2, 1, "more than 64 objects to load");
    length = (size_t)sprintf(yaml, "stack: [system]\nload: [");
    memset(yaml + length, 'a', 4096);
    strcpy(yaml + length + 4096, "]\n");
    expect_code_refused(yaml, 2, 8, "the path is longer than 4095 bytes");
}

TEST(code, paths_begin_at_the_folder_of_the_file) {
    strata_strategy_t *strategy = NULL;
    const char *path = file_of("beside.yaml", "load: [my_layer.so]\nstack: [my_quota, system]\n");
    ASSERT_OK(strata_config_load(&(strata_config_request_t){.file = path, .allow_code = true}, &strategy));
    EXPECT_STREQ(strategy->stacks[STRATA_PLACE_GPU].layers[0].type->doc, "limits the bytes of each stream");
    strata_strategy_delete(strategy);
    EXPECT_STATUS(STRATA_E_STRATEGY, load("load: [my_layer.so]\nstack: [system]\n", true, &strategy));
}

TEST(code, what_cannot_be_loaded_is_told_with_its_place) {
    expect_code_refused("load: [" MODULES "/no_such.so]\nstack: [system]\n", 1, 8, "no_such.so");
    expect_code_refused("load: [no_such.so]\nstack: [system]\n", 1, 8, "./no_such.so");
    expect_code_refused("load:\n  - " MODULES "/nothing.so\nstack: [system]\n", 2, 5, "no table strata_layers");
    expect_code_refused("load:\n  - " MODULES "/empty.so\nstack: [system]\n", 2, 5, "table strata_layers is empty");
    expect_code_refused("load:\n  - " MODULES "/taken.so\nstack: [untaken, system]\n", 2, 5, "a layer \"retry\" already");
    EXPECT_EQ(strata_layer_find("untaken"), NULL);
    expect_code_refused("load: some.so\nstack: [system]\n", 1, 1, "a list of shared objects");
    expect_code_refused("load: [[a]]\nstack: [system]\n", 1, 8, "must be a file path");
    expect_code_refused("load: ['']\nstack: [system]\n", 1, 8, "must be a file path");
}

TEST(code, checking_a_file_asks_for_leave_too) {
    char *text CLOSED_BY(text_cleanup) = NULL;
    size_t length = 0;
    const char *path = file_of("loads.yaml", "load: [" MODULES "/older.so]\nstack: [older, system]\n");
    FILE *out = open_memstream(&text, &length);
    ASSERT_TRUE(out);
    EXPECT_GT(strata_config_check(path, false, out), 0);
    EXPECT_EQ(strata_config_check(path, true, out), 0);
    fclose(out);
    EXPECT_CONTAINS(text, "loads.yaml:1:1: the strategy would load code");
}

TEST(code, a_layer_of_an_older_header_is_served) {
    const strata_layer_type_t *const *table;
    ASSERT_OK(strata_code_load(MODULES "/older.so", &table));
    EXPECT_LT(table[0]->struct_size, sizeof(strata_layer_type_t));
    const strata_layer_type_t *older = strata_layer_find("older");
    ASSERT_TRUE(older);
    EXPECT_TRUE(older->check == NULL && older->allocate == table[0]->allocate);
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = NULL;
    ASSERT_OK(load("stack: [older, system]\n", false, &strategy));
    strata_plan_t plan;
    EXPECT_OK(strata_strategy_plan(strategy, STRATA_PLACE_GPU, &plan));
}
