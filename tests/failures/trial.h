/* One failure on one subject: what fails, at which time, once or from then on; and every such failure on every subject.
 *
 * An ordinary run tries a few of each; STRATA_FAILURES_STRIDE=1 tries all, n every n-th. STRATA_FAILURES_ONLY=text: only those
 * subjects whose name holds the text. */
#ifndef STRATA_TESTS_FAILURES_TRIAL_H
#define STRATA_TESTS_FAILURES_TRIAL_H

#include "tests/failures/program.h"

enum { TRIAL_TRIED = STRIDE == 1 ? 2 : 1 }; /* of each count, in an ordinary run */

extern const strata_sim_options_t trial_devices;

/* What fails. */
typedef enum trial_cause { TRIAL_DEVICE_CALL, TRIAL_HOST_MEMORY } trial_cause_t;

typedef struct trial_tally {
    uint64_t subjects, runs, injected, quarantined;
} trial_tally_t;

typedef struct trial {
    failing_subject_t *subject;
    uint64_t number; /* of the subject */
    trial_cause_t cause;
    strata_status_t fault;
    uint64_t k;
    bool onward;
    trial_tally_t *tally;
} trial_t;

/* With what its facade is opened. The programs renew their streams and forget them first, so handles may be checked: on every
 * fourth subject alone, since a check is a device call more, and so a k more, at each allocation. */
uint32_t trial_flags(const trial_t *trial);
/* How often the first device, or the process, has done what is to fail. */
uint64_t trial_count(const trial_t *trial, rig_t *rig);
void trial_arm(const trial_t *trial, rig_t *rig);
/* All is well again; `first`: the count at which the failures began. Asks neither the device nor the host for anything. */
void trial_disarm(const trial_t *trial, rig_t *rig, uint64_t first);
/* Whether the first device may have kept memory: what it refuses from then on, or is lost with. Having failed once, it keeps none. */
bool trial_may_keep(const trial_t *trial);
/* Physical memory that a device has given. */
uint64_t trial_used(strata_device_t *device);
/* Nor anything else. */
void trial_expect_nothing_held(strata_device_t *device);
/* The devices of a rig whose facade is closed, whatever they kept. */
void trial_end_devices(rig_t *rig);
/* Names the trial after what has failed the test. */
void trial_report(const trial_t *trial);

/* Every how many-th of `count` is tried, and the first: each subject begins elsewhere, so that the subjects together try them
 * all sooner. */
uint64_t trial_stride(uint64_t count);
uint64_t trial_first(const trial_t *trial, uint64_t stride);

/* Runs `once` with each k up to `count`, failing once and, where `onward`, from then on. */
typedef void (*trial_fn)(const trial_t *trial);
void trial_each(trial_t *trial, uint64_t count, bool onward, trial_fn once);

/* Every subject goes the road; what was tried is printed. */
typedef void (*trial_road_fn)(trial_t *trial);
void trial_on_every_subject(trial_road_fn road, trial_cause_t cause, strata_status_t fault);

#endif
