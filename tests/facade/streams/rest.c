/* Memory at rest: a growing stack gets idle memory of streams whose work is done (allocation/reclaim/rest.h). */
#include "platform/arithmetic.h"
#include "tests/facade/support/fixture.h"

static const uint64_t ms = 1000 * 1000;
enum { BLOCKS = 12 };
#define PHASE (78ull * 16 * MIB) /* 1 + 2 + ... + BLOCKS times 16 MiB */

/* Allocates and frees one phase. The work of its blocks takes `work` ns. */
static void run_phase(rig_t *rig, strata_stream_t stream, uint64_t work) {
    strata_block_t blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) blocks[i] = rig_allocate(rig, stream, (i + 1) * 16 * MIB);
    if (work) rig_work(rig, stream, work, blocks[0].ref);
    rig_free(rig, blocks, BLOCKS);
}

static void expect_nothing_collected(rig_t *rig) {
    for (int phase = 0; phase < 3; phase++) {
        run_phase(rig, rig_stream(rig), 0);
        rig_advance(rig, 20 * ms);
    }
    EXPECT_GE(rig_figures(rig).reserved_bytes, 3 * PHASE);
}

static uint64_t reserved_above_phase(rig_t *rig) {
    uint64_t peak = rig_figures(rig).peak_reserved_bytes;
    return peak - strata_min(peak, PHASE);
}

TEST_RIG(facade_rest, a_program_with_a_stream_for_each_phase_holds_one_phase, 0, "strata", "stack: [" ASKING "]") {
    for (int phase = 0; phase < 8; phase++) {
        run_phase(rig, rig_stream(rig), ms);
        rig_advance(rig, 20 * ms);
    }
    EXPECT_LE(reserved_above_phase(rig), PHASE / 16);
    EXPECT_LE(rig_figures(rig).reserved_bytes, PHASE + PHASE / 16);
    EXPECT_OK(strata_validate(rig->s));
}

/* The device has no memory for both, and no recovery is needed. */
TEST_RIG(facade_rest, what_one_stream_caches_serves_another_without_a_recovery, 64 * MIB, "strata") {
    strata_stream_t one = rig_stream(rig), two = rig_stream(rig);
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, one, 48 * MIB).ref));
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, two, 48 * MIB).ref));
    EXPECT_EQ(rig_figures(rig).recoveries, 0);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 48 * MIB);
}

/* A collection would wait for the work, so such memory stays and the cache grows. */
TEST_RIG(facade_rest, memory_under_running_work_stays, 0, "stack: [" ASKING "]") {
    run_phase(rig, rig_stream(rig), 100 * ms);
    uint64_t began = strata_sim_now(rig->world);
    run_phase(rig, rig_stream(rig), 0);
    EXPECT_GE(rig_figures(rig).reserved_bytes, 2 * PHASE);
    EXPECT_LT(strata_sim_now(rig->world), began + 50 * ms);
    rig_advance(rig, 200 * ms);
}

/* A query of a captured stream would end its capture. */
TEST_RIG(facade_rest, a_captured_stream_is_not_asked, 0, "stack: [" ASKING "]") {
    strata_stream_t captured = rig_stream(rig);
    strata_handle_t graph;
    run_phase(rig, captured, 0);
    ASSERT_OK(strata_device_capture_begin(rig->devices[0], captured, STRATA_CAPTURE_RELAXED));
    run_phase(rig, rig_stream(rig), 0);
    EXPECT_OK(strata_device_capture_end(rig->devices[0], captured, &graph));
    EXPECT_OK(strata_device_graph_destroy(rig->devices[0], graph));
    EXPECT_GE(rig_figures(rig).reserved_bytes, 2 * PHASE);
}

/* Two streams that take turns must not pass the same memory on forever: after their first growth the collections take 1 %
 * of the time. */
TEST_RIG(facade_rest, streams_that_take_turns_keep_their_memory, 0, "stack: [" ASKING "]") {
    strata_stream_t streams[2] = {rig_stream(rig), rig_stream(rig)};
    for (int turn = 0; turn < 20; turn++) run_phase(rig, streams[turn % 2], 0);
    uint64_t calls = rig_calls(rig, STRATA_CALL_create), began = strata_sim_now(rig->world);
    for (int turn = 0; turn < 200; turn++) {
        run_phase(rig, streams[turn % 2], 0);
        rig_advance(rig, ms / 10);
    }
    EXPECT_LE(rig_calls(rig, STRATA_CALL_create) - calls, BLOCKS);
    EXPECT_LT(strata_sim_now(rig->world) - began, 200 * ms / 10 + 20 * ms);
    EXPECT_GE(rig_figures(rig).reserved_bytes, 2 * PHASE);
}

/* Both streams needed their memory at the same time, so the place may hold both again. */
TEST_RIG(facade_rest, memory_within_the_need_stays, 0, "stack: [" ASKING "]") {
    strata_stream_t streams[2] = {rig_stream(rig), rig_stream(rig)};
    strata_block_t blocks[2] = {rig_allocate(rig, streams[0], 256 * MIB), rig_allocate(rig, streams[1], 256 * MIB)};
    RIG_FREE(rig, blocks[0], blocks[1]);
    strata_allocator_t allocator;
    ASSERT_OK(strata_allocator_get(rig->s, rig->gpu, streams[1], STRATA_POOL_ORDINARY, &allocator));
    ASSERT_OK(strata_allocator_release(allocator, NULL));
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 256 * MIB);
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, streams[1], 256 * MIB).ref));
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 512 * MIB);
}

TEST_RIG(facade_rest, a_stack_without_patience_collects_nothing, 0,
         "stack: [retry: {patience: false}, stream_safe, auto_growth_vmm, vmm]", "stack: [stream_safe, auto_growth_vmm, vmm]") {
    expect_nothing_collected(rig);
}

/* A free of such memory waits for the device, so it is not collected. */
TEST_RIG(facade_rest, memory_of_the_driver_stays, 0,
         "stack: [retry: {patience: true}, stream_safe, auto_growth: {chunk_size: 20MiB}, system]") {
    expect_nothing_collected(rig);
}

/* The event of a blocking stream follows the work of the legacy stream, so a collection would wait for that work. */
TEST_RIG(facade_rest, legacy_work_before_a_blocking_stream_is_not_waited_for, 0, "stack: [" ASKING "]") {
    strata_stream_t blocking;
    ASSERT_OK(strata_device_stream_create(rig->devices[0], STRATA_STREAM_BLOCKING, 0, &blocking));
    run_phase(rig, blocking, 0);
    strata_block_t block = rig_allocate(rig, NULL, MIB);
    rig_work(rig, NULL, 100 * ms, block.ref);
    EXPECT_OK(strata_free(rig->s, block.ref));
    uint64_t began = strata_sim_now(rig->world);
    run_phase(rig, NULL, 0);
    EXPECT_LT(strata_sim_now(rig->world), began + 50 * ms);
    EXPECT_GE(rig_figures(rig).reserved_bytes, 2 * PHASE);
    rig_advance(rig, 200 * ms);
    rig_forget(rig, blocking);
    EXPECT_OK(strata_device_stream_destroy(rig->devices[0], blocking));
}

/* One route frees memory of the driver, which waits for the whole device. */
TEST_RIG(facade_rest, routes_to_the_driver_collect_nothing, 0,
         "stack: [retry: {patience: true}, stream_safe, binning: {routes: [{up_to: 1MiB, stack: [auto_growth, system]}, "
         "{stack: [auto_growth_vmm, vmm]}]}]") {
    expect_nothing_collected(rig);
}

/* It would create again the handles that it has just released. */
TEST_RIG(facade_rest, a_stack_does_not_collect_its_own_memory, 0, "stack: [" ASKING "]") {
    strata_stream_t own = rig_stream(rig), other = rig_stream(rig);
    strata_block_t theirs[6];
    for (int i = 0; i < 6; i++) theirs[i] = rig_allocate(rig, other, 16 * MIB);
    rig_work(rig, other, 10 * ms, theirs[0].ref);
    rig_free(rig, theirs, 6);
    strata_block_t kept = rig_allocate(rig, own, 64 * MIB);
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, own, 32 * MIB).ref));
    rig_advance(rig, 20 * ms);
    strata_block_t large = rig_allocate(rig, own, 80 * MIB);
    EXPECT_LE(rig_figures(rig).reserved_bytes, (96 + 64 + 32) * MIB + 8 * MIB);
    EXPECT_LE(rig_stack(rig, other)->figures.reserved_bytes, (96 - 48) * MIB);
    EXPECT_OK(strata_free(rig->s, large.ref));
    EXPECT_OK(strata_free(rig->s, kept.ref));
}

/* ---- growth beside lent memory ---- */

enum { LENT = 64, BASE = 320 };

/* Lends the block of a step to a copy, and requests as much again after 50 ms. */
static void lend_and_request(rig_t *rig, strata_stream_t stream, strata_stream_t copies, uint64_t size, uint64_t copy) {
    strata_block_t lent = rig_allocate(rig, stream, size);
    rig_borrow(rig, lent.ref, copies, copy);
    EXPECT_OK(strata_free(rig->s, lent.ref));
    rig_advance(rig, 50 * ms);
    strata_block_t again = rig_allocate(rig, stream, size);
    EXPECT_FALSE(rig_overlap(&lent, &again));
    EXPECT_OK(strata_free(rig->s, again.ref));
}

/* Returns the reserved bytes after a request that came `later` ns after the last one, without its block. */
static uint64_t reserved_later(rig_t *rig, strata_stream_t stream, size_t size, uint64_t later, uint64_t work) {
    rig_advance(rig, later);
    if (work) rig_work(rig, stream, work, 0);
    strata_block_t block = rig_allocate(rig, stream, size);
    EXPECT_OK(strata_free(rig->s, block.ref));
    return rig_figures(rig).reserved_bytes;
}

typedef struct returning {
    const char *name;
    uint64_t size, copy, later, work; /* MiB, and ms */
    bool goes;
} returning_t;

static const returning_t returnings[] = {
    {"once_the_copy_is_done", LENT, 200, 250, 0, true},    {"not_while_the_copy_runs", LENT, 200, 120, 0, false},
    {"not_soon_after_the_growth", LENT, 80, 60, 0, false}, {"not_under_work_of_the_stream", LENT, 200, 250, 50, false},
    {"not_if_it_is_little", LENT / 4, 200, 250, 0, false},
};

/* With a timeout of 10 ms the stack does not wait for the copy. */
TEST_EACH(facade_rest, a_growth_beside_lent_memory_goes_back, returning_t, returnings) {
    RIG(rig, "stack: [retry: {timeout: 10ms, wait_first: true, patience: true}, stream_safe, auto_growth_vmm, vmm]", 0);
    strata_stream_t stream = rig_stream(&rig), copies = rig_stream(&rig);
    strata_block_t base = rig_allocate(&rig, stream, BASE * MIB);
    EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, stream, row->size * MIB).ref));
    rig_advance(&rig, 10000 * ms);
    lend_and_request(&rig, stream, copies, row->size * MIB, row->copy * ms);
    EXPECT_GE(rig_figures(&rig).reserved_bytes, (BASE + 2 * row->size) * MIB);
    uint64_t reserved = reserved_later(&rig, stream, row->size * MIB, row->later * ms, row->work * ms);
    if (row->goes) EXPECT_LE(reserved, (BASE + row->size + row->size / 4) * MIB);
    else EXPECT_GE(reserved, (BASE + 2 * row->size) * MIB);
    rig_advance(&rig, 1000 * ms);
    EXPECT_OK(strata_free(rig.s, base.ref));
    EXPECT_OK(strata_validate(rig.s));
}

/* The returns and the growths after them take at most a hundredth of the time. A return of 8 GiB in each step of 300 ms
 * would take more. */
TEST_RIG(facade_rest, a_program_that_lends_in_each_step_returns_within_the_budget, 0, "strata") {
    enum { STEPS = 40 };
    strata_stream_t stream = rig_stream(rig), copies = rig_stream(rig);
    strata_block_t base = rig_allocate(rig, stream, 32 * GIB);
    uint32_t returned = 0;
    for (int i = 0; i < STEPS; i++) {
        lend_and_request(rig, stream, copies, 8 * GIB, 200 * ms);
        rig_advance(rig, 250 * ms);
        EXPECT_OK(strata_free(rig->s, rig_allocate(rig, stream, 8 * GIB).ref));
        returned += rig_figures(rig).reserved_bytes < 42 * GIB;
    }
    EXPECT_GE(returned, STEPS / 8);
    EXPECT_LE(returned, STEPS / 2 + 1);
    EXPECT_OK(strata_free(rig->s, base.ref));
}

/* The latest of many stacks that have grown are looked at, and one that grows again becomes the latest. */
TEST_RIG(facade_rest, the_stacks_that_grew_last_are_looked_at, 0, "stack: [" ASKING "]") {
    enum { SIZE = 64 };
    strata_stream_t early = rig_stream(rig);
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, early, SIZE * MIB).ref));
    strata_block_t kept[STRATA_GROWN - 1], more;
    for (int i = 0; i < STRATA_GROWN - 1; i++) kept[i] = rig_allocate(rig, rig_stream(rig), SIZE * MIB);
    uint64_t reserved = rig_figures(rig).reserved_bytes;
    EXPECT_EQ(reserved, (STRATA_GROWN - 1) * SIZE * MIB); /* the early one is the 16th of the latest, and was collected */
    more = rig_allocate(rig, early, 2 * SIZE * MIB);
    EXPECT_OK(strata_free(rig->s, more.ref));
    (void)rig_allocate(rig, rig_stream(rig), 2 * SIZE * MIB);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, reserved + 2 * SIZE * MIB);
    rig_free(rig, kept, STRATA_GROWN - 1);
}

/* The memory of another stream moves even if a call of the device fails, or it stays and the request is served. */
TEST(facade_rest, a_refused_call_loses_nothing) {
    static const strata_device_call_t kinds[] = {STRATA_CALL_event_record, STRATA_CALL_event_query, STRATA_CALL_unmap,
                                                 STRATA_CALL_release,      STRATA_CALL_create,      STRATA_CALL_map,
                                                 STRATA_CALL_set_access};
    for (size_t kind = 0; kind < COUNT(kinds); kind++)
        for (uint64_t number = 1; number <= 6; number++) {
            RIG(rig, "stack: [" ASKING "]", 0);
            run_phase(&rig, rig_stream(&rig), 0);
            strata_stream_t second = rig_stream(&rig);
            ASSERT_OK(strata_sim_fail(rig.devices[0], kinds[kind], number, false, STRATA_E_DEVICE));
            strata_block_t blocks[BLOCKS] = {0};
            for (size_t i = 0; i < BLOCKS; i++)
                if (strata_allocate(rig.s, rig.gpu, second, 96 * MIB, &blocks[i]) != STRATA_OK) blocks[i].ref = 0;
            strata_sim_clear_faults(rig.devices[0]);
            EXPECT_OK(strata_validate(rig.s));
            for (size_t i = 0; i < BLOCKS; i++)
                if (blocks[i].ref) EXPECT_OK(strata_free(rig.s, blocks[i].ref));
            run_phase(&rig, second, 0);
            (void)rig_release(&rig);
            EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
            if (strata_test_has_failed()) FAIL_TEST("call %s, number %d", strata_device_call_name(kinds[kind]), (int)number);
        }
}
