/* Problems and plans as CSV, good and hostile. */
#include "tests/harness/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/host/host_memory.h"
#include "platform/status.h"
#include "tests/planning/plans.h"

static strata_plan_table_t read_text(const char *text) {
    strata_plan_table_t table;
    EXPECT_OK(strata_plan_table_read(write_text("plan.csv", text), &table));
    return table;
}

TEST(plan_files, columns_come_in_any_order_and_by_other_names) {
    strata_plan_table_t t CLOSED_BY(plans_cleanup) = read_text("size,begin,x_mine,end,buffer_id\n5,2,?,3,first\n\n7,0,,0,\"a, "
                                                               "b\"\n");
    ASSERT_EQ(t.count, 2);
    EXPECT_EQ(t.buffers[0].size, 5);
    EXPECT_EQ(t.buffers[0].lower, 2);
    EXPECT_EQ(t.buffers[0].upper, 4); /* `end` is the last moment */
    EXPECT_EQ(t.buffers[1].upper, 1);
    EXPECT_STREQ(strata_plan_table_name(&t, 0), "first");
    EXPECT_STREQ(strata_plan_table_name(&t, 1), "a, b");
}

TEST(plan_files, all_columns_are_read) {
    strata_plan_table_t t CLOSED_BY(plans_cleanup) = read_text(
        "lower,upper,size,alignment,offset,kind,fork,branch,output,gaps,hint\n0,1,2,16,32,3,4,5,1,0-1,9\n0,1,2,,,,,,,,\n");
    ASSERT_EQ(t.count, 2);
    const strata_plan_buffer_t *b = t.buffers;
    EXPECT_EQ(b->alignment, 16);
    EXPECT_EQ(b->offset, 32);
    EXPECT_EQ(b->kind, 3);
    EXPECT_EQ(b->fork, 4);
    EXPECT_EQ(b->branch, 5);
    EXPECT_EQ(b->flags, STRATA_PLAN_FIXED | STRATA_PLAN_OUTPUT);
    EXPECT_EQ(b[1].flags, 0);
    EXPECT_STREQ(strata_plan_table_name(&t, 1), "1");
}

TEST(plan_files, what_is_written_reads_the_same) {
    strata_plan_table_t t CLOSED_BY(plans_cleanup) = read_text(
        "id,lower,upper,size,alignment,branch\n\"say \"\"x\"\", y\",1,4,100,8,2\nb,2,5,7,,\n");
    char path[512];
    snprintf(path, sizeof path, "%s", temporary("out.csv.gz"));
    EXPECT_OK(strata_plan_table_write(&t, (const uint64_t[]){8, 200}, path));
    strata_plan_table_t again CLOSED_BY(plans_cleanup) = {0};
    EXPECT_OK(strata_plan_table_read(path, &again));
    ASSERT_EQ(again.count, 2);
    EXPECT_STREQ(strata_plan_table_name(&again, 0), "say \"x\", y");
    EXPECT_EQ(again.buffers[0].offset, 8);
    EXPECT_EQ(again.buffers[0].alignment, 8);
    EXPECT_EQ(again.buffers[0].branch, 2);
    EXPECT_EQ(again.buffers[1].offset, 200);
    EXPECT_OK(strata_plan_check(again.buffers, 2, (const uint64_t[]){8, 200}, NULL));
}

/* Buffers that are placed above a fixed one at 2^60 end beyond it. */
TEST(plan_files, the_highest_offsets_of_a_plan_read_the_same) {
    strata_plan_table_t t CLOSED_BY(plans_cleanup) = read_text("lower,upper,size,offset\n0,2,8,1152921504606846976\n1,3,1,\n");
    const uint64_t offsets[] = {UINT64_C(1) << 60, UINT64_C(1) << 62};
    char path[512];
    snprintf(path, sizeof path, "%s", temporary("far.csv"));
    EXPECT_OK(strata_plan_table_write(&t, offsets, path));
    strata_plan_table_t again CLOSED_BY(plans_cleanup) = {0};
    EXPECT_OK(strata_plan_table_read(path, &again));
    ASSERT_EQ(again.count, 2);
    EXPECT_EQ(again.buffers[1].offset, offsets[1]);
}

typedef struct wrong {
    const char *name, *text, *what;
} wrong_t;
static const wrong_t wrong[] = {
    {"empty", "", "the header is missing; write id,lower,upper,size"},
    {"no_size", "id,lower,upper\n", ":1:1: column \"size\" is missing"},
    {"no_upper", "id,lower,size\n", "exactly one of the columns \"upper\" and \"end\" is needed"},
    {"both_ends", "lower,upper,end,size\n", "exactly one of the columns"},
    {"unknown", "id,lower,upper,size,colour\n", ":1:21: unknown column \"colour\"; a header has"},
    {"twice", "lower,upper,size,begin\n", "column \"begin\" appears twice"},
    {"fields", "lower,upper,size\n1,2\n", ":2:1: 2 fields, but the header has 3"},
    {"far", "lower,upper,size,offset\n0,2,8,4611686018427387905\n", "offset is \"4611686018427387905\""},
    {"letters", "lower,upper,size\n1,2,12k\n", ":2:5: size is \"12k\"; write a whole number from 0 to 281474976710656"},
    {"negative", "lower,upper,size\n-1,2,3\n", ":2:1: lower is \"-1\""},
    {"overflow", "lower,upper,size\n1,99999999999999999999999,3\n", "upper is \"99999999999999999999999\""},
    {"last_moment", "lower,end,size\n1,18446744073709551615,3\n", "end is \"18446744073709551615\""},
    {"backwards", "lower,upper,size\n5,5,3\n", ":2:1: the buffer ends at 5 but begins at 5"},
    {"alignment", "lower,upper,size,alignment\n1,2,3,24\n", "alignment 24 is not a power of two"},
    {"quote", "lower,upper,size,id\n1,2,3,\"x\n", "closing quote"},
};

TEST_EACH(plan_files, wrong_ones_are_told_where, wrong_t, wrong) {
    strata_plan_table_t table;
    EXPECT_SAYS(STRATA_E_FORMAT, strata_plan_table_read(write_text("wrong.csv", row->text), &table), row->what);
    EXPECT_EQ(table.buffers, NULL);
}

TEST(plan_files, missing_ones_are_told) {
    strata_plan_table_t table;
    bool is;
    EXPECT_SAYS(STRATA_E_IO, strata_plan_table_read(temporary("nowhere.csv"), &table), "cannot read the file");
    EXPECT_STATUS(STRATA_E_IO, strata_plan_table_detect(temporary("nowhere.csv"), &is));
}

TEST(plan_files, traces_are_told_from_tables) {
    bool is = true;
    EXPECT_OK(strata_plan_table_detect(write_text("t.csv", "op,id,size,stream,time_us\n"), &is));
    EXPECT_FALSE(is);
    EXPECT_OK(strata_plan_table_detect(write_text("t.csv", "# strata-trace 1\nop,id,size,stream,time_us\n"), &is));
    EXPECT_FALSE(is);
    EXPECT_OK(strata_plan_table_detect(write_text("t.csv", "id,start,end,size\n"), &is));
    EXPECT_TRUE(is);
    EXPECT_OK(strata_plan_table_detect(write_text("t.csv", ""), &is));
    EXPECT_FALSE(is);
}

TEST(plan_files, without_host_memory_nothing_is_left) {
    char text[8192] = "id,lower,upper,size\n", path[512];
    for (int i = 0; i < 300; i++) sprintf(text + strlen(text), "name%d,%d,%d,1\n", i, i, i + 1);
    snprintf(path, sizeof path, "%s", write_text("long.csv", text));
    strata_plan_table_t table;
    strata_status_t status = STRATA_E_HOST_MEMORY;
    for (uint64_t k = 1; status != STRATA_OK && k < 100; k++) {
        strata_host_fail_at(k, 0);
        status = strata_plan_table_read(path, &table);
        if (status != STRATA_OK) EXPECT_EQ(status, STRATA_E_HOST_MEMORY);
    }
    strata_host_fail_at(0, 0);
    EXPECT_OK(status);
    EXPECT_EQ(table.count, 300);
    plans_cleanup(&table);
}
