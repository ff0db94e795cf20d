/* What a program sees of a pause: addresses, bytes, figures, what is refused and what goes on. */
#include "tests/pause/pause.h"

void pause_write(rig_t *rig, const strata_block_t *block, uint32_t seed) {
    uint8_t *bytes = pause_bytes(rig, block);
    ASSERT_TRUE(bytes != NULL);
    for (size_t i = 0; i < block->size; i += 509) bytes[i] = (uint8_t)(seed + i / 509 * 7);
    bytes[block->size - 1] = (uint8_t)seed;
}

bool pause_holds(rig_t *rig, const strata_block_t *block, uint32_t seed) {
    const uint8_t *bytes = pause_bytes(rig, block);
    if (!bytes || bytes[block->size - 1] != (uint8_t)seed) return false;
    for (size_t i = 0; i < block->size - 1; i += 509)
        if (bytes[i] != (uint8_t)(seed + i / 509 * 7)) return false;
    return true;
}

typedef struct kind {
    const char *name, *strategy;
} kind_t;

static const kind_t kinds[] = {
    {"vmm", "stack: [vmm]"},
    {"stream_safe", "stack: [stream_safe, vmm]"},
    {"auto_growth", "stack: [stream_safe, auto_growth: {chunk_size: 4MiB}, vmm]"},
    {"registrable", "stack: [stream_safe, auto_growth: {chunk_size: 4MiB}, vmm: {registrable: true}]"},
    {"auto_growth_vmm", "stack: [stream_safe, auto_growth_vmm, vmm]"},
    {"best_fit_vmm", "stack: [stream_safe, best_fit_vmm, vmm]"},
    {"caching_vmm", "stack: [caching_vmm, vmm]"},
    {"caching", "stack: [caching, vmm]"},
    {"bfc", "stack: [bfc, vmm]"},
    {"bfc_coalescing", "stack: [bfc: {coalesce_regions: true}, vmm]"},
    {"limit", "stack: [stream_safe, auto_growth, limit: {bytes: 1GiB}, vmm]"},
    {"binning", "stack: [binning: {routes: [{up_to: 1MiB, stack: [auto_growth, vmm]}, {stack: [auto_growth_vmm, vmm]}]}]"},
    {"strata", "strata"},
};

/* ---- bytes ---- */

static void comes_back(const kind_t *kind, uint32_t contents) {
    PAUSED_RIG(rig, kind->strategy);
    static const size_t sizes[] = {5 * MIB, 300, 3 * MIB + 77, 2 * MIB, 900000};
    strata_block_t blocks[COUNT(sizes)];
    uint64_t before = pause_used(&rig);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        blocks[i] = rig_allocate(&rig, NULL, sizes[i]);
        pause_write(&rig, &blocks[i], (uint32_t)i + 3);
    }
    uint64_t reserved = rig_figures(&rig).reserved_bytes;
    strata_paused_t report = pause_do(&rig, STRATA_POOL_ORDINARY, contents);
    EXPECT_EQ(report.rest_bytes, 0);
    EXPECT_GT(report.handles, 0);
    EXPECT_EQ(report.kept_bytes, contents == STRATA_PAUSE_DROP ? 0 : report.bytes);
    EXPECT_EQ(pause_used(&rig), before);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
    EXPECT_EQ(rig_figures(&rig).paused_bytes, report.bytes);
    EXPECT_LE(report.bytes, reserved);
    EXPECT_TRUE(pause_bytes(&rig, &blocks[0]) == NULL);
    EXPECT_STATUS(STRATA_E_BUSY, rig_try(&rig, NULL, 300));
    EXPECT_OK(strata_validate(rig.s));
    strata_paused_t back = resume_do(&rig, STRATA_POOL_ORDINARY);
    EXPECT_EQ(back.bytes, report.bytes);
    EXPECT_EQ(back.kept_bytes, report.kept_bytes);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, report.bytes);
    EXPECT_EQ(rig_figures(&rig).paused_bytes, 0);
    EXPECT_OK(strata_validate(rig.s));
    for (size_t i = 0; i < COUNT(sizes); i++) {
        if (contents != STRATA_PAUSE_DROP) EXPECT_TRUE(pause_holds(&rig, &blocks[i], (uint32_t)i + 3));
        EXPECT_OK(strata_device_fill(rig.devices[0], (uintptr_t)blocks[i].ptr, 1, blocks[i].size, NULL));
    }
    EXPECT_OK(rig_try(&rig, NULL, 300));
}

TEST_EACH(pause, bytes_come_back_from_pinned_memory, kind_t, kinds) { comes_back(row, STRATA_PAUSE_PINNED); }
TEST_EACH(pause, bytes_come_back_from_a_file, kind_t, kinds) { comes_back(row, STRATA_PAUSE_FILE); }
TEST_EACH(pause, addresses_come_back_without_bytes, kind_t, kinds) { comes_back(row, STRATA_PAUSE_DROP); }

/* ---- pools ---- */

/* The sleep of an engine: weights are kept, the cache is not; they wake one after the other. */
TEST(pause, pools_sleep_together_and_wake_in_turn) {
    PAUSED_RIG(rig, PAUSE_POOLS);
    uint64_t weights = pause_pool(&rig, "weights"), cache = pause_pool(&rig, "cache");
    strata_block_t w = pause_allocate_in(&rig, weights, NULL, 30 * MIB, NULL);
    strata_block_t k = pause_allocate_in(&rig, cache, NULL, 200 * MIB, NULL);
    strata_block_t other = rig_allocate(&rig, NULL, 10 * MIB);
    pause_write(&rig, &w, 1);
    pause_write(&rig, &other, 2);
    pause_do(&rig, cache, STRATA_PAUSE_DROP);
    strata_paused_t slept = pause_do(&rig, weights, STRATA_PAUSE_PINNED);
    EXPECT_GE(slept.bytes, 30 * MIB);
    EXPECT_TRUE(pause_holds(&rig, &other, 2));
    EXPECT_OK(rig_try(&rig, NULL, 100));
    strata_statistics_t figures = {.struct_size = sizeof figures};
    EXPECT_OK(strata_statistics_pool(rig.s, rig.gpu, cache, &figures));
    EXPECT_EQ(figures.reserved_bytes, 0);
    EXPECT_GE(figures.paused_bytes, 200 * MIB);
    EXPECT_EQ(figures.live_allocations, 1);
    resume_do(&rig, weights);
    EXPECT_TRUE(pause_holds(&rig, &w, 1));
    EXPECT_TRUE(pause_bytes(&rig, &k) == NULL);
    strata_block_t more = pause_allocate_in(&rig, weights, NULL, 1 * MIB, NULL);
    (void)more;
    resume_do(&rig, cache);
    EXPECT_TRUE(pause_bytes(&rig, &k) != NULL);
}

TEST(pause, every_pool_at_once) {
    PAUSED_RIG(rig, PAUSE_POOLS);
    uint64_t weights = pause_pool(&rig, "weights");
    strata_block_t w = pause_allocate_in(&rig, weights, NULL, 30 * MIB, NULL), o = rig_allocate(&rig, NULL, 10 * MIB);
    pause_write(&rig, &w, 1);
    pause_write(&rig, &o, 2);
    EXPECT_EQ(pause_do(&rig, STRATA_POOL_EVERY, STRATA_PAUSE_PINNED).rest_bytes, 0);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
    EXPECT_EQ(resume_do(&rig, weights).rest_bytes, 0);
    EXPECT_TRUE(pause_holds(&rig, &w, 1));
    EXPECT_GT(resume_do(&rig, STRATA_POOL_EVERY).bytes, 0);
    EXPECT_TRUE(pause_holds(&rig, &o, 2));
    EXPECT_EQ(rig_figures(&rig).paused_bytes, 0);
}

/* ---- tags ---- */

/* Each block has a handle of its own but the last two, which share one. */
TEST(pause, a_tag_chooses_handles_whose_blocks_all_have_it) {
    PAUSED_RIG(rig, "stack: [stream_safe, auto_growth: {chunk_size: 4MiB}, vmm]\n");
    strata_block_t a = rig_allocate_tagged(&rig, NULL, 4 * MIB, "weights"), b = rig_allocate_tagged(&rig, NULL, 4 * MIB, "cache");
    strata_block_t c = rig_allocate_tagged(&rig, NULL, 1 * MIB, "weights"), d = rig_allocate_tagged(&rig, NULL, 1 * MIB, "cache");
    pause_write(&rig, &a, 1);
    pause_write(&rig, &b, 2);
    pause_write(&rig, &c, 3);
    pause_write(&rig, &d, 4);
    strata_paused_t report;
    EXPECT_OK(pause_try(&rig, STRATA_POOL_ORDINARY, "weights", STRATA_PAUSE_PINNED, &report));
    EXPECT_EQ(report.bytes, 4 * MIB);
    EXPECT_EQ(report.rest_bytes, 8 * MIB);
    EXPECT_TRUE(pause_bytes(&rig, &a) == NULL);
    EXPECT_TRUE(pause_holds(&rig, &b, 2) && pause_holds(&rig, &c, 3) && pause_holds(&rig, &d, 4));
    EXPECT_STATUS(STRATA_E_BUSY, rig_try(&rig, NULL, 100));
    EXPECT_OK(pause_try(&rig, STRATA_POOL_ORDINARY, NULL, STRATA_PAUSE_PINNED, &report));
    EXPECT_EQ(report.bytes, 8 * MIB);
    /* Of the handle that they share both come. */
    report.struct_size = sizeof report;
    EXPECT_OK(strata_resume(rig.s, rig.gpu, STRATA_POOL_ORDINARY, "weights", &report));
    EXPECT_EQ(report.bytes, 8 * MIB);
    EXPECT_EQ(report.rest_bytes, 4 * MIB);
    EXPECT_TRUE(pause_holds(&rig, &a, 1) && pause_holds(&rig, &c, 3) && pause_holds(&rig, &d, 4));
    EXPECT_STATUS(STRATA_E_BUSY, rig_try(&rig, NULL, 100));
    EXPECT_OK(strata_resume(rig.s, rig.gpu, STRATA_POOL_ORDINARY, "cache", NULL));
    EXPECT_TRUE(pause_holds(&rig, &b, 2));
    EXPECT_OK(rig_try(&rig, NULL, 100));
}

TEST(pause, a_tag_that_nobody_has_pauses_nothing) {
    PAUSED_RIG(rig, PAUSE_MOVING);
    strata_block_t a = rig_allocate_tagged(&rig, NULL, 4 * MIB, "weights");
    strata_paused_t report;
    pause_write(&rig, &a, 1);
    EXPECT_OK(pause_try(&rig, STRATA_POOL_ORDINARY, "nobody", STRATA_PAUSE_PINNED, &report));
    EXPECT_EQ(report.bytes, 0);
    EXPECT_OK(rig_try(&rig, NULL, 100));
    EXPECT_TRUE(pause_holds(&rig, &a, 1));
}

/* ---- meanwhile ---- */

/* What is freed while it is paused does not come back, and nothing is kept of it. */
TEST(pause, blocks_are_freed_while_they_are_paused) {
    PAUSED_RIG(rig, PAUSE_MOVING);
    strata_block_t a = rig_allocate(&rig, NULL, 64 * MIB), b = rig_allocate(&rig, NULL, 3 * MIB);
    pause_write(&rig, &b, 5);
    pause_do(&rig, STRATA_POOL_ORDINARY, STRATA_PAUSE_PINNED);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_OK(strata_validate(rig.s));
    strata_paused_t back = resume_do(&rig, STRATA_POOL_ORDINARY);
    EXPECT_LT(back.bytes, 64 * MIB);
    EXPECT_TRUE(pause_holds(&rig, &b, 5));
    EXPECT_EQ(rig_figures_in(&rig, strata_pinned()).allocated_bytes, 0);
    EXPECT_OK(strata_validate(rig.s));
}

/* A pool of which everything was freed serves again after a release, and what was kept goes. */
TEST(pause, a_release_ends_the_pause_of_a_pool_that_is_empty) {
    PAUSED_RIG(rig, PAUSE_MOVING);
    strata_block_t a = rig_allocate(&rig, NULL, 64 * MIB);
    pause_do(&rig, STRATA_POOL_ORDINARY, STRATA_PAUSE_PINNED);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_STATUS(STRATA_E_BUSY, rig_try(&rig, NULL, 100));
    rig_release(&rig);
    EXPECT_EQ(rig_figures(&rig).paused_bytes, 0);
    EXPECT_EQ(rig_figures_in(&rig, strata_pinned()).allocated_bytes, 0);
    EXPECT_OK(rig_try(&rig, NULL, 100));
}

TEST(pause, borrows_names_and_pointers_go_on) {
    PAUSED_RIG(rig, PAUSE_MOVING);
    strata_stream_t other = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, NULL, 5 * MIB), found;
    pause_do(&rig, STRATA_POOL_ORDINARY, STRATA_PAUSE_PINNED);
    EXPECT_OK(strata_retain(rig.s, a.ref));
    EXPECT_OK(strata_record_stream(rig.s, a.ref, other));
    EXPECT_OK(strata_block_of(rig.s, a.ptr, &found));
    EXPECT_EQ(found.ref, a.ref);
    EXPECT_OK(strata_release_ref(rig.s, a.ref));
    rig_trim(&rig, 1);
    EXPECT_OK(strata_set_limit(rig.s, rig.gpu, 6 * MIB));
    EXPECT_OK(strata_free_pointer(rig.s, a.ptr));
    resume_do(&rig, STRATA_POOL_ORDINARY);
    EXPECT_OK(strata_set_limit(rig.s, rig.gpu, STRATA_UNLIMITED));
}

/* A stack that a stream gets while its pool is paused is as closed as the others, and opens with them: also where its hits are served
 * from what all streams share. */
static const kind_t with_idle[] = {
    {"own_cache", PAUSE_MOVING},
    {"shared_cache", "stack: [caching: {streams: ignored}, vmm]"},
};

TEST_EACH(pause, new_streams_wait_too, kind_t, with_idle) {
    PAUSED_RIG(rig, row->strategy);
    strata_block_t a = rig_allocate(&rig, NULL, 5 * MIB), b = rig_allocate(&rig, NULL, 3 * MIB);
    (void)a;
    pause_do(&rig, STRATA_POOL_ORDINARY, STRATA_PAUSE_DROP);
    strata_stream_t other = rig_stream(&rig);
    EXPECT_OK(strata_free(rig.s, b.ref));
    for (int i = 0; i < 3; i++) EXPECT_STATUS(STRATA_E_BUSY, rig_try(&rig, other, 2 * MIB));
    resume_do(&rig, STRATA_POOL_ORDINARY);
    for (int i = 0; i < 3; i++) EXPECT_OK(rig_try(&rig, other, 2 * MIB));
}

/* Work that was given to any stream is over before its memory goes. */
TEST(pause, it_waits_for_every_stream) {
    PAUSED_RIG(rig, PAUSE_MOVING);
    strata_stream_t other = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, NULL, 5 * MIB), b = rig_allocate(&rig, other, 5 * MIB);
    rig_work(&rig, NULL, 4000000, a.ref);
    rig_borrow(&rig, b.ref, NULL, 3000000);
    rig_work(&rig, other, 9000000, b.ref);
    EXPECT_OK(strata_free(rig.s, b.ref));
    pause_write(&rig, &a, 9);
    pause_do(&rig, STRATA_POOL_ORDINARY, STRATA_PAUSE_PINNED);
    resume_do(&rig, STRATA_POOL_ORDINARY);
    EXPECT_TRUE(pause_holds(&rig, &a, 9));
    EXPECT_OK(strata_stream_synchronize(rig.s, rig.gpu, other));
}

TEST(pause, twice_is_once) {
    PAUSED_RIG(rig, PAUSE_MOVING);
    strata_block_t a = rig_allocate(&rig, NULL, 5 * MIB);
    pause_write(&rig, &a, 4);
    EXPECT_GT(pause_do(&rig, STRATA_POOL_ORDINARY, STRATA_PAUSE_PINNED).bytes, 0);
    EXPECT_EQ(pause_do(&rig, STRATA_POOL_ORDINARY, STRATA_PAUSE_DROP).bytes, 0);
    EXPECT_GT(resume_do(&rig, STRATA_POOL_ORDINARY).bytes, 0);
    EXPECT_EQ(resume_do(&rig, STRATA_POOL_ORDINARY).bytes, 0);
    EXPECT_TRUE(pause_holds(&rig, &a, 4));
}

/* ---- peers ---- */

TEST(pause, peers_have_access_again) {
    PAUSED_RIG(rig, PAUSE_MOVING);
    strata_block_t a = rig_allocate(&rig, NULL, 5 * MIB);
    EXPECT_OK(strata_enable_peer(rig.s, 1, 0));
    pause_do(&rig, STRATA_POOL_ORDINARY, STRATA_PAUSE_PINNED);
    EXPECT_OK(strata_enable_peer(rig.s, 0, 1));
    resume_do(&rig, STRATA_POOL_ORDINARY);
    EXPECT_OK(strata_device_fill(rig.devices[1], (uintptr_t)a.ptr, 3, a.size, NULL));
    pause_do(&rig, STRATA_POOL_ORDINARY, STRATA_PAUSE_PINNED);
    resume_do(&rig, STRATA_POOL_ORDINARY);
    EXPECT_OK(strata_device_fill(rig.devices[1], (uintptr_t)a.ptr, 4, a.size, NULL));
    EXPECT_EQ(pause_bytes(&rig, &a)[a.size - 1], 4);
}

/* ---- scrub ---- */

/* Nobody sees what another owner has left in memory that the device hands out. */
TEST(pause, what_was_dropped_comes_back_as_zeros_under_scrub) {
    PAUSED_RIG(rig, "stack: [scrub, stream_safe, auto_growth_vmm, vmm]\n");
    strata_block_t a = rig_allocate(&rig, NULL, 5 * MIB);
    pause_write(&rig, &a, 7);
    pause_do(&rig, STRATA_POOL_ORDINARY, STRATA_PAUSE_DROP);
    uint64_t fills = rig_calls(&rig, STRATA_CALL_fill);
    strata_paused_t back = resume_do(&rig, STRATA_POOL_ORDINARY);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_fill) - fills, back.handles);
    EXPECT_EQ(pause_bytes(&rig, &a)[0], 0);
    pause_write(&rig, &a, 7);
    pause_do(&rig, STRATA_POOL_ORDINARY, STRATA_PAUSE_PINNED);
    resume_do(&rig, STRATA_POOL_ORDINARY);
    EXPECT_TRUE(pause_holds(&rig, &a, 7));
}
