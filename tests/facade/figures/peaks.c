/* strata_reset_peaks(): the peaks of a part of a program. */
#include <string.h>

#include "tests/facade/support/fixture.h"

static strata_statistics_t of_stream(rig_t *rig, strata_stream_t stream) {
    strata_statistics_t f = {.struct_size = sizeof f};
    EXPECT_OK(strata_statistics(rig->s, rig->gpu, stream, &f));
    return f;
}

TEST_RIG(facade_peaks, begin_at_what_is_now, 0,
         "strategy: p\nstack: [auto_growth: {chunk_size: 8MiB, free_idle_chunk: true}, system]\n") {
    strata_stream_t stream = rig_stream(rig);
    strata_block_t kept = rig_allocate(rig, NULL, 8 * MIB), other = rig_allocate(rig, stream, 8 * MIB);
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, NULL, 24 * MIB).ref));
    EXPECT_EQ(rig_figures(rig).peak_reserved_bytes, 40 * MIB);
    EXPECT_EQ(of_stream(rig, NULL).peak_allocated_bytes, 32 * MIB);
    EXPECT_OK(strata_reset_peaks(rig->s, rig->gpu));
    strata_statistics_t place = rig_figures(rig), own = of_stream(rig, NULL);
    EXPECT_EQ(place.peak_reserved_bytes, 16 * MIB);
    EXPECT_EQ(place.peak_allocated_bytes, 16 * MIB);
    EXPECT_EQ(place.peak_requested_bytes, 16 * MIB);
    EXPECT_EQ(own.peak_allocated_bytes, 8 * MIB);
    EXPECT_EQ(own.peak_requested_bytes, 8 * MIB);
    EXPECT_EQ(own.peak_reserved_bytes, 8 * MIB);
    EXPECT_EQ(place.allocations, 3);
    /* And rise from there. */
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, NULL, 16 * MIB).ref));
    EXPECT_EQ(rig_figures(rig).peak_reserved_bytes, 32 * MIB);
    EXPECT_EQ(of_stream(rig, NULL).peak_allocated_bytes, 24 * MIB);
    RIG_FREE(rig, kept, other);
    EXPECT_OK(strata_reset_peaks(rig->s, rig->gpu));
    EXPECT_EQ(rig_figures(rig).peak_reserved_bytes, 0);
    EXPECT_STATUS(STRATA_E_INVALID, strata_reset_peaks(rig->s, strata_gpu(3)));
}

/* What has ended holds nothing; what a source serves without a cache is reserved by the stack itself. */
TEST_RIG(facade_peaks, of_streams_that_are_gone_and_of_pools_begin_too, 0,
         "strategy: p\nstack: [system]\npools: {weights: {stack: [system]}}\n") {
    uint64_t pool;
    strata_statistics_t f = {.struct_size = sizeof f};
    strata_stream_t stream = rig_stream(rig);
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, stream, 4 * MIB).ref));
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, stream));
    EXPECT_OK(strata_pool(rig->s, "weights", &pool));
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 2 * MIB, .pool = pool};
    strata_block_t block;
    EXPECT_OK(strata_allocate_with(rig->s, rig->gpu, NULL, &options, &block));
    EXPECT_OK(strata_free(rig->s, block.ref));
    EXPECT_OK(strata_statistics_pool(rig->s, rig->gpu, pool, &f));
    EXPECT_EQ(f.peak_reserved_bytes, 2 * MIB);
    EXPECT_OK(strata_reset_peaks(rig->s, rig->gpu));
    EXPECT_OK(strata_statistics_pool(rig->s, rig->gpu, pool, &f));
    EXPECT_EQ(f.peak_reserved_bytes, 0);
    EXPECT_EQ(f.peak_allocated_bytes, 0);
    EXPECT_EQ(rig_figures(rig).peak_allocated_bytes, 0);
    EXPECT_EQ(rig_figures(rig).peak_requested_bytes, 0);
}

typedef struct peaks {
    uint32_t count;
    uint64_t most;
} peaks_t;

static void see(const strata_layer_figure_t *figure, void *context) {
    peaks_t *peaks = context;
    if (strcmp(figure->name, "peak_bytes") != 0) return;
    peaks->count++;
    if (figure->value > peaks->most) peaks->most = figure->value;
}

TEST_RIG(facade_peaks, of_layers_begin_at_what_is_now, 0, "strategy: p\nstack: [stat, auto_growth, limit: {bytes: 1GiB}, system]\n",
         "strategy: p\nstack: [fallback: {stacks: [[stat, system], [system]]}]\n") {
    peaks_t before = {0}, after = {0};
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, NULL, 40 * MIB).ref));
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    EXPECT_OK(strata_layer_figures(rig->s, rig->gpu, see, &before));
    EXPECT_GE(before.most, 40 * MIB);
    EXPECT_OK(strata_reset_peaks(rig->s, rig->gpu));
    EXPECT_OK(strata_layer_figures(rig->s, rig->gpu, see, &after));
    EXPECT_EQ(after.most, 0);
    EXPECT_EQ(after.count, before.count);
}
