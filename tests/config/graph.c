/* `graph:`, the stack of the private pools of captured graphs: what it says, what it extends, its paths, how it is told and refused. */
#include <stdio.h>

#include "allocation/options/option.h"
#include "tests/config/refused.h"
#include "tests/harness/owned.h"

static const char written[] = "stack: [retry, stream_safe, auto_growth, system]\n"
                              "graph:\n"
                              "  stack: [stream_safe, auto_growth: {chunk_size: 8MiB}, system]\n"
                              "  out_of_memory: {timeout: 7ms}\n"
                              "  places: {managed: [buffered, system]}\n";

static const strata_model_stack_t *stack_of(const strata_strategy_t *strategy, strata_place_kind_t place) {
    static const strata_model_stack_t nothing;
    const strata_model_named_t *graph = strategy ? strata_strategy_named(strategy, STRATA_NAMED_GRAPH, "graph") : NULL;
    return graph ? &graph->stacks[place] : &nothing;
}

TEST(graph_section, has_stacks_of_its_own) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text(written);
    ASSERT_NE(strategy, NULL);
    ASSERT_EQ(strategy->named[STRATA_NAMED_GRAPH].count, 1);
    EXPECT_STREQ(strategy->named[STRATA_NAMED_GRAPH].list->path, "graph");
    EXPECT_EQ(strategy->named[STRATA_NAMED_GRAPH].list->origin.line, 2);
    const strata_model_stack_t *gpu = stack_of(strategy, STRATA_PLACE_GPU);
    EXPECT_EQ(gpu->count, 4);
    EXPECT_STREQ(value_in(gpu, "auto_growth", "chunk_size"), "8MiB");
    EXPECT_STREQ(value_in(gpu, "out_of_memory", "timeout"), "7ms");
    EXPECT_EQ(stack_of(strategy, STRATA_PLACE_MANAGED)->count, 2);
    EXPECT_EQ(stack_of(strategy, STRATA_PLACE_PINNED)->count, 0);
    EXPECT_STREQ(value_of(strategy, "auto_growth", "chunk_size"), "0");
}

TEST(graph_section, is_a_stack_however_it_is_written) {
    static const char *const ways[] = {"graph: [auto_growth: {chunk_size: 8MiB}, system]\n",
                                       "graph: {stack: [auto_growth: {chunk_size: 8MiB}, system]}\n",
                                       "graph:\n  stack:\n    - auto_growth: {chunk_size: 8MiB}\n    - system\n"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text(ways[i]);
        EXPECT_STREQ(value_in(stack_of(strategy, STRATA_PLACE_GPU), "auto_growth", "chunk_size"), "8MiB");
    }
    strata_strategy_t *silent CLOSED_BY(strategy_cleanup) = load_text("stack: [system]\n");
    EXPECT_EQ(silent->named[STRATA_NAMED_GRAPH].count, 0);
    strata_strategy_t *other CLOSED_BY(strategy_cleanup) = load_text("graph: {places: {managed: [buffered, system]}}\n");
    EXPECT_EQ(stack_of(other, STRATA_PLACE_GPU)->count, 0);
    EXPECT_EQ(stack_of(other, STRATA_PLACE_MANAGED)->count, 2);
}

TEST(graph_section, of_a_file_lies_over_what_it_extends) {
    (void)file_of("graph_base.yaml", written);
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_request(&(strata_config_request_t){
        .file = file_of("graph_over.yaml",
                        "extends: graph_base.yaml\ngraph: {stack: [auto_growth: {chunk_size: 2MiB}, system]}\n")});
    EXPECT_STREQ(value_in(stack_of(strategy, STRATA_PLACE_GPU), "auto_growth", "chunk_size"), "2MiB");
    EXPECT_STREQ(value_in(stack_of(strategy, STRATA_PLACE_GPU), "out_of_memory", "timeout"), "none");
    EXPECT_EQ(stack_of(strategy, STRATA_PLACE_MANAGED)->count, 2);
    EXPECT_EQ(strategy->named[STRATA_NAMED_GRAPH].count, 1);
    strata_strategy_t *same CLOSED_BY(strategy_cleanup) = load_request(
        &(strata_config_request_t){.file = file_of("graph_same.yaml", "extends: graph_base.yaml\nstack: [system]\n")});
    EXPECT_STREQ(value_in(stack_of(same, STRATA_PLACE_GPU), "auto_growth", "chunk_size"), "8MiB");
    strata_strategy_t *later CLOSED_BY(strategy_cleanup) = load_request(&(strata_config_request_t){
        .file = file_of("graph_later.yaml", "extends: graph_base.yaml\ngraph: {out_of_memory: {timeout: 9ms}}\n")});
    EXPECT_STREQ(value_in(stack_of(later, STRATA_PLACE_GPU), "out_of_memory", "timeout"), "9ms");
    EXPECT_STREQ(value_in(stack_of(later, STRATA_PLACE_GPU), "auto_growth", "chunk_size"), "8MiB");
}

/* What the preset strata says of graphs belongs to its stack. */
TEST(graph_section, of_a_preset_goes_with_its_stack) {
    strata_strategy_t *inherits CLOSED_BY(strategy_cleanup) = load_text("extends: strata\n");
    EXPECT_EQ(inherits->named[STRATA_NAMED_GRAPH].count, 1);
    strata_strategy_t *writes CLOSED_BY(strategy_cleanup) = load_text("extends: strata\nstack: [auto_growth, system]\n");
    EXPECT_EQ(writes->named[STRATA_NAMED_GRAPH].count, 0);
    strata_strategy_t *has_none CLOSED_BY(strategy_cleanup) = load_text("places: {pinned: [system]}\n");
    EXPECT_EQ(has_none->named[STRATA_NAMED_GRAPH].count, 1);
}

/* ---- paths ---- */

TEST(graph_section, values_have_paths) {
    static const strata_origin_t origin = {.source = STRATA_FROM_COMMAND, .file = "--set"};
    static const char *const paths[] = {"graph.auto_growth.chunk_size", "graph.gpu.auto_growth.chunk_size",
                                        "graph.stack.auto_growth.chunk_size"};
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text(written);
    ASSERT_NE(strategy, NULL);
    for (size_t i = 0; i < 3; i++) {
        char value[8];
        snprintf(value, sizeof value, "%zuMiB", i + 3);
        EXPECT_OK(strata_strategy_set(strategy, paths[i], value, &origin));
        EXPECT_STREQ(value_in(stack_of(strategy, STRATA_PLACE_GPU), "auto_growth", "chunk_size"), value);
        EXPECT_TRUE(strata_strategy_has(strategy, paths[i]));
    }
    EXPECT_OK(strata_strategy_set(strategy, "graph.managed.buffered.reuse_below", "1", &origin));
    EXPECT_STREQ(value_in(stack_of(strategy, STRATA_PLACE_MANAGED), "buffered", "reuse_below"), "1");
    EXPECT_OK(strata_strategy_set(strategy, "graph.out_of_memory.timeout", "8ms", &origin));
    EXPECT_STREQ(value_in(stack_of(strategy, STRATA_PLACE_GPU), "out_of_memory", "timeout"), "8ms");
    EXPECT_STREQ(value_of(strategy, "auto_growth", "chunk_size"), "0");
    EXPECT_STREQ(value_of(strategy, "retry", "timeout"), "10s");
    EXPECT_FALSE(strata_strategy_has(strategy, "graph.pinned.auto_growth.chunk_size"));
    EXPECT_FALSE(strata_strategy_has(strategy, "graph.keep"));
}

TEST(graph_section, wrong_paths_say_what_to_write) {
    expect_unset("stack: [auto_growth, system]", "graph.auto_growth.chunk_size=1MiB",
                 "--set: the strategy has no \"graph\", so graphs have the layers of the place; write graph: {stack: [...]} in "
                 "its file, or stack.auto_growth.chunk_size");
    expect_unset("stack: [auto_growth, system]", "graph.managed.auto_growth.chunk_size=1MiB",
                 "--set: the strategy has no \"graph\", so graphs have the layers of the place; write graph: {stack: [...]} in "
                 "its file, or managed.auto_growth.chunk_size");
    expect_unset(written, "graph.pinned.auto_growth.chunk_size=1MiB",
                 "--set: graph has no own stack for the place pinned; write pinned.auto_growth.chunk_size");
    expect_unset(written, "graph.auto_grwoth.chunk_size=1MiB",
                 "--set: the stack of the place gpu in graph has no layer \"auto_grwoth\"; write graph.auto_growth.chunk_size");
    expect_unset(written, "graph.limit.bytes=1MiB",
                 "--set: the stack of the place gpu in graph has no layer \"limit\"; its layers are out_of_memory, stream_safe, "
                 "auto_growth, system");
    expect_unset(written, "graph.auto_growth.chunk=1MiB",
                 "--set: \"auto_growth\" has no option \"chunk\"; write graph.auto_growth.chunk_size");
    expect_unset(written, "graph.auto_growth.chunk_size=20MB",
                 "--set: graph.auto_growth.chunk_size: \"20MB\": unknown unit \"MB\"; write 20MiB");
    expect_unset(written, "graph.manged.buffered.reuse_below=1",
                 "--set: there is no place \"manged\"; write graph.managed.buffered.reuse_below");
    expect_unset(written, "graph.graph.buffered.reuse_below=1",
                 "--set: there is no place \"graph\"; write graph.PLACE.buffered.reuse_below, where PLACE is one of gpu, managed, "
                 "pinned, host, stack");
    expect_unset(written, "grpah.auto_growth.chunk_size=1MiB",
                 "--set: there is no place \"grpah\"; write graph.auto_growth.chunk_size");
    expect_unset(written, "graph.managed.out_of_memory.timeout=1s",
                 "--set: graph.managed.out_of_memory: its stack has no such setting; write out_of_memory: {timeout: ...} "
                 "beside the stack");
    expect_unset(written, "graph.keep=true",
                 "--set: graph.keep: the pool of a captured graph keeps its chunks while the graph exists; remove keep");
    static const char *const forms[] = {"graph.gpu:1.auto_growth.chunk_size=1MiB", "graph.a.managed.buffered.reuse_below=1"};
    for (size_t i = 0; i < 2; i++) {
        strata_strategy_t *strategy = NULL;
        strata_config_request_t request = {.text = written, .set = &forms[i], .set_count = 1};
        EXPECT_SAYS(STRATA_E_STRATEGY, strata_config_load(&request, &strategy), "or graph.LAYER.OPTION");
    }
}

/* ---- what is refused ---- */

TEST(graph_section, a_stack_has_its_most_layers_there_too) {
    char yaml[2048];
    for (int layers = STRATA_STACK_LAYERS; layers <= STRATA_STACK_LAYERS + 1; layers++) {
        size_t length = (size_t)sprintf(yaml, "graph: [");
        for (int i = 1; i < layers; i++) length += (size_t)sprintf(yaml + length, "stat: {name: s%d}, ", i);
        sprintf(yaml + length, "system]\n");
        strata_strategy_t *strategy = NULL;
        EXPECT_SAYS(STRATA_E_STRATEGY, strata_config_load(&(strata_config_request_t){.text = yaml}, &strategy),
                    layers > STRATA_STACK_LAYERS ? "a stack has at most 64 layers" : "from the top or the last cache");
    }
}

/* ---- memory that a graph may still use ---- */

/* A place's own stack is not refused before a graph wants it. */
TEST(graph_section, a_places_own_plan_can_be_asked) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_text(
        "stack: [stream_safe, system]\nplaces: {managed: [system], host: [stream_safe, buffered, system]}\n");
    ASSERT_NE(strategy, NULL);
    strata_plan_t plan;
    EXPECT_OK(strata_strategy_plan(strategy, STRATA_PLACE_GPU, &plan));
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, strata_plan_serves_graphs(&plan));
    EXPECT_STREQ(strata_last_error()->text, "\"system\" " WITHOUT_A_CACHE "; write graph: {stack: [auto_growth, system]}");
    EXPECT_OK(strata_strategy_plan(strategy, STRATA_PLACE_MANAGED, &plan));
    EXPECT_SAYS(STRATA_E_UNSUPPORTED, strata_plan_serves_graphs(&plan), "write graph: {places: {managed: [auto_growth, system]}}");
    EXPECT_OK(strata_strategy_plan(strategy, STRATA_PLACE_HOST, &plan));
    EXPECT_OK(strata_plan_serves_graphs(&plan));
}

/* ---- how it is told ---- */

TEST(graph_section, explain_tells_it) {
    const char *set[] = {"graph.auto_growth.alignment=256"};
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = load_request(
        &(strata_config_request_t){.text = written, .set = set, .set_count = 1});
    ASSERT_NE(strategy, NULL);
    FILE *out = tmpfile();
    EXPECT_OK(strata_config_explain(strategy, out));
    const char *text = read_back(out);
    EXPECT_CONTAINS(text, "\ngraph, private pools of captured graphs, with their own stacks  "
                          "[<text>:2:1]\n\ngraph.gpu, outermost first\n  out_of_memory: recovery of this stack  [<text>:4:3]\n");
    EXPECT_CONTAINS(text, "    chunk_size               8MiB         <text>:3:50\n");
    EXPECT_CONTAINS(text, "    alignment                256          --set\n");
    EXPECT_CONTAINS(
        text,
        "\ngraph.managed, outermost first\n  retry: {timeout: 0}: added, because the stack has none  [default]\n  stream_safe: waits on the host: added, because no layer handles borrows  [default]\n  buffered: ");
    EXPECT_LACKS(text, "keep  ");
}

TEST(graph_section, diff_tells_what_they_differ_in) {
    EXPECT_STREQ(difference_of(written, written), "no difference\n");
    EXPECT_STREQ(difference_of("graph: [auto_growth, system]\n", "graph: {stack: [auto_growth, system]}\n"), "no difference\n");
    EXPECT_STREQ(difference_of("graph: [auto_growth, system]\nstack: [system]\n", "stack: [system]\n"),
                 "graph: only in one  [<text>:1:1]\n");
    EXPECT_STREQ(difference_of("graph: [auto_growth: {chunk_size: 1MiB}, system]\n", "graph: [auto_growth, system]\n"),
                 "graph.gpu.auto_growth.chunk_size:\n  one                  1MiB         [<text>:1:35]\n"
                 "  two                  0            [default]\n");
    EXPECT_STREQ(difference_of("graph: {stack: [auto_growth, system], places: {managed: [buffered, system]}}\n"
                               "places: {managed: [buffered, system]}\n",
                               "graph: [auto_growth, system]\nplaces: {managed: [buffered, system]}\n"),
                 "no difference\n");
}
