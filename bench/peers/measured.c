#include "bench/peers/measured.h"

#include <time.h>

/* Of a program that valgrind does not run these do nothing. Without its header nothing is counted. */
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_STOP_INSTRUMENTATION
#endif

double workload_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

double workload_measured(void (*body)(uint64_t count), uint64_t count) {
    CALLGRIND_START_INSTRUMENTATION;
    double began = workload_now();
    body(count);
    double took = workload_now() - began;
    CALLGRIND_STOP_INSTRUMENTATION;
    return took;
}
