/* The host memory that the process holds, as the kernel counts it. That is the pages it has written, of
 * malloc and of mappings alike, in all layers. */
#ifndef STRATA_BENCH_HELD_H
#define STRATA_BENCH_HELD_H

#include <stdio.h>

/* Returns bytes, or a negative number if the system does not report them. */
static inline double held_bytes(void) {
    char line[128];
    double kib = -1;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    if (!file) return -1;
    while (kib < 0 && fgets(line, sizeof line, file))
        if (sscanf(line, "Anonymous: %lf kB", &kib) != 1) kib = -1;
    fclose(file);
    return kib < 0 ? -1 : kib * 1024;
}

#endif
