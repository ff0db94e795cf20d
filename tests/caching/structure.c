/* What validate finds of caching besides what it finds of every cache (tests/chunked), and what happens where its tables end. */
#include "tests/caching/caching.h"
#include "tests/harness/planted.h"

/* ---- planted faults ---- */

typedef struct planted {
    rig_t rig;
    caching_t *self;
    strata_stream_t one, two;
    strata_block_t kept[3];
    strata_record_t *block, *idle, *deferred; /* live, free, freed and borrowed */
} planted_t;

static strata_record_t *record_of(planted_t *p, strata_ref_t ref) { return caching_block(p->self, strata_ref_slot(ref)); }

static void begin(planted_t *p) {
    caching_open(&p->rig, "", 0);
    p->self = caching_of(&p->rig);
    p->one = rig_stream(&p->rig);
    p->two = rig_stream(&p->rig);
    for (int i = 0; i < 3; i++) p->kept[i] = rig_allocate(&p->rig, i < 2 ? p->one : p->two, (2 + (size_t)i) * MIB);
    strata_block_t borrowed = rig_allocate(&p->rig, p->one, 3 * MIB);
    p->block = record_of(p, p->kept[1].ref);
    p->deferred = record_of(p, borrowed.ref);
    p->idle = caching_block(p->self, p->deferred->next);
    rig_borrow(&p->rig, borrowed.ref, p->two, MILLISECOND);
    EXPECT_OK(strata_free(p->rig.s, borrowed.ref));
    EXPECT_OK(strata_validate(p->rig.s));
}

static void end(planted_t *p) {
    EXPECT_OK(strata_validate(p->rig.s));
    for (int i = 0; i < 3; i++) EXPECT_OK(strata_free(p->rig.s, p->kept[i].ref));
    rig_close(&p->rig);
}

static void expect_corrupt(planted_t *p, const char *text) { EXPECT_SAYS(STRATA_E_CORRUPT, strata_validate(p->rig.s), text); }

#define PLANT(place, value, what) EXPECT_PLANTED(strata_validate(p.rig.s), place, value, what)

TEST(caching_structure, planted_faults_of_blocks_are_found) {
    OPENED(planted_t, p, end, begin(&p));
    PLANT(p.deferred->state, STRATA_RECORD_FREE, "a block's bit and its state differ");
    PLANT(p.deferred->state, STRATA_RECORD_LIVE, "");
    strata_slab_note_idle(caching_slab(p.self), strata_slab_slot(caching_slab(p.self), p.deferred));
    p.deferred->state = STRATA_RECORD_FREE;
    expect_corrupt(&p, "two free blocks were not merged");
    p.deferred->state = STRATA_RECORD_DEFERRED;
    strata_slab_note_used(caching_slab(p.self), strata_slab_slot(caching_slab(p.self), p.deferred));
    PLANT(p.block->pool, p.block->pool ^ 1, "a block names the wrong bank");
    PLANT(p.idle->pool, 0, "a block names the wrong bank");
}

TEST(caching_structure, planted_faults_of_sums_and_banks_are_found) {
    OPENED(planted_t, p, end, begin(&p));
    caching_t *self = p.self;
    caching_segment_t *segment = caching_segment_at(self, p.block->chunk);
    caching_bank_t *bank = caching_bank_at(self, segment->bank), *other = caching_bank_at(self, 3 - segment->bank);
    PLANT(self->used_bytes, self->used_bytes + 512, "the sum of free blocks is wrong");
    PLANT(segment->bank, 3 - segment->bank, "a block names the wrong bank");
    PLANT(segment->bank, 0, "a segment belongs to no bank");
    PLANT(segment->kind, STRATA_CACHING_SMALL, "a block names the wrong bank");
    PLANT(bank->idle[STRATA_CACHING_LARGE].only, 0, "a free block is in no bank");
    PLANT(bank->segments, 2, "the banks do not match the segments");
    PLANT(bank->idle[STRATA_CACHING_LARGE].count, 2, "the tree counts 2 blocks");
    PLANT(other->stream, 999, "an unknown stream");
    PLANT(self->first_orphan, segment->bank, "banks of destroyed streams");
    PLANT(bank->orphaned, true, "destroyed flag does not match");
    PLANT(self->bank_order.count, 1, "the order has more nodes");
    PLANT(self->bank_order.first[0], 0, "");
    PLANT(other->link.key.second, 99, "position does not match its stream");
}

TEST(caching_structure, planted_faults_of_uses_are_found) {
    OPENED(planted_t, p, end, begin(&p));
    caching_t *self = p.self;
    uint32_t node = strata_users_find(&self->uses.users, p.two);
    strata_user_t *two = caching_stream_at(self, node);
    strata_use_t *use = strata_use_at(&self->uses, p.deferred->borrows);
    PLANT(use->counted, false, "a block waits without a use");
    PLANT(self->uses.pending_bytes, self->uses.pending_bytes + 1, "the sum of deferred bytes is wrong");
    PLANT(two->last, two->last + 1, "the end of a stream's uses is wrong");
    PLANT(two->first, 0, "");
    PLANT(use->unfinished, 2, "a block waits without a use");
    PLANT(self->uses.users.index.count, 99, "the index has");
    PLANT(self->uses.users.first_thread, node, "of threads");
    PLANT(self->uses.users.nodes.unused, self->uses.users.nodes.used, "the nodes count");
    PLANT(self->uses.nodes.unused, self->uses.nodes.used, "the nodes count");
}

/* ---- where tables end ---- */

/* Where streams are told apart each has its bank. */
TEST(caching_structure, a_full_table_of_banks_is_told_and_costs_nothing) {
    static const char *const streams[] = {"streams: own", "streams: ignored"};
    for (int i = 0; i < 2; i++) {
        RIG_BY(rig, caching_open(&rig, streams[i], 0));
        strata_block_t block;
        strata_nodes_t *banks = &caching_of(&rig)->banks;
        uint32_t capacity = banks->capacity;
        banks->capacity = banks->used;
        EXPECT_SAYS(STRATA_E_LIMIT, strata_allocate(rig.s, rig.gpu, NULL, 512, &block), "streams, the maximum");
        EXPECT_EQ(caching_reserved(&rig), 0);
        banks->capacity = capacity;
        EXPECT_OK(strata_validate(rig.s));
        block = rig_allocate(&rig, NULL, 512);
        EXPECT_OK(strata_free(rig.s, block.ref));
    }
}

/* A borrow that cannot be noted is refused, and those before it stay. */
TEST(caching_structure, a_full_table_of_borrows_is_told_and_costs_nothing) {
    RIG(rig, "pytorch", 0);
    strata_stream_t first = rig_stream(&rig), second = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, NULL, 5 * MIB);
    strata_nodes_t *uses = &caching_of(&rig)->uses.nodes;
    uint32_t capacity = uses->capacity;
    EXPECT_OK(strata_record_stream(rig.s, a.ref, first));
    uses->capacity = uses->used;
    EXPECT_SAYS(STRATA_E_LIMIT, strata_record_stream(rig.s, a.ref, second), "borrows in one stack, the maximum");
    uses->capacity = capacity;
    EXPECT_OK(strata_validate(rig.s));
    rig_work(&rig, first, MILLISECOND, a.ref);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_EQ(rig_figures(&rig).deferred_bytes, 5 * MIB);
    rig_advance(&rig, 2 * MILLISECOND);
}

/* A record has room for the first banks' numbers; what is of a later one is found by its segment. */
TEST(caching_structure, has_more_banks_than_a_record_can_name) {
    enum { STREAMS = STRATA_CACHING_CODED_BANKS + 20 };
    strata_stream_t streams[STREAMS];
    strata_block_t small[STREAMS], large[STREAMS];
    RIG_BY(rig, caching_open(&rig, "", 0));
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = rig_stream(&rig);
        small[i] = rig_allocate(&rig, streams[i], 512);
        large[i] = rig_allocate(&rig, streams[i], 2 * MIB);
    }
    EXPECT_NE(caching_block(caching_of(&rig), strata_ref_slot(small[0].ref))->pool, 0);
    EXPECT_EQ(caching_block(caching_of(&rig), strata_ref_slot(small[STREAMS - 1].ref))->pool, 0);
    EXPECT_OK(strata_validate(rig.s));
    for (int i = 0; i < STREAMS; i++) { RIG_FREE(&rig, small[i], large[i]); }
    EXPECT_OK(strata_validate(rig.s));
    for (int i = 0; i < STREAMS; i++) {
        strata_block_t again = rig_allocate(&rig, streams[i], 512), large_again = rig_allocate(&rig, streams[i], 2 * MIB);
        EXPECT_TRUE(again.ptr == small[i].ptr && large_again.ptr == large[i].ptr);
        RIG_FREE(&rig, again, large_again);
    }
}
