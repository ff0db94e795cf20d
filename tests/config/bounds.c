/* Each bound from both sides, every pair of sources, and where an error is said to stand after anchors, letters and files. */
#include <stdio.h>
#include <stdlib.h>

#include "allocation/options/option.h"
#include "config/tree.h"
#include "tests/config/refused.h"
#include "tests/harness/owned.h"

/* ---- exactly what is allowed, and one more ---- */

static char text[STRATA_TREE_BYTES + 4096];

static size_t put(size_t at, const char *part, size_t times) {
    size_t each = strlen(part);
    for (size_t i = 0; i < times; i++) memcpy(text + at + i * each, part, each);
    text[at + times * each] = '\0';
    return at + times * each;
}

/* The error of the text; "" where it is read. */
static const char *error_of(void) {
    strata_strategy_t *strategy = NULL;
    if (strata_config_load(&(strata_config_request_t){.text = text}, &strategy) != STRATA_OK) return strata_last_error()->text;
    strata_strategy_delete(strategy);
    return "";
}

static void expect_bound(bool over, const char *what) {
    const char *error = error_of();
    if ((strstr(error, what) != NULL) != over)
        FAIL_TEST("\"%s\" and \"%s\": %s was wanted", error, what, over ? "the bound" : "another");
}

/* The mapping that a strategy is counts as one. */
TEST(config_bounds, sixty_four_deep_and_no_deeper) {
    static const char *const opening[] = {"[", "{a: "}, *const closing[] = {"]", "}"};
    for (size_t i = 0; i < 2; i++) {
        for (size_t deep = 63; deep <= 64; deep++) {
            put(put(put(0, "stack: ", 1), opening[i], deep), closing[i], deep);
            expect_bound(deep == 64, "this is nested more than 64 deep; make it flatter");
        }
        EXPECT_EQ(strata_last_error()->line, 1);
        EXPECT_EQ(strata_last_error()->column, 8 + 63 * strlen(opening[i]));
    }
}

TEST(config_bounds, two_hundred_and_fifty_six_keys) {
    for (int keys = 256; keys <= 257; keys++) {
        size_t at = 0;
        for (int i = 0; i < keys; i++) at += (size_t)sprintf(text + at, "k%d: 1\n", i);
        expect_bound(keys == 257, "a mapping has at most 256 keys");
    }
}

TEST(config_bounds, four_thousand_and_ninety_six_bytes_of_a_value) {
    for (size_t bytes = 4096; bytes <= 4097; bytes++) {
        put(put(put(0, "nokey: ", 1), "x", bytes), "\n", 1);
        expect_bound(bytes == 4097, "this value is longer than 4096 bytes");
    }
}

TEST(config_bounds, one_hundred_and_twenty_eight_letters_of_a_key) {
    for (size_t letters = 128; letters <= 129; letters++) {
        put(put(0, "k", letters), ": 1\n", 1);
        expect_bound(letters == 129, "this is not a key");
    }
}

/* A mapping, a list, and what is in the list. */
TEST(config_bounds, sixty_five_thousand_values) {
    for (size_t values = STRATA_TREE_NODES; values <= STRATA_TREE_NODES + 1; values++) {
        put(put(put(0, "nokey: [", 1), "a,", values - 2), "]\n", 1);
        expect_bound(values > STRATA_TREE_NODES, "the file has more than 65536 values");
    }
}

TEST(config_bounds, a_mebibyte_of_text) {
    for (size_t bytes = STRATA_TREE_BYTES; bytes <= STRATA_TREE_BYTES + 1; bytes++) {
        size_t at = put(0, "stack: [system]\n#", 1);
        put(put(at, "x", bytes - at - 1), "\n", 1);
        EXPECT_EQ(strlen(text), bytes);
        expect_bound(bytes > STRATA_TREE_BYTES, "the file is larger than 1 MiB");
    }
    put(0, "stack: [system]\n", 1);
    EXPECT_STREQ(error_of(), "");
}

TEST(config_bounds, sixty_four_letters_of_a_name) {
    for (size_t letters = STRATA_NAME_LETTERS; letters <= STRATA_NAME_LETTERS + 1; letters++) {
        put(put(put(0, "stack: [system]\npools: {", 1), "p", letters), ": [system]}\n", 1);
        expect_bound(letters > STRATA_NAME_LETTERS, "is not a valid name for a pool");
        put(put(put(0, "stack: [system]\nstreams: {", 1), "s", letters), ": [system]}\n", 1);
        expect_bound(letters > STRATA_NAME_LETTERS, "is not a valid name for a pattern of streams");
        put(put(put(0, "stack: [system]\nstrategy: ", 1), "s", letters), "\n", 1);
        expect_bound(letters > STRATA_NAME_LETTERS, "the strategy's name is longer than 64 bytes");
    }
}

TEST(config_bounds, stars_after_a_name_take_nothing_too) {
    static const char *const patterns[] = {"copy", "copy*", "copy**", "copy***", "**copy**", "c**p*y", "***"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) EXPECT_TRUE(strata_pattern_matches(patterns[i], "copy"));
    EXPECT_FALSE(strata_pattern_matches("copy*?", "copy"));
    EXPECT_FALSE(strata_pattern_matches("**x", "copy"));
    EXPECT_TRUE(strata_pattern_matches("*aab", "aaaab"));
    EXPECT_TRUE(strata_pattern_matches("a*b*c", "abbcbc"));
    EXPECT_FALSE(strata_pattern_matches("a*b*c", "abbcb"));
}

/* ---- paths ---- */

#define POOLS                                                                                                                      \
    "devices: {use: sim:h100x2, gpu:1: {stack: [auto_growth, system]}}\nstack: [auto_growth, system]\n"                            \
    "pools: {weights: {stack: [auto_growth, system], places: {pinned: [auto_growth, system: {memory: pinned}]}}}\n"                \
    "streams: {\"copy*\": [auto_growth, system]}\ngraph: [auto_growth, system]\n"

static strata_status_t set_path(const char *yaml, const char *path) {
    char setting[200];
    const char *set[] = {setting};
    strata_strategy_t *strategy = NULL;
    snprintf(setting, sizeof setting, "%s.auto_growth.chunk_size=6MiB", path);
    strata_status_t status = strata_config_load(&(strata_config_request_t){.text = yaml, .set = set, .set_count = 1}, &strategy);
    if (status == STRATA_OK) strata_strategy_delete(strategy);
    return status;
}

TEST(config_bounds, a_pools_and_a_patterns_stack_is_no_devices) {
    static const char *const good[] = {"pools.weights",
                                       "pools.weights.gpu",
                                       "pools.weights.stack",
                                       "pools.weights.pinned",
                                       "streams.copy*",
                                       "streams.copy*.gpu",
                                       "graph",
                                       "graph.gpu",
                                       "gpu:1",
                                       "stack:1",
                                       "pinned",
                                       "gpu"};
    static const char *const wrong[] = {"pools.weights.gpu:1",
                                        "pools.weights.gpu:0",
                                        "pools.weights.stack:1",
                                        "pools.weights.pinned:1",
                                        "streams.copy*.gpu:1",
                                        "graph.gpu:1",
                                        "graph.weights.gpu",
                                        "gpu:1.weights",
                                        "weights.gpu",
                                        "gpu:",
                                        "gpu:x",
                                        "gpu:-1",
                                        "pools.weights.gpu:"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (set_path(POOLS, good[i]) != STRATA_OK) FAIL_TEST("%s: %s", good[i], strata_last_error()->text);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        EXPECT_SAYS(STRATA_E_STRATEGY, set_path(POOLS, wrong[i]), "is not an option path");
    }
    EXPECT_STATUS(STRATA_E_STRATEGY, set_path(POOLS, "gpu:0")); /* it has none of its own */
    EXPECT_CONTAINS(strata_last_error()->text, "device 0 has no own stack");
    EXPECT_SAYS(STRATA_E_STRATEGY, set_path(POOLS, "streams.copy*.managed"), "has no own stack for the place managed");
}

/* Nowhere else than where the path says. */
TEST(config_bounds, a_path_sets_one_stack) {
    static const char *const paths[] = {"", "gpu:1.", "pools.weights.", "pools.weights.pinned.", "streams.copy*.", "graph."};
    enum { STACKS = 6 };
    for (size_t i = 0; i < STACKS; i++) {
        char setting[200];
        const char *set[] = {setting};
        snprintf(setting, sizeof setting, "%sauto_growth.chunk_size=6MiB", paths[i]);
        strata_strategy_t *s CLOSED_BY(strategy_cleanup) = load_request(
            &(strata_config_request_t){.text = POOLS, .set = set, .set_count = 1});
        ASSERT_NE(s, NULL);
        const strata_model_stack_t *stacks[STACKS] = {&s->stacks[STRATA_PLACE_GPU],
                                                      &s->own[0].stacks[STRATA_PLACE_GPU],
                                                      &s->named[STRATA_NAMED_POOL].list[0].stacks[STRATA_PLACE_GPU],
                                                      &s->named[STRATA_NAMED_POOL].list[0].stacks[STRATA_PLACE_PINNED],
                                                      &s->named[STRATA_NAMED_STREAM].list[0].stacks[STRATA_PLACE_GPU],
                                                      &s->named[STRATA_NAMED_GRAPH].list[0].stacks[STRATA_PLACE_GPU]};
        for (size_t k = 0; k < STACKS; k++) {
            const strata_model_layer_t *layer = &stacks[k]->layers[0];
            const strata_option_row_t *row = strata_option_find(layer->type, "chunk_size");
            EXPECT_EQ(layer->option_origins[row - layer->type->options].source == STRATA_FROM_COMMAND, k == i);
        }
    }
}

/* ---- who says what ---- */

/* Every choice of sources: the last of them says it. */
TEST(config_bounds, of_any_sources_the_later_says_it) {
    static const char *const values[] = {"20MiB", "3MiB", "4MiB", "5MiB", "6MiB"}; /* preset, base, file, environment, by hand */
    static const strata_source_of_value_t from[] = {STRATA_FROM_PRESET, STRATA_FROM_FILE, STRATA_FROM_FILE, STRATA_FROM_ENVIRONMENT,
                                                    STRATA_FROM_COMMAND};
    for (unsigned chosen = 0; chosen < 16; chosen++) {
        bool base = chosen & 1, file = chosen & 2, environment = chosen & 4, by_hand = chosen & 8;
        unsigned last = by_hand ? 4 : environment ? 3 : file ? 2 : base ? 1 : 0;
        const char *set[] = {"auto_growth.chunk_size=6MiB"};
        char own[200];
        file_of("lower_11.yaml",
                base ? "extends: strata-malloc\nstack: [auto_growth: {chunk_size: 3MiB}, system]\n" : "extends: strata-malloc\n");
        snprintf(own, sizeof own, "extends: lower_11.yaml\n%s", file ? "stack: [auto_growth: {chunk_size: 4MiB}, system]\n" : "");
        if (environment) setenv("STRATA_SET", "auto_growth.chunk_size=5MiB", 1);
        strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_request(&(strata_config_request_t){
            .file = file_of("higher_11.yaml", own), .environment = true, .set = set, .set_count = by_hand});
        unsetenv("STRATA_SET");
        ASSERT_NE(strategy, NULL);
        EXPECT_STREQ(value_of(strategy, "auto_growth", "chunk_size"), values[last]);
        EXPECT_EQ(origin_of(strategy, "auto_growth", "chunk_size")->source, from[last]);
        if (last == 1) EXPECT_CONTAINS(origin_of(strategy, "auto_growth", "chunk_size")->file, "lower_11.yaml");
        if (last == 2) EXPECT_CONTAINS(origin_of(strategy, "auto_growth", "chunk_size")->file, "higher_11.yaml");
    }
}

/* A list of settings ends with the variable. What lies after it in memory is another's. */
TEST(config_bounds, the_environments_settings_end_with_the_variable) {
    static char memory[] = "STRATA_SET=auto_growth.chunk_size=5MiB\0auto_growth.chunk_size=9MiB";
    ASSERT_EQ(putenv(memory), 0);
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_request(
        &(strata_config_request_t){.text = "stack: [auto_growth, system]", .environment = true});
    unsetenv("STRATA_SET");
    ASSERT_NE(strategy, NULL);
    EXPECT_STREQ(value_of(strategy, "auto_growth", "chunk_size"), "5MiB");
}

TEST(config_bounds, a_file_extends_one_that_is_named_from_the_root) {
    char path[4096], own[4200];
    char *absolute = realpath(file_of("lower_13.yaml", "stack: [auto_growth: {chunk_size: 3MiB}, system]\n"), NULL);
    ASSERT_NE(absolute, NULL);
    snprintf(path, sizeof path, "%s", absolute);
    free(absolute);
    snprintf(own, sizeof own, "extends: %s\n", path);
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_request(
        &(strata_config_request_t){.file = file_of("higher_13.yaml", own)});
    ASSERT_NE(strategy, NULL);
    EXPECT_STREQ(value_of(strategy, "auto_growth", "chunk_size"), "3MiB");
}

/* ---- where ---- */

TEST(config_bounds, errors_of_an_extended_file_stand_in_that_file) {
    char path[300], begin[400];
    strata_strategy_t *strategy = NULL;
    snprintf(path, sizeof path, "%s",
             file_of("lower_15.yaml", "# a comment\nstack:\n  - auto_growth: {chunk_size: 20MB}\n  - system\n"));
    const char *higher = file_of("higher_15.yaml", "\n\n\nextends: lower_15.yaml\n");
    EXPECT_STATUS(STRATA_E_STRATEGY, strata_config_load(&(strata_config_request_t){.file = higher}, &strategy));
    snprintf(begin, sizeof begin, "%s:3:31: ", path);
    EXPECT_CONTAINS(strata_last_error()->text, begin);
    EXPECT_EQ(strata_last_error()->line, 3);
    EXPECT_EQ(strata_last_error()->column, 31);
}
