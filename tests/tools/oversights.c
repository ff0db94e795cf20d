/* What people write in the place of something else, and what they are told to write. */
#include <stdio.h>

#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "tests/paths.h"
#include "tests/tools/support/ran.h"

static const session_t sessions[] = {
    {"a_strategy_in_the_place_of_a_trace", .files = {{"mine.yaml", "stack: [system]\n"}},
     .wrong = {{"compare --device sim --strategy strata mine.yaml",
                "strata compare: mine.yaml is a strategy, not a trace; write --strategy mine.yaml; see strata help compare"},
               {"stats --device sim --strategy strata paddle", "paddle is a strategy, not a trace; write --strategy paddle"}}},
    {"a_trace_of_a_presets_name", .files = {{"paddle", "op,id,size,stream,time_us\nalloc,1,100,0,0\n"}},
     .runs = {{"replay --device sim --strategy strata paddle", 0, .out = {NULL}}}},
    {"a_preset_in_the_place_of_a_file",
     .wrong = {{"check strata", "strata is a preset, not a file; strata explain strata shows it"},
               {"check nobody", "nobody: cannot read the file"}}},
    {"a_key_outside_of_its_string",
     .wrong = {{"import pytorch max_split_size_mb=128",
                "<pytorch>:1:1: max_split_size_mb is a key of a string and needs its value after a colon; write "
                "max_split_size_mb:VALUE"}}},
    {"a_device_that_is_not_there", .files = {{"t.csv", "op,id,size,stream,time_us\nalloc,1,100,0,0\n"}},
     .runs = {{"compare --device gpu:15 --strategy strata t.csv", 2,
               .errors = {"strata: --device gpu:15: ", "; write --device sim:h100 to simulate one\n"}}}},
    {"a_file_that_is_no_comparison", .files = {{"t.csv", "op,id,size,stream,time_us\n"}, {"empty.json", ""}},
     .wrong = {{"merge t.csv", "t.csv:1: "},
               {"merge t.csv", "; give files that strata compare --json wrote\n"},
               {"merge empty.json", "empty.json:1: not JSON; give files that strata compare --json wrote\n"}}},
    {"no_argument_at_all", .wrong = {{"check", "no file; write a strategy file"},
                                     {"merge", "no files; give files that strata compare --json wrote"},
                                     {"conform", "no shared object; write one, such as ./libmine.so"},
                                     {"diff", "needs two strategies: strata diff A B"},
                                     {"import", "no allocator; write pytorch, paddle or tensorflow"},
                                     {"replay", "--strategy is missing; write --strategy NAME|FILE"},
                                     {"compare --strategy strata", "no trace; write a .csv or .csv.gz file"},
                                     {"torture strata", "\"strata\" is not an option; write --strategy strata"}}},
    {"a_value_that_was_left_out_before_the_next_option", .files = {{"t.csv", "op,id,size,stream,time_us\nalloc,1,100,0,0\n"}},
     .runs = {{"compare --json=--device --device sim --repeat 1 t.csv", 0, .out = {NULL}}, /* a file may have that name */
              {"compare --json - --device sim --repeat 1 t.csv", 0, .out = {NULL}}},
     .wrong = {{"compare --json --device sim --repeat 1 t.csv",
                "--json has no value, because --device follows; write --json FILE|-, or --json=--device if that is the value"},
               {"stats --strategy --at=end t.csv", "--strategy has no value, because --at=end follows"}}},
};

TEST_EACH(oversights, prints, session_t, sessions) { expect_session(row); }

/* Whatever reads a strategy takes the word that its refusal of code tells. */
TEST(oversights, code_is_allowed_wherever_a_strategy_is_read) {
    static const char *const commands[] = {"check mine.yaml",
                                           "explain mine.yaml",
                                           "diff mine.yaml strata",
                                           "compare --device sim --repeat 1 --strategy mine.yaml t.csv",
                                           "replay --device sim --repeat 1 --strategy mine.yaml t.csv",
                                           "stats --device sim --strategy mine.yaml t.csv",
                                           "torture --programs 1 --strategy mine.yaml"};
    write_text("mine.yaml", "load: [" STRATA_BINARY_DIR "/modules/my_layer.so]\nstack: [my_quota, auto_growth, system]\n");
    write_text("t.csv", "op,id,size,stream,time_us\nalloc,1,100,0,0\n");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        expect_wrong_use(commands[i], "strata: --allow-code");
        EXPECT_EQ(run_command("%s --allow-code", commands[i]).exit_status, 0);
    }
}

TEST(oversights, an_empty_argument) {
    static const char *const commands[] = {"check",
                                           "merge",
                                           "conform",
                                           "layers",
                                           "presets",
                                           "explain",
                                           "help",
                                           "compare --strategy strata",
                                           "stats --strategy strata",
                                           "diff strata"};
    char arguments[64];
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        snprintf(arguments, sizeof arguments, "%s ''", commands[i]);
        expect_wrong_use(arguments, "an argument is empty; write a name, or leave it out");
    }
    EXPECT_EQ(run_command("import pytorch ''").exit_status, 0); /* as the variable may be */
}

/* PyTorch up to 2.9 splits blocks of expandable segments whatever their size, and since 2.10 it does not. A program that keeps 2 MiB of
 * each round then grows by its two large blocks in most rounds. */
TEST(oversights, two_settings_that_fight_cost_memory_since_2_10) {
    enum { ROUNDS = 40 };
    FILE *trace = fopen(temporary("rounds.csv"), "w");
    ASSERT_TRUE(trace);
    fprintf(trace, "op,id,size,stream,time_us\nalloc,1,67108864,0,0\nalloc,2,2097152,0,1\n");
    for (int i = 1; i <= ROUNDS; i++)
        fprintf(trace,
                "alloc,%d,144703488,0,%d\nalloc,%d,106954752,0,%d\nalloc,%d,2097152,0,%d\nfree,%d,,0,%d\nfree,%d,,0,%d\n"
                "free,%d,,0,%d\n",
                3 * i, i * 10, 3 * i + 1, i * 10, 3 * i + 2, i * 10, 3 * i, i * 10 + 5, 3 * i + 1, i * 10 + 5,
                i == 1 ? 2 : 3 * i - 1, i * 10 + 5);
    ASSERT_EQ(fclose(trace), 0);
    static const char *const versions[] = {"2.8", "2.9", "2.10", "2.11"};
    for (int i = 0; i < 4; i++) {
        ran_t ran = run_well("import --as-of %s pytorch expandable_segments:True,max_split_size_mb:128", versions[i]);
        EXPECT_CONTAINS(ran.errors, i < 2 ? "max_split_size_mb:128 is ignored"
                                          : "max_split_size_mb:128 conflicts with expandable_segments:True");
        write_text("fighting.yaml", ran.out);
        ran = run_well("stats --device sim:h100 --strategy fighting.yaml --at end rounds.csv");
        EXPECT_CONTAINS(ran.out, i < 2 ? "  peak_reserved_bytes                      320.0 MiB"
                                       : "  peak_reserved_bytes                       9.53 GiB");
    }
}
