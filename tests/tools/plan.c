/* strata plan, as a user runs it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "tests/paths.h"
#include "tests/tools/support/ran.h"

static const char *instance(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, STRATA_SOURCE_DIR "/traces/planning/%s.csv.gz", name);
    return path;
}

static uint64_t figure(const char *json, const char *name) {
    char key[64];
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *at = strstr(json, key);
    return at ? strtoull(at + strlen(key), NULL, 10) : UINT64_MAX;
}

TEST(plan_command, solves_an_instance_and_says_so) {
    ran_t ran = run_well("plan %s --planner exact --capacity 1MiB", instance("minimalloc-C"));
    EXPECT_CONTAINS(ran.out,
                    "203 buffers\n  planner      exact\n  peak         1039360 bytes (0.99 MiB)\n  lower bound  1039360 bytes\n"
                    "  ratio        1.0000\n  proved       yes\n");
    EXPECT_CONTAINS(ran.out, "  capacity     1048576 bytes: fits\n");
    ran = run_command("plan %s --time 100ms --capacity 1039359", instance("minimalloc-C"));
    EXPECT_EQ(ran.exit_status, 1);
    EXPECT_CONTAINS(ran.out, "does not fit");
}

/* No planner runs, for any time limit. */
TEST(plan_command, answers_at_once_below_the_bound) {
    write_text("bound.csv", "lower,upper,size,alignment\n0,2,100,64\n1,3,100,64\n0,3,28,1\n");
    ran_t ran = run_command("plan bound.csv --time 86400s --capacity 227 -o never.csv");
    EXPECT_EQ(ran.exit_status, 1);
    EXPECT_STREQ(ran.out, "bound.csv: 3 buffers\n  lower bound  228 bytes (0.00 MiB)\n"
                          "  capacity     227 bytes: does not fit, 1 bytes less than the lower bound; no plan was made\n");
    EXPECT_STREQ(ran.errors, "");
    EXPECT_TRUE(read_bytes(temporary("never.csv"), &(size_t){0}) == NULL);
    ran = run_command("plan bound.csv --time 86400s --capacity 227 --json -");
    EXPECT_EQ(ran.exit_status, 1);
    EXPECT_CONTAINS(ran.out, "\"buffers\":3,\"peak_bytes\":null,\"lower_bound_bytes\":228,\"proved\":false");
    EXPECT_CONTAINS(run_well("plan bound.csv --capacity 228").out, "  peak         228 bytes (0.00 MiB)\n");
    /* Streams that share memory need less than separate streams. */
    write_text("two.csv", "op,id,size,stream,time_us\nalloc,1,4096,1,0\nfree,1,0,1,1\nalloc,2,4096,2,2\nfree,2,0,2,3\n");
    run_well("plan two.csv --capacity 4096");
    EXPECT_CONTAINS(run_command("plan two.csv --time 86400s --streams apart --capacity 8191").out, "lower bound  8192 bytes");
}

/* Branches share no memory, so no proof exists and the planners use all of their time. */
TEST(plan_command, shows_progress_on_a_terminal) {
    char rows[8192] = "lower,upper,size,fork,branch\n", line[1024];
    for (int i = 0; i < 60; i++)
        snprintf(rows + strlen(rows), 60, "%d,%d,%d,1,%d\n", i * 7 % 50, i * 7 % 50 + 3 + i % 11, 1000 + i * 37 % 900, i % 3);
    write_text("branches.csv", rows);
    snprintf(line, sizeof line, "cd %s && %s plan --planner greedy --time 900ms branches.csv 2>&1 > figures.txt", temporary("."),
             command_path());
    const char *text = run_on_terminal(line);
    if (!text) TEST_SKIP("there are no terminals (/dev/pts)");
    EXPECT_CONTAINS(text, "\r\033[Kgreedy: 0.1 of 0.9 s\r");
    EXPECT_STREQ(text + strlen(text) - 4, "\r\033[K");
    EXPECT_STREQ(run_well("plan --planner greedy --time 200ms branches.csv").errors, "");
}

TEST(plan_command, writes_figures_as_json) {
    ran_t ran = run_well("plan %s --planner auto --json -", instance("minimalloc-A"));
    EXPECT_EQ(
        strncmp(
            ran.out,
            "{\"planner\":\"auto\",\"buffers\":154,\"peak_bytes\":1048576,\"lower_bound_bytes\":1048576,\"proved\":true,\"seconds\":",
            100),
        0);
    char file[512];
    snprintf(file, sizeof file, "%s", write_text("figures.json", ""));
    run_well("plan %s --json %s", instance("minimalloc-A"), file);
    run_well("plan %s --json %s", instance("minimalloc-C"), file); /* replaced */
    char *text = read_bytes(file, &(size_t){0});
    EXPECT_EQ(figure(text, "buffers"), 203);
    free(text);
    char trace[512];
    snprintf(trace, sizeof trace, "%s", write_text("kept.csv", "lower,upper,size\n0,1,2\n"));
    ran = run_command("plan %s --json %s", instance("minimalloc-A"), trace);
    EXPECT_EQ(ran.exit_status, 2);
    EXPECT_CONTAINS(ran.errors, "exists and is not JSON");
}

/* What -o writes is a plan that can be read, and is the same. */
TEST(plan_command, reads_the_plans_that_it_writes) {
    static const char *const names[] = {"plan.json", "plan.csv", "plan.csv.gz"};
    for (size_t i = 0; i < 3; i++) {
        char file[512];
        snprintf(file, sizeof file, "%s", temporary(names[i]));
        uint64_t peak = figure(run_well("plan %s --planner tree --json - -o %s", instance("minimalloc-E"), file).out, "peak_bytes");
        EXPECT_EQ(figure(run_well("plan %s --json -", file).out, "peak_bytes"), peak);
        EXPECT_LT(figure(run_well("plan %s --ignore-offsets --planner greedy --json -", file).out, "peak_bytes"), peak);
    }
}

TEST(plan_command, finds_the_step_that_repeats) {
    char rows[65536] = "op,id,size,stream,time_us\nalloc,1,4096,0,0\nalloc,2,777,0,1\nfree,2,0,0,2\n";
    int id = 2, time = 2;
    for (int step = 0; step < 30; step++)
        for (int layer = 0; layer < 6; layer++) {
            sprintf(rows + strlen(rows), "alloc,%d,%d,0,%d\nalloc,%d,512,0,%d\n", id + 1, 1024 * (layer + 1), time + 1, id + 2,
                    time + 2);
            sprintf(rows + strlen(rows), "free,%d,0,0,%d\nfree,%d,0,0,%d\n", id + 1, time + 3, id + 2, time + 4);
            id += 2, time += 4;
        }
    char file[512];
    snprintf(file, sizeof file, "%s", write_text("steps.csv", rows));
    ran_t ran = run_well("plan %s", file);
    EXPECT_CONTAINS(ran.out, "13 buffers, step 15 of 30 repeated steps\n");
    EXPECT_CONTAINS(ran.out, "peak         10752 bytes"); /* the block that lives throughout, the largest layer, and 512 */
    EXPECT_CONTAINS(run_well("plan %s --step 2", file).out, "13 buffers, step 2 of 30 repeated steps");
    EXPECT_CONTAINS(run_well("plan %s --step all", file).out, "362 buffers\n");
    char plan[512];
    snprintf(plan, sizeof plan, "%s", temporary("held.csv"));
    run_well("plan %s -o %s", file, plan); /* the block that lives throughout was there before, and nothing else */
    char *text = read_bytes(plan, &(size_t){0});
    const char *held = strstr(text, ",4096,256,0,0,0,0,1,");
    EXPECT_TRUE(held && !strstr(strchr(held, '\n'), ",0,1,"));
    free(text);
    ran = run_command("plan %s --step 31", file);
    EXPECT_EQ(ran.exit_status, 2);
    EXPECT_CONTAINS(ran.errors, "has no step 31; write --step all");
}

TEST(plan_command, takes_steps_from_their_rows) {
    char file[512];
    snprintf(file, sizeof file, "%s",
             write_text("marked.csv",
                        "op,id,size,stream,time_us\nstep,,,,0\nalloc,1,512,0,1\nfree,1,0,0,2\nstep,,,,3\nalloc,2,1024,0,4\n"
                        "free,2,0,0,5\nstep,,,,6\nalloc,3,1024,0,7\nfree,3,0,0,8\nstep,,,,9\n"));
    EXPECT_CONTAINS(run_well("plan %s", file).out, "1 buffers, step 3 of 3, from its rows\n");
    EXPECT_CONTAINS(run_well("plan %s --step 1", file).out, "peak         512 bytes");
}

TEST(plan_command, plans_every_trace_of_the_project_near_its_bound) {
    static const char *const traces[] = {"alexnet-training.csv.gz",         "ddp-2rank-v100.csv.gz",
                                         "lm-benchmark-step.csv.gz",        "lm-medium-ctx256-training.csv.gz",
                                         "lm-small-bf16-forward.csv.gz",    "lm-medium-ctx512-inference.csv.gz",
                                         "streams-prefetch.csv.gz",         "streams-serving.csv.gz",
                                         "streams-sharded-training.csv.gz", "tinytorch-mnist.csv"};
    for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
        /* It ends at the bound: the largest has time for that under sanitizers too. */
        const char *most = strstr(traces[i], "tinytorch") ? "90s" : "4s";
        char *json = strdup(run_well("plan --planner greedy --time %s --json - %s", most, project_trace_path(traces[i])).out);
        double ratio = (double)figure(json, "peak_bytes") / (double)figure(json, "lower_bound_bytes");
        if (ratio > 1.02) FAIL_TEST("%s: %g of the bound", traces[i], ratio);
        free(json);
    }
}

TEST(plan_command, tells_what_streams_wait_for) {
    char file[512];
    /* The second stream's block fits into memory of the first, and into nothing else below the peak. */
    snprintf(
        file, sizeof file, "%s",
        write_text("streams.csv", "op,id,size,stream,time_us\nalloc,1,4096,1,0\nfree,1,0,1,1\nalloc,2,4096,2,2\nfree,2,0,2,3\n"));
    EXPECT_CONTAINS(run_well("plan %s", file).out, "implicit     1 reuses of 4096 bytes between streams");
    ran_t ran = run_well("plan %s --streams apart", file);
    EXPECT_LACKS(ran.out, "implicit");
    EXPECT_CONTAINS(ran.out, "peak         8192 bytes");
    ran = run_well("plan %s --compare --time 10ms", file);
    EXPECT_CONTAINS(ran.out, "greedy               4096   1.0000     yes      1");
    EXPECT_CONTAINS(ran.out, "against auto's plan\n");
    EXPECT_CONTAINS(ran.out,
                    "saved by them\nauto              1               4096          1               4096             4096\n");
}

/* The same, but the program orders the two streams by itself: nothing is implicit. */
TEST(plan_command, knows_what_the_program_orders_by_itself) {
    static const char *const orders[] = {"wait,,,2,2,1", "sync,,,1,2,", "sync,,,all,2,"};
    static const char *const others[] = {"wait,,,1,2,2", "sync,,,2,2,", "wait,,,3,2,1"};
    char text[512], file[512];
    for (size_t i = 0; i < 6; i++) {
        snprintf(text, sizeof text,
                 "op,id,size,stream,time_us,other\nalloc,1,4096,1,0,\nfree,1,0,1,1,\n%s\nalloc,2,4096,2,3,\nfree,2,0,2,4,\n",
                 i < 3 ? orders[i] : others[i - 3]);
        snprintf(file, sizeof file, "%s", write_text("ordered.csv", text));
        ran_t ran = run_well("plan %s --time 1ms", file);
        EXPECT_CONTAINS(ran.out, "peak         4096 bytes");
        if (i < 3) EXPECT_LACKS(ran.out, "implicit");
        else EXPECT_CONTAINS(ran.out, "implicit     1 reuses of 4096 bytes");
    }
}

/* Ordered after its owner, and not after the stream that borrows it. */
TEST(plan_command, knows_who_borrows) {
    char file[512];
    snprintf(file, sizeof file, "%s",
             write_text("borrowed.csv",
                        "op,id,size,stream,time_us,other\nalloc,1,4096,1,0,\nborrow,1,0,3,0,\nfree,1,0,1,1,\nwait,,,2,2,1\n"
                        "alloc,2,4096,2,3,\nfree,2,0,2,4,\n"));
    EXPECT_CONTAINS(run_well("plan %s --time 1ms", file).out, "implicit     1 reuses of 4096 bytes");
}

static const session_t sessions[] = {
    {"sets_a_plan_beside_the_planners", .files = {{"given.csv", "id,lower,upper,size,offset\na,0,2,64,64\nb,2,4,64,0\n"}},
     .runs = {{"plan given.csv --compare --time 10ms", 0,
               .out = {"\ngreedy                 64   1.0000     yes      1", "\ngiven                 128   2.0000      no      1",
                       "\ngiven             1          1          0               64\n"}},
              {"plan given.csv --planner exact", 0, .out = {"peak         128 bytes"}}}},
    {"refuses_what_it_cannot_use",
     .files = {{"two.csv", "id,lower,upper,size\na,0,2,64\nb,2,4,64\n"},
               {"clash.csv", "lower,upper,size,offset\n0,2,10,0\n1,3,10,5\n"},
               {"bad.json", "{\"plan\":[{\"lower\":0}]}"},
               {"none.json", "{\"planner\":\"auto\"}"}},
     .wrong = {{"plan", "no file; write a trace, a CSV or a plan"},
               {"plan two.csv two.csv", "takes one file"},
               {"plan two.csv --planner gredy", "there is no planner \"gredy\"; write greedy"},
               {"plan two.csv --time 3", "--time"},
               {"plan two.csv --capacity 0", "--capacity is 0"},
               {"plan two.csv --step 0", "--step 0: write a number from 1, or all"},
               {"plan two.csv --step 1", "two.csv is not a trace; leave out --step"},
               {"plan two.csv --pools some", "--pools some: write intermediates"},
               {"plan two.csv --streams alone", "--streams alone: write together or apart"},
               {"plan two.csv -o two.csv", "is also the input"},
               {"plan two.csv --compare --draw", "--compare only prints tables"},
               {"plan clash.csv", "the fixed buffers are not a valid plan: buffers 0 and 1 share bytes"},
               {"plan bad.json", "bad.json:1: a buffer needs \"lower\", \"upper\", \"size\" and \"offset\""},
               {"plan none.json", "no plan; use a file from strata plan -o"},
               {"plan nowhere.csv", "nowhere.csv: cannot read the file"}}},
};

TEST_EACH(plan_command, prints, session_t, sessions) { expect_session(row); }

TEST(plan_command, shows_plans_and_lines) {
    write_text("two.csv", "id,lower,upper,size\n<a>,0,2,64\nb,2,4,64\n");
    ran_t ran = run_well("plan two.csv --draw --svg two.svg --planner reuse --lines");
    EXPECT_CONTAINS(
        ran.out, "         0  allocate  <a> (64)\n         2  null      <a> (64)\n         2  reuse     b takes over <a> (64)\n");
    EXPECT_CONTAINS(ran.out, "aaaabbbb");
    EXPECT_CONTAINS(ran.out, "time 0 to 4\n");
    char *svg = read_bytes(temporary("two.svg"), &(size_t){0});
    EXPECT_CONTAINS(svg, "<title>&#60;a&#62;: 64 bytes at 0, from 0 to 2</title></rect>");
    free(svg);
}
