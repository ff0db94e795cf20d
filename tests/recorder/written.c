/* What the layer `trace` writes of a running program. */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/host/host_memory.h"
#include "tests/facade/support/program.h"
#include "tests/recorder/recording.h"

#define STACK                                                                                                                      \
    "retry: {timeout: 2ms}\n  - trace: {path: \"%s\", events: %u, when_full: %s}\n  - stream_safe\n  - auto_growth\n  - system\n"

static void begin(recording_t *r, const char *name, uint32_t events, const char *when_full) {
    recording_open(r, name, STACK, events, when_full);
}

/* What two stacks do at the same nanosecond has no order in a file: time passes in between. */
TEST(recorder, every_event_stands_in_the_file) {
    recording_t r;
    begin(&r, "events.csv", 64, "drop");
    strata_stream_t owner = rig_stream(&r.rig), other = rig_stream(&r.rig);
    strata_allocate_options_t wanted = {.struct_size = sizeof wanted, .size = 1000, .tag = "layer \"7\",\nhead"};
    strata_block_t a, b = rig_allocate(&r.rig, NULL, 500), c;
    rig_advance(&r.rig, 10);
    ASSERT_OK(strata_allocate_with(r.rig.s, r.rig.gpu, owner, &wanted, &a));
    EXPECT_OK(strata_record_stream(r.rig.s, a.ref, other));
    rig_advance(&r.rig, 10);
    EXPECT_OK(strata_record_stream(r.rig.s, b.ref, owner));
    rig_advance(&r.rig, 3000 * 1000);
    EXPECT_OK(strata_erase_stream(r.rig.s, b.ref, owner));
    rig_advance(&r.rig, 10);
    EXPECT_OK(strata_free(r.rig.s, a.ref));
    rig_advance(&r.rig, 10);
    EXPECT_OK(strata_allocate(r.rig.s, strata_place(STRATA_PLACE_PINNED, 0), owner, 64, &c));
    rig_advance(&r.rig, 10);
    EXPECT_OK(strata_free(r.rig.s, b.ref));
    rig_advance(&r.rig, 10);
    EXPECT_OK(strata_free(r.rig.s, c.ref));
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = recording_end(&r);
    ASSERT_TRUE(trace);
    static const strata_trace_op_t ops[] = {STRATA_TRACE_alloc,    STRATA_TRACE_alloc, STRATA_TRACE_borrow, STRATA_TRACE_borrow,
                                            STRATA_TRACE_unborrow, STRATA_TRACE_free,  STRATA_TRACE_alloc,  STRATA_TRACE_borrow,
                                            STRATA_TRACE_free,     STRATA_TRACE_free};
    ASSERT_EQ(trace->count, 10);
    for (size_t i = 0; i < 10; i++) EXPECT_EQ(trace->events[i].op, ops[i]);
    const strata_trace_event_t *e = trace->events;
    EXPECT_EQ(e[0].value, 500);
    EXPECT_EQ(e[1].value, 1000);
    EXPECT_EQ(trace->streams[e[0].stream].number, 0);
    EXPECT_NE(e[1].stream, e[2].stream);
    EXPECT_EQ(e[3].stream, e[1].stream);
    EXPECT_EQ(e[5].stream, e[1].stream);
    EXPECT_STREQ(trace->tags[e[1].tag], "layer \"7\", head");
    EXPECT_EQ(e[6].place, STRATA_PLACE_PINNED);
    EXPECT_EQ(e[7].stream, e[1].stream);
    EXPECT_GE(e[4].time_us - e[3].time_us, 3000);
}

/* Two stacks and the pinned place tell each step, which is one row; a stack that comes later joins in. */
TEST(recorder, a_step_is_one_row_however_many_stacks_hear_it) {
    recording_t r;
    begin(&r, "steps.csv", 64, "drop");
    strata_stream_t other = rig_stream(&r.rig);
    strata_block_t a = rig_allocate(&r.rig, NULL, 500), b;
    rig_advance(&r.rig, 10);
    EXPECT_OK(strata_step(r.rig.s));
    rig_advance(&r.rig, 10);
    b = rig_allocate(&r.rig, other, 600);
    rig_advance(&r.rig, 10);
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(strata_step(r.rig.s));
        rig_advance(&r.rig, 5000);
    }
    EXPECT_OK(strata_free(r.rig.s, a.ref));
    EXPECT_OK(strata_free(r.rig.s, b.ref));
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = recording_end(&r);
    ASSERT_TRUE(trace);
    static const strata_trace_op_t ops[] = {STRATA_TRACE_alloc, STRATA_TRACE_step, STRATA_TRACE_alloc, STRATA_TRACE_step,
                                            STRATA_TRACE_step,  STRATA_TRACE_step, STRATA_TRACE_free,  STRATA_TRACE_free};
    ASSERT_EQ(trace->count, 8);
    for (size_t i = 0; i < 8; i++) EXPECT_EQ(trace->events[i].op, ops[i]);
    EXPECT_EQ(trace->events[4].time_us - trace->events[3].time_us, 5);
}

/* A pool whose name is a number is found again by a strategy that has it; any other has the number that the facade gave it. */
TEST(recorder, pools_are_told) {
    recording_t r;
    recording_open(&r, "pools.csv",
                   "trace: {path: \"%1$s\", events: %2$u, when_full: %3$s}\n  - system\npools:\n"
                   "  \"7\": {stack: [trace: {path: \"%1$s\"}, system]}\n  weights: {stack: [trace: {path: \"%1$s\"}, system]}\n",
                   64, "drop");
    uint64_t seven = 0, weights = 0;
    ASSERT_OK(strata_pool(r.rig.s, "7", &seven));
    ASSERT_OK(strata_pool(r.rig.s, "weights", &weights));
    const uint64_t pools[] = {0, seven, weights};
    for (int i = 0; i < 3; i++) {
        strata_allocate_options_t options = {.struct_size = sizeof options, .size = 1000, .pool = pools[i]};
        strata_block_t block;
        ASSERT_OK(strata_allocate_with(r.rig.s, r.rig.gpu, NULL, &options, &block));
        rig_advance(&r.rig, 10);
        EXPECT_OK(strata_free(r.rig.s, block.ref));
        rig_advance(&r.rig, 10);
    }
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = recording_end(&r);
    ASSERT_TRUE(trace);
    ASSERT_EQ(trace->count, 6);
    EXPECT_EQ(trace->events[0].pool, STRATA_TRACE_NO_POOL);
    ASSERT_EQ(trace->pool_count, 2);
    EXPECT_EQ(trace->pools[trace->events[2].pool], 7);
    EXPECT_EQ(trace->pools[trace->events[4].pool], weights);
}

TEST(recorder, alignments_above_the_places) {
    recording_t r;
    recording_open(&r, "aligned.csv",
                   "trace: {path: \"%s\", events: %u, when_full: %s}\n  - aligned: {alignment: 256}\n  - system\n", 64, "drop");
    static const size_t asked[] = {0, 256, 512, 1 << 20};
    for (int i = 0; i < 4; i++) {
        strata_allocate_options_t options = {.struct_size = sizeof options, .size = 1000, .alignment = asked[i]};
        strata_block_t block;
        ASSERT_OK(strata_allocate_with(r.rig.s, r.rig.gpu, NULL, &options, &block));
        EXPECT_OK(strata_free(r.rig.s, block.ref));
    }
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = recording_end(&r);
    ASSERT_TRUE(trace);
    static const uint8_t told[] = {0, 0, 9, 20};
    for (int i = 0; i < 4; i++) EXPECT_EQ(trace->events[2 * i].align, told[i]);
}

/* Where no layer knows borrows the trace still tells them, and the core still waits. */
TEST(recorder, borrows_that_no_layer_knows) {
    recording_t r;
    recording_open(&r, "unknown.csv", "trace: {path: \"%s\", events: %u, when_full: %s}\n  - system\n", 64, "drop");
    strata_stream_t other = rig_stream(&r.rig);
    strata_block_t a = rig_allocate(&r.rig, NULL, 1000);
    EXPECT_OK(strata_erase_stream(r.rig.s, a.ref, other));
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(strata_record_stream(r.rig.s, a.ref, other));
        if (i == 0) EXPECT_OK(strata_erase_stream(r.rig.s, a.ref, other));
    }
    EXPECT_OK(strata_free(r.rig.s, a.ref));
    EXPECT_EQ(rig_figures(&r.rig).host_waits, 1);
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = recording_end(&r);
    ASSERT_TRUE(trace);
    EXPECT_EQ(recording_count(trace, STRATA_TRACE_borrow), 2);
    EXPECT_EQ(recording_count(trace, STRATA_TRACE_unborrow), 1);
}

static strata_trace_t *record_program(const char *name, uint32_t events, const char *when_full, strata_statistics_t *figures) {
    recording_t r;
    program_t program;
    begin(&r, name, events, when_full);
    program_begin(&program, &r.rig);
    program_run(&program, PROGRAM_LENGTH);
    program_finish(&program);
    *figures = rig_figures(&r.rig);
    return recording_end(&r);
}

/* A ring of 256 events, written whenever it is half full, loses nothing; compressed too. */
TEST(recorder, a_small_ring_that_is_written_loses_nothing) {
    strata_statistics_t figures;
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = record_program("small.csv.gz", 1024, "write", &figures);
    ASSERT_TRUE(trace);
    EXPECT_EQ(recording_count(trace, STRATA_TRACE_alloc), figures.allocations);
    EXPECT_EQ(recording_count(trace, STRATA_TRACE_free), figures.frees);
    EXPECT_GT(figures.allocations, 400);
}

/* A use that is taken back without having been told, or was told when the ring had no room, does not spoil the trace. */
TEST(recorder, an_end_of_a_use_that_was_not_told_is_left_out) {
    enum { EVENTS = 64 };
    recording_t r;
    begin(&r, "ends.csv", EVENTS, "drop");
    strata_stream_t other = rig_stream(&r.rig), third = rig_stream(&r.rig);
    strata_block_t a = rig_allocate(&r.rig, NULL, 1000), b = rig_allocate(&r.rig, NULL, 1000);
    EXPECT_OK(strata_record_stream(r.rig.s, a.ref, other));
    EXPECT_OK(strata_erase_stream(r.rig.s, a.ref, third));
    EXPECT_OK(strata_erase_stream(r.rig.s, b.ref, other));
    EXPECT_OK(strata_erase_stream(r.rig.s, a.ref, other));
    EXPECT_OK(strata_erase_stream(r.rig.s, a.ref, other));
    EXPECT_OK(strata_record_stream(r.rig.s, b.ref, third));
    EXPECT_OK(strata_free(r.rig.s, b.ref));
    strata_block_t c = rig_allocate(&r.rig, NULL, 1000);
    EXPECT_OK(strata_erase_stream(r.rig.s, c.ref, third));
    RIG_FREE(&r.rig, c, a);
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = recording_end(&r);
    ASSERT_TRUE(trace);
    EXPECT_EQ(recording_count(trace, STRATA_TRACE_borrow), 2);
    EXPECT_EQ(recording_count(trace, STRATA_TRACE_unborrow), 1);
    EXPECT_EQ(recording_count(trace, STRATA_TRACE_free), 3);
}

/* What finds no room is left out whole: what is there is a right trace in which every block is freed. */
TEST(recorder, a_full_ring_leaves_out_whole_lifetimes) {
    strata_statistics_t figures;
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = record_program("dropped.csv", 200, "drop", &figures);
    ASSERT_TRUE(trace);
    uint64_t allocs = recording_count(trace, STRATA_TRACE_alloc);
    EXPECT_GT(allocs, 20);
    EXPECT_LT(allocs, figures.allocations);
    EXPECT_EQ(recording_count(trace, STRATA_TRACE_free), allocs);
}

/* Uses stand in the file up to the last room that no free will need. */
TEST(recorder, a_full_ring_is_full) {
    enum { EVENTS = 64 };
    recording_t r;
    begin(&r, "full.csv", EVENTS, "drop");
    strata_stream_t other = rig_stream(&r.rig);
    strata_block_t a = rig_allocate(&r.rig, NULL, 1000), b = rig_allocate(&r.rig, NULL, 1000);
    for (int i = 0; i < EVENTS; i++) {
        EXPECT_OK(strata_record_stream(r.rig.s, a.ref, other));
        EXPECT_OK(strata_erase_stream(r.rig.s, a.ref, other));
    }
    RIG_FREE(&r.rig, a, b);
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = recording_end(&r);
    ASSERT_TRUE(trace);
    EXPECT_EQ(trace->count, EVENTS);
    EXPECT_EQ(recording_count(trace, STRATA_TRACE_borrow), (EVENTS - 4) / 2);
    EXPECT_EQ(recording_count(trace, STRATA_TRACE_unborrow), (EVENTS - 4) / 2);
    EXPECT_EQ(recording_count(trace, STRATA_TRACE_free), 2);
}

/* Of the file as it is while it is written. */
static uint64_t bytes_after(recording_t *r, int pairs) {
    struct stat file = {.st_size = 0};
    char beside[300];
    snprintf(beside, sizeof beside, "%s.%ld.0.part", r->path, (long)getpid());
    for (int i = 0; i < pairs; i++) EXPECT_OK(strata_free(r->rig.s, rig_allocate(&r->rig, NULL, 1000).ref));
    EXPECT_EQ(stat(beside, &file), 0);
    return (uint64_t)file.st_size;
}

/* The request that finds half the ring full writes the file, no other before it. */
TEST(recorder, half_a_ring_is_written) {
    recording_t r;
    begin(&r, "half.csv", 16384, "write");
    uint64_t begun = bytes_after(&r, 2000), before = bytes_after(&r, 2000);
    EXPECT_EQ(before, begun);
    EXPECT_GT(bytes_after(&r, 200), before);
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = NULL;
    rig_close(&r.rig);
    EXPECT_OK(strata_trace_load(r.path, &trace));
    EXPECT_EQ(recording_count(trace, STRATA_TRACE_free), 4200);
}

TEST(recorder, an_event_takes_no_host_memory) {
    recording_t r;
    begin(&r, "quiet.csv", 65536, "write");
    strata_block_t warm = rig_allocate(&r.rig, NULL, 1000);
    EXPECT_OK(strata_free(r.rig.s, warm.ref));
    uint64_t before = strata_host_allocations();
    for (int i = 0; i < 1000; i++) {
        strata_block_t a = rig_allocate(&r.rig, NULL, 1000);
        EXPECT_OK(strata_free(r.rig.s, a.ref));
    }
    EXPECT_EQ(strata_host_allocations(), before);
    strata_trace_delete(recording_end(&r));
}

enum { THREADS = 4, ROUNDS = 500 };

typedef struct worker {
    rig_t *rig;
    strata_stream_t stream, other;
} worker_t;

static void *work(void *context) {
    worker_t *worker = context;
    for (int i = 0; i < ROUNDS; i++) {
        strata_block_t a = rig_allocate(worker->rig, worker->stream, 1000 + (size_t)i);
        if (i % 3 == 0) EXPECT_OK(strata_record_stream(worker->rig->s, a.ref, worker->other));
        if (i % 100 == 99) EXPECT_OK(strata_release(worker->rig->s, worker->rig->gpu, NULL));
        EXPECT_OK(strata_free(worker->rig->s, a.ref));
    }
    return NULL;
}

/* Several stacks into one file, written by whoever comes first: the reader refuses time that falls and ids out of order. */
TEST(recorder, threads_share_a_file) {
    recording_t r;
    pthread_t threads[THREADS];
    worker_t workers[THREADS];
    begin(&r, "threads.csv", 128, "write");
    for (int i = 0; i < THREADS; i++) workers[i] = (worker_t){&r.rig, rig_stream(&r.rig), rig_stream(&r.rig)};
    for (int i = 0; i < THREADS; i++) ASSERT_EQ(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    for (int i = 0; i < THREADS; i++) ASSERT_EQ(pthread_join(threads[i], NULL), 0);
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = recording_end(&r);
    ASSERT_TRUE(trace);
    EXPECT_EQ(recording_count(trace, STRATA_TRACE_alloc), THREADS * ROUNDS);
    EXPECT_EQ(recording_count(trace, STRATA_TRACE_free), THREADS * ROUNDS);
}

/* ---- the file ---- */

static strata_status_t open_path(const char *path, strata_t *s) {
    char text[600];
    snprintf(text, sizeof text, "version: 1\nstack:\n  - trace: {path: \"%s\"}\n  - system\n", path);
    strata_open_options_t options = {
        .struct_size = sizeof options, .text = text, .devices = "sim", .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    return strata_open(&options, s);
}

TEST(recorder, the_name_may_hold_the_number_of_the_process) {
    char name[40];
    strata_t s;
    snprintf(name, sizeof name, "of_%ld.csv", (long)getpid());
    ASSERT_OK(open_path(temporary("of_%p.csv"), &s));
    EXPECT_NE(access(temporary(name), F_OK), 0);
    EXPECT_OK(strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL));
    EXPECT_EQ(access(temporary(name), F_OK), 0);
}

TEST(recorder, a_file_that_cannot_be_made_is_told_at_open) {
    strata_t s;
    EXPECT_STATUS(STRATA_E_IO, open_path(temporary("no_such_folder/x.csv"), &s));
}

static uint32_t open_files(void) {
    uint32_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder)) count++;
    if (folder) closedir(folder);
    return count;
}

TEST(recorder, host_memory_fails_at_every_allocation_of_open) {
    uint32_t files = open_files();
    uint64_t before = strata_host_allocations();
    strata_t s = 0;
    ASSERT_OK(open_path(temporary("memory.csv"), &s));
    uint64_t count = strata_host_allocations() - before;
    EXPECT_OK(strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL));
    EXPECT_GT(count, 20);
    for (uint64_t k = 1; k <= count; k++) {
        strata_host_fail_at(k, 0);
        strata_status_t status = open_path(temporary("memory.csv"), &s);
        strata_host_fail_at(0, 0);
        EXPECT_TRUE(status == STRATA_OK || status == STRATA_E_HOST_MEMORY);
        if (status == STRATA_OK) EXPECT_OK(strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL));
        EXPECT_EQ(open_files(), files);
    }
}
