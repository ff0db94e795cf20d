/* What validate finds of bfc besides what it finds of every cache (tests/chunked). */
#include "tests/bfc/bfc.h"
#include "tests/harness/planted.h"

typedef struct planted {
    rig_t rig;
    bfc_t *self;
    strata_block_t kept[2];
    strata_record_t *live, *idle, *late; /* in use, free for anybody, free with a count */
} planted_t;

/* One region: live, free with a count, live, free. */
static void begin(planted_t *p) {
    bfc_open(&p->rig, "timestamps: true", 0);
    p->self = bfc_of(&p->rig);
    p->kept[0] = rig_allocate(&p->rig, NULL, 256 * KIB);
    strata_block_t late = rig_allocate(&p->rig, NULL, 256 * KIB);
    p->kept[1] = rig_allocate(&p->rig, NULL, 256 * KIB);
    p->live = bfc_block(p->self, strata_ref_slot(p->kept[0].ref));
    p->late = bfc_block(p->self, strata_ref_slot(late.ref));
    p->idle = bfc_block(p->self, bfc_block(p->self, strata_ref_slot(p->kept[1].ref))->next);
    EXPECT_OK(strata_free(p->rig.s, late.ref));
    EXPECT_OK(strata_validate(p->rig.s));
}

static void end(planted_t *p) {
    EXPECT_OK(strata_validate(p->rig.s));
    bfc_free_all(&p->rig, p->kept, 2);
    rig_close(&p->rig);
}

#define PLANT(place, value, what) EXPECT_PLANTED(strata_validate(p.rig.s), place, value, what)

TEST(bfc_structure, planted_faults_of_regions_and_bins_are_found) {
    OPENED(planted_t, p, end, begin(&p));
    bfc_region_t *region = bfc_region_at(p.self, p.live->chunk);
    PLANT(p.idle->mark_low, 1u << 30, "a block's free number exceeds the count of frees");
    PLANT(p.self->used_bytes, p.self->used_bytes + 256, "the sum of free blocks is wrong");
    PLANT(region->live, region->live + 1, "a region's count of live blocks is wrong");
    PLANT(p.self->idle.filled, p.self->idle.filled | 1, "bit of word 0 is 1");
    PLANT(p.self->idle.roots[strata_tree_class(p.idle->size)], 0, "a free block is in no bin");
    PLANT(p.self->idle.count, p.self->idle.count + 1, "the bins do not match the free blocks");
}

TEST(bfc_structure, planted_faults_of_counts_are_found) {
    OPENED(planted_t, p, end, begin(&p));
    bfc_stamp_t *stamp = bfc_stamp_at(p.self, bfc_stamp_of(p.late));
    PLANT(p.late->route, 0, "the number of counts is wrong");
    PLANT(stamp->count, stamp->count + 1000, "an unknown count");
    PLANT(stamp->slot, strata_slab_slot(bfc_slab(p.self), p.live), "a count refers to a block that does not have it");
    PLANT(stamp->prev, 1, "a wrong link back");
    PLANT(p.self->last_stamp, 0, "the end of the queue of counts is wrong");
    PLANT(p.self->first_stamp, 0, "the number of counts is wrong");
}

TEST(bfc_structure, two_free_blocks_side_by_side_are_found) {
    planted_t p;
    begin(&p);
    /* A count that is lost without a merge. */
    strata_block_t extra = rig_allocate(&p.rig, NULL, 256 * KIB);
    EXPECT_OK(strata_free(p.rig.s, extra.ref));
    strata_record_t *block = bfc_block(p.self, strata_ref_slot(extra.ref));
    EXPECT_OK(strata_free(p.rig.s, p.kept[1].ref));
    strata_record_t *last = bfc_block(p.self, strata_ref_slot(p.kept[1].ref));
    EXPECT_OK(strata_validate(p.rig.s));
    EXPECT_TRUE(bfc_stamp_of(block) != 0 && bfc_stamp_of(last) != 0);
    strata_bfc_unstamp(p.self, last);
    EXPECT_SAYS(STRATA_E_CORRUPT, strata_validate(p.rig.s), "two free blocks were not merged");
    rig_close_by_force(&p.rig);
}

TEST(bfc_structure, planted_faults_of_a_region_of_several_chunks_are_found) {
    planted_t p;
    strata_block_t blocks[3];
    bfc_open_adjacent(&p.rig, "coalesce_regions: true");
    for (int i = 0; i < 3; i++) blocks[i] = rig_allocate(&p.rig, NULL, 2 * MIB << 2 * i);
    strata_chunks_t *chunks = &bfc_of(&p.rig)->chunks;
    strata_chunk_t *region = strata_chunk_at(chunks, chunks->first), *part = strata_chunk_at(chunks, region->part);
    EXPECT_EQ(chunks->count, 1);
    ASSERT_NE(region->part, 0);
    PLANT(region->part, chunks->nodes.used, "the list of a chunk's parts is broken");
    PLANT(region->part, 0, "a chunk's size is not the sum of its parts");
    PLANT(part->part, region->part, "");
    PLANT(region->last_part, region->part, "the list of a chunk's parts is broken");
    PLANT(part->below, region->below, "a part of a chunk does not begin where the one before it ends");
    PLANT(region->last, region->first, "a chunk's last block is wrong");
    PLANT(region->last, 0, "a chunk's last block is wrong");
    bfc_free_all(&p.rig, blocks, 3);
    rig_close(&p.rig);
}
