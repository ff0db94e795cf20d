/* Several stacks below one layer, stacks of one device, and what two strategies differ in. */
#include <stdio.h>
#include <stdlib.h>

#include "config/reader/reader.h"
#include "tests/config/refused.h"
#include "tests/harness/owned.h"

static const char by_size[] = "stack:\n"
                              "  - stream_safe\n"
                              "  - binning:\n"
                              "      name: sizes\n"
                              "      routes:\n"
                              "        - up_to: 64KiB\n"
                              "          stack: [auto_growth: {name: small, chunk_size: 2MiB}, system]\n"
                              "        - up_to: 1MiB\n"
                              "          stack: [auto_growth: {name: middle}, system]\n"
                              "        - stack:\n"
                              "            - fallback:\n"
                              "                stacks:\n"
                              "                  - [auto_growth: {name: large}, system]\n"
                              "                  - [system: {memory: pinned}]\n";

TEST(routers, are_planned_as_a_tree) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text(by_size);
    strata_plan_t plan;
    ASSERT_OK(strata_strategy_plan(strategy, STRATA_PLACE_GPU, &plan));
    static const struct {
        const char *name;
        uint32_t count;
        uint8_t below[3];
    } wanted[] = {{"stream_safe", 1, {2}}, {"sizes", 3, {3, 5, 7}},  {"small", 1, {4}}, {"system", 0, {0}}, {"middle", 1, {6}},
                  {"system", 0, {0}},      {"fallback", 2, {8, 10}}, {"large", 1, {9}}, {"system", 0, {0}}, {"system", 0, {0}}};
    ASSERT_EQ(plan.count, sizeof wanted / sizeof *wanted);
    for (uint32_t n = 1; n <= plan.count; n++) {
        EXPECT_STREQ(plan.nodes[n].name, wanted[n - 1].name);
        EXPECT_EQ(plan.nodes[n].below_count, wanted[n - 1].count);
        for (uint32_t i = 0; i < wanted[n - 1].count; i++) EXPECT_EQ(plan.nodes[n].below[i], wanted[n - 1].below[i]);
    }
}

/* The layers of a plan in the order of their numbers; those that were added in brackets. */
static const char *layers_of(const char *stack) {
    static char names[256];
    char text[256];
    strata_plan_t plan;
    size_t length = 0;
    uint32_t number = 0;
    snprintf(text, sizeof text, "stack: [%s]\n", stack);
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text(text);
    EXPECT_OK(strata_strategy_plan(strategy, STRATA_PLACE_GPU, &plan));
    for (uint32_t n = 1; n <= plan.count; n++) {
        const strata_plan_node_t *node = &plan.nodes[n];
        bool added = node->number == 0;
        if (!added) EXPECT_EQ(node->number, ++number);
        if (added) EXPECT_EQ(node->scope, plan.nodes[node->below[0]].scope);
        length += (size_t)snprintf(names + length, sizeof names - length, added ? "%s(%s)" : "%s%s", n > 1 ? " " : "", node->name);
    }
    return names;
}

TEST(routers, a_branch_that_handles_no_borrows_has_a_stream_safe_above_its_cache_or_source) {
    EXPECT_STREQ(layers_of("system"), "(stream_safe) system");
    EXPECT_STREQ(layers_of("stat, trace, bfc, limit, system"), "stat trace (stream_safe) bfc limit system");
    EXPECT_STREQ(layers_of("stream_safe, limit, system"), "stream_safe limit system");
    EXPECT_STREQ(layers_of("caching, system"), "caching system");
    EXPECT_STREQ(layers_of("caching: {streams: ignored}, system"), "(stream_safe) caching system");
    EXPECT_STREQ(layers_of("limit, cuda_malloc_async"), "limit cuda_malloc_async");
    EXPECT_STREQ(layers_of("buffered, stream_safe, system"), "(stream_safe) buffered stream_safe system");
    EXPECT_STREQ(layers_of("fallback: {stacks: [[caching, system], [auto_growth, system], [stream_safe, system], [system]]}"),
                 "fallback caching system (stream_safe) auto_growth system stream_safe system (stream_safe) system");
    EXPECT_STREQ(layers_of("stream_safe, fallback: {stacks: [[auto_growth, system], [system]]}"),
                 "stream_safe fallback auto_growth system system");
}

/* No path leads to it. */
TEST(routers, what_is_added_to_a_branch_is_explained_and_cannot_be_set) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text(
        "stack: [stat, fallback: {stacks: [[caching, system], [system]]}]\n");
    FILE *out = tmpfile();
    EXPECT_OK(strata_config_explain(strategy, out));
    const char *text = read_back(out);
    EXPECT_CONTAINS(
        text, "\n       stream_safe: waits on the host: added, because no layer handles borrows  [default]\n       system: source");
    EXPECT_LACKS(text, "\n    |  stream_safe");
    EXPECT_FALSE(strata_strategy_has(strategy, "stream_safe.poll"));
}

TEST(routers, have_paths_into_their_branches) {
    static const strata_origin_t origin = {.source = STRATA_FROM_COMMAND, .file = "--set"};
    strata_strategy_t *strategy = load_text(by_size);
    EXPECT_OK(strata_strategy_set(strategy, "stack.small.chunk_size", "3MiB", &origin));
    EXPECT_OK(strata_strategy_set(strategy, "large.chunk_size", "5MiB", &origin));
    EXPECT_OK(strata_strategy_set(strategy, "sizes.up_to_1", "32KiB", &origin));
    EXPECT_TRUE(strata_strategy_has(strategy, "middle.order"));
    EXPECT_FALSE(strata_strategy_has(strategy, "gpu:1.middle.order"));
    FILE *out = tmpfile();
    EXPECT_OK(strata_config_explain(strategy, out));
    const char *text = read_back(out);
    EXPECT_CONTAINS(text, "3MiB         --set");
    EXPECT_CONTAINS(text, "5MiB         --set");
    EXPECT_CONTAINS(text, "route 1 of 3, up_to 32KiB        --set");
    EXPECT_STATUS(STRATA_E_STRATEGY, strata_strategy_set(strategy, "auto_growth.chunk_size", "1MiB", &origin));
    EXPECT_STREQ(
        strata_last_error()->text,
        "--set: \"auto_growth.chunk_size\" matches two layers, \"small\" (line 7) and \"middle\" (line 9); give them names "
        "with \"name:\" and write NAME.chunk_size");
    EXPECT_SAYS(STRATA_E_STRATEGY, strata_strategy_set(strategy, "lerge.chunk_size", "1MiB", &origin), "write large.chunk_size");
    EXPECT_SAYS(STRATA_E_STRATEGY, strata_strategy_set(strategy, "gpu:1.small.chunk_size", "1MiB", &origin),
                "device 1 has no own stack for the place gpu; write stack.small.chunk_size");
    static const char *const none[] = {"gpu:x.small.chunk_size", "gpu:16.small.chunk_size", "gpu:01.small.chunk_size"};
    for (size_t i = 0; i < 3; i++) {
        EXPECT_SAYS(STRATA_E_STRATEGY, strata_strategy_set(strategy, none[i], "1MiB", &origin), "is not an option path");
    }
    strata_strategy_delete(strategy);
    strategy = NULL;
    EXPECT_SAYS(STRATA_E_STRATEGY,
                strata_config_load(
                    &(strata_config_request_t){.text = by_size, .set_count = 1, .set = (const char *const[]){"sizes.up_to_3=2MiB"}},
                    &strategy),
                "\"sizes\" has 3 stacks, and the last takes all other requests; remove up_to of stack 3");
}

TEST(routers, are_drawn_as_a_tree) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text(by_size);
    FILE *out = tmpfile();
    EXPECT_OK(strata_config_explain(strategy, out));
    const char *text = read_back(out);
    static const char *const lines[] = {
        "  sizes (binning): router of scope none, keeps no state  [<text>:3:5]\n",
        "    +- route 1 of 3, up_to 64KiB        <text>:6:18\n",
        "    |  small (auto_growth): cache of scope stream, one instance for each stream  [<text>:7:19]\n",
        "    |    chunk_size               2MiB         <text>:7:58\n",
        "    |  system: source of scope device, one instance for each device, shared by all its streams  [<text>:7:65]\n",
        "    +- route 3 of 3\n",
        "       fallback: router of scope none, keeps no state  [<text>:11:15]\n",
        "         +- stack 1 of 2\n",
        "         |  large (auto_growth): cache",
        "         +- stack 2 of 2\n",
        "            system: source",
        "              memory                   pinned       <text>:14:39\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const char *found = strstr(text, lines[i]);
        if (!found) FAIL_TEST("no line\n%sin\n%s", lines[i], text);
        text = found ? found : text;
    }
}

/* No option stands for the limit of an eighth. */
TEST(routers, the_last_that_there_can_be_takes_what_is_left) {
    static char yaml[1024];
    size_t length = (size_t)sprintf(yaml, "stack:\n  - binning:\n      routes:\n");
    for (int i = 1; i <= 8; i++) length += (size_t)sprintf(yaml + length, "        - {up_to: %dMiB, stack: [system]}\n", i);
    char *last = strstr(yaml, "up_to: 8MiB, ");
    expect_refused(yaml, 11, 12, "route 8 is the last possible one and takes all other requests", "remove up_to");
    memmove(last, last + strlen("up_to: 8MiB, "), strlen(last + strlen("up_to: 8MiB, ")) + 1);
    strata_strategy_delete(load_text(yaml));
}

TEST(routers, are_bounded) {
    static char yaml[65536];
    size_t length = (size_t)sprintf(yaml, "stack:\n  - fallback: {stacks: [");
    for (int i = 0; i < 9; i++) length += (size_t)sprintf(yaml + length, "%s[system]", i ? ", " : "");
    sprintf(yaml + length, "]}\n");
    expect_refused(yaml, 2, 24, "has 9 stacks below it, and the maximum is 8", "remove some");
    length = (size_t)sprintf(yaml, "stack:\n  - fallback:\n      stacks:\n");
    for (int i = 0; i < 8; i++)
        length += (size_t)sprintf(yaml + length, "        - [auto_growth, auto_growth, auto_growth, auto_growth, auto_growth, "
                                                 "auto_growth, auto_growth, auto_growth, system]\n");
    expect_refused(yaml, 11, 12, "at most 64 layers in total", "remove some");
    /* Routers in routers: the text's depth ends it, and before that a decorator stack's. */
    length = (size_t)sprintf(yaml, "stack: [");
    for (int i = 0; i < 8; i++) length += (size_t)sprintf(yaml + length, "fallback: {stacks: [[");
    length += (size_t)sprintf(yaml + length, "system");
    for (int i = 0; i < 8; i++) length += (size_t)sprintf(yaml + length, "]]}");
    sprintf(yaml + length, "]\n");
    expect_refused(yaml, 1, 177, "is layer 9 from the top", "remove a layer");
    length = (size_t)sprintf(yaml, "stack: [");
    for (int i = 0; i < 2000; i++) length += (size_t)sprintf(yaml + length, "fallback: {stacks: [[");
    strata_strategy_t *strategy = NULL;
    EXPECT_SAYS(STRATA_E_STRATEGY, strata_config_load(&(strata_config_request_t){.text = yaml}, &strategy),
                "nested more than 64 deep");
}

/* ---- the advice for a router without stacks ---- */

/* Returns the YAML after "write - ". The text is good until the next call. */
static const char *advised(const strata_layer_type_t *type) {
    static const strata_origin_t origin = {.source = STRATA_FROM_FILE, .file = "fake.yaml", .line = 1, .column = 1};
    const strata_model_layer_t layer = {.type = type, .name = type->name, .origin = origin};
    EXPECT_STATUS(STRATA_E_STRATEGY, strata_fail_no_branches(&layer));
    const char *text = strstr(strata_last_error()->text, "none is given; write - ");
    return text ? text + strlen("none is given; write - ") : strata_last_error()->text;
}

/* Rows of options for routers that are not registered. */
#define ROW_OF(its_name)                                                                                                           \
    { .name = its_name, .kind = STRATA_OPTION_COUNT, .default_text = "0" }
static const strata_option_row_t plain_rows[] = {ROW_OF("order"), {0}};
static const strata_option_row_t one_row[] = {ROW_OF("share_1"), {0}};
static const strata_option_row_t later_rows[] = {ROW_OF("order"), ROW_OF("turns"), ROW_OF("share_1"), ROW_OF("share_2"), {0}};

typedef struct advice {
    const char *name;
    const strata_option_row_t *rows;
    const char *text;
} advice_t;

static const advice_t advices[] = {
    {"no_options", NULL, "fake: {stacks: [[...], [...]]}"},
    {"no_option_of_a_branch", plain_rows, "fake: {stacks: [[...], [...]]}"},
    {"one_option_of_a_branch", one_row, "fake: {routes: [{share: 64KiB, stack: [...]}, {stack: [...]}]}"},
    {"options_before_those_of_branches", later_rows, "fake: {routes: [{share: 64KiB, stack: [...]}, {stack: [...]}]}"},
};

TEST_EACH(routers, without_stacks_are_told_the_form_that_their_options_want, advice_t, advices) {
    const strata_layer_type_t type = {.name = "fake", .role = STRATA_ROUTER, .options = row->rows};
    EXPECT_STREQ(advised(&type), row->text);
    EXPECT_STREQ(strata_branches_key(&type), strstr(row->text, "routes") ? "routes" : "stacks");
}

TEST(routers, the_advised_form_loads_once_its_stacks_are_written) {
    const strata_layer_type_t *type;
    uint32_t routers = 0;
    for (size_t i = 0; (type = strata_layer_at(i)); i++) {
        char text[512] = "stack: [";
        if (type->role != STRATA_ROUTER) continue;
        routers++;
        const char *at = advised(type);
        for (const char *dots; (dots = strstr(at, "...")); at = dots + strlen("..."))
            sprintf(text + strlen(text), "%.*ssystem", (int)(dots - at), at);
        sprintf(text + strlen(text), "%s]\n", at);
        strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text(text);
        ASSERT_NE(strategy, NULL);
        EXPECT_EQ(strategy->stacks[STRATA_PLACE_GPU].layers[0].branch_count, 2);
    }
    EXPECT_EQ(routers, 2);
}

/* ---- devices ---- */

static const char two_devices[] = "devices:\n"
                                  "  use: sim:h100x2\n"
                                  "  gpu:1:\n"
                                  "    stack: [auto_growth: {chunk_size: 4MiB}, system]\n"
                                  "    places: {managed: [system]}\n"
                                  "stack: [system]\n";

TEST(own_stacks, are_of_one_device) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text(two_devices);
    EXPECT_STREQ(strategy->devices, "sim:h100x2");
    const strata_model_stack_t *common = &strategy->stacks[STRATA_PLACE_GPU];
    EXPECT_EQ(strata_strategy_stack(strategy, STRATA_PLACE_GPU, 0), common);
    EXPECT_EQ(strata_strategy_stack(strategy, STRATA_PLACE_GPU, 1)->count, 2);
    EXPECT_EQ(strata_strategy_stack(strategy, STRATA_PLACE_MANAGED, 1)->count, 1);
    EXPECT_EQ(strata_strategy_stack(strategy, STRATA_PLACE_PINNED, 1), &strategy->stacks[STRATA_PLACE_PINNED]);
    static const strata_origin_t origin = {.source = STRATA_FROM_COMMAND, .file = "--set"};
    EXPECT_OK(strata_strategy_set(strategy, "gpu:1.auto_growth.chunk_size", "6MiB", &origin));
    FILE *out = tmpfile();
    EXPECT_OK(strata_config_explain(strategy, out));
    const char *text = read_back(out);
    EXPECT_CONTAINS(
        text, "\ngpu:1, its own stack, outermost first\n  retry: {timeout: 0}: added, because the stack has none  [default]\n  "
              "stream_safe: waits on the host: added, because no layer handles borrows  [default]\n  auto_growth: cache");
    EXPECT_CONTAINS(text, "6MiB         --set");
    EXPECT_CONTAINS(
        text, "\nmanaged:1, its own stack, outermost first\n  retry: {timeout: 0}: added, because the stack has none  [default]\n  "
              "stream_safe: waits on the host: added, because no layer handles borrows  [default]\n  system: source");
}

TEST(own_stacks, are_kept_and_replaced_by_what_extends) {
    char text[512];
    snprintf(text, sizeof text, "extends: %s\ndevices: {gpu:1: {stack: [buffered, system]}, gpu:0: {stack: [system]}}\n",
             file_of("two_devices.yaml", two_devices));
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text(text);
    EXPECT_STREQ(strategy->devices, "sim:h100x2");
    EXPECT_EQ(strategy->own_count, 2);
    EXPECT_STREQ(strata_strategy_stack(strategy, STRATA_PLACE_GPU, 1)->layers[0].name, "buffered");
    EXPECT_EQ(strata_strategy_stack(strategy, STRATA_PLACE_MANAGED, 1)->count, 1);
}

TEST(own_stacks, are_of_up_to_sixteen_devices) {
    char yaml[1024];
    size_t length = (size_t)sprintf(yaml, "devices:\n");
    for (int i = 0; i < 16; i++) length += (size_t)sprintf(yaml + length, "  gpu:%d: {stack: [system]}\n", i);
    strata_strategy_t *all CLOSED_BY(strategy_cleanup) = load_text(yaml);
    EXPECT_EQ(all->own_count, 16);
}

/* ---- diff ---- */

TEST(diff, says_nothing_of_the_same) {
    EXPECT_STREQ(difference_of(by_size, by_size), "no difference\n");
    EXPECT_STREQ(difference_of(two_devices, two_devices), "no difference\n");
}

TEST(diff, tells_values_with_their_origins) {
    EXPECT_STREQ(difference_of("stack: [auto_growth: {chunk_size: 1MiB}, system]\n", "stack:\n  - auto_growth\n  - system\n"),
                 "stack.auto_growth.chunk_size:\n"
                 "  one                  1MiB         [<text>:1:35]\n"
                 "  two                  0            [default]\n");
}

TEST(diff, tells_texts_that_differ_at_their_ends) {
    char first[512], second[512], letters[STRATA_OPTION_TEXT_BYTES];
    memset(letters, 'x', sizeof letters);
    int most = STRATA_OPTION_TEXT_BYTES - 2;
    snprintf(first, sizeof first, "stack: [trace: {path: %.*s1}, system]\n", most, letters);
    snprintf(second, sizeof second, "stack: [trace: {path: %.*s2}, system]\n", most, letters);
    const char *text = difference_of(first, second);
    EXPECT_CONTAINS(text, "stack.trace.path:\n");
    EXPECT_CONTAINS(text, "x1 [<text>:1:23]\n");
    EXPECT_CONTAINS(text, "x2 [<text>:1:23]\n");
}

TEST(diff, tells_layers_that_one_alone_has) {
    EXPECT_STREQ(difference_of("stack: [retry, auto_growth, system]\n", "stack: [stream_safe, auto_growth, system]\n"),
                 "stack.retry: only in one  [<text>:1:9]\n"
                 "stack.stream_safe: only in two  [<text>:1:9]\n");
    const char *text = difference_of(by_size, "stack:\n  - stream_safe\n  - auto_growth: {name: small}\n  - system\n");
    EXPECT_CONTAINS(text, "stack.sizes: only in one  [<text>:3:5]\n");
    EXPECT_CONTAINS(text, "stack.sizes[3].fallback[2].system: only in one  [<text>:14:22]\n");
    EXPECT_CONTAINS(text, "stack.small: only in two  [<text>:3:5]\n");
}

TEST(diff, tells_of_devices) {
    const char *text = difference_of(two_devices, "devices: sim:h100\nstack: [system]\n");
    EXPECT_CONTAINS(text, "devices:\n  one                  sim:h100x2\n  two                  sim:h100\n");
    EXPECT_CONTAINS(text, "gpu:1.auto_growth: only in one  [<text>:4:13]\n");
    EXPECT_CONTAINS(text, "managed:1.retry: only in two  [preset strata:");
}
