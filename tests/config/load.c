#include "tests/config/refused.h"

TEST(config, presets_load_and_plan) {
    size_t count = 0;
    for (const char *name; (name = strata_preset_name(count)); count++) {
        strata_strategy_t *strategy = NULL;
        ASSERT_OK(strata_config_load(&(strata_config_request_t){.preset = name}, &strategy));
        EXPECT_STREQ(strategy->name, name);
        for (strata_place_kind_t place = STRATA_PLACE_GPU; place < STRATA_PLACE_KINDS; place++) {
            strata_plan_t plan;
            EXPECT_OK(strata_strategy_plan(strategy, place, &plan));
            EXPECT_EQ(plan.count, strategy->stacks[place].count);
        }
        strata_strategy_delete(strategy);
    }
    EXPECT_GE(count, 3);
}

TEST(config, a_text_means_the_same_in_a_file_as_in_a_setting) {
    static const char *const set[] = {"trace.path=  a b "};
    strata_strategy_t *file = load_text("stack: [trace: {path: \"  a b \"}, system]\n");
    strata_strategy_t *setting =
        load_request(&(strata_config_request_t){.text = "stack: [trace, system]\n", .set = set, .set_count = 1});
    EXPECT_STREQ(value_of(file, "trace", "path"), "a b");
    EXPECT_STREQ(value_of(setting, "trace", "path"), "a b");
    strata_strategy_delete(file);
    strata_strategy_delete(setting);
}
