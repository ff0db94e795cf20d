/* What an allocate and free pair costs through the whole default stack: retry > stream_safe > auto_growth > system.
 *
 *     bench/hot_path            a table
 *     bench/hot_path --json     one JSON object: medians; null where a figure cannot be had on this machine
 *
 * The device is simulated and unlimited: a hit makes no device call. Workloads: a hot pair of 64 KiB; N live blocks of 512 x
 * 2^(17u) bytes, u uniform, of which a random one is freed and another allocated.
 */
#include <dlfcn.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench/turnover.h"
#include "config/config.h"
#include "facade/facade.h"
#include "platform/clock.h"
#include "platform/host/host_memory.h"
#include "platform/sim/sim.h"

enum { RUNS = 9, HOT_PAIRS = 2000000, LIVE_PAIRS = 400000, THREAD_PAIRS = 1500000, THREAD_RUNS = 5, THREADS = 16 };

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

/* ---- the rig ---- */

static strata_t facade;
static strata_device_t *device;
static strata_place_t gpu;
static turnover_t turnover;

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

static double pair_ns(void) {
    double runs[RUNS];
    pairs(NULL, 1000);
    for (int run = 0; run < RUNS; run++) {
        uint64_t began = strata_real_now();
        pairs(NULL, HOT_PAIRS);
        runs[run] = (double)(strata_real_now() - began) / HOT_PAIRS;
    }
    return median(runs, RUNS);
}

static double pointer_pair_ns(void) {
    double runs[RUNS];
    for (int run = 0; run < RUNS; run++) {
        uint64_t began = strata_real_now();
        for (int i = 0; i < HOT_PAIRS; i++) {
            strata_block_t block;
            must(strata_allocate(facade, gpu, NULL, 64 << 10, &block));
            must(strata_free_pointer(facade, block.ptr));
        }
        runs[run] = (double)(strata_real_now() - began) / HOT_PAIRS;
    }
    return median(runs, RUNS);
}

/* Host mallocs and reservations made so far: by the process, and by the library for itself. */
static uint64_t host_calls(void) { return atomic_load(&mallocs) + strata_host_allocations(); }

/* Frees a random one of `live` blocks and allocates another, `count` times. Host calls made by pairs that did not have to grow
 * are added to *host. */
static void turn_over(strata_ref_t *refs, int live, int count, uint64_t *host) {
    for (int i = 0; i < count; i++) {
        strata_block_t block;
        uint64_t drawn = turnover_draw(&turnover), before = host ? host_calls() : 0;
        uint64_t growths = host ? atomic_load(&device->calls[STRATA_CALL_malloc]) : 0;
        strata_ref_t *ref = &refs[turnover_victim(drawn, live)];
        must(strata_free(facade, *ref));
        must(strata_allocate(facade, gpu, NULL, turnover_size(&turnover, drawn), &block));
        *ref = block.ref;
        if (host && growths == atomic_load(&device->calls[STRATA_CALL_malloc])) *host += host_calls() - before;
    }
}

static double live_ns(int live, uint64_t *host) {
    strata_ref_t *refs = malloc((size_t)live * sizeof *refs);
    double runs[RUNS];
    for (int i = 0; i < live; i++) {
        strata_block_t block;
        must(strata_allocate(facade, gpu, NULL, turnover_size(&turnover, turnover_draw(&turnover)), &block));
        refs[i] = block.ref;
    }
    turn_over(refs, live, 2 * LIVE_PAIRS, NULL);
    for (int run = 0; run < RUNS; run++) {
        uint64_t began = strata_real_now();
        turn_over(refs, live, LIVE_PAIRS, NULL);
        runs[run] = (double)(strata_real_now() - began) / LIVE_PAIRS;
    }
    turn_over(refs, live, LIVE_PAIRS, host);
    for (int i = 0; i < live; i++) must(strata_free(facade, refs[i]));
    free(refs);
    must(strata_release(facade, gpu, NULL));
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
    strata_stream_t stream; /* NULL: an empty loop */
    uint64_t ns;
} worker_t;

static void *work(void *context) {
    worker_t *worker = context;
    if (worker->stream) pairs(worker->stream, 1000);
    pthread_barrier_wait(worker->start);
    uint64_t began = strata_real_now();
    if (worker->stream) {
        pairs(worker->stream, THREAD_PAIRS);
    } else {
        for (volatile int i = 0; i < 40 * THREAD_PAIRS; i++) {}
    }
    worker->ns = strata_real_now() - began;
    return NULL;
}

/* Work a second of `threads` threads, from the start of the first to the end of the last, in units of one thread's loop. */
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

/* Two threads against one: of empty loops, and of pairs on two streams. The best of runs that take turns, so that what else uses
 * the machine meets all of them. */
static void two_threads(strata_stream_t const *streams, double *loops, double *threads) {
    double best[4] = {0};
    for (int run = 0; run < THREAD_RUNS; run++) {
        for (int i = 0; i < 4; i++) best[i] = larger(best[i], throughput(1 + i % 2, i < 2 ? NULL : streams));
    }
    *loops = best[1] / best[0];
    *threads = best[3] / best[2];
}

/* What the machine lacks counts against it. Two loops never do more than twice the work of one: where they seem to, the one was
 * disturbed. */
static double two_threads_ratio(double threads, double loops) { return 2 * threads / (loops < 2 ? loops : 2); }

/* All on one stream, so on one lock, against one thread; the best of runs that take turns. */
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

/* ---- what else the machine tells ---- */

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
        for (int i = 0; i < HOT_PAIRS; i++) mi_free(mi_malloc(64 << 10));
        runs[run] = (double)(strata_real_now() - began) / HOT_PAIRS;
    }
    return median(runs, RUNS);
}

/* ---- telling ---- */

typedef struct figure {
    const char *name, *meaning;
    double value; /* below 0: cannot be had */
    int digits;
} figure_t;

static void print_json(const figure_t *figures, size_t count) {
    for (size_t i = 0; i < count; i++) {
        printf("%s\"%s\":", i ? "," : "{", figures[i].name);
        if (figures[i].value < 0) printf("null");
        else printf("%.*f", figures[i].digits, figures[i].value);
    }
    printf("}\n");
}

static void print_table(const figure_t *figures, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (figures[i].value < 0) printf("%-22s %10s  %s\n", figures[i].name, "-", figures[i].meaning);
        else printf("%-22s %10.*f  %s\n", figures[i].name, figures[i].digits, figures[i].value, figures[i].meaning);
    }
}

int main(int argc, char **argv) {
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    if (argc > 2 || (argc == 2 && !json)) {
        fprintf(stderr, "usage: hot_path [--json]\n");
        return 2;
    }
    turnover_init(&turnover);
    open_facade();
    uint64_t host = 0;
    double pair = pair_ns();
    host += host_calls_of_hot_pairs();
    double instructions = instructions_per_pair();
    double live_1000 = live_ns(1000, &host), live_100000 = live_ns(100000, &host);
    /* From the first free by pointer on every hand-out of a facade is noted; once there are two threads, their simulator hears
     * of every lock. So this comes last, and the threads have a facade of their own. */
    double by_pointer = pointer_pair_ns();
    open_facade();
    strata_stream_t streams[2];
    for (int i = 0; i < 2; i++) must(strata_stream_create(facade, gpu, 0, &streams[i]));
    double loops, threads;
    two_threads(streams, &loops, &threads);
    double shared_2 = shared_stream_ratio(2, streams[0]), shared_8 = shared_stream_ratio(8, streams[0]);
    const figure_t figures[] = {
        {"pair_ns", "allocate and free again, 64 KiB, a hit", pair, 1},
        {"pointer_pair_ns", "the same, freed by pointer", by_pointer, 1},
        {"live_1000_ns", "a pair among 1,000 live blocks", live_1000, 1},
        {"live_100000_ns", "a pair among 100,000 live blocks", live_100000, 1},
        {"two_threads_ratio", "two threads on two streams against one, where two empty loops reach 2",
         two_threads_ratio(threads, loops), 2},
        {"shared_stream_2_ratio", "two threads on one stream against one", shared_2, 2},
        {"shared_stream_8_ratio", "eight threads on one stream against one", shared_8, 2},
        {"host_mallocs", "host mallocs and reservations in pairs that hit, once the live set is reached", (double)host, 0},
        {"instructions_per_pair", "of the hot pair", instructions, 0},
        {"mimalloc_pair_ns", "mimalloc's own pair of 64 KiB", mimalloc_pair_ns(), 1},
    };
    (json ? print_json : print_table)(figures, sizeof figures / sizeof *figures);
    if (!json) printf("two threads as measured: %.2f; two empty loops: %.2f\n", threads, loops);
    return 0;
}
