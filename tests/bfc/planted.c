/* More of what validate finds of bfc: lists of regions and of their chunks that lead nowhere. */
#include "tests/bfc/bfc.h"

#define EXPECT_FOUND(word, value, what)                                                                                            \
    do {                                                                                                                           \
        __typeof__(word) was_ = (word);                                                                                            \
        (word) = (__typeof__(word))(value);                                                                                        \
        EXPECT_STATUS(STRATA_E_CORRUPT, strata_validate(rig.s));                                                                   \
        EXPECT_CONTAINS(strata_last_error()->text, what);                                                                          \
        (word) = was_;                                                                                                             \
        EXPECT_OK(strata_validate(rig.s));                                                                                         \
    } while (0)

TEST(bfc_structure, planted_faults_of_lists_are_found) {
    rig_t rig;
    bfc_open(&rig, "allow_growth: true", 0);
    strata_block_t blocks[3];
    for (int i = 0; i < 3; i++) blocks[i] = rig_allocate(&rig, NULL, 2 * MIB << 2 * i);
    bfc_t *self = bfc_of(&rig);
    bfc_region_t *first = bfc_region_at(self, self->first_region), *second = bfc_region_at(self, first->next);
    ASSERT_TRUE(first->next != 0);
    EXPECT_FOUND(first->parts, self->parts.used, "the list of a region's chunks is broken");
    EXPECT_FOUND(first->part_count, 0, "the list of a region's chunks is broken");
    EXPECT_FOUND(second->prev, 0, "the regions are out of order");
    EXPECT_FOUND(first->size, first->size + (1ull << 40), "the regions are out of order");
    EXPECT_FOUND(self->region_count, 1, "the list of regions is broken");
    EXPECT_FOUND(self->first_region, self->regions.used, "the list of regions is broken");
    bfc_free_all(&rig, blocks, 3);
    rig_close(&rig);
}
