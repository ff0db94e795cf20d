/* The threads that use the library: a waiter may only give up at once when every other one is waiting too. */
#ifndef STRATA_ALLOCATION_THREADS_H
#define STRATA_ALLOCATION_THREADS_H

#include <stdint.h>

/* Counts the calling thread in until it exits; more than once is once. */
void strata_threads_register(void);
uint32_t strata_threads_registered(void);
/* A number of the calling thread, never 0, never given twice. */
uint64_t strata_threads_self(void);

#endif
