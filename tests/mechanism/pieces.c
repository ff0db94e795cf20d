#include "allocation/mechanism/block_list.h"

#include "platform/status.h"
#include "tests/mechanism/mechanism.h"

enum { CHUNK = 5, BASE = 1 << 20, SIZE = 64 * 512 };

/* What a cache does that has no index: the bits are as the states are. */
static void note_states(strata_slab_t *slab) {
    for (uint32_t slot = 1; slot < slab->used; slot++) {
        if (slab->records[slot].state == STRATA_RECORD_FREE) strata_slab_note_idle(slab, slot);
        else strata_slab_note_used(slab, slot);
    }
}

static strata_status_t validate(const strata_slab_t *slab, uint32_t first) {
    strata_block_list_tally_t tally = {0};
    return strata_block_list_validate("test", slab, first, CHUNK, BASE, SIZE, &tally);
}

TEST_SLAB(pieces, are_cut_and_joined_again, 1, 0, 10) {
    uint32_t first = strata_block_list_begin(slab, CHUNK, BASE, SIZE);
    uint32_t last = strata_block_list_split(slab, first, SIZE / 2), middle = strata_block_list_split(slab, first, SIZE / 4);
    slab->records[middle].state = STRATA_RECORD_LIVE;
    EXPECT_EQ(slab->records[first].next, middle);
    EXPECT_EQ(slab->records[middle].next, last);
    EXPECT_EQ(slab->records[last].prev, middle);
    EXPECT_EQ(slab->records[last].ptr, BASE + SIZE / 2);
    EXPECT_EQ(slab->records[middle].size, SIZE / 4);
    strata_block_list_tally_t tally = {0};
    note_states(slab);
    EXPECT_OK(strata_block_list_validate("test", slab, first, CHUNK, BASE, SIZE, &tally));
    EXPECT_EQ(tally.free_blocks, 2);
    EXPECT_EQ(tally.free_bytes, SIZE * 3 / 4);
    strata_block_list_absorb(slab, middle);
    strata_block_list_absorb(slab, first);
    EXPECT_EQ(slab->records[first].size, SIZE);
    EXPECT_EQ(slab->records[first].next, 0);
    EXPECT_EQ(slab->unused, 2);
    note_states(slab);
    EXPECT_OK(validate(slab, first));
}

TEST_SLAB(pieces, move_from_a_used_up_slot, 1, 0, 5) {
    uint32_t first = strata_block_list_begin(slab, CHUNK, BASE, SIZE);
    uint32_t last = strata_block_list_split(slab, first, SIZE / 2), middle = strata_block_list_split(slab, first, SIZE / 4);
    slab->records[middle].state = STRATA_RECORD_LIVE;
    slab->records[middle].generation = STRATA_GENERATION_LAST;
    uint32_t fresh = strata_block_list_move(slab, middle);
    EXPECT_TRUE(fresh != 0 && fresh != middle);
    EXPECT_EQ(slab->records[fresh].generation, 0);
    EXPECT_EQ(slab->records[first].next, fresh);
    EXPECT_EQ(slab->records[last].prev, fresh);
    EXPECT_EQ(slab->retired, 1);
    note_states(slab);
    EXPECT_OK(validate(slab, first));
    /* The slab is full: nothing is moved, cut or begun. */
    EXPECT_EQ(strata_block_list_move(slab, last), 0);
    EXPECT_EQ(strata_block_list_split(slab, last, 512), 0);
    EXPECT_EQ(strata_block_list_begin(slab, CHUNK, BASE, SIZE), 0);
    EXPECT_OK(validate(slab, first));
}

TEST_SLAB(pieces, validate_finds_planted_faults, 1, 0, 10) {
    uint32_t first = strata_block_list_begin(slab, CHUNK, BASE, SIZE);
    uint32_t last = strata_block_list_split(slab, first, SIZE / 2), middle = strata_block_list_split(slab, first, SIZE / 4);
    strata_record_t *block = &slab->records[middle];
    block->state = STRATA_RECORD_LIVE;
    note_states(slab);
    EXPECT_CAUGHT(validate(slab, first), block->ptr, BASE);
    EXPECT_CAUGHT(validate(slab, first), block->size, 0);
    EXPECT_CAUGHT(validate(slab, first), block->size, SIZE);
    EXPECT_CAUGHT(validate(slab, first), block->prev, last);
    EXPECT_CAUGHT(validate(slab, first), block->next, 9);
    EXPECT_CAUGHT(validate(slab, first), block->chunk, CHUNK + 1);
    EXPECT_CAUGHT(validate(slab, first), block->state, STRATA_RECORD_FREE);
    EXPECT_CAUGHT(validate(slab, first), block->state, STRATA_RECORD_UNUSED);
    EXPECT_CAUGHT(validate(slab, first), slab->records[last].size, 512);
    EXPECT_CAUGHT(validate(slab, first), slab->idle[0], slab->idle[0] | 1ull << middle);
    EXPECT_CAUGHT(validate(slab, first), slab->idle[0], slab->idle[0] & ~(1ull << last));
}
