/* What pools keep, who may have what, and what it costs, to the letter of platform/sim/sim_pool.h. */
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
            fixture_t f = fixture_open((strata_sim_options_t){0});
            strata_handle_t pool;
            ASSERT_OK(strata_device_pool_create(f.device, 0, shareable, &pool));
            strata_address_t block = take_of(f.device, pool, 40 * MIB, NULL);
            ASSERT_OK(strata_device_free_async(f.device, block, NULL));
            give_back(f.device, pool, how);
            EXPECT_EQ(figures_of(f.device).used_bytes, shareable ? 40 * MIB : 0);
            EXPECT_EQ(of_pool(f.device, pool, STRATA_POOL_RESERVED_CURRENT), shareable ? 40 * MIB : 0);
            EXPECT_EQ(take_of(f.device, pool, 40 * MIB, NULL) == block, shareable);
            ASSERT_OK(strata_device_pool_destroy(f.device, pool));
            fixture_close(&f);
        }
    }
}

/* ---- who may have what ---- */

typedef struct followed {
    fixture_t f;
    strata_handle_t pool, a, b, before, behind;
    strata_address_t block;
} followed_t;

/* A frees a block between two events; only waits count, not time. */
static followed_t followed_open(void) {
    followed_t s = {.f = fixture_open((strata_sim_options_t){0})};
    strata_device_t *d = s.f.device;
    s.a = stream_new(d, STRATA_STREAM_NON_BLOCKING);
    s.b = stream_new(d, STRATA_STREAM_NON_BLOCKING);
    s.before = event_new(d);
    s.behind = event_new(d);
    EXPECT_OK(strata_device_pool_create(d, 0, false, &s.pool));
    EXPECT_OK(strata_device_pool_set(d, s.pool, STRATA_POOL_REUSE_OPPORTUNISTIC, 0));
    EXPECT_OK(strata_device_pool_set(d, s.pool, STRATA_POOL_REUSE_INTERNAL, 0));
    s.block = take_of(d, s.pool, 20 * MIB, s.a);
    EXPECT_OK(strata_device_work(d, s.a, 1000 * US, NULL, 0));
    EXPECT_OK(strata_device_event_record(d, s.before, s.a));
    EXPECT_OK(strata_device_free_async(d, s.block, s.a));
    EXPECT_OK(strata_device_event_record(d, s.behind, s.a));
    return s;
}

static bool has_it(followed_t *s, strata_handle_t stream) {
    return take_of(s->f.device, s->pool, 20 * MIB, stream) == s->block;
}

TEST(sim_pool_rules, a_wait_for_an_older_event_takes_nothing_from_a_newer_one) {
    followed_t s = followed_open();
    ASSERT_OK(strata_device_stream_wait(s.f.device, s.b, s.behind));
    ASSERT_OK(strata_device_stream_wait(s.f.device, s.b, s.before));
    EXPECT_TRUE(has_it(&s, s.b));
    fixture_close(&s.f);
}

TEST(sim_pool_rules, a_wait_for_an_event_before_the_free_gives_nothing) {
    followed_t s = followed_open();
    ASSERT_OK(strata_device_stream_wait(s.f.device, s.b, s.before));
    EXPECT_FALSE(has_it(&s, s.b));
    fixture_close(&s.f);
}

/* A stream keeps in mind sixteen others that it waited for, and forgets the one that it waited for longest ago. */
TEST(sim_pool_rules, the_stream_waited_for_longest_ago_is_forgotten) {
    for (int others = 15; others <= 16; others++) {
        for (int again = 0; again < 2; again++) {
            followed_t s = followed_open();
            strata_handle_t event = event_new(s.f.device);
            ASSERT_OK(strata_device_stream_wait(s.f.device, s.b, s.behind));
            for (int i = 0; i < others; i++) {
                ASSERT_OK(strata_device_event_record(s.f.device, event, stream_new(s.f.device, STRATA_STREAM_NON_BLOCKING)));
                ASSERT_OK(strata_device_stream_wait(s.f.device, s.b, event));
                if (again && i == 0) ASSERT_OK(strata_device_stream_wait(s.f.device, s.b, s.before));
            }
            EXPECT_EQ(has_it(&s, s.b), others == 15 || again);
            fixture_close(&s.f);
        }
    }
}
