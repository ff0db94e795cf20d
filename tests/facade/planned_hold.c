/* A room that is held for the plan that is followed (allocation/layer/planned_hold.c): when it is, who ends that, and that nobody sees a
 * difference. */
#include "allocation/layer/planned_state.h"
#include "allocation/stack/direct.h"
#include "tests/facade/planned_live.h"

enum { FEW = 12, LEARNT = 3 };

static planned_t *planned_of(rig_t *rig) { return (planned_t *)rig_stack(rig, NULL)->cache; }

static bool holds(rig_t *rig) { return planned_of(rig)->holds; }

static size_t size_of(uint32_t i) { return (i % 5 + 1) * MIB; }

/* Two thirds live for three requests, the others until the step ends. */
static void take_some(live_t *live, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++) {
        take(live, i, size_of(i));
        if (i >= 3 && i % 3) drop(live, i - 3);
    }
}

static void end_step(live_t *live) {
    drop_all(live);
    EXPECT_OK(strata_step(live->rig->s));
}

static void do_step(live_t *live) {
    take_some(live, 0, FEW);
    end_step(live);
}

static void learn(live_t *live) {
    for (int i = 0; i < LEARNT; i++) do_step(live);
    EXPECT_TRUE(holds(live->rig));
}

static bool follows(rig_t *rig) {
    const planned_t *planned = planned_of(rig);
    return planned->now && planned->at > 0;
}

TEST_RIG(facade_planned_hold, a_step_that_is_followed_holds_its_room, 0, "planned",
         "strategy: a\nstack: [planned, auto_growth: {chunk_size: 2MiB}, system]\n",
         "strategy: a\nstack: [retry, stream_safe, planned, auto_growth_vmm, vmm]\n") {
    live_t live = {.rig = rig};
    learn(&live);
    for (int i = 0; i < 5; i++) {
        take_some(&live, 0, FEW);
        EXPECT_TRUE(holds(rig));
        EXPECT_EQ(planned_of(rig)->live, FEW - 6);
        end_step(&live);
    }
    EXPECT_EQ(planned_of(rig)->beside, 0);
    EXPECT_OK(strata_validate(rig->s));
}

/* ---- who ends it ---- */

static void ask_cached(live_t *live) { (void)rig_cached(live->rig); }
static void ask_for_release(live_t *live) { (void)rig_release(live->rig); }
static void ask_for_trim(live_t *live) { (void)rig_trim(live->rig, MIB); }
static void validate(live_t *live) { EXPECT_OK(strata_validate(live->rig->s)); }
static void count_block(const strata_record_t *block, void *context) {
    uint64_t *live = context;
    if (block->state == STRATA_RECORD_LIVE) *live += block->size;
}
static void look_at_all(live_t *live) {
    strata_stack_t *stack = rig_stack(live->rig, NULL);
    const strata_layer_t *planned = stack->cache;
    uint64_t found = 0, known = 0;
    strata_stack_take(stack);
    planned->below[0]->type->walk(planned->below[0], count_block, &found);
    strata_unlock(&stack->lock);
    for (uint32_t i = 0; i < BLOCKS; i++) known += live->held[i] ? live->blocks[i].size : 0;
    EXPECT_EQ(found, known);
}
static void look_for_each(live_t *live) {
    strata_stack_t *stack = rig_stack(live->rig, NULL);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        if (!live->held[i]) continue;
        strata_stack_take(stack);
        const strata_record_t *found = stack->cache->type->find(stack->cache, (uint64_t)(uintptr_t)live->blocks[i].ptr + 77);
        EXPECT_TRUE(found != NULL && strata_ref_of(found) == live->blocks[i].ref);
        strata_unlock(&stack->lock);
    }
}
/* No other memory is free, so the request is served between the blocks of the plan. */
static void ask_for_more(live_t *live) {
    uint64_t reserved = rig_figures(live->rig).reserved_bytes;
    for (uint32_t i = 40; i < 44; i++) take(live, i, MIB + 4096);
    EXPECT_EQ(rig_figures(live->rig).reserved_bytes, reserved);
}
static void end_too_early(live_t *live) { EXPECT_OK(strata_step(live->rig->s)); }

/* What was freed is live again, at its address: as the core does where a captured graph uses it. */
static void make_live_again(live_t *live) {
    strata_stack_t *stack = rig_stack(live->rig, NULL);
    drop(live, 6);
    strata_stack_take(stack);
    strata_record_t *record = stack->cache->type->take_at(stack->cache, &live->blocks[6], live->blocks[6].size, stack);
    EXPECT_TRUE(record != NULL);
    if (record) strata_direct_serve(stack, stack, record);
    strata_unlock(&stack->lock);
    if (record) live->blocks[6].ref = strata_ref_of(record);
    live->held[6] = record != NULL;
}

static uint32_t lowest(const live_t *live) {
    uint32_t found = BLOCKS;
    for (uint32_t i = 0; i < BLOCKS; i++)
        if (live->held[i] && (found == BLOCKS || live->blocks[i].ptr < live->blocks[found].ptr)) found = i;
    return found;
}

/* A slot that the cache remembers, for a walk from the nearest block that it knows, is by now that of the first block it is to find. */
static void remember_a_held_slot(live_t *live) {
    strata_chunks_t *chunks = (strata_chunks_t *)planned_of(live->rig)->base.below[0];
    drop(live, lowest(live));
    chunks->known = strata_ref_slot(live->blocks[lowest(live)].ref);
    validate(live);
}

static void (*const askers[])(live_t *) = {ask_cached,    ask_for_release, ask_for_trim,  validate,        look_at_all,
                                           look_for_each, ask_for_more,    end_too_early, make_live_again, remember_a_held_slot};

/* What lives keeps its address and its ref; the rest of the step is served at its places, and the next one holds the room again. */
TEST_RIG(facade_planned_hold, whoever_asks_what_is_free_ends_it, 0, "planned",
         "strategy: a\nstack: [planned, auto_growth: {chunk_size: 2MiB}, system]\n") {
    live_t live = {.rig = rig};
    for (size_t k = 0; k < COUNT(askers); k++) {
        learn(&live);
        take_some(&live, 0, 7);
        EXPECT_TRUE(holds(rig) && follows(rig));
        askers[k](&live);
        EXPECT_FALSE(holds(rig));
        take_some(&live, 7, FEW);
        EXPECT_OK(strata_validate(rig->s));
        end_step(&live);
        for (int i = 0; i < 40 && !holds(rig); i++) do_step(&live);
        EXPECT_TRUE(holds(rig));
    }
    EXPECT_OK(strata_validate(rig->s));
}

/* The check of the hold itself comes before the one that ends it. */
TEST_RIG(facade_planned_hold, its_check_finds_what_is_wrong, 0, "planned") {
    live_t live = {.rig = rig};
    learn(&live);
    take_some(&live, 0, 7);
    planned_t *planned = planned_of(rig);
    planned->live++;
    EXPECT_EQ(strata_validate(rig->s), STRATA_E_CORRUPT);
    planned->live--;
    end_step(&live);
    learn(&live);
    take_some(&live, 0, 7);
    strata_record_t *block = strata_record_at(&planned->base, strata_ref_slot(live.blocks[6].ref));
    block->ptr += 256;
    EXPECT_EQ(strata_validate(rig->s), STRATA_E_CORRUPT);
    block->ptr -= 256;
    drop_all(&live);
}

/* ---- what it cannot go on with ---- */

/* The block outlives its step, and is still there when its place is asked for: that request is served beside it. */
TEST_RIG(facade_planned_hold, a_place_that_is_not_free_ends_it, 0, "planned") {
    live_t live = {.rig = rig};
    learn(&live);
    take(&live, 50, size_of(0));
    take_some(&live, 1, FEW);
    EXPECT_TRUE(holds(rig));
    for (uint32_t k = 0; k < FEW; k++) drop(&live, k);
    EXPECT_OK(strata_step(rig->s));
    EXPECT_EQ(holds(rig), planned_of(rig)->plans[0]->places[0].last);
    take(&live, 0, size_of(0));
    EXPECT_FALSE(holds(rig));
    take_some(&live, 1, FEW);
    EXPECT_GE(planned_of(rig)->beside, 1);
    EXPECT_OK(strata_validate(rig->s));
    end_step(&live);
    do_step(&live);
    EXPECT_TRUE(holds(rig));
}

TEST_RIG(facade_planned_hold, another_step_ends_it, 0, "planned") {
    live_t live = {.rig = rig};
    learn(&live);
    take_some(&live, 0, 5);
    take(&live, 30, 9 * MIB);
    EXPECT_FALSE(holds(rig));
    take_some(&live, 5, FEW);
    end_step(&live);
    EXPECT_OK(strata_validate(rig->s));
    do_step(&live);
    do_step(&live);
    EXPECT_TRUE(holds(rig));
}

/* A small block that nobody has planned lies in the room, and stays: the room is made anew without it, where that costs little. */
TEST_RIG(facade_planned_hold, a_stranger_in_the_room_keeps_it_from_being_held, 0, "planned",
         "strategy: a\nstack: [planned, auto_growth: {chunk_size: 2MiB}, system]\n") {
    live_t live = {.rig = rig};
    bool moves = planned_of(rig)->base.below[0]->type->needs & STRATA_TRAIT_HANDLE_SOURCE;
    learn(&live);
    (void)rig_cached(rig);
    take(&live, 50, 2 * MIB + 512);
    EXPECT_OK(strata_step(rig->s));
    EXPECT_FALSE(holds(rig));
    for (int i = 0; i < 6; i++) {
        take_some(&live, 0, FEW);
        for (uint32_t k = 0; k < FEW; k++) drop(&live, k);
        planned_of(rig)->beside_bytes = 0; /* as if there were much more than its place */
        EXPECT_OK(strata_step(rig->s));
    }
    EXPECT_EQ(holds(rig), moves);
    EXPECT_EQ(planned_of(rig)->estranged, moves);
    EXPECT_OK(strata_validate(rig->s));
    drop(&live, 50);
    do_step(&live);
    do_step(&live);
    EXPECT_TRUE(holds(rig));
}

/* What another stream still uses goes by itself: no room is made anew for that. */
TEST_RIG(facade_planned_hold, what_others_still_use_is_no_stranger, 0,
         "strategy: a\nstack: [stream_safe, planned, auto_growth_vmm, vmm]\n") {
    strata_stream_t other = rig_stream(rig);
    live_t live = {.rig = rig};
    learn(&live);
    take(&live, 63, 400 * MIB);
    drop(&live, 63);
    uint64_t rooms = planned_of(rig)->rooms;
    for (int i = 0; i < 20; i++) {
        take_some(&live, 0, FEW);
        rig_borrow(rig, live.blocks[3].ref, other, 100000000);
        for (uint32_t k = 0; k < FEW; k++) drop(&live, k);
        planned_of(rig)->beside_bytes = 0;
        EXPECT_OK(strata_step(rig->s));
    }
    EXPECT_EQ(planned_of(rig)->unheld, 0);
    EXPECT_EQ(planned_of(rig)->rooms, rooms);
    rig_pass(rig, 4000000000);
    for (int i = 0; i < 3; i++) do_step(&live);
    EXPECT_TRUE(holds(rig));
    EXPECT_OK(strata_validate(rig->s));
}

/* However often strangers come, room is made anew seldom. They do not crowd it, and each is larger than what an older one left. */
TEST_RIG(facade_planned_hold, strangers_that_come_all_the_time_are_let_be, 0, "planned") {
    live_t live = {.rig = rig};
    learn(&live);
    uint64_t rooms = planned_of(rig)->rooms;
    take(&live, 63, 400 * MIB); /* beside which all of them are little */
    drop(&live, 63);
    for (uint32_t i = 0; i < 400; i++) {
        drop(&live, 50 + i % 3);
        take_some(&live, 0, FEW);
        (void)rig_cached(rig);
        take(&live, 50 + i % 3, 2 * MIB + 512 * (i + 1));
        for (uint32_t k = 0; k < FEW; k++) drop(&live, k);
        planned_of(rig)->beside_bytes = 0;
        EXPECT_OK(strata_step(rig->s));
    }
    EXPECT_GE(planned_of(rig)->rooms, rooms + 4);
    EXPECT_LE(planned_of(rig)->rooms, rooms + 9);
    EXPECT_OK(strata_validate(rig->s));
    drop_all(&live);
}

/* ---- what it goes on with ---- */

/* Each step leaves a block to the next one. */
TEST_RIG(facade_planned_hold, blocks_that_outlive_their_step_stay_where_they_are, 0, "planned",
         "strategy: a\nstack: [planned, auto_growth: {chunk_size: 2MiB}, system]\n") {
    live_t live = {.rig = rig};
    for (uint32_t step = 0; step < 20; step++) {
        take_some(&live, 0, FEW);
        drop(&live, 30 + (step + 1) % 2);
        take(&live, 30 + step % 2, MIB);
        for (uint32_t k = 0; k < FEW; k++) drop(&live, k);
        EXPECT_OK(strata_step(rig->s));
        if (step == 12) EXPECT_OK(strata_validate(rig->s));
        if (step > 5 && step != 12) EXPECT_TRUE(holds(rig));
    }
    EXPECT_EQ(planned_of(rig)->live, 1);
    EXPECT_OK(strata_validate(rig->s));
    drop_all(&live);
}

/* What lives longer than a step has no place in the plan. It is served beside the room while there is memory, and in a gap of the room where
 * no more may be had. */
TEST_RIG(facade_planned_hold, what_has_no_place_is_served_beside_it, 0, "planned",
         "strategy: a\nstack: [planned, auto_growth: {chunk_size: 2MiB}, system]\n") {
    live_t live = {.rig = rig};
    strata_allocate_options_t last = {.struct_size = sizeof last, .size = 4 * MIB + 512, .flags = STRATA_NO_GROW};
    take(&live, 60, 4 * MIB + 512);
    for (uint32_t step = 0; step < 12; step++) {
        uint32_t mine = 40 + step % 3;
        bool held = holds(rig), free_beside = step == 6;
        take_some(&live, 0, FEW - 4);
        if (step < 10) drop(&live, mine);
        else mine = 40 + step; /* the first of these two has what is left beside the room */
        if (free_beside) drop(&live, 60);
        if (step == 11) EXPECT_TRUE(holds(rig));
        if (step == 11) live.blocks[mine] = rig_allocate_with(rig, NULL, &last);
        else EXPECT_OK(strata_allocate(rig->s, rig->gpu, NULL, 4 * MIB + 512, &live.blocks[mine]));
        live.held[mine] = true;
        expect_apart(&live, mine);
        if (free_beside && held) EXPECT_TRUE(holds(rig));
        take_some(&live, FEW - 4, FEW);
        for (uint32_t k = 0; k < FEW; k++) drop(&live, k);
        planned_of(rig)->unheld = step == 10 ? 1000 : 0;
        EXPECT_OK(strata_step(rig->s));
    }
    EXPECT_OK(strata_validate(rig->s));
    drop_all(&live);
}

/* Its record stays held until the borrower is done, in whichever order that and the end of the hold come. */
TEST_RIG(facade_planned_hold, what_was_borrowed_goes_back_at_any_time, 0,
         "strategy: a\nstack: [stream_safe, planned, auto_growth: {chunk_size: 2MiB}, system]\n") {
    strata_stream_t other = rig_stream(rig);
    live_t live = {.rig = rig};
    for (int round = 0; round < 4; round++) {
        learn(&live);
        take_some(&live, 0, 7);
        rig_borrow(rig, live.blocks[6].ref, other, 1000000);
        drop(&live, 6);
        EXPECT_TRUE(holds(rig));
        if (round % 2) rig_pass(rig, 5000000);
        if (round % 2) (void)rig_figures(rig);
        if (round / 2) EXPECT_OK(strata_validate(rig->s));
        EXPECT_EQ(holds(rig), round < 2);
        take_some(&live, 7, FEW);
        end_step(&live);
        rig_pass(rig, 5000000);
        do_step(&live);
        do_step(&live);
    }
    EXPECT_OK(strata_validate(rig->s));
}

/* Where nobody tells steps. */
TEST_RIG(facade_planned_hold, so_it_is_where_nobody_tells_steps, 0, "planned") {
    live_t live = {.rig = rig};
    for (int i = 0; i < 6; i++) {
        take_some(&live, 0, FEW);
        drop_all(&live);
    }
    EXPECT_TRUE(holds(rig));
    EXPECT_OK(strata_validate(rig->s));
    take_some(&live, 0, FEW);
    drop_all(&live);
    take_some(&live, 0, 7);
    EXPECT_TRUE(holds(rig));
    drop_all(&live);
}

/* Gaps between many blocks want as many slots when the room goes back, and there are no others left. */
TEST_RIG(facade_planned_hold, slots_for_the_gaps_were_spared, 0, "planned",
         "strategy: a\nstack: [planned, auto_growth: {chunk_size: 2MiB}, system]\n") {
    enum { MANY = 400 };
    strata_block_t blocks[MANY];
    strata_stack_t *stack = rig_stack(rig, NULL);
    planned_t *planned = planned_of(rig);
    for (int step = 0; step < 5; step++) {
        for (int i = 0; i < MANY; i++) blocks[i] = rig_allocate(rig, NULL, MIB / 4);
        for (int i = 0; i < MANY; i += 2) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
        if (step == 4) {
            EXPECT_TRUE(holds(rig));
            strata_stack_take(stack);
            strata_slab_t *slab = &stack->slab, before = *slab;
            slab->free_head = slab->unused = 0;
            slab->room = slab->capacity = slab->used;
            strata_planned_let_go(planned);
            while (slab->free_head) {
                uint32_t slot = strata_slab_take(slab);
                slab->records[slot].next = before.free_head;
                before.free_head = slot;
                before.unused++;
            }
            *slab = before;
            strata_unlock(&stack->lock);
            EXPECT_OK(strata_validate(rig->s));
        }
        for (int i = 1; i < MANY; i += 2) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
        EXPECT_OK(strata_step(rig->s));
    }
}

/* Slots whose generations are used up are retired one by one. */
TEST_RIG(facade_planned_hold, used_up_slots_are_retired, 0, "planned") {
    live_t live = {.rig = rig};
    strata_stack_t *stack = rig_stack(rig, NULL);
    learn(&live);
    strata_stack_take(stack);
    for (uint32_t slot = stack->slab.free_head; slot; slot = stack->slab.records[slot].next)
        stack->slab.records[slot].generation = STRATA_GENERATION_LAST - 2;
    strata_unlock(&stack->lock);
    uint32_t retired = stack->slab.retired;
    for (int i = 0; i < 20; i++) do_step(&live);
    EXPECT_GT(stack->slab.retired, retired);
    EXPECT_TRUE(holds(rig));
    EXPECT_OK(strata_validate(rig->s));
}

/* ---- while it is not held ---- */

/* The block that was freed last is at the next place, and something larger is asked for. */
TEST_RIG(facade_planned_hold, the_last_block_serves_its_own_size_alone, 0, "planned") {
    live_t live = {.rig = rig};
    for (int step = 0; step < 5; step++) {
        for (int i = 0; i < 20; i++) {
            if (step == 4 && i == 5) validate(&live);
            take(&live, 0, 2 * MIB);
            if (i > 5) EXPECT_EQ(holds(rig), step == 3 || step == 2);
            drop(&live, 0);
            if (step == 4 && i == 9) break;
        }
        if (step < 4) EXPECT_OK(strata_step(rig->s));
    }
    take(&live, 0, 3 * MIB);
    EXPECT_GE(live.blocks[0].size, 3 * MIB);
    EXPECT_OK(strata_validate(rig->s));
    drop_all(&live);
}

/* ---- any program ---- */

static void look(live_t *live, uint64_t drawn) {
    if (drawn % 41 == 0) ask_cached(live);
    if (drawn % 43 == 0) validate(live);
    if (drawn % 47 == 0) ask_for_trim(live);
    if (drawn % 53 == 0) look_at_all(live);
    if (drawn % 59 == 0) EXPECT_OK(strata_step(live->rig->s));
}

/* Steps of three shapes, some frees late, somebody looks now and then; borrowers are done sooner or later. */
static void play(rig_t *rig, uint64_t seed) {
    strata_stream_t other = rig_stream(rig);
    live_t live = {.rig = rig};
    uint64_t held = 0;
    for (uint64_t step = 0; step < 60 && !strata_test_has_failed(); step++) {
        uint64_t shape = 1 + mixed(seed + step / 12) % 3;
        for (uint32_t i = 0; i < STEP; i++) {
            uint64_t drawn = mixed(shape * 1000 + i), chance = mixed(seed * 100000 + step * 1000 + i);
            uint32_t at = (uint32_t)(drawn % BLOCKS);
            held += planned_of(rig)->holds;
            if (step % 4 == 3) look(&live, chance);
            if (step % 9 == 8 && live.held[at] && chance % 31 == 0) continue;
            if (live.held[at] && step % 7 == 6 && chance % 13 == 0) rig_borrow(rig, live.blocks[at].ref, other, chance % 900000);
            if (live.held[at]) drop(&live, at);
            else take(&live, at, (drawn >> 8) % (4 * MIB) + 1);
        }
        for (uint32_t i = 0; i < BLOCKS; i++)
            if (step % 9 != 8 || mixed(seed + step + i) % 8) drop(&live, i);
        if (seed % 3) EXPECT_OK(strata_step(rig->s));
        rig_pass(rig, 300000);
    }
    EXPECT_GT(held, seed % 3 ? 5 * STEP : 0);
    drop_all(&live);
    EXPECT_OK(strata_validate(rig->s));
}

TEST(facade_planned_hold, nothing_overlaps_whoever_looks) {
    for (uint64_t seed = 1; seed <= 30; seed++) {
        RIG(rig, seed % 2 ? "planned" : "strategy: a\nstack: [stream_safe, planned, auto_growth: {chunk_size: 2MiB}, system]\n", 0);
        play(&rig, seed);
    }
}
