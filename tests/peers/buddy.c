/* Tests of Paddle's buddy allocator, of its thread_local allocator and of its facade by flags, rewritten from their
 * descriptions. */
#include <pthread.h>
#include <stdio.h>

#include "tests/allocation/bench.h"
#include "tests/decorators/decorators.h"

/* The figures of the one layer that has them: what the pool has in use, the largest block it serves, huge bytes. */
typedef struct pool {
    uint64_t used, most, huge;
} pool_t;

static void note(const strata_layer_figure_t *figure, void *context) {
    pool_t *pool = context;
    if (strcmp(figure->name, "pool_used_bytes") == 0) pool->used = figure->value;
    if (strcmp(figure->name, "max_block") == 0) pool->most = figure->value;
    if (strcmp(figure->name, "huge_bytes") == 0) pool->huge = figure->value;
}

static pool_t look(rig_t *rig) {
    pool_t pool = {0};
    EXPECT_OK(strata_layer_figures(rig->s, rig->gpu, note, &pool));
    return pool;
}

static void open_with(rig_t *rig, const char *options) {
    char text[256];
    snprintf(text, sizeof text, "version: 1\nstack:\n  - naive_best_fit: {streams: ignored, %s}\n  - system\n", options);
    rig_open(rig, text, NULL, 0, 16 * GIB, 1);
}

/* Allocates and frees; whether the pool had it, and that all is as before afterwards. */
static void expect_served(rig_t *rig, uint64_t size, bool pooled) {
    pool_t before = look(rig);
    strata_block_t b = rig_allocate(rig, NULL, size);
    pool_t now = look(rig);
    if (pooled) EXPECT_GE(now.used - before.used, size);
    else EXPECT_EQ(now.used, before.used);
    EXPECT_EQ(now.huge > before.huge, !pooled);
    EXPECT_OK(strata_free(rig->s, b.ref));
    EXPECT_EQ(look(rig).used, before.used);
    EXPECT_EQ(look(rig).huge, before.huge);
    EXPECT_OK(strata_validate(rig->s));
}

/* buddy_allocator_test::GpuFraction: fraction 0.01; 10 B, 10 KiB and 1 MiB are the pool's; 500 MiB and 1 GiB are not. */
TEST(peers_buddy, gpu_fraction) {
    RIG_BY(rig, open_with(&rig, "fraction: 0.01"));
    expect_served(&rig, 10, true);
    expect_served(&rig, 10 << 10, true);
    expect_served(&rig, MIB, true);
    expect_served(&rig, 500 * MIB, false);
    expect_served(&rig, GIB, false);
}

/* buddy_allocator_test::InitRealloc: 100 and 50 MiB: the largest block is 100 MiB; 10, 80 and 99 MiB are the pool's, 101 is not. */
TEST(peers_buddy, init_realloc) {
    RIG_BY(rig, open_with(&rig, "initial: 100MiB, reallocate: 50MiB"));
    static const uint64_t pooled[] = {10, 80, 99};
    for (size_t i = 0; i < 3; i++) expect_served(&rig, pooled[i] * MIB, true);
    EXPECT_EQ(look(&rig).most, 100 * MIB);
    expect_served(&rig, 101 * MIB, false);
    EXPECT_EQ(look(&rig).most, 100 * MIB);
}

/* buddy_allocator_test::ReallocSizeGreaterThanInit: 5 and 10 MiB: the largest block is 10 MiB; 1, 6, 8 and 9 MiB are the pool's. */
TEST(peers_buddy, realloc_size_greater_than_init) {
    RIG_BY(rig, open_with(&rig, "initial: 5MiB, reallocate: 10MiB"));
    static const uint64_t pooled[] = {1, 6, 8, 9};
    for (size_t i = 0; i < 4; i++) expect_served(&rig, pooled[i] * MIB, true);
    EXPECT_EQ(look(&rig).most, 10 * MIB);
    expect_served(&rig, 11 * MIB, false);
}

static uint64_t usable(rig_t *rig) {
    uint64_t available = 0, total;
    EXPECT_OK(strata_device_mem_info(rig->devices[0], &available, &total));
    return available / 100 * 95;
}

/* buddy_allocator_test::FractionRefillPool: fraction 0.6; the largest block less 1000 bytes is live; then 0.6 of what may be used,
 * twice: each is the pool's, from a chunk of its own; the largest block stays what it was. */
TEST(peers_buddy, fraction_refill_pool) {
    RIG_BY(rig, open_with(&rig, "fraction: 0.6"));
    strata_block_t blocks[3];
    EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, NULL, 1).ref));
    uint64_t most = look(&rig).most;
    blocks[0] = rig_allocate(&rig, NULL, most - 1000);
    for (int i = 1; i < 3; i++) {
        uint64_t size = (uint64_t)((double)usable(&rig) * 0.6), used = look(&rig).used;
        blocks[i] = rig_allocate(&rig, NULL, size);
        EXPECT_GE(look(&rig).used - used, size);
        EXPECT_EQ(look(&rig).huge, 0);
        EXPECT_EQ(look(&rig).most, most);
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), i + 1);
    }
    for (int i = 0; i < 3; i++) EXPECT_OK(strata_free(rig.s, blocks[i].ref));
}

/* buddy_allocator_test::DeviceRefillPool: 10 and 10 MiB; two live blocks of 10 MiB less 1000 bytes: the second has a second chunk. */
TEST(peers_buddy, device_refill_pool) {
    RIG_BY(rig, open_with(&rig, "initial: 10MiB, reallocate: 10MiB"));
    strata_block_t a = rig_allocate(&rig, NULL, 10 * MIB - 1000);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), 1);
    EXPECT_EQ(look(&rig).most, 10 * MIB);
    strata_block_t b = rig_allocate(&rig, NULL, 10 * MIB - 1000);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), 2);
    EXPECT_EQ(look(&rig).most, 10 * MIB);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 20 * MIB);
    RIG_FREE(&rig, a, b);
}

/* naive_best_fit_allocator_facade_abs_flags_test (and _frac_flags_test, fraction 0.01): GPU 1 KiB and 2 GiB, the second huge; pinned
 * 1 MiB; host 1 KiB. */
static void expect_facade(const char *const *set, size_t count) {
    RIG_BY(rig, rig_open(&rig, "naive_best_fit", set, count, 16 * GIB, 1));
    const struct {
        strata_place_t place;
        uint64_t size, huge;
    } rows[] = {{strata_host(), 1024, 0}, {rig.gpu, 1024, 0}, {rig.gpu, 2 * GIB, 2 * GIB + 256}, {strata_pinned(), MIB, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        strata_block_t b = {0};
        EXPECT_OK(strata_allocate(rig.s, rows[i].place, NULL, rows[i].size, &b));
        EXPECT_NE(b.ptr, NULL);
        EXPECT_GE(b.size, rows[i].size);
        EXPECT_EQ(look(&rig).huge, rows[i].huge);
        EXPECT_OK(strata_free(rig.s, b.ref));
    }
}

TEST(peers_buddy, facade_abs_flags) {
    static const char *const set[] = {"naive_best_fit.fraction=0", "naive_best_fit.initial=512MiB",
                                      "naive_best_fit.reallocate=4MiB", "pinned.naive_best_fit.memory=16GiB"};
    expect_facade(set, 4);
}

TEST(peers_buddy, facade_frac_flags) {
    static const char *const set[] = {"naive_best_fit.fraction=0.01", "pinned.naive_best_fit.memory=16GiB"};
    expect_facade(set, 2);
}

/* ---- thread_local ---- */

enum { THREADS = 5, DEVICES = 2 };

typedef struct user {
    rig_t *rig;
    strata_block_t blocks[DEVICES];
} user_t;

static void *use(void *context) {
    user_t *user = context;
    for (uint32_t d = 0; d < DEVICES; d++) {
        EXPECT_OK(strata_allocate(user->rig->s, strata_gpu(d), NULL, 10, &user->blocks[d]));
        EXPECT_OK(strata_release(user->rig->s, strata_gpu(d), NULL));
    }
    return NULL;
}

/* naive_best_fit_allocator's thread_local_allocator_test::cross_scope_release: five threads take 10 bytes of each device and release;
 * the main thread frees all of it when they are gone: five allocators for each device, and nothing stays. */
TEST(peers_buddy, thread_local_cross_scope_release) {
    pthread_t threads[THREADS];
    user_t users[THREADS];
    static const char *const set[] = {"retry.timeout=10ms"};
    RIG_BY(rig, rig_open(&rig, "thread_local", set, 1, 16 * GIB, DEVICES));
    for (int i = 0; i < THREADS; i++) {
        users[i] = (user_t){.rig = &rig};
        ASSERT_EQ(pthread_create(&threads[i], NULL, use, &users[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int d = 0; d < DEVICES; d++)
        for (int i = 0; i < THREADS; i++)
            for (int j = 0; j < i; j++) EXPECT_NE(strata_ref_home(users[i].blocks[d].ref), strata_ref_home(users[j].blocks[d].ref));
    for (int i = 0; i < THREADS; i++)
        for (int d = 0; d < DEVICES; d++) EXPECT_OK(strata_free(rig.s, users[i].blocks[d].ref));
    for (uint32_t d = 0; d < DEVICES; d++) {
        strata_statistics_t f = {.struct_size = sizeof f};
        EXPECT_OK(strata_statistics_all(rig.s, strata_gpu(d), &f));
        EXPECT_EQ(f.reserved_bytes, 0);
    }
}
