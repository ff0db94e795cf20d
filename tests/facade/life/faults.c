/* The device fails at every k-th call of a run, once and from then on: nothing is lost, and the run goes on when it is well. */
#include <stdio.h>

#include "facade/open/life.h"
#include "tests/facade/support/program.h"
#include "tests/harness/owned.h"

enum { BROKEN_OPERATIONS = 40 };

static const strata_sim_options_t DEVICE = {.capacity = 96 * MIB, .contents = true};

static strata_strategy_t *strategy_of(const char *preset) {
    static const char *const set[] = {"retry.timeout=2ms"};
    strata_strategy_t *strategy = rig_strategy(preset, NULL, 0);
    if (!strata_strategy_has(strategy, "retry.timeout")) return strategy;
    strata_strategy_delete(strategy);
    return rig_strategy(preset, set, 1);
}

/* Device calls of the run when nothing fails. */
static uint64_t calls_of_a_run(strata_strategy_t *strategy) {
    rig_t rig;
    program_t program;
    rig_open_on(&rig, strategy, &DEVICE, 0);
    program_begin(&program, &rig);
    uint64_t before = strata_sim_calls(rig.devices[0]);
    program_run(&program, PROGRAM_LENGTH);
    program_finish(&program);
    uint64_t calls = strata_sim_calls(rig.devices[0]) - before;
    EXPECT_EQ(rig_figures(&rig).quarantined_bytes, 0);
    rig_close(&rig);
    return calls;
}

static void run_with_fault(strata_strategy_t *strategy, uint64_t k, bool onward, strata_status_t fault) {
    rig_t rig;
    program_t program;
    rig_open_on(&rig, strategy, &DEVICE, 0);
    program_begin(&program, &rig);
    program.tolerated = fault;
    uint64_t first = strata_sim_calls(rig.devices[0]) + k;
    ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_DEVICE_CALLS, k, onward, fault));
    uint32_t done = 0, broken = 0;
    for (; done < PROGRAM_LENGTH && broken < BROKEN_OPERATIONS && !strata_test_has_failed(); done++) {
        program_step(&program);
        if (strata_sim_calls(rig.devices[0]) >= first) broken++;
    }
    program_check(&program);
    strata_sim_clear_faults(rig.devices[0]);
    program_run(&program, PROGRAM_LENGTH - done);
    program_finish(&program);
    rig_close(&rig);
    if (strata_test_has_failed()) FAIL_TEST("so far with k = %llu, %s", (unsigned long long)k, onward ? "onward" : "once");
}

static void every_call_fails(const char *preset, strata_status_t fault, uint64_t stride) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = strategy_of(preset);
    uint64_t calls = calls_of_a_run(strategy), tried = 0;
    for (uint64_t k = 1; k <= calls && !strata_test_has_failed(); k += stride, tried++)
        for (int onward = 0; onward < 2 && !strata_test_has_failed(); onward++) run_with_fault(strategy, k, onward != 0, fault);
    printf("%s: %s at each of %llu device calls of %d operations, once and onward: %llu tried%s\n", strategy->name,
           strata_status_name(fault), (unsigned long long)calls, PROGRAM_LENGTH, (unsigned long long)tried,
           STRIDE == 1 ? "" : " (not every one: this build has sanitizers)");
}

/* Of the calls every so many-th is tried. */
typedef struct faulty {
    const char *name, *strategy;
    uint64_t out_of_memory, refusal;
} faulty_t;

static const faulty_t faulty[] = {
    {"strata", "strata", 1, 3},           {"paddle", "paddle", 1, 3},         {"system", "system", 17, 17},
    {"async", "cuda_malloc_async", 7, 7}, {"pytorch", "pytorch", 1, 3},       {"tinytorch", "tinytorch", 7, 7},
    {"tensorflow", "tensorflow", 3, 3},   {"naive", PROGRAM_NAIVE, 5, 7},     {"threads", PROGRAM_THREADS, 7, 7},
    {"routed", PROGRAM_ROUTED, 13, 13},   {"pooled", PROGRAM_POOLED, 11, 13}, {"split", PROGRAM_SPLIT, 11, 13}};

TEST_EACH(facade_faults, out_of_memory_at_every_call, faulty_t, faulty) {
    every_call_fails(row->strategy, STRATA_E_NO_MEMORY, row->out_of_memory * STRIDE);
}
TEST_EACH(facade_faults, a_refusal_at_every_call, faulty_t, faulty) {
    every_call_fails(row->strategy, STRATA_E_DEVICE, row->refusal * STRIDE);
}

/* What is preallocated is asked for at open: either of the two chunks may be refused. */
TEST(facade_faults, a_refused_preallocation_fails_the_open) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = rig_strategy(PROGRAM_POOLED, NULL, 0);
    static const char *const options[] = {"auto_growth.small_preallocate: 1MiB: ", "auto_growth.preallocate: 4MiB: "};
    for (uint64_t k = 1; k <= 3 && !strata_test_has_failed(); k++) {
        rig_t rig;
        strata_t s = 5;
        rig_open_devices(&rig, strategy, &DEVICE);
        ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_malloc, k, false, STRATA_E_NO_MEMORY));
        strata_status_t status = strata_facade_open_on(strategy, rig.devices, rig.count, 0, &s);
        EXPECT_EQ(status, k == 3 ? STRATA_OK : STRATA_E_NO_MEMORY);
        if (k < 3) EXPECT_CONTAINS(strata_last_error()->text, options[k - 1]);
        if (k < 3) EXPECT_EQ(s, 5);
        rig.s = s;
        if (status == STRATA_OK) EXPECT_EQ(rig_figures(&rig).reserved_bytes, 5 * MIB);
        if (status == STRATA_OK) rig_close(&rig);
        else rig_end(&rig);
    }
}

/* ---- a lost device ---- */

/* The facade closes by force while the device is lost; what it could not give back the simulated device still has. */
static void close_lost(rig_t *rig) {
    strata_t closed = rig->s;
    EXPECT_OK(strata_close(rig->s, STRATA_CLOSE_FORCE, NULL, NULL));
    EXPECT_STATUS(STRATA_E_STALE, strata_release(closed, rig->gpu, NULL));
    strata_device_close(rig->devices[0]);
    strata_sim_drop(rig->world);
}

static void lose_the_device(strata_strategy_t *strategy, uint64_t k) {
    rig_t rig;
    program_t program;
    rig_open_on(&rig, strategy, &DEVICE, 0);
    program_begin(&program, &rig);
    program.tolerated = STRATA_E_DEVICE_LOST;
    uint64_t lost = strata_sim_calls(rig.devices[0]) + k, began = strata_real_now();
    ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_DEVICE_CALLS, k, false, STRATA_E_DEVICE_LOST));
    program_run(&program, PROGRAM_LENGTH);
    strata_block_t block;
    while (strata_sim_calls(rig.devices[0]) < lost) (void)strata_stream_synchronize(rig.s, rig.gpu, program.streams[0]);
    EXPECT_STATUS(STRATA_E_DEVICE_LOST, strata_allocate(rig.s, rig.gpu, program.streams[0], 64 * MIB, &block));
    EXPECT_LT(strata_real_now() - began, 5ull * 1000 * 1000 * 1000);
    while (program.live > 0) {
        program.live--;
        EXPECT_OK(strata_free(rig.s, program.blocks[program.live].block.ref));
    }
    EXPECT_OK(strata_validate(rig.s));
    close_lost(&rig);
    if (strata_test_has_failed()) FAIL_TEST("so far with k = %llu", (unsigned long long)k);
}

TEST_EACH(facade_faults, a_lost_device_is_told_and_closed, faulty_t, faulty) {
    strata_strategy_t *strategy = strategy_of(row->strategy);
    uint64_t calls = calls_of_a_run(strategy);
    for (uint64_t k = 1; k <= calls && !strata_test_has_failed(); k += (row->out_of_memory + 8) * STRIDE)
        lose_the_device(strategy, k);
    strata_strategy_delete(strategy);
}
