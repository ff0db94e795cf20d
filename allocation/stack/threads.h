/* The threads that use the library: a waiter may only give up at once when every other one is waiting too. */
#ifndef STRATA_ALLOCATION_THREADS_H
#define STRATA_ALLOCATION_THREADS_H

#include <stdbool.h>
#include <stdint.h>

/* 0 until the thread is counted in. */
extern _Thread_local uint64_t strata_threads_own __attribute__((tls_model("initial-exec")));
uint32_t strata_threads_registered(void);
/* Whether the thread of a number has not exited yet. */
bool strata_threads_is_alive(uint64_t number);
/* How many have exited so far: where it has not moved, those that were alive are. */
uint64_t strata_threads_exits(void);
uint64_t strata_threads_enrol(void);
/* A number of the calling thread, never 0, never given twice. The first call counts the thread in until it exits. */
static inline uint64_t strata_threads_self(void) {
    uint64_t own = strata_threads_own;
    return __builtin_expect(own != 0, 1) ? own : strata_threads_enrol();
}

#endif
