/* The workloads of every peer. A workload is prepared once, and then measured in runs. */
#ifndef STRATA_BENCH_PEERS_WORKLOAD_H
#define STRATA_BENCH_PEERS_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct workload {
    const char *name, *arguments; /* for the usage */
    int argument_count;
    void (*prepare)(char **arguments);
    /* Does `count` operations and returns the nanoseconds. An operation is a pair of allocate and free. For a
     * trace, `count` is the number of passes, and an operation is a row. */
    double (*measure)(uint64_t count);
    uint64_t count; /* of a run, by default */
} workload_t;

/* Set by prepare. */
extern uint64_t workload_requested; /* peak of the bytes requested at once; 0 if unused */
extern uint64_t workload_operations; /* rows of a pass of a trace, else 1 */

extern const workload_t workload_pair, workload_live, workload_lent, workload_remote, workload_threads, workload_trace;

/* Ends the process with the reason why this peer does not support the workload. */
_Noreturn void workload_none(const char *reason);

#endif
