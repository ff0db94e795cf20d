/* Each device call and each host allocation of an open fails, once and from then on: nothing is open then, the reason is told,
 * nothing is left behind, and the next open on the same devices serves. */
#include "facade/open/life.h"
#include "tests/failures/trial.h"
#include "tests/harness/test.h"

enum { STRIDE_OF_OPENS = STRIDE == 1 ? 17 : 61, MOST = 5000 };

static void serve_and_close(rig_t *rig, uint64_t kept) {
    strata_block_t block = rig_allocate(rig, NULL, 1000);
    EXPECT_OK(strata_free(rig->s, block.ref));
    EXPECT_OK(strata_validate(rig->s));
    EXPECT_OK(strata_close(rig->s, STRATA_CLOSE_WAIT, NULL, NULL));
    EXPECT_EQ(trial_used(rig->devices[0]), kept);
    trial_expect_nothing_held(rig->devices[1]);
}

/* Whether the open met its k. */
static bool open_failing(const trial_t *trial) {
    rig_t rig;
    rig_open_devices(&rig, trial->subject->strategy, &trial_devices);
    rig.s = 5;
    uint64_t first = trial_count(trial, &rig) + trial->k;
    trial_arm(trial, &rig);
    strata_status_t status = strata_facade_open_on(rig.strategy, rig.devices, rig.count, trial_flags(trial), &rig.s);
    bool met = trial_count(trial, &rig) >= first;
    trial_disarm(trial, &rig, first);
    EXPECT_EQ(status, met ? trial->fault : STRATA_OK);
    uint64_t kept = 0;
    if (status != STRATA_OK) {
        EXPECT_EQ(strata_last_error()->status, status);
        EXPECT_NE(strata_last_error()->text[0], '\0');
        EXPECT_EQ(rig.s, 5);
        kept = trial_used(rig.devices[0]);
        if (!trial_may_keep(trial)) trial_expect_nothing_held(rig.devices[0]);
        trial_expect_nothing_held(rig.devices[1]);
        EXPECT_OK(strata_facade_open_on(rig.strategy, rig.devices, rig.count, trial_flags(trial), &rig.s));
    }
    if (!strata_test_has_failed()) serve_and_close(&rig, kept);
    trial_end_devices(&rig);
    trial_report(trial);
    return met;
}

/* Until an open does not meet its k. Where not every k is tried, every second one fails from then on. */
static void open_road(trial_t *trial) {
    bool both = trial_stride(2 * TRIAL_TRIED) == 1 && trial->fault != STRATA_E_DEVICE_LOST, met = true; /* lost is for good */
    /* An open asks the device little. */
    uint64_t stride = trial->cause == TRIAL_DEVICE_CALL ? 1 : trial_stride(STRIDE_OF_OPENS * TRIAL_TRIED);
    uint64_t k = trial_first(trial, stride);
    for (; met && k < MOST && !strata_test_has_failed(); k += stride) {
        trial->k = k;
        trial->onward = k / stride % 2;
        met = open_failing(trial);
        trial->onward = !trial->onward;
        if (met && both) (void)open_failing(trial);
    }
    EXPECT_LT(k, MOST);
}

TEST(failures, opening_without_host_memory) { trial_on_every_subject(open_road, TRIAL_HOST_MEMORY, STRATA_E_HOST_MEMORY); }
TEST(failures, opening_on_a_device_without_memory) { trial_on_every_subject(open_road, TRIAL_DEVICE_CALL, STRATA_E_NO_MEMORY); }

TEST(failures, opening_on_a_device_that_refuses) { trial_on_every_subject(open_road, TRIAL_DEVICE_CALL, STRATA_E_DEVICE); }
TEST(failures, opening_on_a_device_that_is_lost) { trial_on_every_subject(open_road, TRIAL_DEVICE_CALL, STRATA_E_DEVICE_LOST); }
