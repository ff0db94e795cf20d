/* The counts of the fake driver since the process began. */
#ifndef STRATA_BENCH_PEERS_COUNTS_H
#define STRATA_BENCH_PEERS_COUNTS_H

#include <stdint.h>

typedef struct driver_counts {
    uint64_t calls; /* for memory, virtual memory and events */
    uint64_t held, peak; /* bytes of the device in use, now and at the peak */
} driver_counts_t;

/* Exported only by the fake libcuda.so.1. A program looks it up by name. If it is missing, the driver is a real one. */
typedef driver_counts_t (*driver_counts_fn)(void);
#define DRIVER_COUNTS "driver_counts"

#endif
