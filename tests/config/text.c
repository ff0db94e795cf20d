/* A strategy that is written as a complete file and read again is the same strategy. */
#include <stdio.h>
#include <stdlib.h>

#include "strategy/presets.h"
#include "tests/config/refused.h"
#include "tests/harness/owned.h"

static char *text_of(const strata_strategy_t *strategy) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out) return NULL;
    EXPECT_OK(strata_config_text(strategy, out));
    fclose(out);
    return text;
}

static void expect_same_again(strata_strategy_t *strategy) {
    ASSERT_NE(strategy, NULL);
    char *text CLOSED_BY(text_cleanup) = text_of(strategy);
    strata_strategy_t *again CLOSED_BY(strategy_cleanup) = load_text(text);
    ASSERT_NE(again, NULL);
    char *rewritten CLOSED_BY(text_cleanup) = text_of(again);
    EXPECT_STREQ(rewritten, text);
    char *differences = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&differences, &length);
    ASSERT_NE(out, NULL);
    EXPECT_OK(strata_config_diff(strategy, again, "a", "b", out));
    fclose(out);
    EXPECT_STREQ(differences, "no difference\n");
    free(differences);
}

TEST(written, presets_are_the_same_when_read_again) {
    for (size_t i = 0; strata_preset_name(i); i++) {
        strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_request(
            &(strata_config_request_t){.preset = strata_preset_name(i)});
        expect_same_again(strategy);
    }
}

typedef struct sample {
    const char *name, *yaml;
} sample_t;

static const sample_t samples[] = {
    {"routers", "strategy: nested\nstack:\n  - retry: {timeout: 100ms}\n  - binning:\n      routes:\n        - up_to: 64KiB\n"
                "          stack: [auto_growth: {name: small, chunk_size: 2MiB}, system]\n"
                "        - stack: [fallback: {stacks: [[buffered, system], [system: {memory: pinned}]]}]\n"},
    {"names", "strategy: 'a \"quoted\" \\ name'\nreport: short\nstack: [stream_safe, auto_growth, system]\n"
              "out_of_memory: {timeout: 7ms}\nidle: {after: 1s, keep: 10%}\n"
              "pools: {weights: {keep: true, stack: [auto_growth, system], places: {pinned: [auto_growth, system]}}, \"7\": {}}\n"
              "streams: {\"copy*\": [stream_safe, auto_growth: {chunk_size: 4MiB}, system], \"*\": [system]}\n"
              "graph: {stack: [stream_safe, auto_growth, system], places: {managed: [buffered, system]}}\n"},
    {"devices", "strategy: two\ndevices:\n  use: sim:h100x2\n  gpu:1: {stack: [system], places: {managed: [system]}}\n"
                "stack: [stream_safe, auto_growth, system]\nwithout_virtual_memory: {stack: [system]}\n"},
};

TEST_EACH(written, is_the_same_when_read_again, sample_t, samples) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text(row->yaml);
    expect_same_again(strategy);
}

/* The text includes values from --set. */
TEST(written, has_what_was_set) {
    static const char *const set[] = {"stream_safe.poll=block", "pinned.auto_growth.chunk_size=16MiB"};
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_request(
        &(strata_config_request_t){.preset = "strata", .set = set, .set_count = 2});
    ASSERT_NE(strategy, NULL);
    char *text CLOSED_BY(text_cleanup) = text_of(strategy);
    EXPECT_CONTAINS(text, "poll: block");
    EXPECT_CONTAINS(text, "chunk_size: 16MiB");
}
