/* Tables are as wide as the terminal: what is too long is cut so that it can be told apart, columns go below each other. */
#include <stdio.h>
#include <string.h>

#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "tests/tools/support/ran.h"

/* Checks that no line is wider, except the final command, which can be pasted. Returns the number of other lines with `part`. */
static size_t count_lines(const char *text, size_t width, const char *part) {
    size_t count = 0;
    for (const char *at = text; *at; at += strcspn(at, "\n") + 1) {
        char line[1024];
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        if (strncmp(line, "strata stats ", strlen("strata stats ")) == 0) continue;
        if (strlen(line) > width) FAIL_TEST("wider than %zu: %s", width, line);
        count += strstr(line, part) != NULL;
    }
    return count;
}

static const char *write_streams(unsigned streams) {
    char text[4096] = "op,id,size,stream,time_us\n", row[64];
    for (unsigned i = 0; i < streams; i++) {
        snprintf(row, sizeof row, "alloc,%u,%u,%u,%u\n", i, 1000000000 + i, i, i);
        strcat(text, row);
    }
    return write_text("t.csv", text);
}

#define TWO "--repeat 3 --device sim:h100 --strategy paddle --set auto_growth.chunk_size=20MiB --strategy strata"

TEST(tables, two_strategies_stand_in_80_columns) {
    write_streams(2);
    ran_t ran = run_well("COLUMNS=80 -- compare " TWO " t.csv");
    EXPECT_EQ(count_lines(ran.out, 80, "  label "), 1);
    EXPECT_EQ(count_lines(ran.out, 80, "chunk_size=20MiB"), 0);
    EXPECT_EQ(count_lines(ran.out, 80, "=20MiB"), 1); /* the value is kept */
    ran = run_command("compare " TWO " t.csv");
    EXPECT_EQ(count_lines(ran.out, 1000, "auto_growth.chunk_size=20MiB"), 1); /* nobody looks: nothing is cut */
}

TEST(tables, many_strategies_stand_below_each_other) {
    write_streams(2);
    ran_t ran = run_well("COLUMNS=80 -- compare " TWO " --strategy system --strategy pytorch --strategy tensorflow t.csv");
    EXPECT_EQ(count_lines(ran.out, 80, "  label "), 2);
    EXPECT_EQ(count_lines(ran.out, 80, "  peak_reserved_bytes "), 2);
    EXPECT_CONTAINS(ran.out, "tensorflow\n");
    ran = run_command("COLUMNS=30 -- compare " TWO " t.csv"); /* one column is the least */
    EXPECT_EQ(count_lines(ran.out, 44, "  label "), 2);
}

TEST(tables, long_labels_are_told_apart) {
    write_streams(1);
    ran_t ran = run_well("COLUMNS=80 -- compare --device sim --repeat 1 "
                         "--strategy system --label a-very-long-label-of-the-first-kind-here "
                         "--strategy paddle --label a-very-long-label-of-the-other-kind-here t.csv");
    const char *row = strstr(ran.out, "  label ");
    char first[64] = "", second[64] = "";
    ASSERT_NE(row, NULL);
    EXPECT_EQ(sscanf(row, " label %63s %63s", first, second), 2);
    EXPECT_NE(strcmp(first, second), 0);
    EXPECT_EQ(count_lines(ran.out, 80, "  label "), 1);
}

TEST(tables, six_streams_stand_in_80_columns) {
    write_streams(6);
    ran_t ran = run_well("COLUMNS=80 -- stats --device sim:h100 --strategy strata --at end t.csv");
    EXPECT_EQ(count_lines(ran.out, 80, "  allocated_bytes "), 3);
    for (int i = 0; i < 6; i++) {
        char name[16];
        snprintf(name, sizeof name, "stream %d", i);
        EXPECT_EQ(count_lines(ran.out, 80, name), 1);
    }
    ran = run_command("stats --device sim:h100 --strategy strata --at end t.csv"); /* nobody looks */
    EXPECT_EQ(count_lines(ran.out, 148, "  allocated_bytes "), 1);
}

/* As many columns as have room, one beside the sum at least, whatever is left of a terminal. */
TEST(tables, streams_stand_beside_each_other_as_far_as_there_is_room) {
    static const struct {
        int columns;
        size_t tables;
    } cases[] = {{20, 6}, {35, 6}, {77, 6}, {78, 3}, {91, 3}, {92, 2}, {133, 2}, {134, 1}};
    write_streams(6);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ran_t ran = run_well("COLUMNS=%d -- stats --device sim:h100 --strategy strata --at end t.csv", cases[i].columns);
        size_t widest = cases[i].columns < 64 ? 64 : (size_t)cases[i].columns;
        EXPECT_EQ(count_lines(ran.out, widest, "  allocated_bytes "), cases[i].tables);
    }
}
