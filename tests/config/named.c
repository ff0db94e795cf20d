/* `pools:` and `streams:`: what they say, what they extend, their paths, how they are told and refused. */
#include <stdio.h>
#include <stdlib.h>

#include "allocation/options/option.h"
#include "tests/config/refused.h"
#include "tests/harness/owned.h"

static const char both[] = "stack: [retry, stream_safe, auto_growth, system]\n"
                           "pools:\n"
                           "  weights:\n"
                           "    stack: [auto_growth: {chunk_size: 64MiB}, system]\n"
                           "    places: {pinned: [stream_safe, buffered, system]}\n"
                           "  cache: [buffered, system]\n"
                           "  same:\n"
                           "streams:\n"
                           "  \"copy*\": {stack: [stream_safe, auto_growth: {chunk_size: 2MiB}, system]}\n"
                           "  \"*\": [system]\n";

static const char *value_at(const strata_strategy_t *strategy, strata_named_kind_t kind, const char *name,
                            strata_place_kind_t place, const char *layer, const char *option) {
    const strata_model_named_t *named = strata_strategy_named(strategy, kind, name);
    return value_in(named ? &named->stacks[place] : NULL, layer, option);
}

static void expect_pattern(const strata_strategy_t *strategy, const char *stream, const char *pattern) {
    const strata_model_named_t *found = strata_strategy_pattern(strategy, stream);
    EXPECT_STREQ(found ? found->name : "none", pattern);
}

TEST(named, pools_and_streams_have_stacks_of_their_own) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text(both);
    ASSERT_NE(strategy, NULL);
    EXPECT_EQ(strategy->named[STRATA_NAMED_POOL].count, 3);
    EXPECT_STREQ(value_at(strategy, STRATA_NAMED_POOL, "weights", STRATA_PLACE_GPU, "auto_growth", "chunk_size"), "64MiB");
    const strata_model_named_t *weights = strata_strategy_named(strategy, STRATA_NAMED_POOL, "weights");
    EXPECT_EQ(weights->stacks[STRATA_PLACE_PINNED].count, 3);
    EXPECT_EQ(weights->stacks[STRATA_PLACE_MANAGED].count, 0);
    EXPECT_EQ(weights->origin.line, 3);
    EXPECT_EQ(strata_strategy_named(strategy, STRATA_NAMED_POOL, "cache")->stacks[STRATA_PLACE_GPU].count, 2);
    EXPECT_EQ(strata_strategy_named(strategy, STRATA_NAMED_POOL, "same")->stacks[STRATA_PLACE_GPU].count, 0);
    EXPECT_EQ(strata_strategy_named(strategy, STRATA_NAMED_POOL, "copy*"), NULL);
    expect_pattern(strategy, "copy0", "copy*");
    expect_pattern(strategy, "compute", "*");
}

TEST(named, patterns_fit_whole_names) {
    static const struct {
        const char *pattern, *name;
        bool fits;
    } cases[] = {{"copy*", "copy", true},
                 {"copy*", "copy0", true},
                 {"copy*", "xcopy", false},
                 {"copy", "copy0", false},
                 {"*", "anything", true},
                 {"*", "", true},
                 {"a*b", "axxb", true},
                 {"a*b", "axxbc", false},
                 {"a*b*c", "abbc", true},
                 {"a*b*c", "acb", false},
                 {"*ab", "aab", true},
                 {"**", "x", true},
                 {"nccl:*/h2d", "nccl:0/h2d", true},
                 {"nccl:*/h2d", "nccl:0/d2h", false},
                 {"a*a*a*b", "aaaaaaaaaaaaaaaac", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strata_pattern_matches(cases[i].pattern, cases[i].name) != cases[i].fits)
            FAIL_TEST("%s and %s", cases[i].pattern, cases[i].name);
}

TEST(named, a_file_lies_over_what_it_extends) {
    (void)file_of("base.yaml", both);
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_request(
        &(strata_config_request_t){.file = file_of("over.yaml", "extends: base.yaml\n"
                                                                "pools:\n"
                                                                "  weights: {stack: [auto_growth: {chunk_size: 8MiB}, system]}\n"
                                                                "  more: [system]\n"
                                                                "streams:\n"
                                                                "  \"copy1\": [system]\n"
                                                                "  \"*\": [buffered, system]\n")});
    ASSERT_NE(strategy, NULL);
    EXPECT_EQ(strategy->named[STRATA_NAMED_POOL].count, 4);
    EXPECT_STREQ(value_at(strategy, STRATA_NAMED_POOL, "weights", STRATA_PLACE_GPU, "auto_growth", "chunk_size"), "8MiB");
    /* What the file did not say of a pool stays. */
    EXPECT_EQ(strata_strategy_named(strategy, STRATA_NAMED_POOL, "weights")->stacks[STRATA_PLACE_PINNED].count, 3);
    EXPECT_EQ(strata_strategy_named(strategy, STRATA_NAMED_POOL, "cache")->stacks[STRATA_PLACE_GPU].count, 2);
    /* Its patterns are tried first, in its order. */
    expect_pattern(strategy, "copy1", "copy1");
    expect_pattern(strategy, "copy0", "*");
    EXPECT_EQ(strata_strategy_named(strategy, STRATA_NAMED_STREAM, "*")->stacks[STRATA_PLACE_GPU].count, 2);
    EXPECT_EQ(strategy->named[STRATA_NAMED_STREAM].count, 3);
}

TEST(named, values_have_paths) {
    static const strata_origin_t origin = {.source = STRATA_FROM_COMMAND, .file = "--set"};
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text(both);
    ASSERT_NE(strategy, NULL);
    EXPECT_OK(strata_strategy_set(strategy, "pools.weights.auto_growth.chunk_size", "3MiB", &origin));
    EXPECT_OK(strata_strategy_set(strategy, "pools.weights.pinned.buffered.reuse_below", "1", &origin));
    EXPECT_OK(strata_strategy_set(strategy, "pools.cache.stack.buffered.reuse_below", "1.5", &origin));
    EXPECT_OK(strata_strategy_set(strategy, "streams.copy*.gpu.auto_growth.chunk_size", "5MiB", &origin));
    EXPECT_STREQ(value_at(strategy, STRATA_NAMED_POOL, "weights", STRATA_PLACE_GPU, "auto_growth", "chunk_size"), "3MiB");
    EXPECT_STREQ(value_at(strategy, STRATA_NAMED_POOL, "weights", STRATA_PLACE_PINNED, "buffered", "reuse_below"), "1");
    EXPECT_STREQ(value_at(strategy, STRATA_NAMED_POOL, "cache", STRATA_PLACE_GPU, "buffered", "reuse_below"), "1.5");
    EXPECT_STREQ(value_at(strategy, STRATA_NAMED_STREAM, "copy*", STRATA_PLACE_GPU, "auto_growth", "chunk_size"), "5MiB");
    EXPECT_STREQ(value_of(strategy, "auto_growth", "chunk_size"), "0");
    EXPECT_TRUE(strata_strategy_has(strategy, "pools.weights.auto_growth.chunk_size"));
    EXPECT_FALSE(strata_strategy_has(strategy, "pools.wieghts.auto_growth.chunk_size"));
    EXPECT_FALSE(strata_strategy_has(strategy, "pools.same.auto_growth.chunk_size"));
}

TEST(named, a_path_to_what_the_strategy_has_none_of_says_how_to_write_it) {
    static const char *const paths[] = {"pools.weights.auto_growth.chunk_size=1MiB", "streams.copy*.auto_growth.chunk_size=1MiB"};
    static const char *const told[] = {"--set: the strategy has no pools; write pools: {weights: {stack: [...]}} in its file",
                                       "--set: the strategy has no streams; write streams: {copy*: {stack: [...]}} in its file"};
    for (int i = 0; i < 2; i++) {
        strata_strategy_t *strategy = NULL;
        strata_config_request_t request = {.text = "stack: [system]", .set = &paths[i], .set_count = 1};
        EXPECT_STATUS(STRATA_E_STRATEGY, strata_config_load(&request, &strategy));
        EXPECT_STREQ(strata_last_error()->text, told[i]);
    }
}

TEST(named, wrong_paths_name_the_nearest) {
    expect_unset(both, "pools.wieghts.auto_growth.chunk_size=1MiB",
                 "--set: the strategy has no \"wieghts\" among its pools; write pools.weights.auto_growth.chunk_size");
    expect_unset(both, "streams.copie*.auto_growth.chunk_size=1MiB",
                 "--set: the strategy has no \"copie*\" among its streams; write streams.copy*.auto_growth.chunk_size");
    expect_unset(both, "pools.weights.retry.timeout=1s",
                 "--set: the stack of the place gpu in pools.weights has no layer \"retry\"; its layers are auto_growth, system");
    expect_unset(both, "pools.weights.auto_grwoth.chunk_size=1MiB",
                 "--set: the stack of the place gpu in pools.weights has no layer \"auto_grwoth\"; write "
                 "pools.weights.auto_growth.chunk_size");
    expect_unset(both, "pools.weights.auto_growth.chunk=1MiB",
                 "--set: \"auto_growth\" has no option \"chunk\"; write pools.weights.auto_growth.chunk_size");
    expect_unset(both, "pools.same.auto_growth.chunk_size=1MiB",
                 "--set: pools.same has no own stack for the place gpu; write stack.auto_growth.chunk_size");
    expect_unset(both, "pools.weights.pined.buffered.reuse_below=1",
                 "--set: there is no place \"pined\"; write pools.weights.pinned.buffered.reuse_below");
    expect_unset(both, "pools.weights.auto_growth.chunk_size=20MB",
                 "--set: pools.weights.auto_growth.chunk_size: \"20MB\": unknown unit \"MB\"; write 20MiB");
    expect_unset(both, "pool.weights.auto_growth.chunk_size=1MiB",
                 "--set: \"pool.weights.auto_growth.chunk_size\" is not an option path; write LAYER.OPTION or "
                 "PLACE.LAYER.OPTION, as in auto_growth.chunk_size, or pools.NAME.LAYER.OPTION, or graph.LAYER.OPTION");
    expect_unset(both, "pools.weights.chunk_size=1MiB",
                 "--set: there is no place \"pools\"; write PLACE.weights.chunk_size, where PLACE is "
                 "one of gpu, managed, pinned, host, stack, graph");
    expect_unset(both, "pools.weights.keeper=true",
                 "--set: there is no place \"pools\"; write PLACE.weights.keeper, where PLACE is "
                 "one of gpu, managed, pinned, host, stack, graph");
    expect_unset(both, "graph.keeper=true",
                 "--set: the stack of the place gpu has no layer \"graph\"; its layers are retry, stream_safe, "
                 "auto_growth, system");
}

/* A pool and a pattern whose names are the beginning of another one's, listed before it. */
TEST(named, a_name_is_no_beginning_of_another) {
    static const char text[] = "stack: [system]\npools: {w: [auto_growth, system], weights: [auto_growth, system]}\n"
                               "streams: {c: [auto_growth, system], copy: [auto_growth, system]}\n";
    static const struct {
        const char *path, *name;
        strata_named_kind_t kind;
    } rows[] = {{"pools.w", "w", STRATA_NAMED_POOL},
                {"pools.weights", "weights", STRATA_NAMED_POOL},
                {"streams.c", "c", STRATA_NAMED_STREAM},
                {"streams.copy", "copy", STRATA_NAMED_STREAM}};
    for (size_t i = 0; i < 4; i++) {
        char setting[80];
        const char *set[] = {setting};
        snprintf(setting, sizeof setting, "%s.auto_growth.chunk_size=3MiB", rows[i].path);
        strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_request(
            &(strata_config_request_t){.text = text, .set = set, .set_count = 1});
        ASSERT_NE(strategy, NULL);
        for (size_t k = 0; k < 4; k++)
            EXPECT_STREQ(value_at(strategy, rows[k].kind, rows[k].name, STRATA_PLACE_GPU, "auto_growth", "chunk_size"),
                         k == i ? "3MiB" : "0");
    }
}

static void many(char *yaml, const char *before, int from, int count) {
    size_t length = (size_t)sprintf(yaml, "%spools:\n", before);
    for (int i = 0; i < count; i++) length += (size_t)sprintf(yaml + length, "  p%d: [system]\n", from + i);
}

TEST(named, their_number_is_bounded) {
    char yaml[2048];
    many(yaml, "", 0, STRATA_MODEL_NAMED + 1);
    expect_refused(yaml, 1, 1, "\"pools\" has 33 names, and the maximum is 32", "remove some");
    many(yaml, "", 0, STRATA_MODEL_NAMED);
    strata_strategy_t *strategy = load_text(yaml), *other = NULL;
    strata_strategy_delete(strategy);
    (void)file_of("many.yaml", yaml);
    /* One of those again is no more, nor is one beside one fewer. */
    many(yaml, "extends: many.yaml\n", 0, 1);
    strategy = load_request(&(strata_config_request_t){.file = file_of("the_same.yaml", yaml)});
    ASSERT_NE(strategy, NULL);
    EXPECT_EQ(strategy->named[STRATA_NAMED_POOL].count, STRATA_MODEL_NAMED);
    strata_strategy_delete(strategy);
    many(yaml, "", 0, STRATA_MODEL_NAMED - 1);
    (void)file_of("fewer.yaml", yaml);
    many(yaml, "extends: fewer.yaml\n", 100, 1);
    strategy = load_request(&(strata_config_request_t){.file = file_of("one_beside.yaml", yaml)});
    ASSERT_NE(strategy, NULL);
    EXPECT_EQ(strategy->named[STRATA_NAMED_POOL].count, STRATA_MODEL_NAMED);
    strata_strategy_delete(strategy);
    many(yaml, "extends: many.yaml\n", 100, 1);
    EXPECT_SAYS(STRATA_E_STRATEGY, strata_config_load(&(strata_config_request_t){.file = file_of("one_more.yaml", yaml)}, &other),
                "one_more.yaml:2:1: more than 32 pools, including inherited ones; remove some");
}

TEST(named, explain_tells_them) {
    const char *set[] = {"pools.weights.auto_growth.alignment=256"};
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_request(
        &(strata_config_request_t){.text = both, .set = set, .set_count = 1});
    ASSERT_NE(strategy, NULL);
    FILE *out = tmpfile();
    EXPECT_OK(strata_config_explain(strategy, out));
    const char *text = read_back(out);
    EXPECT_CONTAINS(text,
                    "\npools.weights, a pool with its own stacks; the place's layers serve managed, host  [<text>:3:3]\n"
                    "  keep                       false        default\n"
                    "\npools.weights.gpu, outermost first\n  retry: {timeout: 0}: added, because the stack has none  [default]\n"
                    "  stream_safe: waits on the host: added, because no layer handles borrows  [default]\n"
                    "  auto_growth: cache of scope stream, one instance for each stream  [<text>:4:13]\n");
    EXPECT_CONTAINS(text, "    chunk_size               64MiB        <text>:4:39\n");
    EXPECT_CONTAINS(text, "    alignment                256          --set\n");
    EXPECT_CONTAINS(text, "\npools.weights.pinned, outermost first; one stack serves all streams\n");
    EXPECT_CONTAINS(text, "\npools.same, a pool with its own stacks; the place's layers serve gpu, managed, pinned, host  ");
    EXPECT_CONTAINS(text, "\nstreams.copy*, streams with a matching name, with their own stacks; the usual stacks serve them in "
                          "managed  [<text>:9:3]\n\nstreams.copy*.gpu, outermost first\n");
}

TEST(named, diff_tells_what_they_differ_in) {
    EXPECT_STREQ(difference_of(both, both), "no difference\n");
    EXPECT_STREQ(difference_of("pools: {a: [system]}\n", "pools: {b: [system]}\n"),
                 "pools.a: only in one  [<text>:1:9]\npools.b: only in two  [<text>:1:9]\n");
    EXPECT_STREQ(difference_of("pools: {a: [auto_growth: {chunk_size: 1MiB}, system]}\n", "pools: {a: [auto_growth, system]}\n"),
                 "pools.a.gpu.auto_growth.chunk_size:\n  one                  1MiB         [<text>:1:39]\n"
                 "  two                  0            [default]\n");
    /* A pool that says nothing has the place's layers. */
    EXPECT_STREQ(difference_of("stack: [auto_growth, system]\npools: {a: [auto_growth, system]}\n",
                               "stack: [auto_growth, system]\npools: {a: }\n"),
                 "no difference\n");
    EXPECT_STREQ(difference_of("streams: {a*: [system], \"*b\": [system]}\n", "streams: {\"*b\": [system], a*: [system]}\n"),
                 "streams: tried in another order from \"a*\" on\n");
}

/* ---- keep ---- */

static bool keeps(const char *text, const char *setting) {
    strata_strategy_t *strategy = load_request(
        &(strata_config_request_t){.text = text, .set = &setting, .set_count = setting ? 1 : 0});
    const strata_model_named_t *pool = strategy ? strata_strategy_named(strategy, STRATA_NAMED_POOL, "p") : NULL;
    bool keep = pool && pool->keep;
    EXPECT_NE(pool, NULL);
    if (strategy) strata_strategy_delete(strategy);
    return keep;
}

TEST(named, a_pool_may_keep_its_chunks) {
    EXPECT_FALSE(keeps("pools: {p: [auto_growth, system]}", NULL));
    EXPECT_TRUE(keeps("pools: {p: {keep: true, stack: [auto_growth, system]}}", NULL));
    EXPECT_TRUE(keeps("pools: {p: {keep: true}}", NULL));
    EXPECT_TRUE(keeps("pools: {p: {keep: true, stack: [cuda_malloc_async: {pool: own}]}}", NULL));
    EXPECT_TRUE(keeps("pools: {p: {keep: true, stack: [system], places: {pinned: [buffered, system]}}}", NULL));
    EXPECT_TRUE(keeps("pools: {p: [auto_growth, system]}", "pools.p.keep=true"));
    EXPECT_FALSE(keeps("pools: {p: {keep: true, stack: [auto_growth, system]}}", "pools.p.keep=false"));
}

/* Sixty-four letters. */
#define LONGEST "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl"

TEST(named, keep_is_an_option_of_a_pool_that_is_there) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text("pools: {p: [auto_growth, system], " LONGEST ": [system]}");
    ASSERT_NE(strategy, NULL);
    EXPECT_TRUE(strata_strategy_has(strategy, "pools.p.keep"));
    EXPECT_TRUE(strata_strategy_has(strategy, "pools." LONGEST ".keep"));
    EXPECT_FALSE(strata_strategy_has(strategy, "pools.q.keep"));
    EXPECT_FALSE(strata_strategy_has(strategy, "pools.p.keeper"));
}

TEST(named, keep_is_told_and_compared) {
    static const char *const texts[2] = {"pools: {p: {stack: [buffered, system]}}",
                                         "pools: {p: {keep: true, stack: [buffered, system]}}"};
    strata_strategy_t *two[2];
    char *told = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&told, &size);
    for (int i = 0; i < 2; i++) two[i] = load_text(texts[i]);
    ASSERT_TRUE(two[0] && two[1]);
    EXPECT_OK(strata_config_diff(two[0], two[1], "a", "b", out));
    EXPECT_OK(strata_config_explain(two[1], out));
    fclose(out);
    EXPECT_CONTAINS(told, "pools.p.keep:\n  a                    false ");
    EXPECT_CONTAINS(told, "  keep                       true         <text>:1:19\n");
    free(told);
    for (int i = 0; i < 2; i++) strata_strategy_delete(two[i]);
}
