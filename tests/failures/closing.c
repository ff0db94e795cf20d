/* Each device call of a close fails: the facade is closed all the same, and what the device takes back goes back. */
#include "facade/open/life.h"
#include "tests/failures/trial.h"
#include "tests/harness/test.h"

enum { STEPS = 100, BESIDE = MIB };

/* A facade that has served, and the other device too. Closed by force, it has live blocks, borrows and deferred frees. */
typedef struct closing {
    rig_t rig;
    failing_program_t program;
    strata_close_mode_t mode;
    uint64_t live, told;
} closing_t;

static void begin(closing_t *c, const trial_t *trial, strata_close_mode_t mode) {
    strata_block_t beside = {.ref = 0};
    *c = (closing_t){.mode = mode};
    rig_open_on(&c->rig, trial->subject->strategy, &trial_devices, trial_flags(trial));
    failing_program_begin(&c->program, &c->rig);
    EXPECT_OK(strata_allocate(c->rig.s, strata_gpu(1), NULL, BESIDE, &beside));
    for (int i = 0; i < STEPS && !strata_test_has_failed(); i++) failing_program_step(&c->program);
    c->live = c->program.live + 1;
    if (mode == STRATA_CLOSE_FORCE) return;
    failing_program_free_all(&c->program);
    EXPECT_OK(strata_free(c->rig.s, beside.ref));
    c->live = 0;
}

static void count_leak(const strata_leak_t *leak, void *context) {
    (void)leak;
    ++*(uint64_t *)context;
}

static void end(closing_t *c, strata_status_t status) {
    EXPECT_EQ(status, STRATA_OK);
    EXPECT_STATUS(STRATA_E_STALE, strata_validate(c->rig.s));
}

static uint64_t count_of_a_close(const trial_t *trial, strata_close_mode_t mode) {
    closing_t c;
    begin(&c, trial, mode);
    uint64_t before = trial_count(trial, &c.rig);
    end(&c, strata_close(c.rig.s, mode, count_leak, &c.told));
    uint64_t count = trial_count(trial, &c.rig) - before;
    EXPECT_EQ(c.told, c.live);
    rig_end(&c.rig);
    return count;
}

/* The next facade on the same devices serves. */
static void serve_again(closing_t *c) {
    EXPECT_OK(strata_facade_open_on(c->rig.strategy, c->rig.devices, c->rig.count, 0, &c->rig.s));
    if (strata_test_has_failed()) return;
    strata_block_t block = rig_allocate(&c->rig, NULL, 1000);
    EXPECT_OK(strata_free(c->rig.s, block.ref));
    EXPECT_OK(strata_close(c->rig.s, STRATA_CLOSE_WAIT, NULL, NULL));
}

static void close_failing(const trial_t *trial, strata_close_mode_t mode) {
    closing_t c;
    begin(&c, trial, mode);
    uint64_t first = trial_count(trial, &c.rig) + trial->k;
    trial_arm(trial, &c.rig);
    strata_status_t status = strata_close(c.rig.s, mode, count_leak, &c.told);
    EXPECT_GE(trial_count(trial, &c.rig), first);
    trial_disarm(trial, &c.rig, first);
    end(&c, status);
    if (trial->cause == TRIAL_DEVICE_CALL) EXPECT_EQ(c.told, c.live);
    if (!trial_may_keep(trial)) trial_expect_nothing_held(c.rig.devices[0]);
    trial_expect_nothing_held(c.rig.devices[1]);
    if (!trial_may_keep(trial)) serve_again(&c);
    trial_end_devices(&c.rig);
    trial_report(trial);
}

static void wait_and_close(const trial_t *trial) { close_failing(trial, STRATA_CLOSE_WAIT); }
static void close_by_force(const trial_t *trial) { close_failing(trial, STRATA_CLOSE_FORCE); }

static void close_road(trial_t *trial) {
    bool onward = trial->fault != STRATA_E_DEVICE_LOST; /* a lost device stays lost */
    trial_each(trial, count_of_a_close(trial, STRATA_CLOSE_WAIT), onward, wait_and_close);
    trial_each(trial, count_of_a_close(trial, STRATA_CLOSE_FORCE), onward, close_by_force);
}

TEST(failures, a_refusal_at_every_call_of_a_close) { trial_on_every_subject(close_road, TRIAL_DEVICE_CALL, STRATA_E_DEVICE); }
TEST(failures, the_device_lost_at_every_call_of_a_close) {
    trial_on_every_subject(close_road, TRIAL_DEVICE_CALL, STRATA_E_DEVICE_LOST);
}

TEST(failures, closing_without_host_memory) { trial_on_every_subject(close_road, TRIAL_HOST_MEMORY, STRATA_E_HOST_MEMORY); }
