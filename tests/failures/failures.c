/* Every failure in turn, on every layer and preset: each device call and each host allocation of a program fails, once and from
 * then on; nothing is lost, and the program goes on when all is well again.
 *
 * An ordinary run tries a few of each; STRATA_FAILURES_STRIDE=1 tries all, n every n-th. STRATA_FAILURES_ONLY=text: only those
 * subjects whose name holds the text. */
#include <stdio.h>
#include <stdlib.h>

#include "platform/host_memory.h"
#include "tests/failures/program.h"
#include "tests/harness/test.h"

/* The program renews its streams and forgets them first. */
enum { CHECKED = STRATA_OPEN_CHECK_STREAM_IDS };
enum { BROKEN_OPERATIONS = 40, TRIED = STRIDE == 1 ? 2 : 1, OPENS = STRIDE == 1 ? 17 : 61 };

static const strata_sim_options_t DEVICE = {.devices = 2, .capacity = 48 * MIB, .contents = true};

/* What fails. */
typedef enum cause { DEVICE_CALL, HOST_MEMORY } cause_t;

typedef struct tally {
    uint64_t subjects, runs, injected, quarantined;
} tally_t;

typedef struct trial {
    failing_subject_t *subject;
    cause_t cause;
    strata_status_t fault;
    uint64_t k;
    bool onward;
    tally_t *tally;
} trial_t;

static uint64_t count_of(const trial_t *trial, rig_t *rig) {
    return trial->cause == DEVICE_CALL ? strata_sim_calls(rig->devices[0]) : strata_host_allocations();
}

static void arm(const trial_t *trial, rig_t *rig) {
    if (trial->cause == HOST_MEMORY) strata_host_fail_at(trial->k, trial->onward);
    else EXPECT_OK(strata_sim_fail(rig->devices[0], STRATA_DEVICE_CALLS, trial->k, trial->onward, trial->fault));
}

/* Counting the failures asks neither the device nor the host for anything. */
static void disarm(const trial_t *trial, rig_t *rig, uint64_t first) {
    uint64_t count = count_of(trial, rig);
    strata_host_fail_at(0, 0);
    strata_sim_clear_faults(rig->devices[0]);
    trial->tally->runs++;
    if (count >= first) trial->tally->injected += trial->onward ? count - first + 1 : 1;
}

static void tell(const trial_t *trial) {
    if (!strata_test_has_failed()) return;
    FAIL_TEST("%s: %s at k = %llu, %s\n%s", trial->subject->name,
              trial->cause == HOST_MEMORY ? "no host memory" : strata_status_name(trial->fault), (unsigned long long)trial->k,
              trial->onward ? "onward" : "once", trial->subject->text);
}

/* ---- the stride ---- */

static uint64_t stride_of(uint64_t count) {
    const char *text = getenv("STRATA_FAILURES_STRIDE");
    uint64_t stride = text ? strtoull(text, NULL, 10) : count / TRIED;
    return stride ? stride : 1;
}

/* Each subject begins elsewhere, so that the subjects together try them all sooner. */
static uint64_t first_of(uint64_t stride, uint64_t number) {
    return 1 + number * 7919 % stride;
}

/* ---- a program ---- */

/* How often a program without faults does what is to fail. */
static uint64_t count_of_a_run(const trial_t *trial) {
    rig_t rig;
    failing_program_t program;
    rig_open_on(&rig, trial->subject->strategy, &DEVICE, CHECKED);
    failing_program_begin(&program, &rig);
    uint64_t before = count_of(trial, &rig);
    for (int i = 0; i < FAILING_OPERATIONS && !strata_test_has_failed(); i++) failing_program_step(&program);
    uint64_t count = count_of(trial, &rig) - before;
    failing_program_end(&program);
    EXPECT_EQ(failing_program_quarantined(&program), 0);
    rig_close(&rig);
    return count;
}

static void run_failing(const trial_t *trial) {
    rig_t rig;
    failing_program_t program;
    rig_open_on(&rig, trial->subject->strategy, &DEVICE, CHECKED);
    failing_program_begin(&program, &rig);
    program.tolerated = trial->cause == HOST_MEMORY ? STRATA_E_HOST_MEMORY : trial->fault;
    /* A simulated device that has no host memory says so in its own words. */
    program.tolerated_too = trial->cause == HOST_MEMORY ? STRATA_E_DEVICE : trial->fault;
    uint64_t first = count_of(trial, &rig) + trial->k;
    arm(trial, &rig);
    int done = 0;
    for (int broken = 0; done < FAILING_OPERATIONS && broken < BROKEN_OPERATIONS && !strata_test_has_failed(); done++) {
        failing_program_step(&program);
        if (count_of(trial, &rig) >= first) broken++;
    }
    failing_program_check(&program);
    disarm(trial, &rig, first);
    program.tolerated = program.tolerated_too = STRATA_OK;
    for (; done < FAILING_OPERATIONS && !strata_test_has_failed(); done++) failing_program_step(&program);
    trial->tally->quarantined += failing_program_quarantined(&program) > 0;
    failing_program_end(&program);
    rig_close(&rig);
    tell(trial);
}

/* ---- a lost device ---- */

/* What the lost device could not take back it still has. */
static void close_lost(rig_t *rig) {
    EXPECT_OK(strata_validate(rig->s));
    EXPECT_OK(strata_close(rig->s, STRATA_CLOSE_FORCE, NULL, NULL));
    strata_block_t block;
    EXPECT_STATUS(STRATA_E_STALE, strata_allocate(rig->s, rig->gpu, NULL, 8, &block));
    for (uint32_t i = 0; i < rig->count; i++) strata_device_close(rig->devices[i]);
    strata_sim_drop(rig->world);
}

static void run_losing(const trial_t *trial) {
    rig_t rig;
    failing_program_t program;
    strata_block_t block = {.ref = 77}, other = {.ref = 0};
    rig_open_on(&rig, trial->subject->strategy, &DEVICE, CHECKED);
    failing_program_begin(&program, &rig);
    uint64_t first = count_of(trial, &rig) + trial->k, began = strata_real_now();
    arm(trial, &rig);
    program.tolerated = program.tolerated_too = STRATA_E_DEVICE_LOST;
    for (int done = 0; done < FAILING_OPERATIONS && !strata_test_has_failed(); done++) {
        failing_program_step(&program);
        program.lost = count_of(trial, &rig) >= first;
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
    trial->tally->injected += count_of(trial, &rig) - first + 1;
    close_lost(&rig);
    tell(trial);
}

/* ---- opening ---- */

/* Until an open does not meet its k. */
static void open_failing(trial_t *trial, uint64_t number) {
    rig_t rig;
    rig_open_devices(&rig, trial->subject->strategy, &DEVICE);
    strata_status_t status = STRATA_E_HOST_MEMORY;
    uint64_t stride = trial->cause == DEVICE_CALL ? 1 : stride_of(OPENS * TRIED); /* an open asks the device little */
    for (uint64_t k = first_of(stride, number); status != STRATA_OK && k < 5000 && !strata_test_has_failed(); k += stride) {
        trial->k = k;
        trial->onward = k / stride % 2;
        strata_t s = 5;
        uint64_t first = count_of(trial, &rig) + k;
        arm(trial, &rig);
        status = strata_facade_open_on(trial->subject->strategy, rig.devices, rig.count, CHECKED, &s);
        disarm(trial, &rig, first);
        rig.s = s;
        if (status == STRATA_OK) break;
        EXPECT_EQ(status, trial->fault);
        EXPECT_EQ(strata_last_error()->status, status);
        EXPECT_EQ(s, 5);
    }
    EXPECT_EQ(status, STRATA_OK);
    if (status == STRATA_OK) {
        strata_block_t block = rig_allocate(&rig, NULL, 1000);
        EXPECT_OK(strata_free(rig.s, block.ref));
        rig_close(&rig);
    }
    tell(trial);
}

/* ---- all of them ---- */

typedef enum road { OPEN, RUN, LOSE } road_t;

static void try_subject(failing_subject_t *subject, uint64_t number, road_t road, cause_t cause, strata_status_t fault,
                        tally_t *tally) {
    trial_t trial = {.subject = subject, .cause = cause, .fault = fault, .tally = tally};
    tally->subjects++;
    if (road == OPEN) {
        open_failing(&trial, number);
        return;
    }
    uint64_t count = count_of_a_run(&trial), stride = stride_of(count);
    tell(&trial);
    for (uint64_t k = first_of(stride, number); k <= count && !strata_test_has_failed(); k += stride) {
        trial.k = k;
        for (int onward = 0; onward < 2 && !strata_test_has_failed(); onward++) {
            trial.onward = onward != 0;
            if (road == RUN) run_failing(&trial);
            else if (!onward) run_losing(&trial);
        }
    }
}

static void each_in_turn(road_t road, cause_t cause, strata_status_t fault) {
    failing_subjects_t subjects;
    tally_t tally = {0};
    failing_subjects_make(&subjects);
    for (size_t i = 0; i < subjects.count && !strata_test_has_failed(); i++)
        try_subject(&subjects.list[i], i, road, cause, fault, &tally);
    printf("failures: %llu subjects, %llu runs, %llu failures injected; memory was quarantined in %llu runs\n",
           (unsigned long long)tally.subjects, (unsigned long long)tally.runs, (unsigned long long)tally.injected,
           (unsigned long long)tally.quarantined);
    failing_subjects_drop(&subjects);
}

TEST(failures, out_of_memory_at_every_device_call) { each_in_turn(RUN, DEVICE_CALL, STRATA_E_NO_MEMORY); }
TEST(failures, a_refusal_at_every_device_call) { each_in_turn(RUN, DEVICE_CALL, STRATA_E_DEVICE); }
TEST(failures, the_device_lost_at_every_call) { each_in_turn(LOSE, DEVICE_CALL, STRATA_E_DEVICE_LOST); }
TEST(failures, no_host_memory_at_every_allocation) { each_in_turn(RUN, HOST_MEMORY, STRATA_E_HOST_MEMORY); }
TEST(failures, opening_without_host_memory) { each_in_turn(OPEN, HOST_MEMORY, STRATA_E_HOST_MEMORY); }
TEST(failures, opening_on_a_device_without_memory) { each_in_turn(OPEN, DEVICE_CALL, STRATA_E_NO_MEMORY); }
TEST(failures, opening_on_a_device_that_refuses) { each_in_turn(OPEN, DEVICE_CALL, STRATA_E_DEVICE); }
