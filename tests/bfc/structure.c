/* What validate finds of bfc, and what happens where its tables end. */
#include "tests/bfc/bfc.h"

/* ---- planted faults ---- */

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

static void expect_corrupt(planted_t *p, const char *text) {
    EXPECT_STATUS(STRATA_E_CORRUPT, strata_validate(p->rig.s));
    EXPECT_CONTAINS(strata_last_error()->text, text);
}

/* Changes a word, expects the fault to be told, and puts the word back. */
#define PLANT(word, value, text)                                                                                                   \
    do {                                                                                                                           \
        __typeof__(word) was_ = (word);                                                                                            \
        (word) = (__typeof__(word))(value);                                                                                        \
        expect_corrupt(&p, text);                                                                                                  \
        (word) = was_;                                                                                                             \
        EXPECT_OK(strata_validate(p.rig.s));                                                                                       \
    } while (0)

TEST(bfc_structure, planted_faults_of_blocks_are_found) {
    planted_t p;
    begin(&p);
    PLANT(p.live->ptr, p.live->ptr + 256, "does not begin where the one before it ends");
    PLANT(p.live->size, p.live->size - 256, "does not begin where the one before it ends");
    PLANT(p.late->prev, 0, "link back is wrong");
    PLANT(p.late->chunk, p.late->chunk + 1, "names another chunk");
    PLANT(p.idle->state, STRATA_RECORD_LIVE, "is noted as idle");
    PLANT(p.idle->next, 1u << 23, "a link leads out of the slab");
    PLANT(p.idle->borrows, 1u << 30, "a block was freed after all frees");
    end(&p);
}

TEST(bfc_structure, planted_faults_of_regions_and_sums_are_found) {
    planted_t p;
    begin(&p);
    bfc_region_t *region = bfc_region_at(p.self, p.live->chunk);
    PLANT(p.self->used_bytes, p.self->used_bytes + 256, "the sum of free blocks is wrong");
    PLANT(p.self->chunks.count, 2, "the sum of chunks is wrong");
    PLANT(p.self->chunks.first, 0, "the list of chunks ends elsewhere");
    PLANT(p.self->chunks.held, p.self->chunks.bytes - 1, "the sum of chunks is wrong");
    PLANT(region->live, region->live + 1, "a region counts its live blocks wrongly");
    PLANT(region->chunk.part, 1u << 20, "the parts of a chunk are broken");
    PLANT(region->chunk.size, region->chunk.size + 256, "a chunk is not as large as its parts");
    PLANT(region->chunk.base, region->chunk.base - 256, "a chunk does not stand at its address");
    PLANT(p.self->idle.filled, p.self->idle.filled | 1, "bit of word 0 is 1");
    PLANT(p.self->idle.roots[strata_tree_class(p.idle->size)], 0, "a free block is in no bin");
    PLANT(p.self->idle.count, p.self->idle.count + 1, "the bins do not have the free blocks");
    PLANT(bfc_slab(p.self)->idle[0], 0, "a block's bit and its state differ");
    end(&p);
}

TEST(bfc_structure, planted_faults_of_counts_are_found) {
    planted_t p;
    begin(&p);
    bfc_stamp_t *stamp = bfc_stamp_at(p.self, bfc_stamp_of(p.late));
    PLANT(p.late->route, 0, "the number of counts is wrong");
    PLANT(stamp->count, stamp->count + 1000, "a count that never was");
    PLANT(stamp->slot, strata_slab_slot(bfc_slab(p.self), p.live), "a count is of a block that does not have it");
    PLANT(stamp->prev, 1, "a wrong link back");
    PLANT(p.self->last_stamp, 0, "the end of the queue of counts is wrong");
    PLANT(p.self->first_stamp, 0, "the number of counts is wrong");
    end(&p);
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
    expect_corrupt(&p, "two free blocks were not merged");
    rig_close_by_force(&p.rig);
}

/* ---- where tables end ---- */

TEST(bfc_structure, a_full_slab_is_told_and_costs_nothing) {
    rig_t rig;
    bfc_open(&rig, "", 0);
    strata_block_t a = rig_allocate(&rig, NULL, 256), b;
    strata_slab_t *slab = bfc_slab(bfc_of(&rig));
    uint32_t capacity = slab->capacity;
    for (uint32_t room = 0; room < 4; room++) {
        slab->capacity = slab->used + room;
        EXPECT_STATUS(STRATA_E_LIMIT, strata_allocate(rig.s, rig.gpu, NULL, (room ? 3 : 0) * MIB + 512, &b));
        EXPECT_CONTAINS(strata_last_error()->text, "its most");
        EXPECT_OK(strata_validate(rig.s));
        if (room == 1) break;
    }
    slab->capacity = capacity;
    b = rig_allocate(&rig, NULL, 512);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_OK(strata_free(rig.s, b.ref));
    rig_close(&rig);
}

TEST(bfc_structure, a_block_leaves_a_slot_that_is_used_up) {
    for (int full = 0; full < 2; full++) {
        rig_t rig;
        bfc_open(&rig, "", 0);
        strata_block_t first = rig_allocate(&rig, NULL, 256), guard = rig_allocate(&rig, NULL, 256);
        strata_slab_t *slab = bfc_slab(bfc_of(&rig));
        EXPECT_OK(strata_free(rig.s, first.ref));
        strata_slab_record(slab, strata_ref_slot(first.ref))->generation = STRATA_GENERATION_LAST - 1;
        strata_block_t last = rig_allocate(&rig, NULL, 256);
        EXPECT_EQ(last.ptr, first.ptr);
        uint32_t capacity = slab->capacity;
        if (full) slab->capacity = slab->used;
        EXPECT_OK(strata_free(rig.s, last.ref));
        slab->capacity = capacity;
        EXPECT_OK(strata_validate(rig.s));
        EXPECT_EQ(slab->retired, full ? 0 : 1);
        strata_block_t again = rig_allocate(&rig, NULL, 256);
        EXPECT_EQ(again.ptr == first.ptr, !full);
        EXPECT_OK(strata_free(rig.s, again.ref));
        EXPECT_OK(strata_free(rig.s, guard.ref));
        EXPECT_OK(strata_validate(rig.s));
        rig_close_by_force(&rig);
    }
}
