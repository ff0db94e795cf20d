/* What happens where a cache's tables end: the request fails with the reason, and nothing has changed. */
#include "tests/chunked/chunked.h"
#include "tests/harness/slots.h"

/* What a chunk wants of the slab are its block, the rest of it, and the record of the layer below. */
TEST_EACH(chunked, a_full_slab_is_told_and_costs_nothing, cache_t, caches) {
    strata_block_t b;
    RIG_BY(rig, cache_open(row, &rig));
    strata_block_t a = rig_allocate(&rig, NULL, 512);
    strata_slab_t *slab = &cache_of(row, &rig)->base.stack->slab;
    uint64_t held = rig_figures(&rig).reserved_bytes;
    uint32_t capacity = slab->capacity, refused = 0;
    for (uint32_t room = 0; room < 4; room++) {
        slab->capacity = slab->used - slab->unused + room;
        strata_status_t status = strata_allocate(rig.s, rig.gpu, NULL, 12 * MIB + 512, &b);
        if (status == STRATA_OK) break;
        EXPECT_EQ(status, STRATA_E_LIMIT);
        EXPECT_CONTAINS(strata_last_error()->text, "the maximum");
        EXPECT_OK(strata_validate(rig.s));
        (void)strata_release(rig.s, rig.gpu, NULL);
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, held);
        if (room == 0) EXPECT_STATUS(STRATA_E_LIMIT, strata_allocate(rig.s, rig.gpu, NULL, 512, &b));
        refused++;
    }
    EXPECT_GE(refused, 1);
    EXPECT_LT(refused, 4);
    slab->capacity = capacity;
    EXPECT_OK(strata_validate(rig.s));
    RIG_FREE(&rig, a, b);
}

static const cache_t orders[] = {
    {"auto_growth", "chunk_size: 1MiB, order: any", false},
    {"auto_growth", "small_pool_size: 1MiB, small_chunk_size: 1MiB, order: any", false},
    {"auto_growth", "small_pool_size: 1MiB, small_chunk_size: 1MiB, order: address", false},
};

/* A block that fits exactly wants no slot. */
TEST(chunked, a_full_slab_still_serves_whole_blocks) {
    for (size_t i = 0; i < COUNT(orders); i++) {
        strata_block_t none = {.ref = 7};
        RIG_BY(rig, cache_open(&orders[i], &rig));
        strata_block_t first = rig_allocate(&rig, NULL, 512);
        slots_t slots = slots_limit(&cache_of(&orders[i], &rig)->base.stack->slab, 0);
        EXPECT_SAYS(STRATA_E_LIMIT, strata_allocate(rig.s, rig.gpu, NULL, 512, &none), "the maximum");
        EXPECT_EQ(none.ref, 7);
        strata_block_t rest = rig_allocate(&rig, NULL, MIB - 512);
        slots_restore(&slots);
        EXPECT_EQ(rig_figures(&rig).growths, 1);
        EXPECT_OK(strata_validate(rig.s));
        RIG_FREE(&rig, first, rest);
    }
}

TEST_EACH(chunked, a_full_table_of_chunks_is_told_and_costs_nothing, cache_t, caches) {
    strata_block_t b = {.ref = 3};
    RIG_BY(rig, cache_open(row, &rig));
    strata_block_t a = rig_allocate(&rig, NULL, 512);
    strata_nodes_t *nodes = &cache_of(row, &rig)->nodes;
    uint64_t held = rig_figures(&rig).reserved_bytes;
    uint32_t capacity = nodes->capacity;
    nodes->capacity = nodes->used;
    EXPECT_STATUS(STRATA_E_LIMIT, strata_allocate(rig.s, rig.gpu, NULL, 12 * MIB, &b));
    EXPECT_EQ(b.ref, 3);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, held);
    nodes->capacity = capacity;
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_OK(strata_free(rig.s, a.ref));
}

/* A block whose slot's generations are used up moves to another; where there is none its memory stays out of use. */
static void leave_a_used_up_slot(const cache_t *cache, bool full) {
    rig_t rig;
    cache_open(cache, &rig);
    strata_block_t first = rig_allocate(&rig, NULL, 512), guard = rig_allocate(&rig, NULL, 512);
    strata_chunks_t *chunks = cache_of(cache, &rig);
    strata_slab_t *slab = &chunks->base.stack->slab;
    EXPECT_OK(strata_free(rig.s, first.ref));
    cache_block(chunks, first.ref)->generation = STRATA_GENERATION_LAST - 1;
    strata_block_t last = rig_allocate(&rig, NULL, 512);
    EXPECT_EQ(last.ptr, first.ptr);
    uint32_t capacity = slab->capacity;
    if (full) slab->capacity = slab->used;
    EXPECT_OK(strata_free(rig.s, last.ref));
    slab->capacity = capacity;
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_EQ(slab->retired, full ? 0 : 1);
    strata_block_t again = rig_allocate(&rig, NULL, 512);
    EXPECT_EQ(again.ptr == first.ptr, !full);
    RIG_FREE(&rig, again, guard);
    EXPECT_OK(strata_validate(rig.s));
    rig_close_by_force(&rig);
}

TEST_EACH(chunked, a_block_leaves_a_slot_that_is_used_up, cache_t, caches) {
    leave_a_used_up_slot(row, false);
    leave_a_used_up_slot(row, true);
}

TEST_EACH(chunked, larger_alignments_are_served_or_refused, cache_t, caches) {
    strata_record_t *record = NULL;
    RIG_BY(rig, cache_open(row, &rig));
    strata_request_t serve = {.size = 100, .alignment = 1 * MIB};
    strata_status_t status = strata_stack_serve(rig_stack(&rig, NULL), &serve, &record);
    if (row->aligns) {
        EXPECT_OK(status);
        EXPECT_EQ(record->ptr % MIB, 0);
        EXPECT_OK(strata_free(rig.s, strata_ref_of(record)));
    } else {
        EXPECT_EQ(status, STRATA_E_UNSUPPORTED);
        EXPECT_CONTAINS(strata_last_error()->text, "alignments up to");
    }
    EXPECT_EQ(rig_figures(&rig).allocated_bytes, 0);
}
