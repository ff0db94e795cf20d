/* caching where one byte, a capture or a stream that has ended makes the difference. */
#include "tests/caching/caching.h"

/* A trim is as a release: while a capture is under way everything stays. */
TEST(caching_edges, a_capture_keeps_what_a_trim_would_give_back) {
    uint64_t released = 1;
    RIG(rig, "pytorch", 0);
    caching_make_idle(&rig, NULL, (const size_t[]){40, 60}, 2);
    caching_of(&rig)->uses.captures = 1;
    EXPECT_OK(strata_trim(rig.s, rig.gpu, MIB, &released));
    EXPECT_EQ(released, 0);
    EXPECT_EQ(caching_reserved(&rig), 100 * MIB);
    caching_of(&rig)->uses.captures = 0;
    EXPECT_OK(strata_trim(rig.s, rig.gpu, 40 * MIB, &released));
    EXPECT_EQ(released, 60 * MIB);
}

/* What lies idle ages by the requests that come, for a chunk or not: each once, however often it is looked through for one. */
TEST(caching_edges, a_request_for_a_chunk_ages_what_is_idle_once) {
    RIG_STACK(rig, "auto_growth: {chunk_size: 20MiB}, caching, system", 0);
    strata_block_t a = rig_allocate(&rig, NULL, 20 * MIB), b = rig_allocate(&rig, NULL, 20 * MIB);
    EXPECT_EQ(((const caching_t *)rig_domain(&rig)->ordinary.shared[3])->searches, 2);
    RIG_FREE(&rig, a, b);
}

/* Such a block is one that may not be split, and goes for want of memory before all that may. */
TEST(caching_edges, a_block_of_exactly_max_split_size_goes_for_a_larger_one) {
    RIG_BY(rig, caching_open(&rig, "max_split_size: 20MiB", 90 * MIB));
    caching_make_idle(&rig, NULL, (const size_t[]){20, 20, 2}, 3);
    uint64_t retries = caching_of(&rig)->retries;
    strata_block_t block = rig_allocate(&rig, NULL, 40 * MIB);
    EXPECT_EQ(caching_of(&rig)->retries, retries);
    EXPECT_EQ(caching_of(&rig)->oversize_segments, 3); /* two of 20 MiB, and this one's */
    EXPECT_GT(rig_figures(&rig).chunks, 1); /* the small one's segment stays */
    EXPECT_OK(strata_free(rig.s, block.ref));
}

/* One of 20 MiB is not cut and serves what is near its size; a block of that size serves nothing smaller. */
TEST(caching_edges, at_exactly_max_split_size_nothing_is_split) {
    static const struct {
        size_t idle, wanted, size;
        bool serves;
    } rows[] = {{30, 20, 30, true}, {20, 20, 20, true}, {20, 18, 18, false}, {20, 5, 5, false}, {18, 16, 16, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        RIG_BY(rig, caching_open(&rig, "max_split_size: 20MiB", 0));
        strata_block_t idle = rig_allocate(&rig, NULL, rows[i].idle * MIB);
        EXPECT_OK(strata_free(rig.s, idle.ref));
        strata_block_t block = rig_allocate(&rig, NULL, rows[i].wanted * MIB);
        EXPECT_EQ(block.ptr == idle.ptr, rows[i].serves);
        EXPECT_EQ(block.size, rows[i].size * MIB);
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), rows[i].serves ? 1 : 2);
        EXPECT_OK(strata_free(rig.s, block.ref));
    }
}

/* The place of the last step is in a block that must stay whole by now. */
TEST(caching_edges, a_step_repeats_no_part_of_what_stays_whole) {
    RIG_BY(rig, caching_open(&rig, "max_split_size: 20MiB, stable_addresses: true", 0));
    strata_block_t part = rig_allocate(&rig, NULL, 5 * MIB);
    EXPECT_OK(strata_free(rig.s, part.ref));
    EXPECT_EQ(caching_reserved(&rig), 20 * MIB);
    EXPECT_OK(strata_step(rig.s));
    strata_block_t again = rig_allocate(&rig, NULL, 5 * MIB);
    EXPECT_NE(again.ptr, part.ptr);
    EXPECT_EQ(caching_reserved(&rig), 40 * MIB);
    EXPECT_OK(strata_free(rig.s, again.ref));
}

static void tell(strata_stream_t stream, bool gone, uint64_t bytes, void *context) {
    uint64_t *told = context;
    (void)stream;
    told[gone] += bytes;
}

/* Whom freed blocks wait for: a stream that was destroyed meanwhile has no name. */
TEST(caching_edges, waits_for_a_destroyed_stream_are_told_as_such) {
    RIG(rig, "pytorch", 0);
    strata_stream_t owner = rig_stream(&rig), ends = rig_stream(&rig), stays = rig_stream(&rig);
    strata_block_t first = rig_allocate(&rig, owner, 5 * MIB), second = rig_allocate(&rig, owner, 3 * MIB);
    EXPECT_OK(strata_record_stream(rig.s, first.ref, ends));
    EXPECT_OK(strata_record_stream(rig.s, second.ref, stays));
    rig_work(&rig, ends, 5 * MILLISECOND, first.ref);
    rig_work(&rig, stays, 5 * MILLISECOND, second.ref);
    RIG_FREE(&rig, first, second);
    for (int forgotten = 0; forgotten < 2; forgotten++) {
        uint64_t told[2] = {0, 0};
        caching_t *self = caching_of(&rig);
        if (forgotten) EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, ends));
        strata_lock(&self->base.stack->lock);
        self->base.type->waits(&self->base, tell, told);
        strata_unlock(&self->base.stack->lock);
        EXPECT_EQ(told[0], forgotten ? second.size : first.size + second.size);
        EXPECT_EQ(told[1], forgotten ? first.size : 0);
    }
    rig_advance(&rig, 9 * MILLISECOND);
}
