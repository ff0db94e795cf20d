/* What the fake driver has counted since the process began. */
#ifndef STRATA_BENCH_PEERS_COUNTS_H
#define STRATA_BENCH_PEERS_COUNTS_H

#include <stdint.h>

typedef struct driver_counts {
    uint64_t calls; /* for memory, virtual memory and events */
    uint64_t held, peak; /* bytes of the device that somebody has: now, and at most */
} driver_counts_t;

/* Exported by the fake libcuda.so.1 alone: a program finds it by name, or learns that its driver is a real one. */
typedef driver_counts_t (*driver_counts_fn)(void);
#define DRIVER_COUNTS "driver_counts"

#endif
