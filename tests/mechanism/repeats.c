#include "allocation/mechanism/repeats.h"

#include "platform/host/host_memory.h"
#include "tests/harness/planted.h"
#include "tests/mechanism/mechanism.h"

enum { USER = 3, OTHER = 5 };

typedef struct fixture {
    strata_slab_t slab;
    strata_repeats_t repeats;
} fixture_t;

static void begin(fixture_t *f) {
    *f = (fixture_t){.repeats = {.step = 0}};
    EXPECT_OK(strata_slab_init(&f->slab, 1, 0, 1 << 16));
    EXPECT_OK(strata_repeats_init(&f->repeats));
}

static void end(fixture_t *f) {
    EXPECT_OK(strata_repeats_validate(&f->repeats));
    strata_repeats_destroy(&f->repeats);
    EXPECT_TRUE(!strata_repeats_are_on(&f->repeats));
    strata_slab_destroy(&f->slab);
}

static void note(fixture_t *f, uint32_t user, uint64_t size, uint64_t ptr) {
    uint32_t slot = strata_slab_acquire(&f->slab);
    strata_record_t *block = strata_slab_record(&f->slab, slot);
    block->ptr = ptr;
    block->size = size + 1;
    block->state = STRATA_RECORD_LIVE;
    strata_repeats_note(&f->repeats, &f->slab, user, size, block);
    strata_slab_release(&f->slab, slot);
}

/* 0: nothing is known. */
static uint64_t recall(fixture_t *f, uint32_t user, uint64_t size) {
    strata_extent_t place = {.ptr = 0};
    if (!strata_repeats_recall(&f->repeats, user, size, &place)) return 0;
    EXPECT_EQ(place.size, size + 1);
    return place.ptr;
}

#define TEST_REPEATS(name) TEST_WITH(repeats, name, fixture_t, f, end, begin(f))

TEST(repeats, one_that_is_off_knows_and_learns_nothing) {
    strata_repeats_t off = {.step = 0};
    strata_extent_t place;
    EXPECT_TRUE(!strata_repeats_are_on(&off));
    EXPECT_TRUE(!strata_repeats_recall(&off, USER, 512, &place));
    strata_repeats_step(&off);
    EXPECT_OK(strata_repeats_validate(&off));
    strata_repeats_destroy(&off);
}

TEST_REPEATS(the_next_step_learns_where_the_last_one_was_served) {
    EXPECT_EQ(recall(f, USER, 512), 0);
    for (uint64_t i = 1; i <= 3; i++) note(f, USER, 512 * i, 4096 * i);
    EXPECT_EQ(recall(f, USER, 512), 0);
    strata_repeats_step(&f->repeats);
    for (uint64_t i = 1; i <= 3; i++) {
        EXPECT_EQ(recall(f, USER, 512 * i), 4096 * i);
        note(f, USER, 512 * i, 8192 * i);
    }
    EXPECT_EQ(recall(f, USER, 512), 0);
    strata_repeats_step(&f->repeats);
    EXPECT_EQ(recall(f, USER, 512), 8192);
}

TEST_REPEATS(a_step_that_asks_for_something_else_follows_no_further) {
    for (uint64_t i = 1; i <= 3; i++) note(f, USER, 512 * i, 4096 * i);
    strata_repeats_step(&f->repeats);
    EXPECT_EQ(recall(f, USER, 512), 4096);
    EXPECT_EQ(recall(f, USER, 768), 0);
    EXPECT_EQ(recall(f, USER, 1536), 0);
    note(f, USER, 768, 77);
    strata_repeats_step(&f->repeats);
    EXPECT_EQ(recall(f, USER, 768), 77);
}

TEST_REPEATS(users_are_apart) {
    note(f, USER, 512, 1);
    note(f, OTHER, 1024, 2);
    note(f, USER, 768, 3);
    strata_repeats_step(&f->repeats);
    EXPECT_EQ(recall(f, OTHER, 1024), 2);
    EXPECT_EQ(recall(f, USER, 512), 1);
    EXPECT_EQ(recall(f, USER, 768), 3);
}

/* One that comes back after a while finds its last step; after a long while it is forgotten. */
TEST_REPEATS(a_user_that_rests_is_remembered_and_at_last_forgotten) {
    note(f, USER, 512, 1);
    for (int i = 0; i < 10; i++) strata_repeats_step(&f->repeats);
    EXPECT_EQ(recall(f, USER, 512), 1);
    note(f, USER, 512, 1);
    for (int i = 0; i < 200; i++) strata_repeats_step(&f->repeats);
    EXPECT_EQ(f->repeats.index.count, 0);
    EXPECT_EQ(f->repeats.places.unused + 1, f->repeats.places.used);
    EXPECT_EQ(recall(f, USER, 512), 0);
}

/* A program without steps: when there is no more room, the rest is forgotten. */
TEST_REPEATS(what_has_no_room_is_forgotten) {
    for (uint64_t i = 1; i <= 1u << 12; i++) note(f, USER, 512, i);
    EXPECT_OK(strata_repeats_validate(&f->repeats));
    strata_repeats_step(&f->repeats);
    EXPECT_EQ(recall(f, USER, 512), 1);
}

TEST(repeats, without_host_memory_they_are_off) {
    strata_repeats_t repeats;
    uint64_t k = 1;
    strata_status_t status;
    for (;; k++) {
        strata_host_fail_at(k, 0);
        status = strata_repeats_init(&repeats);
        strata_host_fail_at(0, 0);
        if (status == STRATA_OK || k > 20) break;
        EXPECT_EQ(status, STRATA_E_HOST_MEMORY);
        EXPECT_TRUE(!strata_repeats_are_on(&repeats));
    }
    EXPECT_GT(k, 1);
    EXPECT_OK(status);
    strata_repeats_destroy(&repeats);
}

TEST_REPEATS(planted_faults_are_found) {
    note(f, USER, 512, 1);
    EXPECT_PLANTED(strata_repeats_validate(&f->repeats), f->repeats.index.count, 2, "places are lost");
    EXPECT_PLANTED(strata_repeats_validate(&f->repeats), f->repeats.places.used, f->repeats.places.used + 1, "places are lost");
}
