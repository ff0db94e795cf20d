/* Runs one workload through one peer, in its own process.
 *
 *     PROGRAM SETUP WORKLOAD [ARGUMENT]... [--runs N] [--count N]
 *
 * It prints one JSON object, or the reason why this peer does not support the workload. The object has the ns
 * per operation, as the median of N runs (5). It has the device calls before the first run and in it. It also
 * has the peaks of the bytes that the device gave and that the program requested. A run has `--count`
 * operations. The measured part runs inside workload_measured(), which switches callgrind on and off
 * (--instr-atstart=no). */
#include "lab/bench/peers/workload.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/bench/peers/driver/counts.h"
#include "lab/bench/peers/peer.h"

enum { MAX_RUNS = 99 };

uint64_t workload_requested, workload_operations = 1;

static const workload_t *const workloads[] = {&workload_pair,   &workload_live,    &workload_lent,
                                              &workload_remote, &workload_threads, &workload_trace};
enum { WORKLOADS = sizeof workloads / sizeof *workloads };

_Noreturn void workload_none(const char *reason) {
    printf("{\"none\":\"%s\"}\n", reason);
    exit(0);
}

/* Returns NULL if the driver is a real one, or there is none. */
static driver_counts_fn fake_counts(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    driver_counts_fn found = NULL;
    if (library) *(void **)&found = dlsym(library, DRIVER_COUNTS);
    return found;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print(const double *runs, int count, const driver_counts_t *before, const driver_counts_t *after) {
    printf("{\"ns\":%.2f", runs[count / 2]);
    if (after) {
        printf(",\"calls_before\":%llu,\"calls\":%llu,\"reserved\":%llu", (unsigned long long)before->calls,
               (unsigned long long)(after->calls - before->calls), (unsigned long long)after->peak);
    }
    printf(",\"requested\":%llu,\"operations\":%llu}\n", (unsigned long long)workload_requested,
           (unsigned long long)workload_operations);
}

static void run(const workload_t *workload, uint64_t count, int run_count) {
    double runs[MAX_RUNS];
    driver_counts_fn counts = fake_counts();
    driver_counts_t before = {0}, after = {0};
    if (counts) before = counts();
    for (int i = 0; i < run_count; i++) {
        runs[i] = workload->measure(count) / (double)(count * workload_operations);
        if (i == 0 && counts) after = counts();
    }
    qsort(runs, (size_t)run_count, sizeof *runs, by_value);
    print(runs, run_count, &before, counts ? &after : NULL);
}

static int usage(void) {
    fprintf(stderr, "usage: PROGRAM SETUP WORKLOAD [--runs N] [--count N]\nworkloads:\n");
    for (int i = 0; i < WORKLOADS; i++) fprintf(stderr, "  %s %s\n", workloads[i]->name, workloads[i]->arguments);
    return 2;
}

int main(int argc, char **argv) {
    const workload_t *found = NULL;
    for (int i = 0; i < WORKLOADS && argc > 2; i++)
        if (strcmp(argv[2], workloads[i]->name) == 0) found = workloads[i];
    if (!found || argc < 3 + found->argument_count) return usage();
    uint64_t count = found->count;
    int runs = 5;
    for (int i = 3 + found->argument_count; i < argc; i += 2) {
        if (i + 1 == argc) return usage();
        if (strcmp(argv[i], "--runs") == 0) runs = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--count") == 0) count = strtoull(argv[i + 1], NULL, 10);
        else return usage();
    }
    if (runs < 1 || runs > MAX_RUNS || count == 0 || !peer_open(argv[1])) return usage();
    found->prepare(argv + 3);
    run(found, count, runs);
    fflush(stdout);
    _Exit(0); /* the peer's work at the end of the process is not measured */
}
