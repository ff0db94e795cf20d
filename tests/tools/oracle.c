/* scripts/oracle, and the steps that commands print for it. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "tests/paths.h"
#include "tests/tools/support/ran.h"

#define STATS  "stats --device sim:h100 --strategy stepped.yaml --at end --json --steps "
#define ORACLE "'" STRATA_SOURCE_DIR "/scripts/oracle' --jobs 1 --against '%s' --command '%s' "

static void write_files(void) {
    write_text("stepped.yaml", "stack: [{auto_growth: {chunk_size: 8MiB}}, {limit: {bytes: 12MiB}}, system]\n");
    write_text("stepped.csv", "op,id,size,stream,time_us\n"
                              "alloc,1,4194304,0,0\n"
                              "alloc,2,16777216,0,10\n" /* above the limit */
                              "free,1,0,0,20\n"
                              "alloc,3,1000,0,30\n");
}

static const session_t sessions[] = {
    {"stats_prints_every_row",
     .runs = {{STATS "1 stepped.csv", 0,
               .out = {"1 alloc block 0 at 0x1000000400000, 4194304 bytes time ",
                       " requested 4194304 allocated 4194304 reserved 8388608 deferred 0 gpu:0.requested_bytes 4194304 ",
                       "\n2 alloc block 1 is not there failed 1, for memory 1 time ",
                       "\n3 free block 0 at 0x1000000400000, 4194304 bytes, freed failed 1, ", "gpu:0.cache_hits 1 ",
                       "\n{\"schema\": 1, "}}},
     .prepare = write_files},
    /* Rows 3 and 4 hold what changed since row 2. */
    {"stats_prints_figures_of_every_nth_row",
     .runs = {{STATS "2 stepped.csv", 0, .out = {" reserved 8388608 deferred 0\n2 alloc", " reserved 8388608 deferred 0\n4 alloc"}}},
     .prepare = write_files},
    {"torture_prints_every_step_of_a_third",
     .runs = {{"torture --programs 2 --seed 3 --strategy paddle --strategy strata --strategy system --thin 3 --steps 1", 0,
               .out = {"program 0 under paddle\n0 ", "program 1 under system\n0 ", "\nend time ", "\nverdict no fault, "},
               .lacks = {"under strata\n"}}}},
};

TEST_EACH(oracle, prints, session_t, sessions) { expect_session(row); }

/* A command that prints as `strata` does, but for what an expression of sed changes; NULL: there is no file. */
static const char *changed_command(const char *expression) {
    static char kept[1024];
    char script[2048];
    snprintf(script, sizeof script, "#!/bin/sh\n'%s' \"$@\" | sed '%s'\n", command_path(), expression);
    const char *path = write_text("changed", script);
    if (!path || chmod(path, 0700) != 0) return NULL;
    snprintf(kept, sizeof kept, "%s", path);
    return kept;
}

static ran_t run_oracle(const char *present, const char *words) {
    char line[4096];
    snprintf(line, sizeof line, ORACLE "%s", command_path(), present, words);
    return run_line(line);
}

static ran_t run_with_wanted(const char *present, const char *wanted) {
    char words[2048];
    snprintf(words, sizeof words, "--wanted '%s' --only 'alexnet-training.csv.gz under strata'", write_text("wanted", wanted));
    return run_oracle(present, words);
}

static bool has_python(void) { return system("command -v python3 >/dev/null 2>&1") == 0; }

TEST(oracle, equal_commands_do_not_differ) {
    if (!has_python()) TEST_SKIP("there is no python3");
    ran_t ran = run_oracle(command_path(), "--only 'alexnet-training.csv.gz under strata'");
    EXPECT_EQ(ran.exit_status, 0);
    EXPECT_CONTAINS(ran.out, "1 replays of traces ");
    EXPECT_CONTAINS(ran.out, " 386 steps: 0 different, 0 as wanted");
    ran = run_oracle(command_path(), "--only 'program 1 under strata'");
    EXPECT_EQ(ran.exit_status, 0);
    EXPECT_CONTAINS(ran.out, " and 1 runs of 1 programs ");
}

TEST(oracle, names_the_step_of_a_trace) {
    if (!has_python()) TEST_SKIP("there is no python3");
    const char *changed = changed_command("s/^84 alloc block 54 at 0x1/&f/");
    ASSERT_TRUE(changed);
    ran_t ran = run_oracle(changed, "--only 'alexnet-training.csv.gz under strata'");
    EXPECT_EQ(ran.exit_status, 1);
    EXPECT_CONTAINS(ran.out, "DIFFERENT alexnet-training.csv.gz under strata, step 84 (alloc)\n  both:      81 ");
    EXPECT_CONTAINS(ran.out, "  alone:     scripts/oracle --only 'alexnet-training.csv.gz under strata'\n");
    EXPECT_CONTAINS(ran.out, ": 1 different, 0 as wanted");
}

TEST(oracle, names_the_step_of_a_program) {
    if (!has_python()) TEST_SKIP("there is no python3");
    const char *changed = changed_command("/^program 1 under strata$/,/^verdict/s/^end time [0-9]*/& gpu:0.growths 77/");
    ASSERT_TRUE(changed);
    ran_t ran = run_oracle(changed, "--only 'program 1 under strata'");
    EXPECT_EQ(ran.exit_status, 1);
    EXPECT_CONTAINS(ran.out, "DIFFERENT program 1 under strata, after the last step\n");
    EXPECT_CONTAINS(ran.out, "gpu:0.growths 77");
}

TEST(oracle, a_wanted_difference_does_not_count) {
    if (!has_python()) TEST_SKIP("there is no python3");
    const char *changed = changed_command("s/^\\(85 .*gpu:0.cache_hits \\)[0-9]*/\\177/");
    ASSERT_TRUE(changed);
    ran_t ran = run_with_wanted(changed, "# text\n*under strata | cache_* | a test wants it\n");
    EXPECT_EQ(ran.exit_status, 0);
    EXPECT_CONTAINS(ran.out, ": 0 different, 1 as wanted");
    ran = run_with_wanted(changed, "* | growths | a test wants another one\n");
    EXPECT_EQ(ran.exit_status, 1);
    EXPECT_CONTAINS(ran.out, "differs:   gpu:0.cache_hits 36 -> gpu:0.cache_hits 77\n");
}
