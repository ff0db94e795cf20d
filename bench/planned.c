/* What a pair of allocate and free costs in a program that repeats its steps, from the third on: under `planned`, which follows a plan by
 * then, and under `strata`.
 *
 *     bench/planned [--json]               medians of nine rounds of the repeating traces; the presets take turns
 *     bench/planned TRACE PRESET STEPS     nothing but steps of a trace, to count instructions: less those of fewer steps
 *
 * The steps are told (strata_step()); what a trace leaves is freed at the end of its step. */
#include <stdlib.h>
#include <string.h>

#include "bench/simulated.h"
#include "platform/clock.h"
#include "trace/trace.h"

enum { ROUNDS = 9, SETTLED = 3, LEAST_PAIRS = 200000, PRESETS = 2 };

static const char *const presets[PRESETS] = {"planned", "strata"};
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

static void do_step(strata_t facade, const program_t *program) {
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
    must(strata_step(facade));
}

static void settle(strata_t facade, const program_t *program) {
    must(strata_step(facade));
    for (int i = 0; i < SETTLED; i++) do_step(facade, program);
}

static double pair_ns(strata_t facade, const program_t *program) {
    uint64_t steps = LEAST_PAIRS / program->pairs + 1, began = strata_real_now();
    for (uint64_t i = 0; i < steps; i++) do_step(facade, program);
    return (double)(strata_real_now() - began) / (double)(steps * program->pairs);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *name, double medians[PRESETS]) {
    program_t program = load(name);
    strata_t facades[PRESETS];
    double runs[PRESETS][ROUNDS];
    for (int p = 0; p < PRESETS; p++) {
        facades[p] = simulated_open(presets[p], STRATA_SIM_UNLIMITED);
        settle(facades[p], &program);
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int p = 0; p < PRESETS; p++) runs[p][round] = pair_ns(facades[p], &program);
    for (int p = 0; p < PRESETS; p++) {
        qsort(runs[p], ROUNDS, sizeof runs[p][0], by_value);
        medians[p] = runs[p][ROUNDS / 2];
        must(strata_close(facades[p], 0, NULL, NULL));
    }
    end(&program);
}

static void print_all(bool json) {
    if (!json) printf("%-34s %9s %9s\n", "ns a pair", presets[0], presets[1]);
    for (int i = 0; i < TRACES; i++) {
        double ns[PRESETS];
        measure(traces[i], ns);
        if (json) printf("%s\"%s\":{\"planned_ns\":%.1f,\"strata_ns\":%.1f}", i ? "," : "{", traces[i], ns[0], ns[1]);
        else printf("%-34s %9.1f %9.1f\n", traces[i], ns[0], ns[1]);
    }
    if (json) printf("}\n");
}

int main(int argc, char **argv) {
    bool json = argc == 2 && strcmp(argv[1], "--json") == 0;
    if (argc == 1 || json) {
        print_all(json);
        return 0;
    }
    if (argc != 4) {
        fprintf(stderr, "usage: planned [--json | TRACE PRESET STEPS]\n");
        return 2;
    }
    program_t program = load(argv[1]);
    strata_t facade = simulated_open(argv[2], STRATA_SIM_UNLIMITED);
    settle(facade, &program);
    for (long i = strtol(argv[3], NULL, 10); i > 0; i--) do_step(facade, &program);
    end(&program);
    return 0;
}
