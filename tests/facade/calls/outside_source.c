/* A source from outside, by what the public header offers to one: memory of its place, and what it is left with at its end. */
#include <stdio.h>

#include "allocation/domain/layer.h"
#include "tests/facade/support/fixture.h"

static uint32_t left_over; /* records that the source still had when it was destroyed */

static void give_left(const strata_record_t *record, void *self) {
    left_over++;
    EXPECT_OK(strata_layer_free_memory(self, record->ptr, record->size));
}

static void destroy(strata_layer_t *self) { strata_layer_each_remaining(self, give_left, self); }

static strata_status_t allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    uint64_t address = 0;
    strata_unlocked_t opened = strata_call_unlock(request->call);
    strata_status_t status = strata_layer_allocate_memory(self, request, request->size, request->alignment, &address);
    strata_call_lock(request->call, opened);
    if (status != STRATA_OK) return status;
    *record = strata_record_new(self, request, address, request->size);
    return *record ? STRATA_OK : STRATA_E_LIMIT;
}

/* What the device does not take back stays with the source. */
static void give_back(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    strata_unlocked_t opened = strata_call_unlock(call);
    strata_status_t status = strata_layer_free_memory(self, record->ptr, record->size);
    strata_call_lock(call, opened);
    if (status == STRATA_OK) strata_record_delete(self, record);
}

static const strata_layer_type_t source_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "test_outside_source",
    .doc = "memory of its place",
    .role = STRATA_SOURCE,
    .scope = STRATA_SCOPE_DEVICE,
    .gives = STRATA_TRAIT_EXACT_SIZE,
    .guarded = true,
    .state_size = sizeof(strata_layer_t),
    .create = strata_layer_create_nothing,
    .destroy = destroy,
    .allocate = allocate,
    .free = give_back,
};

static void open_over(rig_t *rig, const char *above) {
    char text[300];
    register_layer(&source_type);
    snprintf(text, sizeof text,
             "strategy: outside\nstack: [%stest_outside_source]\nplaces:\n  pinned: [%stest_outside_source]\n"
             "  host: [%stest_outside_source]\n",
             above, above, above);
    rig_open(rig, text, NULL, 0, 64 * MIB, 1);
    left_over = 0;
}

TEST(facade_outside_source, serves_every_place_it_stands_in) {
    static const char *const above[] = {"", "stream_safe, auto_growth, "};
    for (int i = 0; i < 2; i++) {
        rig_t rig;
        open_over(&rig, above[i]);
        strata_place_t places[] = {rig.gpu, strata_pinned(), strata_host()};
        for (int k = 0; k < 3; k++) {
            strata_block_t block;
            ASSERT_OK(strata_allocate(rig.s, places[k], NULL, 3000, &block));
            if (k > 0) memset(block.ptr, 7, block.size);
            EXPECT_EQ((uintptr_t)block.ptr % (k == 2 ? 64 : 256), 0);
            EXPECT_OK(strata_free_pointer(rig.s, block.ptr));
        }
        rig_close(&rig);
        EXPECT_EQ(left_over, 0);
    }
}

/* A refusal leaves nothing counted: to the byte what the limit lets through is served after it. */
TEST_BY(facade_outside_source, a_refusal_of_the_device_counts_nothing, open_over(rig, "")) {
    strata_block_t block = {.ref = 7};
    EXPECT_OK(strata_set_limit(rig->s, rig->gpu, 4 * MIB));
    ASSERT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_malloc, 1, false, STRATA_E_DEVICE));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_allocate(rig->s, rig->gpu, NULL, 4 * MIB, &block));
    EXPECT_EQ(block.ref, 7);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 0);
    block = rig_allocate(rig, NULL, 4 * MIB);
}

/* Its options are its own, whatever their names. */
typedef struct counting {
    uint64_t chunk_size;
} counting_t;

static const strata_option_row_t counting_rows[] = {
    {"chunk_size", STRATA_OPTION_CHOICE, offsetof(counting_t, chunk_size), "large", 0, 0, "large|small", "a word"}, {0}};

TEST(facade_outside_source, a_device_without_memory_is_told_as_any_sources) {
    static strata_layer_type_t type; /* known by its address */
    const strata_layer_type_t *types[] = {&type};
    type = source_type;
    type.name = "test_counting_source";
    type.options_size = sizeof(counting_t);
    type.options = counting_rows;
    EXPECT_OK(strata_layers_register(types, 1, true));
    RIG(rig, "stack: [test_counting_source]\n", 64 * MIB);
    (void)rig_allocate(&rig, NULL, 60 * MIB);
    EXPECT_SAYS(STRATA_E_NO_MEMORY, rig_try(&rig, NULL, 8 * MIB), ": full: requested 8MiB, 4MiB left");
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 60 * MIB);
}

/* A request of 0 bytes got none. */
TEST(facade_outside_source, what_has_no_bytes_does_not_go_back_at_the_end) {
    static const char *const scopes[] = {"test_outside_source", "test_outside_source_of_a_stream"};
    static strata_layer_type_t of_a_stream; /* known by its address */
    of_a_stream = source_type;
    of_a_stream.name = scopes[1];
    of_a_stream.scope = STRATA_SCOPE_STREAM;
    register_layer(&of_a_stream);
    register_layer(&source_type);
    for (int i = 0; i < 2; i++) {
        rig_t rig;
        rig_open_stack(&rig, scopes[i], 0);
        left_over = 0;
        (void)rig_allocate(&rig, NULL, 0);
        (void)rig_allocate(&rig, NULL, MIB);
        rig_close_by_force(&rig);
        EXPECT_EQ(left_over, 1);
    }
}

/* It stays reserved and is found by nobody, and at the end the device has it back. */
TEST(facade_outside_source, what_the_device_does_not_take_back_goes_back_at_the_end) {
    rig_t rig;
    open_over(&rig, "");
    strata_block_t stuck = rig_allocate(&rig, NULL, 3 * MIB), other = rig_allocate(&rig, NULL, MIB);
    ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_free, 1, false, STRATA_E_DEVICE));
    EXPECT_OK(strata_free_pointer(rig.s, stuck.ptr));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 4 * MIB);
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig.s, stuck.ref));
    EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_free_pointer(rig.s, stuck.ptr));
    EXPECT_OK(strata_free_pointer(rig.s, other.ptr));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 3 * MIB);
    EXPECT_OK(strata_validate(rig.s));
    rig_close(&rig);
    EXPECT_EQ(left_over, 1);
}
