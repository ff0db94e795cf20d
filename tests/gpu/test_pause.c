/* Pause and resume on a real GPU: the same bytes at the same addresses, the memory back in between, and how fast the bytes move beside
 * the fastest that pinned memory does. */
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "facade/open/life.h"
#include "facade/registry/facade.h"
#include "lab/conform/rig/rig.h"
#include "platform/clock.h"
#include "tests/gpu/gpu.h"

enum { PIECE = 64 << 20, PIECES = 16 };

typedef struct slept {
    strata_device_t *device;
    strata_strategy_t *strategy;
    strata_t s;
    void *pinned; /* PIECE bytes */
    strata_address_t pinned_address;
    strata_handle_t stream;
} slept_t;

static bool begin(slept_t *t, strata_device_t *device) {
    *t = (slept_t){.device = device};
    t->strategy = rig_strategy("stack: [stream_safe, auto_growth_vmm, vmm]\n", NULL, 0);
    EXPECT_OK(strata_facade_open_on(t->strategy, &t->device, 1, 0, &t->s));
    EXPECT_OK(strata_device_stream_create(device, STRATA_STREAM_NON_BLOCKING, 0, &t->stream));
    strata_status_t status = strata_device_host_alloc(device, STRATA_MEMORY_PINNED, PIECE, 4096, 0, &t->pinned_address);
    t->pinned = (void *)(uintptr_t)t->pinned_address;
    EXPECT_OK(status);
    return status == STRATA_OK && !strata_test_has_failed();
}

static void end(slept_t *t) {
    EXPECT_OK(strata_close(t->s, STRATA_CLOSE_WAIT, NULL, NULL));
    if (t->pinned) EXPECT_OK(strata_device_host_free(t->device, STRATA_MEMORY_PINNED, t->pinned_address));
    EXPECT_OK(strata_device_stream_destroy(t->device, t->stream));
    strata_device_close(t->device);
    strata_strategy_delete(t->strategy);
}

static void move(slept_t *t, const strata_block_t *block, bool to_host) {
    EXPECT_OK(strata_device_copy(t->device, (uintptr_t)block->ptr, t->pinned, PIECE, to_host, t->stream));
    EXPECT_OK(strata_device_stream_synchronise(t->device, t->stream));
}

static void write_block(slept_t *t, const strata_block_t *block, uint32_t seed) {
    uint32_t *words = t->pinned;
    for (uint32_t i = 0; i < PIECE / 4; i++) words[i] = seed + i * 2654435761u;
    move(t, block, false);
}

static bool holds(slept_t *t, const strata_block_t *block, uint32_t seed) {
    const uint32_t *words = t->pinned;
    memset(t->pinned, 0, PIECE);
    move(t, block, true);
    for (uint32_t i = 0; i < PIECE / 4; i++)
        if (words[i] != seed + i * 2654435761u) return false;
    return true;
}

/* Bytes per ns of copies one after the other, the best of three rounds: what pinned memory can do. */
static double fastest(slept_t *t, const strata_block_t *blocks, bool to_host) {
    double best = 0;
    for (int round = 0; round < 3; round++) {
        uint64_t began = strata_real_now();
        for (int i = 0; i < PIECES; i++)
            EXPECT_OK(strata_device_copy(t->device, (uintptr_t)blocks[i].ptr, t->pinned, PIECE, to_host, t->stream));
        EXPECT_OK(strata_device_stream_synchronise(t->device, t->stream));
        double rate = (double)PIECE * PIECES / (double)(strata_real_now() - began);
        if (rate > best) best = rate;
    }
    return best;
}

static uint64_t free_bytes(slept_t *t) {
    uint64_t left = 0, total;
    EXPECT_OK(strata_device_mem_info(t->device, &left, &total));
    return left;
}

static double rate_of(const strata_paused_t *report) {
    return report->copy_ns ? (double)report->kept_bytes / (double)report->copy_ns : 0;
}

static void cycle(slept_t *t, const strata_block_t *blocks, uint32_t contents, double rates[2]) {
    strata_pause_options_t options = {
        .struct_size = sizeof options, .pool = STRATA_POOL_ORDINARY, .contents = contents, .directory = "/tmp"};
    strata_paused_t down = {.struct_size = sizeof down}, up = {.struct_size = sizeof up};
    for (uint32_t i = 0; i < PIECES; i++) write_block(t, &blocks[i], i + 1);
    uint64_t before = free_bytes(t);
    EXPECT_OK(strata_pause(t->s, strata_gpu(0), &options, &down));
    EXPECT_EQ(down.rest_bytes, 0);
    EXPECT_GE(free_bytes(t), before + (uint64_t)PIECE * PIECES / 2);
    EXPECT_OK(strata_resume(t->s, strata_gpu(0), STRATA_POOL_ORDINARY, NULL, &up));
    EXPECT_EQ(up.bytes, down.bytes);
    for (uint32_t i = 0; i < PIECES; i++) EXPECT_TRUE(holds(t, &blocks[i], i + 1));
    rates[0] = rate_of(&down);
    rates[1] = rate_of(&up);
}

TEST(gpu_pause, bytes_come_back_as_fast_as_pinned_memory_goes) {
    GPU_OR_SKIP(device);
    GPU_NEEDS(device, virtual_memory);
    slept_t t;
    strata_block_t blocks[PIECES] = {{0}};
    double rates[2] = {0};
    bool ready = begin(&t, device);
    for (int i = 0; i < PIECES && ready; i++) ready = strata_allocate(t.s, strata_gpu(0), NULL, PIECE, &blocks[i]) == STRATA_OK;
    if (ready) {
        double fast[2] = {fastest(&t, blocks, true), fastest(&t, blocks, false)};
        cycle(&t, blocks, STRATA_PAUSE_FILE, rates);
        printf("through a file: to it %.2f GB/s, back %.2f GB/s\n", rates[0], rates[1]);
        cycle(&t, blocks, STRATA_PAUSE_PINNED, rates); /* which pins */
        cycle(&t, blocks, STRATA_PAUSE_PINNED, rates);
        printf("pinned memory alone: to the host %.2f GB/s, back %.2f GB/s\n", fast[0], fast[1]);
        printf("pause %.2f GB/s (%.1f %%), resume %.2f GB/s (%.1f %%)\n", rates[0], 100 * rates[0] / fast[0], rates[1],
               100 * rates[1] / fast[1]);
    }
    for (int i = 0; i < PIECES; i++)
        if (blocks[i].ref) EXPECT_OK(strata_free(t.s, blocks[i].ref));
    end(&t);
}
