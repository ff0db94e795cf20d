/* A trace that others use while it is read. */
#include "lab/trace/read/feed.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/host/host_memory.h"
#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "tests/harness/test.h"

enum { ROWS = 50000, ROW_MAX = 64, WAITERS = 3 };

static const char header[] = "op,id,size,stream,time_us,tag\n";

/* Row k is of stream k / 10000 and has one of 40 tags; `wrong` takes the place of one of them (ROWS: none). */
static char *text_of(size_t wrong) {
    char *text = malloc(sizeof header + (size_t)ROWS * ROW_MAX), *at = text + sprintf(text, "%s", header);
    for (size_t k = 0; k < ROWS; k++)
        at += k == wrong ? sprintf(at, "free,%zu,,0,%zu,\n", (size_t)ROWS, k)
                         : sprintf(at, "alloc,%zu,%zu,%zu,%zu,t%zu\n", k, k + 1, k / 10000, k, k % 40);
    return text;
}

static void expect_row(const strata_trace_t *trace, size_t k) {
    char tag[16];
    snprintf(tag, sizeof tag, "t%zu", k % 40);
    const strata_trace_event_t *event = &trace->events[k];
    EXPECT_EQ(event->id, k);
    EXPECT_EQ(event->value, k + 1);
    EXPECT_EQ(trace->streams[event->stream].number, k / 10000);
    EXPECT_STREQ(trace->tags[event->tag], tag);
}

/* Reads every row as soon as it is there, and once more at the end, where it was first. */
static void *wait_for_all(void *context) {
    strata_trace_feed_t *feed = context;
    strata_trace_t view = {.count = 0}, first = {.count = 0};
    bool end = false;
    for (size_t k = 0; !end && !strata_test_has_failed();) {
        EXPECT_OK(strata_trace_feed_wait(feed, &view, &end));
        EXPECT_TRUE(end || view.count > k);
        for (; k < view.count && !strata_test_has_failed(); k++) expect_row(&view, k);
        if (first.count == 0) first = view;
        EXPECT_GE(view.lifetimes, view.count);
        EXPECT_EQ(view.stream_count, (view.count - 1) / 10000 + 1);
    }
    for (size_t k = 0; k < first.count && !strata_test_has_failed(); k++) expect_row(&first, k);
    EXPECT_EQ(view.count, ROWS);
    return NULL;
}

TEST(feed, each_waiter_sees_every_row) {
    char *text CLOSED_BY(text_cleanup) = text_of(ROWS);
    strata_trace_feed_t *feed;
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = NULL;
    pthread_t threads[WAITERS];
    ASSERT_OK(strata_trace_feed_begin(write_text("feed.csv", text), &feed));
    EXPECT_GE(strata_trace_feed_expected(feed), ROWS);
    for (int i = 0; i < WAITERS; i++) ASSERT_EQ(pthread_create(&threads[i], NULL, wait_for_all, feed), 0);
    for (int i = 0; i < WAITERS; i++) pthread_join(threads[i], NULL);
    ASSERT_OK(strata_trace_feed_finish(feed, &trace));
    ASSERT_EQ(trace->count, ROWS);
    for (size_t k = 0; k < ROWS && !strata_test_has_failed(); k++) expect_row(trace, k);
}

/* A packed file says little about its rows: they are moved while others read them. */
TEST(feed, rows_that_move_stay_where_they_were_too) {
    char *text CLOSED_BY(text_cleanup) = text_of(ROWS);
    strata_trace_feed_t *feed;
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = NULL;
    ASSERT_OK(strata_trace_feed_begin(write_gzip("feed.csv.gz", text, strlen(text)), &feed));
    EXPECT_LT(strata_trace_feed_expected(feed), ROWS);
    wait_for_all(feed);
    ASSERT_OK(strata_trace_feed_finish(feed, &trace));
    EXPECT_EQ(trace->older_count, 0); /* nobody reads there any more */
}

TEST(feed, the_whole_is_what_a_load_gives) {
    char *text CLOSED_BY(text_cleanup) = text_of(ROWS);
    strata_trace_feed_t *feed;
    strata_trace_t *fed CLOSED_BY(trace_cleanup) = NULL, *loaded CLOSED_BY(trace_cleanup) = NULL;
    ASSERT_OK(strata_trace_load(write_text("feed.csv", text), &loaded));
    ASSERT_OK(strata_trace_feed_begin(temporary("feed.csv"), &feed));
    ASSERT_OK(strata_trace_feed_finish(feed, &fed)); /* nobody has waited */
    ASSERT_EQ(fed->count, loaded->count);
    EXPECT_EQ(memcmp(fed->events, loaded->events, fed->count * sizeof *fed->events), 0);
    EXPECT_EQ(fed->peak_requested, loaded->peak_requested);
    EXPECT_STREQ(fed->format, loaded->format);
}

TEST(feed, a_wrong_row_is_told_to_all_and_the_rows_before_it_stay) {
    char *text CLOSED_BY(text_cleanup) = text_of(ROWS - 5);
    strata_trace_feed_t *feed;
    strata_trace_t *trace = NULL, view = {.count = 0};
    bool end = false;
    char said[4096];
    EXPECT_STATUS(STRATA_E_FORMAT, strata_trace_load(write_text("feed.csv", text), &trace));
    snprintf(said, sizeof said, "%s", strata_last_error()->text);
    ASSERT_OK(strata_trace_feed_begin(temporary("feed.csv"), &feed));
    while (strata_trace_feed_wait(feed, &view, &end) == STRATA_OK) ASSERT_EQ(end, false);
    for (size_t k = 0; k < view.count && !strata_test_has_failed(); k++) expect_row(&view, k);
    for (int again = 0; again < 2; again++) EXPECT_SAYS(STRATA_E_FORMAT, strata_trace_feed_wait(feed, &view, &end), said);
    EXPECT_SAYS(STRATA_E_FORMAT, strata_trace_feed_finish(feed, &trace), said);
    EXPECT_EQ(trace, NULL);
    EXPECT_SAYS(STRATA_E_FORMAT, strata_trace_feed_begin(write_text("feed.csv", "op,id\n"), &feed), "feed.csv:1:");
}

static strata_status_t feed_all(strata_trace_t **trace) {
    strata_trace_feed_t *feed;
    strata_status_t status = strata_trace_feed_begin(temporary("feed.csv"), &feed);
    return status == STRATA_OK ? strata_trace_feed_finish(feed, trace) : status;
}

/* Only the room for all rows that are expected can be done without. */
TEST(feed, survives_every_failed_allocation) {
    char *text CLOSED_BY(text_cleanup) = text_of(ROWS);
    strata_trace_t *trace = NULL;
    uint64_t before = strata_host_allocations(), survived = 0;
    write_text("feed.csv", text);
    ASSERT_OK(feed_all(&trace));
    strata_trace_delete(trace);
    uint64_t allocations = strata_host_allocations() - before;
    EXPECT_GT(allocations, 50);
    for (uint64_t k = 1; k <= allocations; k++) {
        strata_host_fail_at(k, 0);
        strata_status_t status = feed_all(&trace);
        strata_host_fail_at(0, 0);
        if (status != STRATA_OK) EXPECT_STATUS(STRATA_E_HOST_MEMORY, status);
        if (status == STRATA_OK) survived += trace->count == ROWS;
        if (status == STRATA_OK) strata_trace_delete(trace);
    }
    EXPECT_EQ(survived, 1);
}
