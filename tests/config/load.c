#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocation/options/option.h"
#include "tests/config/refused.h"
#include "tests/harness/owned.h"

/* With those of all routes. */
static size_t count_layers(const strata_model_stack_t *stack) {
    size_t count = stack->count;
    for (size_t i = 0; i < stack->count; i++)
        for (size_t b = 0; b < stack->layers[i].branch_count; b++) count += count_layers(&stack->layers[i].branches[b]);
    return count;
}

TEST(config, presets_load_and_plan) {
    size_t count = 0;
    for (const char *name; (name = strata_preset_name(count)); count++) {
        strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = NULL;
        ASSERT_OK(strata_config_load(&(strata_config_request_t){.preset = name}, &strategy));
        EXPECT_STREQ(strategy->name, name);
        for (strata_place_kind_t place = STRATA_PLACE_GPU; place < STRATA_PLACE_KINDS; place++) {
            strata_plan_t plan;
            EXPECT_OK(strata_strategy_plan(strategy, place, &plan));
            uint32_t added = 0;
            for (uint32_t n = 1; n <= plan.count; n++) added += plan.nodes[n].number == 0;
            EXPECT_EQ(plan.count, count_layers(&strategy->stacks[place]) + added);
        }
    }
    EXPECT_GE(count, 3);
}

/* Layers of a plan that take a borrower's event at record_stream. */
static size_t count_use(const strata_plan_t *plan) {
    size_t count = 0;
    for (uint32_t n = 1; n <= plan->count; n++) {
        const strata_option_row_t *row = strata_option_find(plan->nodes[n].type, "event");
        char value[32] = "";
        if (row) strata_option_print(row, plan->nodes[n].options, value, sizeof value);
        count += strcmp(value, "use") == 0;
    }
    return count;
}

/* It covers less than what a user may expect: the peer's preset has it, for the peer's sake. */
TEST(config, of_the_presets_paddle_alone_takes_events_at_the_borrow) {
    for (size_t i = 0; strata_preset_name(i); i++) {
        const char *name = strata_preset_name(i);
        strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = NULL;
        size_t use = 0;
        ASSERT_OK(strata_config_load(&(strata_config_request_t){.preset = name}, &strategy));
        for (strata_place_kind_t place = STRATA_PLACE_GPU; place < STRATA_PLACE_KINDS; place++) {
            strata_plan_t plan;
            EXPECT_OK(strata_strategy_plan(strategy, place, &plan));
            use += count_use(&plan);
        }
        if ((use > 0) != (strncmp(name, "paddle", 6) == 0)) FAIL_TEST("%s has %zu layers with event: use", name, use);
    }
}

TEST(config, a_text_means_the_same_in_a_file_as_in_a_setting) {
    static const char *const set[] = {"trace.path=  a b "};
    strata_strategy_t *file CLOSED_BY(strategy_cleanup) = load_text("stack: [trace: {path: \"  a b \"}, system]\n");
    strata_strategy_t *setting CLOSED_BY(strategy_cleanup) = load_request(
        &(strata_config_request_t){.text = "stack: [trace, system]\n", .set = set, .set_count = 1});
    EXPECT_STREQ(value_of(file, "trace", "path"), "a b");
    EXPECT_STREQ(value_of(setting, "trace", "path"), "a b");
}

/* Whether requests that fail for memory are told in one line. */
TEST(config, the_report_is_full_or_short) {
    static const struct {
        const char *text;
        bool is_short;
    } said[] = {{"strategy: s\nstack: [system]\n", false},
                {"report: short\nstack: [system]\n", true},
                {"report: full\nstack: [system]\n", false}};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        strata_strategy_t *strategy = NULL, *plain = NULL;
        char *told = NULL, *differs = NULL;
        size_t length;
        ASSERT_OK(strata_config_load(&(strata_config_request_t){.text = said[i].text}, &strategy));
        ASSERT_OK(strata_config_load(&(strata_config_request_t){.text = said[0].text}, &plain));
        EXPECT_EQ(strategy->short_report, said[i].is_short);
        FILE *out = open_memstream(&told, &length), *other = open_memstream(&differs, &length);
        EXPECT_OK(strata_config_explain(strategy, out));
        EXPECT_OK(strata_config_diff(plain, strategy, "a", "b", other));
        fclose(out);
        fclose(other);
        EXPECT_EQ(strstr(told, "\nreport: short\n") != NULL, said[i].is_short);
        EXPECT_EQ(strstr(differs, "report:\n  a                    full\n  b                    short\n") != NULL,
                  said[i].is_short);
        free(told);
        free(differs);
        strata_strategy_delete(strategy);
        strata_strategy_delete(plain);
    }
    strata_strategy_t *none = NULL;
    EXPECT_SAYS(STRATA_E_STRATEGY, strata_config_load(&(strata_config_request_t){.text = "report: none\nstack: [system]\n"}, &none),
                "1:9: \"report\" must be full or short, not \"none\"");
}
