/* Every failure in turn, on every layer and preset: each device call and each host allocation of a program fails, once and from
 * then on; nothing is lost, and the program goes on when all is well again. */
#include "tests/failures/trial.h"
#include "tests/harness/test.h"

enum { BROKEN_OPERATIONS = 40 };

/* How often a program without faults does what is to fail. */
static uint64_t count_of_a_run(const trial_t *trial) {
    rig_t rig;
    failing_program_t program;
    rig_open_on(&rig, trial->subject->strategy, &trial_devices, trial_flags(trial));
    failing_program_begin(&program, &rig);
    uint64_t before = trial_count(trial, &rig);
    for (int i = 0; i < FAILING_OPERATIONS && !strata_test_has_failed(); i++) failing_program_step(&program);
    uint64_t count = trial_count(trial, &rig) - before;
    failing_program_end(&program);
    EXPECT_EQ(failing_program_quarantined(&program), 0);
    rig_close(&rig);
    return count;
}

static void run_failing(const trial_t *trial) {
    rig_t rig;
    failing_program_t program;
    rig_open_on(&rig, trial->subject->strategy, &trial_devices, trial_flags(trial));
    failing_program_begin(&program, &rig);
    program.tolerated = trial->cause == TRIAL_HOST_MEMORY ? STRATA_E_HOST_MEMORY : trial->fault;
    /* A simulated device that has no host memory says so in its own words. */
    program.tolerated_too = trial->cause == TRIAL_HOST_MEMORY ? STRATA_E_DEVICE : trial->fault;
    uint64_t first = trial_count(trial, &rig) + trial->k;
    trial_arm(trial, &rig);
    int done = 0;
    for (int broken = 0; done < FAILING_OPERATIONS && broken < BROKEN_OPERATIONS && !strata_test_has_failed(); done++) {
        failing_program_step(&program);
        if (trial_count(trial, &rig) >= first) broken++;
    }
    failing_program_check(&program);
    trial_disarm(trial, &rig, first);
    program.tolerated = program.tolerated_too = STRATA_OK;
    for (; done < FAILING_OPERATIONS && !strata_test_has_failed(); done++) failing_program_step(&program);
    trial->tally->quarantined += failing_program_quarantined(&program) > 0;
    failing_program_end(&program);
    rig_close(&rig);
    trial_report(trial);
}

/* The last k may not be met: what a process allocates once is in the first count alone. */
static void run_road(trial_t *trial) {
    uint64_t runs = trial->tally->runs, injected = trial->tally->injected;
    trial_each(trial, count_of_a_run(trial), true, run_failing);
    bool several = trial->tally->runs >= runs + 4;
    if (several && !strata_test_has_failed()) EXPECT_GE(trial->tally->injected, injected + 2);
}

/* ---- a lost device ---- */

/* What the lost device could not take back it still has. */
static void close_lost(rig_t *rig) {
    EXPECT_OK(strata_validate(rig->s));
    EXPECT_OK(strata_close(rig->s, STRATA_CLOSE_FORCE, NULL, NULL));
    strata_block_t block;
    EXPECT_STATUS(STRATA_E_STALE, strata_allocate(rig->s, rig->gpu, NULL, 8, &block));
    trial_end_devices(rig);
}

static void run_losing(const trial_t *trial) {
    rig_t rig;
    failing_program_t program;
    strata_block_t block = {.ref = 77}, other = {.ref = 0};
    rig_open_on(&rig, trial->subject->strategy, &trial_devices, trial_flags(trial));
    failing_program_begin(&program, &rig);
    uint64_t first = trial_count(trial, &rig) + trial->k, began = strata_real_now();
    trial_arm(trial, &rig);
    program.tolerated = program.tolerated_too = STRATA_E_DEVICE_LOST;
    for (int done = 0; done < FAILING_OPERATIONS && !strata_test_has_failed(); done++) {
        failing_program_step(&program);
        program.lost = trial_count(trial, &rig) >= first;
    }
    /* What a cache took at once when all was well it may serve still. */
    strata_status_t status = strata_allocate(rig.s, rig.gpu, program.streams[0], 40 * MIB, &block);
    if (status == STRATA_OK) EXPECT_OK(strata_free(rig.s, block.ref));
    else EXPECT_TRUE(status == STRATA_E_DEVICE_LOST && block.ref == 77);
    EXPECT_STATUS(STRATA_E_DEVICE_LOST, strata_stream_synchronize(rig.s, rig.gpu, program.streams[0]));
    /* The other device is well. */
    EXPECT_OK(strata_allocate(rig.s, strata_gpu(1), NULL, 30 * MIB, &other));
    EXPECT_OK(strata_free(rig.s, other.ref));
    failing_program_free_all(&program);
    EXPECT_LT(strata_real_now() - began, 20ull * 1000 * 1000 * 1000);
    trial->tally->runs++;
    trial->tally->injected += trial_count(trial, &rig) - first + 1;
    close_lost(&rig);
    trial_report(trial);
}

static void lose_road(trial_t *trial) { trial_each(trial, count_of_a_run(trial), false, run_losing); }

/* ---- all of them ---- */

TEST(failures, out_of_memory_at_every_device_call) { trial_on_every_subject(run_road, TRIAL_DEVICE_CALL, STRATA_E_NO_MEMORY); }

TEST(failures, a_refusal_at_every_device_call) { trial_on_every_subject(run_road, TRIAL_DEVICE_CALL, STRATA_E_DEVICE); }
TEST(failures, the_device_lost_at_every_call) { trial_on_every_subject(lose_road, TRIAL_DEVICE_CALL, STRATA_E_DEVICE_LOST); }
TEST(failures, no_host_memory_at_every_allocation) { trial_on_every_subject(run_road, TRIAL_HOST_MEMORY, STRATA_E_HOST_MEMORY); }
