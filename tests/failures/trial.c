#include "tests/failures/trial.h"

#include <stdio.h>
#include <stdlib.h>

#include "platform/host/host_memory.h"
#include "tests/harness/test.h"

const strata_sim_options_t trial_devices = {.devices = 2, .capacity = 48 * MIB, .contents = true};

uint32_t trial_flags(const trial_t *trial) { return trial->number % 4 == 0 ? STRATA_OPEN_CHECK_STREAM_IDS : 0; }

uint64_t trial_count(const trial_t *trial, rig_t *rig) {
    return trial->cause == TRIAL_DEVICE_CALL ? strata_sim_calls(rig->devices[0]) : strata_host_allocations();
}

void trial_arm(const trial_t *trial, rig_t *rig) {
    if (trial->cause == TRIAL_HOST_MEMORY) strata_host_fail_at(trial->k, trial->onward);
    else EXPECT_OK(strata_sim_fail(rig->devices[0], STRATA_DEVICE_CALLS, trial->k, trial->onward, trial->fault));
}

void trial_disarm(const trial_t *trial, rig_t *rig, uint64_t first) {
    uint64_t count = trial_count(trial, rig);
    bool goes_on = trial->onward || trial->fault == STRATA_E_DEVICE_LOST;
    strata_host_fail_at(0, 0);
    strata_sim_clear_faults(rig->devices[0]);
    trial->tally->runs++;
    if (count >= first) trial->tally->injected += goes_on ? count - first + 1 : 1;
}

bool trial_may_keep(const trial_t *trial) {
    return trial->cause == TRIAL_DEVICE_CALL && (trial->onward || trial->fault == STRATA_E_DEVICE_LOST);
}

void trial_expect_nothing_held(strata_device_t *device) {
    char text[256];
    strata_sim_held_t held;
    strata_sim_held(device, &held);
    strata_sim_held_text(&held, text, sizeof text);
    EXPECT_STREQ(text, "");
}

uint64_t trial_used(strata_device_t *device) {
    strata_sim_figures_t figures;
    strata_sim_figures(device, &figures);
    return figures.used_bytes;
}

void trial_end_devices(rig_t *rig) {
    for (uint32_t i = 0; i < rig->count; i++) strata_device_close(rig->devices[i]);
    strata_sim_drop(rig->world);
}

void trial_report(const trial_t *trial) {
    if (!strata_test_has_failed()) return;
    FAIL_TEST("%s: %s at k = %llu, %s\n%s", trial->subject->name,
              trial->cause == TRIAL_HOST_MEMORY ? "no host memory" : strata_status_name(trial->fault), (unsigned long long)trial->k,
              trial->onward ? "onward" : "once", trial->subject->text);
}

uint64_t trial_stride(uint64_t count) {
    const char *text = getenv("STRATA_FAILURES_STRIDE");
    uint64_t stride = text ? strtoull(text, NULL, 10) : count / TRIAL_TRIED;
    return stride ? stride : 1;
}

uint64_t trial_first(const trial_t *trial, uint64_t stride) { return 1 + trial->number * 7919 % stride; }

void trial_each(trial_t *trial, uint64_t count, bool onward, trial_fn once) {
    uint64_t stride = trial_stride(count);
    trial_report(trial);
    for (uint64_t k = trial_first(trial, stride); k <= count && !strata_test_has_failed(); k += stride) {
        trial->k = k;
        for (int from_then_on = 0; from_then_on < 1 + onward && !strata_test_has_failed(); from_then_on++) {
            trial->onward = from_then_on != 0;
            once(trial);
        }
    }
}

void trial_on_every_subject(trial_road_fn road, trial_cause_t cause, strata_status_t fault) {
    failing_subjects_t subjects;
    trial_tally_t tally = {0};
    failing_subjects_make(&subjects);
    for (size_t i = 0; i < subjects.count && !strata_test_has_failed(); i++) {
        tally.subjects++;
        road(&(trial_t){.subject = &subjects.list[i], .number = i, .cause = cause, .fault = fault, .tally = &tally});
    }
    printf("failures: %llu subjects, %llu runs, %llu failures injected; memory was quarantined in %llu runs\n",
           (unsigned long long)tally.subjects, (unsigned long long)tally.runs, (unsigned long long)tally.injected,
           (unsigned long long)tally.quarantined);
    if (subjects.count > 0 && !strata_test_has_failed()) EXPECT_GT(tally.injected, 0);
    if (!getenv("STRATA_FAILURES_ONLY")) EXPECT_GT(subjects.count, 0);
    failing_subjects_drop(&subjects);
}
