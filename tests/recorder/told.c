/* What a program tells beside its requests: kernels, waits, and when its caches are emptied. What was recorded so, replayed and recorded
 * again is the same. */
#include "lab/replay/run/run.h"
#include "strata/note.h"
#include "tests/recorder/recording.h"

#define STACK "retry\n  - trace: {path: \"%s\", events: %u, when_full: %s}\n  - stream_safe\n  - auto_growth\n  - system\n"
#define MS    1000000ull

static void work(recording_t *r, strata_stream_t stream, uint64_t ns, const strata_ref_t *refs, size_t count) {
    EXPECT_OK(strata_stream_work(r->rig.s, r->rig.gpu, stream, ns, refs, count));
}

/* Two streams: one computes, the other copies after it. */
static void run_program(recording_t *r) {
    strata_stream_t one = rig_stream(&r->rig), two = rig_stream(&r->rig);
    for (int step = 0; step < 3; step++) {
        strata_block_t a = rig_allocate(&r->rig, one, 3 * MIB), b = rig_allocate(&r->rig, two, 5 * MIB);
        const strata_ref_t both[] = {a.ref, b.ref};
        rig_advance(&r->rig, MS);
        work(r, one, 2 * MS, &a.ref, 1);
        EXPECT_OK(strata_stream_wait(r->rig.s, r->rig.gpu, two, one));
        EXPECT_OK(strata_record_stream(r->rig.s, a.ref, two));
        work(r, two, 4 * MS, both, 2);
        rig_advance(&r->rig, MS);
        EXPECT_OK(strata_free(r->rig.s, a.ref));
        strata_block_t c = rig_allocate(&r->rig, one, 3 * MIB);
        work(r, one, MS, NULL, 0);
        rig_advance(&r->rig, MS);
        EXPECT_OK(strata_stream_synchronize(r->rig.s, r->rig.gpu, two));
        RIG_FREE(&r->rig, b, c);
        EXPECT_OK(strata_step(r->rig.s));
        rig_advance(&r->rig, MS);
    }
    EXPECT_OK(strata_release(r->rig.s, r->rig.gpu, NULL));
}

static strata_trace_t *record_program(const char *name) {
    recording_t r;
    recording_open(&r, name, STACK, 1024, "write");
    run_program(&r);
    return recording_end(&r);
}

TEST(recorder_told, kernels_waits_and_releases_stand_in_the_file) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = record_program("told.csv");
    ASSERT_TRUE(trace);
    static const strata_trace_op_t step[] = {STRATA_TRACE_alloc,  STRATA_TRACE_alloc, STRATA_TRACE_work, STRATA_TRACE_wait,
                                             STRATA_TRACE_borrow, STRATA_TRACE_work,  STRATA_TRACE_work, STRATA_TRACE_free,
                                             STRATA_TRACE_alloc,  STRATA_TRACE_work,  STRATA_TRACE_sync, STRATA_TRACE_free,
                                             STRATA_TRACE_free,   STRATA_TRACE_step};
    enum { ROWS = sizeof step / sizeof *step };
    ASSERT_EQ(trace->count, 3 * ROWS + 1);
    for (size_t i = 0; i < 3 * ROWS; i++) EXPECT_EQ(trace->events[i].op, step[i % ROWS]);
    const strata_trace_event_t *e = trace->events;
    EXPECT_EQ(e[3 * ROWS].op, STRATA_TRACE_release);
    EXPECT_EQ(e[2].value, 2000);
    EXPECT_EQ(e[2].id, e[0].id);
    EXPECT_EQ(e[2].stream, e[0].stream);
    EXPECT_EQ(e[3].stream, e[1].stream);
    EXPECT_EQ(e[3].other, e[0].stream);
    EXPECT_EQ(e[5].stream, e[1].stream);
    EXPECT_NE(e[5].id, e[6].id);
    EXPECT_EQ(e[9].id, STRATA_TRACE_NONE);
    EXPECT_EQ(e[9].value, 1000);
    EXPECT_EQ(e[10].stream, e[1].stream);
}

/* What a program did by a runtime of its own stands there as what it did by Strata, and keeps no stream busy. */
TEST(recorder_told, notes_stand_in_the_file_and_do_nothing) {
    recording_t r;
    recording_open(&r, "noted.csv", STACK, 1024, "write");
    strata_t s = r.rig.s;
    strata_stream_t one = rig_stream(&r.rig), two = rig_stream(&r.rig);
    strata_block_t a = rig_allocate(&r.rig, one, 3 * MIB), b = rig_allocate(&r.rig, two, 5 * MIB);
    const strata_ref_t both[] = {a.ref, b.ref};
    uint64_t before = strata_sim_now(r.rig.world);
    EXPECT_OK(strata_note_work(s, r.rig.gpu, one, 2 * MS, both, 2));
    EXPECT_OK(strata_note_work(s, r.rig.gpu, one, MS, NULL, 0));
    EXPECT_OK(strata_note_wait(s, r.rig.gpu, two, one));
    EXPECT_OK(strata_note_sync(s, r.rig.gpu, two));
    EXPECT_OK(strata_note_device_sync(s, r.rig.gpu));
    EXPECT_EQ(strata_sim_now(r.rig.world), before);
    RIG_FREE(&r.rig, a, b);
    EXPECT_EQ(rig_figures(&r.rig).deferred_bytes, 0);
    EXPECT_STATUS(STRATA_E_STALE, strata_note_work(s, r.rig.gpu, one, MS, both, 2));
    EXPECT_STATUS(STRATA_E_INVALID, strata_note_work(s, r.rig.gpu, one, MS, NULL, 1));
    EXPECT_STATUS(STRATA_E_INVALID, strata_note_sync(s, 12345, one));
    EXPECT_STATUS(STRATA_E_STALE, strata_note_wait(s + 1, r.rig.gpu, two, one));
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = recording_end(&r);
    ASSERT_TRUE(trace);
    static const strata_trace_op_t ops[] = {STRATA_TRACE_alloc, STRATA_TRACE_alloc, STRATA_TRACE_work, STRATA_TRACE_work,
                                            STRATA_TRACE_work,  STRATA_TRACE_wait,  STRATA_TRACE_sync, STRATA_TRACE_sync,
                                            STRATA_TRACE_free,  STRATA_TRACE_free};
    ASSERT_EQ(trace->count, sizeof ops / sizeof *ops);
    const strata_trace_event_t *e = trace->events;
    for (size_t i = 0; i < trace->count; i++) EXPECT_EQ(e[i].op, ops[i]);
    EXPECT_EQ(e[2].value, 2000);
    EXPECT_EQ(e[2].time_us, e[3].time_us);
    EXPECT_NE(e[2].id, e[3].id);
    EXPECT_EQ(e[4].id, STRATA_TRACE_NONE);
    EXPECT_EQ(e[4].value, 1000);
    EXPECT_EQ(e[5].stream, e[1].stream);
    EXPECT_EQ(e[5].other, e[0].stream);
    EXPECT_EQ(e[6].stream, e[1].stream);
    EXPECT_EQ(e[7].stream, STRATA_TRACE_NO_STREAM);
}

/* A layer of a pool hears what the layers outside it do not. */
TEST(recorder_told, a_pool_alone_may_record) {
    recording_t r;
    recording_open(&r, "pool.csv",
                   "stream_safe\n  - auto_growth\n  - system\npools:\n  logged:\n"
                   "    - trace: {path: \"%s\", events: %u, when_full: %s}\n    - stream_safe\n    - auto_growth\n    - system\n",
                   1024, "write");
    strata_stream_t one = rig_stream(&r.rig), two = rig_stream(&r.rig);
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = MIB};
    strata_block_t outside = rig_allocate(&r.rig, one, MIB), logged;
    EXPECT_OK(strata_pool(r.rig.s, "logged", &options.pool));
    EXPECT_OK(strata_allocate_with(r.rig.s, r.rig.gpu, one, &options, &logged));
    EXPECT_OK(strata_note_work(r.rig.s, r.rig.gpu, one, MS, &outside.ref, 1));
    EXPECT_OK(strata_note_wait(r.rig.s, r.rig.gpu, two, one));
    RIG_FREE(&r.rig, outside, logged);
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = recording_end(&r);
    ASSERT_TRUE(trace);
    ASSERT_EQ(trace->count, 4);
    EXPECT_EQ(trace->events[1].op, STRATA_TRACE_work);
    EXPECT_EQ(trace->events[1].id, STRATA_TRACE_NONE);
    EXPECT_EQ(trace->events[2].op, STRATA_TRACE_wait);
}

/* Without a layer that records they are nothing but checked. */
TEST_RIG(recorder_told, notes_need_nobody_who_hears, 0, "stack: [stream_safe, auto_growth, system]\n") {
    strata_stream_t stream = rig_stream(rig);
    strata_block_t block = rig_allocate(rig, stream, MIB);
    EXPECT_OK(strata_note_work(rig->s, rig->gpu, stream, MS, &block.ref, 1));
    EXPECT_OK(strata_note_work(rig->s, strata_gpu(0), NULL, 0, NULL, 0));
    EXPECT_OK(strata_note_wait(rig->s, rig->gpu, stream, NULL));
    EXPECT_OK(strata_note_sync(rig->s, rig->gpu, NULL));
    EXPECT_OK(strata_note_device_sync(rig->s, rig->gpu));
    RIG_FREE(rig, block);
    EXPECT_EQ(rig_figures(rig).deferred_bytes, 0);
}

/* The time of a kernel is that of its rows together, however many blocks it uses. */
static uint64_t work_of(const strata_trace_t *trace) {
    uint64_t sum = 0;
    for (size_t i = 0; i < trace->count; i++) {
        const strata_trace_event_t *e = &trace->events[i];
        bool again = i > 0 && e[-1].op == STRATA_TRACE_work && e[-1].stream == e->stream && e[-1].time_us == e->time_us;
        if (e->op == STRATA_TRACE_work && !again) sum += e->value;
    }
    return sum;
}

TEST(recorder_told, each_kernel_takes_its_time_once) {
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = record_program("once.csv");
    ASSERT_TRUE(trace);
    EXPECT_EQ(work_of(trace), 3 * (2000 + 4000 + 1000));
}

/* The rows of one stream and time are one kernel, so two that are told at once stand a microsecond apart. */
TEST(recorder_told, two_kernels_at_once_are_two) {
    recording_t r;
    recording_open(&r, "at_once.csv", STACK, 64, "drop");
    strata_stream_t stream = rig_stream(&r.rig);
    strata_block_t a = rig_allocate(&r.rig, stream, MIB);
    for (int i = 0; i < 5; i++) work(&r, stream, (uint64_t)(i + 1) * 1000, &a.ref, 1);
    EXPECT_OK(strata_free(r.rig.s, a.ref));
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = recording_end(&r);
    ASSERT_TRUE(trace);
    ASSERT_EQ(trace->count, 7);
    for (uint64_t i = 0; i < 5; i++) EXPECT_EQ(trace->events[1 + i].value, i + 1);
    for (size_t i = 2; i < 6; i++) EXPECT_GT(trace->events[i].time_us, trace->events[i - 1].time_us);
}

/* Whoever tells a part of the kernels alone has a trace whose GPU the replay models. */
TEST(recorder_told, kernels_may_be_left_out) {
    recording_t r;
    recording_open(&r, "no_work.csv",
                   "trace: {path: \"%s\", events: %u, when_full: %s, work: false}\n  - stream_safe\n"
                   "  - auto_growth\n  - system\n",
                   1024, "write");
    run_program(&r);
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = recording_end(&r);
    ASSERT_TRUE(trace);
    EXPECT_FALSE(trace->has_work);
    EXPECT_EQ(recording_count(trace, STRATA_TRACE_wait), 3);
    EXPECT_EQ(recording_count(trace, STRATA_TRACE_alloc), 9);
}

/* Kernels and waits that find no room are left out, and no free is. */
TEST(recorder_told, a_full_ring_keeps_its_frees) {
    recording_t r;
    recording_open(&r, "told_full.csv", STACK, 64, "drop");
    strata_stream_t one = rig_stream(&r.rig), two = rig_stream(&r.rig);
    strata_block_t a = rig_allocate(&r.rig, one, MIB);
    for (int i = 0; i < 100; i++) {
        work(&r, one, 1000, &a.ref, 1);
        EXPECT_OK(strata_stream_wait(r.rig.s, r.rig.gpu, two, one));
    }
    EXPECT_OK(strata_free(r.rig.s, a.ref));
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = recording_end(&r);
    ASSERT_TRUE(trace);
    EXPECT_EQ(recording_count(trace, STRATA_TRACE_free), 1);
    EXPECT_GT(recording_count(trace, STRATA_TRACE_work), 20);
    EXPECT_LT(recording_count(trace, STRATA_TRACE_work), 100);
}

/* ---- there and back ---- */

typedef struct played {
    recording_t *r;
    strata_stream_t streams[8];
    strata_ref_t live[64]; /* by lifetime */
} played_t;

/* The rows of one kernel at once; returns how many there are. */
static size_t play_work(played_t *p, const strata_trace_t *trace, size_t row) {
    const strata_trace_event_t *first = &trace->events[row];
    strata_ref_t refs[8];
    size_t count = 0, rows = 0;
    for (; row + rows < trace->count; rows++) {
        const strata_trace_event_t *e = first + rows;
        if (e->op != STRATA_TRACE_work || e->stream != first->stream || e->time_us != first->time_us) break;
        if (e->id != STRATA_TRACE_NONE) refs[count++] = p->live[e->id];
    }
    work(p->r, p->streams[first->stream], first->value * 1000, refs, count);
    return rows;
}

static size_t play_row(played_t *p, const strata_trace_t *trace, size_t row) {
    const strata_trace_event_t *e = &trace->events[row];
    strata_t s = p->r->rig.s;
    strata_place_t gpu = p->r->rig.gpu;
    switch ((strata_trace_op_t)e->op) {
    case STRATA_TRACE_alloc: p->live[e->id] = rig_allocate(&p->r->rig, p->streams[e->stream], e->value).ref; break;
    case STRATA_TRACE_free: EXPECT_OK(strata_free(s, p->live[e->id])); break;
    case STRATA_TRACE_borrow: EXPECT_OK(strata_record_stream(s, p->live[e->id], p->streams[e->stream])); break;
    case STRATA_TRACE_work: return play_work(p, trace, row);
    case STRATA_TRACE_wait: EXPECT_OK(strata_stream_wait(s, gpu, p->streams[e->stream], p->streams[e->other])); break;
    case STRATA_TRACE_sync: EXPECT_OK(strata_stream_synchronize(s, gpu, p->streams[e->stream])); break;
    case STRATA_TRACE_step: EXPECT_OK(strata_step(s)); break;
    case STRATA_TRACE_release: EXPECT_OK(strata_release(s, gpu, NULL)); break;
    default: FAIL_TEST("%s", strata_trace_op_name((strata_trace_op_t)e->op));
    }
    return 1;
}

static strata_trace_t *play(const strata_trace_t *trace, const char *name) {
    recording_t r;
    played_t p = {.r = &r};
    recording_open(&r, name, STACK, 1024, "write");
    for (uint32_t i = 0; i < trace->stream_count; i++) p.streams[i] = rig_stream(&r.rig);
    for (size_t row = 0; row < trace->count;) {
        if (row > 0) rig_advance(&r.rig, 1000 * (trace->events[row].time_us - trace->events[row - 1].time_us));
        row += play_row(&p, trace, row);
    }
    return recording_end(&r);
}

TEST(recorder_told, what_is_played_again_is_recorded_as_the_same) {
    strata_trace_t *first CLOSED_BY(trace_cleanup) = record_program("first.csv");
    ASSERT_TRUE(first);
    strata_trace_t *second CLOSED_BY(trace_cleanup) = play(first, "second.csv.gz");
    ASSERT_TRUE(second);
    ASSERT_EQ(second->count, first->count);
    EXPECT_EQ(second->stream_count, first->stream_count);
    for (size_t i = 0; i < first->count; i++) {
        const strata_trace_event_t *a = &first->events[i], *b = &second->events[i];
        EXPECT_TRUE(a->op == b->op && a->value == b->value && a->id == b->id && a->stream == b->stream && a->other == b->other);
    }
}

/* A replay under the same layers holds what the program held. */
TEST(recorder_told, a_replay_holds_what_the_program_held) {
    recording_t r;
    strata_run_result_t result = {.first_failure = ""};
    recording_open(&r, "replayed.csv", STACK, 1024, "write");
    run_program(&r);
    strata_statistics_t figures = rig_figures(&r.rig);
    strata_trace_t *trace CLOSED_BY(trace_cleanup) = recording_end(&r);
    ASSERT_TRUE(trace);
    strata_strategy_t *strategy = rig_strategy("stack: [retry, stream_safe, auto_growth, system]\n", NULL, 0);
    strata_run_options_t options = {.target = {.profile = strata_sim_profile("h100"), .capacity = 256 * MIB}};
    EXPECT_OK(strata_run(trace, strategy, &options, &result));
    strata_strategy_delete(strategy);
    EXPECT_EQ(result.figures.failed_operations, 0);
    EXPECT_EQ(result.figures.live_at_end, 0);
    EXPECT_EQ(result.figures.peak_reserved_bytes, figures.peak_reserved_bytes);
    EXPECT_EQ(result.figures.peak_requested_bytes, 8 * MIB);
}
