/* Two streams on a simulated GPU request more than it has. The report lists the holders of the memory. README.md shows its text.
 *
 *     cc out_of_memory.c $(pkg-config --cflags --libs strata) && ./a.out
 */
#include <stdio.h>
#include <stdlib.h>
#include <strata/strata.h>

#define GIB ((size_t)1 << 30)

static void check(strata_status_t status) {
    if (status == STRATA_OK) return;
    fprintf(stderr, "%s: %s\n", strata_status_name(status), strata_last_error()->text);
    exit(1);
}

int main(void) {
    strata_t s;
    strata_open_options_t open = {.struct_size = sizeof open, .preset = "strata", .devices = "sim:h100"};
    check(strata_open(&open, &s));
    strata_place_t gpu = strata_gpu(0);
    strata_stream_t compute, copy;
    check(strata_stream_create(s, gpu, 0, &compute));
    check(strata_stream_create(s, gpu, 0, &copy));

    strata_block_t weights, batch, cache, more;
    strata_allocate_options_t embedding = {.struct_size = sizeof embedding, .size = 40 * GIB, .tag = "embedding"};
    check(strata_allocate_with(s, gpu, compute, &embedding, &weights));
    check(strata_step(s));
    check(strata_annotate(s, "attention"));
    check(strata_allocate(s, gpu, compute, 10 * GIB, &cache));
    check(strata_annotate(s, NULL));

    check(strata_allocate(s, gpu, copy, 20 * GIB, &batch));
    strata_stream_work(s, gpu, compute, 5000000000, &batch.ref, 1); /* compute reads it for five seconds */
    check(strata_record_stream(s, batch.ref, compute));
    check(strata_free(s, batch.ref));

    if (strata_allocate(s, gpu, compute, 24 * GIB, &more) != STRATA_E_NO_MEMORY) return 1;
    puts(strata_last_error()->text);

    check(strata_free(s, weights.ref));
    check(strata_free(s, cache.ref));
    return strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL) == STRATA_OK ? 0 : 1;
}
