/* The rules of Paddle's buddy: sizes of chunks, huge blocks, what stays and what goes back. */
#include "platform/host/host_memory.h"
#include "tests/naive/naive.h"

static void give(rig_t *rig, strata_block_t b) { EXPECT_OK(strata_free(rig->s, b.ref)); }

TEST(naive_rules, the_first_chunk_is_a_share_of_what_may_be_used) {
    RIG(rig, "naive_best_fit", 16 * GIB);
    uint64_t share = (uint64_t)((double)naive_usable(&rig) * 0.92);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), 0);
    strata_block_t a = rig_allocate(&rig, NULL, 1000), b = rig_allocate(&rig, NULL, 5 * GIB);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, share);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), 1);
    EXPECT_EQ((uintptr_t)b.ptr, (uintptr_t)a.ptr + 1280);
    EXPECT_EQ(naive_of(&rig, NULL)->max_block, share);
    give(&rig, a);
    give(&rig, b);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, share);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_free), 0);
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
}

TEST(naive_rules, later_chunks_are_a_share_of_what_is_left) {
    RIG_BY(rig, naive_open(&rig, "naive_best_fit", "fraction: 0.5", 16 * GIB));
    strata_block_t a = rig_allocate(&rig, NULL, 7 * GIB);
    uint64_t first = rig_figures(&rig).reserved_bytes, share = (uint64_t)((double)naive_usable(&rig) * 0.5);
    strata_block_t b = rig_allocate(&rig, NULL, 3 * GIB);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes - first, share);
    /* As much as the request where that is more. */
    uint64_t second = rig_figures(&rig).reserved_bytes, left = naive_usable(&rig);
    strata_block_t c = rig_allocate(&rig, NULL, left / 10 * 9);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes - second, (left / 10 * 9 + 64 + 255) / 256 * 256);
    give(&rig, a);
    give(&rig, b);
    give(&rig, c);
}

TEST(naive_rules, chunks_are_as_large_as_the_options_say) {
    RIG_BY(rig, naive_open(&rig, "naive_best_fit", "initial: 8MiB, reallocate: 4MiB", 0));
    strata_block_t a = rig_allocate(&rig, NULL, 6 * MIB), b = rig_allocate(&rig, NULL, 3 * MIB);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 12 * MIB);
    strata_block_t c = rig_allocate(&rig, NULL, 5 * MIB);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 17 * MIB + 256);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), 3);
    give(&rig, a);
    give(&rig, b);
    give(&rig, c);
    /* An empty pool begins anew. */
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    a = rig_allocate(&rig, NULL, 1);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 8 * MIB);
    give(&rig, a);
}

TEST(naive_rules, a_share_is_of_what_the_limit_leaves) {
    RIG(rig, "naive_best_fit", 16 * GIB);
    EXPECT_OK(strata_set_limit(rig.s, rig.gpu, GIB));
    strata_block_t a = rig_allocate(&rig, NULL, 1000);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, (uint64_t)((double)(GIB / 100 * 95 + GIB % 100 * 95 / 100) * 0.92));
    EXPECT_OK(strata_set_limit(rig.s, rig.gpu, STRATA_UNLIMITED));
    give(&rig, a);
}

TEST(naive_rules, what_is_larger_than_the_pool_serves_goes_to_the_device_and_back) {
    RIG_BY(rig, naive_open(&rig, "naive_best_fit", "initial: 8MiB, reallocate: 4MiB", 0));
    strata_block_t a = rig_allocate(&rig, NULL, 8 * MIB - 64), huge = rig_allocate(&rig, NULL, 8 * MIB - 63);
    EXPECT_EQ(naive_pool_used(&rig), 8 * MIB);
    EXPECT_EQ(naive_of(&rig, NULL)->huge_bytes, 8 * MIB + 256);
    EXPECT_EQ(huge.size, 8 * MIB + 256);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 16 * MIB + 256);
    EXPECT_OK(strata_validate(rig.s));
    give(&rig, huge);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 8 * MIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_free), 1);
    EXPECT_EQ(naive_of(&rig, NULL)->huge_blocks, 1);
    /* The first request may be one; the pool is as empty as before. */
    give(&rig, a);
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    huge = rig_allocate(&rig, NULL, 9 * MIB);
    a = rig_allocate(&rig, NULL, 1);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 17 * MIB + 256);
    give(&rig, a);
    give(&rig, huge);
}

/* A request that grows is no hit, in the pool as beside it. */
TEST(naive_rules, hits_growths_and_waits_are_counted) {
    RIG_BY(rig, naive_open(&rig, "naive_best_fit", "initial: 8MiB, reallocate: 4MiB", 0));
    static const struct {
        size_t size;
        uint64_t hits, growths;
    } rows[] = {{MIB, 0, 1}, {MIB, 1, 1}, {9 * MIB, 1, 2}, {8 * MIB - 64, 1, 3}, {5 * MIB, 2, 3}};
    strata_block_t blocks[sizeof rows / sizeof *rows];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        blocks[i] = rig_allocate(&rig, NULL, rows[i].size);
        EXPECT_EQ(rig_figures(&rig).cache_hits, rows[i].hits);
        EXPECT_EQ(rig_figures(&rig).growths, rows[i].growths);
    }
    EXPECT_EQ(naive_of(&rig, NULL)->waits, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) give(&rig, blocks[i]);
}

/* The place of the last step serves a request of its size again, though a lower one is free by then. */
TEST(naive_rules, a_step_repeats_its_places) {
    RIG_BY(rig, naive_open(&rig, "naive_best_fit", "initial: 8MiB, stable_addresses: true", 0));
    strata_block_t low = rig_allocate(&rig, NULL, MIB);
    EXPECT_OK(strata_step(rig.s));
    strata_block_t high = rig_allocate(&rig, NULL, 2 * MIB);
    give(&rig, low);
    give(&rig, high);
    EXPECT_OK(strata_step(rig.s));
    strata_block_t again = rig_allocate(&rig, NULL, 2 * MIB);
    EXPECT_EQ(again.ptr, high.ptr);
    give(&rig, again);
}

TEST(naive_rules, a_block_loses_its_header) {
    rig_t rig;
    naive_open(&rig, "naive_best_fit", "initial: 8MiB", 0);
    strata_block_t a = rig_allocate(&rig, NULL, 192), b = rig_allocate(&rig, NULL, 193);
    EXPECT_EQ(a.size, 256);
    EXPECT_EQ(b.size, 512);
    give(&rig, a);
    give(&rig, b);
    rig_close(&rig);
    naive_open(&rig, "naive_best_fit", "initial: 8MiB, header: 0", 0);
    a = rig_allocate(&rig, NULL, 256);
    EXPECT_EQ(a.size, 256);
    b = rig_allocate(&rig, NULL, 8 * MIB - 256);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), 1);
    give(&rig, a);
    give(&rig, b);
    rig_close(&rig);
}

TEST(naive_rules, idle_chunks_are_trimmed_the_largest_first) {
    RIG_BY(rig, naive_open(&rig, "naive_best_fit", "initial: 2MiB, reallocate: 6MiB", 0));
    strata_block_t blocks[3];
    for (int i = 0; i < 3; i++) blocks[i] = rig_allocate(&rig, NULL, i == 0 ? 2 * MIB - 64 : 6 * MIB - 64);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 14 * MIB);
    for (int i = 0; i < 3; i++) give(&rig, blocks[i]);
    EXPECT_OK(strata_trim(rig.s, rig.gpu, 8 * MIB, NULL));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 8 * MIB);
    EXPECT_OK(strata_trim(rig.s, rig.gpu, 3 * MIB, NULL));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 2 * MIB);
    EXPECT_OK(strata_trim(rig.s, rig.gpu, 0, NULL));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
    EXPECT_OK(strata_validate(rig.s));
}

/* Paddle's release forgets to forget a chunk, and gives back later what lies in its place. */
TEST(naive_rules, a_chunk_that_went_back_leaves_nothing_after) {
    RIG_BY(rig, naive_open(&rig, "naive_best_fit", "initial: 2MiB, reallocate: 2MiB", 0));
    naive_t *self = naive_of(&rig, NULL);
    for (int i = 0; i < 5; i++) {
        strata_block_t a = rig_allocate(&rig, NULL, 2 * MIB - 64), b = rig_allocate(&rig, NULL, MIB);
        give(&rig, a);
        EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
        EXPECT_EQ(self->chunks.count, 1);
        EXPECT_EQ(self->base.stack->slab.used - self->base.stack->slab.unused, 3);
        EXPECT_OK(strata_validate(rig.s));
        give(&rig, b);
        EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
        EXPECT_EQ(self->chunks.count, 0);
        EXPECT_EQ(self->chunks.nodes.used, 1 + self->chunks.nodes.unused);
    }
}

TEST(naive_rules, more_than_may_be_used_is_told) {
    strata_block_t b;
    RIG_BY(rig, naive_open(&rig, "naive_best_fit", "initial: 8MiB, reallocate: 20GiB", 16 * GIB));
    EXPECT_SAYS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 1000, &b), "out of memory");
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), 0);
    naive_t *self = naive_of(&rig, NULL);
    strata_call_t call = {.stack = self->base.stack};
    const strata_request_t request = {.call = &call};
    EXPECT_SAYS(STRATA_E_NO_MEMORY, strata_naive_size(self, &request), "naive_best_fit.reallocate: 20GiB is more than the");
}

TEST(naive_rules, a_smaller_growth_serves_where_a_chunk_cannot_be_had) {
    for (int smaller = 0; smaller < 2; smaller++) {
        rig_t rig;
        strata_block_t a, b;
        naive_open(&rig, "naive_best_fit", smaller ? "initial: 40MiB, smaller_growth: true" : "initial: 40MiB", 64 * MIB);
        a = rig_allocate(&rig, NULL, 39 * MIB);
        strata_status_t status = strata_allocate(rig.s, rig.gpu, NULL, 20 * MIB, &b);
        EXPECT_OK(status); /* 92 % of what is left is enough */
        if (status == STRATA_OK) give(&rig, b);
        give(&rig, a);
        rig_close(&rig);
        naive_open(&rig, "naive_best_fit",
                   smaller ? "initial: 40MiB, reallocate: 30MiB, smaller_growth: true" : "initial: 40MiB, reallocate: 30MiB",
                   64 * MIB);
        a = rig_allocate(&rig, NULL, 39 * MIB);
        status = strata_allocate(rig.s, rig.gpu, NULL, 16 * MIB, &b);
        EXPECT_EQ(status, smaller ? STRATA_OK : STRATA_E_NO_MEMORY);
        if (status == STRATA_OK) EXPECT_EQ(b.size, 16 * MIB + 256);
        if (status == STRATA_OK) give(&rig, b);
        give(&rig, a);
        rig_close(&rig);
    }
}

/* ---- host and pinned memory ---- */

static strata_statistics_t figures_of(rig_t *rig, strata_place_t place) {
    strata_statistics_t f = {.struct_size = sizeof f};
    EXPECT_OK(strata_statistics_all(rig->s, place, &f));
    return f;
}

TEST(naive_rules, host_memory_comes_in_parts_of_a_share) {
    rig_t rig;
    static const char *const set[] = {"host.naive_best_fit.memory=64MiB"};
    rig_open(&rig, "naive_best_fit", set, 1, 0, 1);
    strata_block_t a, b;
    EXPECT_OK(strata_allocate(rig.s, strata_host(), NULL, 1000, &a));
    EXPECT_EQ(a.size, 4096);
    EXPECT_EQ(figures_of(&rig, strata_host()).reserved_bytes, 2 * MIB);
    EXPECT_OK(strata_allocate(rig.s, strata_host(), NULL, 2 * MIB, &b));
    EXPECT_EQ(figures_of(&rig, strata_host()).reserved_bytes, 4 * MIB + 4096);
    give(&rig, b);
    EXPECT_EQ(figures_of(&rig, strata_host()).reserved_bytes, 2 * MIB);
    give(&rig, a);
    rig_close(&rig);
    /* `initial` is the most; the machine's own memory is what counts where nothing is said. */
    static const char *const small[] = {"host.naive_best_fit.initial=1MiB"};
    rig_open(&rig, "naive_best_fit", small, 1, 0, 1);
    EXPECT_OK(strata_allocate(rig.s, strata_host(), NULL, 1000, &a));
    EXPECT_EQ(figures_of(&rig, strata_host()).reserved_bytes, MIB);
    give(&rig, a);
    rig_close(&rig);
    EXPECT_GT(strata_host_memory_size(), 64 * MIB);
}

TEST(naive_rules, pinned_memory_keeps_to_its_share) {
    static const char *const set[] = {"pinned.naive_best_fit.memory=512MiB"};
    RIG_BY(rig, rig_open(&rig, "naive_best_fit", set, 1, 0, 1));
    strata_block_t a, b, c;
    EXPECT_OK(strata_allocate(rig.s, strata_pinned(), NULL, 1000, &a));
    EXPECT_EQ(a.size, 64 * KIB);
    EXPECT_EQ(figures_of(&rig, strata_pinned()).reserved_bytes, MIB);
    EXPECT_OK(strata_allocate(rig.s, strata_pinned(), NULL, 200 * MIB, &b));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, strata_pinned(), NULL, 60 * MIB, &c));
    EXPECT_OK(strata_allocate(rig.s, strata_pinned(), NULL, 50 * MIB, &c));
    EXPECT_EQ(figures_of(&rig, strata_pinned()).reserved_bytes, 251 * MIB + 128 * KIB);
    give(&rig, a);
    give(&rig, b);
    give(&rig, c);
}

TEST(naive_rules, options_that_do_not_fit_are_refused) {
    naive_expect_refused("gpu", "min_block: 300", "naive_best_fit.min_block: blocks of this place cannot be multiples of 300");
    naive_expect_refused("gpu", "min_block: 128", "write a power of two of at least 256");
    naive_expect_refused("gpu", "parts: 4", "naive_best_fit.parts: this option is only for pinned and host memory");
    naive_expect_refused("gpu", "memory: 4GiB", "naive_best_fit.memory: this option is only for pinned and host memory");
    naive_expect_refused("pinned", "reallocate: 4MiB",
                         "naive_best_fit.reallocate: all chunks of pinned and host memory have one size");
}
