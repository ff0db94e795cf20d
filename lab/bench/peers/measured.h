/* Times and counts the measured part of a workload. */
#ifndef STRATA_BENCH_PEERS_MEASURED_H
#define STRATA_BENCH_PEERS_MEASURED_H

#include <stdbool.h>
#include <stdint.h>

/* Switches callgrind's counting on or off, if valgrind runs the program. It is in counted.c, or in
 * uncounted.c if valgrind's header is missing. */
void workload_count_instructions(bool on);
/* Returns nanoseconds of the real clock. */
double workload_now(void);
/* Calls body(count) and returns its time in nanoseconds. Instructions are counted only in here. */
double workload_measured(void (*body)(uint64_t count), uint64_t count);

#endif
