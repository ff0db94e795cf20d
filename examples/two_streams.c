/* Two streams share a block: one fills it, the other reads it, and the first frees it while the other is still reading.
 *
 *     cc two_streams.c $(pkg-config --cflags --libs strata) && ./a.out          # on the simulated device
 *     ./a.out gpu:0                                                             # on a GPU
 */
#include <stdio.h>
#include <stdlib.h>
#include <strata/strata.h>

static void check(strata_status_t status) {
    if (status == STRATA_OK) return;
    fprintf(stderr, "%s: %s\n", strata_status_name(status), strata_last_error()->text);
    exit(1);
}

int main(int argc, char **argv) {
    strata_t s;
    check(strata_open(&(strata_open_options_t){.struct_size = sizeof(strata_open_options_t),
                                               .preset = "strata",
                                               .devices = argc > 1 ? argv[1] : "sim"},
                      &s));
    strata_place_t gpu = strata_gpu(0);
    strata_stream_t producer, consumer;
    check(strata_stream_create(s, gpu, 0, &producer));
    check(strata_stream_create(s, gpu, 0, &consumer));

    strata_block_t batch;
    check(strata_allocate(s, gpu, producer, 64 << 20, &batch)); /* owner: producer */
    /* ... producer copies into batch.ptr, records an event; consumer waits for it and computes for 5 ms ... */
    strata_stream_work(s, gpu, consumer, 5000000, &batch.ref, 1);
    check(strata_record_stream(s, batch.ref, consumer)); /* consumer also uses it */
    check(strata_free(s, batch.ref)); /* early: consumer is not done, and that is fine */

    strata_block_t next;
    check(strata_allocate(s, gpu, producer, 64 << 20, &next)); /* not the same bytes, because they are still in use */
    printf("batch at %p, next at %p: %s\n", batch.ptr, next.ptr, batch.ptr == next.ptr ? "reused too early!" : "separate");

    strata_statistics_t figures = {.struct_size = sizeof figures};
    check(strata_statistics_all(s, gpu, &figures));
    printf("reserved %llu bytes, allocated %llu, deferred %llu\n", (unsigned long long)figures.reserved_bytes,
           (unsigned long long)figures.allocated_bytes, (unsigned long long)figures.deferred_bytes);

    check(strata_free(s, next.ref));
    check(strata_stream_synchronize(s, gpu, consumer));
    check(strata_stream_forget(s, gpu, producer));
    check(strata_stream_forget(s, gpu, consumer));
    check(strata_stream_destroy(s, gpu, producer));
    check(strata_stream_destroy(s, gpu, consumer));
    check(strata_close(s, STRATA_CLOSE_BUSY, NULL, NULL));
    return 0;
}
