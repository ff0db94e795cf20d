/* Options that cannot act where they stand. */
#include <stdio.h>

#include "tests/config/refused.h"

TEST(idle_options, one_that_cannot_act_is_refused_where_it_is_said) {
    static const struct {
        const char *layer, *beside;
    } cases[] = {{"retry: {depth: 3}", "patience"},
                 {"retry: {slack: 0.5}", "patience"},
                 {"retry: {wait_first: true, steps: wait}", "steps"},
                 {"fault: {onward: true}", "at"},
                 {"fault: {seed: 4}", "probability"},
                 {"fault: {says: device}", "no request is set to fail"},
                 {"trace: {events: 100}", "path"},
                 {"trace: {when_full: drop}", "path"},
                 {"fill: {write: false}", "synchronise"},
                 {"fill: {write: false, synchronise: true, byte: 3}", "write"},
                 {"bfc: {allow_growth: false, initial_region: 4MiB}", "allow_growth"},
                 {"bfc: {reclaim: ladder, garbage_collection: false}", "reclaim"},
                 {"bfc: {coalesce_regions: true}", "contiguous"},
                 {"caching: {max_non_split_rounding: 40MiB}", "max_split_size"},
                 {"caching: {reclaim: ladder, search_after_events: true}", "reclaim"},
                 {"caching: {streams: ignored, reuse_in_capture: true}", "streams"},
                 {"caching: {pool_no_split: true}", "named pool"},
                 {"caching: {pools_on_oom: true}", "named pool"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        strata_strategy_t *strategy = NULL;
        strata_config_request_t request = {.text = text};
        snprintf(text, sizeof text, "stack:\n  - %s\n  - system\n", cases[i].layer);
        EXPECT_SAYS(STRATA_E_STRATEGY, strata_config_load(&request, &strategy), "<text>:2:");
        EXPECT_CONTAINS(strata_last_error()->text, cases[i].beside);
    }
}

/* Regions become one over one source of handles that may lie side by side, whatever decorators stand between. */
TEST(idle_options, regions_become_one_over_one_source_of_handles) {
    static const struct {
        const char *below, *wrong;
    } cases[] = {
        {"vmm", NULL},
        {"limit, vmm", NULL},
        {"system", "over layers without contiguous chunks (contiguous); end the stack with - vmm and no router"},
        {"caching, vmm", "over layers without contiguous chunks"},
        {"fallback: {stacks: [[vmm], [vmm]]}", "over layers without contiguous chunks"},
        {"vmm: {registrable: true}", "vmm.registrable keeps each block in one; write coalesce_regions: false or registrable"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        strata_strategy_t *strategy = NULL;
        strata_config_request_t request = {.text = text};
        snprintf(text, sizeof text, "stack: [bfc: {coalesce_regions: true}, %s]\n", cases[i].below);
        strata_status_t status = strata_config_load(&request, &strategy);
        EXPECT_EQ(status, cases[i].wrong ? STRATA_E_STRATEGY : STRATA_OK);
        if (cases[i].wrong) EXPECT_CONTAINS(strata_last_error()->text, "<text>:1:33: bfc.coalesce_regions: ");
        if (cases[i].wrong) EXPECT_CONTAINS(strata_last_error()->text, cases[i].wrong);
        strata_strategy_delete(strategy);
    }
}

TEST(idle_options, those_of_pools_stand_where_a_pool_is_served) {
    static const char *const good[] = {"stack: [caching: {pool_no_split: true}, system]\npools: {p: }\n",
                                       "stack: [caching, system]\npools: {p: [caching: {pools_on_oom: true}, system]}\n"};
    static const char *const wrong[] = {
        "stack: [caching: {pool_no_split: true}, system]\npools: {p: [caching, system]}\n",
        "stack: [caching, system]\npools: {p: }\nstreams: {s: [caching: {pools_on_oom: true}, system]}\n",
        "stack: [caching, system]\nplaces: {pinned: [caching: {pools_on_oom: true}, system]}\n",
        "stack: [caching, system]\ndevices: {gpu:1: {stack: [caching: {pool_no_split: true}, system]}}\n"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        strata_strategy_t *strategy = load_text(good[i]);
        if (!strategy) FAIL_TEST("%s: %s", good[i], strata_last_error()->text);
        else strata_strategy_delete(strategy);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        strata_strategy_t *strategy = NULL;
        EXPECT_SAYS(STRATA_E_STRATEGY, strata_config_load(&(strata_config_request_t){.text = wrong[i]}, &strategy),
                    "outside the stack of a named pool");
    }
}

/* Where streams own nothing no graph has a pool. */
/* Events of borrows are not in the order of the frees, so none stands for the frees before it. */
TEST(idle_options, seldom_polls_want_events_that_are_taken_at_the_free) {
    strata_strategy_t *strategy = NULL;
    strata_config_request_t wrong = {.text = "stack: [stream_safe: {event: use, poll: seldom}, auto_growth, system]\n"};
    EXPECT_SAYS(STRATA_E_STRATEGY, strata_config_load(&wrong, &strategy), "poll: stream");
    strategy = load_text("stack: [stream_safe: {event: free, poll: seldom}, auto_growth, system]\n");
    if (!strategy) FAIL_TEST("%s", strata_last_error()->text);
    else strata_strategy_delete(strategy);
}

TEST(idle_options, reuse_in_captures_stands_where_streams_own_memory) {
    static const char *const wrong[] = {
        "stack: [system]\nplaces: {pinned: [stream_safe: {reuse_in_capture: true}, auto_growth, system]}\n",
        "stack: [system]\nplaces: {host: [caching: {reuse_in_capture: true}, system]}\n"};
    static const char *const good = "stack: [stream_safe: {reuse_in_capture: true}, auto_growth, system]\n"
                                    "places: {managed: [caching: {reuse_in_capture: true}, system]}\n";
    for (size_t i = 0; i < 2; i++) {
        strata_strategy_t *strategy = NULL;
        EXPECT_SAYS(STRATA_E_STRATEGY, strata_config_load(&(strata_config_request_t){.text = wrong[i]}, &strategy),
                    i ? "in host memory" : "in pinned memory");
    }
    strata_strategy_t *strategy = load_text(good);
    if (!strategy) FAIL_TEST("%s", strata_last_error()->text);
    else strata_strategy_delete(strategy);
}
