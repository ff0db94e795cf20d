/* TensorFlow's and XLA's own tests of their allocator, written anew: each case has the name of the peer's.
 * docs/peers.md has them all. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "allocation/cache/policies/bfc/bfc_debug.h"
#include "lab/conform/rig/source.h"
#include "tests/bfc/bfc.h"

#define ONE_GIB "memory_limit: 1GiB, allow_growth: false"

/* ---- serving ---- */

static int by_address(const void *a, const void *b) {
    uintptr_t x = (uintptr_t)((const strata_block_t *)a)->ptr, y = (uintptr_t)((const strata_block_t *)b)->ptr;
    return (x > y) - (x < y);
}

static void expect_disjoint(strata_block_t *blocks, size_t count) {
    qsort(blocks, count, sizeof *blocks, by_address);
    for (size_t i = 1; i < count; i++) EXPECT_GE((char *)blocks[i].ptr - (char *)blocks[i - 1].ptr, (ptrdiff_t)blocks[i - 1].size);
}

TEST(tensorflow_bfc, no_dups) {
    static strata_block_t blocks[1023];
    RIG_BY(rig, bfc_open(&rig, ONE_GIB, 0));
    for (size_t i = 0; i < 1023; i++) blocks[i] = rig_allocate(&rig, NULL, i + 1);
    expect_disjoint(blocks, 1023);
    strata_statistics_t f = rig_figures(&rig);
    EXPECT_EQ(f.allocations, 1023);
    EXPECT_EQ(f.allocated_bytes, 654336);
    EXPECT_EQ(f.peak_allocated_bytes, 654336);
    EXPECT_EQ(bfc_of(&rig)->largest_allocation, 1024);
    bfc_free_all(&rig, blocks, 1023);
    EXPECT_EQ(rig_figures(&rig).allocated_bytes, 0);
    EXPECT_EQ(rig_figures(&rig).peak_allocated_bytes, 654336);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), 1);
}

TEST(tensorflow_bfc, allocations_and_deallocations) {
    static strata_block_t blocks[2 * 255];
    uint64_t random = 2015;
    RIG_BY(rig, bfc_open(&rig, ONE_GIB, 0));
    for (size_t i = 0; i < 255; i++) blocks[i] = rig_allocate(&rig, NULL, 1 + bfc_next(&random, MIB));
    size_t kept = 0;
    for (size_t i = 0; i < 255; i++) {
        if (i % 2) EXPECT_OK(strata_free(rig.s, blocks[i].ref));
        else blocks[kept++] = blocks[i];
    }
    strata_block_t none;
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, GIB + 1, &none));
    for (size_t i = 0; i < 255; i++) blocks[kept++] = rig_allocate(&rig, NULL, 1 + bfc_next(&random, MIB));
    expect_disjoint(blocks, kept);
    EXPECT_OK(strata_validate(rig.s));
    bfc_free_all(&rig, blocks, kept);
}

TEST(tensorflow_bfc, exercise_coalescing) {
    static const size_t sizes[] = {4 * KIB, 8 * MIB, 16 * KIB, 40 * MIB};
    RIG_BY(rig, bfc_open(&rig, ONE_GIB, 0));
    strata_block_t first = rig_allocate(&rig, NULL, 4 * KIB), blocks[4];
    EXPECT_OK(strata_free(rig.s, first.ref));
    for (int round = 0; round < 1024; round++) {
        for (int i = 0; i < 4; i++) blocks[i] = rig_allocate(&rig, NULL, sizes[i]);
        bfc_free_all(&rig, blocks, 4);
    }
    strata_statistics_t f = rig_figures(&rig);
    EXPECT_EQ(f.allocations, 4097);
    EXPECT_EQ(f.peak_allocated_bytes, sizes[0] + sizes[1] + sizes[2] + sizes[3]);
    EXPECT_EQ(bfc_of(&rig)->largest_allocation, 40 * MIB);
    strata_block_t last = rig_allocate(&rig, NULL, 4 * KIB);
    EXPECT_EQ(last.ptr, first.ptr);
    EXPECT_OK(strata_free(rig.s, last.ref));
}

TEST(tensorflow_bfc, allocate_zero_buf_size) {
    RIG_BY(rig, bfc_open(&rig, ONE_GIB, 0));
    strata_block_t b = rig_allocate(&rig, NULL, 0);
    EXPECT_EQ(b.ptr, NULL);
    EXPECT_OK(strata_free(rig.s, b.ref));
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), 0);
}

TEST(tensorflow_bfc, allocated_vs_requested) {
    RIG_BY(rig, bfc_open(&rig, ONE_GIB, 0));
    strata_block_t b = rig_allocate(&rig, NULL, 4);
    EXPECT_EQ(b.size, 256);
    EXPECT_EQ(rig_figures(&rig).requested_bytes, 4);
    EXPECT_OK(strata_free(rig.s, b.ref));
}

TEST(tensorflow_bfc, test_custom_memory_limit) {
    RIG_BY(rig, bfc_open(&rig, "memory_limit: 2MiB", 0));
    strata_block_t b = rig_allocate(&rig, NULL, 256), none;
    EXPECT_SAYS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 8 * MIB, &none), "bfc.memory_limit allows 2MiB");
    EXPECT_OK(strata_free(rig.s, b.ref));
}

TEST(tensorflow_bfc, bins_are_powers_of_two_of_256_bytes) {
    static const struct {
        uint64_t size;
        uint32_t bin;
    } cases[] = {{1, 0},
                 {255, 0},
                 {256, 0},
                 {511, 0},
                 {512, 1},
                 {1023, 1},
                 {1024, 2},
                 {256ull << 19, 19},
                 {(256ull << 20) - 1, 19},
                 {256ull << 20, 20},
                 {256ull << 21, 20},
                 {UINT64_MAX, 20}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) EXPECT_EQ(bfc_bin_of(cases[i].size), cases[i].bin);
}

TEST(tensorflow_bfc, bin_debug_info) {
    bfc_bin_t bins[STRATA_BFC_BINS];
    strata_block_t blocks[10];
    RIG_BY(rig, bfc_open(&rig, ONE_GIB, 0));
    for (size_t i = 0; i < 10; i++) blocks[i] = rig_allocate(&rig, NULL, (256ull << (i / 2)) - 17 * (i % 2));
    strata_bfc_sum_bins(bfc_of(&rig), bins);
    for (uint32_t b = 0; b < STRATA_BFC_BINS; b++) {
        bool used = b < 5, last = b == STRATA_BFC_BINS - 1;
        EXPECT_EQ(bins[b].chunks, used ? 2 : last ? 1 : 0);
        EXPECT_EQ(bins[b].chunks_in_use, used ? 2 : 0);
        EXPECT_EQ(bins[b].bytes_in_use, used ? 512ull << b : 0);
        EXPECT_EQ(bins[b].requested_in_use, used ? (512ull << b) - 17 : 0);
        EXPECT_EQ(bins[b].bytes, used ? 512ull << b : last ? GIB - 512 * 31 : 0);
    }
    bfc_free_all(&rig, blocks, 10);
}

TEST(tensorflow_bfc, force_allow_growth) {
    static const char *const options[] = {"memory_limit: 2GiB", "memory_limit: 2GiB, allow_growth: true",
                                          "memory_limit: 2GiB, allow_growth: false"};
    for (size_t i = 0; i < 3; i++) {
        RIG_BY(rig, bfc_open(&rig, options[i], 0));
        strata_block_t b = rig_allocate(&rig, NULL, 1);
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, i < 2 ? 2 * MIB : 2 * GIB);
        EXPECT_OK(strata_free(rig.s, b.ref));
    }
}

/* ---- regions ---- */

/* 128 blocks of 4 MiB, of which all but one are freed. */
static void leave_one_of_many(rig_t *rig, strata_block_t blocks[128]) {
    for (int i = 0; i < 128; i++) blocks[i] = rig_allocate(rig, NULL, 4 * MIB);
    for (int i = 0; i < 127; i++) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
}

#define GROWING "memory_limit: 512MiB, garbage_collection: false"

TEST(tensorflow_bfc, physical_allocator_ooms_fragmentation) {
    strata_block_t blocks[128], none;
    RIG_BY(rig, bfc_open(&rig, GROWING, 0));
    leave_one_of_many(&rig, blocks);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 512 * MIB);
    EXPECT_GT(bfc_of(&rig)->chunks.count, 1);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 508 * MIB, &none));
    EXPECT_OK(strata_free(rig.s, blocks[127].ref));
}

TEST(tensorflow_bfc, virtual_allocator_promotes_reuse) {
    strata_block_t blocks[128];
    RIG_BY(rig, bfc_open_adjacent(&rig, GROWING ", coalesce_regions: true"));
    leave_one_of_many(&rig, blocks);
    EXPECT_EQ(bfc_of(&rig)->chunks.count, 1);
    strata_block_t large = rig_allocate(&rig, NULL, 508 * MIB);
    EXPECT_EQ(large.ptr, blocks[0].ptr);
    EXPECT_OK(strata_validate(rig.s));
    RIG_FREE(&rig, large, blocks[127]);
}

TEST(tensorflow_bfc, test_region_deallocation) {
    strata_block_t blocks[128];
    RIG_BY(rig, bfc_open(&rig, "memory_limit: 2GiB", 0));
    leave_one_of_many(&rig, blocks);
    EXPECT_GT(bfc_of(&rig)->chunks.count, 1);
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(bfc_of(&rig)->chunks.count, 1);
    EXPECT_EQ(bfc_of(&rig)->idle.count, 1);
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_OK(strata_free(rig.s, blocks[127].ref));
}

TEST(tensorflow_bfc, test_no_region_deallocation) {
    strata_block_t blocks[128];
    uint64_t released = 1;
    RIG_BY(rig, bfc_open_adjacent(&rig, "memory_limit: 2GiB, coalesce_regions: true"));
    leave_one_of_many(&rig, blocks);
    EXPECT_EQ(bfc_of(&rig)->chunks.count, 1);
    EXPECT_OK(strata_release(rig.s, rig.gpu, &released));
    EXPECT_EQ(released, 0);
    EXPECT_EQ(bfc_of(&rig)->chunks.count, 1);
    EXPECT_OK(strata_free(rig.s, blocks[127].ref));
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(bfc_of(&rig)->chunks.count, 0);
}

TEST(tensorflow_bfc, extend_terminates_when_sub_allocator_always_fails) {
    static const char *const options[] = {"memory_limit: 2KiB, allow_growth: false", "memory_limit: 1GiB, allow_growth: false"};
    (void)strata_register_layer(&test_source_type);
    for (size_t i = 0; i < 2; i++) {
        RIG_BY(rig, bfc_open_over(&rig, options[i], test_source_type.name, 0));
        strata_block_t none;
        uint64_t before = test_source_calls();
        test_source_fail(1, true, STRATA_E_NO_MEMORY);
        EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 256, &none));
        test_source_fail(0, false, STRATA_OK);
        EXPECT_GT(test_source_calls() - before, 5);
        EXPECT_LE(test_source_calls() - before, 1000);
    }
}

/* ---- alignment ---- */

TEST(tensorflow_bfc, respects_requested_alignment) {
    for (size_t alignment = 32; alignment <= 4096; alignment *= 2) {
        strata_block_t blocks[9];
        RIG_BY(rig, bfc_open(&rig, ONE_GIB, 0));
        blocks[8] = bfc_serve(&rig, NULL, 256, 32);
        for (int i = 0; i < 8; i++) {
            blocks[i] = bfc_serve(&rig, NULL, 1000, alignment);
            EXPECT_TRUE(blocks[i].ref != 0 && (uintptr_t)blocks[i].ptr % alignment == 0);
        }
        EXPECT_OK(strata_validate(rig.s));
        bfc_free_all(&rig, blocks, 9);
        EXPECT_EQ(bfc_of(&rig)->idle.count, 1);
    }
}

TEST(tensorflow_bfc, stress_alloc_free) {
    static strata_block_t blocks[350];
    uint64_t random = 7;
    RIG_BY(rig, bfc_open(&rig, "memory_limit: 16MiB, allow_growth: false", 0));
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < 350; i++) {
            blocks[i] = bfc_serve(&rig, NULL, 1 + bfc_next(&random, 8 * KIB), 32ull << bfc_next(&random, 8));
            EXPECT_NE(blocks[i].ref, 0);
        }
        for (size_t i = 349; i > 0; i--) {
            size_t other = bfc_next(&random, i + 1);
            strata_block_t swapped = blocks[i];
            blocks[i] = blocks[other];
            blocks[other] = swapped;
        }
        EXPECT_OK(strata_validate(rig.s));
        bfc_free_all(&rig, blocks, 350);
    }
}

/* ---- figures and reports ---- */

TEST(tensorflow_bfc, oom_logs_allocation_annotations) {
    RIG_BY(rig, bfc_open(&rig, "memory_limit: 2MiB, memory_debug: true", 0));
    EXPECT_OK(strata_step(rig.s));
    EXPECT_OK(strata_annotate(rig.s, "training/layer_7/conv"));
    strata_block_t b = rig_allocate(&rig, NULL, MIB), none;
    EXPECT_OK(strata_annotate(rig.s, NULL));
    EXPECT_SAYS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 8 * MIB, &none), "InUse at 0x");
    EXPECT_CONTAINS(strata_last_error()->text, "of size 1MiB by op training/layer_7/conv step 1 action_count 1 allocation 1");
    EXPECT_OK(strata_free(rig.s, b.ref));
}

/* Strata never clears its counts; only its peaks are reset. */
TEST(tensorflow_bfc, get_and_clear_memory_stats) {
    RIG_BY(rig, bfc_open(&rig, ONE_GIB, 0));
    strata_block_t a = rig_allocate(&rig, NULL, 1024), b = rig_allocate(&rig, NULL, 2048);
    EXPECT_EQ(rig_figures(&rig).allocated_bytes, 3072);
    EXPECT_EQ(rig_figures(&rig).peak_allocated_bytes, 3072);
    EXPECT_OK(strata_free(rig.s, b.ref));
    EXPECT_EQ(rig_figures(&rig).allocated_bytes, 1024);
    EXPECT_EQ(rig_figures(&rig).peak_allocated_bytes, 3072);
    EXPECT_OK(strata_reset_peaks(rig.s, rig.gpu));
    EXPECT_EQ(rig_figures(&rig).peak_allocated_bytes, 1024);
    EXPECT_OK(strata_free(rig.s, a.ref));
}

/* ---- retry: `capacity` units, of which each consumer takes some, again and again ---- */

enum { CONSUMERS = 3, ROUNDS = 40 };

typedef struct consumer {
    rig_t *rig;
    pthread_t thread;
    size_t size;
    uint32_t failures, progress;
} consumer_t;

static void *consume(void *context) {
    consumer_t *c = context;
    for (int i = 0; i < ROUNDS; i++) {
        strata_block_t b;
        if (strata_allocate(c->rig->s, c->rig->gpu, NULL, c->size, &b) != STRATA_OK) {
            c->failures++;
            continue;
        }
        c->progress++;
        sched_yield();
        EXPECT_OK(strata_free(c->rig->s, b.ref));
    }
    return NULL;
}

static void open_retrying(rig_t *rig, const char *timeout) {
    char text[256];
    snprintf(text, sizeof text,
             "version: 1\nstack:\n  - retry: {timeout: %s, steps: wait}\n"
             "  - bfc: {memory_limit: 512, allow_growth: false}\n  - system\n",
             timeout);
    rig_open(rig, text, NULL, 0, 0, 1);
}

TEST(tensorflow_bfc, retry_success) {
    consumer_t consumers[CONSUMERS];
    RIG_BY(rig, open_retrying(&rig, "1s"));
    for (int i = 0; i < CONSUMERS; i++) {
        consumers[i] = (consumer_t){.rig = &rig, .size = 256};
        ASSERT_EQ(pthread_create(&consumers[i].thread, NULL, consume, &consumers[i]), 0);
    }
    for (int i = 0; i < CONSUMERS; i++) {
        pthread_join(consumers[i].thread, NULL);
        EXPECT_EQ(consumers[i].failures, 0);
        EXPECT_EQ(consumers[i].progress, ROUNDS);
    }
}

TEST(tensorflow_bfc, no_retry_fail) {
    RIG_BY(rig, open_retrying(&rig, "0s"));
    strata_block_t a = rig_allocate(&rig, NULL, 256), b = rig_allocate(&rig, NULL, 256), none;
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 256, &none));
    EXPECT_EQ(rig_figures(&rig).recoveries, 0);
    RIG_FREE(&rig, a, b);
}

/* Each wants two units and one is never given back: nobody can ever be served, and a thread that is alone does not wait for that. */
TEST(tensorflow_bfc, retry_insufficient_fail) {
    RIG_BY(rig, open_retrying(&rig, "20ms"));
    strata_block_t kept = rig_allocate(&rig, NULL, 256), none;
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 512, &none));
    EXPECT_EQ(rig_figures(&rig).recoveries, 0);
    EXPECT_OK(strata_free(rig.s, kept.ref));
}
