/* Timelines, events, the legacy stream, handles. */
#include "tests/sim/sim_fixture.h"

#define LEGACY ((strata_handle_t)1)
#define OWN    ((strata_handle_t)2)

TEST_WORLD(sim_streams, work_starts_when_host_and_stream_are_ready, 0) {
    strata_handle_t s = stream_new(f->device, STRATA_STREAM_NON_BLOCKING);
    ASSERT_OK(strata_device_work(f->device, s, 100 * US, NULL, 0));
    uint64_t first = strata_sim_stream_end(f->device, s);
    EXPECT_EQ(first, strata_sim_now(f->world) + 100 * US);
    ASSERT_OK(strata_device_work(f->device, s, 50 * US, NULL, 0));
    EXPECT_EQ(strata_sim_stream_end(f->device, s), first + 50 * US);
    EXPECT_EQ(strata_sim_device_end(f->device), first + 50 * US);
    EXPECT_STATUS(STRATA_E_NOT_READY, strata_device_stream_query(f->device, s));
    ASSERT_OK(strata_device_stream_synchronise(f->device, s));
    EXPECT_OK(strata_device_stream_query(f->device, s));
    EXPECT_GE(strata_sim_now(f->world), first + 50 * US);
    EXPECT_GT(figures_of(f->device).stall_ns, 140 * US);
}

TEST(sim_streams, a_priority_is_kept_and_taken_to_the_range) {
    static const int asked[] = {0, -2, -5, -6, 7}, kept[] = {0, -2, -5, -5, 0};
    fixture_t f CLOSED_BY(fixture_close) = fixture_open((strata_sim_options_t){0});
    for (int i = 0; i < 5; i++) {
        strata_handle_t stream;
        EXPECT_OK(strata_device_stream_create(f.device, STRATA_STREAM_NON_BLOCKING, asked[i], &stream));
        EXPECT_EQ(strata_sim_stream_priority(f.device, stream), kept[i]);
    }
}

TEST_WORLD(sim_streams, an_event_carries_the_end_at_record, 0) {
    strata_handle_t s = stream_new(f->device, STRATA_STREAM_NON_BLOCKING), e = event_new(f->device);
    EXPECT_OK(strata_device_event_query(f->device, e));
    ASSERT_OK(strata_device_work(f->device, s, 100 * US, NULL, 0));
    uint64_t end = strata_sim_stream_end(f->device, s);
    ASSERT_OK(strata_device_event_record(f->device, e, s));
    ASSERT_OK(strata_device_work(f->device, s, 100 * US, NULL, 0));
    EXPECT_EQ(strata_device_event_ready_at(f->device, e), end);
    EXPECT_STATUS(STRATA_E_NOT_READY, strata_device_event_query(f->device, e));
    strata_sim_advance_to(f->world, end - 1);
    EXPECT_STATUS(STRATA_E_NOT_READY, strata_device_event_query(f->device, e));
    EXPECT_OK(strata_device_event_query(f->device, e));
    ASSERT_OK(strata_device_event_record(f->device, e, s));
    ASSERT_OK(strata_device_event_synchronise(f->device, e));
    EXPECT_GE(strata_sim_now(f->world), end + 100 * US);
}

TEST_WORLD(sim_streams, a_wait_uses_the_record_before_it, 0) {
    strata_handle_t a = stream_new(f->device, STRATA_STREAM_NON_BLOCKING), b = stream_new(f->device, STRATA_STREAM_NON_BLOCKING);
    strata_handle_t e = event_new(f->device);
    ASSERT_OK(strata_device_work(f->device, a, 1000 * US, NULL, 0));
    ASSERT_OK(strata_device_event_record(f->device, e, a));
    uint64_t at = strata_device_event_ready_at(f->device, e);
    ASSERT_OK(strata_device_stream_wait(f->device, b, e));
    ASSERT_OK(strata_device_work(f->device, a, 1000 * US, NULL, 0));
    ASSERT_OK(strata_device_event_record(f->device, e, a));
    ASSERT_OK(strata_device_work(f->device, b, 10 * US, NULL, 0));
    EXPECT_EQ(strata_sim_stream_end(f->device, b), at + 10 * US);
    EXPECT_EQ(strata_device_event_ready_at(f->device, e), at + 1000 * US);
}

TEST_WORLD(sim_streams, streams_without_waits_run_side_by_side, 0) {
    strata_handle_t a = stream_new(f->device, STRATA_STREAM_NON_BLOCKING), b = stream_new(f->device, STRATA_STREAM_BLOCKING);
    ASSERT_OK(strata_device_work(f->device, a, 1000 * US, NULL, 0));
    ASSERT_OK(strata_device_work(f->device, b, 10 * US, NULL, 0));
    EXPECT_LT(strata_sim_stream_end(f->device, b), strata_sim_stream_end(f->device, a));
}

TEST_WORLD(sim_streams, the_legacy_stream_orders_with_blocking_streams_both_ways, 0) {
    strata_handle_t b = stream_new(f->device, STRATA_STREAM_BLOCKING), n = stream_new(f->device, STRATA_STREAM_NON_BLOCKING);
    ASSERT_OK(strata_device_work(f->device, n, 9000 * US, NULL, 0));
    ASSERT_OK(strata_device_work(f->device, b, 1000 * US, NULL, 0));
    uint64_t end = strata_sim_stream_end(f->device, b);
    ASSERT_OK(strata_device_work(f->device, NULL, 500 * US, NULL, 0));
    EXPECT_EQ(strata_sim_stream_end(f->device, NULL), end + 500 * US);
    EXPECT_EQ(strata_sim_stream_end(f->device, LEGACY), end + 500 * US);
    ASSERT_OK(strata_device_work(f->device, b, 100 * US, NULL, 0));
    EXPECT_EQ(strata_sim_stream_end(f->device, b), end + 600 * US);
    ASSERT_OK(strata_device_work(f->device, OWN, 100 * US, NULL, 0));
    EXPECT_EQ(strata_sim_stream_end(f->device, OWN), end + 600 * US);
    strata_handle_t late = stream_new(f->device, STRATA_STREAM_NON_BLOCKING);
    ASSERT_OK(strata_device_work(f->device, late, 1, NULL, 0));
    EXPECT_LT(strata_sim_stream_end(f->device, late), end);
}

TEST_WORLD(sim_streams, handles_are_recycled_with_new_ids, 0) {
    strata_handle_t a = stream_new(f->device, STRATA_STREAM_BLOCKING), b = stream_new(f->device, STRATA_STREAM_BLOCKING);
    uint64_t ids[6];
    ASSERT_OK(strata_device_stream_id(f->device, a, &ids[0]));
    ASSERT_OK(strata_device_stream_id(f->device, b, &ids[1]));
    ASSERT_OK(strata_device_work(f->device, b, 1000 * US, NULL, 0));
    uint64_t end = strata_sim_device_end(f->device);
    ASSERT_OK(strata_device_stream_destroy(f->device, a));
    ASSERT_OK(strata_device_stream_destroy(f->device, b));
    EXPECT_LT(strata_sim_now(f->world), end);
    EXPECT_STATUS(STRATA_E_UNKNOWN_STREAM, strata_device_work(f->device, b, 1, NULL, 0));
    EXPECT_EQ(strata_last_error()->device_code, 400);
    EXPECT_STATUS(STRATA_E_UNKNOWN_STREAM, strata_device_stream_destroy(f->device, b));
    EXPECT_EQ(stream_new(f->device, STRATA_STREAM_BLOCKING), b);
    EXPECT_EQ(stream_new(f->device, STRATA_STREAM_BLOCKING), a);
    ASSERT_OK(strata_device_stream_id(f->device, b, &ids[2]));
    ASSERT_OK(strata_device_stream_id(f->device, a, &ids[3]));
    ASSERT_OK(strata_device_stream_id(f->device, NULL, &ids[4]));
    ASSERT_OK(strata_device_stream_id(f->device, OWN, &ids[5]));
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < i; j++) EXPECT_NE(ids[i], ids[j]);
    EXPECT_OK(strata_device_stream_query(f->device, b));
    ASSERT_OK(strata_device_synchronise(f->device));
    EXPECT_GE(strata_sim_now(f->world), end);
}

TEST(sim_streams, strangers_are_refused) {
    fixture_t f = fixture_open((strata_sim_options_t){.devices = 2}), g = fixture_open((strata_sim_options_t){0});
    strata_handle_t s = stream_new(f.device, STRATA_STREAM_BLOCKING), e = event_new(f.device);
    strata_handle_t t = stream_new(f.other, STRATA_STREAM_BLOCKING);
    ASSERT_OK(strata_device_work(f.device, s, 1000 * US, NULL, 0));
    ASSERT_OK(strata_device_event_record(f.device, e, s));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_work(f.other, s, 1, NULL, 0));
    EXPECT_EQ(strata_last_error()->device_code, 400);
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_work(g.device, s, 1, NULL, 0));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_event_record(f.other, e, t));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_event_record(f.device, e, t));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_event_query(g.device, e));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_event_query(f.device, s));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_stream_destroy(f.device, NULL));
    EXPECT_STATUS(STRATA_E_INVALID, strata_device_stream_create(f.device, (strata_stream_flags_t)7, 0, &t));
    ASSERT_OK(strata_device_stream_wait(f.other, t, e)); /* a stream may wait for another device's event */
    EXPECT_EQ(strata_sim_stream_end(f.other, t), strata_device_event_ready_at(f.device, e));
    ASSERT_OK(strata_device_event_destroy(f.device, e));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_event_destroy(f.device, e));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_device_stream_wait(f.device, s, e));
    fixture_close(&f);
    fixture_close(&g);
}

TEST_WORLD(sim_streams, work_may_touch_only_live_memory_of_its_device, .devices = 2) {
    strata_address_t a = get(f->device, 4 * MIB), b = get(f->other, 4 * MIB), m;
    uint32_t on_stack = 0;
    ASSERT_OK(strata_device_malloc(f->other, STRATA_MEMORY_MANAGED, MIB, &m));
    strata_access_t good[] = {
        {a, 4 * MIB, true}, {a + MIB, MIB, false}, {m, MIB, true}, {(uintptr_t)&on_stack, sizeof on_stack, false}};
    EXPECT_OK(strata_device_work(f->device, NULL, 1, good, 4));
    strata_access_t beyond = {a + MIB, 4 * MIB, false}, peers = {b, 1, false};
    EXPECT_STATUS(STRATA_E_DEVICE_LOST, strata_device_work(f->device, NULL, 1, &peers, 1));
    EXPECT_EQ(strata_last_error()->device_code, 700);
    EXPECT_STATUS(STRATA_E_DEVICE_LOST, strata_device_synchronise(f->device));
    EXPECT_OK(strata_device_synchronise(f->other));
    strata_sim_clear_faults(f->device);
    ASSERT_OK(strata_device_enable_peer(f->device, 1));
    EXPECT_OK(strata_device_work(f->device, NULL, 1, &peers, 1));
    EXPECT_STATUS(STRATA_E_DEVICE_LOST, strata_device_work(f->device, NULL, 1, &beyond, 1));
    strata_sim_clear_faults(f->device);
    put(f->device, a);
    put(f->other, b);
    EXPECT_STATUS(STRATA_E_DEVICE_LOST, strata_device_work(f->device, NULL, 1, good, 1));
}
