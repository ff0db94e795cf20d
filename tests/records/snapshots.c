/* What becomes of PyTorch's memory snapshots. */
#include <string.h>

#include "tests/harness/owned.h"
#include "tests/paths.h"
#include "tests/records/made.h"
#include "tests/records/rows.h"

#define NO_SEGMENTS   ((const made_segment_t[]){{.total = 0}})
#define EVENTS(...)   ((const made_event_t[]){__VA_ARGS__, {.action = NULL}})
#define SEGMENTS(...) ((const made_segment_t[]){__VA_ARGS__, {.total = 0}})

typedef struct snapshot {
    const char *name;
    const made_segment_t *segments;
    const made_event_t *events;
    const char *rows;
    strata_trace_notes_t notes;
} snapshot_t;

static const snapshot_t snapshots[] = {
    {"an_alloc_and_its_free_are_rows",
     SEGMENTS({0, 0x1000, 2097152, 0, {{2097152, 0, "inactive"}}}),
     EVENTS({"segment_alloc", 0x1000, 2097152, 0, 100, NULL}, {"alloc", 0x1000, 300, 0, 103, NULL},
            {"alloc", 0x1200, 5, 85, 104, NULL}, {"free_requested", 0x1000, 300, 0, 109, NULL},
            {"free_completed", 0x1000, 300, 0, 109, NULL}),
     "alloc 0 300 @0 t0\nalloc 1 5 @85 t1\nfree 0 @0 t6\n",
     {.reserved_peak = 2097152}},
    /* Only a use by another stream parts the two events of a free. */
    {"a_free_that_is_completed_later_was_borrowed",
     NO_SEGMENTS,
     EVENTS({"alloc", 0x1000, 300, 9, 1, NULL}, {"free_requested", 0x1000, 300, 9, 2, NULL}, {"alloc", 0x2000, 300, 9, 3, NULL},
            {"free_completed", 0x1000, 300, 9, 4, NULL}, {"alloc", 0x1000, 300, 9, 5, NULL},
            {"free_requested", 0x1000, 300, 9, 6, NULL}, {"free_completed", 0x1000, 300, 9, 6, NULL}),
     "alloc 0 300 @9 t0\nborrow 0 @3 t1\nfree 0 @9 t1\nalloc 1 300 @9 t2\nalloc 2 300 @9 t4\nfree 2 @9 t5\n",
     {.borrowed = 1, .no_segments = 1}},
    {"a_free_is_completed_once",
     NO_SEGMENTS,
     EVENTS({"alloc", 0x1000, 300, 9, 1, NULL}, {"free_requested", 0x1000, 300, 9, 2, NULL}, {"alloc", 0x2000, 300, 9, 3, NULL},
            {"free_completed", 0x1000, 300, 9, 4, NULL}, {"free_completed", 0x1000, 300, 9, 5, NULL}),
     "alloc 0 300 @9 t0\nborrow 0 @3 t1\nfree 0 @9 t1\nalloc 1 300 @9 t2\n",
     {.borrowed = 1, .never_live = 1, .no_segments = 1}},
    /* At the end of the record it is still waiting. */
    {"a_free_that_is_never_completed_was_borrowed_where_others_are",
     SEGMENTS({0, 0x1000, 4096, 0, {{512, 300, "active_pending_free"}, {512, 512, "active_allocated"}, {3072, 0, "inactive"}}}),
     EVENTS({"alloc", 0x1000, 300, 0, 1, NULL}, {"alloc", 0x1200, 512, 0, 1, NULL}, {"free_requested", 0x1000, 300, 0, 2, NULL},
            {"alloc", 0x1400, 9, 0, 3, NULL}, {"free_requested", 0x1400, 9, 0, 4, NULL}, {"free_completed", 0x1400, 9, 0, 4, NULL}),
     "alloc 0 300 @0 t0\nalloc 1 512 @0 t0\nborrow 0 @3 t1\nfree 0 @0 t1\nalloc 2 9 @0 t2\nfree 2 @0 t3\n",
     {.borrowed = 1, .no_segments = 1}},
    {"a_free_that_is_never_completed_where_none_is",
     NO_SEGMENTS,
     EVENTS({"alloc", 0x1000, 300, 0, 1, NULL}, {"free_requested", 0x1000, 300, 0, 2, NULL}),
     "alloc 0 300 @0 t0\nfree 0 @0 t1\n",
     {.no_segments = 1}},
    {"what_is_older_than_the_record_stands_at_its_head",
     SEGMENTS({0, 0x9000, 4096, 5, {{1024, 1000, "active_allocated"}, {1024, 0, "inactive"}, {2048, 2000, "active_allocated"}}}),
     EVENTS({"free_requested", 0x4000, 70, 5, 10, NULL}, {"free_completed", 0x4000, 70, 5, 10, NULL},
            {"alloc", 0x9800, 2000, 5, 11, NULL}, {"free_completed", 0x3000, 60, 5, 12, NULL}),
     "alloc 2 60 @5 t0\nalloc 0 70 @5 t0\nalloc 3 1000 @5 t0\nfree 0 @5 t0\nalloc 1 2000 @5 t1\nfree 2 @5 t2\n",
     {.older = 3, .no_segments = 1}},
    /* A record without frees, as skip_actions makes it, is still a lawful trace. */
    {"an_address_that_is_given_out_again_was_freed_by_then",
     NO_SEGMENTS,
     EVENTS({"alloc", 0x1000, 300, 0, 1, NULL}, {"alloc", 0x1000, 400, 0, 2, NULL}),
     "alloc 0 300 @0 t0\nfree 0 @0 t1\nalloc 1 400 @0 t1\n",
     {.freed_unseen = 1, .no_segments = 1}},
    {"a_free_of_what_was_freed",
     NO_SEGMENTS,
     EVENTS({"alloc", 0x1000, 300, 0, 1, NULL}, {"free_requested", 0x1000, 300, 0, 2, NULL},
            {"free_requested", 0x1000, 300, 0, 3, NULL}),
     "alloc 0 300 @0 t0\nfree 0 @0 t1\n",
     {.never_live = 1, .no_segments = 1}},
    {"a_request_that_failed_is_made_again_and_given_back",
     NO_SEGMENTS,
     EVENTS({"alloc", 0x1000, 300, 0, 1, NULL}, {"oom", 777, 1000000, 4, 2, NULL}),
     "alloc 0 300 @0 t0\nalloc 1 1000000 @4 t1\nfree 1 @4 t1\n",
     {.failed = 1, .no_segments = 1}},
    {"events_without_times_stand_a_microsecond_apart",
     NO_SEGMENTS,
     EVENTS({"alloc", 0x1000, 300, 0, 0, NULL}, {"snapshot", 0, 0, 0, 0, NULL}, {"alloc", 0x2000, 300, 0, 0, NULL}),
     "alloc 0 300 @0 t0\nalloc 1 300 @0 t2\n",
     {.untimed = 3, .no_segments = 1}},
    /* Two threads' clocks differ a little. */
    {"a_time_that_falls_stands_still",
     NO_SEGMENTS,
     EVENTS({"alloc", 0x1000, 1, 0, 50, NULL}, {"alloc", 0x2000, 2, 0, 60, NULL}, {"alloc", 0x3000, 3, 0, 40, NULL}),
     "alloc 0 1 @0 t0\nalloc 1 2 @0 t10\nalloc 2 3 @0 t10\n",
     {.no_segments = 1}},
    {"the_line_that_asked_is_the_tag",
     NO_SEGMENTS,
     EVENTS({"alloc", 0x1000, 1, 0, 1, "model/net.py"}),
     "alloc 0 1 @0 t0 'net.py:7 step'\n",
     {.no_segments = 1}},
    {"actions_of_a_later_release_are_counted",
     NO_SEGMENTS,
     EVENTS({"teleport", 0x1000, 1, 0, 1, NULL}, {"annotate", 0, 0, 0, 2, NULL}),
     "",
     {.other_actions = 1, .no_segments = 1}},
    /* The record begins with 6 MiB whose growth it does not contain. */
    {"what_the_allocator_held_at_most_is_told",
     SEGMENTS({0, 0x9000, 4 << 20, 0, {{4 << 20, 0, "inactive"}}}),
     EVENTS({"segment_alloc", 0x100000, 8 << 20, 0, 1, NULL}, {"segment_free", 0x200000, 6 << 20, 0, 2, NULL},
            {"segment_unmap", 0x100000, 8 << 20, 0, 3, NULL}, {"segment_map", 0x9000, 1 << 20, 0, 4, NULL}),
     "",
     {.reserved_peak = (9 + 8) << 20}},
};

TEST_EACH(snapshots, are_rows, snapshot_t, snapshots) {
    EXPECT_STREQ(rows_of(made_snapshot(row->segments, row->events)), row->rows);
#define EXPECT_NOTE(field, meaning) EXPECT_EQ(rows_notes()->field, row->notes.field);
    STRATA_TRACE_NOTE_MAP(EXPECT_NOTE)
    EXPECT_NOTE(reserved_peak, "")
}

TEST(snapshots, a_list_of_frames_is_the_call_stack) {
    const char *path = made_snapshot(NO_SEGMENTS, EVENTS({"alloc", 0x1000, 300, 0, 1, "/data/me/train.py"},
                                                         {"free_requested", 0x1000, 300, 0, 2, "/data/me/other.py"},
                                                         {"alloc", 0x2000, 300, 0, 3, NULL}));
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = NULL;
    ASSERT_OK(strata_trace_load(path, &trace));
    EXPECT_STREQ(trace->stacks[trace->events[0].stack], trace->tags[trace->events[0].tag]);
    EXPECT_EQ(trace->stacks[trace->events[0].stack][0], 't');
    EXPECT_EQ(trace->events[1].stack, 0);
    EXPECT_EQ(trace->events[2].stack, 0);
}

/* The numbers are more than a trace can hold. */
TEST(snapshots, what_no_trace_can_hold_is_refused) {
    expect_refused(made_snapshot(NO_SEGMENTS, EVENTS({"alloc", 0x1000, UINT64_C(1) << 49, 0, 1, NULL})), "size 562949953421312");
    expect_refused(made_snapshot(NO_SEGMENTS, EVENTS({"alloc", 0x1000, UINT64_C(1) << 63, 0, 1, NULL})),
                   "event 0 of the snapshot: it has no size");
}

/* Made by Python's own pickle; two devices, borrows, older blocks. */
TEST(snapshots, every_protocol_gives_the_same_rows) {
    strata_trace_t *first = NULL, *other = NULL;
    ASSERT_OK(strata_trace_load(STRATA_SOURCE_DIR "/tests/records/samples/protocol2.pickle.gz", &first));
    EXPECT_EQ(first->devices, 2);
    EXPECT_GT(first->count, 250);
    EXPECT_GT(first->notes.borrowed, 3);
    EXPECT_GT(first->notes.older, 3);
    EXPECT_GT(first->tag_count, 20);
    for (int protocol = 3; protocol <= 5; protocol++) {
        char path[] = STRATA_SOURCE_DIR "/tests/records/samples/protocol2.pickle.gz";
        *strrchr(path, '2') = (char)('0' + protocol);
        ASSERT_OK(strata_trace_load(path, &other));
        EXPECT_EQ(other->count, first->count);
        EXPECT_EQ(memcmp(other->events, first->events, first->count * sizeof *first->events), 0);
        strata_trace_delete(other);
    }
    strata_trace_delete(first);
}
