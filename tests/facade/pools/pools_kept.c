/* Pools that keep their chunks: nobody else's want of memory takes them. */
#include "tests/facade/pools/pooled.h"

#define KEPT                                                                                                                       \
    "strategy: kept\n"                                                                                                             \
    "stack: [retry: {timeout: 2ms}, stream_safe, auto_growth: {chunk_size: 2MiB}, system]\n"                                       \
    "pools:\n"                                                                                                                     \
    "  weights: {keep: true, stack: [retry: {timeout: 2ms}, stream_safe, auto_growth: {chunk_size: 8MiB}, system]}\n"              \
    "  scratch: [auto_growth, system]\n"

enum { SIZE = 8 * MIB };

/* A pool's chunk, idle. */
static uint64_t keep_one(rig_t *rig, const char *name, strata_stream_t stream) {
    uint64_t pool = pool_of(rig, name);
    strata_block_t block = get_from(rig, pool, stream, SIZE);
    EXPECT_OK(strata_free(rig->s, block.ref));
    return pool;
}

static uint64_t kept(rig_t *rig) { return strata_domain_kept_bytes(rig_domain(rig), NULL); }

TEST_RIG(facade_pools, a_pool_that_keeps_its_chunks_loses_them_to_nobody_elses_ladder, 64 * MIB, KEPT) {
    uint64_t weights = keep_one(rig, "weights", NULL);
    (void)keep_one(rig, "scratch", NULL);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(rig, NULL, 60 * MIB));
    EXPECT_EQ(pool_figures(rig, weights).reserved_bytes, SIZE);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, SIZE);
    EXPECT_EQ(kept(rig), SIZE);
    EXPECT_EQ(strata_domain_kept_bytes(rig_domain(rig), strata_domain_group(rig_domain(rig), weights, "weights")), 0);
    /* Its own request does take them. */
    (void)get_from(rig, weights, NULL, 60 * MIB);
}

TEST_RIG(facade_pools, a_pool_that_keeps_its_chunks_gives_them_back_when_it_is_meant_itself, 0, KEPT) {
    strata_stream_t stream = rig_stream(rig);
    uint64_t weights = keep_one(rig, "weights", NULL), released = 1;
    (void)keep_one(rig, "weights", stream);
    (void)keep_one(rig, "scratch", NULL);
    EXPECT_EQ(rig_trim(rig, 1), SIZE);
    EXPECT_EQ(rig_release(rig), 0);
    EXPECT_OK(strata_set_limit(rig->s, rig->gpu, MIB));
    EXPECT_OK(strata_set_limit(rig->s, rig->gpu, STRATA_UNLIMITED));
    EXPECT_EQ(kept(rig), 2 * SIZE);
    EXPECT_OK(strata_release_pool(rig->s, rig->gpu, weights, &released));
    EXPECT_EQ(released, 2 * SIZE);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 0);
    EXPECT_STATUS(STRATA_E_INVALID, strata_release_pool(rig->s, rig->gpu, weights + 1, NULL));
}

TEST_RIG(facade_pools, kept_chunks_do_not_count_in_a_trim, 0, KEPT) {
    (void)keep_one(rig, "weights", NULL);
    (void)keep_one(rig, "scratch", NULL);
    EXPECT_EQ(rig_trim(rig, SIZE), 0);
    EXPECT_OK(strata_set_limit(rig->s, rig->gpu, SIZE));
    EXPECT_EQ(rig_figures(rig).reserved_bytes, SIZE);
    EXPECT_EQ(kept(rig), SIZE);
}

TEST_RIG(facade_pools, one_pools_release_leaves_the_others, 0, KEPT) {
    (void)keep_one(rig, "weights", NULL);
    uint64_t scratch = keep_one(rig, "scratch", NULL), released = 0;
    strata_block_t ordinary = rig_allocate(rig, NULL, MIB);
    EXPECT_OK(strata_free(rig->s, ordinary.ref));
    EXPECT_OK(strata_release_pool(rig->s, rig->gpu, STRATA_POOL_ORDINARY, &released));
    EXPECT_EQ(released, 2 * MIB);
    EXPECT_OK(strata_pool_begin(rig->s, rig->gpu, scratch));
    EXPECT_OK(strata_release_pool(rig->s, rig->gpu, 0, &released));
    EXPECT_OK(strata_pool_end(rig->s, rig->gpu));
    EXPECT_EQ(released, SIZE);
    EXPECT_EQ(kept(rig), SIZE);
}

TEST_RIG(facade_pools, another_strategy_gets_what_a_pool_kept, 64 * MIB, KEPT) {
    (void)keep_one(rig, "weights", NULL);
    strata_open_options_t options = {.struct_size = sizeof options,
                                     .flags = STRATA_OPEN_IGNORE_ENVIRONMENT,
                                     .text = "stack: [retry, stream_safe, auto_growth: {preallocate: 60MiB}, system]"};
    EXPECT_OK(strata_change_strategy(rig->s, &options));
}

/* ---- a pool that is trimmed while it is in use ---- */

#define IN_USE "extends: strata\npools: {weights: {keep: true}, scratch: }\n"

static strata_pool_trim_t trim_pool(rig_t *rig, uint64_t pool, uint64_t keep) {
    strata_pool_trim_t trim = {.struct_size = sizeof trim};
    EXPECT_OK(strata_trim_pool(rig->s, rig->gpu, pool, keep, &trim));
    return trim;
}

TEST_RIG(facade_pools, a_pool_in_use_is_trimmed, 0, IN_USE) {
    uint64_t weights = pool_of(rig, "weights");
    strata_block_t live = get_from(rig, weights, NULL, 20 * MIB), blocks[4];
    for (int i = 0; i < 4; i++) blocks[i] = get_from(rig, weights, rig_stream(rig), 10 * MIB);
    for (int i = 0; i < 4; i++) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
    EXPECT_OK(strata_free(rig->s, get_from(rig, pool_of(rig, "scratch"), NULL, 6 * MIB).ref));
    strata_pool_trim_t trim = trim_pool(rig, weights, STRATA_UNLIMITED);
    EXPECT_EQ(trim.idle, 40 * MIB);
    EXPECT_EQ(trim.left, 40 * MIB);
    EXPECT_EQ(trim.released, 0);
    trim = trim_pool(rig, weights, 15 * MIB);
    EXPECT_EQ(trim.idle, 40 * MIB);
    EXPECT_EQ(trim.released, 30 * MIB);
    EXPECT_EQ(trim.left, 10 * MIB);
    EXPECT_EQ(pool_figures(rig, weights).reserved_bytes, 30 * MIB);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 36 * MIB);
    trim = trim_pool(rig, weights, 0);
    EXPECT_EQ(trim.released, 10 * MIB);
    EXPECT_EQ(trim.left, 0);
    EXPECT_OK(strata_validate(rig->s));
    EXPECT_OK(strata_free(rig->s, live.ref));
}

/* A part of a handle that is in use stays, and so does memory that another stream still uses. */
TEST_RIG(facade_pools, a_trim_shows_the_bytes_that_stay, 0, IN_USE) {
    uint64_t weights = pool_of(rig, "weights");
    strata_stream_t user = rig_stream(rig);
    strata_block_t small = get_from(rig, weights, NULL, MIB), lent = get_from(rig, weights, NULL, 8 * MIB);
    rig_borrow(rig, lent.ref, user, 1000 * 1000);
    EXPECT_OK(strata_free(rig->s, lent.ref));
    strata_pool_trim_t trim = trim_pool(rig, weights, 0);
    EXPECT_EQ(trim.pending, 8 * MIB);
    EXPECT_GT(trim.left, 0);
    EXPECT_EQ(trim.idle, trim.left);
    rig_advance(rig, 1000 * 1000);
    trim = trim_pool(rig, weights, 0);
    EXPECT_EQ(trim.pending, 0);
    EXPECT_GE(trim.released, 6 * MIB);
    EXPECT_EQ(trim.left, trim.idle - trim.released);
    EXPECT_OK(strata_free(rig->s, small.ref));
}

/* Memory that the device refuses to take back is not reported as released. A release offers it again. */
TEST_RIG(facade_pools, a_trim_reports_only_what_the_device_took, 0, IN_USE) {
    uint64_t weights = pool_of(rig, "weights");
    strata_block_t blocks[3];
    for (int i = 0; i < 3; i++) blocks[i] = get_from(rig, weights, rig_stream(rig), 10 * MIB);
    for (int i = 0; i < 3; i++) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
    EXPECT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_unmap, 2, true, STRATA_E_DEVICE));
    strata_pool_trim_t trim = trim_pool(rig, weights, 0);
    strata_sim_clear_faults(rig->devices[0]);
    EXPECT_EQ(trim.idle, 30 * MIB);
    EXPECT_EQ(trim.released, 10 * MIB);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 20 * MIB);
    EXPECT_EQ(rig_figures(rig).quarantined_bytes, 20 * MIB);
    uint64_t released = 0;
    EXPECT_OK(strata_release_pool(rig->s, rig->gpu, weights, &released));
    EXPECT_EQ(released, 20 * MIB);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 0);
    EXPECT_OK(strata_validate(rig->s));
}

/* Every pool of the place has idle memory. A trim takes it from the one pool that is named, whatever their order. */
TEST_RIG(facade_pools, a_trim_takes_from_one_pool_alone, 0, IN_USE) {
    const uint64_t pools[] = {STRATA_POOL_ORDINARY, pool_of(rig, "weights"), pool_of(rig, "scratch")};
    for (size_t i = 0; i < COUNT(pools); i++) EXPECT_OK(strata_free(rig->s, get_from(rig, pools[i], NULL, 10 * MIB).ref));
    for (size_t i = COUNT(pools); i-- > 0;) {
        EXPECT_EQ(trim_pool(rig, pools[i], 0).released, 10 * MIB);
        for (size_t k = 0; k < COUNT(pools); k++) EXPECT_EQ(pool_figures(rig, pools[k]).reserved_bytes, k < i ? 10 * MIB : 0);
    }
}

/* Streams with a stack by their name are a group of their own outside pools. What stays is the sum over the groups. */
TEST_RIG(facade_pools, the_groups_of_a_pool_keep_as_much_together, 0,
         "extends: strata\nstreams: {\"copy*\": [auto_growth_vmm, vmm]}\n") {
    strata_stream_t copies = rig_stream(rig);
    EXPECT_OK(strata_stream_name(rig->s, rig->gpu, copies, "copy0"));
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, NULL, 10 * MIB).ref));
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, copies, 10 * MIB).ref));
    strata_pool_trim_t trim = trim_pool(rig, STRATA_POOL_ORDINARY, 12 * MIB);
    EXPECT_EQ(trim.idle, 20 * MIB);
    EXPECT_EQ(trim.left, 10 * MIB);
    EXPECT_EQ(trim.released, 10 * MIB);
}

TEST_RIG(facade_pools, a_trim_of_an_unknown_pool_is_refused, 0, IN_USE) {
    strata_pool_trim_t trim = {.struct_size = sizeof trim, .idle = 7};
    EXPECT_STATUS(STRATA_E_INVALID, strata_trim_pool(rig->s, rig->gpu, 99, 0, &trim));
    EXPECT_EQ(trim.idle, 7);
    trim.struct_size = 1;
    EXPECT_STATUS(STRATA_E_INVALID, strata_trim_pool(rig->s, rig->gpu, STRATA_POOL_ORDINARY, 0, &trim));
    EXPECT_OK(strata_trim_pool(rig->s, rig->gpu, STRATA_POOL_ORDINARY, 0, NULL));
}
