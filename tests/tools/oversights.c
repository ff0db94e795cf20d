/* What people write in the place of something else, and what they are told to write. */
#include <stdio.h>

#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "tests/paths.h"
#include "tests/tools/ran.h"

TEST(oversights, a_strategy_in_the_place_of_a_trace) {
    write_text("mine.yaml", "stack: [system]\n");
    expect_wrong_use("compare --device sim --strategy strata mine.yaml",
                     "strata compare: mine.yaml is a strategy and no trace; write --strategy mine.yaml; see strata help compare");
    expect_wrong_use("stats --device sim --strategy strata paddle", "paddle is a strategy and no trace; write --strategy paddle");
    write_text("paddle", "op,id,size,stream,time_us\nalloc,1,100,0,0\n"); /* a trace of a preset's name */
    EXPECT_EQ(run_command("replay --device sim --strategy strata paddle").exit_status, 0);
}

TEST(oversights, a_preset_in_the_place_of_a_file) {
    expect_wrong_use("check strata", "strata is a preset and no file; strata explain strata shows it");
    expect_wrong_use("check nobody", "nobody: the file cannot be read");
}

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
        ran_t ran = run_command("%s", commands[i]);
        EXPECT_EQ(ran.exit_status, 2);
        EXPECT_CONTAINS(ran.errors, "strata: --allow-code");
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

TEST(oversights, a_key_outside_of_its_string) {
    expect_wrong_use(
        "import pytorch max_split_size_mb=128",
        "<pytorch>:1:1: max_split_size_mb is a key of a string, and its value comes after a colon; write max_split_size_mb:VALUE");
}

TEST(oversights, a_device_that_is_not_there) {
    write_text("t.csv", "op,id,size,stream,time_us\nalloc,1,100,0,0\n");
    ran_t ran = run_command("compare --device gpu:15 --strategy strata t.csv");
    EXPECT_EQ(ran.exit_status, 2);
    EXPECT_CONTAINS(ran.errors, "strata: --device gpu:15: ");
    EXPECT_CONTAINS(ran.errors, "; write --device sim:h100 to simulate one\n");
}

TEST(oversights, a_file_that_is_no_comparison) {
    write_text("t.csv", "op,id,size,stream,time_us\n");
    write_text("empty.json", "");
    expect_wrong_use("merge t.csv", "t.csv:1: ");
    expect_wrong_use("merge t.csv", "; write what strata compare --json writes\n");
    expect_wrong_use("merge empty.json", "empty.json:1: no JSON text; write what strata compare --json writes\n");
}

TEST(oversights, no_argument_at_all) {
    expect_wrong_use("check", "which file? write a strategy file");
    expect_wrong_use("merge", "which files? write those of strata compare --json");
    expect_wrong_use("conform", "which shared object? write one, as in ./libmine.so");
    expect_wrong_use("diff", "two strategies, please, as in strata mine.yaml");
    expect_wrong_use("import", "whose string? pytorch, paddle or tensorflow");
    expect_wrong_use("replay", "no --strategy; write --strategy NAME|FILE");
    expect_wrong_use("compare --strategy strata", "no trace; write a .csv or .csv.gz file");
    expect_wrong_use("torture strata", "\"strata\" is no option; write --strategy strata");
}
