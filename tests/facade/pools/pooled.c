#include "tests/facade/pools/pooled.h"

uint64_t pool_of(rig_t *rig, const char *name) {
    uint64_t pool = 0;
    EXPECT_OK(strata_pool(rig->s, name, &pool));
    EXPECT_GT(pool, STRATA_POOL_ORDINARY);
    return pool;
}

strata_block_t get_from(rig_t *rig, uint64_t pool, strata_stream_t stream, size_t size) {
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = size, .pool = pool};
    return rig_allocate_with(rig, stream, &options);
}

strata_statistics_t pool_figures(rig_t *rig, uint64_t pool) {
    strata_statistics_t figures = {.struct_size = sizeof figures};
    EXPECT_OK(strata_statistics_pool(rig->s, rig->gpu, pool, &figures));
    return figures;
}

void expect_pool(rig_t *rig, strata_ref_t ref, uint64_t pool) {
    uint64_t of = 0;
    EXPECT_OK(strata_pool_of(rig->s, ref, &of));
    EXPECT_EQ(of, pool);
}
