/* Measures whether rare operations of a facade cost in proportion to the number of objects. The operations
 * are growth, release, out of memory, a snapshot, the opening of stacks and the close. They run among few and
 * among many chunks, streams and graph pools.
 *
 *     lab/bench/growth                             prints the steps' names and units
 *     lab/bench/growth STEP PRESET N [--json]      runs the step among N; prints its time divided by N
 *
 * The measured part runs inside growth_measured(), so that callgrind can count it alone
 * (--toggle-collect=growth_measured; scripts/bench-peers). The device is simulated. Chunks have 20 MiB. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "facade/open/life.h"
#include "facade/registry/facade.h"
#include "platform/clock.h"
#include "platform/sim/sim.h"

enum { LIMIT = 100000 };
#define CHUNK (UINT64_C(20) << 20)

static strata_t facade;
static strata_place_t gpu;
static int number;
static strata_ref_t *refs;
static strata_stream_t *streams;
static strata_config_request_t request;

static void must(strata_status_t status) {
    if (status == STRATA_OK) return;
    fprintf(stderr, "growth: %s\n", strata_last_error()->text);
    exit(1);
}

static void *memory_of(size_t size) {
    void *memory = calloc((size_t)number, size);
    if (!memory) exit(1);
    return memory;
}

/* ---- the state before the steps ---- */

/* Returns the memory that the steps take, plus the extra of a cache and of the device. */
static uint64_t room(void) { return (uint64_t)number * CHUNK * 9 / 8 + (UINT64_C(1) << 30); }

static void open_facade(void) {
    strata_strategy_t *strategy;
    strata_sim_t *world;
    strata_device_t *device;
    strata_sim_options_t options = {.capacity = room()};
    must(strata_config_load(&request, &strategy));
    must(strata_sim_new(&options, &world));
    must(strata_sim_open(world, 0, &device));
    must(strata_facade_open_on(strategy, &device, 1, 0, &facade));
    gpu = strata_gpu(0);
}

static void allocate(int i, strata_stream_t stream, size_t size) {
    strata_block_t block;
    must(strata_allocate(facade, gpu, stream, size, &block));
    refs[i] = block.ref;
}

static void allocate_chunks(void) {
    for (int i = 0; i < number; i++) allocate(i, NULL, CHUNK);
}

static void free_chunks(void) {
    for (int i = 0; i < number; i++) must(strata_free(facade, refs[i]));
}

static void make_streams(void) {
    open_facade();
    for (int i = 0; i < number; i++) must(strata_stream_create(facade, gpu, 0, &streams[i]));
}

static void use_streams(void) {
    for (int i = 0; i < number; i++) allocate(i, streams[i], 4096);
}

/* Opens stacks with idle chunks, or with all memory in use. */
static void setup_chunks(void) {
    open_facade();
    allocate_chunks();
}
static void setup_idle_chunks(void) {
    setup_chunks();
    free_chunks();
}
static void setup_streams(void) {
    make_streams();
    use_streams();
}
static void setup_idle_streams(void) {
    setup_streams();
    free_chunks();
}

/* ---- the steps ---- */

static void count_row(const strata_snapshot_row_t *row, void *context) {
    (void)row;
    ++*(size_t *)context;
}

static void take_snapshot(void) {
    size_t rows = 0;
    must(strata_snapshot(facade, gpu, count_row, &rows));
}

static void release_all(void) { must(strata_release(facade, gpu, NULL)); }

static void close_facade(void) { must(strata_close(facade, STRATA_CLOSE_FORCE, NULL, NULL)); }

/* Requests more than the device has, so every cache first returns its idle memory. */
static void fail_to_allocate(void) {
    strata_block_t block;
    if (strata_allocate(facade, gpu, NULL, 2 * room(), &block) == STRATA_OK) exit(1);
}

/* ---- pools ---- */

static uint64_t *pools;

static void use_pools(void) {
    for (int i = 0; i < number; i++) {
        must(strata_graph_pool_begin(facade, gpu, streams[0], &pools[i]));
        allocate(i, streams[0], 4096);
        must(strata_graph_pool_end(facade, gpu, pools[i]));
    }
}

static void remove_pools(void) {
    for (int i = 0; i < number; i++) must(strata_graph_pool_remove(facade, gpu, pools[i]));
}

static void setup_pools(void) {
    make_streams();
    use_pools();
}
static void setup_idle_pools(void) {
    setup_pools();
    free_chunks();
}

/* ---- output ---- */

static const struct step {
    const char *name, *of;
    void (*prepare)(void), (*measured)(void);
} steps[] = {
    {"growth", "chunks", open_facade, allocate_chunks},
    {"snapshot", "chunks", setup_chunks, take_snapshot},
    {"out-of-memory", "chunks", setup_chunks, fail_to_allocate},
    {"out-of-memory-idle", "chunks", setup_idle_chunks, fail_to_allocate},
    {"release", "chunks", setup_idle_chunks, release_all},
    {"close", "chunks", setup_chunks, close_facade},
    {"stream-open", "streams", make_streams, use_streams},
    {"stream-snapshot", "streams", setup_streams, take_snapshot},
    {"stream-out-of-memory", "streams", setup_idle_streams, fail_to_allocate},
    {"stream-release", "streams", setup_idle_streams, release_all},
    {"stream-close", "streams", setup_streams, close_facade},
    {"pool-open", "pools", make_streams, use_pools},
    {"pool-snapshot", "pools", setup_pools, take_snapshot},
    {"pool-out-of-memory", "pools", setup_idle_pools, fail_to_allocate},
    {"pool-release", "pools", setup_idle_pools, release_all},
    {"pool-remove", "pools", setup_idle_pools, remove_pools},
    {"pool-close", "pools", setup_pools, close_facade},
};
enum { STEPS = sizeof steps / sizeof *steps };

double growth_measured(void (*measured)(void));
__attribute__((noinline)) double growth_measured(void (*measured)(void)) {
    uint64_t began = strata_real_now();
    measured();
    return (double)(strata_real_now() - began);
}

static const struct step *step_of(const char *name) {
    for (int i = 0; i < STEPS; i++)
        if (strcmp(name, steps[i].name) == 0) return &steps[i];
    return NULL;
}

static int usage(void) {
    fprintf(stderr, "usage: growth [STEP PRESET N [--json]]\n");
    return 2;
}

int main(int argc, char **argv) {
    if (argc == 1) {
        for (int i = 0; i < STEPS; i++) printf("%s %s\n", steps[i].name, steps[i].of);
        return 0;
    }
    const struct step *step = step_of(argv[1]);
    bool json = argc == 5 && strcmp(argv[4], "--json") == 0;
    number = argc >= 4 ? atoi(argv[3]) : 0;
    if (!step || number < 1 || number > LIMIT || (argc != 4 && !json)) return usage();
    request = (strata_config_request_t){.preset = argv[2], .devices = "sim"};
    refs = memory_of(sizeof *refs);
    streams = memory_of(sizeof *streams);
    pools = memory_of(sizeof *pools);
    step->prepare();
    double each = growth_measured(step->measured) / number;
    printf(json ? "{\"step\":\"%s\",\"preset\":\"%s\",\"of\":\"%s\",\"number\":%d,\"ns_each\":%.1f}\n"
                : "%s, %s, %s: %d, ns each: %.1f\n",
           step->name, argv[2], step->of, number, each);
    fflush(stdout);
    _Exit(0);
}
