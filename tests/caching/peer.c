/* PyTorch's own tests of its allocator (test/test_cuda.py), written anew: each case has the name of the peer's. */
#include <pthread.h>
#include <stdlib.h>

#include "tests/caching/caching.h"
#include "tests/harness/owned.h"

#define CONTENTS ((strata_sim_options_t){.capacity = 2 * GIB, .contents = true})

/* ---- serving ---- */

typedef struct marked {
    strata_block_t block;
    uint64_t mark;
} marked_t;

static uint64_t *word_of(rig_t *rig, const marked_t *m, bool last) {
    unsigned char *bytes = strata_device_host_view(rig->devices[0], (uint64_t)(uintptr_t)m->block.ptr, m->block.size);
    if (!bytes) return NULL;
    return (uint64_t *)(void *)(last ? bytes + m->block.size - sizeof(uint64_t) : bytes);
}

static void drop(rig_t *rig, const marked_t *m) {
    for (int last = 0; last < 2; last++) {
        const uint64_t *word = word_of(rig, m, last != 0);
        EXPECT_TRUE(word && *word == m->mark);
    }
    EXPECT_OK(strata_free(rig->s, m->block.ref));
}

TEST(pytorch, test_allocator_fuzz) {
    strata_strategy_t *strategy CLOSED_BY(strategy_gone) = rig_strategy("pytorch", NULL, 0);
    RIG_BY(rig, rig_open_on(&rig, strategy, &CONTENTS, 0));
    marked_t live[24];
    uint32_t count = 0;
    uint64_t random = 9;
    for (int i = 0; i < 10000 && !strata_test_has_failed(); i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        uint64_t dice = random >> 33;
        if (dice % 100 == 0) {
            EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
        } else if (count < 24 && (count == 0 || dice % 2)) {
            marked_t m = {.block = rig_allocate(&rig, NULL, 2 * MIB + dice % (18 * MIB)), .mark = random};
            for (int last = 0; last < 2; last++) *word_of(&rig, &m, last != 0) = random;
            live[count++] = m;
        } else {
            uint32_t at = (uint32_t)(dice / 2 % count);
            drop(&rig, &live[at]);
            live[at] = live[--count];
        }
    }
    EXPECT_OK(strata_validate(rig.s));
    while (count > 0) drop(&rig, &live[--count]);
}

static void expect_granted(const char *options, size_t requested, size_t granted) {
    RIG_BY(rig, caching_open(&rig, options, 0));
    strata_block_t b = rig_allocate(&rig, NULL, requested);
    EXPECT_EQ(b.size, granted);
    EXPECT_EQ(rig_figures(&rig).requested_bytes, requested);
    EXPECT_OK(strata_free(rig.s, b.ref));
}

TEST(pytorch, test_allocator_settings) {
    const size_t large = 84 * MIB + 5, small = 600 * KIB + 1;
    expect_granted("", small, 600 * KIB + 512);
    expect_granted("roundup_power2_divisions: 4", small, 640 * KIB);
    expect_granted("roundup_power2_divisions: 1", small, 600 * KIB + 512);
    expect_granted("roundup_power2_divisions: 4", 2048, 2048);
    expect_granted("roundup_power2_divisions: 4", 2049, 2560);
    expect_granted("roundup_power2_divisions: 4, max_split_size: 64MiB", large, 96 * MIB);
    expect_granted("roundup_power2_divisions: 8, max_split_size: 64MiB", large, 88 * MIB);
    const char *by_size = "max_split_size: 64MiB, roundup_power2_divisions: \"[64:8,128:2,256:2,512:2,1024:1,>:1]\"";
    expect_granted(by_size, large, 88 * MIB);
    expect_granted(by_size, 130 * MIB, 192 * MIB);
    expect_granted(by_size, 1100 * MIB, 1100 * MIB);
    expect_granted(by_size, small, 640 * KIB);
    caching_expect_refused("no_such_setting: 1", "no_such_setting");
    caching_expect_refused("roundup_power2_divisions: 3", "\"3\" are no divisions; write a power of two");
    caching_expect_refused("roundup_power2_divisions: \"[64:8,100:2]\"", "write a power of two");
    caching_expect_refused("roundup_power2_divisions: \"[64:8,128\"", "write a power of two");
    caching_expect_refused("roundup_power2_divisions: \"[64:]\"", "write a power of two");
    caching_expect_refused("roundup_power2_divisions: \"[:8]\"", "write a power of two");
    expect_granted("roundup_power2_divisions: 134217728", 2049, 2560);
    caching_expect_refused("max_split_size: 2MiB", "too small");
    caching_expect_refused("garbage_collection_threshold: 1.2, memory_fraction: 0.5", "too large");
    caching_expect_refused("max_non_split_rounding: 1MiB", "too small");
}

TEST(pytorch, test_raises_oom) {
    for (int split = 0; split < 2; split++) {
        RIG_BY(rig, caching_open(&rig, split ? "max_split_size: 200MiB" : "", 0));
        strata_block_t b;
        EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 4096 * GIB, &b));
        EXPECT_EQ(rig_figures(&rig).ladders, 0);
    }
}

static void note_oom(const strata_out_of_memory_t *report, void *context) {
    EXPECT_EQ(report->size, 4096 * GIB);
    ++*(int *)context;
}

TEST(pytorch, test_notifies_oom) {
    int told = 0;
    uint32_t id;
    RIG(rig, "pytorch", 0);
    EXPECT_OK(strata_add_out_of_memory_observer(rig.s, note_oom, &told, &id));
    strata_block_t b;
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 4096 * GIB, &b));
    EXPECT_EQ(told, 1);
}

TEST(pytorch, test_allocator_memory_fraction_setting) {
    static const char *const fractions[] = {"memory_fraction: 0", "memory_fraction: 0.5", "memory_fraction: 1"};
    for (size_t i = 0; i < 3; i++) {
        RIG_BY(rig, caching_open(&rig, fractions[i], 256 * MIB));
        EXPECT_NEAR(caching_options_of(caching_of(&rig))->memory_fraction, 0.5 * (double)i, 1e-9);
        strata_block_t b;
        uint64_t mallocs = rig_calls(&rig, STRATA_CALL_malloc);
        strata_status_t status = strata_allocate(rig.s, rig.gpu, NULL, 8 * MIB, &b);
        EXPECT_EQ(status, i == 0 ? STRATA_E_NO_MEMORY : STRATA_OK);
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc) - mallocs, i == 0 ? 0 : 1);
        if (status == STRATA_OK) EXPECT_OK(strata_free(rig.s, b.ref));
    }
    caching_expect_refused("memory_fraction: -0.1", "no fraction");
    caching_expect_refused("memory_fraction: 1.1", "too large; write a value from 0 to 1");
}

/* The peer mixes expandable segments in; here blocks that may be split and blocks that may not. */
TEST(pytorch, test_max_split_expandable) {
    static const char *const options[] = {"", "max_split_size: 40MiB", "max_split_size: 41MiB"};
    for (size_t i = 0; i < 3; i++) {
        RIG_BY(rig, caching_open(&rig, options[i], 120 * MIB));
        strata_block_t blocks[3], fourth;
        for (int n = 0; n < 3; n++) blocks[n] = rig_allocate(&rig, NULL, 40 * MIB);
        EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 40 * MIB, &fourth));
        for (int n = 0; n < 3; n++) EXPECT_OK(strata_free(rig.s, blocks[n].ref));
        strata_block_t all = rig_allocate(&rig, NULL, 120 * MIB);
        EXPECT_OK(strata_free(rig.s, all.ref));
    }
}

/* Split and unsplit blocks, of two streams, lie idle when garbage is collected. */
TEST(pytorch, test_garbage_collect_expandable) {
    RIG_BY(rig, caching_open(&rig, "memory_fraction: 0.5, garbage_collection_threshold: 0.5", 0));
    strata_stream_t streams[2] = {rig_stream(&rig), rig_stream(&rig)};
    caching_t *self = caching_of(&rig);
    self->allowed = 240 * MIB;
    self->collect_above = 120 * MIB;
    strata_block_t kept = rig_allocate(&rig, streams[0], 3 * MIB);
    for (int round = 0; round < 6; round++)
        for (size_t i = 0; i < 2; i++) {
            strata_block_t b = rig_allocate(&rig, streams[i], (11 + 2 * (size_t)round) * MIB);
            EXPECT_OK(strata_free(rig.s, b.ref));
            EXPECT_LE(caching_reserved(&rig), 240 * MIB);
        }
    EXPECT_GT(self->collected_bytes, 0);
    EXPECT_EQ(rig_figures(&rig).out_of_memory, 0);
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_OK(strata_free(rig.s, kept.ref));
}

typedef struct seen {
    uint32_t live, rows;
    strata_block_t block;
    size_t requested;
} seen_t;

static void note_row(const strata_snapshot_row_t *row, void *context) {
    seen_t *seen = context;
    seen->rows++;
    if (row->state != 1) return;
    seen->live++;
    seen->block = row->block;
    seen->requested = row->requested;
}

TEST(pytorch, test_memory_snapshot) {
    RIG(rig, "pytorch", 0);
    seen_t seen = {0};
    strata_block_t b = rig_allocate(&rig, NULL, 311 * 411 * 4);
    EXPECT_OK(strata_snapshot(rig.s, rig.gpu, note_row, &seen));
    EXPECT_EQ(seen.live, 1);
    EXPECT_EQ(seen.rows, 2);
    EXPECT_EQ(seen.requested, 311 * 411 * 4);
    EXPECT_TRUE(seen.block.ptr == b.ptr && seen.block.ref == b.ref);
    EXPECT_OK(strata_free(rig.s, b.ref));
    uint64_t frees = rig_calls(&rig, STRATA_CALL_free);
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_free) - frees, 1);
    seen = (seen_t){0};
    EXPECT_OK(strata_snapshot(rig.s, rig.gpu, note_row, &seen));
    EXPECT_EQ(seen.rows, 0);
}

/* ---- private pools ---- */

TEST(pytorch, test_mempool_with_allocator) {
    RIG_BY(rig, caching_open(&rig, "", 0));
    strata_layer_t *layer = &caching_of(&rig)->base;
    EXPECT_OK(strata_caching_pool_hold(layer, 7));
    EXPECT_OK(strata_caching_pool_hold(layer, 7));
    strata_caching_pool_let_go(layer, 7);
    strata_block_t outside = rig_allocate(&rig, NULL, MIB), in_pool[3];
    EXPECT_EQ(caching_reserved(&rig), 2 * MIB);
    for (int i = 0; i < 3; i++) {
        in_pool[i] = caching_in_pool(&rig, NULL, MIB, 7);
        EXPECT_EQ(caching_reserved(&rig), (i < 2 ? 4 : 6) * MIB);
    }
    for (int i = 0; i < 3; i++) EXPECT_OK(strata_free(rig.s, in_pool[i].ref));
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(caching_reserved(&rig), 6 * MIB);
    strata_caching_pool_let_go(layer, 7);
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(caching_reserved(&rig), 2 * MIB);
    EXPECT_OK(strata_free(rig.s, outside.ref));
}

TEST(pytorch, test_tensor_delete_after_allocator_delete) {
    RIG_BY(rig, caching_open(&rig, "", 0));
    strata_layer_t *layer = &caching_of(&rig)->base;
    EXPECT_OK(strata_caching_pool_hold(layer, 7));
    strata_block_t b = caching_in_pool(&rig, NULL, 3 * MIB, 7);
    strata_caching_pool_let_go(layer, 7);
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(caching_reserved(&rig), 20 * MIB);
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_OK(strata_free(rig.s, b.ref));
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(caching_reserved(&rig), 0);
}

static void limited_memory(const char *options, bool borrowed) {
    RIG_BY(rig, caching_open(&rig, options, 40 * MIB));
    strata_layer_t *layer = &caching_of(&rig)->base;
    EXPECT_OK(strata_caching_pool_hold(layer, 7));
    strata_block_t in_pool = caching_in_pool(&rig, NULL, 24 * MIB, 7), outside = {.ptr = NULL};
    EXPECT_OK(strata_free(rig.s, in_pool.ref));
    strata_status_t status = strata_allocate(rig.s, rig.gpu, NULL, 24 * MIB, &outside);
    EXPECT_EQ(status, borrowed ? STRATA_OK : STRATA_E_NO_MEMORY);
    EXPECT_TRUE(!borrowed || outside.ptr == in_pool.ptr);
    if (status == STRATA_OK) EXPECT_OK(strata_free(rig.s, outside.ref));
    strata_block_t again = caching_in_pool(&rig, NULL, 24 * MIB, 7);
    EXPECT_EQ(again.ptr, in_pool.ptr);
    EXPECT_OK(strata_free(rig.s, again.ref));
    strata_caching_pool_let_go(layer, 7);
}

TEST(pytorch, test_mempool_limited_memory_with_allocator) {
    limited_memory("", false);
    limited_memory("pools_on_oom: true", true);
}

/* What a pool that was let go still has beside a live block is nobody's. */
TEST(pytorch, test_deleted_mempool_not_used_on_oom) {
    for (int deleted = 0; deleted < 2; deleted++) {
        RIG_BY(rig, caching_open(&rig, "pools_on_oom: true, large_segment: 32MiB", 40 * MIB));
        strata_layer_t *layer = &caching_of(&rig)->base;
        EXPECT_OK(strata_caching_pool_hold(layer, 7));
        strata_block_t in_pool = caching_in_pool(&rig, NULL, 8 * MIB, 7), b;
        if (deleted) strata_caching_pool_let_go(layer, 7);
        strata_status_t status = strata_allocate(rig.s, rig.gpu, NULL, 20 * MIB, &b);
        EXPECT_EQ(status, deleted ? STRATA_E_NO_MEMORY : STRATA_OK);
        if (status == STRATA_OK) EXPECT_OK(strata_free(rig.s, b.ref));
        EXPECT_OK(strata_free(rig.s, in_pool.ref));
        if (!deleted) strata_caching_pool_let_go(layer, 7);
    }
}

TEST(pytorch, test_mempool_no_split) {
    RIG_BY(rig, caching_open(&rig, "pool_no_split: true", 0));
    strata_block_t in_pool[2], outside[2];
    for (int i = 0; i < 2; i++) in_pool[i] = caching_in_pool(&rig, NULL, 1000, 7);
    EXPECT_EQ(rig_figures(&rig).chunks, 2);
    EXPECT_EQ(in_pool[0].size, 2 * MIB);
    for (int i = 0; i < 2; i++) outside[i] = rig_allocate(&rig, NULL, 1000);
    EXPECT_EQ(rig_figures(&rig).chunks, 3);
    seen_t seen = {0};
    EXPECT_OK(strata_snapshot(rig.s, rig.gpu, note_row, &seen));
    EXPECT_EQ(seen.rows, 2 + 3);
    for (int i = 0; i < 2; i++) EXPECT_OK(strata_free(rig.s, in_pool[i].ref));
    for (int i = 0; i < 2; i++) EXPECT_OK(strata_free(rig.s, outside[i].ref));
}

static bool in_segment(const strata_block_t *b, const strata_block_t *first) {
    return (uintptr_t)b->ptr - (uintptr_t)first->ptr < 2 * MIB;
}

static void *allocate_outside(void *context) {
    rig_t *rig = context;
    strata_block_t *b = malloc(sizeof *b);
    *b = rig_allocate(rig, NULL, 4096);
    return b;
}

/* test_mempool_ctx_multithread too: a request names its pool, so no other thread is drawn in. */
TEST(pytorch, test_nested_mempool) {
    RIG_BY(rig, caching_open(&rig, "", 0));
    strata_block_t none = rig_allocate(&rig, NULL, 4096), outer = caching_in_pool(&rig, NULL, 4096, 1);
    strata_block_t inner = caching_in_pool(&rig, NULL, 4096, 2), outer_again = caching_in_pool(&rig, NULL, 4096, 1);
    pthread_t thread;
    void *other = NULL;
    ASSERT_EQ(pthread_create(&thread, NULL, allocate_outside, &rig), 0);
    pthread_join(thread, &other);
    EXPECT_EQ(rig_figures(&rig).chunks, 3);
    EXPECT_TRUE(in_segment(&outer_again, &outer));
    EXPECT_FALSE(in_segment(&inner, &outer));
    EXPECT_TRUE(in_segment(other, &none));
    EXPECT_OK(strata_free(rig.s, ((strata_block_t *)other)->ref));
    free(other);
    const strata_block_t *all[] = {&none, &outer, &inner, &outer_again};
    for (size_t i = 0; i < 4; i++) EXPECT_OK(strata_free(rig.s, all[i]->ref));
}

static void capture(rig_t *rig, bool begin) {
    caching_t *self = caching_of(rig);
    strata_call_t call = {.stack = self->base.stack};
    bool entered = strata_call_enter(&call, &self->base);
    if (begin) strata_caching_capture_begin(&self->base, 7, &call);
    else strata_caching_capture_end(&self->base, 7, &call);
    strata_call_leave(&call, &self->base, entered);
}

/* A block borrowed and freed inside a capture comes back when that is over, and no event is asked for meanwhile. */
TEST(pytorch, test_graph_capture_reclaim_2_streams) {
    RIG_BY(rig, caching_open(&rig, "", 0));
    strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
    capture(&rig, true);
    strata_block_t a = caching_in_pool(&rig, one, 5 * MIB, 7);
    EXPECT_OK(strata_record_stream(rig.s, a.ref, two));
    uint64_t records = rig_calls(&rig, STRATA_CALL_event_record), queries = rig_calls(&rig, STRATA_CALL_event_query);
    EXPECT_OK(strata_free(rig.s, a.ref));
    strata_block_t b = caching_in_pool(&rig, one, 5 * MIB, 7);
    EXPECT_NE(b.ptr, a.ptr);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_event_record), records);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_event_query), queries);
    EXPECT_OK(strata_validate(rig.s));
    capture(&rig, false);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_event_record), records + 1);
    strata_block_t c = caching_in_pool(&rig, one, 5 * MIB, 7);
    EXPECT_EQ(c.ptr, a.ptr);
    RIG_FREE(&rig, b, c);
}
