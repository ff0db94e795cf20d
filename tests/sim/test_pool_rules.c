/* What pools keep, who may have what, and what it costs, to the letter of platform/sim/memory/sim_pool.h. */
#include <pthread.h>

#include "tests/sim/sim_fixture.h"

static strata_address_t take_of(strata_device_t *device, strata_handle_t pool, uint64_t size, strata_handle_t stream) {
    strata_address_t address = 0;
    EXPECT_OK(strata_device_malloc_async(device, pool, size, stream, &address));
    return address;
}

static uint64_t of_pool(strata_device_t *device, strata_handle_t pool, strata_pool_attribute_t which) {
    uint64_t value = 0;
    EXPECT_OK(strata_device_pool_get(device, pool, which, &value));
    return value;
}

/* ---- what goes back ---- */

typedef enum give_back { BY_DEVICE, BY_STREAM, BY_EVENT, BY_TRIM, GIVE_BACKS } give_back_t;

static void give_back(strata_device_t *device, strata_handle_t pool, give_back_t how) {
    strata_handle_t event;
    switch (how) {
    case BY_DEVICE: EXPECT_OK(strata_device_synchronise(device)); break;
    case BY_STREAM: EXPECT_OK(strata_device_stream_synchronise(device, NULL)); break;
    case BY_EVENT:
        event = event_new(device);
        EXPECT_OK(strata_device_event_record(device, event, NULL));
        EXPECT_OK(strata_device_event_synchronise(device, event));
        break;
    default: EXPECT_OK(strata_device_pool_trim(device, pool, 0)); break;
    }
}

/* Each way in which a pool gives idle bytes back takes none from a shareable one, whose memory another process may map. */
TEST(sim_pool_rules, a_shareable_pool_keeps_its_idle_bytes) {
    for (give_back_t how = BY_DEVICE; how < GIVE_BACKS; how++) {
        for (int shareable = 0; shareable < 2; shareable++) {
            fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){0});
            strata_handle_t pool;
            ASSERT_OK(strata_device_pool_create(f.device, 0, shareable, &pool));
            strata_address_t block = take_of(f.device, pool, 40 * MIB, NULL);
            ASSERT_OK(strata_device_free_async(f.device, block, NULL));
            give_back(f.device, pool, how);
            EXPECT_EQ(figures_of(f.device).used_bytes, shareable ? 40 * MIB : 0);
            EXPECT_EQ(of_pool(f.device, pool, STRATA_POOL_RESERVED_CURRENT), shareable ? 40 * MIB : 0);
            EXPECT_EQ(take_of(f.device, pool, 40 * MIB, NULL) == block, shareable);
            ASSERT_OK(strata_device_pool_destroy(f.device, pool));
        }
    }
}

/* ---- who may have what ---- */

typedef struct followed {
    fixture_t f;
    strata_handle_t pool, a, b, before, after;
    strata_address_t block;
} followed_t;

static void followed_close(followed_t *s) { fixture_close(&s->f); }

/* A frees a block between two events; only waits count, not time. */
static followed_t followed_open(void) {
    followed_t s = {.f = fixture_open((strata_sim_options_t){0})};
    strata_device_t *d = s.f.device;
    s.a = stream_new(d, STRATA_STREAM_NON_BLOCKING);
    s.b = stream_new(d, STRATA_STREAM_NON_BLOCKING);
    s.before = event_new(d);
    s.after = event_new(d);
    EXPECT_OK(strata_device_pool_create(d, 0, false, &s.pool));
    EXPECT_OK(strata_device_pool_set(d, s.pool, STRATA_POOL_REUSE_OPPORTUNISTIC, 0));
    EXPECT_OK(strata_device_pool_set(d, s.pool, STRATA_POOL_REUSE_INTERNAL, 0));
    s.block = take_of(d, s.pool, 20 * MIB, s.a);
    EXPECT_OK(strata_device_work(d, s.a, 1000 * US, NULL, 0));
    EXPECT_OK(strata_device_event_record(d, s.before, s.a));
    EXPECT_OK(strata_device_free_async(d, s.block, s.a));
    EXPECT_OK(strata_device_event_record(d, s.after, s.a));
    return s;
}

static bool has_it(followed_t *s, strata_handle_t stream) { return take_of(s->f.device, s->pool, 20 * MIB, stream) == s->block; }

TEST_WITH(sim_pool_rules, a_wait_for_an_older_event_takes_nothing_from_a_newer_one, followed_t, s, followed_close,
          *s = followed_open()) {
    ASSERT_OK(strata_device_stream_wait(s->f.device, s->b, s->after));
    ASSERT_OK(strata_device_stream_wait(s->f.device, s->b, s->before));
    EXPECT_TRUE(has_it(s, s->b));
}

TEST_WITH(sim_pool_rules, a_wait_for_an_event_before_the_free_gives_nothing, followed_t, s, followed_close, *s = followed_open()) {
    ASSERT_OK(strata_device_stream_wait(s->f.device, s->b, s->before));
    EXPECT_FALSE(has_it(s, s->b));
}

/* A stream keeps in mind sixteen others that it waited for, and forgets the one that it waited for longest ago. */
TEST(sim_pool_rules, the_stream_waited_for_longest_ago_is_forgotten) {
    for (int others = 15; others <= 16; others++) {
        for (int again = 0; again < 2; again++) {
            followed_t s CLOSED_BY(followed_close) = followed_open();
            strata_handle_t event = event_new(s.f.device);
            ASSERT_OK(strata_device_stream_wait(s.f.device, s.b, s.after));
            for (int i = 0; i < others; i++) {
                ASSERT_OK(strata_device_event_record(s.f.device, event, stream_new(s.f.device, STRATA_STREAM_NON_BLOCKING)));
                ASSERT_OK(strata_device_stream_wait(s.f.device, s.b, event));
                if (again && i == 0) ASSERT_OK(strata_device_stream_wait(s.f.device, s.b, s.before));
            }
            EXPECT_EQ(has_it(&s, s.b), others == 15 || again);
        }
    }
}

/* ---- blocks that join and are cut ---- */

enum { HALF = 16 };

/* A pool of one chunk, as two halves that stream A has; the host is ahead of nothing yet. */
typedef struct halves {
    fixture_t f;
    strata_device_t *d;
    strata_handle_t a, b, c;
    strata_address_t low, high;
} halves_t;

static void halves_close(halves_t *s) { fixture_close(&s->f); }

static halves_t halves_open(bool follow, bool opportunistic) {
    halves_t s = {.f = fixture_open((strata_sim_options_t){.capacity = 2 * HALF * MIB})};
    s.d = s.f.device;
    s.a = stream_new(s.d, STRATA_STREAM_NON_BLOCKING);
    s.b = stream_new(s.d, STRATA_STREAM_NON_BLOCKING);
    s.c = stream_new(s.d, STRATA_STREAM_NON_BLOCKING);
    EXPECT_OK(strata_device_pool_set(s.d, NULL, STRATA_POOL_REUSE_FOLLOW_EVENTS, follow));
    EXPECT_OK(strata_device_pool_set(s.d, NULL, STRATA_POOL_REUSE_OPPORTUNISTIC, opportunistic));
    EXPECT_OK(strata_device_pool_set(s.d, NULL, STRATA_POOL_REUSE_INTERNAL, 0));
    EXPECT_OK(strata_device_pool_set(s.d, NULL, STRATA_POOL_RELEASE_THRESHOLD, UINT64_MAX));
    s.low = take_of(s.d, NULL, HALF * MIB, s.a);
    s.high = take_of(s.d, NULL, HALF * MIB, s.a);
    EXPECT_EQ(s.high, s.low + HALF * MIB);
    return s;
}

static void free_after_work(halves_t *s, strata_address_t address, strata_handle_t stream) {
    EXPECT_OK(strata_device_work(s->d, stream, 1000 * US, NULL, 0));
    EXPECT_OK(strata_device_free_async(s->d, address, stream));
}

static bool can_take(halves_t *s, uint64_t mib, strata_handle_t stream) {
    strata_address_t address = 0;
    strata_status_t status = strata_device_malloc_async(s->d, NULL, mib * MIB, stream, &address);
    if (status == STRATA_OK) EXPECT_OK(strata_device_free_async(s->d, address, stream));
    EXPECT_TRUE(status == STRATA_OK || status == STRATA_E_NO_MEMORY);
    EXPECT_OK(strata_sim_validate(s->f.world));
    return status == STRATA_OK;
}

/* Whichever half was freed later, the whole is free when that is: by the clock and by events. */
TEST(sim_pool_rules, a_joined_block_is_free_when_its_later_part_is) {
    for (int low_first = 0; low_first < 2; low_first++) {
        for (int follow = 0; follow < 2; follow++) {
            halves_t s CLOSED_BY(halves_close) = halves_open(follow, !follow);
            strata_handle_t between = event_new(s.d), after = event_new(s.d);
            free_after_work(&s, low_first ? s.low : s.high, s.a);
            uint64_t first = strata_sim_stream_end(s.d, s.a);
            ASSERT_OK(strata_device_event_record(s.d, between, s.a));
            free_after_work(&s, low_first ? s.high : s.low, s.a);
            ASSERT_OK(strata_device_event_record(s.d, after, s.a));
            if (follow) ASSERT_OK(strata_device_stream_wait(s.d, s.b, between));
            else strata_sim_advance_to(s.f.world, first);
            EXPECT_FALSE(can_take(&s, 2 * HALF, s.b));
            if (follow) ASSERT_OK(strata_device_stream_wait(s.d, s.b, after));
            else strata_sim_advance_to(s.f.world, strata_sim_stream_end(s.d, s.a));
            EXPECT_TRUE(can_take(&s, 2 * HALF, s.b));
        }
    }
}

/* What is cut off a block that its stream takes again is as free as the whole was, and no freer. */
TEST_WAYS(sim_pool_rules, the_rest_of_a_block_waits_as_the_whole_did, follow, 2, halves_t, s, halves_close,
          *s = halves_open(follow, !follow)) {
    strata_handle_t before = event_new(s->d), after = event_new(s->d);
    ASSERT_OK(strata_device_event_record(s->d, before, s->a));
    free_after_work(s, s->low, s->a);
    ASSERT_OK(strata_device_event_record(s->d, after, s->a));
    EXPECT_EQ(take_of(s->d, NULL, HALF / 2 * MIB, s->a), s->low);
    ASSERT_OK(strata_device_stream_wait(s->d, s->b, before));
    EXPECT_FALSE(can_take(s, HALF / 2, s->b));
    if (follow) ASSERT_OK(strata_device_stream_wait(s->d, s->b, after));
    else strata_sim_advance_to(s->f.world, strata_sim_stream_end(s->d, s->a));
    EXPECT_TRUE(can_take(s, HALF / 2, s->b));
    EXPECT_FALSE(can_take(s, HALF, s->b));
}

/* A block that is anybody's and one that is a stream's stay two, whichever lies below. */
TEST_WAYS(sim_pool_rules, what_is_anybodys_does_not_join_what_is_a_streams, low_first, 2, halves_t, s, halves_close,
          *s = halves_open(false, false)) {
    free_after_work(s, low_first ? s->low : s->high, s->a);
    ASSERT_OK(strata_device_stream_synchronise(s->d, s->a));
    free_after_work(s, low_first ? s->high : s->low, s->a);
    EXPECT_FALSE(can_take(s, 2 * HALF, s->b));
    EXPECT_TRUE(can_take(s, HALF, s->b));
    EXPECT_FALSE(can_take(s, 2 * HALF, s->a)); /* B's free has made half of it B's */
    ASSERT_OK(strata_device_synchronise(s->d));
    EXPECT_TRUE(can_take(s, 2 * HALF, s->c));
}

/* Halves of two streams are one once both frees are done by the clock: for who may have them so, and for a trim. */
TEST(sim_pool_rules, frees_of_two_streams_join_once_both_are_done) {
    halves_t s = halves_open(false, true);
    free_after_work(&s, s.low, s.a);
    free_after_work(&s, s.high, s.b);
    uint64_t both = strata_sim_device_end(s.d), price = (uint64_t)strata_sim_profile("h100")->malloc_async.fixed_ns;
    strata_sim_advance_to(s.f.world, both - 1 - price); /* the call's price is paid before the pool is asked */
    EXPECT_FALSE(can_take(&s, 2 * HALF, s.c));
    strata_sim_advance_to(s.f.world, both);
    EXPECT_TRUE(can_take(&s, 2 * HALF, s.c));
    fixture_close(&s.f);
    s = halves_open(false, false);
    free_after_work(&s, s.low, s.a);
    free_after_work(&s, s.high, s.b);
    strata_sim_advance_to(s.f.world, strata_sim_device_end(s.d));
    ASSERT_OK(strata_device_pool_trim(s.d, NULL, 0));
    EXPECT_EQ(figures_of(s.d).used_bytes, 0);
    fixture_close(&s.f);
}

TEST(sim_pool_rules, a_free_is_done_at_its_moment_and_no_earlier) {
    for (uint64_t early = 0; early < 2; early++) {
        halves_t s CLOSED_BY(halves_close) = halves_open(false, true);
        free_after_work(&s, s.low, s.a);
        uint64_t cost = (uint64_t)strata_sim_profile("h100")->malloc_async.fixed_ns; /* paid before the pool is asked */
        strata_sim_advance_to(s.f.world, strata_sim_stream_end(s.d, s.a) - cost - early);
        EXPECT_EQ(can_take(&s, HALF, s.b), !early);
    }
}

/* A blocking stream's free is after the legacy stream's work, though the stream itself has none. */
TEST_WITH(sim_pool_rules, a_free_on_a_blocking_stream_is_after_legacy_work, halves_t, s, halves_close,
          *s = halves_open(false, true)) {
    strata_handle_t blocking = stream_new(s->d, STRATA_STREAM_BLOCKING);
    ASSERT_OK(strata_device_work(s->d, NULL, 1000 * US, NULL, 0));
    ASSERT_OK(strata_device_free_async(s->d, s->low, blocking));
    EXPECT_FALSE(can_take(s, HALF, s->b));
    strata_sim_advance_to(s->f.world, strata_sim_stream_end(s->d, NULL));
    EXPECT_TRUE(can_take(s, HALF, s->b));
}

typedef struct ahead {
    halves_t *s;
    uint64_t at;
} ahead_t;

static void *free_ahead(void *argument) {
    const ahead_t *ahead = argument;
    strata_sim_advance_to(ahead->s->f.world, ahead->at);
    EXPECT_OK(strata_device_free_async(ahead->s->d, ahead->s->low, ahead->s->a));
    return NULL;
}

/* A free of a thread whose clock is ahead is done when it was made, by the clock of who asks. */
TEST_WITH(sim_pool_rules, a_free_is_done_no_earlier_than_it_was_made, halves_t, s, halves_close, *s = halves_open(false, true)) {
    ahead_t ahead = {s, strata_sim_now(s->f.world) + 1000 * US};
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, NULL, free_ahead, &ahead), 0);
    pthread_join(thread, NULL);
    EXPECT_LT(strata_sim_now(s->f.world), ahead.at);
    EXPECT_FALSE(can_take(s, HALF, s->b));
    strata_sim_advance_to(s->f.world, ahead.at + 1000); /* the free's own price went before */
    EXPECT_TRUE(can_take(s, HALF, s->b));
}

/* Made to wait for a free that is done, a stream keeps the end that it has. */
TEST_WITH(sim_pool_rules, a_stream_made_to_wait_never_ends_earlier, halves_t, s, halves_close, *s = halves_open(false, false)) {
    ASSERT_OK(strata_device_pool_set(s->d, NULL, STRATA_POOL_REUSE_INTERNAL, 1));
    ASSERT_OK(strata_device_work(s->d, s->b, 9000 * US, NULL, 0));
    uint64_t end = strata_sim_stream_end(s->d, s->b);
    free_after_work(s, s->low, s->a);
    EXPECT_TRUE(can_take(s, HALF, s->b));
    EXPECT_EQ(strata_sim_stream_end(s->d, s->b), end);
}

/* ---- figures and attributes ---- */

static const strata_pool_attribute_t switches[] = {STRATA_POOL_REUSE_FOLLOW_EVENTS, STRATA_POOL_REUSE_OPPORTUNISTIC,
                                                   STRATA_POOL_REUSE_INTERNAL};

TEST_WORLD(sim_pool_rules, each_attribute_is_its_own, 0) {
    strata_handle_t pool;
    ASSERT_OK(strata_device_pool_create(f->device, 0, false, &pool));
    for (size_t off = 0; off < 3; off++) {
        ASSERT_OK(strata_device_pool_set(f->device, pool, switches[off], 0));
        for (size_t i = 0; i < 3; i++) EXPECT_EQ(of_pool(f->device, pool, switches[i]), i != off);
        ASSERT_OK(strata_device_pool_set(f->device, pool, switches[off], 7));
        EXPECT_EQ(of_pool(f->device, pool, switches[off]), 1);
    }
    ASSERT_OK(strata_device_pool_set(f->device, pool, STRATA_POOL_RELEASE_THRESHOLD, 12345));
    EXPECT_EQ(of_pool(f->device, pool, STRATA_POOL_RELEASE_THRESHOLD), 12345);
    EXPECT_EQ(of_pool(f->device, NULL, STRATA_POOL_RELEASE_THRESHOLD), 0);
}

/* The highest of each stays until it is set back, to what there is then. */
TEST_WORLD(sim_pool_rules, the_highest_marks_stay_and_are_set_back_to_what_is, 0) {
    strata_address_t a = take_of(f->device, NULL, 40 * MIB, NULL), b = take_of(f->device, NULL, 100 * MIB, NULL);
    ASSERT_OK(strata_device_free_async(f->device, b, NULL));
    ASSERT_OK(strata_device_synchronise(f->device));
    strata_address_t c = take_of(f->device, NULL, MIB, NULL); /* in a chunk of 32 MiB */
    EXPECT_EQ(of_pool(f->device, NULL, STRATA_POOL_RESERVED_CURRENT), 72 * MIB);
    EXPECT_EQ(of_pool(f->device, NULL, STRATA_POOL_RESERVED_HIGH), 140 * MIB);
    EXPECT_EQ(of_pool(f->device, NULL, STRATA_POOL_USED_CURRENT), 41 * MIB);
    EXPECT_EQ(of_pool(f->device, NULL, STRATA_POOL_USED_HIGH), 140 * MIB);
    ASSERT_OK(strata_device_pool_set(f->device, NULL, STRATA_POOL_RESERVED_HIGH, 0));
    EXPECT_EQ(of_pool(f->device, NULL, STRATA_POOL_RESERVED_HIGH), 72 * MIB);
    EXPECT_EQ(of_pool(f->device, NULL, STRATA_POOL_USED_HIGH), 140 * MIB);
    ASSERT_OK(strata_device_pool_set(f->device, NULL, STRATA_POOL_USED_HIGH, 0));
    EXPECT_EQ(of_pool(f->device, NULL, STRATA_POOL_USED_HIGH), 41 * MIB);
    ASSERT_OK(strata_device_free_async(f->device, a, NULL));
    ASSERT_OK(strata_device_free_async(f->device, c, NULL));
}

/* One wait of the host is every pool's, and what they take to give back adds up. */
TEST_WORLD(sim_pool_rules, a_wait_lets_every_pool_give_back_and_the_time_adds_up, 0) {
    strata_handle_t pools[3] = {NULL};
    ASSERT_OK(strata_device_pool_create(f->device, 0, false, &pools[1]));
    ASSERT_OK(strata_device_pool_create(f->device, 0, false, &pools[2]));
    uint64_t chunk = 1800 + 40 * 1320;
    for (uint64_t round = 1; round <= 2; round++) {
        strata_address_t blocks[3];
        for (int i = 0; i < 3; i++) blocks[i] = take_of(f->device, pools[i], 40 * MIB, NULL);
        for (int i = 0; i < 3; i++) ASSERT_OK(strata_device_free_async(f->device, blocks[i], NULL));
        ASSERT_OK(strata_device_synchronise(f->device));
        EXPECT_EQ(figures_of(f->device).used_bytes, 0);
        EXPECT_EQ(figures_of(f->device).pool_return_ns, round * 3 * chunk);
    }
}

TEST_WORLD(sim_pool_rules, access_is_given_to_one_device_after_another, .devices = 3) {
    strata_device_t *third;
    strata_handle_t pool;
    ASSERT_OK(strata_sim_open(f->world, 2, &third));
    ASSERT_OK(strata_device_pool_create(f->device, 0, false, &pool));
    const strata_access_t access = {take_of(f->device, pool, MIB, NULL), 1, false};
    ASSERT_OK(strata_device_enable_peer(f->other, 0)); /* of malloc memory alone */
    EXPECT_STATUS(STRATA_E_DEVICE_LOST, strata_device_work(f->other, NULL, 1, &access, 1));
    strata_sim_clear_faults(f->other);
    ASSERT_OK(strata_device_pool_set_access(f->device, pool, 1));
    EXPECT_STATUS(STRATA_E_DEVICE_LOST, strata_device_work(third, NULL, 1, &access, 1));
    strata_sim_clear_faults(third);
    ASSERT_OK(strata_device_pool_set_access(f->device, pool, 2));
    EXPECT_OK(strata_device_work(f->other, NULL, 1, &access, 1));
    EXPECT_OK(strata_device_work(third, NULL, 1, &access, 1));
    strata_device_close(third);
}

TEST_WORLD_WAYS(sim_pool_rules, a_pool_without_live_blocks_goes_with_its_memory_at_once, shareable, 2, 0) {
    strata_handle_t pool;
    ASSERT_OK(strata_device_pool_create(f->device, 0, shareable, &pool));
    strata_address_t block = take_of(f->device, pool, 40 * MIB, NULL);
    ASSERT_OK(strata_device_free_async(f->device, block, NULL));
    EXPECT_EQ(figures_of(f->device).used_bytes, 40 * MIB);
    ASSERT_OK(strata_device_pool_destroy(f->device, pool));
    EXPECT_EQ(figures_of(f->device).used_bytes, 0);
}

/* Exactly the largest size is served; a chunk that does not fit under it is made as small as the request. */
TEST_WORLD(sim_pool_rules, a_pool_is_filled_to_its_largest_size, 0) {
    strata_handle_t pool;
    strata_address_t none;
    ASSERT_OK(strata_device_pool_create(f->device, 40 * MIB, false, &pool));
    take_of(f->device, pool, 20 * MIB, NULL); /* a chunk of 32 MiB */
    take_of(f->device, pool, 12 * MIB, NULL);
    take_of(f->device, pool, 8 * MIB, NULL); /* and one of 8 */
    EXPECT_EQ(of_pool(f->device, pool, STRATA_POOL_RESERVED_CURRENT), 40 * MIB);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_malloc_async(f->device, pool, 1, NULL, &none));
}
