/* An injected clock: the real one, or the simulator's. */
#ifndef STRATA_PLATFORM_CLOCK_H
#define STRATA_PLATFORM_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define STRATA_NEVER UINT64_MAX

typedef struct strata_clock strata_clock_t;
struct strata_clock {
    bool is_virtual;
    /* virtual clocks only: a waiting thread polls repeatedly, as on a GPU, although the device can
     * predict when events pass */
    bool polls;
    /* Returns the calling thread's time in ns. */
    uint64_t (*now)(strata_clock_t *self);
    /* Lets the calling thread's time pass until `until`. A virtual clock jumps there at once and counts the difference as stall; a
     * real one sleeps. */
    void (*sleep_until)(strata_clock_t *self, uint64_t until);
};

/* Returns the real clock, CLOCK_MONOTONIC. */
strata_clock_t *strata_real_clock(void);
/* Returns CLOCK_MONOTONIC in ns, whatever clock is injected. For measurements, and for bounds that must
 * also hold in real time. */
uint64_t strata_real_now(void);

#endif
