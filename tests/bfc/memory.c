/* bfc out of memory: backpedalling, regions that go back, waits of streams, and what is told. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocation/cache/policies/bfc/bfc_debug.h"
#include "tests/bfc/bfc.h"
#include "tests/harness/slots.h"

/* ---- smaller and smaller regions ---- */

/* Nine tenths in single precision, upwards to 256 bytes: of 1 GiB the fourth is the first below 700 MiB. */
TEST(bfc_memory, asks_for_less_and_less) {
    RIG_BY(rig, bfc_open_over(&rig, "memory_limit: 1GiB, allow_growth: false", "limit: {bytes: 700MiB}\n  - system", 0));
    strata_block_t b = rig_allocate(&rig, NULL, 1000);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 704482304);
    EXPECT_EQ(bfc_of(&rig)->backpedals, 4);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), 1); /* the limit answers without a call */
    EXPECT_OK(strata_free(rig.s, b.ref));
}

/* Not below the request: the last try that is not below it is made, the one after it is not. */
TEST(bfc_memory, asks_for_no_less_than_the_request) {
    strata_block_t none;
    RIG_BY(rig, bfc_open_over(&rig, "memory_limit: 1GiB, allow_growth: false", "limit: {bytes: 700MiB}\n  - system", 0));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 782758144, &none));
    EXPECT_EQ(bfc_of(&rig)->backpedals, 3);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 782758145, &none));
    EXPECT_EQ(bfc_of(&rig)->backpedals, 5);
}

/* With the mend the request alone is asked for at last. */
TEST(bfc_memory, asks_for_the_request_alone_where_it_may) {
    RIG_BY(rig, bfc_open_over(&rig, "memory_limit: 1GiB, allow_growth: false, smaller_growth: true",
                              "limit: {bytes: 700MiB}\n  - system", 0));
    strata_block_t b = rig_allocate(&rig, NULL, 700 * MIB);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 700 * MIB);
    EXPECT_EQ(bfc_of(&rig)->backpedals, 4); /* three regions that are larger, and the request alone */
    EXPECT_OK(strata_free(rig.s, b.ref));
}

/* ---- regions go back ---- */

/* Regions of 2, 4 and 8 MiB of which the first is in use: a trim gives the largest back first. */
TEST(bfc_memory, a_trim_gives_regions_back_until_no_more_is_kept_than_asked) {
    uint64_t released = 7;
    RIG_BY(rig, bfc_open(&rig, "allow_growth: true", 0));
    strata_block_t kept = rig_allocate(&rig, NULL, 2 * MIB), a = rig_allocate(&rig, NULL, 4 * MIB);
    strata_block_t b = rig_allocate(&rig, NULL, 8 * MIB);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 14 * MIB);
    RIG_FREE(&rig, a, b);
    EXPECT_OK(strata_trim(rig.s, rig.gpu, 12 * MIB, &released));
    EXPECT_EQ(released, 0);
    bfc_of(&rig)->captures = 1;
    EXPECT_OK(strata_trim(rig.s, rig.gpu, 5 * MIB, &released));
    EXPECT_EQ(released, 0);
    bfc_of(&rig)->captures = 0;
    EXPECT_OK(strata_trim(rig.s, rig.gpu, 5 * MIB, &released));
    EXPECT_EQ(released, 8 * MIB);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 6 * MIB);
    EXPECT_OK(strata_trim(rig.s, rig.gpu, 1, &released));
    EXPECT_EQ(released, 4 * MIB);
    EXPECT_OK(strata_free(rig.s, kept.ref));
}

/* 2, 4 and 8 MiB, of which the first is in use: the others go back together, in address order, before 12 MiB are asked for. */
TEST(bfc_memory, regions_without_a_live_block_go_back_and_one_more_try_is_made) {
    for (int collects = 0; collects < 2; collects++) {
        RIG_BY(rig, bfc_open(&rig, collects ? "memory_limit: 14MiB" : "memory_limit: 14MiB, garbage_collection: false", 0));
        strata_block_t kept = rig_allocate(&rig, NULL, 2 * MIB), a = rig_allocate(&rig, NULL, 4 * MIB),
                       b = rig_allocate(&rig, NULL, 8 * MIB), c = {.ref = 0};
        RIG_FREE(&rig, a, b);
        strata_status_t status = strata_allocate(rig.s, rig.gpu, NULL, 12 * MIB, &c);
        EXPECT_EQ(status, collects ? STRATA_OK : STRATA_E_NO_MEMORY);
        EXPECT_EQ(bfc_of(&rig)->collected_bytes, collects ? 12 * MIB : 0);
        EXPECT_EQ(bfc_of(&rig)->collections, collects);
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_free), collects ? 2 : 0);
        EXPECT_EQ(rig_figures(&rig).recoveries, 0);
        if (c.ref) EXPECT_OK(strata_free(rig.s, c.ref));
        EXPECT_OK(strata_free(rig.s, kept.ref));
    }
}

/* What could never be enough leaves the regions where they are. */
TEST(bfc_memory, regions_stay_where_all_of_them_would_not_do) {
    strata_block_t none;
    RIG_BY(rig, bfc_open(&rig, "memory_limit: 14MiB", 0));
    strata_block_t kept = rig_allocate(&rig, NULL, 2 * MIB), idle = rig_allocate(&rig, NULL, 4 * MIB);
    EXPECT_OK(strata_free(rig.s, idle.ref));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 13 * MIB, &none));
    EXPECT_EQ(bfc_of(&rig)->collections, 0);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 6 * MIB);
    EXPECT_OK(strata_free(rig.s, kept.ref));
}

TEST(bfc_memory, the_ladder_releases_where_it_is_asked_to) {
    RIG_BY(rig, bfc_open(&rig, "memory_limit: 14MiB, reclaim: ladder", 0));
    strata_block_t idle = rig_allocate(&rig, NULL, 4 * MIB);
    EXPECT_OK(strata_free(rig.s, idle.ref));
    strata_block_t all = rig_allocate(&rig, NULL, 14 * MIB);
    EXPECT_EQ(rig_figures(&rig).recoveries, 1);
    EXPECT_EQ(bfc_of(&rig)->collections, 0);
    EXPECT_OK(strata_free(rig.s, all.ref));
}

/* ---- regions that follow one another ---- */

TEST(bfc_memory, adjacent_regions_are_one_through_a_layer_that_passes_them_on) {
    bfc_register_adjacent();
    RIG_BY(rig, bfc_open_over(&rig, "coalesce_regions: true", "limit: {bytes: 8GiB}\n  - adjacent", 0));
    strata_block_t a = rig_allocate(&rig, NULL, 4 * MIB), b = rig_allocate(&rig, NULL, 8 * MIB);
    EXPECT_EQ(rig_figures(&rig).chunks, 2);
    EXPECT_EQ(bfc_of(&rig)->chunks.count, 1);
    RIG_FREE(&rig, a, b);
}

TEST(bfc_memory, adjacent_regions_are_one_and_go_back_as_one) {
    for (int coalesces = 0; coalesces < 2; coalesces++) {
        RIG_BY(rig, bfc_open_adjacent(&rig, coalesces ? "coalesce_regions: true" : ""));
        strata_block_t a = rig_allocate(&rig, NULL, MIB + 256), b = rig_allocate(&rig, NULL, 4 * MIB),
                       c = rig_allocate(&rig, NULL, 8 * MIB);
        EXPECT_EQ(bfc_of(&rig)->chunks.count, coalesces ? 1 : 3);
        EXPECT_EQ(rig_figures(&rig).chunks, 3);
        RIG_FREE(&rig, b, c);
        EXPECT_OK(strata_validate(rig.s));
        strata_block_t across = rig_allocate(&rig, NULL, 12 * MIB);
        EXPECT_EQ(across.ptr == b.ptr, coalesces);
        strata_block_t found;
        EXPECT_OK(strata_base_pointer(rig.s, (char *)across.ptr + 11 * MIB, &found));
        EXPECT_EQ(found.ref, across.ref);
        void *base;
        size_t size;
        EXPECT_STATUS(coalesces ? STRATA_E_UNSUPPORTED : STRATA_OK, strata_base_of(rig.s, across.ref, &base, &size));
        RIG_FREE(&rig, a, across);
        EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
        EXPECT_EQ(bfc_of(&rig)->chunks.count, 0);
        EXPECT_EQ(rig_figures(&rig).chunks, 0);
    }
}

/* ---- streams ---- */

/* The own stream has a block again at once, another one after a wait; a wait is for all that is free then. */
TEST(bfc_memory, another_stream_gets_a_block_after_a_wait) {
    RIG_BY(rig, bfc_open(&rig, "memory_limit: 4MiB, allow_growth: false", 0));
    strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, one, 2 * MIB), b = rig_allocate(&rig, one, 2 * MIB);
    rig_work(&rig, one, MILLISECOND, a.ref);
    RIG_FREE(&rig, a, b);
    a = rig_allocate(&rig, one, 2 * MIB);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_synchronise), 0);
    a = rig_allocate(&rig, two, 2 * MIB);
    uint64_t waits = rig_calls(&rig, STRATA_CALL_synchronise);
    EXPECT_GT(waits, 0);
    b = rig_allocate(&rig, two, 2 * MIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_synchronise), waits);
    RIG_FREE(&rig, a, b);
}

/* Beside a capture nobody waits: the request is cut out of a region of its own, and what is left in front of it becomes one with the free
 * block before, which stays its stream's. Each slot that is wanting refuses the request, and costs nothing. */
TEST(bfc_memory, beside_a_capture_a_request_is_cut_from_a_region_that_joins_one_in_use) {
    uint32_t refused = 0;
    strata_block_t b = {.ref = 0};
    for (uint32_t room = 0; room < 8 && b.ref == 0; room++) {
        RIG_BY(rig, bfc_open_adjacent(&rig, "coalesce_regions: true, max_region: 256"));
        strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
        strata_block_t a = rig_allocate(&rig, one, MIB + 256);
        rig_work(&rig, one, MILLISECOND, a.ref);
        EXPECT_OK(strata_free(rig.s, a.ref));
        rig_begin_capture(&rig, one);
        slots_t slots = slots_limit(bfc_slab(bfc_of(&rig)), room);
        b = bfc_serve(&rig, two, 256, 64 * KIB);
        refused += b.ref == 0;
        slots_restore(&slots);
        rig_end_capture(&rig, one);
        EXPECT_OK(strata_validate(rig.s));
        if (b.ref == 0) continue;
        EXPECT_EQ((char *)b.ptr - (char *)a.ptr, MIB + 64 * KIB);
        EXPECT_EQ(bfc_of(&rig)->chunks.count, 1);
        EXPECT_EQ(bfc_of(&rig)->idle.count, 1);
        EXPECT_OK(strata_free(rig.s, b.ref));
    }
    EXPECT_GT(refused, 0);
    EXPECT_NE(b.ref, 0);
}

/* The block of another stream stays that stream's, and the request is served from a region of its own. Where that became one with
 * the block, the device's word is told. Neither asks for region after region. */
TEST(bfc_memory, a_wait_that_fails_costs_one_region_at_most) {
    for (int coalesces = 0; coalesces < 2; coalesces++) {
        rig_t rig;
        strata_block_t b = {.ref = 0};
        if (coalesces) bfc_open_adjacent(&rig, "coalesce_regions: true");
        else bfc_open(&rig, "", 64 * MIB);
        strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
        strata_block_t a = rig_allocate(&rig, one, MIB);
        rig_work(&rig, one, MILLISECOND, a.ref);
        EXPECT_OK(strata_free(rig.s, a.ref));
        ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_stream_synchronise, 1, true, STRATA_E_DEVICE));
        ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_synchronise, 1, true, STRATA_E_DEVICE));
        EXPECT_STATUS(coalesces ? STRATA_E_DEVICE : STRATA_OK, strata_allocate(rig.s, rig.gpu, two, MIB, &b));
        EXPECT_EQ(rig_figures(&rig).growths, 2);
        if (!coalesces) EXPECT_EQ(rig_figures(&rig).reserved_bytes, 6 * MIB);
        strata_sim_clear_faults(rig.devices[0]);
        if (coalesces) b = rig_allocate(&rig, two, MIB);
        EXPECT_OK(strata_free(rig.s, b.ref));
        rig_close(&rig);
    }
}

/* What two streams used and is one block now is neither's. */
TEST(bfc_memory, what_two_streams_used_is_waited_for_by_both) {
    for (int asks = 0; asks < 2; asks++) {
        RIG_BY(rig, bfc_open(&rig, "memory_limit: 4MiB, allow_growth: false", 0));
        strata_stream_t streams[2] = {rig_stream(&rig), rig_stream(&rig)};
        strata_block_t a = rig_allocate(&rig, streams[0], 2 * MIB), b = rig_allocate(&rig, streams[1], 2 * MIB);
        rig_work(&rig, streams[0], MILLISECOND, a.ref);
        rig_work(&rig, streams[1], MILLISECOND, b.ref);
        RIG_FREE(&rig, a, b);
        uint64_t waits = rig_calls(&rig, STRATA_CALL_synchronise);
        a = rig_allocate(&rig, streams[asks], 4 * MIB);
        EXPECT_GT(rig_calls(&rig, STRATA_CALL_synchronise), waits);
        EXPECT_OK(strata_free(rig.s, a.ref));
    }
}

/* A destroyed stream's name is not mistaken for the next one's. */
TEST(bfc_memory, what_a_destroyed_stream_used_is_waited_for) {
    RIG_BY(rig, bfc_open(&rig, "memory_limit: 2MiB", 0));
    strata_stream_t one = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, one, 2 * MIB);
    rig_work(&rig, one, MILLISECOND, a.ref);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, one));
    EXPECT_OK(strata_stream_destroy(rig.s, rig.gpu, one));
    strata_stream_t two = rig_stream(&rig);
    uint64_t waits = rig_calls(&rig, STRATA_CALL_synchronise);
    a = rig_allocate(&rig, two, 2 * MIB);
    EXPECT_GT(rig_calls(&rig, STRATA_CALL_synchronise), waits);
    EXPECT_OK(strata_free(rig.s, a.ref));
}

/* ---- no room for another block ---- */

/* The block that it would have come from is whole again, the end of its region included. */
TEST(bfc_memory, a_request_between_two_rests_wants_a_slot_for_each) {
    for (uint32_t room = 0; room < 3; room++) {
        RIG_BY(rig, bfc_open_adjacent(&rig, "coalesce_regions: true, timestamps: true"));
        strata_block_t first = rig_allocate(&rig, NULL, 256), freed = rig_allocate(&rig, NULL, 2 * MIB - 256);
        EXPECT_OK(strata_free(rig.s, freed.ref));
        slots_t slots = slots_limit(bfc_slab(bfc_of(&rig)), room);
        strata_block_t b = bfc_serve(&rig, NULL, 256, 64 * KIB);
        EXPECT_EQ(b.ref != 0, room == 2);
        if (room < 2) EXPECT_EQ(strata_last_error()->status, STRATA_E_LIMIT);
        slots_restore(&slots);
        EXPECT_OK(strata_validate(rig.s));
        EXPECT_EQ(bfc_of(&rig)->stamp_count, room == 2 ? 2 : 1);
        EXPECT_EQ(rig_figures(&rig).growths, 1);
        if (b.ref) EXPECT_OK(strata_free(rig.s, b.ref));
        EXPECT_OK(strata_free(rig.s, first.ref));
    }
}

/* ---- what is told ---- */

/* What is served at the place of the last step counts as any block does. */
TEST(bfc_memory, what_a_step_repeats_is_counted_and_noted) {
    RIG_BY(rig, bfc_open(&rig, "stable_addresses: true, memory_debug: true", 0));
    strata_stream_t other = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, NULL, 512 * KIB), guard = rig_allocate(&rig, other, 256);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_OK(strata_step(rig.s));
    strata_block_t more = rig_allocate(&rig, other, 640 * KIB), again = rig_allocate(&rig, NULL, 512 * KIB);
    EXPECT_EQ(again.ptr, a.ptr);
    const bfc_t *self = bfc_of(&rig);
    EXPECT_EQ(self->peak_used, 640 * KIB + 512 * KIB + 256);
    EXPECT_EQ(self->history[self->actions % STRATA_BFC_HISTORY], self->peak_used);
    EXPECT_EQ(bfc_note_of(self, strata_ref_slot(again.ref))->id, 4);
    RIG_FREE(&rig, guard, more, again);
}

static void note_made(const strata_block_t *block, bool live, void *context) {
    strata_block_t *made = context;
    if (live) *made = *block;
}

/* So does what is made live again at its place in a pool of graphs. */
TEST(bfc_memory, what_a_checkpoint_brings_back_is_counted_and_noted) {
    strata_block_t block = {.ref = 0}, made = {.ref = 0};
    strata_checkpoint_t checkpoint;
    uint64_t pool = 0;
    RIG_BY(rig, bfc_open(&rig, "memory_debug: true", 0));
    strata_stream_t stream = rig_stream(&rig);
    ASSERT_OK(strata_graph_pool_begin(rig.s, rig.gpu, stream, &pool));
    EXPECT_OK(strata_allocate(rig.s, rig.gpu, stream, MIB, &block));
    ASSERT_OK(strata_graph_pool_end(rig.s, rig.gpu, pool));
    ASSERT_OK(strata_graph_pool_checkpoint(rig.s, rig.gpu, pool, &checkpoint));
    bfc_t *self = bfc_of_group(strata_stack_of(strata_ref_home(block.ref))->group);
    EXPECT_OK(strata_free(rig.s, block.ref));
    strata_layer_notify(&self->base, &(strata_notice_t){.kind = STRATA_NOTICE_PEAKS}, NULL);
    EXPECT_EQ(self->peak_used, 0);
    ASSERT_OK(strata_graph_pool_restore(rig.s, rig.gpu, checkpoint, note_made, &made));
    EXPECT_EQ(made.ptr, block.ptr);
    EXPECT_EQ(self->peak_used, MIB);
    EXPECT_EQ(self->history[self->actions % STRATA_BFC_HISTORY], MIB);
    EXPECT_EQ(bfc_note_of(self, strata_ref_slot(made.ref))->id, 2);
    EXPECT_OK(strata_free(rig.s, made.ref));
    strata_graph_checkpoint_drop(checkpoint);
    EXPECT_OK(strata_graph_pool_remove(rig.s, rig.gpu, pool));
}

TEST(bfc_memory, the_report_draws_and_counts) {
    strata_block_t none, b[3];
    RIG_BY(rig, bfc_open(&rig, "memory_limit: 1MiB, allow_growth: false, memory_debug: true", 0));
    b[0] = rig_allocate(&rig, NULL, 256 * KIB);
    b[1] = rig_allocate(&rig, NULL, 256 * KIB);
    b[2] = rig_allocate(&rig, NULL, 256 * KIB - 255 - 40 * KIB);
    EXPECT_OK(strata_free(rig.s, b[1].ref));
    b[1] = rig_allocate(&rig, NULL, 160 * KIB);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, MIB - 255, &none));
    const char *text = strata_last_error()->text;
    EXPECT_CONTAINS(text, "bfc: limit 1MiB, in use");
    EXPECT_CONTAINS(text, "of 1MiB in 1 regions");
    EXPECT_CONTAINS(text, "Bin (256KiB): Total Chunks: ");
    EXPECT_CONTAINS(text, "Bin for 1048321 was 1MiB");
    EXPECT_CONTAINS(text, "*************************"); /* 25: the first quarter */
    EXPECT_CONTAINS(text, "________");
    EXPECT_CONTAINS(text, "\n    in use: 2 Chunks of size 256KiB totalling 512KiB, 1 Chunks of size 216KiB totalling 216KiB\n");
    EXPECT_CONTAINS(text, "InUse at 0x");
    EXPECT_CONTAINS(text, "in use after action 1: 256KiB, 512KiB, ");
    bfc_free_all(&rig, b, 3);
}

/* A block that ends where a hundredth of the region ends is drawn up to there. */
TEST(bfc_memory, the_report_draws_no_more_than_is_in_use) {
    char drawn[STRATA_BFC_DRAWN + 1];
    RIG_BY(rig, bfc_open(&rig, "memory_limit: 100MiB, allow_growth: false, memory_debug: true", 0));
    strata_block_t block = rig_allocate(&rig, NULL, 25 * MIB);
    strata_bfc_draw(bfc_of(&rig), drawn);
    EXPECT_EQ(strspn(drawn, "*"), 25);
    EXPECT_EQ(strspn(drawn + 25, "_"), STRATA_BFC_DRAWN - 25);
    EXPECT_OK(strata_free(rig.s, block.ref));
}

TEST(bfc_memory, the_report_counts_the_first_bin_and_the_last) {
    strata_block_t none, b[2];
    RIG_BY(rig, bfc_open(&rig, "memory_limit: 600MiB, allow_growth: false, memory_debug: true", 0));
    b[0] = rig_allocate(&rig, NULL, 200);
    b[1] = rig_allocate(&rig, NULL, 300 * MIB);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 500 * MIB, &none));
    const char *text = strata_last_error()->text;
    EXPECT_CONTAINS(text, "Bin (256): Total Chunks: 1, Chunks in use: 1. 256 allocated for chunks. 256 in use in bin. "
                          "200 client-requested in use in bin.");
    EXPECT_CONTAINS(text, "Bin (256MiB): Total Chunks: 2, Chunks in use: 1. ");
    bfc_free_all(&rig, b, 2);
}

/* There are more blocks of the seventh size than the largest has bytes, and no block that is not there is told of. */
TEST(bfc_memory, the_report_counts_six_sizes) {
    enum { SMALL = 1900, LARGER = 6 };
    strata_block_t none, b[LARGER + SMALL];
    RIG_BY(rig, bfc_open(&rig, "memory_limit: 1MiB, allow_growth: false, memory_debug: true", 0));
    for (size_t i = 0; i < LARGER + SMALL; i++) b[i] = rig_allocate(&rig, NULL, i < LARGER ? (7 - i) * 256 : 256);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, MIB, &none));
    const char *text = strata_last_error()->text;
    EXPECT_CONTAINS(text, "1 Chunks of size 512 totalling 512\n    InUse at 0x");
    EXPECT_LACKS(text, "of size 1900");
    bfc_free_all(&rig, b, LARGER + SMALL);
}

TEST(bfc_memory, nothing_is_drawn_of_nothing) {
    strata_block_t none;
    RIG_BY(rig, bfc_open(&rig, "memory_limit: 1MiB", 0));
    EXPECT_SAYS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 2 * MIB, &none), "<allocator contains no memory>");
}

static void read_whole(const char *path, char *text, size_t capacity) {
    FILE *file = fopen(path, "r");
    ASSERT_NE(file, NULL);
    size_t length = fread(text, 1, capacity - 1, file);
    text[length] = '\0';
    fclose(file);
}

TEST(bfc_memory, a_map_of_all_blocks_is_written) {
    char folder[] = "/tmp/strata-bfc-XXXXXX", options[256], pattern[128];
    static char text[65536];
    glob_t found;
    ASSERT_NE(mkdtemp(folder), NULL);
    snprintf(options, sizeof options, "memory_limit: 1MiB, memory_debug: true, timestamps: true, memory_dump: %s/map", folder);
    RIG_BY(rig, bfc_open(&rig, options, 0));
    EXPECT_OK(strata_annotate(rig.s, "say \"cheese\"\t\\o/"));
    strata_block_t a = rig_allocate(&rig, NULL, 100 * KIB + 1), b = rig_allocate(&rig, NULL, 100 * KIB),
                   c = rig_allocate(&rig, NULL, 1), none;
    EXPECT_OK(strata_annotate(rig.s, NULL));
    EXPECT_OK(strata_free(rig.s, b.ref));
    EXPECT_SAYS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 2 * MIB, &none), "memory map in ");
    snprintf(pattern, sizeof pattern, "%s/map_bfc.*.json", folder);
    ASSERT_EQ(glob(pattern, 0, NULL, &found), 0);
    EXPECT_EQ(found.gl_pathc, 1);
    read_whole(found.gl_pathv[0], text, sizeof text);
    EXPECT_CONTAINS(text, "{\"allocator_name\":\"bfc\",");
    EXPECT_CONTAINS(text, "\"size\":102656,\"requested_size\":102401,\"bin\":-1,\"op_name\":\"say \\\"cheese\\\"\?\\\\o/\","
                          "\"freed_at_count\":0,\"action_count\":1,\"allocation_id\":1,\"in_use\":true,\"step_id\":0}");
    EXPECT_CONTAINS(text, "\"size\":102400,\"requested_size\":0,\"bin\":8,\"op_name\":\"\",\"freed_at_count\":1,"
                          "\"action_count\":4,");
    EXPECT_CONTAINS(text, "{\"bin\":8,\"total_bytes_in_use\":102656,\"total_bytes_in_bin\":205056,\"total_chunks_in_use\":1,"
                          "\"total_chunks_in_bin\":2}");
    EXPECT_CONTAINS(text, "{\"action_count\":1,\"size\":102656},{\"action_count\":2,\"size\":205056},"
                          "{\"action_count\":3,\"size\":205312},{\"action_count\":4,\"size\":102912}]");
    EXPECT_CONTAINS(text, "\"num_allocs\":3,\"bytes_in_use\":102912,\"peak_bytes_in_use\":205312,"
                          "\"largest_alloc_size\":102656,");
    unlink(found.gl_pathv[0]);
    globfree(&found);
    rmdir(folder);
    RIG_FREE(&rig, a, c);
}

TEST(bfc_memory, a_map_that_cannot_be_written_is_told) {
    strata_block_t none;
    RIG_BY(rig, bfc_open(&rig, "memory_limit: 1MiB, memory_dump: /no/such/folder/map", 0));
    EXPECT_SAYS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 2 * MIB, &none),
                "memory map could not be written to /no/such/folder/map_bfc.");
}

/* The ring is of the last 4096 actions. */
TEST(bfc_memory, the_ring_of_past_sizes_goes_round) {
    RIG_BY(rig, bfc_open(&rig, "memory_debug: true", 0));
    const bfc_t *self = bfc_of(&rig);
    for (int i = 0; i < 2100; i++) {
        strata_block_t b = rig_allocate(&rig, NULL, 256 * (1 + (size_t)i % 7));
        EXPECT_EQ(self->history[self->actions % STRATA_BFC_HISTORY], 256 * (1 + (size_t)i % 7));
        EXPECT_OK(strata_free(rig.s, b.ref));
        EXPECT_EQ(self->history[self->actions % STRATA_BFC_HISTORY], 0);
    }
    EXPECT_EQ(self->actions, 4200);
    EXPECT_EQ(self->ids, 2100);
}

/* The notes of blocks grow as the blocks do. */
TEST(bfc_memory, thousands_of_blocks_are_noted) {
    enum { BLOCKS = 20000 };
    static strata_block_t blocks[BLOCKS];
    RIG_BY(rig, bfc_open(&rig, "memory_debug: true, memory_limit: 64MiB", 0));
    for (int i = 0; i < BLOCKS; i++) blocks[i] = rig_allocate(&rig, NULL, 256);
    for (uint64_t i = 0; i < BLOCKS; i++) {
        const bfc_note_t *note = bfc_note_of(bfc_of(&rig), strata_ref_slot(blocks[i].ref));
        ASSERT_NE(note, NULL);
        EXPECT_EQ(note->id, i + 1);
    }
    for (int i = 0; i < BLOCKS; i++) EXPECT_OK(strata_free(rig.s, blocks[i].ref));
}
