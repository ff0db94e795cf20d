#include "allocation/tables/slab.h"

#include <stdlib.h>
#include <string.h>

#include "platform/host/host_memory.h"
#include "platform/status.h"
#include "tests/harness/address_space.h"
#include "tests/mechanism/mechanism.h"

static void give_raised(strata_slab_t *slab, uint32_t slot) {
    strata_slab_record(slab, slot)->generation++;
    strata_slab_release(slab, slot);
}

TEST_SLAB(slab, gives_slots_last_in_first_out, 7, 5, 100) {
    uint32_t a = strata_slab_acquire(slab), b = strata_slab_acquire(slab);
    EXPECT_EQ(a, 1);
    EXPECT_EQ(b, 2);
    EXPECT_EQ(slab->records[a].generation, 5);
    EXPECT_EQ(slab->records[a].home, 7);
    EXPECT_EQ(slab->records[a].state, STRATA_RECORD_UNUSED);
    EXPECT_EQ(strata_slab_slot(slab, &slab->records[b]), b);
    give_raised(slab, a);
    give_raised(slab, b);
    EXPECT_EQ(strata_slab_acquire(slab), b);
    EXPECT_EQ(strata_slab_acquire(slab), a);
    EXPECT_EQ(slab->records[a].generation, 6);
    EXPECT_EQ(strata_slab_next_generation(slab), 7);
}

TEST_SLAB(slab, is_full_at_its_capacity, 1, 0, 10) {
    for (uint32_t i = 1; i < 10; i++) EXPECT_EQ(strata_slab_acquire(slab), i);
    EXPECT_EQ(strata_slab_acquire(slab), 0);
    EXPECT_EQ(strata_slab_acquire(slab), 0);
    give_raised(slab, 4);
    EXPECT_EQ(strata_slab_acquire(slab), 4);
    EXPECT_EQ(strata_slab_acquire(slab), 0);
}

/* Every slot serves the generations that are left, each once, and then the slab is full for ever. */
TEST(slab, retires_what_is_used_up) {
    enum { SLOTS = 6, LEFT = 3 };
    strata_slab_t slab;
    ASSERT_OK(strata_slab_init(&slab, 1, STRATA_GENERATION_LAST - LEFT, SLOTS));
    uint32_t served = 0, slot;
    while ((slot = strata_slab_acquire(&slab)) != 0 && served < 1000) {
        EXPECT_LT(slab.records[slot].generation, STRATA_GENERATION_LAST);
        slab.records[slot].state = STRATA_RECORD_LIVE;
        served++;
        give_raised(&slab, slot);
        EXPECT_OK(strata_slab_validate(&slab));
    }
    EXPECT_EQ(served, (SLOTS - 1) * LEFT);
    EXPECT_EQ(slab.retired, SLOTS - 1);
    EXPECT_EQ(slab.unused, 0);
    EXPECT_EQ(strata_slab_acquire(&slab), 0);
    EXPECT_EQ(strata_slab_next_generation(&slab), STRATA_GENERATION_LAST);
    strata_slab_destroy(&slab);
}

TEST_SLAB(slab, begun_at_the_last_generation_is_full, 1, STRATA_GENERATION_LAST, 100) {
    EXPECT_EQ(strata_slab_acquire(slab), 0);
    EXPECT_OK(strata_slab_validate(slab));
}

TEST(slab, says_when_the_host_has_no_memory) {
    strata_slab_t slab;
    strata_host_fail_at(1, 0);
    EXPECT_STATUS(STRATA_E_HOST_MEMORY, strata_slab_init(&slab, 1, 0, 100));
    strata_host_fail_at(0, 0);
}

/* What was touched stays where it is. */
TEST_SLAB(slab, grows_in_place, 1, 0, STRATA_SLAB_SLOTS) {
    enum { SLOTS = 100000 };
    strata_record_t *records = slab->records;
    for (uint32_t i = 1; i <= SLOTS; i++) ASSERT_EQ(make_free(slab, 256 * (uint64_t)i, 256), i);
    EXPECT_EQ(slab->records, records);
    for (uint32_t i = 1; i <= SLOTS; i++) ASSERT_EQ(records[i].ptr, 256 * (uint64_t)i);
    EXPECT_OK(strata_slab_validate(slab));
}

TEST_SLAB(slab, is_full_where_address_space_ends_and_goes_on_when_there_is_more, 1, 0, STRATA_SLAB_SLOTS) {
    struct rlimit before;
    bool grows = slab->room < slab->capacity;
    if (!grows || !bound_address_space(8 << 20, &before)) TEST_SKIP("address space comes in one piece here, or cannot be bounded");
    while (make_free(slab, 0, 256) != 0) {}
    strata_status_t status = strata_growing_grow_marked();
    const strata_error_t error = *strata_last_error();
    unbound_address_space(&before);
    EXPECT_EQ(status, STRATA_E_HOST_MEMORY);
    EXPECT_CONTAINS(error.text, "RLIMIT_AS");
    EXPECT_LT(slab->used, STRATA_SLAB_SLOTS);
    EXPECT_OK(strata_slab_validate(slab));
    uint32_t used = slab->used;
    EXPECT_EQ(strata_slab_acquire(slab), 0);
    EXPECT_OK(strata_growing_grow_marked());
    EXPECT_EQ(make_free(slab, 0, 256), used);
    EXPECT_OK(strata_slab_validate(slab));
}

/* Records that are there already are asked for by nobody: only the bits are short. */
TEST_SLAB(slab, wants_more_of_the_range_that_is_short_alone, 1, 0, STRATA_SLAB_SLOTS) {
    if (slab->room == slab->capacity) TEST_SKIP("address space comes in one piece here");
    EXPECT_OK(strata_growing_grow_marked());
    size_t bits = strata_growing_usable(&slab->idle_range), slots = 8 * bits;
    ASSERT_OK(strata_growing_grow(&slab->record_range, 4 * slots * sizeof(strata_record_t)));
    size_t records = strata_growing_usable(&slab->record_range);
    for (uint32_t i = 1; i < slots; i++) ASSERT_EQ(make_free(slab, 256 * (uint64_t)i, 256), i);
    EXPECT_EQ(strata_growing_usable(&slab->record_range), records);
    EXPECT_GT(strata_growing_usable(&slab->idle_range), bits);
    EXPECT_OK(strata_slab_validate(slab));
}

/* Each slot has a bit of its own, after the last record. */
TEST(slab, bits_are_one_a_slot) {
    enum { SLOTS = 130 };
    strata_slab_t slab;
    ASSERT_OK(strata_slab_init(&slab, 1, 0, SLOTS));
    for (uint32_t i = 1; i < SLOTS; i++) {
        EXPECT_EQ(strata_slab_acquire(&slab), i);
        slab.records[i].state = STRATA_RECORD_FREE;
    }
    for (uint32_t i = 1; i < SLOTS; i += 3) strata_slab_note_idle(&slab, i);
    for (uint32_t i = 0; i < SLOTS; i++) EXPECT_EQ(strata_slab_is_idle(&slab, i), i % 3 == 1);
    EXPECT_OK(strata_slab_validate(&slab));
    for (uint32_t i = 1; i < SLOTS; i += 6) strata_slab_note_used(&slab, i);
    for (uint32_t i = 0; i < SLOTS; i++) EXPECT_EQ(strata_slab_is_idle(&slab, i), i % 6 == 4);
    EXPECT_EQ(slab.records[SLOTS - 1].state, STRATA_RECORD_FREE);
    strata_slab_destroy(&slab);
}

/* A slab with live, free, deferred, unused, retired slots. */
static void make_mixed(strata_slab_t *slab) {
    ASSERT_OK(strata_slab_init(slab, 3, 10, 100));
    for (uint32_t i = 1; i <= 20; i++) {
        uint32_t slot = strata_slab_acquire(slab);
        slab->records[slot].state = (uint8_t)(1 + i % 4);
    }
    for (uint32_t slot = 2; slot <= 10; slot += 2) give_raised(slab, slot);
    slab->records[20].generation = STRATA_GENERATION_LAST - 1;
    give_raised(slab, 20);
    EXPECT_EQ(slab->unused, 5);
    EXPECT_EQ(slab->retired, 1);
}

TEST(slab, validate_finds_planted_faults) {
    strata_slab_t slab;
    make_mixed(&slab);
    strata_record_t *records = slab.records;
    uint32_t middle = records[slab.free_head].next;
    EXPECT_CAUGHT(strata_slab_validate(&slab), slab.unused, 4);
    EXPECT_CAUGHT(strata_slab_validate(&slab), slab.unused, 6);
    EXPECT_CAUGHT(strata_slab_validate(&slab), slab.retired, 0);
    EXPECT_CAUGHT(strata_slab_validate(&slab), slab.used, 0);
    EXPECT_CAUGHT(strata_slab_validate(&slab), slab.used, 20);
    EXPECT_CAUGHT(strata_slab_validate(&slab), slab.used, 101);
    EXPECT_CAUGHT(strata_slab_validate(&slab), slab.capacity, 1u << 30);
    EXPECT_CAUGHT(strata_slab_validate(&slab), slab.free_head, middle); /* a lost slot */
    EXPECT_CAUGHT(strata_slab_validate(&slab), records[middle].next, 0); /* a lost link */
    EXPECT_CAUGHT(strata_slab_validate(&slab), records[middle].next, 1); /* into a live slot */
    EXPECT_CAUGHT(strata_slab_validate(&slab), records[middle].next, slab.free_head); /* a circle */
    EXPECT_CAUGHT(strata_slab_validate(&slab), records[middle].next, 1u << 31); /* out of the range */
    EXPECT_CAUGHT(strata_slab_validate(&slab), records[2].next, slab.free_head); /* the end goes on */
    records[20].next = records[middle].next;
    EXPECT_CAUGHT(strata_slab_validate(&slab), records[slab.free_head].next, 20); /* a retired slot in place of another */
    EXPECT_CAUGHT(strata_slab_validate(&slab), records[middle].state, STRATA_RECORD_LIVE);
    EXPECT_CAUGHT(strata_slab_validate(&slab), records[1].state, STRATA_RECORD_UNUSED);
    EXPECT_CAUGHT(strata_slab_validate(&slab), records[1].state, STRATA_RECORD_CHUNK + 1);
    EXPECT_CAUGHT(strata_slab_validate(&slab), records[0].state, STRATA_RECORD_FREE);
    EXPECT_CAUGHT(strata_slab_validate(&slab), records[5].home, 4);
    EXPECT_CAUGHT(strata_slab_validate(&slab), records[5].generation, 9);
    EXPECT_CAUGHT(strata_slab_validate(&slab), records[7].generation, STRATA_GENERATION_LAST + 1u);
    EXPECT_CAUGHT(strata_slab_validate(&slab), records[20].generation, 11);
    EXPECT_CAUGHT(strata_slab_validate(&slab), records[21].state, STRATA_RECORD_LIVE);
    EXPECT_CAUGHT(strata_slab_validate(&slab), slab.idle[0], 1ull << 1); /* of a live slot */
    EXPECT_CAUGHT(strata_slab_validate(&slab), slab.idle[0], 1ull << 2); /* of an unused one */
    EXPECT_CAUGHT(strata_slab_validate(&slab), slab.idle[0], 1ull << 0); /* of the sentinel */
    EXPECT_CAUGHT(strata_slab_validate(&slab), slab.idle[0], 1ull << 21); /* of one that was never touched */
    records[1].state = STRATA_RECORD_LIVE;
    EXPECT_CAUGHT(strata_slab_validate(&slab), records[1].generation, STRATA_GENERATION_LAST);
    strata_slab_destroy(&slab);
}

/* Against an array that says who holds which slot. */
TEST(slab, random_takes_and_gives) {
    enum { SLOTS = 500 };
    strata_slab_t slab;
    uint64_t seed = 42;
    bool live[SLOTS] = {false};
    uint32_t held[SLOTS], count = 0, generations[SLOTS];
    for (uint32_t i = 0; i < SLOTS; i++) generations[i] = STRATA_GENERATION_LAST - 40;
    ASSERT_OK(strata_slab_init(&slab, 1, STRATA_GENERATION_LAST - 40, SLOTS));
    for (int step = 0; step < 30000; step++) {
        if (random_below(&seed, 100) < 52) {
            uint32_t slot = strata_slab_acquire(&slab);
            if (slot == 0) continue;
            EXPECT_FALSE(live[slot]);
            EXPECT_EQ(slab.records[slot].generation, generations[slot]);
            live[slot] = true;
            slab.records[slot].state = STRATA_RECORD_LIVE;
            held[count++] = slot;
        } else if (count) {
            uint32_t i = (uint32_t)random_below(&seed, count), slot = held[i];
            held[i] = held[--count];
            live[slot] = false;
            generations[slot]++;
            give_raised(&slab, slot);
        }
        if (step % 64 == 0) ASSERT_OK(strata_slab_validate(&slab));
    }
    EXPECT_OK(strata_slab_validate(&slab));
    EXPECT_GT(slab.retired, 0);
    strata_slab_destroy(&slab);
}
