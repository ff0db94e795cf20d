/* Pauses on a simulated device with contents. */
#ifndef STRATA_TESTS_PAUSE_H
#define STRATA_TESTS_PAUSE_H

#include "tests/facade/support/fixture.h"

/* Every cache that may stand over handles. */
#define PAUSE_MOVING                                                                                                               \
    "stack: [stream_safe, auto_growth_vmm, vmm]\ngraph: {stack: [stream_safe, auto_growth: {chunk_size: 8MiB}, vmm]}\n"
#define PAUSE_POOLS                                                                                                                \
    PAUSE_MOVING "pools: {weights: {stack: [stream_safe, auto_growth: {chunk_size: 4MiB}, vmm]}, "                                 \
                 "cache: {stack: [stream_safe, auto_growth_vmm, vmm]}}\n"

static inline void pause_open(rig_t *rig, const char *strategy) {
    rig_open_with(rig, strategy, &(strata_sim_options_t){.devices = 2, .contents = true, .capacity = 4 * GIB}, 0);
}
#define PAUSED_RIG(rig, strategy) RIG_BY(rig, pause_open(&rig, strategy))

/* Where the host sees the bytes of a block; NULL: no memory is there. */
static inline uint8_t *pause_bytes(rig_t *rig, const strata_block_t *block) {
    return strata_device_host_view(rig->devices[0], (uintptr_t)block->ptr, block->size);
}
/* Bytes that depend on the seed and the place. */
void pause_write(rig_t *rig, const strata_block_t *block, uint32_t seed);
bool pause_holds(rig_t *rig, const strata_block_t *block, uint32_t seed);

static inline strata_status_t pause_try(rig_t *rig, uint64_t pool, const char *tag, uint32_t contents, strata_paused_t *report) {
    strata_pause_options_t options = {
        .struct_size = sizeof options, .pool = pool, .tag = tag, .contents = contents, .directory = "/tmp", .staging = 4 * MIB};
    if (report) report->struct_size = sizeof *report;
    return strata_pause(rig->s, rig->gpu, &options, report);
}
static inline strata_paused_t pause_do(rig_t *rig, uint64_t pool, uint32_t contents) {
    strata_paused_t report = {0};
    EXPECT_OK(pause_try(rig, pool, NULL, contents, &report));
    return report;
}
static inline strata_paused_t resume_do(rig_t *rig, uint64_t pool) {
    strata_paused_t report = {.struct_size = sizeof report};
    EXPECT_OK(strata_resume(rig->s, rig->gpu, pool, NULL, &report));
    return report;
}
static inline strata_block_t pause_allocate_in(rig_t *rig, uint64_t pool, strata_stream_t stream, size_t size, const char *tag) {
    return rig_allocate_with(
        rig, stream,
        &(strata_allocate_options_t){.struct_size = sizeof(strata_allocate_options_t), .size = size, .pool = pool, .tag = tag});
}
static inline uint64_t pause_pool(rig_t *rig, const char *name) {
    uint64_t pool = 0;
    EXPECT_OK(strata_pool(rig->s, name, &pool));
    return pool;
}
/* Bytes that the device has given out, as it says. */
static inline uint64_t pause_used(rig_t *rig) {
    uint64_t left = 0, total = 0;
    EXPECT_OK(strata_device_mem_info(rig->devices[0], &left, &total));
    return total - left;
}

#endif
