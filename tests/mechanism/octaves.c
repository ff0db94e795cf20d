#include "allocation/mechanism/octaves.h"

#include "platform/status.h"
#include "tests/mechanism/mechanism.h"

enum { BLOCKS = 300 };

TEST(octaves, bins_are_powers_of_two_of_256_bytes) {
    static const struct {
        uint64_t size;
        uint32_t bin;
    } cases[] = {{1, 0}, {255, 0}, {256, 0}, {511, 0}, {512, 1}, {1023, 1}, {1024, 2}, {256ull << 19, 19},
                 {(256ull << 20) - 1, 19},
                 {256ull << 20, 20}, {256ull << 21, 20}, {UINT64_MAX, 20}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) EXPECT_EQ(strata_octaves_bin(cases[i].size), cases[i].bin);
}

/* The first behind (size, ptr) in order, of all that are in. */
static uint32_t plain_after(const strata_slab_t *slab, const uint32_t *slots, uint32_t count, uint64_t size, uint64_t ptr) {
    uint32_t best = 0;
    for (uint32_t i = 0; i < count; i++) {
        const strata_record_t *it = &slab->records[slots[i]], *top = &slab->records[best];
        if (it->size < size || (it->size == size && it->ptr <= ptr)) continue;
        if (best == 0 || it->size < top->size || (it->size == top->size && it->ptr < top->ptr)) best = slots[i];
    }
    return best;
}

TEST(octaves, find_what_a_plain_search_finds) {
    strata_slab_t slab;
    strata_octaves_t octaves = {.filled = 0};
    uint32_t slots[BLOCKS], count = 0;
    uint64_t random = 5, address = 4096;
    ASSERT_OK(strata_slab_init(&slab, 1, 0, BLOCKS + 10));
    for (int step = 0; step < 20000 && !strata_test_has_failed(); step++) {
        uint64_t size = 256 * (1 + random_below(&random, 1ull << random_below(&random, 23)));
        if (count < BLOCKS && random_below(&random, 2)) {
            slots[count] = make_free(&slab, address += size, size);
            strata_octaves_insert(&octaves, &slab, slots[count++]);
        } else if (count > 0) {
            uint32_t at = (uint32_t)random_below(&random, count);
            strata_octaves_remove(&octaves, &slab, slots[at]);
            strata_slab_give(&slab, slots[at]);
            slots[at] = slots[--count];
        }
        uint64_t ptr = random_below(&random, address);
        EXPECT_EQ(strata_octaves_find(&octaves, &slab, size), plain_after(&slab, slots, count, size - 1, UINT64_MAX));
        EXPECT_EQ(strata_octaves_after(&octaves, &slab, size, ptr), plain_after(&slab, slots, count, size, ptr));
        if (step % 500 == 0) EXPECT_OK(strata_octaves_validate(&octaves, &slab));
    }
    uint64_t largest = 0;
    for (uint32_t i = 0; i < count; i++)
        largest = slab.records[slots[i]].size > largest ? slab.records[slots[i]].size : largest;
    EXPECT_EQ(strata_octaves_largest(&octaves, &slab), largest);
    while (count > 0) strata_octaves_remove(&octaves, &slab, slots[--count]);
    EXPECT_EQ(octaves.filled, 0);
    EXPECT_EQ(strata_octaves_largest(&octaves, &slab), 0);
    strata_slab_destroy(&slab);
}

TEST(octaves, validate_finds_planted_faults) {
    strata_slab_t slab;
    strata_octaves_t octaves = {.filled = 0};
    ASSERT_OK(strata_slab_init(&slab, 1, 0, 20));
    uint32_t small = make_free(&slab, 4096, 256), large = make_free(&slab, 8192, 768);
    strata_octaves_insert(&octaves, &slab, small);
    strata_octaves_insert(&octaves, &slab, large);
    EXPECT_CAUGHT(strata_octaves_validate(&octaves, &slab), octaves.filled, 1u);
    EXPECT_CAUGHT(strata_octaves_validate(&octaves, &slab), octaves.filled, 1u << 25 | 3u);
    EXPECT_CAUGHT(strata_octaves_validate(&octaves, &slab), octaves.filled, 7u);
    EXPECT_CAUGHT(strata_octaves_validate(&octaves, &slab), octaves.bins[1].count, 2u);
    EXPECT_CAUGHT(strata_octaves_validate(&octaves, &slab), octaves.bins[0].root, large);
    strata_tree_t kept = octaves.bins[1];
    octaves.bins[1] = octaves.bins[0];
    EXPECT_STATUS(STRATA_E_CORRUPT, strata_octaves_validate(&octaves, &slab));
    octaves.bins[1] = kept;
    EXPECT_OK(strata_octaves_validate(&octaves, &slab));
    strata_slab_destroy(&slab);
}
