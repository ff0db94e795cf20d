/* A step is captured into a graph and launched many times. The graph keeps its memory, even the blocks that it has freed. So a
 * request between two launches never gets an address that the next launch overwrites. The end of the graph frees its memory.
 *
 *     cc graph.c $(pkg-config --cflags --libs strata) && ./a.out          # on the simulated device
 *     ./a.out gpu:0                                                       # on a GPU
 */
#include <stdio.h>
#include <stdlib.h>
#include <strata/strata.h>

static void check(strata_status_t status) {
    if (status == STRATA_OK) return;
    fprintf(stderr, "%s: %s\n", strata_status_name(status), strata_last_error()->text);
    exit(1);
}

/* Kernels would work on the block here. */
static void *step(strata_t s, strata_stream_t stream) {
    strata_block_t scratch;
    check(strata_allocate(s, strata_gpu(0), stream, 64 << 20, &scratch));
    check(strata_free(s, scratch.ref));
    return scratch.ptr;
}

int main(int argc, char **argv) {
    strata_t s;
    strata_stream_t stream;
    strata_place_t gpu = strata_gpu(0);
    check(strata_open(&(strata_open_options_t){.struct_size = sizeof(strata_open_options_t), .devices = argc > 1 ? argv[1] : "sim"},
                      &s));
    check(strata_stream_create(s, gpu, 0, &stream));

    uint64_t pool = 0;
    strata_graph_t graph;
    check(strata_graph_pool_begin(s, gpu, stream, &pool)); /* before cudaStreamBeginCapture */
    check(strata_capture_begin(s, gpu, stream));
    void *inside = step(s, stream);
    check(strata_capture_end(s, gpu, stream, &graph));
    check(strata_graph_pool_end(s, gpu, pool)); /* after cudaStreamEndCapture */
    check(strata_graph_pool_remove(s, gpu, pool)); /* from here on the graph keeps it */

    for (int i = 0; i < 3; i++) {
        check(strata_graph_launch(s, gpu, graph, stream));
        printf("launch %d: a step outside the graph has %s memory\n", i, step(s, stream) == inside ? "THE SAME" : "other");
    }
    check(strata_stream_synchronize(s, gpu, stream));
    check(strata_graph_destroy(s, gpu, graph));
    check(strata_stream_forget(s, gpu, stream));
    check(strata_stream_destroy(s, gpu, stream));
    check(strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL));
    return 0;
}
