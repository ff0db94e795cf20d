/* Measures an allocate and free pair through the default stack: retry > stream_safe > auto_growth_vmm > vmm.
 *
 *     lab/bench/hot_path                      prints a table
 *     lab/bench/hot_path --json [--quick]     prints one JSON object of medians; null if this machine cannot measure one
 *
 * `--quick` makes a hundredth of the pairs, so its times are only rough. The device is simulated and
 * unlimited, and a hit makes no device call. The workloads are:
 * - a hot pair of 64 KiB;
 * - the same, borrowed by another stream in between;
 * - N live blocks of 512 x 2^(17u) bytes, u uniform, of which a random one is freed and another allocated. */
#include <dlfcn.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "config/config.h"
#include "facade/open/life.h"
#include "facade/registry/facade.h"
#include "lab/bench/held.h"
#include "lab/bench/turnover.h"
#include "platform/clock.h"
#include "platform/host/host_memory.h"
#include "platform/sim/sim.h"

enum { RUNS = 9, THREAD_RUNS = 5, THREADS = 16, HELD_BLOCKS = 100000 };
static int hot_pairs = 2000000, borrowed_pairs = 400000, live_pairs = 400000, thread_pairs = 1500000;

static void reduce_counts(void) {
    hot_pairs /= 100;
    borrowed_pairs /= 100;
    live_pairs /= 100;
    thread_pairs /= 100;
}

/* ---- every malloc of the process is counted ---- */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
static _Atomic uint64_t mallocs;

void *malloc(size_t size) {
    atomic_fetch_add_explicit(&mallocs, 1, memory_order_relaxed);
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    atomic_fetch_add_explicit(&mallocs, 1, memory_order_relaxed);
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size) {
    atomic_fetch_add_explicit(&mallocs, 1, memory_order_relaxed);
    return __libc_realloc(memory, size);
}

/* ---- the test fixture ---- */

static strata_t facade;
static strata_device_t *device;
static strata_place_t gpu;
static turnover_t turnover;
static unsigned smaller; /* bits by which sizes are shifted right */

static void must(strata_status_t status) {
    if (status == STRATA_OK) return;
    fprintf(stderr, "hot_path: %s\n", strata_last_error()->text);
    exit(1);
}

static void open_facade(void) {
    static strata_strategy_t *strategy;
    strata_sim_t *world;
    strata_config_request_t request = {.preset = "strata", .devices = "sim"};
    strata_sim_options_t options = {.capacity = STRATA_SIM_UNLIMITED};
    must(strata_config_load(&request, &strategy));
    must(strata_sim_new(&options, &world));
    must(strata_sim_open(world, 0, &device));
    /* The simulated device joins the clocks of its threads at every hand-over of a lock, which a GPU does not. */
    device->lock_observer = NULL;
    must(strata_facade_open_on(strategy, &device, 1, 0, &facade));
    gpu = strata_gpu(0);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

/* ---- workloads ---- */

static void pairs(strata_stream_t stream, int count) {
    for (int i = 0; i < count; i++) {
        strata_block_t block;
        must(strata_allocate(facade, gpu, stream, 64 << 10, &block));
        must(strata_free(facade, block.ref));
    }
}

static void own_pairs(int count) { pairs(NULL, count); }

static void allocator_pairs(int count) {
    strata_allocator_t allocator;
    must(strata_allocator_get(facade, gpu, NULL, 0, &allocator));
    for (int i = 0; i < count; i++) {
        strata_block_t block;
        must(strata_allocator_allocate(allocator, 64 << 10, &block));
        must(strata_allocator_free(allocator, block.ref));
    }
}

static void pointer_pairs(int count) {
    for (int i = 0; i < count; i++) {
        strata_block_t block;
        must(strata_allocate(facade, gpu, NULL, 64 << 10, &block));
        must(strata_free_pointer(facade, block.ptr));
    }
}

static strata_stream_t borrower;

static void lent_pairs(int count) {
    for (int i = 0; i < count; i++) {
        strata_block_t block;
        must(strata_allocate(facade, gpu, NULL, 64 << 10, &block));
        must(strata_record_stream(facade, block.ref, borrower));
        must(strata_free(facade, block.ref));
    }
}

static double median_ns(void (*workload)(int count), int count) {
    double runs[RUNS];
    workload(1000);
    for (int run = 0; run < RUNS; run++) {
        uint64_t began = strata_real_now();
        workload(count);
        runs[run] = (double)(strata_real_now() - began) / count;
    }
    return median(runs, RUNS);
}

/* Returns the host mallocs and reservations so far: of the process, and of the library for itself. */
static uint64_t host_calls(void) { return atomic_load(&mallocs) + strata_host_allocations(); }

static size_t size_of(uint64_t drawn) { return turnover_size(&turnover, drawn) >> smaller; }

/* Returns the number of chunks that the device was asked for, by malloc and by virtual memory. */
static uint64_t growths_so_far(void) {
    return atomic_load(&device->calls[STRATA_CALL_malloc]) + atomic_load(&device->calls[STRATA_CALL_create]) +
           atomic_load(&device->calls[STRATA_CALL_map]);
}

/* Frees a random one of `live` blocks and allocates another, `count` times. Adds the host calls of pairs that
 * did not have to grow to *host. */
static void turn_over(strata_ref_t *refs, int live, int count, uint64_t *host) {
    for (int i = 0; i < count; i++) {
        strata_block_t block;
        uint64_t drawn = turnover_draw(&turnover), before = host ? host_calls() : 0;
        uint64_t growths = host ? growths_so_far() : 0;
        strata_ref_t *ref = &refs[turnover_victim(drawn, live)];
        must(strata_free(facade, *ref));
        must(strata_allocate(facade, gpu, NULL, size_of(drawn), &block));
        *ref = block.ref;
        if (host && growths == growths_so_far()) *host += host_calls() - before;
    }
}

/* `refs` are touched before, so that they do not count as memory of the blocks. */
static void fill(strata_ref_t *refs, int live) {
    for (int i = 0; i < live; i++) {
        strata_block_t block;
        must(strata_allocate(facade, gpu, NULL, size_of(turnover_draw(&turnover)), &block));
        refs[i] = block.ref;
    }
}

static void empty(strata_ref_t *refs, int live) {
    for (int i = 0; i < live; i++) must(strata_free(facade, refs[i]));
    free(refs);
    must(strata_release(facade, gpu, NULL));
}

/* Returns the additional host memory per block once the blocks are live and have turned over, including the
 * free blocks between them. Returns a negative number if it is unknown. */
static double bytes_per_live_block(int live) {
    strata_ref_t *refs = malloc((size_t)live * sizeof *refs);
    memset(refs, 0xff, (size_t)live * sizeof *refs);
    double before = held_bytes();
    fill(refs, live);
    turn_over(refs, live, 2 * live, NULL);
    double after = held_bytes();
    empty(refs, live);
    return before < 0 || after < before ? -1 : (after - before) / live;
}

static double live_ns(int live, uint64_t *host) {
    strata_ref_t *refs = malloc((size_t)live * sizeof *refs);
    double runs[RUNS];
    fill(refs, live);
    turn_over(refs, live, 2 * live_pairs, NULL);
    for (int run = 0; run < RUNS; run++) {
        uint64_t began = strata_real_now();
        turn_over(refs, live, live_pairs, NULL);
        runs[run] = (double)(strata_real_now() - began) / live_pairs;
    }
    turn_over(refs, live, live_pairs, host);
    empty(refs, live);
    return median(runs, RUNS);
}

static uint64_t host_calls_of_hot_pairs(void) {
    uint64_t before = host_calls();
    pairs(NULL, 100000);
    return host_calls() - before;
}

/* ---- threads ---- */

typedef struct worker {
    pthread_t thread;
    pthread_barrier_t *start;
    strata_stream_t stream; /* NULL for an empty loop */
    uint64_t ns;
} worker_t;

static void *work(void *context) {
    worker_t *worker = context;
    if (worker->stream) pairs(worker->stream, 1000);
    pthread_barrier_wait(worker->start);
    uint64_t began = strata_real_now();
    if (worker->stream) {
        pairs(worker->stream, thread_pairs);
    } else {
        for (volatile int i = 0; i < 40 * thread_pairs; i++) {}
    }
    worker->ns = strata_real_now() - began;
    return NULL;
}

/* Returns the work per second of `threads` threads, in units of one thread's loop. The time is that of the slowest thread. */
static double throughput(int threads, strata_stream_t const *streams) {
    worker_t workers[THREADS];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    uint64_t longest = 1;
    for (int i = 0; i < threads; i++) {
        workers[i] = (worker_t){.start = &start, .stream = streams ? streams[i] : NULL};
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        if (workers[i].ns > longest) longest = workers[i].ns;
    }
    pthread_barrier_destroy(&start);
    return threads * 1e9 / (double)longest;
}

static double larger(double a, double b) { return a > b ? a : b; }

/* Compares two threads with one, for empty loops and for pairs on two streams. Takes the best of alternating
 * runs, so that other load on the machine affects all of them. */
static void two_threads(strata_stream_t const *streams, double *loops, double *threads) {
    double best[4] = {0};
    for (int run = 0; run < THREAD_RUNS; run++) {
        for (int i = 0; i < 4; i++) best[i] = larger(best[i], throughput(1 + i % 2, i < 2 ? NULL : streams));
    }
    *loops = best[1] / best[0];
    *threads = best[3] / best[2];
}

/* Removes the machine's own limits from the result. Two loops never do more than twice the work of one. If
 * they seem to, the one loop was disturbed. */
static double two_threads_ratio(double threads, double loops) { return 2 * threads / (loops < 2 ? loops : 2); }

/* Compares threads on one stream, and so on one lock, with one thread. Takes the best of alternating runs. */
static double shared_stream_ratio(int threads, strata_stream_t stream) {
    strata_stream_t streams[THREADS];
    double one = 0, all = 0;
    for (int i = 0; i < THREADS; i++) streams[i] = stream;
    for (int run = 0; run < THREAD_RUNS; run++) {
        one = larger(one, throughput(1, streams));
        all = larger(all, throughput(threads, streams));
    }
    return all / one;
}

/* ---- other measurements ---- */

static double instructions_per_pair(void) {
    struct perf_event_attr attributes = {.type = PERF_TYPE_HARDWARE,
                                         .size = sizeof attributes,
                                         .config = PERF_COUNT_HW_INSTRUCTIONS,
                                         .disabled = 1,
                                         .exclude_kernel = 1};
    int counter = (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0);
    if (counter < 0) return -1;
    uint64_t count = 0;
    ioctl(counter, PERF_EVENT_IOC_ENABLE, 0);
    pairs(NULL, 100000);
    ioctl(counter, PERF_EVENT_IOC_DISABLE, 0);
    bool ok = read(counter, &count, sizeof count) == sizeof count && count > 0;
    close(counter);
    return ok ? (double)count / 100000 : -1;
}

static double mimalloc_pair_ns(void) {
    void *library = dlopen("libmimalloc.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) library = dlopen("libmimalloc.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) return -1;
    void *(*mi_malloc)(size_t);
    void (*mi_free)(void *);
    *(void **)&mi_malloc = dlsym(library, "mi_malloc");
    *(void **)&mi_free = dlsym(library, "mi_free");
    if (!mi_malloc || !mi_free) return -1;
    double runs[RUNS];
    for (int run = 0; run < RUNS; run++) {
        uint64_t began = strata_real_now();
        for (int i = 0; i < hot_pairs; i++) mi_free(mi_malloc(64 << 10));
        runs[run] = (double)(strata_real_now() - began) / hot_pairs;
    }
    return median(runs, RUNS);
}

/* ---- output ---- */

/* X(name, digits, meaning). A metric below 0 is not available. */
#define FIGURE_MAP(X)                                                                                                              \
    X(pair_ns, 1, "allocate and free again, 64 KiB, a hit")                                                                        \
    X(pointer_pair_ns, 1, "the same, freed by pointer")                                                                            \
    X(allocator_pair_ns, 1, "the same, through an allocator object")                                                               \
    X(live_1000_ns, 1, "a pair among 1,000 live blocks")                                                                           \
    X(live_100000_ns, 1, "a pair among 100,000 live blocks")                                                                       \
    X(live_1000000_ns, 1, "a pair among 1,000,000 live blocks, an eighth as large")                                                \
    X(borrowed_pair_ns, 1, "the hot pair with a borrow by another stream, including the calls of the simulated device")            \
    X(borrowed_records_per_pair, 3, "event records of such a pair")                                                                \
    X(borrowed_queries_per_pair, 3, "event queries of such a pair")                                                                \
    X(bytes_per_live_block, 1, "host memory for each of 100,000 live blocks, in all layers")                                       \
    X(two_threads_ratio, 2, "two threads on two streams against one, where two empty loops reach 2")                               \
    X(shared_stream_2_ratio, 2, "two threads on one stream against one")                                                           \
    X(shared_stream_8_ratio, 2, "eight threads on one stream against one")                                                         \
    X(host_mallocs, 0, "host mallocs and reservations in pairs that hit, once the live set is reached")                            \
    X(instructions_per_pair, 0, "instructions of the hot pair")                                                                    \
    X(mimalloc_pair_ns, 1, "mimalloc's own pair of 64 KiB")

typedef struct figures {
#define FIGURE_FIELD(name, digits, meaning) double name;
    FIGURE_MAP(FIGURE_FIELD)
#undef FIGURE_FIELD
    double two_threads, two_loops; /* as measured */
} figures_t;

static void print_json(const char *name, int digits, double value) {
    static bool more;
    printf("%s\"%s\":", more ? "," : "{", name);
    if (value < 0) printf("null");
    else printf("%.*f", digits, value);
    more = true;
}

static void print_row(const char *name, int digits, double value, const char *meaning) {
    if (value < 0) printf("%-27s %10s  %s\n", name, "-", meaning);
    else printf("%-27s %10.*f  %s\n", name, digits, value, meaning);
}

static void print(const figures_t *figures, bool json) {
#define FIGURE_PRINT(name, digits, meaning)                                                                                        \
    if (json) print_json(#name, digits, figures->name);                                                                            \
    else print_row(#name, digits, figures->name, meaning);
    FIGURE_MAP(FIGURE_PRINT)
#undef FIGURE_PRINT
    if (json) printf("}\n");
    else printf("two threads as measured: %.2f; two empty loops: %.2f\n", figures->two_threads, figures->two_loops);
}

/* Uses its own facade, because a block that is still borrowed closes the fast path. */
static void measure_borrowed(figures_t *figures) {
    open_facade();
    must(strata_stream_create(facade, gpu, 0, &borrower));
    figures->borrowed_pair_ns = median_ns(lent_pairs, borrowed_pairs);
    uint64_t records = atomic_load(&device->calls[STRATA_CALL_event_record]);
    uint64_t queries = atomic_load(&device->calls[STRATA_CALL_event_query]);
    lent_pairs(borrowed_pairs);
    records = atomic_load(&device->calls[STRATA_CALL_event_record]) - records;
    queries = atomic_load(&device->calls[STRATA_CALL_event_query]) - queries;
    figures->borrowed_records_per_pair = (double)records / borrowed_pairs;
    figures->borrowed_queries_per_pair = (double)queries / borrowed_pairs;
}

static void measure_one_thread(figures_t *figures) {
    uint64_t host = 0;
    open_facade();
    figures->bytes_per_live_block = bytes_per_live_block(HELD_BLOCKS);
    open_facade();
    figures->pair_ns = median_ns(own_pairs, hot_pairs);
    host += host_calls_of_hot_pairs();
    figures->instructions_per_pair = instructions_per_pair();
    figures->allocator_pair_ns = median_ns(allocator_pairs, hot_pairs);
    figures->live_1000_ns = live_ns(1000, &host);
    figures->live_100000_ns = live_ns(100000, &host);
    smaller = 3; /* otherwise there are more than an index by address covers */
    figures->live_1000000_ns = live_ns(1000000, &host);
    figures->host_mallocs = (double)host;
    measure_borrowed(figures);
}

/* After the first free by pointer, a facade notes every block that it serves. After contention, a stack has
 * per-thread caches (magazines). So this is measured last, and the threads have their own facade. */
static void measure_threads(figures_t *figures) {
    strata_stream_t streams[2];
    open_facade();
    figures->pointer_pair_ns = median_ns(pointer_pairs, hot_pairs);
    open_facade();
    for (int i = 0; i < 2; i++) must(strata_stream_create(facade, gpu, 0, &streams[i]));
    two_threads(streams, &figures->two_loops, &figures->two_threads);
    figures->two_threads_ratio = two_threads_ratio(figures->two_threads, figures->two_loops);
    figures->shared_stream_2_ratio = shared_stream_ratio(2, streams[0]);
    figures->shared_stream_8_ratio = shared_stream_ratio(8, streams[0]);
}

int main(int argc, char **argv) {
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0, quick = argc > 2 && strcmp(argv[2], "--quick") == 0;
    if (argc > 3 || (argc >= 2 && !json) || (argc == 3 && !quick)) {
        fprintf(stderr, "usage: hot_path [--json [--quick]]\n");
        return 2;
    }
    figures_t figures = {0};
    if (quick) reduce_counts();
    turnover_init(&turnover);
    measure_one_thread(&figures);
    measure_threads(&figures);
    figures.mimalloc_pair_ns = mimalloc_pair_ns();
    print(&figures, json);
    return 0;
}
