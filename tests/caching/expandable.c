/* Segments that expand, by sequences worked by hand from PyTorch's rules: which address, how many handles, which device calls. */
#include <stdio.h>

#include "allocation/report/outcome.h"
#include "tests/caching/caching.h"

static uint64_t reserved(rig_t *rig) { return rig_figures(rig).reserved_bytes; }

static uint64_t offset(const strata_block_t *from, const strata_block_t *to) {
    return (uint64_t)((const char *)to->ptr - (const char *)from->ptr);
}

static void open_expandable(rig_t *rig, const char *options, uint64_t capacity) {
    char text[256];
    snprintf(text, sizeof text, "version: 1\nstack:\n  - caching_vmm: {%s}\n  - vmm\n", options);
    rig_open(rig, text, NULL, 0, capacity, 1);
}

/* ---- growing ---- */

/* One handle of 2 MiB for small blocks, of 20 MiB for large ones, each in a range of its own. */
TEST(caching_expandable, small_and_large_blocks_have_handles_of_their_own) {
    RIG(rig, "pytorch-expandable", 0);
    strata_block_t small = rig_allocate(&rig, NULL, MIB), large = rig_allocate(&rig, NULL, MIB + 1);
    EXPECT_EQ(reserved(&rig), 22 * MIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_reserve), 2);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_create), 2);
    strata_block_t next = rig_allocate(&rig, NULL, MIB);
    EXPECT_EQ(offset(&small, &next), MIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_create), 2);
    RIG_FREE(&rig, small, large, next);
}

/* The free end of a segment counts: 30 MiB after 1 MiB and a half take one handle more, not two. */
TEST(caching_expandable, a_block_grows_into_the_addresses_after_the_last_free_one) {
    RIG(rig, "pytorch-expandable", 0);
    strata_block_t a = rig_allocate(&rig, NULL, 3 * MIB / 2), b = rig_allocate(&rig, NULL, 30 * MIB);
    EXPECT_EQ(offset(&a, &b), 3 * MIB / 2);
    EXPECT_EQ(b.size, 30 * MIB);
    EXPECT_EQ(reserved(&rig), 40 * MIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_create), 2);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_map), 2);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_reserve), 1);
    RIG_FREE(&rig, a, b);
}

/* Of what is left of a large block 512 bytes are enough to stay free; without expandable segments it would have to be more than
 * 1 MiB. */
TEST(caching_expandable, a_large_block_is_split_as_a_small_one_is) {
    RIG(rig, "pytorch-expandable", 0);
    strata_block_t a = rig_allocate(&rig, NULL, 20 * MIB - 1024), b = rig_allocate(&rig, NULL, 2 * MIB);
    EXPECT_EQ(a.size, 20 * MIB - 1024);
    EXPECT_EQ(offset(&a, &b), 20 * MIB - 1024);
    EXPECT_EQ(reserved(&rig), 40 * MIB);
    RIG_FREE(&rig, a, b);
}

/* In handles of 20 MiB: 2 live, 8 free, 5 live, 5 free at the end. The end can grow, so 4 MiB come from the hole of 8, though 5 fit
 * better; and 6 MiB come from it too. */
TEST(caching_expandable, the_end_of_a_segment_is_as_large_as_it_can_become) {
    RIG(rig, "pytorch-expandable", 0);
    strata_block_t first = rig_allocate(&rig, NULL, 2 * MIB), hole = rig_allocate(&rig, NULL, 8 * MIB);
    strata_block_t last = rig_allocate(&rig, NULL, 5 * MIB);
    EXPECT_OK(strata_free(rig.s, hole.ref));
    strata_block_t four = rig_allocate(&rig, NULL, 4 * MIB);
    EXPECT_EQ(offset(&first, &four), 2 * MIB);
    strata_block_t five = rig_allocate(&rig, NULL, 5 * MIB);
    EXPECT_EQ(offset(&first, &five), 15 * MIB);
    EXPECT_EQ(reserved(&rig), 20 * MIB);
    RIG_FREE(&rig, first, last, four, five);
}

/* Each handle once, those of a growth that failed in the middle too. */
TEST(caching_expandable, handles_that_come_and_go_are_counted) {
    RIG_BY(rig, open_expandable(&rig, "", 0));
    const caching_t *self = caching_of(&rig);
    strata_block_t large = rig_allocate(&rig, NULL, 60 * MIB), small = rig_allocate(&rig, NULL, MIB);
    EXPECT_EQ(self->mapped, 4);
    EXPECT_EQ(self->unmapped, 0);
    EXPECT_OK(strata_free(rig.s, large.ref));
    EXPECT_EQ(rig_release(&rig), 60 * MIB);
    EXPECT_EQ(self->unmapped, 3);
    const strata_allocate_options_t once = {.struct_size = sizeof once, .size = 60 * MIB, .flags = STRATA_NO_RETRY};
    ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_create, 3, false, STRATA_E_DEVICE));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_allocate_with(rig.s, rig.gpu, NULL, &once, &large));
    EXPECT_EQ(self->mapped, 6);
    EXPECT_EQ(self->unmapped, 5);
    EXPECT_EQ(reserved(&rig), 2 * MIB);
    EXPECT_OK(strata_free(rig.s, small.ref));
}

/* A limit that has room for two of four handles refuses the two that are still lacking. */
TEST(caching_expandable, a_limit_is_told_of_what_is_lacking) {
    RIG_BY(rig, rig_open(&rig, "version: 1\nstack:\n  - caching_vmm\n  - limit: {bytes: 50MiB}\n  - vmm\n", NULL, 0, 0, 1));
    strata_outcome_t outcome;
    strata_record_t *none;
    const strata_request_t request = {.struct_size = sizeof request, .size = 80 * MIB, .alignment = 256, .outcome = &outcome};
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_stack_serve(rig_stack(&rig, NULL), &request, &none));
    EXPECT_EQ(outcome.refusal.by, STRATA_REFUSED_BY_BOUND);
    EXPECT_EQ(outcome.refusal.asked, 40 * MIB);
    EXPECT_EQ(outcome.refusal.used, 40 * MIB);
    EXPECT_EQ(outcome.refusal.limit, 50 * MIB);
    EXPECT_EQ(reserved(&rig), 0);
}

TEST(caching_expandable, each_stream_has_segments_of_its_own) {
    RIG(rig, "pytorch-expandable", 0);
    strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, one, 10 * MIB);
    EXPECT_OK(strata_free(rig.s, a.ref));
    strata_block_t b = rig_allocate(&rig, two, 10 * MIB), again = rig_allocate(&rig, one, 10 * MIB);
    EXPECT_EQ(again.ptr, a.ptr);
    EXPECT_NE(b.ptr, a.ptr);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_reserve), 2);
    EXPECT_EQ(reserved(&rig), 40 * MIB);
    RIG_FREE(&rig, b, again);
}

/* ---- unmapping ---- */

/* 10 live, 20 freed over two handles: only the second is free as a whole. What is mapped again comes where it was. */
TEST(caching_expandable, only_whole_handles_are_unmapped) {
    RIG(rig, "pytorch-expandable", 0);
    strata_block_t a = rig_allocate(&rig, NULL, 10 * MIB), b = rig_allocate(&rig, NULL, 20 * MIB);
    EXPECT_EQ(reserved(&rig), 40 * MIB);
    EXPECT_OK(strata_free(rig.s, b.ref));
    EXPECT_EQ(rig_release(&rig), 20 * MIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_unmap), 1);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_release), 1);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_unreserve), 0);
    EXPECT_EQ(reserved(&rig), 20 * MIB);
    b = rig_allocate(&rig, NULL, 25 * MIB);
    EXPECT_EQ(offset(&a, &b), 10 * MIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_create), 3);
    RIG_FREE(&rig, a, b);
}

/* Three handles, the first and the last unmapped. What does not fit before the live one comes after it; what fits comes first. */
TEST(caching_expandable, the_lowest_place_that_is_wide_enough_is_mapped) {
    RIG(rig, "pytorch-expandable", 0);
    strata_block_t x = rig_allocate(&rig, NULL, 20 * MIB), y = rig_allocate(&rig, NULL, 20 * MIB);
    strata_block_t z = rig_allocate(&rig, NULL, 20 * MIB);
    RIG_FREE(&rig, x, z);
    EXPECT_EQ(rig_release(&rig), 40 * MIB);
    strata_block_t wide = rig_allocate(&rig, NULL, 40 * MIB), narrow = rig_allocate(&rig, NULL, 15 * MIB);
    EXPECT_EQ(offset(&x, &wide), 40 * MIB);
    EXPECT_EQ(narrow.ptr, x.ptr);
    EXPECT_EQ(reserved(&rig), 80 * MIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_reserve), 1);
    RIG_FREE(&rig, y, wide, narrow);
}

/* Gap, free rest, gap: 10 free in a handle between two that are unmapped. 45 MiB take all three, and map only two. */
TEST(caching_expandable, a_place_may_have_free_blocks_between_its_gaps) {
    RIG(rig, "pytorch-expandable", 0);
    strata_block_t a = rig_allocate(&rig, NULL, 20 * MIB), b = rig_allocate(&rig, NULL, 20 * MIB);
    strata_block_t c = rig_allocate(&rig, NULL, 20 * MIB), d = rig_allocate(&rig, NULL, 20 * MIB);
    RIG_FREE(&rig, a, c);
    EXPECT_EQ(rig_release(&rig), 40 * MIB);
    EXPECT_OK(strata_free(rig.s, b.ref));
    uint64_t creations = rig_calls(&rig, STRATA_CALL_create);
    strata_block_t all = rig_allocate(&rig, NULL, 45 * MIB);
    EXPECT_EQ(all.ptr, a.ptr);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_create) - creations, 2);
    EXPECT_EQ(reserved(&rig), 80 * MIB);
    strata_block_t rest = rig_allocate(&rig, NULL, 15 * MIB);
    EXPECT_EQ(offset(&a, &rest), 45 * MIB);
    RIG_FREE(&rig, d, all, rest);
}

/* With the last handle the addresses go too. */
TEST(caching_expandable, a_segment_ends_when_nothing_is_mapped_in_it) {
    RIG(rig, "pytorch-expandable", 0);
    strata_block_t a = rig_allocate(&rig, NULL, 50 * MIB), b = rig_allocate(&rig, NULL, 1000);
    RIG_FREE(&rig, a, b);
    EXPECT_EQ(rig_release(&rig), 62 * MIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_unmap), 4);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_unreserve), 2);
    EXPECT_EQ(rig_figures(&rig).chunks, 0);
}

/* Neither unmapping nor releasing waits: the host does, once for each block and for its stream alone. */
TEST(caching_expandable, unmapping_waits_for_the_stream) {
    RIG(rig, "pytorch-expandable", 0);
    strata_stream_t one = rig_stream(&rig), other = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, one, 60 * MIB), b = rig_allocate(&rig, other, 1000);
    rig_work(&rig, one, 5 * MILLISECOND, a.ref);
    rig_work(&rig, other, 500 * MILLISECOND, b.ref);
    EXPECT_OK(strata_free(rig.s, a.ref));
    uint64_t before = strata_sim_now(rig.world);
    EXPECT_EQ(rig_release(&rig), 60 * MIB);
    uint64_t waited = strata_sim_now(rig.world) - before;
    EXPECT_GE(waited, 4 * MILLISECOND);
    EXPECT_LT(waited, 100 * MILLISECOND);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_stream_synchronise), 1);
    EXPECT_OK(strata_free(rig.s, b.ref));
}

/* Down to what may stay idle, by whole handles. */
TEST(caching_expandable, a_trim_unmaps_no_more_than_it_must) {
    RIG(rig, "pytorch-expandable", 0);
    uint64_t freed = 0;
    strata_block_t a = rig_allocate(&rig, NULL, 100 * MIB);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_OK(strata_trim(rig.s, rig.gpu, 45 * MIB, &freed));
    EXPECT_EQ(freed, 60 * MIB);
    EXPECT_EQ(reserved(&rig), 40 * MIB);
}

/* ---- out of memory ---- */

/* The peer's test mixes blocks that expand with others; here all do. */
TEST(caching_expandable, test_max_split_expandable) {
    static const char *const options[] = {"", "max_split_size: 40MiB", "max_split_size: 41MiB"};
    for (size_t i = 0; i < 3; i++) {
        RIG_BY(rig, open_expandable(&rig, options[i], 120 * MIB));
        strata_block_t blocks[3], fourth;
        for (int n = 0; n < 3; n++) blocks[n] = rig_allocate(&rig, NULL, 40 * MIB);
        EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 40 * MIB, &fourth));
        RIG_FREE(&rig, blocks[0], blocks[1], blocks[2]);
        strata_block_t all = rig_allocate(&rig, NULL, 120 * MIB);
        EXPECT_EQ(all.ptr, blocks[0].ptr);
        EXPECT_OK(strata_free(rig.s, all.ref));
    }
}

/* Three handles fit on the device, the fourth fails: the three go back, and after the wait for all it is tried once more. */
TEST(caching_expandable, what_a_growth_has_mapped_goes_back_when_it_fails) {
    RIG_BY(rig, open_expandable(&rig, "", 64 * MIB));
    strata_block_t none;
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 68 * MIB, &none));
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_create), 8);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_release), 6);
    EXPECT_EQ(reserved(&rig), 0);
    EXPECT_EQ(strata_sim_device_waits(rig.devices[0]), 0);
    EXPECT_OK(strata_validate(rig.s));
    strata_block_t fits = rig_allocate(&rig, NULL, 60 * MIB);
    EXPECT_OK(strata_free(rig.s, fits.ref));
}

/* In whole handles. */
TEST(caching_expandable, a_segment_has_addresses_for_nine_eighths_of_the_device) {
    RIG_BY(rig, open_expandable(&rig, "", 64 * MIB));
    strata_block_t large = rig_allocate(&rig, NULL, 2 * MIB), small = rig_allocate(&rig, NULL, 1000);
    const caching_t *self = (const caching_t *)rig_domain(&rig)->ordinary.shared[1];
    uint64_t available, total, least;
    EXPECT_OK(strata_device_mem_info(rig.devices[0], &available, &total));
    least = total + total / 8;
    for (uint32_t n = 1; n <= 2; n++) {
        uint64_t handle = n == 1 ? 20 * MIB : 2 * MIB, size = caching_range_at(self, n)->size;
        EXPECT_EQ(size % handle, 0);
        EXPECT_GE(size, least);
        EXPECT_LT(size, least + handle);
    }
    RIG_FREE(&rig, large, small);
}

/* More than a segment has addresses for: no handle is tried. */
TEST(caching_expandable, more_than_any_segment_has_is_refused_at_once) {
    RIG_BY(rig, open_expandable(&rig, "", 64 * MIB));
    strata_block_t none;
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 4096 * GIB, &none));
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_create), 0);
}

/* What lies idle for other streams, and in the other kind of segments, is unmapped before a request fails. */
TEST(caching_expandable, idle_handles_of_other_streams_serve_at_need) {
    RIG_BY(rig, open_expandable(&rig, "", 64 * MIB));
    strata_stream_t other = rig_stream(&rig);
    strata_block_t large = rig_allocate(&rig, other, 20 * MIB), small = rig_allocate(&rig, other, 1000);
    rig_work(&rig, other, MILLISECOND, large.ref);
    RIG_FREE(&rig, large, small);
    strata_block_t all = rig_allocate(&rig, NULL, 60 * MIB);
    EXPECT_EQ(reserved(&rig), 60 * MIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_unmap), 1 + 2 + 1); /* what the first try had mapped, too */
    EXPECT_OK(strata_free(rig.s, all.ref));
}

/* The bound counts what the native segment would be, and asks no device. */
TEST(caching_expandable, the_memory_fraction_bounds_without_a_device_call) {
    RIG_BY(rig, open_expandable(&rig, "memory_fraction: 0.5", 256 * MIB));
    uint64_t allowed = ((caching_t *)rig_domain(&rig)->ordinary.shared[1])->allowed;
    strata_block_t a = rig_allocate(&rig, NULL, 20 * MIB), none;
    uint64_t creations = rig_calls(&rig, STRATA_CALL_create);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, allowed, &none));
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_create), creations);
    EXPECT_OK(strata_free(rig.s, a.ref));
}

/* ---- failures ---- */

/* Create, map or set access fails at the second handle: all is as before, and the next request is served as if nothing had been. */
TEST(caching_expandable, a_failed_growth_leaves_everything_as_it_was) {
    static const strata_device_call_t calls[] = {STRATA_CALL_create, STRATA_CALL_map, STRATA_CALL_set_access};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        RIG_BY(rig, open_expandable(&rig, "", 256 * MIB));
        strata_block_t a = rig_allocate(&rig, NULL, 5 * MIB), b;
        EXPECT_OK(strata_sim_fail(rig.devices[0], calls[i], 2, false, STRATA_E_DEVICE));
        EXPECT_STATUS(STRATA_E_DEVICE, strata_allocate(rig.s, rig.gpu, NULL, 70 * MIB, &b));
        EXPECT_EQ(reserved(&rig), 20 * MIB);
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_stream_synchronise), 0); /* it went at once, not as something idle */
        EXPECT_OK(strata_validate(rig.s));
        b = rig_allocate(&rig, NULL, 70 * MIB);
        EXPECT_EQ(offset(&a, &b), 5 * MIB);
        EXPECT_EQ(reserved(&rig), 80 * MIB);
        RIG_FREE(&rig, a, b);
    }
}

/* A forgotten stream leaves its segments to anybody; they go with the next release. */
TEST(caching_expandable, a_forgotten_stream_leaves_no_addresses) {
    RIG(rig, "pytorch-expandable", 0);
    strata_stream_t stream = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, stream, 30 * MIB);
    rig_work(&rig, stream, MILLISECOND, a.ref);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, stream));
    EXPECT_EQ(rig_release(&rig), 40 * MIB);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_unreserve), 1);
    EXPECT_EQ(caching_first_bank((caching_t *)rig_domain(&rig)->ordinary.shared[1]), 0);
}

TEST(caching_expandable, other_places_and_sources_are_refused) {
    static const struct {
        const char *text, *part;
    } rows[] = {{"stack: [caching_vmm, system]\n", "needs handle_source below it"},
                {"stack: [system]\nplaces: {managed: [caching_vmm, vmm]}\n", "only gpu places"},
                {"stack: [{caching_vmm: {garbage_collection_threshold: 0.5}}, vmm]\n", "garbage_collection_threshold"},
                {"stack: [{caching_vmm: {search_after_events: true, reclaim: ladder}}, vmm]\n", "reclaim"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        strata_config_request_t request = {.text = rows[i].text, .devices = "sim"};
        strata_strategy_t *strategy = NULL;
        EXPECT_STATUS(STRATA_E_STRATEGY, strata_config_load(&request, &strategy));
        EXPECT_CONTAINS(strata_last_error()->text, rows[i].part);
        if (strategy) strata_strategy_delete(strategy);
    }
}
