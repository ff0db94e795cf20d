/* What others have recorded goes in, and what a strategy does on it goes out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/trace/formats/pickle.h"
#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "tests/paths.h"
#include "tests/tools/support/ran.h"
#include "trace/text/json_scan.h"
#include "trace/trace.h"

#define SNAPSHOT STRATA_SOURCE_DIR "/tests/records/samples/protocol4.pickle.gz"
#define BATCH    "--device sim:h100 --repeat 1"

/* The path of a file that commands write by its bare name. */
static const char *written(const char *name) { return temporary(name); }

TEST(convert, makes_a_trace_of_a_snapshot) {
    ran_t ran = run_well("convert " SNAPSHOT " made.csv.gz");
    EXPECT_STREQ(ran.out, "");
    EXPECT_CONTAINS(ran.errors, "(pytorch): 14 allocations are older than the record; they are at its beginning\n");
    EXPECT_CONTAINS(ran.errors, "so stream 3 represents them\n");
    EXPECT_CONTAINS(ran.errors, "(pytorch): 287 rows\n");
    strata_trace_t *made = NULL, *read = NULL;
    ASSERT_OK(strata_trace_load(written("made.csv.gz"), &made));
    ASSERT_OK(strata_trace_load(SNAPSHOT, &read));
    EXPECT_STREQ(made->format, "trace");
    EXPECT_STREQ(read->format, "pytorch");
    EXPECT_EQ(made->count, read->count);
    EXPECT_EQ(memcmp(made->events, read->events, made->count * sizeof *made->events), 0);
    EXPECT_EQ(made->tag_count, read->tag_count);
    strata_trace_delete(made);
    strata_trace_delete(read);
}

TEST(convert, writes_where_it_is_told_and_destroys_nothing) {
    ran_t ran = run_well("convert --no-tags " SNAPSHOT " -");
    EXPECT_CONTAINS(ran.out, "# strata-trace 1\nop,id,size,stream,time_us,device\n");
    write_text("precious.csv", "op,id,size,stream,time_us\n");
    expect_wrong_use("convert " SNAPSHOT " precious.csv", "precious.csv: the file exists and is not of this command");
    expect_wrong_use("convert " SNAPSHOT, "needs two files, the record and the trace to write: IN OUT");
    write_text("broken.csv", "op,id,size,stream,time_us\nfree,1,0,0,0\n");
    expect_wrong_use("convert broken.csv broken.out", "broken.csv:2:6: free of id 1");
    EXPECT_NE(access(written("broken.out"), F_OK), 0);
    ran = run_command("convert " SNAPSHOT " /nonexistent/made.csv");
    EXPECT_EQ(ran.exit_status, 1);
}

/* The first minute: nothing is said but the file. */
TEST(first_minute, a_record_alone_is_compared) {
    ran_t ran = run_well("COLUMNS=100 -- compare " BATCH " " SNAPSHOT);
    EXPECT_CONTAINS(ran.out, "label");
    EXPECT_CONTAINS(ran.out, " pytorch ");
    EXPECT_CONTAINS(ran.out, " pytorch-expandable ");
    EXPECT_CONTAINS(ran.out, " strata\n");
    EXPECT_CONTAINS(
        ran.out, "over the rows: the bytes that the program requested,\nand those that each strategy reserved. A full block is ");
    const char *last = strstr(ran.out, "\nprotocol4.pickle.gz: ");
    ASSERT_NE(last, NULL);
    EXPECT_CONTAINS(last, ": with pytorch the program ends first, ");
    EXPECT_CONTAINS(last, "During the recording, the allocator reserved at most ");
    EXPECT_CONTAINS(last, "\nstrata stats --device sim:h100 --strategy ");
    EXPECT_EQ(strcmp(last + strlen(last) - 10, "pickle.gz\n"), 0);
}

TEST(first_minute, the_kind_of_record_chooses_the_presets) {
    write_text("log.csv", "Thread,Time,Action,Pointer,Size,Stream\n1,00:00:00.000001,allocate,0x10,100,0x0\n");
    ran_t ran = run_well("compare " BATCH " log.csv");
    EXPECT_CONTAINS(ran.out, " cuda_malloc_async ");
    EXPECT_CONTAINS(ran.out, " strata\n");
}

/* Who names strategies gets the table that was always there, and one strategy has nothing to be held against. */
TEST(first_minute, one_strategy_is_not_judged) {
    ran_t ran = run_well("replay " BATCH " --strategy strata " SNAPSHOT);
    EXPECT_TRUE(strstr(ran.out, "serves every request") == NULL);
    EXPECT_TRUE(strstr(ran.out, "over the rows") == NULL);
    ran = run_well("replay " BATCH " --curve --strategy strata " SNAPSHOT);
    EXPECT_CONTAINS(ran.out, "over the rows");
}

/* 10 MiB in the first 9 rows, 40 MiB in the others: the picture says so, and marks the first row of the peak. */
TEST(first_minute, lines_show_what_is_held_and_when) {
    char text[2048] = "op,id,size,stream,time_us\nalloc,1,10485760,0,0\n";
    for (int i = 0; i < 4; i++) sprintf(text + strlen(text), "alloc,%d,512,0,%d\nfree,%d,0,0,%d\n", 10 + i, i, 10 + i, i);
    strcat(text, "alloc,2,31457280,0,9\n");
    for (int i = 0; i < 5; i++) sprintf(text + strlen(text), "alloc,%d,512,0,%d\nfree,%d,0,0,%d\n", 20 + i, 9 + i, 20 + i, 9 + i);
    write_text("steps.csv", text);
    ran_t ran = run_well("COLUMNS=33 -- replay " BATCH " --curve --strategy system steps.csv");
    EXPECT_CONTAINS(ran.out, "\n  requested  :::::::::###########\n                       ^\n");
    EXPECT_CONTAINS(ran.out, "\n  system     :::::::::###########\n");
    EXPECT_CONTAINS(ran.out, "40.00 MiB at row 11\n");
}

TEST(first_minute, every_command_of_traces_reads_a_record) {
    run_well("stats --device sim:h100 --strategy strata " SNAPSHOT);
    run_well("replay " BATCH " --strategy strata " SNAPSHOT);
    run_well("plan --time 10ms --step all " SNAPSHOT);
}

/* ---- export ---- */

/* The same ones, the tag before them. */
static void expect_stacks(const strata_trace_t *out, const strata_trace_t *in) {
    for (size_t i = 0; i < in->count && i < out->count; i++) {
        const char *one = in->stacks[in->events[i].stack], *other = out->stacks[out->events[i].stack];
        size_t length = strlen(one), longer = strlen(other);
        EXPECT_TRUE(longer >= length && strcmp(other + longer - length, one) == 0);
    }
}

TEST(exported, a_snapshot_reads_as_the_trace_that_it_came_from) {
    for (int i = 0; i < 2; i++) {
        run_well("export --device sim:h100 --strategy %s " SNAPSHOT " out.pickle.gz", i ? "strata" : "system");
        strata_trace_t *out = NULL, *in = NULL;
        ASSERT_OK(strata_trace_load(written("out.pickle.gz"), &out));
        ASSERT_OK(strata_trace_load(SNAPSHOT, &in));
        EXPECT_STREQ(out->format, "pytorch");
        EXPECT_EQ(out->count, in->count);
        EXPECT_EQ(out->peak_requested, in->peak_requested);
        EXPECT_EQ(out->notes.borrowed, in->notes.borrowed);
        EXPECT_EQ(out->notes.older, 0);
        EXPECT_EQ(out->tag_count, in->tag_count);
        expect_stacks(out, in);
        strata_trace_delete(out);
        strata_trace_delete(in);
    }
}

/* Sums the segment events one by one and returns the peak. */
static uint64_t held_event_by_event(const char *path) {
    size_t count = 0;
    char *bytes = read_bytes(path, &count);
    strata_pickle_t *pickle = NULL;
    uint64_t held = 0, most = 0;
    if (!bytes || strata_pickle_read(path, bytes, count, &pickle) != STRATA_OK) FAIL_TEST("%s", path);
    strata_pickle_value_t devices = {.kind = STRATA_PICKLE_ABSENT};
    if (pickle) devices = strata_pickle_member(strata_pickle_root(pickle), "device_traces");
    const strata_pickle_value_t *events = strata_pickle_count(&devices) ? &devices.items->all[0] : &devices;
    for (size_t i = 0; i < strata_pickle_count(events); i++) {
        const strata_pickle_value_t *event = &events->items->all[i];
        strata_pickle_value_t action = strata_pickle_member(event, "action"), size = strata_pickle_member(event, "size");
        if (strata_pickle_is(&action, "segment_alloc") || strata_pickle_is(&action, "segment_map")) held += (uint64_t)size.integer;
        if (strata_pickle_is(&action, "segment_free") || strata_pickle_is(&action, "segment_unmap")) held -= (uint64_t)size.integer;
        if (held > most) most = held;
    }
    strata_pickle_delete(pickle);
    free(bytes);
    return most;
}

/* At one moment 60 of 100 MiB are released and a block of 70 MiB is added, so 130 MiB were never reserved. */
TEST(exported, shrinking_segments_come_first) {
    static const char *const strategies[] = {"pytorch", "system", "paddle", "strata"};
    write_text("swap.csv", "op,id,size,stream,time_us\nalloc,1,20971520,0,0\nalloc,2,41943040,0,0\nfree,1,0,0,5\nfree,2,0,0,5\n"
                           "sync,,0,0,9\nalloc,3,73400320,0,10\nfree,3,0,0,20\nsync,,0,0,30\nalloc,4,20971520,0,40\n"
                           "alloc,5,41943040,0,40\n");
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
        char want[64];
        run_well("export --device sim:h100 --capacity 100MiB --strategy %s swap.csv swap.pickle", strategies[i]);
        ran_t ran = run_well("replay " BATCH " --capacity 100MiB --strategy %s --json - swap.csv", strategies[i]);
        snprintf(want, sizeof want, "\"peak_reserved_bytes\": %llu",
                 (unsigned long long)held_event_by_event(written("swap.pickle")));
        EXPECT_CONTAINS(ran.out, want);
    }
}

/* A tag that is not a frame is the user's own label. */
TEST(exported, user_metadata_survives_an_export) {
    write_text("tags.csv", "op,id,size,stream,time_us,tag,stack\nalloc,1,512,0,0,my cache,1:a.py:1 f;b.py:2 g\n"
                           "alloc,2,512,0,1,a.py:1 f,1\nalloc,3,512,0,2,only,\nalloc,4,512,0,3,,1\n");
    static const char *const tags[] = {"my cache", "a.py:1 f", "only", "a.py:1 f"};
    strata_trace_t *out = NULL;
    run_well("export --device sim:h100 --strategy system tags.csv tags.pickle");
    ASSERT_OK(strata_trace_load(written("tags.pickle"), &out));
    EXPECT_EQ(out->count, 4);
    for (size_t i = 0; i < 4 && i < out->count; i++) EXPECT_STREQ(out->tags[out->events[i].tag], tags[i]);
    strata_trace_delete(out);
}

/* Python's own code draws it. */
TEST(exported, the_memory_viz_of_pytorch_opens_a_snapshot) {
    static const char *const views[] = {"stats", "trace", "trace_plot", "segment_plot", "trace_plot --segments"};
    const char *viz = getenv("STRATA_MEMORY_VIZ");
    char command[1200], line[256] = "";
    if (!viz) TEST_SKIP("STRATA_MEMORY_VIZ does not name torch/cuda/_memory_viz.py (it is in PyTorch's wheel)");
    run_well("export --device sim:h100 --strategy strata " SNAPSHOT " viz.pickle");
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        bool plots = strstr(views[i], "plot") != NULL;
        snprintf(command, sizeof command, "python3 '%s' %s '%s' %s 2>&1", viz, views[i], written("viz.pickle"),
                 plots ? "-o /dev/null" : "");
        FILE *ran = popen(command, "r");
        ASSERT_NE(ran, NULL);
        while (fgets(line, sizeof line, ran)) {}
        if (pclose(ran) != 0) FAIL_TEST("%s: %s", views[i], line);
    }
}

static const char *count_member(void *context, strata_json_slice_t name, strata_json_slice_t value) {
    (void)name;
    (*(size_t *)context) += value.at[0] == '{';
    return NULL;
}

static const char *find_events(void *context, strata_json_slice_t name, strata_json_slice_t value) {
    strata_json_scan_t scan = {.begin = value.at};
    if (strata_json_is(name, "traceEvents") && !strata_json_value(&scan, value.at, count_member, context)) return scan.error;
    return NULL;
}

TEST(exported, counters_are_json_with_a_track_for_each_layer) {
    run_well("export --device sim:h100 --strategy strata " SNAPSHOT " out.json");
    size_t count = 0, events = 0;
    char *text = read_bytes(written("out.json"), &count);
    ASSERT_NE(text, NULL);
    text = realloc(text, count + 1);
    ASSERT_NE(text, NULL);
    text[count] = '\0';
    strata_json_scan_t scan = {.begin = text};
    const char *end = strata_json_value(&scan, text, find_events, &events);
    EXPECT_NE(end, NULL);
    EXPECT_GT(events, 200);
    EXPECT_CONTAINS(text, "{\"ph\":\"C\",\"pid\":1,\"name\":\"reserved\",\"ts\":");
    EXPECT_CONTAINS(text, "\"name\":\"gpu:1 3 auto_growth_vmm idle_bytes\"");
    free(text);
    ran_t ran = run_command("export --device sim:h100 --capacity 8MiB --strategy system " SNAPSHOT " full.json");
    EXPECT_EQ(ran.exit_status, 0);
    text = read_bytes(written("full.json"), &count);
    ASSERT_NE(text, NULL);
    EXPECT_NE(memmem(text, count, "\"name\":\"out of memory\"", 22), NULL);
    free(text);
}

TEST(exported, a_table_has_a_line_for_each_row_of_a_short_trace) {
    write_text("short.csv", "op,id,size,stream,time_us\nalloc,1,4096,0,0\nalloc,2,100,0,5\nfree,1,0,0,9\n");
    run_well("export --device sim:h100 --strategy system short.csv short.out.csv");
    size_t count = 0;
    char *text = read_bytes(written("short.out.csv"), &count);
    ASSERT_NE(text, NULL);
    EXPECT_EQ(strncmp(text, "row,time_us,requested_bytes,allocated_bytes,reserved_bytes,deferred_bytes,device_calls_us\n1,", 92),
              0);
    EXPECT_NE(memmem(text, count, ",4196,", 6), NULL);
    EXPECT_NE(memmem(text, count, "\n3,", 3), NULL);
    free(text);
}

TEST(exported, wrong_use_is_refused) {
    expect_wrong_use("export --device sim --strategy strata " SNAPSHOT, "needs a trace and the file to write: TRACE OUT");
    expect_wrong_use("export --device sim --strategy strata " SNAPSHOT " out.txt", "out.txt: unknown file type");
    expect_wrong_use("export --device sim " SNAPSHOT " out.json", "--strategy");
    write_text("mine.json", "{\"mine\": true}");
    expect_wrong_use("export --device sim --strategy strata " SNAPSHOT " mine.json", "the file exists and is not of this command");
}
