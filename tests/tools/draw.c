/* strata compare --draw: what lies where at the peak, side by side. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "tests/tools/support/ran.h"

#define COMPARE "compare --device sim:h100 --repeat 1 --strategy small.yaml --strategy large.yaml "

static void write_files(void) {
    write_text("small.yaml",
               "version: 1\nstrategy: small\nstack:\n  - stream_safe\n  - auto_growth: {chunk_size: 8MiB}\n  - system\n");
    write_text("large.yaml",
               "version: 1\nstrategy: large\nstack:\n  - stream_safe\n  - auto_growth: {chunk_size: 32MiB}\n  - system\n");
    write_text("draw.csv", "op,id,size,stream,time_us\n"
                           "alloc,1,4194304,7,0\n"
                           "alloc,2,2097152,9,10\n"
                           "alloc,3,1048576,7,20\n"
                           "borrow,1,0,9,30\n"
                           "free,1,0,7,40\n" /* row 5: waits for stream 9 */
                           "alloc,4,4194304,7,50\n" /* row 6: most is reserved by small */
                           "free,2,0,9,60\n"
                           "free,3,0,7,80\n"
                           "free,4,0,7,90\n");
}

/* The drawing, without what is said after it. */
static const char *drawing(const ran_t *ran) {
    char *at = ran->out ? strstr(ran->out, "draw.csv, at the peak of reserved memory\n") : NULL;
    char *end = at ? strstr(at, "\ndraw.csv: ") : NULL;
    if (end) *end = '\0';
    return at ? at : "nothing is drawn";
}

/* A sign is 128 KiB: 1 MiB has eight of them. */
static const char two_sides[] = "draw.csv, at the peak of reserved memory\n"
                                "\n"
                                "small                                    large\n"
                                "after row 6 of 9                         after row 2 of 9\n"
                                "24.00 MiB in 3 chunks:                   64.00 MiB in 2 chunks:\n"
                                "  live        7.00 MiB                     live        6.00 MiB\n"
                                "  waiting     4.00 MiB                     waiting          0 B\n"
                                "  free       13.00 MiB                     free       58.00 MiB\n"
                                "\n"
                                "all chunks, 128.0 KiB per character      all chunks, 128.0 KiB per character\n"
                                "|........................[#######~~~~~   |.....................................\n"
                                "~~~~~~~~~~~~~~~~~~~~~~~~~~~|..........   ......................................\n"
                                "......................................   ......................................\n"
                                "[###############|.....................   ......................................\n"
                                "...........[##########################   ......................................\n"
                                "#####                                    ...................................[##\n"
                                "                                         #############################|........\n"
                                "                                         ......................................\n"
                                "                                         ......................................\n"
                                "                                         ......................................\n"
                                "                                         ......................................\n"
                                "                                         ......................................\n"
                                "                                         ......................................\n"
                                "                                         ....[###############\n"
                                "\n"
                                "fragmented: gpu:0, stream 9              fragmented: gpu:0, stream 9\n"
                                "8.00 MiB, 32.00 KiB per character        32.00 MiB, 128.0 KiB per character\n"
                                "free 6.00 MiB in 1 piece                 free 30.00 MiB in 1 piece\n"
                                "......................................   ......................................\n"
                                "......................................   ......................................\n"
                                "......................................   ......................................\n"
                                "......................................   ......................................\n"
                                "......................................   ......................................\n"
                                "..[###################################   ......................................\n"
                                "############################             ............[###############\n"
                                "\n"
                                "[ a live block begins   # live   ~ waits for other streams   . free   + mixed\n";

static const char one_below_the_other[] = "draw.csv, at the peak of reserved memory\n"
                                          "\n"
                                          "small\n"
                                          "after row 6 of 9\n"
                                          "24.00 MiB in 3 chunks:\n"
                                          "  live        7.00 MiB\n"
                                          "  waiting     4.00 MiB\n"
                                          "  free       13.00 MiB\n"
                                          "\n"
                                          "largest: gpu:0, stream 7\n"
                                          "8.00 MiB, 32.00 KiB per character\n"
                                          "free 3.00 MiB in 1 piece\n"
                                          "........................................\n"
                                          "........................................\n"
                                          "................[#######################\n"
                                          "########~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
                                          "~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
                                          "~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
                                          "~~~~~~~~~~~~~~~~\n"
                                          "\n"
                                          "large\n"
                                          "after row 2 of 9\n"
                                          "64.00 MiB in 2 chunks:\n"
                                          "  live        6.00 MiB\n"
                                          "  waiting          0 B\n"
                                          "  free       58.00 MiB\n"
                                          "\n"
                                          "largest: gpu:0, stream 7\n"
                                          "32.00 MiB, 128.0 KiB per character\n"
                                          "free 28.00 MiB in 1 piece\n"
                                          "........................................\n"
                                          "........................................\n"
                                          "........................................\n"
                                          "........................................\n"
                                          "........................................\n"
                                          "........................[###############\n"
                                          "################\n"
                                          "\n"
                                          "[ a live block begins   # live   ~ waits for other streams   . free   + mixed\n";

TEST(draw, all_chunks_and_the_fragmented_one_of_two_strategies) {
    write_files();
    ran_t ran = run_well("COLUMNS=80 -- " COMPARE "--draw draw.csv");
    EXPECT_STREQ(ran.errors, "");
    EXPECT_STREQ(drawing(&ran), two_sides);
    ran = run_command("COLUMNS=wide -- " COMPARE "--draw=fragmented --draw=all draw.csv");
    EXPECT_STREQ(drawing(&ran), two_sides);
}

TEST(draw, is_as_wide_as_columns_says) {
    write_files();
    ran_t ran = run_command("COLUMNS=40 -- " COMPARE "--draw=largest draw.csv");
    EXPECT_STREQ(drawing(&ran), one_below_the_other);
    ran = run_command("COLUMNS=200 -- " COMPARE "--strategy strata --strategy paddle --draw=largest draw.csv");
    EXPECT_CONTAINS(drawing(&ran), "\n\nsmall                                             large             ");
    EXPECT_CONTAINS(drawing(&ran), "strata                                            paddle\n");
}

static const session_t sessions[] = {
    {"of_one_strategy_and_of_one_that_reserves_nothing",
     .files = {{"host.csv", "op,id,size,stream,time_us,place\nalloc,1,1000,0,0,pinned\n"}},
     .runs = {{"COLUMNS=80 -- replay --device sim --repeat 1 --strategy small.yaml --draw=all draw.csv", 0,
               .out = {"\nall chunks, 32.00 KiB per character\n|...."}},
              {"replay --device sim --repeat 1 --strategy small.yaml --draw host.csv", 0,
               .out = {"host.csv, at the peak of reserved memory\n\nsmall\nreserves no device memory\n\n[ a live"}}},
     .prepare = write_files},
    {"refuses_wrong_usage",
     .wrong = {{COMPARE "--draw=small draw.csv",
                "--draw=small: write all, fragmented or largest, or --draw alone; see strata help compare"},
               {COMPARE "--draw --json - draw.csv", "--json - and --draw both write to standard output; write --json FILE"},
               {"stats --strategy small.yaml --draw draw.csv", "unknown option --draw"}},
     .prepare = write_files},
};

TEST_EACH(draw, prints, session_t, sessions) { expect_session(row); }

/* ---- a terminal ---- */

/* Draws on a terminal with these variables set; whether blocks of Unicode are used, and nothing of ASCII stands for them. */
static void expect_drawn(const char *variables, bool unicode) {
    char command[4096];
    write_files();
    snprintf(command, sizeof command,
             "cd %s && env -u LC_ALL -u LC_CTYPE -u LANG %s COLUMNS=80 %s replay --device sim --repeat 1 --strategy "
             "small.yaml --draw=all draw.csv 2> /dev/null",
             temporary("."), variables, command_path());
    const char *text = run_on_terminal(command);
    if (!text) TEST_SKIP("there are no terminals (/dev/pts)");
    EXPECT_EQ(strstr(text, "\u2590\u2588\u2588") != NULL, unicode);
    EXPECT_EQ(strstr(text, "\u2592 waits for other streams") != NULL, unicode);
    EXPECT_EQ(strstr(text, "~ waits for other streams") != NULL, !unicode);
}

TEST(draw, in_blocks_of_unicode_where_a_terminal_has_them) {
    expect_drawn("LC_ALL=C.UTF-8", true);
    expect_drawn("LC_ALL=C", false);
    expect_drawn("", false);
}

/* What the terminal shows does not hang on what this machine has installed: nobody has these. */
TEST(draw, believes_the_name_of_a_locale_that_is_not_installed) {
    expect_drawn("LANG=tlh_QO.UTF-8", true);
    expect_drawn("LC_CTYPE=tlh_QO.utf8 LANG=C", true);
    expect_drawn("LC_ALL=tlh_QO LANG=tlh_QO.UTF-8", false);
    expect_drawn("LC_ALL=tlh_QO.ISO-8859-1", false);
}
