/* The rules of rounding, splitting and pools one by one; all of them at once: tests/chunked/rules.c. */
#include <stdio.h>

#include "tests/caching/caching.h"

/* ---- borders ---- */

TEST(caching, segments_are_of_three_sizes) {
    static const struct {
        size_t size;
        uint64_t segment;
    } cases[] = {
        {1, 2 * MIB},
        {MIB, 2 * MIB},
        {MIB + 1, 20 * MIB},
        {10 * MIB - 512, 20 * MIB},
        {10 * MIB - 511, 10 * MIB},
        {10 * MIB, 10 * MIB},
        {10 * MIB + 1, 12 * MIB},
        {21 * MIB, 22 * MIB},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        RIG_BY(rig, caching_open(&rig, "", 0));
        strata_block_t b = rig_allocate(&rig, NULL, cases[i].size);
        EXPECT_EQ(caching_reserved(&rig), cases[i].segment);
        EXPECT_OK(strata_free(rig.s, b.ref));
    }
}

TEST(caching, a_small_rest_of_a_large_block_stays_with_it) {
    RIG_BY(rig, caching_open(&rig, "", 0));
    strata_block_t whole = rig_allocate(&rig, NULL, 19 * MIB), small = rig_allocate(&rig, NULL, 2 * MIB - 512);
    EXPECT_EQ(whole.size, 20 * MIB);
    EXPECT_EQ(small.size, 2 * MIB - 512);
    strata_block_t tiny = rig_allocate(&rig, NULL, 2 * MIB - 1024 - 511);
    EXPECT_EQ(tiny.size, 2 * MIB - 1024);
    EXPECT_OK(strata_free(rig.s, whole.ref));
    whole = rig_allocate(&rig, NULL, 19 * MIB - 512);
    EXPECT_EQ(whole.size, 19 * MIB - 512);
    RIG_FREE(&rig, whole, tiny, small);
}

/* A block of 60 MiB serves what is larger than 40 MiB: the rest must be below 20 MiB. */
TEST(caching, a_block_that_is_not_split_serves_what_is_near_its_size) {
    static const struct {
        size_t size;
        bool serves;
    } cases[] = {
        {40 * MIB, false}, {40 * MIB + 1, true},    {60 * MIB, true},
        {20 * MIB, false}, {20 * MIB - 512, false}, {60 * MIB + 1, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        RIG_BY(rig, caching_open(&rig, "max_split_size: 20MiB", 0));
        caching_make_idle(&rig, NULL, (const size_t[]){60}, 1);
        strata_block_t b = rig_allocate(&rig, NULL, cases[i].size);
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), cases[i].serves ? 1 : 2);
        EXPECT_OK(strata_free(rig.s, b.ref));
    }
}

TEST(caching, other_places_are_served_too) {
    static const char *const places[] = {"managed", "pinned", "host"};
    const strata_place_t each[] = {strata_managed(0), strata_pinned(), strata_host()};
    for (size_t i = 0; i < 3; i++) {
        char text[256];
        snprintf(text, sizeof text, "version: 1\nstack: [system]\nplaces:\n  %s: [caching, system]\n", places[i]);
        RIG(rig, text, 0);
        strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
        strata_block_t a, b;
        EXPECT_OK(strata_allocate(rig.s, each[i], one, 5000, &a));
        EXPECT_OK(strata_record_stream(rig.s, a.ref, two));
        EXPECT_OK(strata_stream_work(rig.s, rig.gpu, two, MILLISECOND, &a.ref, 1));
        EXPECT_OK(strata_free(rig.s, a.ref));
        EXPECT_OK(strata_allocate(rig.s, each[i], one, 5000, &b));
        EXPECT_NE(b.ptr, a.ptr);
        EXPECT_OK(strata_free(rig.s, b.ref));
        rig_advance(&rig, 2 * MILLISECOND);
        EXPECT_OK(strata_allocate(rig.s, each[i], one, 5000, &b));
        EXPECT_EQ(b.ptr, a.ptr);
        EXPECT_OK(strata_free(rig.s, b.ref));
    }
}

/* The stream that asked is the first borrower, and stays one. */
TEST(caching, without_owners_the_stream_that_asked_borrows_to_the_end) {
    RIG(rig, "version: 1\nstack: [system]\nplaces:\n  pinned: [caching, system]\n", 0);
    strata_stream_t one = rig_stream(&rig);
    strata_block_t a, b;
    EXPECT_OK(strata_allocate(rig.s, strata_pinned(), one, 5000, &a));
    EXPECT_OK(strata_stream_work(rig.s, rig.gpu, one, MILLISECOND, &a.ref, 1));
    EXPECT_OK(strata_erase_stream(rig.s, a.ref, one));
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_OK(strata_allocate(rig.s, strata_pinned(), one, 5000, &b));
    EXPECT_NE(b.ptr, a.ptr);
    EXPECT_OK(strata_free(rig.s, b.ref));
}

TEST(caching, refuses_what_does_not_fit_together) {
    caching_expect_refused("garbage_collection_threshold: 0.5", "needs a memory_fraction below 1");
    caching_expect_refused("garbage_collection_threshold: 0.5, memory_fraction: 0.5, streams: ignored", "ages are not tracked");
}
