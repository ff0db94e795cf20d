/* What the command tells about itself: help, usage, single layers and presets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/sim/sim.h"
#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"
#include "tests/paths.h"
#include "tests/tools/support/ran.h"

enum { COMMANDS = 32, NAME = 32, TEXT = 16384 };

/* The names of all commands, as `strata help` lists them. */
static size_t list_commands(char names[COMMANDS][NAME]) {
    static const char prefix[] = "\n  strata ";
    size_t count = 0;
    for (const char *at = run_command("help").out; (at = strstr(at, prefix)) != NULL && count < COMMANDS; count++) {
        at += strlen(prefix);
        snprintf(names[count], NAME, "%.*s", (int)strcspn(at, " "), at);
    }
    return count;
}

TEST(help, every_command_has_it_in_three_ways) {
    char names[COMMANDS][NAME], text[TEXT], line[2 * NAME];
    size_t count = list_commands(names);
    EXPECT_GT(count, 12);
    for (size_t i = 0; i < count; i++) {
        ran_t ran = run_well("help %s", names[i]);
        snprintf(text, sizeof text, "%s", ran.out);
        snprintf(line, sizeof line, "\nusage: strata %s", names[i]);
        EXPECT_CONTAINS(text, line);
        snprintf(line, sizeof line, "\nexample: strata %s", names[i]);
        EXPECT_CONTAINS(text, line);
        static const char *const ways[] = {"--help", "-h", "--no-such-option -h"};
        for (size_t k = 0; k < 3; k++) {
            ran = run_well("%s %s", names[i], ways[k]);
            EXPECT_STREQ(ran.errors, "");
            EXPECT_STREQ(ran.out, text);
        }
    }
}

/* The help of --device and docs/profiles.md list every card, and runs on a card without measurements are marked. */
TEST(help, every_card_is_listed_and_can_be_simulated) {
    char help[TEXT], name[64];
    snprintf(help, sizeof help, "%s", run_well("COLUMNS=4000 -- help compare").out);
    size_t count;
    char *page CLOSED_BY(text_cleanup) = read_bytes(STRATA_SOURCE_DIR "/docs/profiles.md", &count);
    ASSERT_TRUE(page);
    write_text("card.csv", "op,id,size,stream,time_us\nalloc,1,1048576,0,0\n");
    for (size_t i = 0; strata_sim_profile_name(i); i++) {
        snprintf(name, sizeof name, "sim:%s,", strata_sim_profile_name(i));
        EXPECT_CONTAINS(help, name);
        snprintf(name, sizeof name, "`%s`", strata_sim_profile_name(i));
        EXPECT_TRUE(memmem(page, count, name, strlen(name)) != NULL);
        bool modelled = strata_sim_profile(strata_sim_profile_name(i))->modelled;
        ran_t ran = run_well("compare --device sim:%s --repeat 1 --strategy system card.csv", strata_sim_profile_name(i));
        const char *line = strstr(ran.out, "\n  modelled ");
        ASSERT_TRUE(line);
        EXPECT_STREQ((snprintf(name, sizeof name, "%.3s", line + 12 + strspn(line + 12, " ")), name), modelled ? "yes" : "no\n");
    }
}

static const session_t sessions[] = {
    /* The usage has the name and the value of each option too. */
    {"usage_and_options_agree",
     .runs = {{"torture -h", 0, .out = {"[--programs N]", "\n  --programs N ", "[--strategy NAME|FILE]..."}},
              {"stats -h", 0, .out = {" --strategy NAME|FILE [--set PATH=VALUE]..."}}}},
    {"a_value_that_looks_like_it_is_a_value",
     .wrong = {{"compare --strategy paddle --label -h missing.csv", "missing.csv: cannot read the file"},
               {"A=b -- check -- -h", "-h: cannot read the file"}}},
    {"an_unknown_option_is_told_the_nearest_in_every_command",
     .wrong = {{"torture --program 2", "strata torture: unknown option --program; did you mean --programs; see strata help torture"},
               {"merge --jsn x", "unknown option --jsn; did you mean --json"},
               {"import pytorch --asof 2", "unknown option --asof; did you mean --as-of"},
               {"layers --lod x.so", "unknown option --lod; did you mean --load"},
               {"check --allow-cod x.yaml", "unknown option --allow-cod; did you mean --allow-code"},
               {"explain --shrot", "unknown option --shrot; did you mean --short"},
               {"conform --x", "unknown option --x; see strata help conform"},
               {"diff --x a b", "unknown option --x"},
               {"presets --x", "unknown option --x"},
               {"grammar --x", "unknown option --x"},
               {"help comprae", "there is no command \"comprae\"; did you mean strata compare"}}},
    {"what_can_be_said_once_is_not_said_twice",
     .wrong = {{"compare --strategy system --json a --json b x.csv", "--json is given twice; write it once"},
               {"compare --strategy system --device sim --device sim:a100 x.csv", "--device is given twice"},
               {"compare --strategy system --capacity 1GiB --capacity=2GiB x.csv", "--capacity is given twice"},
               {"compare --strategy system --gpu-lag 1ms --gpu-lag 2ms x.csv", "--gpu-lag is given twice"},
               {"compare --strategy system --repeat 1 --repeat 2 x.csv", "--repeat is given twice"},
               {"compare --strategy system --shard 0/2 --shard 1/2 x.csv", "--shard is given twice"},
               {"stats --strategy system --at 1 --at end x.csv", "--at is given twice"},
               {"replay --strategy system --strategy strata x.csv", "--strategy is given twice"},
               {"merge --json a --json b x.json", "--json is given twice"},
               {"import pytorch --as-of 2.9 --as-of 2.10", "--as-of is given twice"},
               {"torture --seed 1 --seed 2", "--seed is given twice"}}},
    {"a_value_may_stand_after_a_sign_everywhere",
     .runs = {{"import pytorch max_split_size_mb:128 --as-of=2.9", 0, .out = {NULL}},
              {"torture --programs=1 --stacks=1 --strategy=system", 0, .out = {NULL}}},
     .wrong = {{"torture --seed=", "--seed : write a number from 0 to 4294967295"},
               {"torture --seed=99999999999999999999", "--seed 99999999999999999999: write a number from"},
               {"torture --seed=1x", "--seed 1x: write a number from"},
               {"layers --markdown=1", "--markdown takes no value"},
               {"check -", "-: cannot read the file"}}}, /* a dash alone is no option */
    {"the_short_explanation_has_what_differs_from_the_defaults",
     .files = {{"said.yaml", "stack:\n  - stream_safe\n  - auto_growth: {chunk_size: 2MiB, order: address}\n  - system\n"}},
     .runs = {{"explain said.yaml --short --set stream_safe.event=use", 0,
               .out = {"\n  auto_growth: cache of scope stream, one instance for each stream  [said.yaml:3:5]\n"
                       "    chunk_size               2MiB         said.yaml:3:31\n  system:",
                       "    event                    use          --set\n"},
               .lacks = {"default\n"}},
              {"explain said.yaml", 0, .out = {"alignment                256          default\n"}}}},
};

TEST_EACH(help, prints, session_t, sessions) { expect_session(row); }

TEST(help, is_as_wide_as_the_terminal) {
    static const int widths[] = {60, 80, 120};
    for (size_t i = 0; i < 3; i++) {
        ran_t ran = run_command("COLUMNS=%d -- help torture", widths[i]);
        const char *example = strstr(ran.out, "\nexample:");
        ASSERT_NE(example, NULL);
        for (const char *at = ran.out; at < example; at += strcspn(at, "\n") + 1) EXPECT_LE((int)strcspn(at, "\n"), widths[i]);
    }
}

TEST(help, of_the_whole_command) {
    char text[TEXT];
    snprintf(text, sizeof text, "%s", run_command("help").out);
    EXPECT_STREQ(run_command("--help").out, text);
    EXPECT_STREQ(run_command("-h").out, text);
    ran_t ran = run_well("--version");
    EXPECT_CONTAINS(ran.out, "0.1.0");
}

/* The line that begins with "example: strata ". */
static const char *example_of(const char *command) {
    static char example[256];
    static const char prefix[] = "\nexample: strata ";
    const char *at = strstr(run_command("help %s", command).out, prefix);
    snprintf(example, sizeof example, "%.*s", at ? (int)strcspn(at + strlen(prefix), "\n") : 0, at ? at + strlen(prefix) : "");
    return example;
}

TEST(help, examples_work) {
    static const char *const commands[] = {"check", "explain", "diff",    "layers", "presets", "import", "grammar", "fields",
                                           "help",  "version", "compare", "replay", "stats",   "merge",  "plan"};
    write_text("mine.yaml", "stack: [retry, stream_safe, auto_growth: {chunk_size: 2MiB}, system]\n");
    write_text("buffers.csv", "id,lower,upper,size\na,0,2,1000\nb,1,3,500\n");
    char row[64], rows[65536] = "op,id,size,stream,time_us\n";
    for (int i = 1; i <= 1200; i++) {
        snprintf(row, sizeof row, "alloc,%d,512,0,%d\n", i, i);
        strcat(rows, row);
    }
    write_text("run.csv.gz", rows); /* told by its first bytes, not by its name */
    EXPECT_EQ(run_command("replay --device sim --repeat 1 --strategy system --label a --json shard0.json run.csv.gz").exit_status,
              0);
    EXPECT_EQ(run_command("replay --device sim --repeat 1 --strategy system --label b --json shard1.json run.csv.gz").exit_status,
              0);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        ran_t ran = run_command("%s", example_of(commands[i]));
        if (ran.exit_status != 0) FAIL_TEST("the example of %s ends with %d: %s", commands[i], ran.exit_status, ran.errors);
    }
}

/* ---- wrong words ---- */

/* ---- one layer, all presets ---- */

TEST(help, one_layer_is_told_alone) {
    ran_t ran = run_well("layers auto_growth");
    EXPECT_EQ(strncmp(ran.out, "auto_growth: cache of scope stream\n", 35), 0);
    EXPECT_CONTAINS(ran.out, "\n  gives     stream_ordered");
    EXPECT_CONTAINS(ran.out, "\n  chunk_size: size, 0 to 16TiB, by default 0\n");
    EXPECT_CONTAINS(ran.out, "\n  order: choice, address, any, by default address\n");
    EXPECT_CONTAINS(ran.out, "\n  idle_bytes, bytes\n");
    EXPECT_CONTAINS(ran.out, "\nexample\n  stack:\n");
    EXPECT_LACKS(ran.out, "retry:");
    expect_wrong_use("layers auto_grow", "there is no layer \"auto_grow\"; write auto_growth");
    ran = run_command("layers system retry");
    EXPECT_CONTAINS(ran.out, "system: source");
    EXPECT_CONTAINS(ran.out, "retry: decorator");
    ran = run_well("layers --load " STRATA_BINARY_DIR "/modules/my_layer.so my_quota");
}

/* The example of every layer is a strategy that `check` takes. */
TEST(help, the_example_of_a_layer_is_a_strategy) {
    char names[64][NAME];
    size_t count = 0;
    for (const char *at = run_command("layers").out; *at && count < 64; at += strcspn(at, "\n") + 1)
        if (*at != ' ') snprintf(names[count++], NAME, "%.*s", (int)strcspn(at, ":"), at);
    EXPECT_GT(count, 15);
    for (size_t i = 0; i < count; i++) {
        static const char begin[] = "\nexample\n";
        const char *example = strstr(run_command("layers %s", names[i]).out, begin);
        if (!example) FAIL_TEST("%s has no example", names[i]);
        write_text("example.yaml", example ? example + strlen(begin) : "");
        ran_t ran = run_command("check example.yaml");
        if (ran.exit_status != 0) FAIL_TEST("the example of %s: %s", names[i], ran.errors);
        if (example) EXPECT_CONTAINS(run_command("explain example.yaml").out, names[i]);
    }
}

TEST(help, presets_are_described) {
    ran_t ran = run_command("COLUMNS=80 -- presets");
    for (const char *at = ran.out; *at; at += strcspn(at, "\n") + 1) EXPECT_LE((int)strcspn(at, "\n"), 80);
    ran = run_command("presets"); /* for programs: a line each, the name first */
    EXPECT_EQ(ran.exit_status, 0);
    EXPECT_LACKS(ran.out, "\n ");
    EXPECT_CONTAINS(ran.out,
                    "\nstrata              best fit in virtual memory, safe across streams, waits for frees before it gives up\n");
    EXPECT_CONTAINS(ran.out, "\npytorch             PyTorch's caching allocator, 2.9 (reproduces pytorch 2.9)\n");
    EXPECT_CONTAINS(run_command("presets paddle").out, "\nstrategy: paddle\n");
    expect_wrong_use("presets padle", "there is no preset \"padle\"; write paddle");
}
