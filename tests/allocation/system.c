/* system, and the events of a domain: limits that are told and cost nothing. */
#include "tests/allocation/bench.h"

static void open_system(bench_t *bench) {
    bench_begin(bench);
    bench_straight(bench, (const strata_layer_type_t *[]){strata_layer_find("system"), NULL}, NULL);
    bench_open(bench, 0);
}

TEST(allocation_system, a_full_slab_is_told_and_costs_nothing) {
    bench_t bench;
    open_system(&bench);
    strata_record_t *a = bench_allocate(&bench, 1000), *none = NULL;
    strata_slab_t *slab = &bench.domain->stacks[0]->slab;
    uint32_t capacity = slab->capacity;
    uint64_t held = bench_held(&bench);
    slab->capacity = slab->used;
    EXPECT_STATUS(STRATA_E_LIMIT, bench_try(&bench, 5 * MIB, &none));
    EXPECT_EQ(strata_domain_reserved(bench.domain), 1000);
    EXPECT_EQ(bench_held(&bench), held);
    slab->capacity = capacity;
    bench_free(&bench, a);
    EXPECT_EQ(strata_domain_reserved(bench.domain), 0);
    bench_close(&bench);
}

TEST(allocation_system, what_the_device_does_not_take_back_is_quarantined_until_the_end) {
    bench_t bench;
    open_system(&bench);
    strata_record_t *a = bench_allocate(&bench, 3 * MIB);
    strata_ref_t ref = strata_ref_of(a);
    ASSERT_OK(strata_sim_fail(bench.device, STRATA_CALL_free, 1, false, STRATA_E_DEVICE));
    bench_free(&bench, a);
    strata_stack_t *trunk = bench.domain->stacks[0];
    EXPECT_EQ(trunk->figures.quarantined_bytes, 3 * MIB);
    EXPECT_EQ(strata_domain_reserved(bench.domain), 3 * MIB);
    strata_path_t path;
    strata_record_t *found;
    EXPECT_STATUS(STRATA_E_STALE, strata_record_find(BENCH_FACADE, ref, &path, &found));
    strata_record_t *b = bench_allocate(&bench, 3 * MIB);
    EXPECT_TRUE(b != a);
    bench_free(&bench, b);
    EXPECT_OK(strata_stack_validate(trunk));
    bench_close(&bench);
}

TEST(allocation_system, events_that_could_not_be_made_count_for_none) {
    bench_t bench;
    open_system(&bench);
    strata_events_t *events = &bench.domain->events;
    ASSERT_OK(strata_sim_fail(bench.device, STRATA_CALL_event_create, 1, true, STRATA_E_DEVICE));
    for (int i = 0; i < 1000; i++) EXPECT_STATUS(STRATA_E_DEVICE, strata_events_ensure(events, 1));
    EXPECT_EQ(events->made, 0);
    EXPECT_TRUE(strata_events_take(events) == NULL);
    strata_sim_clear_faults(bench.device);
    EXPECT_OK(strata_events_ensure(events, 3));
    EXPECT_EQ(events->made, 3);
    strata_handle_t event = strata_events_take(events);
    EXPECT_TRUE(event != NULL);
    strata_events_give(events, event);
    bench_close(&bench);
}
