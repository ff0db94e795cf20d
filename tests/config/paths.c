/* Values by path: which layer is meant, and the nearest path when none is. */
#include "tests/config/refused.h"
#include "tests/harness/owned.h"

static const char two_caches[] = "stack:\n"
                                 "  - auto_growth: {name: small}\n"
                                 "  - auto_growth: {name: large}\n"
                                 "  - system\n";

TEST(paths, name_a_layer_by_type_or_name) {
    static const strata_origin_t origin = {.source = STRATA_FROM_COMMAND, .file = "--set"};
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text(two_caches);
    EXPECT_OK(strata_strategy_set(strategy, "small.chunk_size", "1MiB", &origin));
    EXPECT_OK(strata_strategy_set(strategy, "stack.large.chunk_size", "2MiB", &origin));
    EXPECT_STREQ(value_of(strategy, "small", "chunk_size"), "1MiB");
    EXPECT_STREQ(value_of(strategy, "large", "chunk_size"), "2MiB");
    EXPECT_OK(strata_strategy_set(strategy, "gpu.large.chunk_size", "3MiB", &origin));
    EXPECT_STREQ(value_of(strategy, "large", "chunk_size"), "3MiB");
    EXPECT_OK(strata_strategy_set(strategy, "pinned.auto_growth.order", "address", &origin));
    EXPECT_EQ(strategy->stacks[STRATA_PLACE_PINNED].layers[2].option_origins[2].source, STRATA_FROM_COMMAND);
}

TEST(paths, of_another_place_stay_there) {
    static const strata_origin_t origin = {.source = STRATA_FROM_COMMAND, .file = "--set"};
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_request(&(strata_config_request_t){.preset = "paddle"});
    strata_strategy_t *other CLOSED_BY(strategy_cleanup) = load_request(&(strata_config_request_t){.preset = "paddle"});
    EXPECT_OK(strata_strategy_set(strategy, "managed.retry.timeout", "7s", &origin));
    EXPECT_STREQ(value_of(strategy, "retry", "timeout"), "10s");
    EXPECT_OK(strata_strategy_set(strategy, "retry.timeout", "8s", &origin));
    EXPECT_STREQ(value_of(strategy, "retry", "timeout"), "8s");
    EXPECT_STREQ(value_of(other, "retry", "timeout"), "10s");
}

TEST(paths, misspelt_ones_name_the_nearest) {
    expect_unset("stack: [auto_growth, system]", "auto_grwoth.chunk=1",
                 "--set: the stack of the place gpu has no layer \"auto_grwoth\"; write auto_growth.chunk_size");
    expect_unset("stack: [auto_growth, system]", "auto_growth.chunk_syze=1",
                 "--set: \"auto_growth\" has no option \"chunk_syze\"; write auto_growth.chunk_size");
    expect_unset("stack: [auto_growth, system]", "pined.auto_growth.chunk_size=1",
                 "--set: there is no place \"pined\"; write pinned.auto_growth.chunk_size");
    expect_unset("stack: [auto_growth, system]", "stack.zzzzzzz.chunk_size=1",
                 "--set: the stack of the place gpu has no layer \"zzzzzzz\"; its layers are auto_growth, system");
    expect_unset(
        "stack: [retry, system]", "retry.zzzzzzz=1",
        "--set: \"retry\" has no option \"zzzzzzz\"; its options are timeout, wait_first, patience, depth, deepest, slack, steps");
    expect_unset("stack: [auto_growth, system]", "stack.auto_growth.chunk_size=20MB",
                 "--set: stack.auto_growth.chunk_size: \"20MB\": unknown unit \"MB\"; write 20MiB");
    expect_unset(
        two_caches, "auto_growth.chunk_size=1",
        "--set: \"auto_growth.chunk_size\" matches two layers, \"small\" (line 2) and \"large\" (line 3); give them names with "
        "\"name:\" and write NAME.chunk_size");
}

TEST(paths, of_a_wrong_form_are_refused) {
    static const char *const forms[] = {"chunk_size=1", "=1", ".=1", "a..b=1", "a.b.c.d=1", ".chunk_size=1", "auto_growth.=1"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        strata_strategy_t *strategy = NULL;
        const char *set[] = {forms[i]};
        EXPECT_SAYS(STRATA_E_STRATEGY, strata_config_load(&(strata_config_request_t){.set = set, .set_count = 1}, &strategy),
                    "is not an option path; write LAYER.OPTION or PLACE.LAYER.OPTION");
    }
    expect_unset("stack: [system]", "system",
                 "--set: \"system\" is not a setting; write PATH=VALUE, as in auto_growth.chunk_size=32MiB");
}

/* Names of which one is the beginning of another: layers, and layers beside a type. */
TEST(paths, a_name_is_no_beginning_of_another) {
    static const char *const names[] = {"a", "ab", "abc"};
    for (size_t i = 0; i < 3; i++) {
        char setting[64];
        const char *set[] = {setting};
        snprintf(setting, sizeof setting, "%s.chunk_size=6MiB", names[i]);
        strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_request(&(strata_config_request_t){
            .text = "stack: [auto_growth: {name: a}, auto_growth: {name: ab}, auto_growth: {name: abc}, system]",
            .set = set,
            .set_count = 1});
        ASSERT_NE(strategy, NULL);
        for (size_t k = 0; k < 3; k++) EXPECT_STREQ(value_of(strategy, names[k], "chunk_size"), k == i ? "6MiB" : "0");
    }
    expect_unset("stack: [auto_growth: {name: a}, system]", "abcdefgh.chunk_size=1MiB",
                 "--set: the stack of the place gpu has no layer \"abcdefgh\"; its layers are a, system");
}

/* A setting may have 511 letters; a longer one is not a setting. */
TEST(paths, a_setting_has_five_hundred_letters) {
    char setting[513];
    const char *set[] = {setting};
    for (size_t letters = 511; letters <= 512; letters++) {
        strata_strategy_t *strategy = NULL;
        snprintf(setting, sizeof setting, "%0*d=1", (int)letters - 2, 0);
        EXPECT_EQ(strlen(setting), letters);
        EXPECT_SAYS(STRATA_E_STRATEGY, strata_config_load(&(strata_config_request_t){.set = set, .set_count = 1}, &strategy),
                    letters == 511 ? "is not an option path" : "is not a setting");
    }
}

TEST(paths, can_be_asked_for) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text(two_caches);
    EXPECT_TRUE(strata_strategy_has(strategy, "small.chunk_size"));
    EXPECT_TRUE(strata_strategy_has(strategy, "pinned.auto_growth.chunk_size"));
    EXPECT_TRUE(strata_strategy_has(strategy, "auto_growth.chunk_size"));
    strata_fail(STRATA_E_BUSY, 0, "as before");
    EXPECT_FALSE(strata_strategy_has(strategy, "retry.timeout"));
    EXPECT_FALSE(strata_strategy_has(strategy, "small.chunk"));
    EXPECT_FALSE(strata_strategy_has(strategy, "nowhere.small.chunk_size"));
    EXPECT_FALSE(strata_strategy_has(strategy, "chunk_size"));
    EXPECT_STREQ(strata_last_error()->text, "as before");
}
