/* Where what is measured is done. */
#ifndef STRATA_BENCH_PEERS_MEASURED_H
#define STRATA_BENCH_PEERS_MEASURED_H

#include <stdbool.h>
#include <stdint.h>

/* Where valgrind runs the program: whether callgrind counts from here on. counted.c, or uncounted.c where valgrind's header is missing. */
void workload_count_instructions(bool on);
/* Nanoseconds of the real clock. */
double workload_now(void);
/* Does body(count) and returns how long it took. Instructions are counted in here alone. */
double workload_measured(void (*body)(uint64_t count), uint64_t count);

#endif
