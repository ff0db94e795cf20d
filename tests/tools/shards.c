/* Shards of a comparison, and one comparison of their JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/tools/support/ran.h"

#define RUN(trace, label)                                                                                                          \
    "{\"trace\": \"" trace "\", \"label\": \"" label "\", \"options\": {\"a\": [1.5e-3, null, \"\\u00e9\\\"\"]}}"
#define JSON(runs) "{\"schema\": 1, \"runs\": [" runs "]}\n"

static size_t count_of(const char *text, const char *part) {
    size_t count = 0;
    for (const char *at = text; at && (at = strstr(at, part)); at++) count++;
    return count;
}

TEST(shards, each_takes_its_traces) {
    char traces[4096];
    snprintf(traces, sizeof traces, "--device sim --repeat 1 --strategy paddle --strategy system %s %s %s",
             project_trace_path("alexnet-training.csv.gz"), project_trace_path("lm-small-bf16-forward.csv.gz"),
             project_trace_path("lm-benchmark-step.csv.gz"));
    ran_t ran = run_well("compare --shard 0/2 --json 0.json %s", traces);
    EXPECT_CONTAINS(ran.out, "alexnet-training.csv.gz\n");
    EXPECT_CONTAINS(ran.out, "lm-benchmark-step.csv.gz\n");
    EXPECT_LACKS(ran.out, "lm-small");
    ran = run_well("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 -- compare --shard auto --json 1.json %s", traces);
    EXPECT_CONTAINS(ran.out, "lm-small-bf16-forward.csv.gz\n");
    ran = run_well("compare --shard 7/9 --json 7.json %s", traces);
    EXPECT_STREQ(ran.out, "");
    ran = run_well("merge 0.json 1.json 7.json");
    EXPECT_EQ(count_of(ran.out, "\"label\": "), 6);
    EXPECT_EQ(count_of(ran.out, "\"schema\": 1"), 1);
    ran = run_well("merge --json all.json 0.json 1.json");
    EXPECT_STREQ(ran.out, "");
    ran = run_command("merge all.json 7.json"); /* what was merged can be merged again */
    EXPECT_EQ(count_of(ran.out, "\"label\": "), 6);
    expect_wrong_use("merge all.json 1.json", "occurs twice, in all.json and in 1.json; merge each shard once");
}

/* Traces of one name in several folders, whatever shard each falls to: as much of the path as tells them apart is the name. */
TEST(shards, traces_of_one_name_are_told_apart) {
    static const char rows[] = "op,id,size,stream,time_us\nalloc,1,256,0,0\n";
    static const char *const folders[] = {"a", "a/b", "c", "c/b"};
    char path[64];
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        mkdir(temporary(folders[i]), 0777);
        snprintf(path, sizeof path, "%s/x.csv", folders[i]);
        write_text(path, rows);
    }
    write_text("y.csv", rows);
    for (int shard = 0; shard < 2; shard++) {
        ran_t ran = run_well("compare --strategy system --device sim --repeat 1 --draw --shard %d/2 --json %d.json a/x.csv "
                             "a/b/x.csv y.csv c/b/x.csv ./c/x.csv",
                             shard, shard);
        EXPECT_CONTAINS(ran.out, shard ? "a/b/x.csv\n" : "a/x.csv\n");
        EXPECT_CONTAINS(ran.out, shard ? "\nc/b/x.csv\n" : "\nc/x.csv\n");
        EXPECT_CONTAINS(ran.out, shard ? "c/b/x.csv, at the peak" : "\ny.csv, at the peak");
    }
    ran_t ran = run_well("merge 0.json 1.json");
    EXPECT_EQ(count_of(ran.out, "\"label\": "), 5);
    EXPECT_CONTAINS(ran.out, "\"trace\": \"a/b/x.csv\"");
    EXPECT_CONTAINS(ran.out, "\"trace\": \"y.csv\"");
    expect_wrong_use("compare --strategy system --device sim y.csv a/x.csv y.csv", "y.csv is given twice");
}

TEST(shards, wrong_ones_are_refused) {
    static const char *const wrong[] = {"2/2", "0/0", "1", "/2", "a/2", "1/2x", "0x1/2", "1/", "auto", "1/9999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ran_t ran = run_command("compare --strategy paddle --shard %s x.csv", wrong[i]);
        EXPECT_EQ(ran.exit_status, 2);
        EXPECT_CONTAINS(ran.errors, "--shard ");
    }
}

TEST(shards, runs_are_merged_as_they_are) {
    write_text("a.json", JSON(RUN("t", "x") ", " RUN("t", "y")));
    write_text("b.json", " {\"runs\": [" RUN("u", "x") "],\n\"schema\" : 1, \"more\": [[], {}, -0.5, true]} \n");
    ran_t ran = run_well("merge a.json b.json");
    EXPECT_STREQ(ran.out, JSON(RUN("t", "x") ", " RUN("t", "y") ", " RUN("u", "x")));
}

/* Lists with the same name are concatenated. A file without such a list, or with an empty one, adds nothing. */
TEST(shards, other_lists_are_joined) {
    write_text("a.json", "{\"schema\": 1, \"provenance\": [{\"a\": [1, 2]}], \"errors\": [ ], \"runs\": [" RUN("t", "x") "]}");
    write_text("b.json", "{\"schema\": 1, \"runs\": [" RUN("u", "x") "], \"verdicts\": [\n3 ], \"provenance\": [\n{\"b\": 1},4]}");
    write_text("c.json", JSON(RUN("v", "x")));
    ran_t ran = run_well("merge a.json c.json b.json");
    EXPECT_STREQ(ran.out, "{\"schema\": 1, \"provenance\": [{\"a\": [1, 2]},\n{\"b\": 1},4],\n\"verdicts\": [3],\n\"runs\": [" RUN(
                              "t", "x") ", " RUN("v", "x") ", " RUN("u", "x") "]}\n");
}

static void expect_merge_refused(const char *text, const char *error) {
    write_text("wrong.json", text);
    expect_wrong_use("merge wrong.json", error);
}

TEST(shards, what_is_no_comparison_is_refused) {
    expect_merge_refused("", "wrong.json:1: not JSON");
    expect_merge_refused("nothing", "wrong.json:1: expected a value");
    expect_merge_refused("[]", "wrong.json:1: no \"schema\": 1");
    expect_merge_refused("{\"runs\": []}", "no \"schema\": 1");
    expect_merge_refused("{\n\"schema\": 2}", "wrong.json:2: unknown schema; this version reads 1");
    expect_merge_refused("{\"schema\": 1,\n\n\"runs\": {}}", "wrong.json:3: runs is not an array");
    expect_merge_refused("{\"schema\": 1,\n\"runs\": [\n3]}", "wrong.json:3: a run is not an object");
    expect_merge_refused("{\"schema\": 1, \"runs\": [" RUN("t", "x") ",\n\n{\"label\": \"x\"}]}",
                         "wrong.json:3: the run has no trace or no label");
    expect_merge_refused("{\"schema\": 1, \"runs\": []} x", "more text after the end");
    expect_merge_refused("{\"schema\": 1 \"runs\": []}", "expected a comma or the end");
    expect_merge_refused("{\"schema\" 1}", "expected a colon");
    expect_merge_refused("{schema: 1}", "expected a string");
    expect_merge_refused("{\"schema\": 1, \"runs\": [],\n\"provenance\": 3}",
                         "wrong.json:2: provenance, errors and verdicts must be arrays");
    expect_merge_refused("{\"schema\": 1, \"a\": 01}", "expected a comma or the end");
    expect_merge_refused("{\"schema\": 1.}", "incomplete number");
    expect_merge_refused("{\"schema\": 1, \"a\": \"\\x\"}", "invalid escape");
    expect_merge_refused("{\"schema\": 1, \"a\": \"", "unterminated string");
    expect_merge_refused("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "nested too deep");
    expect_wrong_use("merge missing.json", "missing.json: cannot read the file: No such file");
    expect_wrong_use("merge", "");
    expect_wrong_use("merge --shard 1 a.json", "");
}

/* A comparison of 2^20 runs and one more, a line each. */
static bool write_many_runs(const char *name) {
    enum { MOST = 1 << 20 };
    FILE *file = fopen(temporary(name), "w");
    if (!file) return false;
    fprintf(file, "{\"schema\": 1, \"runs\": [{\"trace\":1,\"label\":0}");
    for (int i = 1; i <= MOST; i++) fprintf(file, ",\n{\"trace\":1,\"label\":%d}", i);
    fprintf(file, "]}\n");
    return fclose(file) == 0;
}

TEST(shards, runs_that_there_is_no_room_for_are_not_wrong_ones) {
    if (*STRATA_SANITIZERS) TEST_SKIP("sanitizers take terabytes of address space, and look at the whole file for each number");
    ASSERT_TRUE(write_many_runs("many.json"));
    expect_wrong_use("merge many.json", "many.json:1048577: too many runs");
    ran_t ran = run_command("sh -c 'ulimit -v 80000; exec \"$@\"' sh -- merge many.json");
    EXPECT_EQ(ran.exit_status, 1);
    EXPECT_CONTAINS(ran.errors, "strata: the host refused ");
    EXPECT_LACKS(ran.errors, "many.json");
}

/* Every text cut short is refused. */
TEST(shards, a_cut_file_is_refused) {
    static const char whole[] = JSON(RUN("t", "x"));
    for (size_t i = 0; i + 2 < sizeof whole; i += 3) {
        write_file("cut.json", whole, i);
        expect_wrong_use("merge cut.json", "");
    }
}

/* What --json names may be a trace, or anything else that somebody wants to keep. */
TEST(shards, json_replaces_nothing_but_a_comparison) {
    static const char trace[] = "op,id,size,stream,time_us\nalloc,1,8,0,0\n";
    static const char *const kept[] = {trace,           "{}", "[{\"schema\": 1}]", "{\"schemas\": 1}", "x", "{\"scheme\": 1}",
                                       "\"schema\": 1}"};
    write_text("t.csv", trace);
    write_text("shard.json", JSON(RUN("t", "x")));
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        static const char *const commands[] = {"compare --device sim --strategy system --repeat 1 --json kept.csv t.csv",
                                               "merge --json kept.csv shard.json"};
        for (size_t k = 0; k < 2; k++) {
            char path[300];
            snprintf(path, sizeof path, "%s", write_text("kept.csv", kept[i]));
            expect_wrong_use(commands[k], "--json kept.csv: the file exists and is not a comparison of strata; write another name");
            size_t count;
            char *now CLOSED_BY(text_cleanup) = read_bytes(path, &count);
            EXPECT_EQ(count, strlen(kept[i]));
            EXPECT_TRUE(now && memcmp(now, kept[i], count) == 0);
        }
    }
    static const char *const replaced[] = {"", " \n{ \"schema\" :9", JSON(RUN("old", "y"))};
    for (size_t i = 0; i < sizeof replaced / sizeof *replaced; i++) {
        write_text("all.json", replaced[i]);
        EXPECT_EQ(run_command("compare --device sim --strategy system --repeat 1 --json all.json t.csv").exit_status, 0);
        EXPECT_EQ(run_command("merge --json all.json all.json").exit_status, 0); /* its own input, read by then */
        ran_t ran = run_well("merge all.json");
        EXPECT_CONTAINS(ran.out, "\"trace\": \"t.csv\"");
    }
}
