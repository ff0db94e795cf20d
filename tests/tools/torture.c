/* strata torture. */
#include <stdio.h>

#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "tests/paths.h"
#include "tests/tools/ran.h"

#define MODULES STRATA_BINARY_DIR "/modules"

TEST(torture, runs_every_strategy) {
    ran_t ran = run_well("torture --programs 6 --stacks 6 --seed 3");
    EXPECT_CONTAINS(ran.out, "6 programs, ");
    EXPECT_CONTAINS(ran.out, "(6 of them random stacks), ");
    EXPECT_CONTAINS(ran.out, "\n0 hazards, 0 failed\n");
}

TEST(torture, runs_a_strategy_file) {
    const char *file = write_text("tortured.yaml", "stack: [retry, stream_safe, auto_growth: {chunk_size: 2MiB}, system]\n");
    ASSERT_TRUE(file);
    ran_t ran = run_well("torture --programs 20 --jobs 1 --strategy %s --strategy paddle", file);
    EXPECT_CONTAINS(ran.out, "20 programs, ");
    EXPECT_CONTAINS(ran.out, ", 2 strategies (0 of them");
}

TEST(torture, runs_the_layers_of_an_object) {
    ran_t ran = run_well("torture --programs 12 --layers " MODULES "/my_layer.so");
    EXPECT_CONTAINS(ran.out, "24 strategies (24 of them random stacks)");
    EXPECT_CONTAINS(ran.out, "\n0 hazards, 0 failed\n");
}

/* One layer keeps what it should give back, another ends the process. The first sixteen failures are told: of both. */
TEST(torture, tells_what_a_faulty_layer_does) {
    ran_t ran = run_command("torture --first 6 --programs 10 --layers " MODULES "/faulty.so");
    EXPECT_EQ(ran.exit_status, 1);
    EXPECT_CONTAINS(ran.out, "the process ended");
    EXPECT_CONTAINS(ran.out, "ended by signal 6");
    EXPECT_CONTAINS(ran.out, "made small in ");
    EXPECT_CONTAINS(ran.out, " --programs 1 --layers " MODULES "/faulty.so, under ");
    EXPECT_CONTAINS(ran.out, "#include <strata/torture.h>\n");
    EXPECT_CONTAINS(ran.out, "\"load: [\\\"" MODULES "/faulty.so\\\"]\\n\"\n");
}

/* Only where hundreds of blocks come and go in one cache does it show: the long program, the last of twenty. */
TEST(torture, finds_a_cache_that_loses_every_61st_block) {
    ran_t ran = run_command("torture --first 19 --programs 1 --layers " MODULES "/loses_61st.so");
    EXPECT_EQ(ran.exit_status, 1);
    EXPECT_CONTAINS(ran.out, "failed: program 19 under segregated_fit: at the end a device has not everything back\n");
    EXPECT_CONTAINS(ran.out, " runs: 122 operations\n"); /* 61 blocks served and freed */
    ran = run_well("torture --programs 19 --layers " MODULES "/loses_61st.so");
    ran = run_well("torture --programs 1 --length 1000 --layers " MODULES "/segregated_fit.so");
}

/* A process that ends in the midst of its programs did not run them, whatever it says. */
TEST(torture, tells_of_a_layer_that_ends_its_program_with_success) {
    ran_t ran = run_command("torture --programs 10 --layers " MODULES "/quitting.so");
    EXPECT_EQ(ran.exit_status, 1);
    EXPECT_CONTAINS(ran.out, "the process ended itself with status 0");
    EXPECT_CONTAINS(ran.out, "made small in ");
}

TEST(torture, refuses_wrong_usage) {
    ran_t ran = run_command("torture --programs none");
    EXPECT_EQ(ran.exit_status, 2);
    EXPECT_CONTAINS(ran.errors, "--programs none: write a number from 1 to ");
    ran = run_command("torture --seeds 1");
    EXPECT_EQ(ran.exit_status, 2);
    EXPECT_CONTAINS(ran.errors, "unknown option --seeds; did you mean --seed");
    ran = run_command("torture --strategy no_such.yaml");
    EXPECT_EQ(ran.exit_status, 2);
    EXPECT_CONTAINS(ran.errors, "no_such.yaml");
    ran = run_command("torture --layers no_such.so");
    EXPECT_EQ(ran.exit_status, 2);
    ran = run_command("torture --strategy");
    EXPECT_EQ(ran.exit_status, 2);
    EXPECT_CONTAINS(ran.errors, "--strategy wants a value: --strategy NAME|FILE");
}
