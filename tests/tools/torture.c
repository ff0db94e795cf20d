/* strata torture. */
#include <stdio.h>

#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "tests/paths.h"
#include "tests/tools/support/ran.h"

#define MODULES STRATA_BINARY_DIR "/modules"

static const session_t sessions[] = {
    {"runs_every_strategy", .runs = {{"torture --programs 6 --stacks 6 --seed 3", 0,
                                      .out = {"6 programs, ", "(6 of them random stacks), ", "\n0 hazards, 0 failed\n"}}}},
    {"runs_the_layers_of_an_object", .runs = {{"torture --programs 12 --layers " MODULES "/my_layer.so", 0,
                                               .out = {"24 strategies (24 of them random stacks)", "\n0 hazards, 0 failed\n"}}}},
    /* One layer keeps what it should give back, another ends the process. The first sixteen failures are told: of both. */
    {"tells_what_a_faulty_layer_does",
     .runs = {{"torture --first 6 --programs 10 --layers " MODULES "/faulty.so", 1,
               .out = {"the process ended", "ended by signal 6", "reduced in ",
                       " --programs 1 --layers " MODULES "/faulty.so, under ", "#include <strata/torture.h>\n",
                       "\"load: [\\\"" MODULES "/faulty.so\\\"]\\n\"\n"}}}},
    /* Only where hundreds of blocks come and go in one cache does it show: the long program, the last of twenty. */
    {"finds_a_cache_that_loses_every_61st_block",
     .runs = {{"torture --first 19 --programs 1 --layers " MODULES "/loses_61st.so", 1,
               .out = {"failed: program 19 under segregated_fit: not all memory went back to a device\n",
                       " runs: 122 operations\n"}}, /* 61 blocks served and freed */
              {"torture --programs 19 --layers " MODULES "/loses_61st.so", 0, .out = {NULL}},
              {"torture --programs 1 --length 1000 --layers " MODULES "/segregated_fit.so", 0, .out = {NULL}}}},
    /* A process that ends in the midst of its programs did not run them, whatever it says. */
    {"tells_of_a_layer_that_ends_its_program_with_success",
     .runs = {{"torture --programs 10 --layers " MODULES "/quitting.so", 1,
               .out = {"the process ended itself with status 0", "reduced in "}}}},
    {"refuses_wrong_usage", .wrong = {{"torture --programs none", "--programs none: write a number from 1 to "},
                                      {"torture --seeds 1", "unknown option --seeds; did you mean --seed"},
                                      {"torture --strategy no_such.yaml", "no_such.yaml"},
                                      {"torture --layers no_such.so", ""},
                                      {"torture --strategy", "--strategy needs a value: --strategy NAME|FILE"}}},
};

TEST_EACH(torture, prints, session_t, sessions) { expect_session(row); }

TEST(torture, runs_a_strategy_file) {
    const char *file = write_text("tortured.yaml", "stack: [retry, stream_safe, auto_growth: {chunk_size: 2MiB}, system]\n");
    ASSERT_TRUE(file);
    ran_t ran = run_well("torture --programs 20 --jobs 1 --strategy %s --strategy paddle", file);
    EXPECT_CONTAINS(ran.out, "20 programs, ");
    EXPECT_CONTAINS(ran.out, ", 2 strategies (0 of them");
}
