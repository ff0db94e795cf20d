/* Where a repeated step is served again at its places: a place that cannot be cut out is passed over. */
#include "tests/chunked/chunked.h"
#include "tests/harness/slots.h"

#define PIECE (256 * KIB)

static const cache_t repeating[] = {
    {"auto_growth", "chunk_size: 4MiB, stable_addresses: true", false},
    {"bfc", "initial_region: 4MiB, stable_addresses: true", false},
    {"caching", "stable_addresses: true", false},
    {"naive_best_fit", "streams: ignored, initial: 8MiB, stable_addresses: true", false},
};

/* Six pieces in a row. A step then takes the second anew and gives it back, and the first and the third go too: the place that the
 * next step is to have lies in the middle of what is free. The fifth stands free by itself. Answers the address of the place. */
static void *leave_a_place(rig_t *rig, strata_block_t blocks[6]) {
    for (int i = 0; i < 6; i++) blocks[i] = rig_allocate(rig, NULL, PIECE);
    EXPECT_OK(strata_free(rig->s, blocks[1].ref));
    EXPECT_OK(strata_step(rig->s));
    strata_block_t place = rig_allocate(rig, NULL, PIECE);
    EXPECT_EQ(place.ptr, blocks[1].ptr);
    RIG_FREE(rig, place, blocks[0], blocks[2], blocks[4]);
    EXPECT_OK(strata_step(rig->s));
    return place.ptr;
}

/* One slot for what is left in front of it, one for what is left behind it. */
TEST_EACH(chunked, a_place_without_slots_to_cut_it_out_is_passed_over, cache_t, repeating) {
    for (uint32_t room = 0; room < 3; room++) {
        strata_block_t blocks[6];
        RIG_BY(rig, cache_open(row, &rig));
        const void *place = leave_a_place(&rig, blocks);
        uint64_t growths = rig_figures(&rig).growths;
        slots_t slots = slots_limit(&cache_of(row, &rig)->base.stack->slab, room);
        strata_block_t block = rig_allocate(&rig, NULL, PIECE);
        slots_restore(&slots);
        EXPECT_EQ(block.ptr == place, room == 2);
        EXPECT_EQ(rig_figures(&rig).growths, growths);
        EXPECT_OK(strata_validate(rig.s));
        RIG_FREE(&rig, block, blocks[3], blocks[5]);
        EXPECT_OK(strata_validate(rig.s));
    }
}
