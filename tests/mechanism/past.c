#include "allocation/mechanism/past.h"

#include "tests/mechanism/mechanism.h"

enum { SLOTS = 128 };

typedef struct fixture {
    strata_past_t past;
    struct {
        uint32_t number; /* of the request that it serves; 0: none */
        uint64_t size;
    } slots[SLOTS];
} fixture_t;

static void begin(fixture_t *f) {
    *f = (fixture_t){0};
    EXPECT_OK(strata_past_init(&f->past));
}

static void end(fixture_t *f) {
    EXPECT_OK(strata_past_validate(&f->past));
    strata_past_destroy(&f->past);
}

/* A request of `size` that is served by a slot. */
static uint32_t ask(fixture_t *f, uint32_t slot, uint64_t size) {
    strata_growing_serve();
    uint32_t number = strata_past_ask(&f->past, size, true);
    strata_past_serve(&f->past, number, slot, size);
    f->slots[slot].number = number;
    f->slots[slot].size = size;
    return number;
}

static void give(fixture_t *f, uint32_t slot) {
    strata_past_free(&f->past, f->slots[slot].number, f->slots[slot].size);
    f->slots[slot].number = 0;
}

/* A step: three blocks, of which the first is freed last. */
static void do_step(fixture_t *f, uint64_t scale) {
    for (uint32_t i = 1; i <= 3; i++) ask(f, i, scale * i);
    for (uint32_t i = 3; i >= 1; i--) give(f, i);
}

TEST(past, a_step_that_is_made_twice_repeats) {
    fixture_t f;
    begin(&f);
    ask(&f, 9, 1000);
    do_step(&f, 10);
    EXPECT_EQ(strata_past_excursion(&f.past), 3);
    EXPECT_TRUE(!strata_past_repeats(&f.past, 3));
    do_step(&f, 10);
    EXPECT_EQ(strata_past_excursion(&f.past), 3);
    EXPECT_TRUE(strata_past_repeats(&f.past, 3));
    EXPECT_TRUE(!strata_past_repeats(&f.past, 2));
    EXPECT_EQ(strata_past_peak(&f.past, 3), 1060);
    EXPECT_EQ(strata_past_most(&f.past), 1060);
    do_step(&f, 11);
    EXPECT_TRUE(!strata_past_repeats(&f.past, 3));
    end(&f);
}

TEST(past, repetition_needs_every_key) {
    fixture_t f;
    begin(&f);
    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t i = 1; i <= 50; i++) {
            ask(&f, i, i == 20 ? 100 + round : i);
            give(&f, i);
        }
    EXPECT_TRUE(!strata_past_repeats(&f.past, 50));
    EXPECT_TRUE(strata_past_hash(&f.past, 1, 50) != strata_past_hash(&f.past, 51, 50));
    EXPECT_EQ(strata_past_hash(&f.past, 1, 19), strata_past_hash(&f.past, 51, 19));
    EXPECT_TRUE(!strata_past_repeats(&f.past, 0));
    EXPECT_TRUE(!strata_past_repeats(&f.past, 51));
    end(&f);
}

/* In requests: freed before the next one is 1. */
TEST(past, lives_are_as_long_as_the_longer_of_two) {
    fixture_t f;
    begin(&f);
    uint32_t first = ask(&f, 1, 10);
    (void)ask(&f, 2, 20);
    give(&f, 2);
    give(&f, 1);
    (void)ask(&f, 1, 10);
    give(&f, 1);
    uint32_t last = ask(&f, 3, 20);
    EXPECT_EQ(strata_past_life(&f.past, first + 2, 2), 2);
    EXPECT_EQ(strata_past_life(&f.past, last, 2), 1);
    give(&f, 3);
    end(&f);
}

TEST(past, what_lives_on_is_older_than_a_step) {
    fixture_t f;
    begin(&f);
    for (uint32_t i = 1; i <= 4; i++) (void)ask(&f, i, 10);
    EXPECT_GT(strata_past_life(&f.past, 3, 2), 2);
    (void)strata_past_ask(&f.past, 10, false);
    EXPECT_GT(strata_past_life(&f.past, 5, 2), 2);
    end(&f);
}

TEST(past, frees_of_what_was_not_noted_change_nothing) {
    fixture_t f;
    begin(&f);
    uint32_t number = ask(&f, 4, 64);
    strata_past_free(&f.past, 0, 10);
    EXPECT_EQ(f.past.live, 64);
    give(&f, 4);
    EXPECT_EQ(f.past.live, 0);
    EXPECT_EQ(strata_past_at(&f.past, number)->until, number + 1);
    end(&f);
}

/* ---- open requests ---- */

static void ask_open(fixture_t *f, uint32_t slot, uint64_t size) {
    strata_growing_serve();
    ASSERT_TRUE(strata_past_has_room(&f->past));
    f->slots[slot].number = strata_past_note_open(&f->past, slot, size);
    f->slots[slot].size = size;
}

static void tell(fixture_t *f, uint64_t size) {
    const strata_past_key_t key = strata_past_key(size);
    strata_past_tell(&f->past, &key);
}

TEST(past, what_is_told_later_is_as_if_it_had_been_told_at_once) {
    fixture_t f, other;
    begin(&f);
    begin(&other);
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 1; i <= 3; i++) {
            ask_open(&f, i, 10 * i);
            (void)ask(&other, i, 10 * i);
            if (i == 2) give(&f, 1);
            if (i == 2) give(&other, 1);
        }
        EXPECT_EQ(f.past.live, other.past.live);
        EXPECT_EQ(strata_past_most(&f.past), strata_past_most(&other.past));
        for (uint32_t i = 2; i <= 3; i++) give(&f, i);
        for (uint32_t i = 2; i <= 3; i++) give(&other, i);
        EXPECT_OK(strata_past_validate(&f.past));
        if (round == 0) continue;
        for (uint32_t i = 0; i < 6; i++) tell(&f, 10 * (i % 3 + 1));
    }
    EXPECT_EQ(f.past.hash, other.past.hash);
    EXPECT_TRUE(strata_past_repeats(&f.past, 3));
    for (uint32_t n = 4; n <= 6; n++) EXPECT_EQ(strata_past_life(&f.past, n, 3), strata_past_life(&other.past, n, 3));
    end(&other);
    end(&f);
}

TEST(past, of_open_requests_the_last_are_enough) {
    fixture_t f;
    begin(&f);
    (void)ask(&f, 100, 5);
    for (uint32_t i = 0; i < 50; i++) {
        ask_open(&f, 1, 10);
        give(&f, 1);
    }
    strata_past_skip(&f.past, 50);
    EXPECT_TRUE(strata_past_knows(&f.past, 1));
    strata_past_skip(&f.past, 20);
    EXPECT_EQ(f.past.next - f.past.first, 20);
    for (int i = 0; i < 20; i++) tell(&f, 10);
    EXPECT_TRUE(strata_past_repeats(&f.past, 10));
    EXPECT_TRUE(!strata_past_repeats(&f.past, 11));
    end(&f);
}

/* More than the past's length: what is too old is never told. */
TEST(past, open_requests_grow_too_old) {
    fixture_t f;
    begin(&f);
    (void)ask(&f, 100, 5);
    for (uint32_t i = 0; i < 2 * STRATA_PAST_LENGTH; i++) {
        ask_open(&f, 1, 10);
        give(&f, 1);
    }
    EXPECT_EQ(f.past.open, f.past.first);
    EXPECT_OK(strata_past_validate(&f.past));
    while (f.past.open != f.past.next) tell(&f, 10);
    EXPECT_TRUE(strata_past_repeats(&f.past, 1000));
    give(&f, 100);
    EXPECT_EQ(f.past.live, 0);
    end(&f);
}

/* ---- against a naive model ---- */

enum { LONG = 3000 };

static uint32_t naive_excursion(const uint64_t *live, uint32_t now, uint64_t level) {
    for (uint32_t n = now; n-- > 0;) {
        if (live[n] == level) return now - n;
        if (live[n] < level) return 0;
    }
    return 0;
}

TEST(past, excursions_are_those_of_a_naive_search) {
    static uint64_t live[LONG];
    fixture_t f;
    uint64_t random = 7, level = 0;
    uint32_t found = 0;
    bool used[16] = {false};
    begin(&f);
    for (uint32_t i = 0; i < LONG; i++) {
        uint32_t slot = 1 + (uint32_t)random_below(&random, 15);
        if (used[slot]) {
            level -= slot % 4 + 1;
            give(&f, slot);
            used[slot] = false;
        }
        uint32_t expected = naive_excursion(live, i, level);
        EXPECT_EQ(strata_past_excursion(&f.past), expected);
        found += expected > 0;
        live[i] = level;
        (void)ask(&f, slot, slot % 4 + 1);
        level += slot % 4 + 1;
        used[slot] = true;
    }
    EXPECT_GT(found, LONG / 4);
    end(&f);
}

/* The ring goes round: what is older than its length, or a little younger, is not known, and repetition is still found. */
TEST(past, it_knows_as_much_as_its_length) {
    fixture_t f;
    begin(&f);
    (void)ask(&f, 100, 5);
    for (uint32_t i = 0; i < STRATA_PAST_LENGTH / 3 + 10; i++) do_step(&f, 10);
    EXPECT_TRUE(f.past.next - f.past.first <= STRATA_PAST_LENGTH);
    EXPECT_GT(f.past.next - f.past.first, STRATA_PAST_LENGTH - 1025);
    EXPECT_TRUE(!strata_past_knows(&f.past, 1));
    EXPECT_TRUE(strata_past_repeats(&f.past, 3 * 1000));
    EXPECT_EQ(strata_past_excursion(&f.past), 3);
    give(&f, 100);
    EXPECT_EQ(f.past.live, 0);
    end(&f);
}

/* After 2^32 requests. The block of the last one before is not known, as any that is too old. */
TEST(past, numbers_begin_anew) {
    fixture_t f;
    begin(&f);
    for (uint32_t i = 0; i < STRATA_PAST_LENGTH / 3 + 1; i++) do_step(&f, 10);
    f.past.first = f.past.open = f.past.next = UINT32_MAX - STRATA_PAST_LENGTH + 1;
    f.past.ready = f.past.quiet = 0;
    for (uint32_t i = 0; i < STRATA_PAST_LENGTH - 1; i++) {
        ask(&f, 1, 10);
        give(&f, 1);
    }
    EXPECT_EQ(ask(&f, 2, 20), UINT32_MAX);
    for (int i = 0; i < 2; i++) do_step(&f, 10);
    EXPECT_EQ(f.past.live, 20);
    EXPECT_EQ(f.past.next - f.past.first, 6);
    EXPECT_EQ(strata_past_excursion(&f.past), 3);
    EXPECT_TRUE(strata_past_repeats(&f.past, 3));
    end(&f);
}

TEST(past, the_most_is_that_of_late) {
    fixture_t f;
    begin(&f);
    (void)ask(&f, 1, 1 << 20);
    give(&f, 1);
    EXPECT_EQ(strata_past_most(&f.past), 1 << 20);
    for (uint32_t i = 0; i < STRATA_PAST_LENGTH / 2; i++) do_step(&f, 1);
    EXPECT_EQ(strata_past_most(&f.past), 6);
    end(&f);
}

TEST(past, validate_finds_what_is_wrong) {
    fixture_t f;
    begin(&f);
    do_step(&f, 10);
    do_step(&f, 10);
    (void)ask(&f, 7, 50);
    EXPECT_CAUGHT(strata_past_validate(&f.past), f.past.hash, 1);
    EXPECT_CAUGHT(strata_past_validate(&f.past), f.past.live, 0);
    EXPECT_CAUGHT(strata_past_validate(&f.past), f.past.open, f.past.next + 1);
    EXPECT_CAUGHT(strata_past_validate(&f.past), strata_past_at(&f.past, 4)->level, 2);
    EXPECT_CAUGHT(strata_past_validate(&f.past), strata_past_at(&f.past, 2)->below, 3);
    EXPECT_CAUGHT(strata_past_validate(&f.past), f.past.first, UINT32_MAX - STRATA_PAST_LENGTH);
    end(&f);
}
