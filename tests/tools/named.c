/* Named pools and streams by name, as the command shows them. */
#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "tests/tools/support/ran.h"

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

static const session_t sessions[] = {
    {"explain_shows_stacks_and_who_said_what",
     .runs =
         {{"explain more.yaml --set pools.weights.auto_growth.chunk_size=32MiB", 0,
           .out =
               {"\npools.weights, a pool with its own stacks; the place's layers serve managed, host  [more.yaml:4:3]\n",
                "\npools.weights.gpu, outermost first\n  retry: {timeout: 0}: added, because the stack has none  [default]\n  "
                "stream_safe: waits on the host: added, because no layer handles borrows  [default]\n  "
                "auto_growth: cache of scope stream, one instance for each stream  "
                "[pooled.yaml:3:13]\n    chunk_size               32MiB        --set\n",
                "\npools.weights.pinned, outermost first; one stack serves all streams\n  retry: {timeout: 0}: added, because "
                "the stack has none  [default]\n  stream_safe: waits on the host: added, because no layer handles borrows  [default]\n  buffered: ",
                "\npools.cache, a pool with its own stacks; the place's layers serve gpu, managed, pinned, host  ",
                "\nstreams.copy*, streams with a matching name, with their own stacks; "}},
          {"STRATA_SET='streams.copy*.buffered.reuse_below=1' -- explain more.yaml", 0,
           .out = {"    reuse_below              1            STRATA_SET\n"}},
          {"STRATA_SET='graph.auto_growth.chunk_size=4MiB' -- explain more.yaml", 0,
           .out = {"\ngraph.gpu, outermost first\n  retry: {timeout: 0}: added, because the stack has none  [default]\n  "
                   "stream_safe: waits on the host: added, because no layer handles borrows  [default]\n  "
                   "auto_growth: cache of scope stream, one instance for each stream  "
                   "[pooled.yaml:6:17]\n    chunk_size               4MiB         STRATA_SET\n"}},
          {"explain more.yaml --set pools.wieghts.auto_growth.chunk_size=1", 2,
           .errors = {"write pools.weights.auto_growth.chunk_size"}}},
     .prepare = write_strategies},
    {"diff_tells_pools_and_streams_apart",
     .runs = {{"diff pooled.yaml pooled.yaml", 0, .out = {"=no difference\n"}},
              {"diff pooled.yaml more.yaml", 0, .out = {"pools.weights.pinned.buffered: only in ", "pools.cache: only in "},
               .lacks = {"streams"}},
              {"diff pooled.yaml strata-malloc", 0, .out = {"streams.copy*: only in ", "graph: only in "}}},
     .prepare = write_strategies},
    {"check_tells_where_they_are_wrong",
     .runs = {{"check pooled.yaml more.yaml", 0, .out = {NULL}},
              {"check wrong.yaml", 2,
               .errors = {"wrong.yaml:2:13: there is no layer \"auto_grwoth\"; write auto_growth\n",
                          "wrong.yaml:4:13: there is no layer \"bufered\"; write buffered\n",
                          "wrong.yaml:5:8: \"system\" without a cache above it gives memory back"}}},
     .prepare = write_strategies},
};

TEST_EACH(command_named, prints, session_t, sessions) { expect_session(row); }

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
