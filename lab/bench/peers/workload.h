/* The workloads that every peer does. A workload is made ready once, and then measured in runs. */
#ifndef STRATA_BENCH_PEERS_WORKLOAD_H
#define STRATA_BENCH_PEERS_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct workload {
    const char *name, *arguments; /* for the usage */
    int argument_count;
    void (*prepare)(char **arguments);
    /* Does `count` operations (of a trace: as many passes) and returns the nanoseconds. An operation is a pair of allocate and free;
     * of a trace it is a row. */
    double (*measure)(uint64_t count);
    uint64_t count; /* of a run, if nothing else is said */
} workload_t;

/* Set by prepare. */
extern uint64_t workload_requested; /* peak of the bytes asked for at once; 0: it is of no interest */
extern uint64_t workload_operations; /* rows of a pass of a trace; 1 */

extern const workload_t workload_pair, workload_live, workload_lent, workload_remote, workload_threads, workload_trace;

/* Ends the process: this peer does not do that workload, and why. */
_Noreturn void workload_none(const char *reason);

#endif
