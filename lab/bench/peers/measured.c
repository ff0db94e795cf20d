#include "lab/bench/peers/measured.h"

#include <time.h>

double workload_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

double workload_measured(void (*body)(uint64_t count), uint64_t count) {
    workload_count_instructions(true);
    double began = workload_now();
    body(count);
    double took = workload_now() - began;
    workload_count_instructions(false);
    return took;
}
