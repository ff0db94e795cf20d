/* The rules of bfc one by one; all of them at once: tests/chunked/rules.c. */
#include <stdio.h>

#include "tests/bfc/bfc.h"

/* Cut where the block has twice the request, or more above it than is allowed. */
TEST(bfc, cuts_by_the_two_rules) {
    static const struct {
        size_t block, request, granted;
    } cases[] = {{512, 256, 256},
                 {768, 512, 768},
                 {8 * MIB, 4 * MIB, 4 * MIB},
                 {8 * MIB, 4 * MIB + 256, 8 * MIB},
                 {512 * MIB, 384 * MIB, 384 * MIB},
                 {512 * MIB, 384 * MIB + 256, 512 * MIB}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        RIG_BY(rig, bfc_open(&rig, "allow_growth: false, memory_limit: 2GiB", 0));
        strata_block_t first = rig_allocate(&rig, NULL, cases[i].block), guard = rig_allocate(&rig, NULL, 256);
        EXPECT_OK(strata_free(rig.s, first.ref));
        strata_block_t b = rig_allocate(&rig, NULL, cases[i].request);
        EXPECT_EQ(b.ptr, first.ptr);
        EXPECT_EQ(b.size, cases[i].granted);
        RIG_FREE(&rig, b, guard);
    }
}

/* Regions of 2, 4, 8 MiB, up to a bound; one that had to be doubled for its request is not doubled again, and a larger request has a
 * larger one. */
TEST(bfc, regions_double_up_to_a_bound) {
    static const struct {
        const char *options;
        uint64_t request[6], reserved[6]; /* in MiB */
    } cases[] = {{"", {2, 2, 8, 8, 40, 64}, {2, 6, 14, 30, 94, 158}},
                 {"max_region: 4MiB", {2, 2, 3, 3, 40, 3}, {2, 6, 10, 14, 54, 58}}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        strata_block_t blocks[6];
        RIG_BY(rig, bfc_open(&rig, cases[k].options, 0));
        for (int i = 0; i < 6; i++) {
            blocks[i] = rig_allocate(&rig, NULL, cases[k].request[i] * MIB);
            EXPECT_EQ(rig_figures(&rig).reserved_bytes, cases[k].reserved[i] * MIB);
        }
        bfc_free_all(&rig, blocks, 6);
    }
}

TEST(bfc, the_limit_is_the_least_of_three) {
    static const struct {
        const char *options;
        uint64_t share, limit; /* of the device, in parts of 4; else bytes */
    } cases[] = {{"memory_limit: 8TiB, memory_fraction: 0.5", 2, 0},
                 {"memory_limit: 100MiB", 0, 100 * MIB},
                 {"memory_fraction: 0.25, memory_limit: 1GiB", 1, 0},
                 {"", 4, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        RIG_BY(rig, bfc_open(&rig, cases[i].options, GIB));
        strata_mem_info_t info = {.struct_size = sizeof info};
        EXPECT_OK(strata_mem_info(rig.s, rig.gpu, &info));
        EXPECT_EQ(bfc_of(&rig)->limit, cases[i].limit ? cases[i].limit : info.total / 4 * cases[i].share);
    }
}

/* The last region is what the limit leaves. */
TEST(bfc, reserves_up_to_the_limit_and_no_byte_more) {
    strata_block_t blocks[10], none;
    RIG_BY(rig, bfc_open(&rig, "memory_limit: 10MiB", 0));
    for (int i = 0; i < 10; i++) blocks[i] = rig_allocate(&rig, NULL, MIB);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 10 * MIB);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 1, &none));
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), 3);
    bfc_free_all(&rig, blocks, 10);
}

TEST(bfc, trims_the_largest_regions_first) {
    strata_block_t blocks[3];
    RIG_BY(rig, bfc_open(&rig, "", 0));
    for (size_t i = 0; i < 3; i++) blocks[i] = rig_allocate(&rig, NULL, (2ull << i) * MIB);
    bfc_free_all(&rig, blocks, 3);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 14 * MIB);
    EXPECT_OK(strata_trim(rig.s, rig.gpu, 6 * MIB, NULL));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 6 * MIB);
    EXPECT_OK(strata_trim(rig.s, rig.gpu, 3 * MIB, NULL));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 2 * MIB);
}

TEST(bfc, other_places_are_served_too) {
    static const char *const places[] = {"managed", "pinned", "host"};
    const strata_place_t each[] = {strata_managed(0), strata_pinned(), strata_host()};
    for (size_t i = 0; i < 3; i++) {
        char text[256];
        snprintf(text, sizeof text, "version: 1\nstack: [system]\nplaces:\n  %s: [bfc, system]\n", places[i]);
        RIG(rig, text, 0);
        strata_block_t a, b;
        EXPECT_OK(strata_allocate(rig.s, each[i], NULL, 5000, &a));
        EXPECT_OK(strata_allocate(rig.s, each[i], NULL, 5000, &b));
        EXPECT_EQ((char *)b.ptr - (char *)a.ptr, 5120);
        RIG_FREE(&rig, a, b);
    }
}
