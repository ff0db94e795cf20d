/* Snapshots from other systems, from other options of PyTorch, and from scripts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/owned.h"
#include "tests/paths.h"
#include "tests/records/made.h"
#include "tests/records/rows.h"

#define SEED(name)    STRATA_SOURCE_DIR "/tests/fuzz/seeds/pytorch/" name
#define EVENTS(...)   ((const made_more_t[]){__VA_ARGS__, {.event = {.action = NULL}}})
#define ALLOC(...)    .event = {"alloc", __VA_ARGS__}
#define SEGMENTS(...) ((const made_segment_t[]){__VA_ARGS__, {.total = 0}})
#define FRAMES(...)   ((const made_frame_t[]){__VA_ARGS__, {.line = 0}})
#define SCOPES(...)   ((const made_annotation_t[]){__VA_ARGS__, {.name = NULL}})

/* ---- frames ---- */

TEST(habits, paths_of_windows_have_backslashes) {
    EXPECT_STREQ(rows_of(SEED("windows.pickle")),
                 "alloc 0 4194304 @0 t0 'train.py:31 step'\nalloc 1 8388608 @0 t1 'train.py:31 step'\nfree 0 @0 t2\n"
                 "alloc 2 2097152 @0 t3 'train.py:31 step'\n");
}

TEST(habits, the_innermost_frame_that_the_user_wrote_is_the_tag) {
    static const struct {
        const char *inner, *outer, *tag;
    } stacks[] = {
        {"/usr/lib/python3/dist-packages/torch/nn/functional.py", "/data/me/train.py", "train.py:2 outer"},
        {"D:\\env\\Lib\\site-packages\\torch\\nn\\functional.py", "D:\\work\\train.py", "train.py:2 outer"},
        {"\\\\server\\share/env/site-packages\\mine\\layer.py", "Z:train.py", "Z:train.py:2 outer"},
        {"/usr/lib/python3.12/contextlib.py", "train.py", "train.py:2 outer"},
        {"/tmp/torchinductor_me/ab/cab.py", "/x/train.py", "train.py:2 outer"},
        {"<eval_with_key>.3", "/x/train.py", "train.py:2 outer"},
        {"<frozen runpy>", "/x/libtorch.so", "<frozen runpy>:1 inner"},
        {"/x/libtorch.so", "<ipython-input-3-a>", "<ipython-input-3-a>:2 outer"},
        {"/x/libtorch.so", "/x/site-packages/y.py", "y.py:2 outer"},
        {"/x/libtorch.so", "/x/libc10.so", "libtorch.so:1 inner"},
        {"/x/one.py", "/x/two.py", "one.py:1 inner"},
        {"", "", "inner"},
        {"/x/", "\\", "inner"},
        {".py", "a.py", "a.py:2 outer"},
    };
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
        char wanted[128];
        const made_frame_t frames[] = {{stacks[i].inner, 1, "inner"}, {stacks[i].outer, 2, "outer"}, {.line = 0}};
        const char *path = made_file(&(made_t){.events = EVENTS({ALLOC(0x1000, 5, 0, 1, NULL), .frames = frames})});
        snprintf(wanted, sizeof wanted, "alloc 0 5 @0 t0 '%s'\n", stacks[i].tag);
        EXPECT_STREQ(rows_of(path), wanted);
    }
}

/* PyTorch writes a separate list for each event. */
TEST(habits, equal_stacks_are_one) {
    const char *path = made_file(&(made_t){
        .events = EVENTS({ALLOC(0x1000, 1, 0, 1, NULL), .frames = FRAMES({"a.py", 1, "f"}, {"b.py", 2, "g"})},
                         {ALLOC(0x2000, 1, 0, 2, NULL), .frames = FRAMES({"a.py", 1, "f"}, {"b.py", 3, "g"})},
                         {ALLOC(0x3000, 1, 0, 3, NULL), .frames = FRAMES({"a.py", 1, "f"}, {"b.py", 2, "g"})},
                         {ALLOC(0x4000, 1, 0, 4, NULL), .frames = FRAMES({"a.py", 1, "f"}, {"b.py", 2, "h"})},
                         {ALLOC(0x5000, 1, 0, 5, NULL), .frames = FRAMES({"/x/a.py", 1, "f"}, {"b.py", 2, "g"})},
                         {ALLOC(0x6000, 1, 0, 6, NULL), .frames = FRAMES({"a.py", 1, "f"})}, {ALLOC(0x7000, 1, 0, 7, NULL)})});
    static const char *const wanted[] = {
        "a.py:1 f;b.py:2 g", "a.py:1 f;b.py:3 g", "a.py:1 f;b.py:2 g", "a.py:1 f;b.py:2 h", "a.py:1 f;b.py:2 g", "a.py:1 f", ""};
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = NULL;
    ASSERT_OK(strata_trace_load(path, &trace));
    EXPECT_EQ(trace->stack_count, 5);
    for (size_t i = 0; i < 7; i++) EXPECT_STREQ(trace->stacks[trace->events[i].stack], wanted[i]);
    EXPECT_EQ(trace->events[0].stack, trace->events[2].stack);
    EXPECT_EQ(trace->events[0].stack, trace->events[4].stack);
    EXPECT_EQ(trace->notes.stacks_lost, 0);
}

/* 40 native frames of 98 characters take 4 KiB. Two user frames and one Python frame of PyTorch come after them. */
TEST(habits, a_stack_that_is_too_long_keeps_pythons_frames) {
    made_frame_t frames[44] = {{.line = 0}}, others[44];
    char name[101], longest[101], wanted[2048] = "";
    memset(name, 'n', 86);
    name[86] = '\0';
    memset(longest, 'm', 100);
    longest[100] = '\0';
    for (int i = 0; i < 40; i++) frames[i] = (made_frame_t){"/x/lib.so", 1000 + (uint64_t)i, name};
    frames[40] = (made_frame_t){"/p/torch/nn/linear.py", 5, "linear"};
    frames[41] = (made_frame_t){"/x/train.py", 31, "forward"};
    frames[42] = (made_frame_t){"/x/train.py", 9, longest};
    memcpy(others, frames, sizeof frames);
    others[39].line = 77;
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = NULL;
    ASSERT_OK(strata_trace_load(made_file(&(made_t){.events = EVENTS({ALLOC(0x1000, 1, 0, 1, NULL), .frames = frames},
                                                                     {ALLOC(0x2000, 1, 0, 2, NULL), .frames = others})}),
                                &trace));
    /* The three Python frames take 151 bytes with separators, so 19 native frames of 99 bytes fit. */
    for (int i = 0; i < 19; i++) sprintf(wanted + strlen(wanted), "lib.so:%d %s;", 1000 + i, name);
    strcat(wanted, "linear.py:5 linear;train.py:31 forward;train.py:9 ");
    strcat(wanted, longest);
    EXPECT_STREQ(trace->stacks[trace->events[0].stack], wanted);
    EXPECT_EQ(trace->stack_count, 2);
    EXPECT_EQ(trace->events[0].stack, trace->events[1].stack);
    EXPECT_STREQ(trace->tags[trace->events[0].tag], "train.py:31 forward");
}

/* A trace can hold 65,535 stacks and, including "", as many tags. */
TEST(habits, rows_without_room_for_their_stacks_are_counted) {
    enum { ROWS = 65538 };
    made_more_t *events = calloc(ROWS + 1, sizeof *events);
    made_frame_t *frames = calloc(2 * ROWS, sizeof *frames);
    ASSERT_TRUE(events && frames);
    for (uint32_t i = 0; i < ROWS; i++) {
        frames[2 * i] = (made_frame_t){"a.py", i + 1, "f"};
        events[i] = (made_more_t){.event = {"alloc", 4096 * (i + 1), 1, 0, 1, NULL}, .frames = &frames[2 * i]};
    }
    const char *path = made_file(&(made_t){.events = events});
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = NULL;
    free(events);
    free(frames);
    ASSERT_OK(strata_trace_load(path, &trace));
    EXPECT_EQ(trace->stack_count, 65536);
    EXPECT_EQ(trace->notes.stacks_lost, 3);
    EXPECT_EQ(trace->notes.tags_lost, 4);
    EXPECT_EQ(trace->events[65534].stack, 65535);
    EXPECT_EQ(trace->events[65535].stack, 0);
}

TEST(habits, user_metadata_is_the_tag) {
    char longest[300];
    memset(longest, 'm', 256);
    longest[256] = '\0';
    const char *path = made_file(&(made_t){
        .events = EVENTS({ALLOC(0x1000, 1, 0, 1, "a.py"), .metadata = "epoch 3"}, {ALLOC(0x2000, 2, 0, 2, "a.py"), .metadata = ""},
                         {.event = {"free_requested", 0x1000, 1, 0, 3, "a.py"}, .metadata = "end"},
                         {.event = {"oom", 7, 3, 0, 4, NULL}, .metadata = "too,much\n"},
                         {.event = {"free_requested", 0x9000, 4, 0, 5, "a.py"}, .metadata = "end"})});
    EXPECT_STREQ(rows_of(path), "alloc 3 4 @0 t0\nalloc 0 1 @0 t0 'epoch 3'\nalloc 1 2 @0 t1 'a.py:7 step'\nfree 0 @0 t2\n"
                                "alloc 2 3 @0 t3 'too,much '\nfree 2 @0 t3\nfree 3 @0 t4\n");
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = NULL;
    ASSERT_OK(
        strata_trace_load(made_file(&(made_t){.events = EVENTS({ALLOC(0x1000, 1, 0, 1, "a.py"), .metadata = longest})}), &trace));
    longest[255] = '\0';
    EXPECT_STREQ(trace->tags[trace->events[0].tag], longest);
    EXPECT_STREQ(trace->stacks[trace->events[0].stack], "a.py:7 step");
}

/* ---- numbers ---- */

/* Python writes them as unsigned numbers, PyTorch as negative ones. */
TEST(habits, addresses_and_streams_may_have_all_64_bits) {
    const char *rows = "alloc 0 4194304 @0 t0\nalloc 1 8388608 @0 t1\nfree 0 @0 t2\nalloc 2 2097152 @0 t3\n";
    EXPECT_STREQ(rows_of(SEED("high_addresses.pickle")), rows);
    EXPECT_EQ(rows_notes()->older, 0);
    EXPECT_EQ(rows_notes()->reserved_peak, 20971520);
    const uint64_t high = UINT64_MAX - 4095;
    const char *path = made_file(&(made_t){
        .segments = SEGMENTS({0, high, 4096, 0, {{512, 9, "active_allocated"}, {3584, 0, "inactive"}}}),
        .events = EVENTS({ALLOC(high, 9, UINT64_MAX, 1, NULL)}, {ALLOC(high + 512, 8, UINT64_C(1) << 60, 2, NULL)},
                         {ALLOC(high + 1024, 7, (UINT64_C(1) << 60) - 3, 3, NULL)}, {ALLOC(high + 1536, 6, UINT64_MAX, 4, NULL)},
                         {.event = {"free_requested", high + 512, 8, UINT64_C(1) << 60, 5, NULL}})});
    EXPECT_STREQ(rows_of(path),
                 "alloc 0 9 @1152921504606846975 t0\nalloc 1 8 @1152921504606846974 t1\n"
                 "alloc 2 7 @1152921504606846973 t2\nalloc 3 6 @1152921504606846975 t3\nfree 1 @1152921504606846974 t4\n");
}

/* make_scripted.py */
TEST(habits, scripts_may_convert_to_floats_and_tuples) {
    EXPECT_STREQ(rows_of(SEED("scripted.pickle")),
                 "alloc 0 300 @1152921504606846975 t0\nalloc 1 40 @1152921504606846974 t1\nfree 0 @1152921504606846975 t2\n"
                 "alloc 2 50 @1152921504606846975 t4 'go'\nalloc 3 60 @0 t5\n");
    EXPECT_EQ(rows_notes()->no_segments, 1);
}

/* ---- devices ---- */

TEST(habits, devices_without_events_are_not_counted) {
    EXPECT_STREQ(rows_of(SEED("devices.pickle")),
                 "alloc 0 4194304 @0 t0\nalloc 1 8388608 @0 t1\nfree 0 @0 t2\nalloc 2 2097152 @0 t3\n");
    EXPECT_EQ(rows_notes()->renumbered, 0);
    const char *path = made_file(
        &(made_t){.segments = SEGMENTS({63, 0x1000, 4096, 0, {{512, 9, "active_allocated"}, {3584, 0, "inactive"}}},
                                       {40, 0x1000, 4096, 0, {{512, 5, "active_allocated"}, {3584, 0, "inactive"}}}),
                  .events = EVENTS({ALLOC(0x1000, 9, 0, 1, NULL), .device = 63}, {ALLOC(0x2000, 8, 0, 2, NULL), .device = 15},
                                   {ALLOC(0x3000, 7, 0, 3, NULL), .device = 14}, {ALLOC(0x2000, 6, 0, 4, NULL), .device = 63},
                                   {.event = {"snapshot", 0, 0, 0, 5, NULL}, .device = 3}),
                  .devices = 64});
    EXPECT_STREQ(rows_of(path), "alloc 4 5 @0 t0 gpu:12\nalloc 0 9 @0 t0 gpu:13\nalloc 1 8 @0 t1 gpu:15\nalloc 2 7 @0 t2 gpu:14\n"
                                "alloc 3 6 @0 t3 gpu:13\n");
    EXPECT_EQ(rows_notes()->renumbered, 2);
}

TEST(habits, sixteen_devices_are_read_and_seventeen_refused) {
    made_more_t events[19] = {{.event = {.action = NULL}}};
    for (uint32_t i = 0; i < 17; i++) events[i] = (made_more_t){ALLOC(0x1000, 1, 0, 1 + i, NULL), .device = i + 1};
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = NULL;
    expect_refused(made_file(&(made_t){.events = events, .devices = 20}),
                   "device 17 is above the maximum of 16 devices in a trace; record fewer of them");
    events[16].event.action = "snapshot";
    ASSERT_OK(strata_trace_load(made_file(&(made_t){.events = events, .devices = 20}), &trace));
    EXPECT_EQ(trace->count, 16);
    EXPECT_EQ(trace->stream_count, 16);
    events[16].event.action = NULL;
    expect_refused(made_file(&(made_t){
                       .segments = SEGMENTS({0, 0x1000, 512, 0, {{512, 9, "active_allocated"}}}), .events = events, .devices = 17}),
                   "device 0 is above the maximum of 16 devices");
}

/* ---- missing events ---- */

TEST(habits, reserved_bytes_are_unknown_without_segment_events) {
    EXPECT_STREQ(rows_of(SEED("no_segment_events.pickle")), "alloc 0 536870912 @0 t0\nfree 0 @0 t1\nalloc 1 2097152 @0 t2\n");
    EXPECT_EQ(rows_notes()->reserved_peak, 0);
    EXPECT_EQ(rows_notes()->no_segments, 1);
    EXPECT_EQ(rows_notes()->no_history, 0);
}

/* skip_actions may omit some of them. The reserved bytes would then be smaller than the live bytes, which is impossible. */
TEST(habits, reserved_bytes_below_live_bytes_are_not_reported) {
    for (int less = 0; less < 2; less++) {
        const char *path = made_file(
            &(made_t){.segments = SEGMENTS({0, 0x1000, 4096, 0, {{4096, 0, "inactive"}}}),
                      .events = EVENTS({.event = {"segment_alloc", 0x1000, 4096, 0, 1, NULL}}, {ALLOC(0x1000, 4000, 0, 2, NULL)},
                                       {ALLOC(0x8000, 96 + (uint64_t)less, 0, 3, NULL)},
                                       {.event = {"free_requested", 0x1000, 4000, 0, 4, NULL}}, {ALLOC(0x1000, 4000, 0, 5, NULL)},
                                       {.event = {"oom", 1, 1000000, 0, 6, NULL}})});
        (void)rows_of(path);
        EXPECT_EQ(rows_notes()->reserved_peak, less ? 0 : 4096);
        EXPECT_EQ(rows_notes()->no_segments, less);
    }
}

TEST(habits, a_snapshot_without_history_says_so) {
    const made_segment_t *segments = SEGMENTS({0, 0x1000, 4096, 0, {{512, 9, "active_allocated"}, {3584, 0, "inactive"}}});
    const made_more_t *none = EVENTS({.event = {"snapshot", 0, 0, 0, 5, NULL}});
    const made_t files[] = {
        {.segments = segments}, {.segments = segments, .events = none}, {.segments = segments, .events = none + 1}};
    for (size_t i = 0; i < 3; i++) {
        EXPECT_STREQ(rows_of(made_file(&files[i])), "alloc 0 9 @0 t0\n");
        EXPECT_EQ(rows_notes()->no_history, 1);
        EXPECT_EQ(rows_notes()->no_segments, 0);
        EXPECT_EQ(rows_notes()->reserved_peak, 0);
    }
}

/* ---- external annotations ---- */

TEST(habits, the_end_of_an_outermost_scope_is_a_step) {
    const char *path = made_file(&(made_t){
        .events = EVENTS({ALLOC(0x1000, 1, 0, 10, NULL)}, {ALLOC(0x2000, 2, 0, 20, NULL)}, {ALLOC(0x3000, 3, 0, 30, NULL)}),
        .annotations = SCOPES({"before", "START", 1}, {"before", "END", 9}, {"step 0", "END", 12}, {"step 1", "START", 15},
                              {"forward", "START", 16}, {"forward", "END", 18}, {"step 1", "END", 20}, {"step 2", "START", 31},
                              {"step 2", "END", 35}, {"step 3", "START", 36}, {"step 3", "PAUSE", 37})});
    EXPECT_STREQ(rows_of(path), "alloc 0 1 @0 t0\nstep @0 t2 'step 0'\nalloc 1 2 @0 t10\nstep @0 t10 'step 1'\nalloc 2 3 @0 t20\n"
                                "step @0 t25 'step 2'\n");
    EXPECT_EQ(rows_notes()->other_actions, 1);
}

/* The scopes of two threads overlap, and the file lists them by thread. */
TEST(habits, overlapping_scopes_are_one_step) {
    const char *path = made_file(&(made_t){.events = EVENTS({ALLOC(0x1000, 1, 0, 10, NULL)}),
                                           .annotations = SCOPES({"a", "START", 11}, {"a", "END", 14}, {"a", "START", 20},
                                                                 {"a", "END", 20}, {"b", "START", 12}, {"b", "END", 16})});
    EXPECT_STREQ(rows_of(path), "alloc 0 1 @0 t0\nstep @0 t6 'b'\nstep @0 t10 'a'\n");
}

TEST(habits, scopes_are_left_out_if_events_have_no_times) {
    const char *path = made_file(
        &(made_t){.events = EVENTS({ALLOC(0x1000, 1, 0, 0, NULL)}), .annotations = SCOPES({"a", "START", 11}, {"a", "END", 14})});
    EXPECT_STREQ(rows_of(path), "alloc 0 1 @0 t0\n");
    EXPECT_EQ(rows_notes()->other_actions, 2);
}
