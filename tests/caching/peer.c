/* PyTorch's own tests of its allocator (test/test_cuda.py), written anew: each case has the name of the peer's. */
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
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = rig_strategy("pytorch", NULL, 0);
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
    caching_expect_refused("roundup_power2_divisions: 3", "\"3\" is not a list of divisions; write a power of two");
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
        EXPECT_EQ(rig_figures(&rig).recoveries, 0);
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
    caching_expect_refused("memory_fraction: -0.1", "not a fraction");
    caching_expect_refused("memory_fraction: 1.1", "too large; write a value from 0 to 1");
}

/* The peer mixes expandable segments in; here blocks that may be split and blocks that may not (expandable.c has the others). */
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
