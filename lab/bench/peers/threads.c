/* Workloads of several threads: blocks that another thread frees, and pairs of many threads at once. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lab/bench/peers/measured.h"
#include "lab/bench/peers/peer.h"
#include "lab/bench/peers/workload.h"

enum { BATCH = 1000, MAX_THREADS = 64, PAIR_SIZE = 64 << 10, WARM_PAIRS = 1000 };

static void allocate(void *stream, size_t size, peer_block_t *block) {
    if (!peer_allocate(stream, size, block)) workload_none("it is out of memory");
}

/* ---- freed by another thread ---- */

static peer_block_t batch[BATCH];
static void *remote_stream;
static pthread_barrier_t given, taken;
static double freeing; /* nanoseconds of the last batch; read after `taken` */

static void allocate_batch(uint64_t count) {
    for (uint64_t i = 0; i < count; i++) allocate(remote_stream, PAIR_SIZE, &batch[i]);
}

static void free_batch(uint64_t count) {
    for (uint64_t i = 0; i < count; i++) peer_free(&batch[i]);
}

static void *freeer(void *context) {
    for (;;) {
        pthread_barrier_wait(&given);
        freeing = workload_measured(free_batch, BATCH);
        pthread_barrier_wait(&taken);
    }
    return context;
}

/* The two threads take turns, so neither waits for the other while it is measured. */
static double measure_remote(uint64_t count) {
    double total = 0;
    for (uint64_t i = 0; i < count; i += BATCH) {
        total += workload_measured(allocate_batch, BATCH);
        pthread_barrier_wait(&given);
        pthread_barrier_wait(&taken);
        total += freeing;
    }
    return total;
}

static void prepare_remote(char **arguments) {
    pthread_t thread;
    (void)arguments;
    remote_stream = peer_stream();
    pthread_barrier_init(&given, NULL, 2);
    pthread_barrier_init(&taken, NULL, 2);
    if (pthread_create(&thread, NULL, freeer, NULL) != 0) exit(1);
    measure_remote(10 * BATCH);
}

const workload_t workload_remote = {"remote", "", 0, prepare_remote, measure_remote, 100 * BATCH};

/* ---- many at once ---- */

static int threads;
static void *streams[MAX_THREADS];
static pthread_barrier_t start;

typedef struct worker {
    pthread_t thread;
    void *stream;
    uint64_t count;
    double began, ended;
} worker_t;

static void pairs(void *stream, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        peer_block_t block;
        allocate(stream, PAIR_SIZE, &block);
        peer_free(&block);
    }
}

static void *work(void *context) {
    worker_t *worker = context;
    pairs(worker->stream, WARM_PAIRS);
    pthread_barrier_wait(&start);
    worker->began = workload_now();
    pairs(worker->stream, worker->count);
    worker->ended = workload_now();
    return NULL;
}

/* Measures `count` pairs of all threads together, from the first one's start to the last one's end. */
static double measure_threads(uint64_t count) {
    static worker_t workers[MAX_THREADS];
    double began = 0, ended = 0;
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) {
        workers[i] = (worker_t){.stream = streams[i], .count = count / (uint64_t)threads};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) exit(1);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        if (i == 0 || workers[i].began < began) began = workers[i].began;
        if (workers[i].ended > ended) ended = workers[i].ended;
    }
    pthread_barrier_destroy(&start);
    return ended - began;
}

static void prepare_threads(char **arguments) {
    bool own = strcmp(arguments[1], "own") == 0;
    threads = atoi(arguments[0]);
    if (threads < 1 || threads > MAX_THREADS) exit(2);
    for (int i = 0; i < threads; i++) streams[i] = i == 0 || own ? peer_stream() : streams[0];
}

const workload_t workload_threads = {"threads", "THREADS own|one", 2, prepare_threads, measure_threads, 400000};
