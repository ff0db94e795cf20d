/* Plans that were made ahead, as programs follow them: good and hostile files. */
#include "planning/file/ahead.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/host/host_memory.h"
#include "platform/status.h"
#include "tests/harness/files.h"
#include "tests/planning/plans.h"

static const strata_ahead_reading_t whole = {.branch = NULL};

static strata_status_t read_text(const char *text, strata_ahead_t *plan) {
    return strata_ahead_read(write_text("ahead.csv", text), &whole, plan);
}

TEST(plan_ahead, requests_come_in_the_order_in_which_they_begin) {
    strata_ahead_t plan CLOSED_BY(strata_ahead_delete);
    EXPECT_OK(read_text("id,lower,upper,size,offset\nc,4,5,1000,0\na,0,2,1,256\nb,0,9,300,1024\nnone,1,2,0,0\n", &plan));
    ASSERT_EQ(plan.count, 3);
    EXPECT_EQ(plan.requests[0].size, 256);
    EXPECT_EQ(plan.requests[0].offset, 256);
    EXPECT_EQ(plan.requests[1].size, 512);
    EXPECT_EQ(plan.requests[2].size, 1024);
    EXPECT_EQ(plan.requests[0].name, strata_ahead_name("a"));
    EXPECT_EQ(plan.peak, 1536);
}

/* Nobody else has the addresses of what is held from the begin to the end. */
TEST(plan_ahead, what_is_held_all_the_time_is_taken_out) {
    strata_ahead_t plan CLOSED_BY(strata_ahead_delete);
    EXPECT_OK(read_text("id,lower,upper,size,held,offset\nw,0,9,1000,1,256\na,0,4,256,0,0\nb,5,9,256,0,1280\nv,0,9,256,1,1536\n"
                        "old,0,3,256,1,1280\nc,3,9,256,0,2048\n",
                        &plan));
    ASSERT_EQ(plan.count, 3);
    EXPECT_EQ(plan.requests[0].offset, 0);
    EXPECT_EQ(plan.requests[1].offset, 2048 - 1024 - 256); /* c */
    EXPECT_EQ(plan.requests[2].offset, 1280 - 1024); /* b */
    EXPECT_EQ(plan.peak, 1024);
}

typedef struct wrong {
    const char *name, *text, *what;
} wrong_t;
static const wrong_t wrong[] = {
    {"empty", "", "the header is missing"},
    {"no_buffer", "id,lower,upper,size,offset\n", "ahead.csv:1: nothing is asked for"},
    {"all_held", "id,lower,upper,size,held,offset\na,0,1,256,1,0\n", "ahead.csv:1: nothing is asked for"},
    {"no_offset", "id,lower,upper,size,offset\na,0,1,256,0\nb,0,1,256,\n", "ahead.csv:3: buffer \"b\" has no offset; write"},
    {"problem", "id,lower,upper,size\na,0,1,256\n", "ahead.csv:2: buffer \"a\" has no offset; write"},
    {"crooked", "id,lower,upper,size,offset\na,0,1,256,100\n", "ahead.csv:2: buffer \"a\" is at no multiple of 256; write"},
    {"far", "id,lower,upper,size,offset\na,0,1,256,281474976710656\n", "ahead.csv:2: buffer \"a\" ends above"},
    {"branches", "id,lower,upper,size,branch,offset\na,0,1,256,1,0\nb,0,1,256,2,256\n", "ahead.csv:3: buffer \"b\" is of another"},
    {"shared", "id,lower,upper,size,offset\na,0,2,256,0\nb,3,4,256,0\nc,1,2,256,0\n",
     "ahead.csv:4: buffers \"c\" and \"a\" (line 2) share bytes"},
    {"shared_once_rounded", "id,lower,upper,size,offset\na,0,2,257,0\nb,1,4,256,256\n", "ahead.csv:3: buffers"},
    {"letters", "id,lower,upper,size,offset\na,0,2,257,x\n", "ahead.csv:2:11: offset is \"x\"; write"},
    {"json_shared",
     "{\"plan\":[\n{\"name\":\"p\",\"lower\":0,\"upper\":3,\"size\":9,\"offset\":0},\n\n{\"name\":\"q\",\"lower\":1,\"upper\":2,"
     "\"size\":9,\"offset\":0}]}",
     "ahead.csv:4: buffers \"q\" and \"p\" (line 2) share bytes"},
    {"json_number", "{\"plan\":[\n{\"lower\":0,\"upper\":3,\"size\":-9,\"offset\":0}]}", "ahead.csv:2: "},
    {"json_open", "{\"plan\":[", "ahead.csv:1: "},
    {"json_nothing", "{}", "ahead.csv:1: no plan; write"},
};

TEST_EACH(plan_ahead, wrong_ones_are_told_where, wrong_t, wrong) {
    strata_ahead_t plan;
    EXPECT_SAYS(STRATA_E_FORMAT, read_text(row->text, &plan), row->what);
    EXPECT_EQ(plan.requests, NULL);
}

TEST(plan_ahead, there_is_a_bound) {
    size_t room = 64 + 48 * ((size_t)STRATA_AHEAD_REQUESTS + 1), length;
    char *text = calloc(room, 1);
    length = (size_t)snprintf(text, room, "lower,upper,size,offset\n");
    for (int i = 0; i <= STRATA_AHEAD_REQUESTS; i++) length += (size_t)snprintf(text + length, 48, "%d,%d,256,0\n", i, i + 1);
    strata_ahead_t plan;
    EXPECT_STATUS(STRATA_E_LIMIT, read_text(text, &plan));
    text[strlen(text) - 1] = '\0';
    *(strrchr(text, '\n') + 1) = '\0';
    EXPECT_OK(read_text(text, &plan));
    EXPECT_EQ(plan.count, STRATA_AHEAD_REQUESTS);
    strata_ahead_delete(&plan);
    free(text);
}

/* Bytes changed, cut off and doubled: an error or a plan, and nothing else. */
TEST(plan_ahead, any_bytes_are_survived) {
    static const char csv[] =
        "id,lower,upper,size,alignment,held,offset\na,0,3,300,256,0,0\nb,1,2,256,256,1,512\n\"c,\",2,9,1,1,0,768\n";
    static const char json[] = "{\"x\":[1],\"plan\":[{\"name\":\"a\",\"lower\":0,\"upper\":3,\"size\":300,\"offset\":0},\n"
                               "{\"lower\":1,\"upper\":2,\"size\":1,\"alignment\":8,\"held\":true,\"offset\":512}]}";
    plans_random_t random = {5};
    for (int round = 0; round < 400; round++) {
        char text[256];
        size_t length = (size_t)snprintf(text, sizeof text, "%s", round % 2 ? csv : json);
        for (uint64_t change = 1 + plans_draw(&random, 3); change > 0; change--)
            text[plans_draw(&random, length)] = "0123456789,.\"{}[]:-\n\tax\xff"[plans_draw(&random, 25)];
        if (round % 5 == 0) text[plans_draw(&random, length)] = '\0';
        strata_ahead_t plan;
        if (read_text(text, &plan) == STRATA_OK) strata_ahead_delete(&plan);
        else EXPECT_EQ(plan.requests, NULL);
    }
}

TEST(plan_ahead, without_host_memory_nothing_is_left) {
    strata_status_t status = STRATA_E_HOST_MEMORY;
    strata_ahead_t plan;
    const char *path = write_text("ahead.csv", "id,lower,upper,size,offset\na,0,2,256,0\nb,1,4,256,256\n");
    for (uint64_t k = 1; status != STRATA_OK && k < 100; k++) {
        strata_host_fail_at(k, 0);
        status = strata_ahead_read(path, &whole, &plan);
        strata_host_fail_at(0, 0);
        if (status != STRATA_OK) EXPECT_EQ(status, STRATA_E_HOST_MEMORY);
    }
    EXPECT_OK(status);
    strata_ahead_delete(&plan);
}
