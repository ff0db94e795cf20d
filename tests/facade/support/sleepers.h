/* Who waits for memory with nothing pending, seen from another thread in real time. */
#ifndef STRATA_TESTS_FACADE_SLEEPERS_H
#define STRATA_TESTS_FACADE_SLEEPERS_H

#include <unistd.h>

#include "tests/facade/support/fixture.h"

static inline bool has_sleeper(rig_t *rig) {
    strata_domain_t *domain = rig_domain(rig);
    strata_lock(&domain->lock);
    bool sleeps = domain->sleeping > 0;
    strata_unlock(&domain->lock);
    return sleeps;
}

/* Waits until somebody does; not for ever, so that a waiter that gives up fails its test alone. */
static inline void wait_for_sleeper(rig_t *rig) {
    bool sleeps = has_sleeper(rig);
    for (int i = 0; i < 4000 && !sleeps && !strata_test_has_failed(); i++) {
        usleep(1000);
        sleeps = has_sleeper(rig);
    }
    EXPECT_TRUE(sleeps);
}

#endif
