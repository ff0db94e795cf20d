/* What the process holds of the host's memory, by what the kernel counts: pages that it has written, of malloc's and of mappings
 * alike, whichever layer they belong to. */
#ifndef STRATA_BENCH_HELD_H
#define STRATA_BENCH_HELD_H

#include <stdio.h>

/* Bytes; below 0: the system does not tell. */
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
