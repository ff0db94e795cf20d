/* What is shown to a person holds nothing that a terminal obeys, whatever a file, its name or a program's names say. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "platform/text/printable.h"
#include "tests/facade/support/fixture.h"
#include "tests/harness/files.h"
#include "tests/tools/support/ran.h"

/* Sets the window's title, clears the screen, goes a line up; then the same in one byte of C1, in UTF-8 and not; turns the writing. */
#define EVIL                                                                                                                       \
    "\033]0;x\007\033[2J\033[A\177\302\2332J\233"                                                                                  \
    "2J\342\200\256abc\342\200\250"

static void expect_shown(const char *what, const char *text) {
    for (const char *at = text; *at;) {
        size_t length = *at == '\n' ? 1 : strata_printable_length(at);
        if (length == 0) {
            FAIL_TEST("%s: byte 0x%02x in \"%.60s\"", what, (unsigned char)*at, at > text + 20 ? at - 20 : text);
            return;
        }
        at += length;
    }
}

TEST(shown, what_a_terminal_obeys_becomes_a_question_mark) {
    static const struct {
        const char *from, *to;
    } cases[] = {{"plain text", "plain text"},
                 {"a\033[31mb", "a?[31mb"},
                 {"tab\there\r", "tab?here?"},
                 {"\177\001", "??"},
                 {"caf\303\251 \342\202\254 \360\237\231\202", "caf\303\251 \342\202\254 \360\237\231\202"},
                 {"\302\233", "??"},
                 {"\302\240", "\302\240"},
                 {"\233", "?"},
                 {"\342\200\256", "???"},
                 {"\342\201\246", "???"},
                 {"\342\200\224", "\342\200\224"},
                 {"\342\200\247", "\342\200\247"},
                 {"\342\200\250", "???"},
                 {"\342\200\257", "\342\200\257"},
                 {"\342\201\245", "\342\201\245"},
                 {"\342\201\251", "???"},
                 {"\342\201\252", "\342\201\252"},
                 {"\303", "?"},
                 {"\300\200", "??"},
                 {"\355\240\200", "???"},
                 {"a\nb", "a?b"},
                 {"", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        strcpy(text, cases[i].from);
        strata_make_printable(text, false);
        EXPECT_STREQ(text, cases[i].to);
    }
    char lines[] = "a\nb\033";
    strata_make_printable(lines, true);
    EXPECT_STREQ(lines, "a\nb?");
}

TEST(shown, errors_are_of_one_line_but_the_report) {
    (void)strata_fail(STRATA_E_IO, 0, "%s: no\nsuch", EVIL);
    expect_shown("error", strata_last_error()->text);
    EXPECT_EQ(strchr(strata_last_error()->text, '\n'), NULL);
    (void)strata_fail_context("in\n" EVIL);
    expect_shown("context", strata_last_error()->text);
    EXPECT_EQ(strchr(strata_last_error()->text, '\n'), NULL);
    (void)strata_fail(STRATA_E_NO_MEMORY, 0, "out\n  of " EVIL);
    expect_shown("report", strata_last_error()->text);
    EXPECT_CONTAINS(strata_last_error()->text, "out\n  of ");
}

TEST(shown, a_programs_names_in_its_reports) {
    strata_block_t block, none;
    static char text[1 << 17];
    size_t needed;
    RIG(rig, "version: 1\nstack: [retry: {timeout: 1ms}, auto_growth, system]\n", 64 * MIB);
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 1000, .tag = "tag\n" EVIL};
    EXPECT_OK(strata_annotate(rig.s, "operator\n  asked 0\n" EVIL));
    EXPECT_OK(strata_allocate_with(rig.s, rig.gpu, NULL, &options, &block));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, GIB, &none));
    expect_shown("report", strata_last_error()->text);
    EXPECT_CONTAINS(strata_last_error()->text, "tag?");
    EXPECT_LACKS(strata_last_error()->text, "\n  asked 0");
    EXPECT_OK(strata_statistics_prometheus(rig.s, text, sizeof text, &needed));
    expect_shown("prometheus", text);
    EXPECT_OK(strata_statistics_json(rig.s, text, sizeof text, &needed));
    expect_shown("json", text);
    EXPECT_OK(strata_free(rig.s, block.ref));
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig.s, block.ref));
    expect_shown("stale", strata_last_error()->text);
}

/* ---- the command ---- */

static void expect_tame(const char *arguments, int status) {
    ran_t ran = run_command("%s", arguments);
    EXPECT_EQ(ran.exit_status, status);
    expect_shown(arguments, ran.out);
    expect_shown(arguments, ran.errors);
    EXPECT_GT(strlen(ran.out) + strlen(ran.errors), 20);
}

TEST(shown, what_hostile_files_say) {
    static const char *const strategies[] = {"stack: [\"" EVIL "\"]\n",
                                             "stack: [sys\302\233tem]\n",
                                             "stack: [\"\\e[2J\"]\n",
                                             "stack: [\"\\u009b2J\"]\n",
                                             "\"\\e[2J\": 1\n",
                                             "stack: [system]\ndescription: \"\\u202eabc\"\n",
                                             "extends: \"\\e[2J.yaml\"\n",
                                             "extends: \"a\\x9b\"\n",
                                             "load: [\"\\e[2J.so\"]\n",
                                             "stack: [trace: {path: \"\\e[2J\"}, system]\n",
                                             "stack: [system: {memory: \"\\u009b\"}]\n",
                                             "stack: [\302\2332J]\n",
                                             "a: &\033[2J 1\n",
                                             "stack: !<\033[2J> 1\n"};
    static const char *const traces[] = {"op,id,size,stream,time_us\n" EVIL ",1,1,1,1\n",
                                         "op,id,size,stream," EVIL "\n",
                                         EVIL "\n",
                                         "op,id,size,stream,time_us\nalloc," EVIL ",1,1,1\n",
                                         "op,id,size,stream,time_us,place\nalloc,1,1,1,1," EVIL "\n",
                                         "# strata-trace " EVIL "\n"};
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
        (void)write_text("evil.yaml", strategies[i]);
        expect_tame("check --allow-code evil.yaml", 2);
        expect_tame("explain --allow-code evil.yaml", 2);
    }
    for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
        (void)write_text("evil.csv", traces[i]);
        expect_tame("compare --device sim --strategy system evil.csv", 2);
    }
    static const char *const merged[] = {"{\"schema\": 1, \"runs\": [{\"trace\": \"" EVIL "\", \"label\": \"b\"}]}", EVIL,
                                         "{\"schema\": 1, \"runs\": \"\302\233\"}"};
    for (size_t i = 0; i < sizeof merged / sizeof *merged; i++) {
        (void)write_text("evil.json", merged[i]);
        expect_tame("merge evil.json", 2);
    }
}

/* A trace whose blocks have such tags, under a strategy that cannot serve it: the report names them. */
TEST(shown, tags_of_a_trace_that_runs_out_of_memory) {
    (void)write_text("tags.csv",
                     "op,id,size,stream,time_us,tag\nalloc,1,60000000,0,0,\"a" EVIL "\"\nalloc,2,60000000,0,1,\"b" EVIL "\"\n"
                     "free,1,0,0,2,\n");
    (void)write_text("fails.yaml", "version: 1\nstack: [fault: {at: 2, status: device}, system]\n");
    expect_tame("compare --repeat 1 --device sim --capacity 100MiB --strategy strata --draw tags.csv", 0);
    expect_tame("stats --device sim --capacity 100MiB --strategy strata --blocks --at end tags.csv", 0);
    ran_t ran = run_command("stats --device sim --strategy strata --json --blocks --at end tags.csv");
    expect_shown("json", ran.out);
}

TEST(shown, names_of_files_and_arguments) {
#define NAME "a\033[2J\302\233b\nc"
    (void)write_text(NAME ".yaml", "version: 1\nstack: [retry, system]\n");
    (void)write_text(NAME ".csv", "op,id,size,stream,time_us\nalloc,1,4096,0,0\n");
    (void)write_text(NAME "-wrong.yaml", "stack: [sytem]\n");
    (void)write_text(NAME "-wrong.csv", "op\n");
    static const struct {
        const char *arguments;
        int status;
    } runs[] = {{"check '" NAME "-wrong.yaml'", 2},
                {"explain './" NAME ".yaml'", 0},
                {"diff './" NAME ".yaml' strata", 0},
                {"compare --repeat 1 --draw --device sim --strategy './" NAME ".yaml' '" NAME ".csv'", 0},
                {"compare --repeat 1 --json - --device sim --strategy './" NAME ".yaml' '" NAME ".csv'", 0},
                {"compare --repeat 1 --label '" NAME "' --device sim --strategy system '" NAME ".csv'", 2},
                {"compare --repeat 1 --device sim --strategy system --label '" NAME "' '" NAME ".csv'", 0},
                {"stats --device sim --strategy system '" NAME ".csv'", 0},
                {"stats --device sim --strategy system '" NAME "-wrong.csv'", 2},
                {"stats --json --device sim --strategy './" NAME ".yaml' '" NAME ".csv'", 0},
                {"merge '" NAME ".csv'", 2},
                {"conform './" NAME ".csv'", 2},
                {"layers --load './" NAME ".csv'", 2},
                {"'" NAME "'", 2},
                {"help '" NAME "'", 2},
                {"compare '--" NAME "'", 2},
                {"compare --device '" NAME "' --strategy system x.csv", 2},
                {"presets '" NAME "'", 2},
                {"compare --device sim --strategy system --set '" NAME "=1' '" NAME ".csv'", 2},
                {"import '" NAME "'", 2},
                {"import pytorch '" NAME "'", 2},
                {"STRATA_STRATEGY='" NAME "' -- explain", 2},
                {"STRATA_SET='" NAME "=1' -- explain strata", 2},
                {"explain tensorflow --set 'bfc.memory_dump=\302\2332J'", 2},
                {"explain tensorflow --set 'bfc.memory_dump=\342\200\256a\377'", 2},
                {"compare --json '" NAME "/x' --repeat 1 --device sim --strategy system '" NAME ".csv'", 1}};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) expect_tame(runs[i].arguments, runs[i].status);
}
