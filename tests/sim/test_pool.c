/* Memory in stream order: the rules of reuse, growth and release. */
#include "tests/sim/sim_fixture.h"

static strata_address_t take(strata_device_t *device, uint64_t size, strata_handle_t stream) {
    strata_address_t address = 0;
    EXPECT_OK(strata_device_malloc_async(device, NULL, size, stream, &address));
    return address;
}

static void give(strata_device_t *device, strata_address_t address, strata_handle_t stream) {
    EXPECT_OK(strata_device_free_async(device, address, stream));
}

static uint64_t attribute(strata_device_t *device, strata_pool_attribute_t which) {
    uint64_t value = 0;
    EXPECT_OK(strata_device_pool_get(device, NULL, which, &value));
    return value;
}

/* Two streams, the pool's three permissions as given; A has freed a block of 20 MiB after 1 ms of work. */
typedef struct reuse {
    fixture_t f;
    strata_handle_t a, b;
    strata_address_t block;
} reuse_t;

static reuse_t reuse_open(bool follow, bool opportunistic, bool internal, uint64_t capacity) {
    reuse_t r = {.f = fixture_open((strata_sim_options_t){.capacity = capacity})};
    strata_device_t *device = r.f.device;
    r.a = stream_new(device, STRATA_STREAM_NON_BLOCKING);
    r.b = stream_new(device, STRATA_STREAM_NON_BLOCKING);
    EXPECT_OK(strata_device_pool_set(device, NULL, STRATA_POOL_REUSE_FOLLOW_EVENTS, follow));
    EXPECT_OK(strata_device_pool_set(device, NULL, STRATA_POOL_REUSE_OPPORTUNISTIC, opportunistic));
    EXPECT_OK(strata_device_pool_set(device, NULL, STRATA_POOL_REUSE_INTERNAL, internal));
    EXPECT_OK(strata_device_pool_set(device, NULL, STRATA_POOL_RELEASE_THRESHOLD, UINT64_MAX));
    r.block = take(device, 20 * MIB, r.a);
    EXPECT_OK(strata_device_work(device, r.a, 1000 * US, NULL, 0));
    give(device, r.block, r.a);
    return r;
}

static void reuse_close(reuse_t *r) { fixture_close(&r->f); }

TEST_WITH(sim_pool, the_same_stream_has_its_block_back_at_once, reuse_t, r, reuse_close, *r = reuse_open(false, false, false, 0)) {
    EXPECT_EQ(take(r->f.device, 20 * MIB, r->a), r->block);
    EXPECT_EQ(attribute(r->f.device, STRATA_POOL_RESERVED_CURRENT), 32 * MIB);
}

TEST_WITH(sim_pool, another_stream_gets_new_memory, reuse_t, r, reuse_close, *r = reuse_open(true, true, true, 0)) {
    EXPECT_NE(take(r->f.device, 20 * MIB, r->b), r->block);
    EXPECT_EQ(attribute(r->f.device, STRATA_POOL_RESERVED_CURRENT), 64 * MIB);
}

TEST(sim_pool, a_stream_that_waited_for_the_free_may_reuse) {
    for (int follow = 0; follow < 2; follow++) {
        for (int late = 0; late < 2; late++) {
            reuse_t r CLOSED_BY(reuse_close) = reuse_open(follow, false, false, 0);
            strata_address_t second = take(r.f.device, 20 * MIB, r.a);
            strata_handle_t event = event_new(r.f.device);
            if (!late) give(r.f.device, second, r.a);
            ASSERT_OK(strata_device_event_record(r.f.device, event, r.a));
            if (late) give(r.f.device, second, r.a);
            ASSERT_OK(strata_device_stream_wait(r.f.device, r.b, event));
            EXPECT_EQ(take(r.f.device, 20 * MIB, r.b) == second, follow && !late);
        }
    }
}

TEST_WAYS(sim_pool, a_free_that_is_done_may_be_reused_opportunistically, on, 2, reuse_t, r, reuse_close,
          *r = reuse_open(false, on, false, 0)) {
    strata_sim_advance_to(r->f.world, strata_sim_device_end(r->f.device));
    EXPECT_EQ(take(r->f.device, 20 * MIB, r->b) == r->block, on);
}

TEST_WITH(sim_pool, a_host_wait_makes_frees_anybodys, reuse_t, r, reuse_close, *r = reuse_open(false, false, false, 0)) {
    ASSERT_OK(strata_device_stream_synchronise(r->f.device, r->a));
    EXPECT_EQ(take(r->f.device, 20 * MIB, r->b), r->block);
}

TEST_WAYS(sim_pool, without_memory_the_stream_is_made_to_wait, on, 2, reuse_t, r, reuse_close,
          *r = reuse_open(false, false, on, 32 * MIB)) {
    strata_address_t address = 1;
    strata_status_t status = strata_device_malloc_async(r->f.device, NULL, 20 * MIB, r->b, &address);
    EXPECT_EQ(status, on ? STRATA_OK : STRATA_E_NO_MEMORY);
    EXPECT_EQ(address, on ? r->block : 1);
    EXPECT_EQ(strata_sim_stream_end(r->f.device, r->b), on ? strata_sim_stream_end(r->f.device, r->a) : 0);
}

TEST_WORLD(sim_pool, what_is_above_the_threshold_goes_back_at_a_wait, 0) {
    strata_address_t a[3];
    for (int i = 0; i < 3; i++) a[i] = take(f->device, 40 * MIB, NULL);
    EXPECT_EQ(figures_of(f->device).used_bytes, 120 * MIB);
    ASSERT_OK(strata_device_pool_set(f->device, NULL, STRATA_POOL_RELEASE_THRESHOLD, 80 * MIB));
    for (int i = 0; i < 3; i++) give(f->device, a[i], NULL);
    EXPECT_EQ(figures_of(f->device).used_bytes, 120 * MIB);
    EXPECT_EQ(figures_of(f->device).pool_return_ns, 0);
    ASSERT_OK(strata_device_synchronise(f->device));
    EXPECT_EQ(figures_of(f->device).used_bytes, 80 * MIB);
    EXPECT_EQ(figures_of(f->device).pool_return_ns, 1800 + 40 * 1320);
    ASSERT_OK(strata_device_pool_trim(f->device, NULL, 1));
    EXPECT_EQ(figures_of(f->device).used_bytes, 0);
    EXPECT_EQ(figures_of(f->device).pool_return_ns, 1800 + 40 * 1320); /* the trim is a call of its own */
    EXPECT_EQ(attribute(f->device, STRATA_POOL_RESERVED_HIGH), 120 * MIB);
    EXPECT_EQ(attribute(f->device, STRATA_POOL_USED_HIGH), 120 * MIB);
}

TEST_WORLD(sim_pool, trim_leaves_frees_that_are_not_done, 0) {
    strata_address_t a = take(f->device, 40 * MIB, NULL);
    ASSERT_OK(strata_device_work(f->device, NULL, 1000 * US, NULL, 0));
    give(f->device, a, NULL);
    ASSERT_OK(strata_device_pool_trim(f->device, NULL, 0));
    EXPECT_EQ(attribute(f->device, STRATA_POOL_RESERVED_CURRENT), 40 * MIB);
}

TEST_WORLD(sim_pool, blocks_split_and_join_again, 0) {
    strata_address_t a[32];
    for (int i = 0; i < 32; i++) a[i] = take(f->device, MIB - 100, NULL);
    EXPECT_EQ(attribute(f->device, STRATA_POOL_RESERVED_CURRENT), 32 * MIB);
    EXPECT_EQ(attribute(f->device, STRATA_POOL_USED_CURRENT), 32 * MIB);
    for (int i = 0; i < 32; i += 2) give(f->device, a[i], NULL);
    EXPECT_OK(strata_sim_validate(f->world));
    for (int i = 1; i < 32; i += 2) give(f->device, a[i], NULL);
    EXPECT_OK(strata_sim_validate(f->world));
    EXPECT_EQ(take(f->device, 32 * MIB, NULL), a[0]);
}

TEST_WORLD(sim_pool, growth_falls_back_to_what_is_asked, .capacity = 8 * MIB) {
    strata_address_t none = 3, a = take(f->device, 5 * MIB, NULL);
    EXPECT_EQ(figures_of(f->device).used_bytes, 6 * MIB);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_malloc_async(f->device, NULL, 3 * MIB, NULL, &none));
    EXPECT_EQ(none, 3);
    give(f->device, a, NULL);
}

TEST_WORLD(sim_pool, pools_of_ones_own_are_bounded_and_end_with_their_last_block, .devices = 2) {
    strata_handle_t pool, own;
    strata_address_t a, none;
    ASSERT_OK(strata_device_pool_create(f->device, 40 * MIB, false, &pool));
    ASSERT_OK(strata_device_malloc_async(f->device, pool, 30 * MIB, NULL, &a));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_malloc_async(f->device, pool, 30 * MIB, NULL, &none));
    const strata_access_t access = {a, 1, false};
    ASSERT_OK(strata_device_pool_set_access(f->device, pool, 1));
    EXPECT_OK(strata_device_work(f->other, NULL, 1, &access, 1));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_pool_set_access(f->device, pool, 9));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_pool_destroy(f->other, pool));
    ASSERT_OK(strata_device_pool_destroy(f->device, pool));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_malloc_async(f->device, pool, MIB, NULL, &none));
    EXPECT_EQ(figures_of(f->device).used_bytes, 32 * MIB);
    give(f->device, a, NULL);
    EXPECT_EQ(figures_of(f->device).used_bytes, 0);
    ASSERT_OK(strata_device_pool_default(f->device, &own));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_pool_destroy(f->device, own));
    EXPECT_OK(strata_device_pool_trim(f->device, own, 0));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_pool_set(f->device, own, STRATA_POOL_USED_CURRENT, 0));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_pool_set(f->device, own, STRATA_POOL_USED_HIGH, 1));
    EXPECT_OK(strata_device_pool_set(f->device, own, STRATA_POOL_USED_HIGH, 0));
}

TEST_WORLD(sim_pool, wrong_frees_are_refused, .devices = 2) {
    strata_address_t a = take(f->device, MIB, NULL), m = get(f->device, 2 * MIB);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free_async(f->device, a + 512, NULL));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free_async(f->other, a, NULL));
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, strata_device_free_async(f->device, m, NULL));
    put(f->device, a); /* a plain free takes it too */
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free_async(f->device, a, NULL));
    EXPECT_EQ(take(f->device, MIB, NULL), a);
}

TEST_WORLD(sim_pool, a_hit_is_cheap_and_growth_costs_by_the_chunk, 0) {
    uint64_t t = strata_sim_now(f->world);
    strata_address_t a = take(f->device, MIB, NULL);
    EXPECT_EQ(strata_sim_now(f->world) - t, 470 + 18700 + 32 * 983);
    t = strata_sim_now(f->world);
    give(f->device, a, NULL);
    take(f->device, MIB, NULL);
    EXPECT_EQ(strata_sim_now(f->world) - t, 690 + 470);
}
