/* A server keeps its weights in a pool of their own, and a copy stream has a stack of its own. So the holes that short-lived
 * buffers leave are never between weights, and the program can inspect each pool and stream separately.
 *
 *     cc pools.c $(pkg-config --cflags --libs strata) && ./a.out          # on the simulated device
 *     ./a.out gpu:0                                                       # on a GPU
 */
#include <stdio.h>
#include <stdlib.h>
#include <strata/strata.h>

static const char strategy[] = "strategy: serving\n"
                               "pools: {weights: [stream_safe, auto_growth: {chunk_size: 256MiB}, system]}\n"
                               "streams: {\"copy*\": [stream_safe, buffered, system]}\n";

static void check(strata_status_t status) {
    if (status == STRATA_OK) return;
    fprintf(stderr, "%s: %s\n", strata_status_name(status), strata_last_error()->text);
    exit(1);
}

/* Code that does not use pools. */
static strata_block_t load(strata_t s, size_t size) {
    strata_block_t block;
    check(strata_allocate(s, strata_gpu(0), NULL, size, &block));
    return block;
}

int main(int argc, char **argv) {
    strata_t s;
    check(strata_open(&(strata_open_options_t){.struct_size = sizeof(strata_open_options_t),
                                               .text = strategy,
                                               .devices = argc > 1 ? argv[1] : "sim"},
                      &s));
    strata_place_t gpu = strata_gpu(0);
    uint64_t weights;
    check(strata_pool(s, "weights", &weights));
    check(strata_pool_begin(s, gpu, weights)); /* this thread's requests in gpu:0, until the end */
    strata_block_t layer = load(s, 100 << 20);
    check(strata_pool_end(s, gpu));

    strata_stream_t upload;
    check(strata_stream_create(s, gpu, 0, &upload));
    check(strata_stream_name(s, gpu, upload, "copy0")); /* before its first request */
    strata_block_t staging;
    check(strata_allocate(s, gpu, upload, 8 << 20, &staging));
    char path[100];
    check(strata_allocation_route(s, staging.ref, path, sizeof path));

    strata_statistics_t figures = {.struct_size = sizeof figures};
    check(strata_statistics_pool(s, gpu, weights, &figures));
    printf("weights: %llu bytes of %llu reserved; copy0: %s\n", (unsigned long long)figures.allocated_bytes,
           (unsigned long long)figures.reserved_bytes, path);
    check(strata_free(s, staging.ref));
    check(strata_free(s, layer.ref)); /* by its ref, from anywhere */
    check(strata_stream_forget(s, gpu, upload));
    check(strata_stream_destroy(s, gpu, upload));
    check(strata_close(s, STRATA_CLOSE_BUSY, NULL, NULL));
    return 0;
}
