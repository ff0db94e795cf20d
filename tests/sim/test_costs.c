/* What each call costs its thread, once; what refused ones cost; and that queries answer as of the moment of the call. */
#include <unistd.h>

#include "tests/sim/sim_fixture.h"

/* A price for each call that no other has: the i-th costs 1000 + i ns, and twice that for each MiB. */
static strata_sim_profile_t priced(void) {
    strata_sim_profile_t profile = *strata_sim_profile("h100");
    double price = 1000;
#define PRICE(name, meaning)                                                                                                       \
    profile.name = (strata_sim_cost_t){.fixed_ns = price, .per_mib_ns = 2 * price};                                                \
    price++;
    STRATA_SIM_COST_MAP(PRICE)
#undef PRICE
    return profile;
}

static uint64_t cost_of(const strata_sim_cost_t *cost, uint64_t mib) {
    return (uint64_t)(cost->fixed_ns + cost->per_mib_ns * (double)mib);
}

/* A device that nothing runs on, and things of it. */
typedef struct idle {
    strata_sim_profile_t profile;
    fixture_t f;
    strata_device_t *d;
    uint64_t before;
    strata_handle_t stream, brief, event, graph;
    strata_address_t device, managed, pinned, warm, range, out;
    strata_physical_t handle, shared, got;
    mapped_t mapped;
    int descriptor;
} idle_t;

static void idle_open(idle_t *t) {
    *t = (idle_t){.profile = priced()};
    t->f = fixture_open((strata_sim_options_t){.devices = 2, .profile = &t->profile});
    strata_device_t *d = t->d = t->f.device;
    t->stream = stream_new(d, STRATA_STREAM_NON_BLOCKING);
    t->brief = stream_new(d, STRATA_STREAM_NON_BLOCKING);
    t->event = event_new(d);
    t->device = get(d, 4 * MIB);
    EXPECT_OK(strata_device_malloc(d, STRATA_MEMORY_MANAGED, 4 * MIB, &t->managed));
    EXPECT_OK(strata_device_host_alloc(d, STRATA_MEMORY_PINNED, 4 * MIB, 64, 0, &t->pinned));
    EXPECT_OK(strata_device_malloc_async(d, NULL, 4 * MIB, t->stream, &t->warm));
    EXPECT_OK(strata_device_reserve(d, 4 * MIB, 0, &t->range));
    EXPECT_OK(strata_device_create(d, 4 * MIB, false, &t->handle));
    EXPECT_OK(strata_device_create(d, 2 * MIB, true, &t->shared));
    EXPECT_OK(strata_device_export_memory(d, t->shared, &t->descriptor));
    t->mapped = map_new(d, 4 * MIB);
    EXPECT_OK(strata_device_capture_begin(d, t->stream, STRATA_CAPTURE_RELAXED));
    EXPECT_OK(strata_device_capture_end(d, t->stream, &t->graph));
    strata_sim_advance_to(t->f.world, strata_sim_device_end(d));
    t->before = strata_sim_now(t->f.world);
}

static void idle_close(idle_t *t) {
    close(t->descriptor);
    fixture_close(&t->f);
}

#define TEST_IDLE(name) TEST_WITH(sim_costs, name, idle_t, t, idle_close, idle_open(t))

#define CALLS(X)                                                                                                                   \
    X(malloc, 4, strata_device_malloc(t->d, STRATA_MEMORY_DEVICE, 4 * MIB, &t->out))                                               \
    X(free, 4, strata_device_free(t->d, STRATA_MEMORY_DEVICE, t->device))                                                          \
    X(managed_free, 4, strata_device_free(t->d, STRATA_MEMORY_MANAGED, t->managed))                                                \
    X(managed_malloc, 4, strata_device_malloc(t->d, STRATA_MEMORY_MANAGED, 4 * MIB, &t->out))                                      \
    X(host_alloc, 4, strata_device_host_alloc(t->d, STRATA_MEMORY_PINNED, 4 * MIB, 64, 0, &t->out))                                \
    X(host_free, 4, strata_device_host_free(t->d, STRATA_MEMORY_PINNED, t->pinned))                                                \
    X(malloc_async, 4, strata_device_malloc_async(t->d, NULL, 4 * MIB, t->stream, &t->out))                                        \
    X(free_async, 4, strata_device_free_async(t->d, t->warm, t->stream))                                                           \
    X(reserve, 4, strata_device_reserve(t->d, 4 * MIB, 0, &t->out))                                                                \
    X(unreserve, 4, strata_device_unreserve(t->d, t->range, 4 * MIB))                                                              \
    X(create, 4, strata_device_create(t->d, 4 * MIB, false, &t->got))                                                              \
    X(map, 4, strata_device_map(t->d, t->range, 4 * MIB, t->handle))                                                               \
    X(set_access, 4, strata_device_set_access(t->d, t->mapped.address, 4 * MIB, NULL, 0))                                          \
    X(unmap, 4, strata_device_unmap(t->d, t->mapped.address, 4 * MIB))                                                             \
    X(release, 4, strata_device_release(t->d, t->handle))                                                                          \
    X(release, 4, strata_device_release(t->d, t->mapped.physical))                                                                 \
    X(event_create, 0, strata_device_event_create(t->d, &t->event))                                                                \
    X(event_destroy, 0, strata_device_event_destroy(t->d, t->event))                                                               \
    X(event_record, 0, strata_device_event_record(t->d, t->event, t->stream))                                                      \
    X(event_query, 0, strata_device_event_query(t->d, t->event))                                                                   \
    X(event_query, 0, strata_device_stream_query(t->d, t->stream))                                                                 \
    X(stream_wait, 0, strata_device_stream_wait(t->d, t->stream, t->event))                                                        \
    X(stream_create, 0, strata_device_stream_create(t->d, STRATA_STREAM_BLOCKING, 0, &t->stream))                                  \
    X(stream_destroy, 0, strata_device_stream_destroy(t->d, t->brief))                                                             \
    X(synchronise, 0, strata_device_synchronise(t->d))                                                                             \
    X(synchronise, 0, strata_device_stream_synchronise(t->d, t->stream))                                                           \
    X(synchronise, 0, strata_device_event_synchronise(t->d, t->event))                                                             \
    X(mem_info, 0, strata_device_mem_info(t->d, &t->out, &t->out))                                                                 \
    X(capture_status, 0, strata_device_capture_status(t->d, t->stream, &(strata_capture_status_t){0}, &t->out))                    \
    X(capture_status, 0, strata_device_capture_follows(t->d, t->stream, t->stream, &t->out))                                       \
    X(launch, 0, strata_device_work(t->d, t->stream, 1, NULL, 0))                                                                  \
    X(launch, 0, strata_device_fill(t->d, t->device, 1, 4 * MIB, t->stream))                                                       \
    X(launch, 0, strata_device_graph_launch(t->d, t->graph, t->stream))                                                            \
    X(prefetch, 4, strata_device_prefetch(t->d, t->managed, 4 * MIB, true, t->stream))                                             \
    X(prefetch, 4, strata_device_advise(t->d, t->managed, 4 * MIB, STRATA_ADVISE_SET_PREFERRED, true))                             \
    X(peer, 0, strata_device_enable_peer(t->d, 1))                                                                                 \
    X(peer, 0, strata_device_export_memory(t->d, t->shared, &t->descriptor))                                                       \
    X(peer, 0, strata_device_import_memory(t->d, t->descriptor, &t->got))

#define FREE_CALLS(X)                                                                                                              \
    X(strata_device_stream_id(t->d, t->stream, &t->out))                                                                           \
    X(strata_device_pool_set(t->d, NULL, STRATA_POOL_RELEASE_THRESHOLD, 1))                                                        \
    X(strata_device_pool_get(t->d, NULL, STRATA_POOL_RELEASE_THRESHOLD, &t->out))                                                  \
    X(strata_device_can_access_peer(t->d, 1, &(bool){0}))                                                                          \
    X(strata_device_graph_destroy(t->d, t->graph))                                                                                 \
    X(strata_device_capture_begin(t->d, t->stream, STRATA_CAPTURE_RELAXED))

static void check_cost(idle_t *t, const char *name, uint64_t cost) {
    uint64_t took = strata_sim_now(t->f.world) - t->before;
    if (took != cost) FAIL_TEST("%s took %llu ns, not %llu", name, (unsigned long long)took, (unsigned long long)cost);
    EXPECT_EQ(figures_of(t->d).stall_ns, 0);
}

TEST(sim_costs, each_call_costs_its_own_price_once) {
    idle_t things, *t = &things;
#define ROW(price, mib, call)                                                                                                      \
    {                                                                                                                              \
        idle_open(t);                                                                                                              \
        uint64_t own = figures_of(t->d).device_call_ns;                                                                            \
        EXPECT_OK(call);                                                                                                           \
        check_cost(t, #call, cost_of(&t->profile.price, mib));                                                                     \
        EXPECT_EQ(figures_of(t->d).device_call_ns - own, cost_of(&t->profile.price, mib));                                         \
        idle_close(t);                                                                                                             \
    }
    CALLS(ROW)
#undef ROW
}

TEST(sim_costs, what_only_asks_or_notes_costs_nothing) {
    idle_t things, *t = &things;
#define ROW(call)                                                                                                                  \
    {                                                                                                                              \
        idle_open(t);                                                                                                              \
        EXPECT_OK(call);                                                                                                           \
        check_cost(t, #call, 0);                                                                                                   \
        idle_close(t);                                                                                                             \
    }
    FREE_CALLS(ROW)
#undef ROW
}

/* A call that is refused for its arguments costs nothing; one that finds no memory has been made, and is paid for. */
TEST_IDLE(refused_calls_cost_nothing_unless_memory_ran_out) {
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free(t->d, STRATA_MEMORY_DEVICE, t->device + 512));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_host_free(t->d, STRATA_MEMORY_HOST, t->pinned));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_free_async(t->d, t->warm + 512, t->stream));
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, strata_device_free_async(t->d, t->device, t->stream));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_reserve(t->d, MIB, 0, &t->out));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_unreserve(t->d, t->range, 2 * MIB));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_create(t->d, MIB, false, &t->got));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_map(t->d, t->range, 2 * MIB, t->handle));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_set_access(t->d, t->range, 4 * MIB, NULL, 0));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_unmap(t->d, t->range, 4 * MIB));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_release(t->d, 7));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_event_destroy(t->d, t->stream));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_stream_destroy(t->d, NULL));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_prefetch(t->d, t->device, MIB, true, t->stream));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_fill(t->d, t->range, 1, 1, t->stream));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_enable_peer(t->d, 0));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_export_memory(t->d, t->handle, &(int){0}));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_import_memory(t->d, -1, &t->got));
    check_cost(t, "what is refused", 0);
    ASSERT_OK(strata_sim_fail(t->d, STRATA_CALL_malloc, 1, false, STRATA_E_NO_MEMORY));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_malloc(t->d, STRATA_MEMORY_DEVICE, MIB, &t->out));
    check_cost(t, "what fails on order", 0);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_malloc(t->d, STRATA_MEMORY_DEVICE, 128 * GIB, &t->out));
    check_cost(t, "malloc without memory", cost_of(&t->profile.malloc, 128 * 1024));
    t->before = strata_sim_now(t->f.world);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_create(t->d, 128 * GIB, false, &t->got));
    check_cost(t, "create without memory", cost_of(&t->profile.create, 128 * 1024));
}

/* Two handles cost twice, in one call or in two. */
TEST_IDLE(access_and_unmap_are_paid_for_each_handle) {
    strata_physical_t h[2];
    ASSERT_OK(strata_device_reserve(t->d, 6 * MIB, 0, &t->range));
    ASSERT_OK(strata_device_create(t->d, 2 * MIB, false, &h[0]));
    ASSERT_OK(strata_device_create(t->d, 4 * MIB, false, &h[1]));
    ASSERT_OK(strata_device_map(t->d, t->range, 2 * MIB, h[0]));
    ASSERT_OK(strata_device_map(t->d, t->range + 2 * MIB, 4 * MIB, h[1]));
    t->before = strata_sim_now(t->f.world);
    ASSERT_OK(strata_device_set_access(t->d, t->range, 6 * MIB, NULL, 0));
    check_cost(t, "access", cost_of(&t->profile.set_access, 2) + cost_of(&t->profile.set_access, 4));
    t->before = strata_sim_now(t->f.world);
    ASSERT_OK(strata_device_unmap(t->d, t->range, 6 * MIB));
    check_cost(t, "unmap", cost_of(&t->profile.unmap, 2) + cost_of(&t->profile.unmap, 4));
}

/* Captured calls are paid for when they are made, and what they do costs no host time at the launch. */
TEST_IDLE(captured_calls_cost_as_others) {
    ASSERT_OK(strata_device_capture_begin(t->d, t->stream, STRATA_CAPTURE_RELAXED));
    ASSERT_OK(strata_device_fill(t->d, t->device, 1, MIB, t->stream));
    ASSERT_OK(strata_device_work(t->d, t->stream, 5000, NULL, 0));
    ASSERT_OK(strata_device_prefetch(t->d, t->managed, 2 * MIB, true, t->stream));
    ASSERT_OK(strata_device_event_record(t->d, t->event, t->stream));
    check_cost(t, "captured calls",
               2 * cost_of(&t->profile.launch, 0) + cost_of(&t->profile.prefetch, 2) + cost_of(&t->profile.event_record, 0));
    ASSERT_OK(strata_device_capture_end(t->d, t->stream, &t->graph));
    t->before = strata_sim_now(t->f.world);
    ASSERT_OK(strata_device_graph_launch(t->d, t->graph, t->stream));
    check_cost(t, "a launch", cost_of(&t->profile.launch, 0));
    EXPECT_EQ(strata_sim_stream_end(t->d, t->stream), strata_sim_now(t->f.world) + 5000);
}

/* ---- the moment of a call ---- */

/* A query that costs 1000 ns does not see what ends 999 ns after it was made; one made at the very end does. */
TEST(sim_costs, queries_answer_as_of_the_moment_of_the_call) {
    for (int of_event = 0; of_event < 2; of_event++) {
        for (uint64_t early = 0; early < 2; early++) {
            fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){0});
            strata_handle_t s = stream_new(f.device, STRATA_STREAM_NON_BLOCKING), e = event_new(f.device);
            ASSERT_OK(strata_device_work(f.device, s, 1000 * US, NULL, 0));
            ASSERT_OK(strata_device_event_record(f.device, e, s));
            uint64_t end = strata_sim_stream_end(f.device, s);
            EXPECT_EQ(strata_device_event_ready_at(f.device, e), end);
            strata_sim_advance_to(f.world, end - early);
            strata_status_t status = of_event ? strata_device_event_query(f.device, e) : strata_device_stream_query(f.device, s);
            EXPECT_EQ(status, early ? STRATA_E_NOT_READY : STRATA_OK);
        }
    }
}

/* An event of an idle stream passes when the record was called, not when the call had returned. */
TEST_WORLD(sim_costs, an_event_passes_at_the_moment_of_its_record_at_the_earliest, 0) {
    strata_handle_t s = stream_new(f->device, STRATA_STREAM_NON_BLOCKING), e = event_new(f->device);
    ASSERT_OK(strata_device_work(f->device, s, 1, NULL, 0));
    strata_sim_advance_to(f->world, 1000 * US);
    uint64_t called = strata_sim_now(f->world);
    ASSERT_OK(strata_device_event_record(f->device, e, s));
    EXPECT_GT(strata_sim_now(f->world), called);
    EXPECT_EQ(strata_device_event_ready_at(f->device, e), called);
}

/* The wait comes before the cost: a free, a synchronise and a wait for an event end their price after the work. */
TEST(sim_costs, waits_come_before_the_cost) {
    strata_sim_profile_t profile = priced();
    for (int way = 0; way < 5; way++) {
        fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){.profile = &profile});
        strata_handle_t s = stream_new(f.device, STRATA_STREAM_NON_BLOCKING), e = event_new(f.device);
        strata_address_t address = get(f.device, 2 * MIB), pinned;
        ASSERT_OK(strata_device_host_alloc(f.device, STRATA_MEMORY_PINNED, MIB, 64, 0, &pinned));
        ASSERT_OK(strata_device_work(f.device, s, 1000 * US, NULL, 0));
        ASSERT_OK(strata_device_event_record(f.device, e, s));
        uint64_t end = strata_sim_stream_end(f.device, s), stall = end - strata_sim_now(f.world);
        const strata_sim_cost_t *cost = way == 0 ? &profile.free : way == 1 ? &profile.host_free : &profile.synchronise;
        if (way == 0) put(f.device, address);
        if (way == 1) EXPECT_OK(strata_device_host_free(f.device, STRATA_MEMORY_PINNED, pinned));
        if (way == 2) EXPECT_OK(strata_device_synchronise(f.device));
        if (way == 3) EXPECT_OK(strata_device_stream_synchronise(f.device, s));
        if (way == 4) EXPECT_OK(strata_device_event_synchronise(f.device, e));
        EXPECT_EQ(strata_sim_now(f.world), end + cost_of(cost, way == 0 ? 2 : way == 1 ? 1 : 0));
        EXPECT_EQ(figures_of(f.device).stall_ns, stall);
    }
}

/* A stream that is said to be busy is so after what it was given: its end never moves back, and what orders it counts. */
TEST_WORLD(sim_costs, a_busy_stream_is_so_after_what_it_has, 0) {
    strata_handle_t b = stream_new(f->device, STRATA_STREAM_BLOCKING);
    ASSERT_OK(strata_device_work(f->device, NULL, 1000 * US, NULL, 0));
    uint64_t end = strata_sim_stream_end(f->device, NULL);
    ASSERT_OK(strata_sim_stream_busy_until(f->device, b, 5));
    EXPECT_EQ(strata_sim_stream_end(f->device, b), end);
    ASSERT_OK(strata_sim_stream_busy_until(f->device, b, end + 5));
    EXPECT_EQ(strata_sim_stream_end(f->device, b), end + 5);
    ASSERT_OK(strata_sim_stream_busy_until(f->device, b, end));
    EXPECT_EQ(strata_sim_stream_end(f->device, b), end + 5);
    EXPECT_EQ(strata_sim_device_end(f->device), end + 5);
    EXPECT_STATUS(STRATA_E_UNKNOWN_STREAM, strata_sim_stream_busy_until(f->device, (strata_handle_t)((uintptr_t)b + 16 * 9), 5));
}

/* A reservation beyond the free addresses is refused at once, so only the fixed part of its cost is charged. */
TEST(sim_costs, a_refused_reservation_costs_no_time_for_its_size) {
    strata_sim_profile_t profile = priced();
    profile.address_bytes = 64 * MIB;
    fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){.profile = &profile});
    strata_address_t address;
    static const uint64_t sizes[] = {66 * MIB, UINT64_C(1) << 62};
    for (int i = 0; i < 2; i++) {
        uint64_t before = strata_sim_now(f.world);
        EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_device_reserve(f.device, sizes[i], 0, &address));
        EXPECT_EQ(strata_sim_now(f.world) - before, cost_of(&profile.reserve, 0));
    }
    uint64_t before = strata_sim_now(f.world);
    EXPECT_OK(strata_device_reserve(f.device, 64 * MIB, 0, &address));
    EXPECT_EQ(strata_sim_now(f.world) - before, cost_of(&profile.reserve, 64));
    EXPECT_OK(strata_device_unreserve(f.device, address, 64 * MIB));
}

/* Ranges above 8 GiB were not measured, so their price does not grow. An allocator may reserve far more than the memory. */
TEST(sim_costs, a_range_above_8_gib_costs_no_more) {
    enum { GIB_IN_MIB = 1024 };
    strata_sim_profile_t profile = priced();
    fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){.profile = &profile});
    static const uint64_t sizes[][2] = {
        {7 * GIB_IN_MIB, 7 * GIB_IN_MIB},
        {8 * GIB_IN_MIB, 8 * GIB_IN_MIB},
        {8 * GIB_IN_MIB + 2, 8 * GIB_IN_MIB},
        {4096 * GIB_IN_MIB, 8 * GIB_IN_MIB},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        strata_address_t address;
        uint64_t before = strata_sim_now(f.world);
        ASSERT_OK(strata_device_reserve(f.device, sizes[i][0] * MIB, 0, &address));
        EXPECT_EQ(strata_sim_now(f.world) - before, cost_of(&profile.reserve, sizes[i][1]));
        before = strata_sim_now(f.world);
        ASSERT_OK(strata_device_unreserve(f.device, address, sizes[i][0] * MIB));
        EXPECT_EQ(strata_sim_now(f.world) - before, cost_of(&profile.unreserve, sizes[i][1]));
    }
}
