/* Named pools and streams by name, as the command shows them. */
#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "tests/tools/ran.h"

static void write_strategies(void) {
    write_text("pooled.yaml", "strategy: pooled\n"
                              "pools:\n"
                              "  weights: [auto_growth: {chunk_size: 64MiB}, system]\n"
                              "streams:\n"
                              "  \"copy*\": [buffered, system]\n"
                              "graph: {stack: [auto_growth: {chunk_size: 8MiB}, system]}\n");
    write_text("more.yaml", "extends: pooled.yaml\n"
                            "strategy: more\n"
                            "pools:\n"
                            "  weights: {places: {pinned: [buffered, system]}}\n"
                            "  cache:\n");
    write_text("wrong.yaml",
               "pools:\n  weights: [auto_grwoth, system]\nstreams:\n  \"copy*\": [bufered, system]\ngraph: [system]\n");
}

TEST(command_named, explain_shows_stacks_and_who_said_what) {
    write_strategies();
    ran_t ran = run_well("explain more.yaml --set pools.weights.auto_growth.chunk_size=32MiB");
    EXPECT_CONTAINS(ran.out,
                    "\npools.weights, a pool: stacks of its own; the layers are the place's in managed, host  [more.yaml:4:3]\n");
    EXPECT_CONTAINS(ran.out,
                    "\npools.weights.gpu, outermost first\n  auto_growth: cache of scope stream, one instance for each stream  "
                    "[pooled.yaml:3:13]\n    chunk_size               32MiB        --set\n");
    EXPECT_CONTAINS(ran.out, "\npools.weights.pinned, outermost first; one stack serves all streams\n  buffered: ");
    EXPECT_CONTAINS(ran.out,
                    "\npools.cache, a pool: stacks of its own; the layers are the place's in gpu, managed, pinned, host  ");
    EXPECT_CONTAINS(ran.out, "\nstreams.copy*, streams of such a name: stacks of their own; ");
    ran = run_command("STRATA_SET='streams.copy*.buffered.reuse_below=1' -- explain more.yaml");
    EXPECT_CONTAINS(ran.out, "    reuse_below              1            STRATA_SET\n");
    ran = run_command("STRATA_SET='graph.auto_growth.chunk_size=4MiB' -- explain more.yaml");
    EXPECT_CONTAINS(ran.out, "\ngraph.gpu, outermost first\n  auto_growth: cache of scope stream, one instance for each stream  "
                             "[pooled.yaml:6:17]\n    chunk_size               4MiB         STRATA_SET\n");
    ran = run_command("explain more.yaml --set pools.wieghts.auto_growth.chunk_size=1");
    EXPECT_EQ(ran.exit_status, 2);
    EXPECT_CONTAINS(ran.errors, "write pools.weights.auto_growth.chunk_size");
}

TEST(command_named, diff_tells_pools_and_streams_apart) {
    write_strategies();
    EXPECT_STREQ(run_command("diff pooled.yaml pooled.yaml").out, "no difference\n");
    ran_t ran = run_well("diff pooled.yaml more.yaml");
    EXPECT_CONTAINS(ran.out, "pools.weights.pinned.buffered: only in ");
    EXPECT_CONTAINS(ran.out, "pools.cache: only in ");
    EXPECT_LACKS(ran.out, "streams");
    ran = run_command("diff pooled.yaml strata-malloc");
    EXPECT_CONTAINS(ran.out, "streams.copy*: only in ");
    EXPECT_CONTAINS(ran.out, "graph: only in ");
}

TEST(command_named, check_tells_where_they_are_wrong) {
    write_strategies();
    ran_t ran = run_well("check pooled.yaml more.yaml");
    ran = run_command("check wrong.yaml");
    EXPECT_EQ(ran.exit_status, 2);
    EXPECT_CONTAINS(ran.errors, "wrong.yaml:2:13: there is no layer \"auto_grwoth\"; write auto_growth\n");
    EXPECT_CONTAINS(ran.errors, "wrong.yaml:4:13: there is no layer \"bufered\"; write buffered\n");
    EXPECT_CONTAINS(ran.errors, "wrong.yaml:5:8: \"system\" without a cache above it gives memory back");
}

/* A key that matches no stream is reported, for traces with stream names and without. `strata convert` keeps the names. */
TEST(command_named, keys_of_streams_that_match_nothing_are_reported) {
    write_text("copies.yaml", "strategy: copies\nstack: [stream_safe, auto_growth, system]\n"
                              "streams: {\"copy*\": [stream_safe, system], \"nccl*\": [stream_safe, system]}\n");
    write_text("names.csv", "op,id,size,stream,time_us,stream_name\nalloc,1,8,0,0,\nalloc,2,8,5,0,copy0\nfree,2,,5,1,\n");
    write_text("numbers.csv", "op,id,size,stream,time_us\nalloc,1,8,0,0\nalloc,2,8,5,0\nfree,2,,5,1\n");
    static const char *const commands[] = {"compare --device sim:h100 --repeat 1 --strategy copies.yaml --strategy system",
                                           "replay --device sim:h100 --repeat 1 --strategy copies.yaml",
                                           "stats --at end --device sim:h100 --strategy copies.yaml"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        ran_t ran = run_well("%s names.csv", commands[i]);
        EXPECT_STREQ(ran.errors, "strata: copies: streams: \"nccl*\" matches no stream of names.csv\n");
        ran = run_well("%s numbers.csv", commands[i]);
        EXPECT_STREQ(ran.errors, "strata: copies: streams: \"copy*\" matches no stream of numbers.csv, which has no stream names "
                                 "(column stream_name); write the numbers of streams\n"
                                 "strata: copies: streams: \"nccl*\" matches no stream of numbers.csv, which has no stream names "
                                 "(column stream_name); write the numbers of streams\n");
    }
    EXPECT_CONTAINS(run_well("convert names.csv -").out, "stream_name\n");
    EXPECT_CONTAINS(run_well("convert names.csv -").out, ",copy0\n");
}
