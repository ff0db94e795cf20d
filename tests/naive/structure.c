/* What validate finds of naive_best_fit besides what it finds of every cache (tests/chunked), and a full table of streams. */
#include "tests/harness/planted.h"
#include "tests/naive/naive.h"

typedef struct planted {
    rig_t rig;
    naive_t *self;
    strata_block_t kept[4];
    strata_record_t *block, *idle, *huge;
} planted_t;

static strata_record_t *record_of(planted_t *p, strata_ref_t ref) { return naive_block(p->self, strata_ref_slot(ref)); }

static void begin(planted_t *p) {
    naive_open(&p->rig, "naive_best_fit", "streams: ignored, initial: 8MiB, reallocate: 4MiB", 0);
    strata_stream_t one = rig_stream(&p->rig), two = rig_stream(&p->rig);
    p->self = naive_of(&p->rig, one);
    p->kept[0] = rig_allocate(&p->rig, one, MIB);
    strata_block_t gone = rig_allocate(&p->rig, one, MIB);
    p->kept[1] = rig_allocate(&p->rig, two, MIB);
    p->kept[2] = rig_allocate(&p->rig, two, 6 * MIB);
    p->kept[3] = rig_allocate(&p->rig, two, 9 * MIB);
    p->idle = record_of(p, gone.ref);
    p->block = record_of(p, p->kept[1].ref);
    p->huge = record_of(p, p->kept[3].ref);
    EXPECT_OK(strata_free(p->rig.s, gone.ref));
    EXPECT_OK(strata_validate(p->rig.s));
}

static void end(planted_t *p) {
    EXPECT_OK(strata_validate(p->rig.s));
    for (int i = 0; i < 4; i++) EXPECT_OK(strata_free(p->rig.s, p->kept[i].ref));
    rig_close(&p->rig);
}

#define PLANT(place, value, what) EXPECT_PLANTED(strata_validate(p.rig.s), place, value, what)

TEST(naive_structure, planted_faults_of_marks_and_huge_blocks_are_found) {
    OPENED(planted_t, p, end, begin(&p));
    naive_t *self = p.self;
    PLANT(p.idle->borrows, 100, "an unknown mark");
    PLANT(p.block->pool, STRATA_NAIVE_HUGE, "a huge chunk is not one block in use");
    PLANT(p.huge->state, STRATA_RECORD_FREE, "a block's bit and its state differ");
    PLANT(self->huge_bytes, self->huge_bytes + MIB, "the sum of huge blocks is wrong");
    PLANT(self->max_block, 64 * MIB, "a huge block is small enough for the pool");
    PLANT(self->buddy.idle.count, self->buddy.idle.count + 1, "the index does not match the free blocks");
    PLANT(self->last.first_destroyed, p.block->user, "no mark names it");
    PLANT(self->last.first_destroyed, self->last.users.nodes.used, "the list of streams that marks may name is broken");
    PLANT(self->last.last_destroyed, p.block->user, "the end of the list of streams that marks may name");
}

TEST(naive_structure, a_full_table_of_streams_is_told) {
    strata_block_t b = {.ref = 3};
    RIG_BY(rig, naive_open(&rig, "naive_best_fit", "streams: ignored, initial: 8MiB", 0));
    strata_block_t kept = rig_allocate(&rig, NULL, MIB);
    strata_nodes_t *users = &naive_of(&rig, NULL)->last.users.nodes;
    uint32_t capacity = users->capacity;
    users->capacity = users->used;
    strata_stream_t other = rig_stream(&rig);
    EXPECT_STATUS(STRATA_E_LIMIT, strata_allocate(rig.s, rig.gpu, other, MIB, &b));
    EXPECT_EQ(b.ref, 3);
    users->capacity = capacity;
    b = rig_allocate(&rig, other, MIB);
    RIG_FREE(&rig, kept, b);
}
