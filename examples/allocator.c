/* A component that uses Strata only through an allocator: a buffer that grows. Its creator chooses the place, the stream and the
 * pool.
 *
 *     cc allocator.c $(pkg-config --cflags --libs strata) && ./a.out          # on the simulated device
 *     ./a.out gpu:0                                                           # on a GPU
 */
#include <stdio.h>
#include <stdlib.h>
#include <strata/strata.h>

static void check(strata_status_t status) {
    if (status == STRATA_OK) return;
    fprintf(stderr, "%s: %s\n", strata_status_name(status), strata_last_error()->text);
    exit(1);
}

typedef struct buffer {
    strata_allocator_t allocator; /* a value: it is copied, and never given back */
    strata_block_t block;
} buffer_t;

static void resize(buffer_t *buffer, size_t size) {
    strata_block_t larger;
    check(strata_allocator_allocate(buffer->allocator, size, &larger));
    if (buffer->block.ref) check(strata_allocator_free(buffer->allocator, buffer->block.ref));
    buffer->block = larger;
}

int main(int argc, char **argv) {
    strata_t s;
    check(strata_open(&(strata_open_options_t){.struct_size = sizeof(strata_open_options_t),
                                               .preset = "strata",
                                               .devices = argc > 1 ? argv[1] : "sim"},
                      &s));
    strata_stream_t stream;
    check(strata_stream_create(s, strata_gpu(0), 0, &stream));
    buffer_t on_device = {.block.ref = 0}, on_host = {.block.ref = 0};
    check(strata_allocator_get(s, strata_gpu(0), stream, 0, &on_device.allocator));
    check(strata_allocator_get(s, strata_pinned(), stream, 0, &on_host.allocator));
    for (size_t size = 1 << 20; size <= 8 << 20; size *= 2) {
        resize(&on_device, size);
        resize(&on_host, size);
    }
    strata_statistics_t figures = {.struct_size = sizeof figures};
    check(strata_allocator_statistics(on_device.allocator, &figures));
    printf("on the device: %llu of %llu reserved bytes, in %llu allocations\n", (unsigned long long)figures.allocated_bytes,
           (unsigned long long)figures.reserved_bytes, (unsigned long long)figures.allocations);
    check(strata_allocator_free(on_host.allocator, on_host.block.ref));
    check(strata_stream_forget(s, strata_gpu(0), stream)); /* from here on on_device.allocator is stale */
    strata_status_t gone = strata_allocator_allocate(on_device.allocator, 1 << 20, &on_host.block);
    printf("afterwards: %s\n", strata_status_name(gone));
    check(strata_allocator_free(on_device.allocator, on_device.block.ref)); /* a stale allocator frees its old blocks */
    check(strata_stream_forget(s, strata_pinned(), stream));
    check(strata_stream_destroy(s, strata_gpu(0), stream));
    check(strata_close(s, STRATA_CLOSE_BUSY, NULL, NULL));
    return 0;
}
