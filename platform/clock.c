#include "platform/clock.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

uint64_t strata_real_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t real_now(strata_clock_t *self) {
    (void)self;
    return strata_real_now();
}

static void real_sleep_until(strata_clock_t *self, uint64_t until) {
    (void)self;
    struct timespec end = {.tv_sec = (time_t)(until / 1000000000u), .tv_nsec = (long)(until % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR) {}
}

strata_clock_t *strata_real_clock(void) {
    static strata_clock_t clock = {.is_virtual = false, .now = real_now, .sleep_until = real_sleep_until};
    return &clock;
}
