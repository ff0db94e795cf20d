/* One strategy for every kind of memory and for two different devices: device, managed, pinned and host memory side by side.
 *
 *     cc all_places.c $(pkg-config --cflags --libs strata) && ./a.out
 */
#include <stdio.h>
#include <stdlib.h>
#include <strata/strata.h>

static const char strategy[] = "strategy: everywhere\n"
                               "extends: managed_prefetch          # the default, with managed memory moved to its device ahead\n"
                               "devices:\n"
                               "  use: sim:h100x2                  # on real ones: gpu\n"
                               "  gpu:1:                           # the second device serves an engine that needs large chunks\n"
                               "    stack: [retry, stream_safe, auto_growth: {chunk_size: 256MiB}, system]\n"
                               "places:\n"
                               "  pinned: [stream_safe, buffered, system: {cap: 4GiB, node: near}]\n"
                               "  host:   [auto_growth: {chunk_size: 32MiB, alignment: 64}, system: {huge_pages: true}]\n";

static void check(strata_status_t status) {
    if (status == STRATA_OK) return;
    fprintf(stderr, "%s: %s\n", strata_status_name(status), strata_last_error()->text);
    exit(1);
}

int main(void) {
    strata_t s;
    check(strata_open(&(strata_open_options_t){.struct_size = sizeof(strata_open_options_t), .text = strategy}, &s));
    check(strata_set_limit(s, strata_gpu(0), 8ull << 30)); /* leave the rest of the first device to other programs */

    const char *names[] = {"gpu:0", "gpu:1", "managed:0", "managed:1", "pinned", "host"};
    strata_place_t places[] = {strata_gpu(0), strata_gpu(1), strata_managed(0), strata_managed(1), strata_pinned(), strata_host()};
    strata_block_t blocks[6];
    for (int i = 0; i < 6; i++) {
        char path[128];
        strata_statistics_t figures = {.struct_size = sizeof figures};
        check(strata_allocate(s, places[i], NULL, 3 << 20, &blocks[i]));
        check(strata_allocation_route(s, blocks[i].ref, path, sizeof path));
        check(strata_statistics_all(s, places[i], &figures));
        printf("%-9s reserved %4llu MiB for 3 MiB: %s\n", names[i], (unsigned long long)figures.reserved_bytes >> 20, path);
    }
    for (int i = 0; i < 6; i++) check(strata_free(s, blocks[i].ref));
    check(strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL));
    return 0;
}
