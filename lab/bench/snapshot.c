/* Measures a snapshot of 1,000,000 blocks of 256 bytes in one place, of which every second one is freed.
 *
 *     lab/bench/snapshot [--strategy PRESET] [--json]             PRESET: strata. The median of nine snapshots; the place's
 *                                                                 streams wait for most of it
 *
 * The device is simulated. docs/contracts.md §8 requires 200 ms at most. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/bench/simulated.h"
#include "platform/clock.h"

enum { RUNS = 9, BLOCKS = 1000 * 1000 };

static strata_t facade;
static strata_place_t gpu;

static void open_facade(const char *preset) {
    facade = simulated_open(preset, 0);
    gpu = strata_gpu(0);
}

static void fill(void) {
    static strata_ref_t refs[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        strata_block_t block;
        must(strata_allocate(facade, gpu, NULL, 256, &block));
        refs[i] = block.ref;
    }
    for (size_t i = 0; i < BLOCKS; i += 2) must(strata_free(facade, refs[i]));
}

static void count(const strata_snapshot_row_t *row, void *context) {
    (void)row;
    ++*(size_t *)context;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    const char *preset = "strata";
    bool json = false, wrong = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) json = true;
        else if (i + 1 < argc && strcmp(argv[i], "--strategy") == 0) preset = argv[++i];
        else wrong = true;
    }
    if (wrong) {
        fprintf(stderr, "usage: snapshot [--strategy PRESET] [--json]\n");
        return 2;
    }
    double runs[RUNS];
    size_t rows = 0;
    open_facade(preset);
    fill();
    for (int run = 0; run < RUNS; run++) {
        uint64_t began = strata_real_now();
        rows = 0;
        must(strata_snapshot(facade, gpu, count, &rows));
        runs[run] = (double)(strata_real_now() - began) / 1e6;
    }
    qsort(runs, RUNS, sizeof *runs, by_value);
    printf(json ? "{\"strategy\":\"%s\",\"rows\":%zu,\"snapshot_ms\":%.1f}\n" : "%s, %zu rows\nsnapshot_ms %10.1f\n", preset, rows,
           runs[RUNS / 2]);
    return 0;
}
