/* strata conform, and the layers of shared objects in the other commands. */
#include <stdio.h>
#include <string.h>

#include "platform/clock.h"
#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "tests/paths.h"
#include "tests/tools/support/ran.h"

#define MODULES STRATA_BINARY_DIR "/modules"
/* A generous limit, because sanitizers and busy machines make checks slow. Only tests that plant a hang wait for it. */
#define PATIENT "conform --limit 120s "

static size_t lines_with(const char *text, const char *beginning) {
    size_t count = 0;
    for (const char *at = text; at; at = strchr(at, '\n')) {
        if (*at == '\n') at++;
        count += strncmp(at, beginning, strlen(beginning)) == 0;
    }
    return count;
}

/* `subject`: one of the layer's places in a stack. */
static ran_t expect_conforms(const char *object, const char *layer, const char *subject) {
    char line[200];
    ran_t ran = run_well(PATIENT "%s", object);
    EXPECT_EQ(lines_with(ran.out, "FAIL"), 0);
    EXPECT_GT(lines_with(ran.out, "ok "), 20);
    snprintf(line, sizeof line, "ok   %s: random_program\n", subject);
    EXPECT_CONTAINS(ran.out, line);
    snprintf(line, sizeof line, "ok   %s_random_4: four_threads_at_once\n", layer);
    EXPECT_CONTAINS(ran.out, line);
    snprintf(line, sizeof line, "%zu checks, 0 failed", lines_with(ran.out, "ok "));
    EXPECT_CONTAINS(ran.out, line);
    return ran;
}

TEST(conform, passes_the_example) { expect_conforms(MODULES "/my_layer.so", "my_quota", "my_quota"); }

TEST(conform, passes_a_layer_of_an_older_header) { expect_conforms(MODULES "/older.so", "older", "older"); }

TEST(conform, passes_a_source) { expect_conforms(MODULES "/sources.so", "filled_source", "filled_source"); }

TEST(conform, passes_a_decorator_with_records_of_its_own) { expect_conforms(MODULES "/fenced.so", "fenced", "fenced_over_cache"); }

/* A full cache of the public header, by the mechanism that it offers and by hand. */
TEST(conform, passes_caches) {
    expect_conforms(MODULES "/segregated_fit.so", "segregated_fit", "segregated_fit_under_stream_safe");
    expect_conforms(MODULES "/slots.so", "slots", "slots_under_stream_safe");
    ran_t ran = run_command(PATIENT MODULES "/loses_61st.so");
    EXPECT_CONTAINS(ran.out, "FAIL segregated_fit: thousands_of_blocks_come_and_go\n");
}

/* Two of them: one with a value for each branch, one without. */
TEST(conform, passes_routers) {
    ran_t ran = expect_conforms(MODULES "/routers.so", "by_pages", "by_pages_below_stream_safe");
    EXPECT_CONTAINS(ran.out, "ok   turns: random_program\n");
    EXPECT_CONTAINS(ran.out, "ok   turns_below_stream_safe: borrows_are_honoured_or_waited_for\n");
}

TEST(conform, tells_what_a_faulty_layer_breaks) {
    ran_t ran = run_command(PATIENT MODULES "/faulty.so");
    EXPECT_EQ(ran.exit_status, 1);
    EXPECT_CONTAINS(ran.out, "FAIL forgetful: release_returns_everything\n    ");
    EXPECT_CONTAINS(ran.out, "FAIL crashing: stale_refs_are_told\n    ended by signal 6");
    EXPECT_CONTAINS(ran.out, "ok   forgetful: zero_size\n");
    EXPECT_CONTAINS(ran.out, "forgetful_random_1 was this strategy:\nversion: 1\nstack:\n");
    EXPECT_GT(lines_with(ran.out, "FAIL forgetful"), 1);
    EXPECT_CONTAINS(ran.out, "ok   partial: random_program\n");
    EXPECT_CONTAINS(ran.out, "FAIL partial: four_threads_at_once\n    ");
    EXPECT_CONTAINS(ran.out, "    to see what it requires: strata conform --explain what_threads_freed_is_one_piece_again\n");
    EXPECT_CONTAINS(ran.out, "requests of a thread were refused while most of the device was free: ");
}

/* Layers with one fault each, and the check that must find it in at least one stack. */
typedef struct fault_row {
    const char *name; /* the layer */
    const char *object, *check;
} fault_row_t;
static const fault_row_t faults[] = {
    {"on_default_stream", "misasked", "the_bottom_sees_the_request"},
    {"on_last_stream", "misasked", "the_bottom_sees_the_request"},
    {"without_alignment", "misasked", "the_bottom_sees_the_request"},
    {"without_flags", "misasked", "the_bottom_sees_the_request"},
    {"without_tag", "misasked", "the_bottom_sees_the_request"},
    {"at_place_alignment", "misasked", "larger_alignments_are_served_or_refused"},
    {"adopting", "adopting", "bytes_of_a_block_are_its_own"},
    {"first_device", "misplaced", "bytes_of_a_block_are_its_own"},
    {"marks_past_the_end", "misplaced", "bytes_of_a_block_are_its_own"},
    {"writes_freed", "misplaced", "bytes_of_a_block_are_its_own"},
    {"beyond_the_end", "misplaced", "bytes_of_a_block_are_its_own"},
    {"keeps_for_all_streams", "misfreed", "other_streams_begin_after_its_work"},
    {"frees_nothing", "misfreed", "release_returns_everything"},
    {"frees_twice", "misfreed", "release_returns_everything"},
    {"frees_the_one_before", "misfreed", "release_returns_everything"},
    {"serves_freed", "misfreed", "release_returns_everything"},
    {"fails_now_and_then", "misfreed", "release_returns_everything"},
    {"without_record", "misfreed", "release_returns_everything"},
    {"with_null", "misfreed", "release_returns_everything"},
    {"halves", "misasked", "statistics_are_sums"},
    {"loses_size", "misfreed", "statistics_are_sums"},
};

TEST(conform, finds_each_planted_fault) {
    enum { FAULTS = sizeof faults / sizeof *faults };
    ran_t ran = {0};
    for (size_t i = 0; i < FAULTS; i++) {
        char line[200];
        bool again = i > 0 && faults[i].object == faults[i - 1].object && faults[i].check == faults[i - 1].check;
        if (!again) ran = run_command("conform --limit 200ms --only %s " MODULES "/%s.so", faults[i].check, faults[i].object);
        EXPECT_EQ(ran.exit_status, 1);
        snprintf(line, sizeof line, "FAIL %s", faults[i].name);
        bool found = false;
        for (const char *at = ran.out; (at = strstr(at, line)) != NULL; at++) {
            const char *rest = at + strlen(line);
            /* Random stacks find faults by chance, so the fixed stacks of the suite must find it. */
            found |= strchr(":_", *rest) && strncmp(rest, "_random", 7) != 0;
        }
        if (!found) FAIL_TEST("%s finds nothing wrong with %s:\n%s", faults[i].check, faults[i].name, ran.out);
    }
}

TEST(conform, runs_the_checks_that_are_named) {
    ran_t ran = run_well(PATIENT "--only zero_size " MODULES "/my_layer.so");
    EXPECT_EQ(lines_with(ran.out, "ok "), 8);
    EXPECT_EQ(lines_with(ran.out, "skip "), 0);
    EXPECT_CONTAINS(ran.out, "ok   my_quota_on_top: zero_size\n");
    EXPECT_CONTAINS(ran.out, "\n8 checks, 0 failed\n");
    ran = run_well(PATIENT "--only 'z*e' " MODULES "/my_layer.so");
    EXPECT_CONTAINS(ran.out, "\n8 checks, 0 failed\n");
    ran = run_well(PATIENT "--only 'two_live_*' " MODULES "/my_layer.so");
    EXPECT_EQ(lines_with(ran.out, "ok   my_quota: "), 1);
    expect_wrong_use(
        "conform --only zero_sise " MODULES "/my_layer.so",
        "--only zero_sise: there is no such check; the nearest is zero_size; the checks are zero_size, two_live_blocks_");
    expect_wrong_use("conform --only 'x*' " MODULES "/my_layer.so", ", the_bottom_refuses_every_call; see strata help conform");
    expect_wrong_use("conform --limit 0ms " MODULES "/my_layer.so", "--limit 0ms: write a time from 1ns to 86400s");
    expect_wrong_use("conform --limit 5 " MODULES "/my_layer.so", "--limit");
}

/* The layer sleeps, computes, or blocks signals. */
TEST(conform, leaves_a_layer_that_hangs_after_three_checks) {
    ran_t ran = run_command("conform --limit 200ms " MODULES "/hanging.so");
    EXPECT_EQ(ran.exit_status, 1);
    EXPECT_EQ(lines_with(ran.out, "    did not end within 0.2 s; --limit TIME changes the limit"), 3);
    EXPECT_CONTAINS(ran.out, "stop hanging: 3 checks did not end within 0.2 s each, so its remaining checks are skipped\n");
    EXPECT_EQ(lines_with(ran.out, "FAIL hanging"), 3);
}

static const session_t sessions[] = {
    {"skips_what_a_layer_does_not_serve_by_its_nature",
     .runs = {{PATIENT MODULES "/small_only.so", 0,
               .out = {"ok   small_only: thousands_of_blocks_come_and_go\n",
                       "skip small_only: a_hundred_are_live_at_once: a fresh stack does not serve ",
                       " bytes either: ", " 0 failed, "}}}},
    /* A check that did not come to its end has not passed, whatever the process says. */
    {"tells_of_a_layer_that_ends_its_program_with_success",
     .runs = {{PATIENT MODULES "/quitting.so", 1,
               .out = {"FAIL quitting: random_program\n    the process ended itself with status 0\n"}}}},
    {"refuses_what_is_no_object_with_layers", .wrong = {{"conform", ""},
                                                        {"conform no_such.so", "no_such.so"},
                                                        {"conform " MODULES "/nothing.so", "no table strata_layers"},
                                                        {"conform " MODULES "/taken.so", "a layer \"retry\" already"},
                                                        {"conform --all " MODULES "/my_layer.so", ""}}},
};

TEST_EACH(conform, prints, session_t, sessions) { expect_session(row); }

TEST(conform, draws_other_stacks_by_another_seed) {
    ran_t ran = run_well(PATIENT "--seed 9 " MODULES "/my_layer.so");
    EXPECT_EQ(lines_with(ran.out, "ok   my_quota_random_1: "), 0);
    EXPECT_CONTAINS(ran.out, "ok   my_quota_random_33: zero_size\n");
}

TEST(conform, explains_each_check) {
    ran_t ran = run_well("conform --explain random_program");
    EXPECT_CONTAINS(ran.out, "random_program\n\n2,000 random operations");
    expect_wrong_use("conform --explain nothing", "--explain nothing: there is no such check; the checks are zero_size, two_live");
    static char page[1 << 16];
    FILE *file = fopen(STRATA_SOURCE_DIR "/docs/conform.md", "rb");
    ASSERT_TRUE(file);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    fclose(file);
    EXPECT_STREQ(run_command("conform --explain all").out, page);
}

TEST(conform, does_not_wait_for_a_process_that_a_layer_leaves_after) {
    uint64_t start = strata_real_now();
    ran_t ran = run_command(PATIENT MODULES "/lingering.so");
    EXPECT_GT(400 * UINT64_C(1000000000), strata_real_now() - start); /* it would linger for longer */
    EXPECT_EQ(ran.exit_status, 0);
    EXPECT_CONTAINS(ran.out, "ok   lingering: random_program\n");
}

TEST(conform, other_commands_show_loaded_layers) {
    ran_t ran = run_well("layers --load " MODULES "/my_layer.so");
    EXPECT_CONTAINS(ran.out, "my_quota: decorator of scope stream\n");
    expect_wrong_use("layers --load no_such.so", "");
    char file[300];
    snprintf(file, sizeof file, "%s", temporary("loads_my_layer.yaml"));
    ASSERT_TRUE(write_text("loads_my_layer.yaml", "load: [" MODULES "/my_layer.so]\n"
                                                  "stack: [retry, my_quota: {most: 2GiB}, auto_growth, system]\n"));
    ran = run_command("explain %s", file);
    EXPECT_EQ(ran.exit_status, 2);
    EXPECT_CONTAINS(ran.errors, "loads_my_layer.yaml:1:1: the strategy would load code");
    ran = run_well("explain --allow-code %s", file);
    EXPECT_CONTAINS(ran.out, "my_quota: decorator of scope stream, one instance for each stream");
    ran = run_well("check --allow-code %s", file);
    ran = run_well("compare --allow-code --device sim --repeat 1 --strategy %s %s", file,
                   project_trace_path("tinytorch-mnist.csv"));
}
