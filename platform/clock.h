/* Time, injected: the real clock, or the simulator's. */
#ifndef STRATA_PLATFORM_CLOCK_H
#define STRATA_PLATFORM_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define STRATA_NEVER UINT64_MAX

typedef struct strata_clock strata_clock_t;
struct strata_clock {
    bool is_virtual;
    bool polls; /* virtual: who waits asks again and again, as on a GPU, though the device knows when events pass */
    /* The calling thread's time, ns. */
    uint64_t (*now)(strata_clock_t *self);
    /* Lets the calling thread's time pass until `until`. A virtual clock jumps there at once and counts the difference as stall; a
     * real one sleeps. */
    void (*sleep_until)(strata_clock_t *self, uint64_t until);
};

/* CLOCK_MONOTONIC. */
strata_clock_t *strata_real_clock(void);
/* CLOCK_MONOTONIC, whatever clock is injected: for measurements, and for bounds that must also hold in real time. */
uint64_t strata_real_now(void);

#endif
