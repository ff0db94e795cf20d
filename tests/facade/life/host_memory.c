/* Each host allocation of the library fails in turn, at open and while a program runs. */
#include <stdio.h>
#include <stdlib.h>

#include "facade/open/life.h"
#include "platform/host/host_memory.h"
#include "tests/facade/support/program.h"
#include "tests/harness/owned.h"

static const strata_sim_options_t DEVICE = {.devices = 2, .capacity = 96 * MIB, .contents = true};

/* STRATA_FAILURES_STRIDE=1 asks for it where an ordinary run would try few. */
static bool tries_every_k(void) {
    const char *text = getenv("STRATA_FAILURES_STRIDE");
    return STRIDE == 1 || (text && strcmp(text, "1") == 0);
}

static void open_with_every_failure(const char *preset) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = rig_strategy(preset, NULL, 0);
    uint64_t k = 1;
    strata_status_t status = STRATA_E_HOST_MEMORY;
    RIG_BY(rig, rig_open_devices(&rig, strategy, &DEVICE));
    for (; status != STRATA_OK && k < 10000 && !strata_test_has_failed(); k++) {
        strata_t untouched = 5;
        strata_host_fail_at(k, 0);
        status = strata_facade_open_on(strategy, rig.devices, rig.count, 0, &untouched);
        strata_host_fail_at(0, 0);
        rig.s = untouched;
        if (status == STRATA_OK) break;
        EXPECT_EQ(status, STRATA_E_HOST_MEMORY);
        EXPECT_EQ(strata_last_error()->status, STRATA_E_HOST_MEMORY);
        EXPECT_EQ(untouched, 5);
    }
    printf("%s: open failed at each of %llu host allocations\n", strategy->name, (unsigned long long)k - 1);
    EXPECT_GT(k, 10);
    strata_block_t block = rig_allocate(&rig, NULL, 1000);
    EXPECT_OK(strata_free(rig.s, block.ref));
}

/* strata_open() itself: the strategy's text and the devices are made there. */
static void open_by_text_with_every_failure(const char *preset) {
    strata_open_options_t options = {
        .struct_size = sizeof options, .preset = preset, .devices = "sim", .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    strata_t s = 0;
    uint64_t k = 1, tried = 0;
    for (; k < 100000 && !strata_test_has_failed(); k += k < 40 || tries_every_k() ? 1 : STRIDE * 5, tried++) {
        strata_host_fail_at(k, 0);
        strata_status_t status = strata_open(&options, &s);
        strata_host_fail_at(0, 0);
        if (status == STRATA_OK) break;
        EXPECT_EQ(status, STRATA_E_HOST_MEMORY);
        EXPECT_EQ(strata_last_error()->status, STRATA_E_HOST_MEMORY);
        EXPECT_EQ(s, 0);
    }
    printf("%s: open failed at %llu of about %llu host allocations\n", preset, (unsigned long long)tried, (unsigned long long)k);
    EXPECT_NE(s, 0);
    if (s) EXPECT_OK(strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL));
}

TEST(facade_host_memory, each_allocation_of_open_by_text_fails) {
    const char *preset;
    for (size_t i = 0; (preset = strata_preset_name(i)) != NULL && !strata_test_has_failed(); i++)
        open_by_text_with_every_failure(preset);
}

static void run_with_failure(strata_strategy_t *strategy, uint64_t k, int onward) {
    rig_t rig;
    program_t program;
    rig_open_on(&rig, strategy, &DEVICE, 0);
    program_begin(&program, &rig);
    program.host_may_fail = true;
    program.tolerated = STRATA_E_DEVICE; /* what a simulated device says that has no host memory */
    strata_host_fail_at(k, onward);
    program_run(&program, PROGRAM_LENGTH / 2);
    strata_host_fail_at(0, 0);
    program_check(&program);
    program_run(&program, PROGRAM_LENGTH / 2);
    program_finish(&program);
    rig_close(&rig);
    if (strata_test_has_failed()) FAIL_TEST("so far with k = %llu, %s", (unsigned long long)k, onward ? "onward" : "once");
}

static void run_with_every_failure(const char *preset) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = rig_strategy(preset, NULL, 0);
    rig_t rig;
    program_t program;
    rig_open_on(&rig, strategy, &DEVICE, 0);
    program_begin(&program, &rig);
    uint64_t before = strata_host_allocations();
    program_run(&program, PROGRAM_LENGTH / 2);
    uint64_t made = strata_host_allocations() - before;
    program_finish(&program);
    rig_close(&rig);
    for (uint64_t k = 1; k <= made && !strata_test_has_failed(); k += STRIDE)
        for (int onward = 0; onward < 2; onward++) run_with_failure(strategy, k, onward);
    printf("%s: a run failed at each of %llu host allocations\n", strategy->name, (unsigned long long)made);
}

typedef struct hosted {
    const char *name, *strategy;
} hosted_t;

static const hosted_t hosted[] = {
    {"strata", "strata"},         {"paddle", "paddle"},     {"async", "cuda_malloc_async"}, {"pytorch", "pytorch"},
    {"tensorflow", "tensorflow"}, {"naive", PROGRAM_NAIVE}, {"threads", PROGRAM_THREADS},   {"routed", PROGRAM_ROUTED},
    {"pooled", PROGRAM_POOLED},   {"split", PROGRAM_SPLIT}, {"system", "system"},
};

TEST_EACH(facade_host_memory, each_allocation_of_open_fails, hosted_t, hosted) { open_with_every_failure(row->strategy); }
TEST_EACH(facade_host_memory, each_allocation_of_a_run_fails, hosted_t, hosted) { run_with_every_failure(row->strategy); }
