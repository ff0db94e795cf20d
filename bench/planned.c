/* What a pair of allocate and free costs in a program that repeats its steps, from the fourth on: under `planned`, which follows a plan by
 * then, where the program tells its steps (strata_step()) and where it does not, and under `strata`.
 *
 *     bench/planned [--json]               medians of nine rounds of the repeating traces; the ways take turns
 *     bench/planned TRACE WAY STEPS        nothing but steps of a trace, to count instructions: less those of fewer steps.
 *                                          WAY: planned, untold, strata
 *
 * What a trace leaves is freed at the end of its step. */
#include <stdlib.h>
#include <string.h>

#include "bench/simulated.h"
#include "platform/clock.h"
#include "trace/trace.h"

enum { ROUNDS = 9, SETTLED = 3, LEAST_PAIRS = 200000, WAYS = 3 };

typedef struct way {
    const char *name, *preset;
    bool tells;
} way_t;
static const way_t ways[WAYS] = {{"planned", "planned", true}, {"untold", "planned", false}, {"strata", "strata", true}};
static const char *const traces[] = {"ddp-2rank-v100.csv.gz", "lm-benchmark-step.csv.gz", "lm-medium-ctx256-training.csv.gz",
                                     "tinytorch-mnist.csv"};
enum { TRACES = sizeof traces / sizeof *traces };

typedef struct program {
    strata_trace_t *trace;
    strata_ref_t *refs; /* by lifetime; 0: none */
    uint64_t pairs; /* of a step */
} program_t;

static program_t load(const char *name) {
    program_t program = {0};
    char path[1024];
    snprintf(path, sizeof path, "%s%s", strchr(name, '/') ? "" : STRATA_SOURCE_DIR "/traces/", name);
    must(strata_trace_load(path, &program.trace));
    program.refs = calloc(program.trace->lifetimes, sizeof *program.refs);
    for (size_t i = 0; i < program.trace->count; i++) program.pairs += program.trace->events[i].op == STRATA_TRACE_alloc;
    if (program.refs) return program;
    fprintf(stderr, "no host memory\n");
    exit(1);
}

static void end(program_t *program) {
    strata_trace_delete(program->trace);
    free(program->refs);
}

static void do_step(strata_t facade, const way_t *way, const program_t *program) {
    const strata_trace_t *trace = program->trace;
    for (size_t i = 0; i < trace->count; i++) {
        const strata_trace_event_t *e = &trace->events[i];
        strata_block_t block;
        if (e->op == STRATA_TRACE_free) {
            must(strata_free(facade, program->refs[e->id]));
            program->refs[e->id] = 0;
        } else if (e->op == STRATA_TRACE_alloc) {
            must(strata_allocate(facade, strata_gpu(0), NULL, e->value, &block));
            program->refs[e->id] = block.ref;
        }
    }
    for (uint32_t id = 0; id < trace->lifetimes; id++) {
        if (program->refs[id]) must(strata_free(facade, program->refs[id]));
        program->refs[id] = 0;
    }
    if (way->tells) must(strata_step(facade));
}

static void settle(strata_t facade, const way_t *way, const program_t *program) {
    if (way->tells) must(strata_step(facade));
    for (int i = 0; i < SETTLED; i++) do_step(facade, way, program);
}

static double pair_ns(strata_t facade, const way_t *way, const program_t *program) {
    uint64_t steps = LEAST_PAIRS / program->pairs + 1, began = strata_real_now();
    for (uint64_t i = 0; i < steps; i++) do_step(facade, way, program);
    return (double)(strata_real_now() - began) / (double)(steps * program->pairs);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *name, double medians[WAYS]) {
    program_t program = load(name);
    strata_t facades[WAYS];
    double runs[WAYS][ROUNDS];
    for (int w = 0; w < WAYS; w++) {
        facades[w] = simulated_open(ways[w].preset, STRATA_SIM_UNLIMITED);
        settle(facades[w], &ways[w], &program);
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int w = 0; w < WAYS; w++) runs[w][round] = pair_ns(facades[w], &ways[w], &program);
    for (int w = 0; w < WAYS; w++) {
        qsort(runs[w], ROUNDS, sizeof runs[w][0], by_value);
        medians[w] = runs[w][ROUNDS / 2];
        must(strata_close(facades[w], 0, NULL, NULL));
    }
    end(&program);
}

static void print_row(const char *trace, const double ns[WAYS], bool json) {
    printf(json ? "\"%s\":{" : "%-34s", trace);
    for (int w = 0; w < WAYS; w++) {
        if (json) printf("%s\"%s_ns\":%.1f", w ? "," : "", ways[w].name, ns[w]);
        else printf(" %9.1f", ns[w]);
    }
    if (json) printf("}");
}

static void print_all(bool json) {
    if (!json) printf("%-34s %9s %9s %9s\n", "ns a pair", ways[0].name, ways[1].name, ways[2].name);
    for (int i = 0; i < TRACES; i++) {
        double ns[WAYS];
        measure(traces[i], ns);
        if (json) printf("%s", i ? "," : "{");
        print_row(traces[i], ns, json);
        if (!json) printf("\n");
    }
    if (json) printf("}\n");
}

/* NULL: none has that name. */
static const way_t *way_of(const char *name) {
    for (int w = 0; w < WAYS; w++)
        if (strcmp(ways[w].name, name) == 0) return &ways[w];
    return NULL;
}

int main(int argc, char **argv) {
    bool json = argc == 2 && strcmp(argv[1], "--json") == 0;
    if (argc == 1 || json) {
        print_all(json);
        return 0;
    }
    const way_t *way = argc == 4 ? way_of(argv[2]) : NULL;
    if (!way) {
        fprintf(stderr, "usage: planned [--json | TRACE planned|untold|strata STEPS]\n");
        return 2;
    }
    program_t program = load(argv[1]);
    strata_t facade = simulated_open(way->preset, STRATA_SIM_UNLIMITED);
    settle(facade, way, &program);
    for (long i = strtol(argv[3], NULL, 10); i > 0; i--) do_step(facade, way, &program);
    end(&program);
    return 0;
}
