/* More of what validate finds of bfc: lists of regions that lead nowhere, chunks of one region that do not follow one another. */
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
    strata_chunk_t *first = strata_chunk_at(&self->chunks, self->chunks.first),
                   *second = strata_chunk_at(&self->chunks, first->next);
    ASSERT_NE(first->next, 0);
    EXPECT_FOUND(second->prev, 0, "the list of chunks is broken");
    EXPECT_FOUND(self->chunks.count, 1, "the list of chunks is broken");
    EXPECT_FOUND(self->chunks.first, self->chunks.nodes.used, "the list of chunks is broken");
    EXPECT_FOUND(self->chunks.by_address.count, 2, "the sum of chunks is wrong");
    bfc_free_all(&rig, blocks, 3);
    rig_close(&rig);
}

TEST(bfc_structure, planted_faults_of_a_region_of_several_chunks_are_found) {
    rig_t rig;
    bfc_open_adjacent(&rig, "coalesce_regions: true");
    strata_block_t blocks[3];
    for (int i = 0; i < 3; i++) blocks[i] = rig_allocate(&rig, NULL, 2 * MIB << 2 * i);
    bfc_t *self = bfc_of(&rig);
    strata_chunk_t *region = strata_chunk_at(&self->chunks, self->chunks.first),
                   *part = strata_chunk_at(&self->chunks, region->part);
    EXPECT_EQ(self->chunks.count, 1);
    ASSERT_NE(region->part, 0);
    EXPECT_FOUND(region->part, self->chunks.nodes.used, "the parts of a chunk are broken");
    EXPECT_FOUND(region->part, 0, "a chunk is not as large as its parts");
    EXPECT_FOUND(part->part, region->part, "");
    EXPECT_FOUND(region->last_part, region->part, "the parts of a chunk are broken");
    EXPECT_FOUND(part->below, region->below, "a part of a chunk does not begin where the one before it ends");
    EXPECT_FOUND(region->last, region->first, "a chunk's last block is another");
    EXPECT_FOUND(region->last, 0, "a chunk's last block is another");
    bfc_free_all(&rig, blocks, 3);
    rig_close(&rig);
}
