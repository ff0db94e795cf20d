/* Every device call and every host allocation of a pause and a resume fails in turn: nothing is lost, and when all is well again the
 * memory is there, with its bytes, and goes back at the end. */
#include <stdio.h>

#include "platform/host/host_memory.h"
#include "tests/pause/pause.h"

enum { BLOCKS = 3, MOST_CALLS = 2000 };

typedef struct way {
    const char *name, *strategy;
    uint32_t contents;
} way_t;

#define MIXED                                                                                                                      \
    "stack: [stream_safe, auto_growth_vmm, vmm]\npools: {weights: {stack: [stream_safe, auto_growth: {chunk_size: 4MiB}, vmm]}}\n"
#define SCRUBBED "stack: [scrub, stream_safe, auto_growth_vmm, vmm]\npools: {weights: {stack: [stream_safe, auto_growth, vmm]}}\n"

static const way_t ways[] = {
    {"dropped", MIXED, STRATA_PAUSE_DROP},
    {"dropped_and_zeroed", SCRUBBED, STRATA_PAUSE_DROP},
    {"pinned", MIXED, STRATA_PAUSE_PINNED},
    {"file", MIXED, STRATA_PAUSE_FILE},
};

typedef struct run {
    rig_t rig;
    const way_t *way;
    strata_block_t blocks[BLOCKS];
    strata_status_t paused, resumed;
} run_t;

static void begin(run_t *run, const way_t *way) {
    static const size_t sizes[BLOCKS] = {3 * MIB, 500, 70000};
    *run = (run_t){.way = way};
    rig_open_with(&run->rig, way->strategy, &(strata_sim_options_t){.devices = 2, .contents = true, .capacity = 64 * MIB}, 0);
    uint64_t pools[2] = {STRATA_POOL_ORDINARY, pause_pool(&run->rig, "weights")};
    for (uint32_t i = 0; i < BLOCKS; i++) {
        run->blocks[i] = pause_allocate_in(&run->rig, pools[i % 2], NULL, sizes[i], i % 2 ? NULL : "some");
        pause_write(&run->rig, &run->blocks[i], i + 1);
    }
    EXPECT_OK(strata_enable_peer(run->rig.s, 0, 1));
}

/* Bytes that must be there. */
static void check_bytes(run_t *run, bool kept) {
    for (uint32_t i = 0; i < BLOCKS; i++) {
        if (kept && !pause_holds(&run->rig, &run->blocks[i], i + 1)) FAIL_TEST("block %u has lost its bytes", i);
        for (uint32_t d = 0; d < 2; d++) {
            uint8_t *bytes = pause_bytes(&run->rig, &run->blocks[i]);
            ASSERT_TRUE(bytes != NULL);
            EXPECT_OK(strata_device_fill(run->rig.devices[d], (uintptr_t)run->blocks[i].ptr, bytes[0], 1, NULL));
        }
    }
}

static void pause_and_resume(run_t *run) {
    run->paused = pause_try(&run->rig, STRATA_POOL_EVERY, NULL, run->way->contents, NULL);
    run->resumed = strata_resume(run->rig.s, run->rig.gpu, STRATA_POOL_EVERY, NULL, NULL);
}

/* All is well again. */
static void end(run_t *run) {
    bool kept = run->way->contents != STRATA_PAUSE_DROP;
    EXPECT_OK(strata_validate(run->rig.s));
    if (run->paused != STRATA_OK && run->resumed == STRATA_OK) check_bytes(run, true);
    EXPECT_OK(strata_resume(run->rig.s, run->rig.gpu, STRATA_POOL_EVERY, NULL, NULL));
    EXPECT_EQ(rig_figures(&run->rig).paused_bytes, 0);
    check_bytes(run, kept || run->paused != STRATA_OK);
    EXPECT_OK(rig_try(&run->rig, NULL, 3 * MIB));
    EXPECT_EQ(rig_figures_in(&run->rig, strata_pinned()).allocated_bytes, 0);
    rig_finish(&run->rig);
}

static void with_fault(const way_t *way, uint64_t k, bool onward, strata_status_t fault) {
    run_t run;
    begin(&run, way);
    ASSERT_OK(strata_sim_fail(run.rig.devices[0], STRATA_DEVICE_CALLS, k, onward, fault));
    pause_and_resume(&run);
    strata_sim_clear_faults(run.rig.devices[0]);
    end(&run);
    if (strata_test_has_failed()) FAIL_TEST("so far with k = %llu, %s", (unsigned long long)k, onward ? "onward" : "once");
}

static uint64_t calls_of(const way_t *way) {
    run_t run;
    begin(&run, way);
    uint64_t before = strata_sim_calls(run.rig.devices[0]);
    pause_and_resume(&run);
    uint64_t calls = strata_sim_calls(run.rig.devices[0]) - before;
    EXPECT_OK(run.paused);
    EXPECT_OK(run.resumed);
    end(&run);
    return calls;
}

static void every_call(const way_t *way, strata_status_t fault) {
    uint64_t calls = calls_of(way), tried = 0;
    EXPECT_GT(calls, 10);
    for (uint64_t k = 1; k <= calls && !strata_test_has_failed(); k += STRIDE)
        for (int onward = 0; onward < 2 && !strata_test_has_failed(); onward++, tried++) with_fault(way, k, onward != 0, fault);
    printf("%s: %s at each of %llu calls: %llu tried\n", way->name, strata_status_name(fault), (unsigned long long)calls,
           (unsigned long long)tried);
}

TEST_EACH(pause_faults, a_refusal_at_every_call, way_t, ways) { every_call(row, STRATA_E_DEVICE); }
TEST_EACH(pause_faults, out_of_memory_at_every_call, way_t, ways) { every_call(row, STRATA_E_NO_MEMORY); }

/* ---- the host ---- */

TEST_EACH(pause_faults, every_host_allocation, way_t, ways) {
    for (int onward = 0; onward < 2; onward++) {
        uint64_t k = 1;
        for (bool failed = true; failed && k < MOST_CALLS && !strata_test_has_failed(); k += STRIDE) {
            run_t run;
            begin(&run, row);
            strata_host_fail_at(k, onward);
            pause_and_resume(&run);
            failed = run.paused != STRATA_OK || run.resumed != STRATA_OK;
            strata_host_fail_at(0, 0);
            end(&run);
            if (strata_test_has_failed()) FAIL_TEST("so far with k = %llu", (unsigned long long)k);
        }
        if (STRIDE == 1) EXPECT_GT(k, 3);
    }
}

/* ---- a lost device ---- */

TEST_EACH(pause_faults, a_lost_device_at_every_call, way_t, ways) {
    uint64_t calls = calls_of(row);
    for (uint64_t k = 1; k <= calls && !strata_test_has_failed(); k += STRIDE) {
        run_t run;
        begin(&run, row);
        ASSERT_OK(strata_sim_fail(run.rig.devices[0], STRATA_DEVICE_CALLS, k, true, STRATA_E_DEVICE_LOST));
        pause_and_resume(&run);
        EXPECT_TRUE(run.paused == STRATA_E_DEVICE_LOST || run.resumed == STRATA_E_DEVICE_LOST || run.paused == STRATA_OK);
        EXPECT_OK(strata_close(run.rig.s, STRATA_CLOSE_FORCE, NULL, NULL));
        for (uint32_t d = 0; d < 2; d++) strata_device_close(run.rig.devices[d]);
        strata_sim_drop(run.rig.world);
        strata_strategy_delete(run.rig.strategy);
        if (strata_test_has_failed()) FAIL_TEST("so far with k = %llu", (unsigned long long)k);
    }
}
