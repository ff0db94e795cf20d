/* The threads that use the library: a waiter may only give up at once when every other one is waiting too. */
#ifndef STRATA_ALLOCATION_THREADS_H
#define STRATA_ALLOCATION_THREADS_H

#include <stdbool.h>
#include <stdint.h>

/* 0 until the thread is registered; in a child of fork() 0 for ever, because another thread may hold a lock there for ever. */
extern _Thread_local uint64_t strata_threads_own __attribute__((tls_model("initial-exec")));
/* The same, but 0 while the thread is inside an operator of any facade: its calls by handle are no hits then. */
extern _Thread_local uint64_t strata_threads_plain __attribute__((tls_model("initial-exec")));
void strata_threads_set_plain(bool plain);
/* Returns true if the process has threads that have never called the library. Their first call may be a free. */
bool strata_threads_has_strangers(void);
/* The calling thread serves the library itself: it has a number, and is not counted among those that may free. */
void strata_threads_stand_apart(void);
/* This process is a child: none of its threads is registered from now on. */
void strata_threads_forked(void);
uint32_t strata_threads_registered(void);
/* Whether the thread of a number is still alive. */
bool strata_threads_is_alive(uint64_t number);
/* How many have exited so far. If the number has not moved, those that were alive still are. */
uint64_t strata_threads_exits(void);
uint64_t strata_threads_enrol(void);
/* A number of the calling thread, never 0 and never given twice. The first call registers the thread until it exits; in a child of
 * fork() each call returns another number. */
static inline uint64_t strata_threads_self(void) {
    uint64_t own = strata_threads_own;
    return __builtin_expect(own != 0, 1) ? own : strata_threads_enrol();
}

#endif
