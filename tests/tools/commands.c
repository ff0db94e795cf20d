/* The command as a person uses it: what it prints, and how it ends. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/tools/support/ran.h"

#define SMALL "$TRACES/alexnet-training.csv.gz"
#define BATCH "--device sim --repeat 1"

static const session_t sessions[] = {
    {"helps",
     .runs = {{"help", 0, .out = {"strata compare"}},
              {"help compare", 0, .out = {"--capacity SIZE"}},
              {"--help", 0, .out = {NULL}},
              {"version", 0, .out = {"0.1.0"}}},
     .wrong = {{"", "For more, run strata help COMMAND or strata COMMAND --help"},
               {"comapre", "there is no command \"comapre\"; did you mean strata compare"},
               {"help nothing", "there is no command \"nothing\""},
               {"version now", "takes no arguments"}}},
    {"lists",
     .runs = {{"presets", 0, .out = {"\npaddle ", "\nstrata "}},
              {"presets paddle", 0, .out = {"strategy: paddle"}},
              {"layers", 0, .out = {"auto_growth"}},
              {"layers --markdown", 0, .out = {NULL}},
              {"fields", 0, .out = {"| peak_reserved_bytes |"}},
              {"grammar", 0, .out = {"| `extends` |"}}},
     .wrong = {{"grammar all", "takes no arguments"},
               {"presets nobody", "there is no preset \"nobody\"; write one of cuda_malloc_async, "},
               {"layers --html", "unknown option --html"}}},
    {"checks_files",
     .files = {{"good.yaml", "version: 1\nstrategy: mine\nstack:\n  - auto_growth: {}\n  - system: {}\n"},
               {"bad.yaml", "version: 1\nstrategy: mine\nstack:\n  - auto_growht: {}\n  - system: {}\n"}},
     .runs = {{"check good.yaml good.yaml", 0, .out = {""}, {""}},
              {"check good.yaml bad.yaml", 2, .out = {""}, {"bad.yaml:4:", "auto_growth"}}},
     .wrong = {{"check", "no file;"}, {"check missing.yaml", "missing.yaml"}}},
    {"explains",
     .runs = {{"explain paddle --set auto_growth.chunk_size=20MiB", 0, .out = {"20MiB", "--set"}},
              {"STRATA_STRATEGY=system -- explain", 0, .out = {"strategy system"}},
              {"explain", 0, .out = {"strategy strata"}}},
     .wrong = {{"explain paddle --set auto_growth.chunksize=1", "chunk_size"},
               {"explain paddle --set nothing", "--set needs PATH=VALUE"},
               {"explain a b", "takes one strategy"},
               {"explain nowhere.yaml", "nowhere.yaml"},
               {"explain padle", "paddle"}}},
    {"tells_differences",
     .runs = {{"diff paddle strata-malloc", 0,
               .out = {"stack.auto_growth.chunk_size:\n  paddle               0            [preset paddle:",
                       "\n  strata-malloc        20MiB        [preset strata-malloc:"}},
              {"diff strata strata", 0, .out = {"=no difference\n"}}},
     .wrong = {{"diff strata", "needs two strategies"}, {"diff strata padle", "paddle"}}},
    {"refuses_wrong_usage",
     .wrong = {{"replay x.csv", "--strategy is missing"},
               {"compare --strategy paddle", "no trace"},
               {"compare --strategy", "--strategy needs a value"},
               {"compare --strategie paddle x.csv", "unknown option --strategie; did you mean --strategy"},
               {"compare --label a --strategy paddle x.csv", "--label a is before the first --strategy"},
               {"compare --strategy paddle --label a --label b x.csv", "paddle has two labels"},
               {"compare --strategy paddle --label '' x.csv", "a label must have 1 to"},
               {"compare --strategy paddle --label a --strategy strata --label a x.csv", "two strategies have the label \"a\""},
               {"compare --strategy paddle --label \"$(printf 'a\\377')\" --strategy strata --label \"$(printf 'a\\376')\" x.csv",
                "two strategies have the label \"a?\"; give each its own"},
               {"compare --strategy paddle --set chunk x.csv", "write PATH=VALUE"},
               {"compare --strategy paddle --repeat 0 x.csv", "--repeat 0: write a number from 1 to 1000"},
               {"compare --strategy paddle --repeat -1 x.csv", "--repeat"},
               {"compare --strategy paddle --capacity lots x.csv", "--capacity"},
               {"compare --strategy paddle --capacity 0 x.csv", "--capacity is 0"},
               {"compare --strategy paddle --gpu-lag 5 x.csv", "--gpu-lag"},
               {"compare --strategy paddle --gpu-lag never x.csv", "--gpu-lag never is too long"},
               {"compare --strategy paddle --gpu-lag 1500ns x.csv", "--gpu-lag 1500ns: write whole microseconds"},
               {"compare --strategy paddle --host-jitter 0 x.csv", "--host-jitter 0: write a number from 1 to 4294967295"},
               {"compare --strategy paddle --host-jitter often x.csv", "--host-jitter often"},
               {"compare --strategy paddle --smallest=1 x.csv", "--smallest takes no value"},
               {"replay --strategy paddle --strategy strata x.csv", "--strategy is given twice"},
               {"compare --strategy paddle --device cpu x.csv", "\"cpu\" is not a device; write gpu, gpu:0 to gpu:15, sim, sim:"},
               {"compare --strategy paddle --device sim missing.csv", "missing.csv: cannot read the file: No such file"}}},
    {"refuses_wrong_traces",
     .files = {{"wrong.csv", "op,id,size,stream,time_us\nfree,1,0,0,0\n"},
               {"pools.csv", "op,id,size,stream,time_us,pool\npool_end,,0,0,0,3\n"}},
     .runs = {{"replay " BATCH " --strategy paddle " SMALL " wrong.csv",
               2,
               .out = {""},
               {"=wrong.csv:2:6: free of id 1, which no row above allocates; write its alloc first\n"}}},
     .wrong = {{"replay " BATCH " --strategy paddle pools.csv",
                "pools.csv:2:17: pool_end of pool 3, which is not open on stream 0"}}},
    {"the_environment_is_heard_first",
     .runs = {{"STRATA_SET=auto_growth.chunk_size=4MiB -- replay " BATCH " --json - --strategy paddle " SMALL, 0,
               .out = {"{\"auto_growth.chunk_size\": \"4MiB\"}"}},
              {"STRATA_SET=auto_growth.chunk_size=4MiB -- replay " BATCH " --json - --strategy paddle "
               "--set auto_growth.chunk_size=6MiB " SMALL,
               0, .out = {"\"options\": {\"auto_growth.chunk_size\": \"6MiB\"}"}}}},
    {"what_is_wrong_in_the_environment_is_told_as_its_own",
     .wrong = {{"STRATA_SET=auto_growth.chunk=1 -- compare --strategy paddle x.csv",
                "STRATA_SET: auto_growth.chunk=1: none of the strategies has this path"},
               {"compare --set auto_growth.chunk=1 --strategy paddle x.csv",
                "--set auto_growth.chunk=1: none of the strategies has this path"},
               {"STRATA_SET=auto_growth -- compare --strategy paddle x.csv", "STRATA_SET: \"auto_growth\" is not PATH=VALUE"}}},
    {"blanks_around_a_value_that_is_set_are_nothing",
     .runs = {{"STRATA_SET='retry.timeout=1ms , retry.depth=1, ' -- replay " BATCH " --json - --strategy strata " SMALL,
               0,
               .out = {"\"options\": {\"retry.timeout\": \"1ms\", \"retry.depth\": \"1\"}"},
               {""}},
              {"STRATA_SET='retry.depth=1' -- replay " BATCH " --json - --set ' retry.timeout=1ms' --strategy strata "
               "--set ' retry.depth=2' " SMALL,
               0, .out = {"\"options\": {\"retry.timeout\": \"1ms\", \"retry.depth\": \"2\"}"}}}},
    {"json_that_cannot_be_written_is_told_before_a_trace_is_replayed",
     .runs = {{"compare " BATCH " --json nowhere/figures.json --strategy system " SMALL,
               1,
               .out = {""}, /* the table comes after the replays */
               {"nowhere/figures.json cannot be written"}}}},
    {"out_of_memory_is_a_result",
     .runs = {{"replay " BATCH " --capacity 64MiB --strategy paddle " SMALL, 0, .out = {"64.00 MiB"}, {""}}}},
    /* No run took place, so no row stands for the strategy. The help explains this. */
    {"a_strategy_that_cannot_open_ends_the_comparison",
     .files = {{"t.csv", "op,id,size,stream,time_us\nalloc,1,256,0,0\n"},
               {"s.yaml", "strategy: large\nstack: [auto_growth: {preallocate: 1GiB}, system]\n"}},
     .runs = {{"COLUMNS=999 -- help compare", 0, .out = {"cannot be opened for lack of memory"}},
              {"COLUMNS=999 -- help stats", 0, .out = {"cannot be opened for lack of memory"}}},
     .wrong = {{"compare " BATCH " --capacity 512MiB --strategy system --strategy s.yaml t.csv",
                "auto_growth.preallocate: 1GiB: "}}},
    {"another_failure_is_an_error", .files = {{"align.csv", "op,id,size,stream,time_us,align\nalloc,1,100,0,0,4096\n"}},
     .runs = {{"replay " BATCH " --strategy paddle align.csv",
               1,
               .out = {"failed_operations"},
               {"strata: paddle: align.csv:2: alloc failed: "}}}},
    /* The trace decides how many devices are opened. */
    {"replays_a_strategy_of_several_devices",
     .files = {{"two.yaml", "devices: sim:a100x2\nstack: [system]\n"},
               {"two.csv", "op,id,size,stream,time_us,device\nalloc,1,100,0,0,0\nalloc,2,100,0,0,1\nalloc,3,100,0,0,2\n"}},
     .runs = {{"check two.yaml", 0, .out = {NULL}},
              {"replay --repeat 1 --strategy two.yaml " SMALL, 0, .out = {"sim:a100\n"}, {""}},
              {"replay --repeat 1 --strategy two.yaml two.csv", 0, .errors = {""}}}},
    {"no_progress_where_nobody_looks",
     .runs = {{"replay --device sim --strategy paddle --smallest " SMALL, 0, .out = {"smallest_device_bytes"}, {""}}}},
};

TEST_EACH(command, prints, session_t, sessions) { expect_session(row); }

TEST(command, imports_strings) {
    ran_t ran = run_well("import pytorch 'max_split_size_mb:128,pinned_use_background_threads:True' --as-of 2.9");
    EXPECT_CONTAINS(ran.errors, "<pytorch>:1:23: pinned_use_background_threads:True has no equivalent: ");
    write_text("imported.yaml", ran.out);
    ran = run_well("check imported.yaml");
    EXPECT_STREQ(ran.errors, "");
    ran = run_well("import pytorch expandable_segments:True");
    EXPECT_CONTAINS(ran.out, "extends: pytorch-expandable\n");
    ran = run_well("import paddle 'FLAGS_use_vmm_auto_growth_best_fit_allocator_v2=true FLAGS_vmm_v2_remap_on_oom=false "
                   "FLAGS_vmm_v2_small_pool_handle_size_in_mb=4 FLAGS_vmm_v2_large_pool_handle_size_in_mb=32'");
    EXPECT_CONTAINS(ran.out, "extends: paddle-vmm\n");
    EXPECT_CONTAINS(ran.out, "handle: 4MiB  # FLAGS_vmm_v2_small_pool_handle_size_in_mb=4\n");
    EXPECT_CONTAINS(ran.out, "handle: 32MiB  # FLAGS_vmm_v2_large_pool_handle_size_in_mb=32\n");
    EXPECT_CONTAINS(ran.out, "remap_on_oom: false  # FLAGS_vmm_v2_remap_on_oom=false\n");
    ran = run_well("FLAGS_gpu_memory_limit_mb=64 -- import paddle");
    EXPECT_CONTAINS(ran.out, "`strata import paddle` from the environment.\n");
    EXPECT_CONTAINS(ran.out, "bytes: 64MiB  # FLAGS_gpu_memory_limit_mb=64\n");
    ran = run_well("PYTORCH_ALLOC_CONF=max_split_size_mb:128,pinned_free_catch_all:True -- explain import:pytorch@2.12");
    EXPECT_CONTAINS(ran.out, "128MiB       PYTORCH_ALLOC_CONF:1:1\n");
    EXPECT_CONTAINS(ran.errors, "strata: PYTORCH_ALLOC_CONF:1:23: pinned_free_catch_all:True has no equivalent: ");
    expect_wrong_use("import pytorch max_split_sizemb:1", "<pytorch>:1:1: pytorch has no memory setting \"max_split_sizemb\"");
    expect_wrong_use("import", "no allocator;");
    expect_wrong_use("import pytorch a b", "put it in quotes");
    expect_wrong_use("import pytorch --as-of", "--as-of needs a value: --as-of VERSION");
    expect_wrong_use("import pytorch --as_of 2", "unknown option --as_of; did you mean --as-of");
    ran = run_command("import --markdown");
    EXPECT_CONTAINS(ran.out, "| `max_split_size_mb` |");
}

TEST(command, labels_and_sets) {
    write_text("mine.yaml", "version: 1\nstrategy: named otherwise\nstack:\n  - auto_growth: {}\n  - system: {}\n");
    ran_t ran = run_well("compare " BATCH " --json - --set auto_growth.chunk_size=4MiB --strategy paddle --strategy mine.yaml "
                         "--set auto_growth.chunk_size=8MiB --strategy paddle --strategy ./mine.yaml --label last "
                         "--strategy system " SMALL);
    EXPECT_STREQ(ran.errors, "");
    static const char *const labels[] = {"\"label\": \"paddle\"", "\"label\": \"mine\"", "\"label\": \"paddle#2\"",
                                         "\"label\": \"last\"", "\"label\": \"system\""};
    static const char *const options[] = {"{\"auto_growth.chunk_size\": \"4MiB\"}", "{\"auto_growth.chunk_size\": \"8MiB\"}",
                                          "{\"auto_growth.chunk_size\": \"4MiB\"}", "{\"auto_growth.chunk_size\": \"4MiB\"}", "{}"};
    const char *at = ran.out;
    for (size_t i = 0; i < 5 && at; i++) {
        at = strstr(at, labels[i]);
        EXPECT_NE(at, NULL);
        const char *said = at ? strstr(at, "\"options\": ") : NULL;
        if (!said || strncmp(said + strlen("\"options\": "), options[i], strlen(options[i])) != 0)
            FAIL_TEST("%s: the options are not %s", labels[i], options[i]);
    }
    expect_wrong_use("compare " BATCH " --set buffered.size=1 --strategy paddle --strategy system x.csv",
                     "--set buffered.size=1: none of the strategies has this path");
    expect_wrong_use("compare " BATCH " --strategy paddle --strategy system --set auto_growth.chunk_size=1MiB x.csv",
                     "auto_growth");
}

TEST(command, a_stumbling_host_stands_in_the_figures) {
    ran_t calm = run_well("compare " BATCH " --strategy strata " SMALL);
    EXPECT_EQ(strstr(calm.out, "host_jitter"), NULL);
    ran_t ran = run_well("compare " BATCH " --host-jitter 7 --strategy strata " SMALL);
    EXPECT_CONTAINS(ran.out, "\n  host_jitter   ");
    ran = run_well("replay " BATCH " --host-jitter=7 --json - --strategy strata " SMALL);
    EXPECT_CONTAINS(ran.out, "\"host_jitter\": 7,");
    ran = run_well("stats --device sim --host-jitter 7 --strategy strata " SMALL);
}

TEST(command, writes_json_beside_the_table) {
    ran_t ran = run_well("compare " BATCH " --json figures.json --strategy system --strategy strata %s %s", SMALL,
                         project_trace_path("lm-small-bf16-forward.csv.gz"));
    EXPECT_CONTAINS(ran.out, "alexnet-training.csv.gz\n");
    EXPECT_CONTAINS(ran.out, "lm-small-bf16-forward.csv.gz\n");
    size_t count = 0, runs = 0;
    char *json CLOSED_BY(text_cleanup) = read_bytes(temporary("figures.json"), &count);
    ASSERT_NE(json, NULL);
    json[count] = '\0';
    for (const char *at = json; (at = strstr(at, "\"label\"")); at++) runs++;
    EXPECT_EQ(runs, 4);
}

TEST(command, a_wrong_trace_is_told_before_json_that_cannot_be_written) {
    const char *path = write_text("wrong.csv", "op,id,size,stream,time_us\nalloc,1,512,0,0\nfree,2,,0,0\n");
    ran_t ran = run_command("replay %s --json nowhere/figures.json --strategy system", path);
    EXPECT_EQ(ran.exit_status, 2);
    EXPECT_CONTAINS(ran.errors, "wrong.csv:3");
    EXPECT_TRUE(strstr(ran.errors, "nowhere") == NULL);
}

/* Nobody waits for the end of a pipe to tell it. */
TEST(command, json_that_cannot_be_written_is_told_while_a_pipe_is_read) {
    ran_t ran = run_line(
        "{ echo op,id,size,stream,time_us; sleep 1; echo free,2,,0,0; } | strata replay --json nowhere/figures.json --strategy "
        "system /dev/stdin");
    EXPECT_EQ(ran.exit_status, 1);
    EXPECT_CONTAINS(ran.errors, "nowhere/figures.json cannot be written");
    EXPECT_TRUE(strstr(ran.errors, "stdin") == NULL);
}

TEST(command, a_comparison_that_fails_leaves_no_json) {
    ASSERT_EQ(mkdir(temporary("figures"), 0777), 0);
    ran_t ran = run_command("compare " BATCH " --capacity 1MiB --json figures/x.json --strategy strata "
                            "--set auto_growth.preallocate=1GiB " SMALL);
    EXPECT_EQ(ran.exit_status, 2);
    EXPECT_EQ(rmdir(temporary("figures")), 0); /* it is empty */
}

TEST(command, simulates_where_there_is_no_gpu) {
    ran_t ran = run_well("compare --repeat 1 --strategy paddle --strategy system " SMALL);
    bool simulated = strstr(ran.errors, "strata: no GPU (") != NULL;
    if (!simulated) TEST_SKIP("this machine has a GPU");
    EXPECT_CONTAINS(ran.errors, "): simulating h100\n");
    EXPECT_LACKS(strstr(ran.errors, "no GPU") + 1, "no GPU"); /* told once */
    EXPECT_CONTAINS(ran.out, "sim:h100");
    ran = run_command("compare --device gpu:0 --repeat 1 --strategy paddle " SMALL);
    EXPECT_EQ(ran.exit_status, 2);
    EXPECT_STREQ(ran.out, "");
}

TEST(command, a_checked_run_tells_its_hazards) {
    ran_t ran = run_command("compare " BATCH " --check --json checked.json --strategy strata --strategy paddle %s",
                            project_trace_path("streams-prefetch.csv.gz"));
    EXPECT_EQ(ran.exit_status, 1);
    EXPECT_CONTAINS(ran.out, "  hazards ");
    EXPECT_CONTAINS(ran.errors, "strata: streams-prefetch.csv.gz: paddle: 79 hazards; the first:\nhazard 1: a new owner");
    EXPECT_CONTAINS(ran.errors, "the other side");
    EXPECT_LACKS(ran.errors, "strata: streams-prefetch.csv.gz: strata");
    size_t count = 0;
    char *json = read_bytes(temporary("checked.json"), &count);
    ASSERT_NE(json, NULL);
    json[count] = '\0';
    EXPECT_CONTAINS(json, "\"hazards\": 0");
    EXPECT_CONTAINS(json, "\"hazards\": 79");
    free(json);
    ran = run_well("replay " BATCH " --check --strategy strata " SMALL);
    EXPECT_CONTAINS(ran.out, "  hazards ");
    ran = run_command("replay " BATCH " --strategy strata " SMALL);
    EXPECT_LACKS(ran.out, "hazards");
}

/* A file that a layer could not write is known when its stack ends, after the last row. */
TEST(command, a_trace_layer_that_cannot_write_is_told) {
    if (access("/dev/full", W_OK) != 0) TEST_SKIP("no /dev/full here");
    write_text("t.csv", "op,id,size,stream,time_us\nalloc,1,8,0,0\nfree,1,,0,1\n");
    write_text("full.yaml", "stack: [trace: {path: /dev/full}, stream_safe, auto_growth, system]\n");
    static const char *const commands[] = {"compare --strategy system --strategy", "replay --check --strategy", "stats --strategy"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        ran_t ran = run_command("%s full.yaml --device sim t.csv", commands[i]);
        EXPECT_EQ(ran.exit_status, 1);
        EXPECT_CONTAINS(ran.errors, "at the close: the facade is closed, but /dev/full cannot be written: No space left");
    }
    EXPECT_EQ(run_command("compare --check --strategy system --device sim t.csv").exit_status, 0);
}
