#include "config/config.h"
#include "platform/status.h"
#include "tests/harness/test.h"

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
