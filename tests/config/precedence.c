/* What lies over what, and where each value says it came from. */
#include <stdlib.h>
#include <unistd.h>

#include "tests/config/refused.h"
#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "tests/paths.h"

static void expect_from(const strata_strategy_t *strategy, const char *value, strata_source_of_value_t source, const char *file,
                        uint32_t line) {
    const strata_origin_t *origin = origin_of(strategy, "auto_growth", "chunk_size");
    EXPECT_STREQ(value_of(strategy, "auto_growth", "chunk_size"), value);
    EXPECT_EQ(origin->source, source);
    EXPECT_EQ(origin->line, line);
    if (file) EXPECT_STREQ(origin->file, file);
}

TEST(precedence, each_source_lies_over_the_one_before) {
    const char *file = file_of("precedence.yaml", "stack:\n  - auto_growth:\n      chunk_size: 4MiB\n  - system\n");
    const char *set[] = {"auto_growth.chunk_size=6MiB", "auto_growth.chunk_size=7MiB"};
    strata_config_request_t request = {.text = "stack: [auto_growth, system]"};
    strata_strategy_t *strategy = load_request(&request);
    expect_from(strategy, "0", STRATA_FROM_DEFAULT, NULL, 0);
    strata_strategy_delete(strategy);

    strategy = load_request(&(strata_config_request_t){.preset = "strata-malloc", .environment = true});
    expect_from(strategy, "20MiB", STRATA_FROM_PRESET, "preset strata-malloc", 11);
    strata_strategy_delete(strategy);

    request = (strata_config_request_t){.file = file};
    strategy = load_request(&request);
    expect_from(strategy, "4MiB", STRATA_FROM_FILE, file, 3);
    EXPECT_EQ(origin_of(strategy, "auto_growth", "chunk_size")->column, 19);
    EXPECT_STREQ(strategy->name, "precedence");
    strata_strategy_delete(strategy);

    setenv("STRATA_SET", ",, auto_growth.chunk_size=5MiB ,, auto_growth.order=any,", 1);
    request.environment = true;
    strategy = load_request(&request);
    expect_from(strategy, "5MiB", STRATA_FROM_ENVIRONMENT, "STRATA_SET", 0);
    EXPECT_STREQ(value_of(strategy, "auto_growth", "order"), "any");
    strata_strategy_delete(strategy);
    request.environment = false;
    strategy = load_request(&request);
    expect_from(strategy, "4MiB", STRATA_FROM_FILE, file, 3);
    strata_strategy_delete(strategy);
    request.environment = true;

    request.set = set;
    request.set_count = 2;
    strategy = load_request(&request);
    expect_from(strategy, "7MiB", STRATA_FROM_COMMAND, "--set", 0);
    strata_strategy_delete(strategy);
    unsetenv("STRATA_SET");
}

TEST(precedence, the_environment_names_a_preset_or_a_file) {
    setenv("STRATA_STRATEGY", "paddle", 1);
    strata_strategy_t *strategy = load_request(&(strata_config_request_t){.environment = true});
    EXPECT_STREQ(strategy->name, "paddle");
    EXPECT_STREQ(strategy->peer, "paddle develop of 2025-01");
    strata_strategy_delete(strategy);

    setenv("STRATA_STRATEGY", file_of("mine.yaml", "strategy: of the file\nstack: [system]\n"), 1);
    strategy = load_request(&(strata_config_request_t){.environment = true});
    EXPECT_STREQ(strategy->name, "of the file");
    strata_strategy_delete(strategy);

    strategy = load_request(&(strata_config_request_t){.environment = true, .preset = "system"});
    EXPECT_STREQ(strategy->name, "system");
    strata_strategy_delete(strategy);

    strategy = load_request(&(strata_config_request_t){.environment = false});
    EXPECT_STREQ(strategy->name, "strata");
    strata_strategy_delete(strategy);

    setenv("STRATA_STRATEGY", "", 1);
    strategy = load_request(&(strata_config_request_t){.environment = true});
    EXPECT_STREQ(strategy ? strategy->name : "none", "strata");
    if (strategy) strata_strategy_delete(strategy);

    setenv("STRATA_STRATEGY", "padle", 1);
    strategy = NULL;
    EXPECT_STATUS(STRATA_E_STRATEGY, strata_config_load(&(strata_config_request_t){.environment = true}, &strategy));
    EXPECT_STREQ(strata_last_error()->text,
                 "STRATA_STRATEGY: \"padle\" is neither a preset nor a file; write paddle, or a file's path");
    EXPECT_EQ(strategy, NULL);
    unsetenv("STRATA_STRATEGY");
}

/* However short it is. */
TEST(precedence, a_name_without_a_folder_may_be_a_file_of_the_current_folder) {
    char before[4096];
    ASSERT_NE(getcwd(before, sizeof before), NULL);
    (void)file_of("s", "strategy: of one letter\nstack: [system]\n");
    ASSERT_EQ(chdir(temporary(".")), 0);
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text("extends: s\n");
    EXPECT_EQ(chdir(before), 0);
    EXPECT_STREQ(strategy ? strategy->stacks[STRATA_PLACE_GPU].layers[0].name : "none", "system");
}

TEST(precedence, devices_can_be_said_by_the_caller) {
    strata_strategy_t *strategy = load_text("stack: [system]\ndevices: sim:a100\n");
    EXPECT_STREQ(strategy->devices, "sim:a100");
    EXPECT_EQ(strategy->devices_origin.line, 2);
    strata_strategy_delete(strategy);
    strategy = load_request(&(strata_config_request_t){.text = "stack: [system]\ndevices: sim:a100\n", .devices = "gpu:1"});
    EXPECT_STREQ(strategy->devices, "gpu:1");
    EXPECT_EQ(strategy->devices_origin.source, STRATA_FROM_COMMAND);
    strata_strategy_delete(strategy);
    strategy = load_text("stack: [system]\n");
    EXPECT_STREQ(strategy->devices, "gpu");
    strata_strategy_delete(strategy);
    EXPECT_SAYS(STRATA_E_STRATEGY, strata_config_load(&(strata_config_request_t){.devices = "sim:c300"}, &strategy),
                "--device: there is no profile \"c300\"");
}

TEST(precedence, a_strategy_extends_another) {
    char text[1200];
    strata_strategy_t *strategy = load_text("extends: paddle\nplaces: {host: [system]}\n");
    EXPECT_STREQ(strategy->name, "text");
    EXPECT_STREQ(strategy->peer, "paddle develop of 2025-01");
    EXPECT_STREQ(value_of(strategy, "stream_safe", "event"), "use");
    EXPECT_EQ(strategy->stacks[STRATA_PLACE_HOST].count, 1);
    EXPECT_EQ(strategy->stacks[STRATA_PLACE_HOST].origin.source, STRATA_FROM_FILE);
    EXPECT_EQ(strategy->stacks[STRATA_PLACE_PINNED].count, 2); /* of paddle */
    EXPECT_EQ(strategy->stacks[STRATA_PLACE_MANAGED].count, 4); /* of strata, as paddle has none */
    strata_strategy_delete(strategy);

    file_of("base.yaml", "description: the base\nextends: paddle\nstack:\n  - auto_growth: {chunk_size: 3MiB}\n  - system\n");
    strategy = load_request(&(strata_config_request_t){.file = file_of("upper.yaml", "extends: base.yaml\ndevices: sim\n")});
    EXPECT_STREQ(strategy->name, "upper");
    EXPECT_STREQ(strategy->description, "the base");
    EXPECT_STREQ(strategy->devices, "sim");
    EXPECT_STREQ(value_of(strategy, "auto_growth", "chunk_size"), "3MiB");
    EXPECT_CONTAINS(origin_of(strategy, "auto_growth", "chunk_size")->file, "base.yaml");
    strata_strategy_delete(strategy);

    strategy = NULL;
    const char *circle = file_of("circle.yaml", "extends: circle.yaml\n");
    EXPECT_STATUS(STRATA_E_STRATEGY, strata_config_load(&(strata_config_request_t){.file = circle}, &strategy));
    snprintf(text, sizeof text, "%s:1:10: files extend each other more than 8 deep, or in a cycle; write the stack here", circle);
    EXPECT_STREQ(strata_last_error()->text, text);
}

/* Options beside a text's own stack stay, before or after it. Options beside the stack that a text extends go with that stack. */
TEST(precedence, a_stack_without_virtual_memory_goes_with_its_own) {
    static const struct {
        const char *text;
        size_t count;
    } rows[] = {{"stack: [auto_growth_vmm, vmm]\nwithout_virtual_memory: {stack: [system]}\n", 1},
                {"without_virtual_memory: {stack: [system]}\nstack: [auto_growth_vmm, vmm]\n", 1},
                {"extends: plain_below.yaml\n", 1},
                {"extends: plain_below.yaml\nstack: [system]\n", 0}};
    (void)file_of("plain_below.yaml", rows[0].text);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_request(
            &(strata_config_request_t){.file = file_of("plain_above.yaml", rows[i].text)});
        ASSERT_NE(strategy, NULL);
        EXPECT_EQ(strategy->named[STRATA_NAMED_PLAIN].count, rows[i].count);
    }
}

TEST(precedence, files_extend_one_another_eight_deep) {
    char name[32], text[64];
    const char *path = file_of("deep0.yaml", "peer: the last\n");
    for (int i = 1; i <= 9; i++) {
        snprintf(name, sizeof name, "deep%d.yaml", i);
        snprintf(text, sizeof text, "extends: deep%d.yaml\n", i - 1);
        path = file_of(name, text);
        if (i != 8) continue;
        strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_request(&(strata_config_request_t){.file = path});
        EXPECT_STREQ(strategy->peer, "the last");
    }
    strata_strategy_t *strategy = NULL;
    EXPECT_SAYS(STRATA_E_STRATEGY, strata_config_load(&(strata_config_request_t){.file = path}, &strategy),
                "deep1.yaml:1:10: files extend each other more than 8 deep");
}

TEST(precedence, one_alone_of_preset_file_and_text) {
    strata_strategy_t *strategy = NULL;
    EXPECT_STATUS(STRATA_E_INVALID, strata_config_load(&(strata_config_request_t){.preset = "strata", .text = ""}, &strategy));
    EXPECT_SAYS(STRATA_E_IO, strata_config_load(&(strata_config_request_t){.file = "no/such/file.yaml"}, &strategy),
                "no/such/file.yaml: cannot read the file: No such file");
    EXPECT_STATUS(STRATA_E_IO, strata_config_load(&(strata_config_request_t){.file = STRATA_SOURCE_DIR}, &strategy));
    EXPECT_STATUS(STRATA_E_STRATEGY, strata_config_load(&(strata_config_request_t){.preset = "padle"}, &strategy));
    EXPECT_STREQ(strata_last_error()->text, "there is no preset \"padle\"; write paddle");
}
