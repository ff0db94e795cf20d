/* The counted wrappers: each call reaches its own operation with its own arguments, and is counted and timed once. */
#include "platform/device.h"
#include "tests/harness/test.h"

enum { MOST = 6 };

/* What the last operation was called with. */
static struct {
    int call;
    size_t count;
    uint64_t values[MOST];
} seen;

static strata_status_t note(int call, size_t count, const uint64_t *values) {
    seen.call = call;
    seen.count = count;
    for (size_t i = 0; i < count; i++) seen.values[i] = values[i];
    return STRATA_E_LIMIT;
}

#define U(value) ((uint64_t)(uintptr_t)(value))
#define NOTE(name, ...)                                                                                                            \
    do {                                                                                                                           \
        const uint64_t values_[] = {__VA_ARGS__};                                                                                  \
        return note(STRATA_CALL_##name, sizeof values_ / sizeof *values_, values_);                                                \
    } while (0)
#define OP1(name, A)                                                                                                               \
    static strata_status_t op_##name(strata_device_t *d, A a) { NOTE(name, U(d), U(a)); }
#define OP2(name, A, B)                                                                                                            \
    static strata_status_t op_##name(strata_device_t *d, A a, B b) { NOTE(name, U(d), U(a), U(b)); }
#define OP3(name, A, B, C)                                                                                                         \
    static strata_status_t op_##name(strata_device_t *d, A a, B b, C c) { NOTE(name, U(d), U(a), U(b), U(c)); }
#define OP4(name, A, B, C, D)                                                                                                      \
    static strata_status_t op_##name(strata_device_t *d, A a, B b, C c, D e) { NOTE(name, U(d), U(a), U(b), U(c), U(e)); }
#define OP5(name, A, B, C, D, E)                                                                                                   \
    static strata_status_t op_##name(strata_device_t *d, A a, B b, C c, D e, E f) {                                                \
        NOTE(name, U(d), U(a), U(b), U(c), U(e), U(f));                                                                            \
    }

typedef void (*callback_t)(void *);

static strata_status_t op_synchronise(strata_device_t *d) { NOTE(synchronise, U(d)); }
OP3(malloc, strata_memory_t, uint64_t, strata_address_t *)
OP2(free, strata_memory_t, strata_address_t)
OP5(host_alloc, strata_memory_t, uint64_t, uint64_t, uint32_t, strata_address_t *)
OP2(host_free, strata_memory_t, strata_address_t)
OP2(mem_info, uint64_t *, uint64_t *)
OP4(malloc_async, strata_handle_t, uint64_t, strata_handle_t, strata_address_t *)
OP2(free_async, strata_address_t, strata_handle_t)
OP3(pool_create, uint64_t, bool, strata_handle_t *)
OP1(pool_destroy, strata_handle_t)
OP1(pool_default, strata_handle_t *)
OP3(pool_set, strata_handle_t, strata_pool_attribute_t, uint64_t)
OP3(pool_get, strata_handle_t, strata_pool_attribute_t, uint64_t *)
OP2(pool_trim, strata_handle_t, uint64_t)
OP2(pool_set_access, strata_handle_t, uint32_t)
OP3(reserve, uint64_t, uint64_t, strata_address_t *)
OP2(unreserve, strata_address_t, uint64_t)
OP3(create, uint64_t, bool, strata_physical_t *)
OP1(release, strata_physical_t)
OP3(map, strata_address_t, uint64_t, strata_physical_t)
OP2(unmap, strata_address_t, uint64_t)
OP4(set_access, strata_address_t, uint64_t, const uint32_t *, size_t)
OP3(stream_create, strata_stream_flags_t, int, strata_handle_t *)
OP1(stream_destroy, strata_handle_t)
OP1(stream_query, strata_handle_t)
OP1(stream_synchronise, strata_handle_t)
OP2(stream_wait, strata_handle_t, strata_handle_t)
OP2(stream_id, strata_handle_t, uint64_t *)
OP1(event_create, strata_handle_t *)
OP1(event_destroy, strata_handle_t)
OP2(event_record, strata_handle_t, strata_handle_t)
OP1(event_query, strata_handle_t)
OP1(event_synchronise, strata_handle_t)
OP4(fill, strata_address_t, uint8_t, uint64_t, strata_handle_t)
OP5(copy, strata_address_t, void *, uint64_t, bool, strata_handle_t)
OP4(prefetch, strata_address_t, uint64_t, bool, strata_handle_t)
OP4(advise, strata_address_t, uint64_t, strata_advice_t, bool)
OP2(capture_begin, strata_handle_t, strata_capture_mode_t)
OP2(capture_end, strata_handle_t, strata_handle_t *)
OP3(capture_status, strata_handle_t, strata_capture_status_t *, uint64_t *)
OP3(capture_follows, strata_handle_t, strata_handle_t, uint64_t *)
OP3(graph_on_destroy, strata_handle_t, callback_t, void *)
OP2(graph_launch, strata_handle_t, strata_handle_t)
OP1(graph_destroy, strata_handle_t)
OP2(can_access_peer, uint32_t, bool *)
OP1(enable_peer, uint32_t)
OP2(export_memory, strata_physical_t, int *)
OP2(import_memory, int, strata_physical_t *)
OP4(work, strata_handle_t, uint64_t, const strata_access_t *, size_t)

static uint64_t op_event_ready_at(strata_device_t *d, strata_handle_t event) { return U(d) ^ U(event); }

static bool op_event_is_captured(strata_device_t *d, strata_handle_t event) { return U(d) != 0 && U(event) == 0x3000; }

static void *op_host_view(strata_device_t *d, strata_address_t address, uint64_t size) {
    return (void *)(uintptr_t)(U(d) ^ address ^ size);
}

static const strata_device_operations_t operations = {
#define OPERATION(name, quick, shown) .name = op_##name,
    STRATA_DEVICE_CALL_MAP(OPERATION)
#undef OPERATION
        .event_ready_at = op_event_ready_at,
    .event_is_captured = op_event_is_captured,
    .host_view = op_host_view};

static uint64_t calls_of_all(strata_device_t *device) {
    uint64_t calls = 0;
    for (int i = 0; i < (int)STRATA_DEVICE_CALLS; i++) calls += device->calls[i];
    return calls;
}

/* Distinct arguments, of which none can be taken for another. */
#define P(n) ((void *)(uintptr_t)(0x1000 * (n)))
#define N(n) ((uint32_t)(n))

#define CHECK(name, ...)                                                                                                           \
    do {                                                                                                                           \
        const uint64_t wanted_[] = {U(&device), __VA_ARGS__};                                                                      \
        uint64_t before_ = device.calls[STRATA_CALL_##name], all_ = calls_of_all(&device);                                         \
        seen.call = -1;                                                                                                            \
        EXPECT_EQ(CALL_##name, STRATA_E_LIMIT);                                                                                    \
        EXPECT_EQ(seen.call, STRATA_CALL_##name);                                                                                  \
        EXPECT_EQ(device.calls[STRATA_CALL_##name], before_ + 1);                                                                  \
        EXPECT_EQ(calls_of_all(&device), all_ + 1);                                                                                \
        EXPECT_EQ(seen.count, sizeof wanted_ / sizeof *wanted_);                                                                   \
        for (size_t i_ = 0; i_ < seen.count; i_++)                                                                                 \
            if (seen.values[i_] != wanted_[i_]) FAIL_TEST("%s: argument %zu is another", #name, i_);                               \
    } while (0)

static strata_device_t device;

static void check_memory(void) {
#define CALL_malloc strata_device_malloc(&device, (strata_memory_t)1, 5, P(1))
    CHECK(malloc, 1, 5, U(P(1)));
#define CALL_free strata_device_free(&device, (strata_memory_t)1, 7)
    CHECK(free, 1, 7);
#define CALL_host_alloc strata_device_host_alloc(&device, (strata_memory_t)2, 5, 64, 9, P(1))
    CHECK(host_alloc, 2, 5, 64, 9, U(P(1)));
#define CALL_host_free strata_device_host_free(&device, (strata_memory_t)3, 7)
    CHECK(host_free, 3, 7);
#define CALL_mem_info strata_device_mem_info(&device, P(1), P(2))
    CHECK(mem_info, U(P(1)), U(P(2)));
#define CALL_malloc_async strata_device_malloc_async(&device, P(1), 5, P(2), P(3))
    CHECK(malloc_async, U(P(1)), 5, U(P(2)), U(P(3)));
#define CALL_free_async strata_device_free_async(&device, 5, P(2))
    CHECK(free_async, 5, U(P(2)));
#define CALL_pool_create strata_device_pool_create(&device, 5, true, P(2))
    CHECK(pool_create, 5, 1, U(P(2)));
#define CALL_pool_destroy strata_device_pool_destroy(&device, P(2))
    CHECK(pool_destroy, U(P(2)));
#define CALL_pool_default strata_device_pool_default(&device, P(2))
    CHECK(pool_default, U(P(2)));
#define CALL_pool_set strata_device_pool_set(&device, P(2), STRATA_POOL_USED_HIGH, 5)
    CHECK(pool_set, U(P(2)), STRATA_POOL_USED_HIGH, 5);
#define CALL_pool_get strata_device_pool_get(&device, P(2), STRATA_POOL_USED_HIGH, P(3))
    CHECK(pool_get, U(P(2)), STRATA_POOL_USED_HIGH, U(P(3)));
#define CALL_pool_trim strata_device_pool_trim(&device, P(2), 5)
    CHECK(pool_trim, U(P(2)), 5);
#define CALL_pool_set_access strata_device_pool_set_access(&device, P(2), N(5))
    CHECK(pool_set_access, U(P(2)), 5);
#define CALL_fill strata_device_fill(&device, 5, 6, 7, P(2))
    CHECK(fill, 5, 6, 7, U(P(2)));
#define CALL_copy strata_device_copy(&device, 5, P(3), 7, true, P(2))
    CHECK(copy, 5, U(P(3)), 7, 1, U(P(2)));
#define CALL_prefetch strata_device_prefetch(&device, 5, 7, true, P(2))
    CHECK(prefetch, 5, 7, 1, U(P(2)));
#define CALL_advise strata_device_advise(&device, 5, 7, STRATA_ADVISE_SET_PREFERRED, true)
    CHECK(advise, 5, 7, STRATA_ADVISE_SET_PREFERRED, 1);
}

static void check_virtual_memory(void) {
#define CALL_reserve strata_device_reserve(&device, 5, 7, P(2))
    CHECK(reserve, 5, 7, U(P(2)));
#define CALL_unreserve strata_device_unreserve(&device, 5, 7)
    CHECK(unreserve, 5, 7);
#define CALL_create strata_device_create(&device, 5, true, P(2))
    CHECK(create, 5, 1, U(P(2)));
#define CALL_release strata_device_release(&device, 5)
    CHECK(release, 5);
#define CALL_map strata_device_map(&device, 5, 7, 9)
    CHECK(map, 5, 7, 9);
#define CALL_unmap strata_device_unmap(&device, 5, 7)
    CHECK(unmap, 5, 7);
#define CALL_set_access strata_device_set_access(&device, 5, 7, P(2), 3)
    CHECK(set_access, 5, 7, U(P(2)), 3);
#define CALL_can_access_peer strata_device_can_access_peer(&device, N(5), P(2))
    CHECK(can_access_peer, 5, U(P(2)));
#define CALL_enable_peer strata_device_enable_peer(&device, N(5))
    CHECK(enable_peer, 5);
#define CALL_export_memory strata_device_export_memory(&device, 5, P(2))
    CHECK(export_memory, 5, U(P(2)));
#define CALL_import_memory strata_device_import_memory(&device, 5, P(2))
    CHECK(import_memory, 5, U(P(2)));
}

static void check_streams(void) {
#define CALL_stream_create strata_device_stream_create(&device, STRATA_STREAM_NON_BLOCKING, 2, P(3))
    CHECK(stream_create, STRATA_STREAM_NON_BLOCKING, U(2), U(P(3)));
#define CALL_stream_destroy strata_device_stream_destroy(&device, P(2))
    CHECK(stream_destroy, U(P(2)));
#define CALL_stream_query strata_device_stream_query(&device, P(2))
    CHECK(stream_query, U(P(2)));
#define CALL_stream_synchronise strata_device_stream_synchronise(&device, P(2))
    CHECK(stream_synchronise, U(P(2)));
#define CALL_stream_wait strata_device_stream_wait(&device, P(1), P(2))
    CHECK(stream_wait, U(P(1)), U(P(2)));
#define CALL_stream_id strata_device_stream_id(&device, P(1), P(2))
    CHECK(stream_id, U(P(1)), U(P(2)));
#define CALL_event_create strata_device_event_create(&device, P(2))
    CHECK(event_create, U(P(2)));
#define CALL_event_destroy strata_device_event_destroy(&device, P(2))
    CHECK(event_destroy, U(P(2)));
#define CALL_event_record strata_device_event_record(&device, P(1), P(2))
    CHECK(event_record, U(P(1)), U(P(2)));
#define CALL_event_query strata_device_event_query(&device, P(2))
    CHECK(event_query, U(P(2)));
#define CALL_event_synchronise strata_device_event_synchronise(&device, P(2))
    CHECK(event_synchronise, U(P(2)));
#define CALL_work strata_device_work(&device, P(1), 5, P(2), 3)
    CHECK(work, U(P(1)), 5, U(P(2)), 3);
}

static void nothing(void *context) { (void)context; }

static void check_captures(void) {
#define CALL_capture_begin strata_device_capture_begin(&device, P(1), STRATA_CAPTURE_RELAXED)
    CHECK(capture_begin, U(P(1)), STRATA_CAPTURE_RELAXED);
#define CALL_capture_end strata_device_capture_end(&device, P(1), P(2))
    CHECK(capture_end, U(P(1)), U(P(2)));
#define CALL_capture_status strata_device_capture_status(&device, P(1), P(2), P(3))
    CHECK(capture_status, U(P(1)), U(P(2)), U(P(3)));
#define CALL_capture_follows strata_device_capture_follows(&device, P(1), P(2), P(3))
    CHECK(capture_follows, U(P(1)), U(P(2)), U(P(3)));
#define CALL_graph_on_destroy strata_device_graph_on_destroy(&device, P(1), nothing, P(2))
    CHECK(graph_on_destroy, U(P(1)), U(nothing), U(P(2)));
#define CALL_graph_launch strata_device_graph_launch(&device, P(1), P(2))
    CHECK(graph_launch, U(P(1)), U(P(2)));
#define CALL_graph_destroy strata_device_graph_destroy(&device, P(2))
    CHECK(graph_destroy, U(P(2)));
}

static void check_all(void) {
    check_memory();
    check_virtual_memory();
    check_streams();
    check_captures();
    seen.call = -1;
    EXPECT_EQ(strata_device_synchronise(&device), STRATA_E_LIMIT);
    EXPECT_EQ(seen.call, STRATA_CALL_synchronise);
    EXPECT_EQ(seen.count, 1);
}

TEST(platform_calls, each_call_reaches_its_operation_with_its_arguments_and_counts_once) {
    strata_device_init(&device, &operations, 3, strata_real_clock());
    EXPECT_EQ(device.ordinal, 3);
    EXPECT_TRUE(device.clock == strata_real_clock() && device.operations == &operations);
    check_all();
    for (int i = 0; i < (int)STRATA_DEVICE_CALLS; i++)
        if (device.calls[i] != 1) FAIL_TEST("%s: %d calls", strata_device_call_name((strata_device_call_t)i), (int)device.calls[i]);
    EXPECT_EQ(device.host_ns, 0);
    EXPECT_EQ(device.timed_calls, 0);
}

/* Looks are no calls. They count in time alone, and a view not even there. */
TEST(platform_calls, a_timed_device_counts_each_call_that_it_timed) {
    strata_device_init(&device, &operations, 0, strata_real_clock());
    device.timed = true;
    check_all();
    EXPECT_EQ(device.timed_calls, STRATA_DEVICE_CALLS);
    EXPECT_EQ(strata_device_event_ready_at(&device, P(2)), U(&device) ^ U(P(2)));
    EXPECT_EQ(device.timed_calls, STRATA_DEVICE_CALLS + 1);
    EXPECT_TRUE(strata_device_event_is_captured(&device, P(3)));
    EXPECT_FALSE(strata_device_event_is_captured(&device, P(2)));
    EXPECT_EQ(device.timed_calls, STRATA_DEVICE_CALLS + 3);
    EXPECT_EQ(U(strata_device_host_view(&device, 0x500, 0x70)), U(&device) ^ 0x500 ^ 0x70);
    EXPECT_EQ(device.timed_calls, STRATA_DEVICE_CALLS + 3);
    EXPECT_EQ(calls_of_all(&device), STRATA_DEVICE_CALLS);
    device.timed = false;
    check_all();
    EXPECT_EQ(device.timed_calls, STRATA_DEVICE_CALLS + 3);
}

/* What a call takes is what passes between its beginning and its end. */
static strata_status_t slow_synchronise(strata_device_t *d) {
    uint64_t begin = strata_real_now();
    while (strata_real_now() - begin < 20000) {}
    return U(d) ? STRATA_OK : STRATA_E_INVALID;
}

TEST(platform_calls, the_time_of_calls_adds_up) {
    strata_device_operations_t slow = operations;
    slow.synchronise = slow_synchronise;
    strata_device_init(&device, &slow, 0, strata_real_clock());
    device.timed = true;
    for (uint64_t i = 1; i <= 3; i++) {
        uint64_t begin = strata_real_now();
        EXPECT_OK(strata_device_synchronise(&device));
        EXPECT_GE(device.host_ns, i * 20000);
        if (i == 1) EXPECT_LE(device.host_ns, strata_real_now() - begin);
    }
}

TEST(platform_calls, a_device_is_itself_opened_twice) {
    strata_device_t a, b;
    strata_clock_t other = *strata_real_clock();
    strata_device_operations_t others = operations;
    strata_device_init(&a, &operations, 1, strata_real_clock());
    strata_device_init(&b, &operations, 1, strata_real_clock());
    EXPECT_TRUE(strata_device_is_same(&a, &b));
    strata_device_init(&b, &operations, 2, strata_real_clock());
    EXPECT_FALSE(strata_device_is_same(&a, &b));
    strata_device_init(&b, &operations, 1, &other);
    EXPECT_FALSE(strata_device_is_same(&a, &b));
    strata_device_init(&b, &others, 1, strata_real_clock());
    EXPECT_FALSE(strata_device_is_same(&a, &b));
}

TEST(platform_calls, host_flags_carry_a_node) {
    for (uint32_t node = 0; node < 64; node++) {
        uint32_t flags = STRATA_HOST_ON_NODE(node) | STRATA_HOST_PORTABLE | STRATA_HOST_MAPPED;
        EXPECT_TRUE(strata_host_flags_name_node(flags));
        EXPECT_EQ(strata_host_flags_node(flags), node);
    }
    EXPECT_FALSE(strata_host_flags_name_node(STRATA_HOST_PORTABLE | STRATA_HOST_MAPPED | STRATA_HOST_WRITE_COMBINED));
}
