/* system, and the events of a domain: limits that are told and cost nothing. */
#include "tests/allocation/bench.h"

static void open_system(bench_t *bench) {
    bench_begin(bench);
    bench_straight(bench, (const strata_layer_type_t *[]){strata_layer_find("system"), NULL}, NULL);
    bench_open(bench, 0);
}

TEST(allocation_system, a_full_slab_is_told_and_costs_nothing) {
    OPENED(bench_t, bench, bench_close, open_system(&bench));
    strata_record_t *a = bench_allocate(&bench, 1000), *none = NULL;
    strata_slab_t *slab = &bench.domain->first_stack->slab;
    uint32_t capacity = slab->capacity;
    uint64_t held = bench_held(&bench);
    slab->capacity = slab->used;
    EXPECT_STATUS(STRATA_E_LIMIT, bench_try(&bench, 5 * MIB, &none));
    EXPECT_EQ(strata_domain_reserved(bench.domain), 1000);
    EXPECT_EQ(bench_held(&bench), held);
    slab->capacity = capacity;
    bench_free(&bench, a);
    EXPECT_EQ(strata_domain_reserved(bench.domain), 0);
}

TEST(allocation_system, what_the_device_does_not_take_back_is_quarantined_until_the_end) {
    OPENED(bench_t, bench, bench_close, open_system(&bench));
    strata_record_t *a = bench_allocate(&bench, 3 * MIB);
    strata_ref_t ref = strata_ref_of(a);
    ASSERT_OK(strata_sim_fail(bench.device, STRATA_CALL_free, 1, false, STRATA_E_DEVICE));
    bench_free(&bench, a);
    strata_stack_t *shared = bench.domain->first_stack;
    EXPECT_EQ(shared->figures.quarantined_bytes, 3 * MIB);
    EXPECT_EQ(strata_domain_reserved(bench.domain), 3 * MIB);
    strata_call_t call;
    strata_record_t *found;
    EXPECT_STATUS(STRATA_E_STALE, strata_record_find(BENCH_FACADE, ref, &call, &found));
    strata_record_t *b = bench_allocate(&bench, 3 * MIB);
    EXPECT_NE(b, a);
    bench_free(&bench, b);
    EXPECT_OK(strata_stack_validate(shared));
}

/* One call may leave more than the domain's table has room for: that grows meanwhile. */
TEST(allocation_system, all_that_a_domain_holds_for_nobody_is_offered_again) {
    enum { PIECES = 1000 };
    OPENED(bench_t, bench, bench_close, open_system(&bench));
    strata_domain_t *domain = bench.domain;
    for (int i = 0; i < PIECES; i++) {
        strata_address_t address = 0;
        ASSERT_OK(strata_domain_claim(domain, NULL, MIB));
        ASSERT_OK(strata_device_malloc(bench.device, STRATA_MEMORY_DEVICE, MIB, &address));
        strata_domain_count(domain, MIB);
        strata_domain_quarantine(domain, STRATA_MEMORY_DEVICE, address, MIB, false);
    }
    EXPECT_EQ(strata_domain_reserved(domain), PIECES * MIB);
    EXPECT_EQ(strata_domain_retry_quarantined(domain), PIECES * MIB);
    EXPECT_EQ(strata_domain_reserved(domain), 0);
    EXPECT_EQ(strata_domain_retry_quarantined(domain), 0);
}

TEST(allocation_system, where_all_stacks_have_ended_none_is_found) {
    OPENED(bench_t, bench, bench_close, open_system(&bench));
    while (bench.domain->last_stack) {
        strata_stack_t *last = bench.domain->last_stack;
        strata_domain_remove_stack(bench.domain, last);
        strata_stack_destroy(last);
    }
    EXPECT_EQ(strata_domain_find(bench.domain, 0, NULL, 0), NULL);
}

/* It is not asked about them: a call would cost time in every wait. */
TEST(allocation_system, a_device_without_captures_captures_no_stream) {
    OPENED(bench_t, bench, bench_close, open_system(&bench));
    bench.device->capabilities.capture = false;
    ASSERT_OK(strata_sim_fail(bench.device, STRATA_CALL_capture_status, 1, true, STRATA_E_DEVICE));
    uint64_t calls = strata_sim_calls(bench.device);
    EXPECT_OK(strata_domain_refuse_captured(bench.domain, NULL));
    EXPECT_TRUE(strata_domain_wait_for(bench.domain, NULL));
    EXPECT_EQ(strata_sim_calls(bench.device), calls + 1);
}

TEST(allocation_system, events_that_could_not_be_made_count_for_none) {
    OPENED(bench_t, bench, bench_close, open_system(&bench));
    strata_events_t *events = &bench.domain->events;
    ASSERT_OK(strata_sim_fail(bench.device, STRATA_CALL_event_create, 1, true, STRATA_E_DEVICE));
    for (int i = 0; i < 1000; i++) EXPECT_STATUS(STRATA_E_DEVICE, strata_events_ensure(events, 1));
    EXPECT_EQ(events->made, 0);
    EXPECT_EQ(strata_events_acquire(events), NULL);
    strata_sim_clear_faults(bench.device);
    EXPECT_OK(strata_events_ensure(events, 3));
    EXPECT_EQ(events->made, 3);
    strata_handle_t event = strata_events_acquire(events);
    EXPECT_NE(event, NULL);
    strata_events_release(events, event);
    /* No more than there is room for. */
    events->made = STRATA_EVENTS - 1;
    EXPECT_STATUS(STRATA_E_LIMIT, strata_events_ensure(events, 5));
    EXPECT_EQ(events->made, STRATA_EVENTS);
    EXPECT_EQ(events->count, 4);
}

/* ---- what can be neither booked nor given back ---- */

/* A source from outside the tree, as little as it can be. */
static strata_status_t plain_allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    uint64_t address = 0;
    strata_status_t status = strata_layer_allocate_memory(self, request, request->size, request->alignment, &address);
    if (status != STRATA_OK) return status;
    strata_lock(&self->stack->lock);
    *record = strata_record_new(self, request, address, request->size);
    strata_unlock(&self->stack->lock);
    return *record ? STRATA_OK : STRATA_E_LIMIT;
}

static void plain_free(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    (void)call;
    EXPECT_OK(strata_layer_free_memory(self, record->ptr, record->size));
    strata_lock(&self->stack->lock);
    strata_record_delete(self, record);
    strata_unlock(&self->stack->lock);
}

static const strata_layer_type_t plain_source_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "plain_source",
    .doc = "memory of the place",
    .role = STRATA_SOURCE,
    .scope = STRATA_SCOPE_DEVICE,
    .gives = STRATA_TRAIT_EXACT_SIZE,
    .state_size = sizeof(strata_layer_t),
    .create = strata_layer_create_nothing,
    .destroy = strata_layer_destroy_nothing,
    .allocate = plain_allocate,
    .free = plain_free,
};

/* A domain whose directory has no room for what the device gives. */
static strata_directory_t *open_unbookable(bench_t *bench, const strata_layer_type_t *source, const char *const *options) {
    strata_directory_t *directory = NULL;
    bench_begin(bench);
    bench_straight(bench, (const strata_layer_type_t *[]){source, NULL}, options);
    bench_open(bench, 0);
    EXPECT_OK(strata_directory_new(8, &directory));
    directory->capacity = directory->used;
    bench->domain->directory = directory;
    return directory;
}

/* A request whose memory can be neither booked nor recorded, while the device takes nothing back. */
static void refuse(bench_t *bench, size_t size) {
    strata_record_t *none = NULL;
    ASSERT_OK(strata_sim_fail(bench->device, STRATA_CALL_free, 1, true, STRATA_E_DEVICE));
    EXPECT_STATUS(STRATA_E_LIMIT, bench_try(bench, size, &none));
    EXPECT_EQ(strata_last_error()->status, STRATA_E_LIMIT);
    EXPECT_EQ(none, NULL);
}

static const strata_layer_type_t *source_at(int i) { return i ? strata_layer_find("system") : &plain_source_type; }

TEST(allocation_system, what_can_be_neither_booked_nor_given_back_goes_back_with_a_release) {
    for (int i = 0; i < 2; i++) {
        bench_t bench;
        strata_directory_t *directory = open_unbookable(&bench, source_at(i), NULL);
        refuse(&bench, 4 * MIB);
        refuse(&bench, 2 * MIB);
        EXPECT_EQ(bench_held(&bench), 6 * MIB);
        EXPECT_EQ(strata_domain_reserved(bench.domain), 6 * MIB);
        EXPECT_EQ(atomic_load(&bench.domain->quarantine.bytes), 6 * MIB);
        EXPECT_EQ(strata_domain_release(bench.domain, NULL), 0);
        EXPECT_EQ(bench_held(&bench), 6 * MIB);
        strata_sim_clear_faults(bench.device);
        EXPECT_EQ(strata_domain_release(bench.domain, NULL), 6 * MIB);
        EXPECT_EQ(bench_held(&bench), 0);
        EXPECT_EQ(strata_domain_reserved(bench.domain), 0);
        EXPECT_EQ(atomic_load(&bench.domain->quarantine.bytes), 0);
        EXPECT_EQ(strata_domain_release(bench.domain, NULL), 0);
        bench_close(&bench);
        strata_directory_delete(directory);
    }
}

TEST(allocation_system, pinned_memory_goes_back_with_a_release_too) {
    static const char *const pinned[] = {"memory=pinned", NULL};
    bench_t bench;
    strata_directory_t *directory = open_unbookable(&bench, source_at(1), pinned);
    ASSERT_OK(strata_sim_fail(bench.device, STRATA_CALL_host_free, 1, true, STRATA_E_DEVICE));
    refuse(&bench, 4 * MIB);
    EXPECT_EQ(strata_domain_release(bench.domain, NULL), 0);
    strata_sim_clear_faults(bench.device);
    EXPECT_EQ(strata_domain_release(bench.domain, NULL), 4 * MIB);
    EXPECT_EQ(strata_domain_reserved(bench.domain), 0);
    bench_close(&bench);
    strata_directory_delete(directory);
}

TEST(allocation_system, what_cannot_be_booked_goes_back_at_once) {
    for (int i = 0; i < 2; i++) {
        bench_t bench;
        strata_record_t *none = NULL;
        strata_directory_t *directory = open_unbookable(&bench, source_at(i), NULL);
        EXPECT_STATUS(STRATA_E_LIMIT, bench_try(&bench, 4 * MIB, &none));
        EXPECT_EQ(bench_held(&bench), 0);
        EXPECT_EQ(strata_domain_reserved(bench.domain), 0);
        EXPECT_EQ(atomic_load(&bench.domain->quarantine.bytes), 0);
        bench_close(&bench);
        strata_directory_delete(directory);
    }
}

TEST(allocation_system, what_can_be_neither_booked_nor_given_back_goes_back_at_the_end) {
    for (int i = 0; i < 2; i++) {
        bench_t bench;
        strata_directory_t *directory = open_unbookable(&bench, source_at(i), NULL);
        refuse(&bench, 4 * MIB);
        strata_sim_clear_faults(bench.device);
        bench_close(&bench);
        strata_directory_delete(directory);
    }
}

/* As many as one call may leave, before the next has made room for more. */
TEST(allocation_system, many_that_are_refused_at_once_all_go_back) {
    enum { MANY = 1000 };
    bench_t bench;
    strata_record_t *none;
    strata_directory_t *directory = open_unbookable(&bench, source_at(1), NULL);
    refuse(&bench, MIB);
    for (int i = 1; i < MANY; i++) EXPECT_STATUS(STRATA_E_LIMIT, bench_try(&bench, MIB, &none));
    EXPECT_EQ(atomic_load(&bench.domain->quarantine.bytes), (uint64_t)MANY * MIB);
    strata_sim_clear_faults(bench.device);
    EXPECT_EQ(strata_domain_release(bench.domain, NULL), (uint64_t)MANY * MIB);
    EXPECT_EQ(bench_held(&bench), 0);
    bench_close(&bench);
    strata_directory_delete(directory);
}

/* A record that finds no place is booked already. */
TEST(allocation_system, what_has_no_record_and_is_refused_is_not_lost) {
    OPENED(bench_t, bench, bench_close, open_system(&bench));
    strata_slab_t *slab = &bench.domain->first_stack->slab;
    uint32_t capacity = slab->capacity;
    slab->capacity = slab->used;
    refuse(&bench, 6 * MIB);
    EXPECT_EQ(strata_domain_reserved(bench.domain), 6 * MIB);
    EXPECT_EQ(atomic_load(&bench.domain->quarantine.bytes), 6 * MIB);
    strata_sim_clear_faults(bench.device);
    slab->capacity = capacity;
    strata_domain_trim(bench.domain, MIB);
    EXPECT_EQ(strata_domain_reserved(bench.domain), 0);
}
