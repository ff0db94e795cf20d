/* The threads that use the library, by number. A wait for memory may end early only if every other thread waits too. */
#ifndef STRATA_ALLOCATION_THREADS_H
#define STRATA_ALLOCATION_THREADS_H

#include <stdbool.h>
#include <stdint.h>

/* 0 until the thread is registered. In a child of fork() it stays 0, because locks of other threads may stay held forever there. */
extern _Thread_local uint64_t strata_threads_own __attribute__((tls_model("initial-exec")));
/* Equals strata_threads_own, but is 0 inside an operator of any facade. Calls by handle then take the slow path. */
extern _Thread_local uint64_t strata_threads_plain __attribute__((tls_model("initial-exec")));
void strata_threads_set_plain(bool plain);
/* Returns true if the process has threads that have never called the library. Their first call may be a free. */
bool strata_threads_has_unknown(void);
/* Gives a number to the calling thread, which works for the library itself. It does not count as a thread that may free. */
void strata_threads_enrol_internal(void);
/* Called in a child of fork(). No thread is registered there from now on. */
void strata_threads_forked(void);
uint32_t strata_threads_registered(void);
/* Returns whether the thread with this number is still alive. */
bool strata_threads_is_alive(uint64_t number);
/* Returns the number of exits so far. While it is unchanged, every thread that was alive still is. */
uint64_t strata_threads_exits(void);
uint64_t strata_threads_enrol(void);
/* Returns a number of the calling thread, never 0 and never given twice. The first call registers the thread until it exits. In a
 * child of fork() each call returns another number. */
static inline uint64_t strata_threads_self(void) {
    uint64_t own = strata_threads_own;
    return __builtin_expect(own != 0, 1) ? own : strata_threads_enrol();
}

#endif
