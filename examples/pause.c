/* A server sleeps: its weights are kept, its cache is dropped, and other programs can use the GPU's memory until it resumes.
 *
 *     cc pause.c $(pkg-config --cflags --libs strata) && ./a.out          # on the simulated device
 *     ./a.out gpu:0                                                       # on a GPU
 */
#include <stdio.h>
#include <stdlib.h>
#include <strata/strata.h>

static const char *const strategy = "extends: strata\n"
                                    "pools:\n"
                                    "  weights: {stack: [stream_safe, auto_growth_vmm, vmm]}\n"
                                    "  cache: {stack: [stream_safe, auto_growth_vmm, vmm]}\n";

static void check(strata_status_t status) {
    if (status == STRATA_OK) return;
    fprintf(stderr, "%s: %s\n", strata_status_name(status), strata_last_error()->text);
    exit(1);
}

static strata_block_t allocate(strata_t s, uint64_t pool, size_t size) {
    strata_block_t block;
    check(strata_allocate_with(
        s, strata_gpu(0), NULL,
        &(strata_allocate_options_t){.struct_size = sizeof(strata_allocate_options_t), .size = size, .pool = pool}, &block));
    return block;
}

static void sleep_now(strata_t s, uint64_t pool, uint32_t contents, const char *name) {
    strata_paused_t report = {.struct_size = sizeof report};
    strata_pause_options_t options = {.struct_size = sizeof options, .pool = pool, .contents = contents};
    check(strata_pause(s, strata_gpu(0), &options, &report));
    printf("%s: %llu MiB released, %llu MiB kept\n", name, (unsigned long long)report.bytes >> 20,
           (unsigned long long)report.kept_bytes >> 20);
}

int main(int argc, char **argv) {
    strata_t s;
    uint64_t weights, cache;
    check(strata_open(&(strata_open_options_t){.struct_size = sizeof(strata_open_options_t),
                                               .text = strategy,
                                               .devices = argc > 1 ? argv[1] : "sim"},
                      &s));
    check(strata_pool(s, "weights", &weights));
    check(strata_pool(s, "cache", &cache));
    strata_block_t w = allocate(s, weights, 300 << 20), k = allocate(s, cache, 500 << 20);
    sleep_now(s, weights, STRATA_PAUSE_PINNED, "weights");
    sleep_now(s, cache, STRATA_PAUSE_DROP, "cache");
    /* ... another program has the memory ... */
    check(strata_resume(s, strata_gpu(0), weights, NULL, NULL)); /* new weights could be written here, before the cache resumes */
    check(strata_resume(s, strata_gpu(0), cache, NULL, NULL));
    printf("resumed, at the same addresses\n");
    check(strata_free(s, w.ref));
    check(strata_free(s, k.ref));
    check(strata_close(s, STRATA_CLOSE_WAIT, NULL, NULL));
    return 0;
}
