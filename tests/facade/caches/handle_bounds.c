/* Caches of physical handles at their bounds: equal gaps, growth that fails in the middle, sizes at which growth changes, and what other
 * threads do while a handle is made. */
#include "tests/facade/support/fixture.h"

#define EXACT    "auto_growth_vmm: {slack: 0, slack_least: 0}, vmm"
#define BEST_FIT "best_fit_vmm: {handle: 2MiB}, vmm"
enum { LONG = 50 * 1000 * 1000 };

static uint64_t reserved(rig_t *rig) { return rig_figures(rig).reserved_bytes; }

/* Of equal gaps the lowest is filled, of others the smallest that is large enough. */
TEST_STACK(handle_bounds, the_lowest_of_equal_gaps_is_filled, 0, BEST_FIT) {
    static const size_t handles[] = {3, 1, 2, 1, 2, 1, 4, 1};
    static const struct { size_t handles, filled; } rows[] = {{2, 2}, {2, 4}, {1, 0}, {4, 6}, {2, 0}};
    strata_block_t blocks[COUNT(handles)];
    for (size_t i = 0; i < COUNT(handles); i++) blocks[i] = rig_allocate(rig, NULL, handles[i] * 2 * MIB);
    for (size_t i = 0; i < COUNT(handles); i += 2) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
    EXPECT_EQ(rig_release(rig), 11 * 2 * MIB);
    for (size_t i = 0; i < COUNT(rows); i++) {
        strata_block_t block = rig_allocate(rig, NULL, rows[i].handles * 2 * MIB);
        uintptr_t at = (uintptr_t)blocks[rows[i].filled].ptr + (i == 4 ? 2 * MIB : 0);
        EXPECT_EQ((uintptr_t)block.ptr, at);
    }
    EXPECT_OK(strata_validate(rig->s));
}

/* The rest of a handle serves requests, down to its last 256 bytes. */
TEST_STACK(handle_bounds, the_last_unit_of_a_handle_serves, 0, BEST_FIT) {
    strata_block_t most = rig_allocate(rig, NULL, 2 * MIB - 256), last = rig_allocate(rig, NULL, 256);
    EXPECT_EQ(most.size, 2 * MIB - 256);
    EXPECT_EQ((uintptr_t)last.ptr, (uintptr_t)most.ptr + 2 * MIB - 256);
    EXPECT_EQ(reserved(rig), 2 * MIB);
    RIG_FREE(rig, most, last);
}

/* Handles that came before the one that the device refuses go again, the first one and the last one too. */
TEST_STACK(handle_bounds, growth_that_fails_in_the_middle_leaves_nothing, 0, BEST_FIT, "caching_vmm, vmm") {
    for (uint64_t refused = 1; refused <= 4; refused++) {
        const strata_allocate_options_t options = {.struct_size = sizeof options, .size = 80 * MIB, .flags = STRATA_NO_RETRY};
        strata_block_t none;
        EXPECT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_create, refused, true, STRATA_E_NO_MEMORY));
        EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate_with(rig->s, rig->gpu, NULL, &options, &none));
        strata_sim_clear_faults(rig->devices[0]);
        EXPECT_EQ(reserved(rig), 0);
        EXPECT_OK(strata_validate(rig->s));
    }
}

/* Addresses for a request that the device then refused have nothing, and go with the next release; those of the second bank too. */
TEST_STACK(handle_bounds, addresses_without_handles_go_back, 0, "caching_vmm, vmm", EXACT) {
    strata_sim_held_t held;
    strata_stream_t streams[2] = {rig_stream(rig), rig_stream(rig)};
    EXPECT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_create, 1, true, STRATA_E_NO_MEMORY));
    for (size_t i = 0; i < COUNT(streams); i++) EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(rig, streams[i], 30 * MIB));
    strata_sim_clear_faults(rig->devices[0]);
    (void)rig_release(rig);
    strata_sim_held(rig->devices[0], &held);
    EXPECT_EQ(held.address_bytes, 0);
}

/* Large handles go first. If they are enough, no small one goes. */
TEST_STACK(handle_bounds, a_trim_takes_small_handles_for_the_rest_alone, 0, "caching_vmm, vmm") {
    strata_block_t large[2] = {rig_allocate(rig, NULL, 20 * MIB), rig_allocate(rig, NULL, 20 * MIB)}, small[6];
    for (size_t i = 0; i < COUNT(small); i++) small[i] = rig_allocate(rig, NULL, MIB);
    rig_free(rig, large, 2);
    rig_free(rig, small, COUNT(small));
    EXPECT_EQ(reserved(rig), 46 * MIB);
    EXPECT_EQ(rig_trim(rig, 26 * MIB), 20 * MIB);
    EXPECT_EQ(rig_trim(rig, 26 * MIB - 1), 20 * MIB);
    EXPECT_EQ(rig_trim(rig, 5 * MIB), 2 * MIB);
    EXPECT_EQ(rig_trim(rig, 0), 4 * MIB);
}

/* ---- where growth changes ---- */

static uint64_t creations(rig_t *rig, size_t size, int count) {
    uint64_t before = rig_calls(rig, STRATA_CALL_create);
    for (int i = 0; i < count; i++) (void)rig_allocate(rig, NULL, size);
    return rig_calls(rig, STRATA_CALL_create) - before;
}

/* Large blocks of one size come in pairs, from 128 MiB on. */
TEST_RIG_WAYS(handle_bounds, pairs_begin_at_their_size, less, 2, 0,
              "stack: [auto_growth_vmm: {slack: 1, slack_least: 1GiB}, vmm]") {
    uint64_t created = creations(rig, 128 * MIB - (less ? 2 * MIB : 0), 16);
    RIG(other, "stack: [auto_growth_vmm: {slack: 1, slack_least: 1GiB}, vmm]", 0);
    EXPECT_EQ(created < creations(&other, 100 * MIB, 16), !less);
}

/* A growth of eight of the largest handles asks the device first, and then makes one handle where that has less; of a byte less it
 * does not ask. */
TEST_RIG_WAYS(handle_bounds, a_doubtful_growth_makes_one_handle, less, 2, 5 * GIB, "stack: [" EXACT "]\n") {
    (void)rig_allocate(rig, NULL, 2 * GIB);
    uint64_t before = rig_calls(rig, STRATA_CALL_create);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(rig, NULL, 4 * GIB - (less ? 2 * MIB : 0)));
    /* The request is tried twice: six handles of 512 MiB and a refusal, or the refusal alone. */
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_create) - before > 6, less);
}

/* As much as the device has is not doubtful. */
TEST_STACK(handle_bounds, all_that_the_device_has_comes_in_several_handles, 5 * GIB, EXACT) {
    uint64_t available, total;
    ASSERT_OK(strata_device_mem_info(rig->devices[0], &available, &total));
    available -= available % (2 * MIB);
    uint64_t before = rig_calls(rig, STRATA_CALL_create);
    strata_block_t block = rig_allocate(rig, NULL, available);
    EXPECT_GT(rig_calls(rig, STRATA_CALL_create) - before, 1);
    RIG_FREE(rig, block);
}

/* ---- while a handle is made ---- */

/* What another thread does in front of one of the creations; from then on the device may refuse. */
typedef struct making {
    strata_device_operations_t table; /* first */
    const strata_device_operations_t *real;
    rig_t *rig;
    void *(*act)(void *);
    uint32_t calls, at; /* the call that it comes before */
    bool refuses;
    strata_block_t block;
} making_t;

static strata_status_t create(strata_device_t *device, uint64_t size, bool shareable, strata_physical_t *handle) {
    making_t *making = (making_t *)(uintptr_t)device->operations;
    if (++making->calls == making->at) in_another_thread(making->act, making);
    if (!making->refuses || making->calls < making->at) return making->real->create(device, size, shareable, handle);
    return strata_fail(STRATA_E_NO_MEMORY, 2, "the device has no more");
}

static void making_begin(making_t *making, rig_t *rig) {
    making->rig = rig;
    making->real = rig->devices[0]->operations;
    making->table = *making->real;
    making->table.create = create;
    rig->devices[0]->operations = &making->table;
}

static void making_end(making_t *making) { making->rig->devices[0]->operations = making->real; }

static void *release_all(void *context) {
    making_t *making = context;
    EXPECT_OK(strata_release(making->rig->s, making->rig->gpu, NULL));
    return NULL;
}

/* The range in which a handle is about to be mapped has nothing yet; a release lets it be. */
TEST_STACK(handle_bounds, a_release_lets_addresses_be_that_a_growth_is_about_to_fill, 0, EXACT, BEST_FIT, "caching_vmm, vmm") {
    making_t making = {.act = release_all, .at = 1};
    making_begin(&making, rig);
    strata_block_t block = rig_allocate(rig, NULL, 20 * MIB);
    making_end(&making);
    EXPECT_GE(making.calls, 1);
    EXPECT_OK(strata_validate(rig->s));
    RIG_FREE(rig, block);
    EXPECT_GT(rig_release(rig), 0);
    EXPECT_EQ(reserved(rig), 0);
}

static void *use_and_free(void *context) {
    making_t *making = context;
    making->block = rig_allocate(making->rig, NULL, 2 * MIB);
    rig_work(making->rig, NULL, LONG, making->block.ref);
    EXPECT_OK(strata_free(making->rig->s, making->block.ref));
    return NULL;
}

/* Handles that came before a refusal were served to another thread meanwhile, which left work there: they go after it. */
TEST_STACK(handle_bounds, what_was_used_before_a_refusal_goes_after_its_work, 0, BEST_FIT) {
    making_t making = {.act = use_and_free, .at = 3, .refuses = true};
    making_begin(&making, rig);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(rig, NULL, 8 * MIB));
    making_end(&making);
    EXPECT_TRUE(making.block.ptr != NULL);
    EXPECT_GE(strata_sim_now(rig->world), LONG);
    EXPECT_EQ(reserved(rig), 0);
    EXPECT_OK(strata_validate(rig->s));
}

/* The growth for zeros that the device does not write goes back, or is quarantined if the device does not take it. */
TEST_STACK(handle_bounds, growth_for_a_request_that_fails_later_does_not_stay, 0, BEST_FIT, "caching_vmm, vmm", EXACT) {
    static const strata_status_t refusals[] = {STRATA_E_DEVICE, STRATA_E_NO_MEMORY, STRATA_E_DEVICE_LOST};
    const strata_allocate_options_t options = {.struct_size = sizeof options, .size = MIB, .flags = STRATA_ZERO};
    for (size_t i = 0; i < COUNT(refusals); i++) {
        strata_block_t none;
        EXPECT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_fill, 1, true, refusals[i]));
        EXPECT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_stream_synchronise, 1, true, refusals[i]));
        EXPECT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_synchronise, 1, true, refusals[i]));
        EXPECT_STATUS(refusals[i], strata_allocate_with(rig->s, rig->gpu, NULL, &options, &none));
        strata_sim_clear_faults(rig->devices[0]);
        strata_statistics_t figures = rig_figures(rig);
        EXPECT_EQ(figures.reserved_bytes, figures.quarantined_bytes);
        (void)rig_release(rig);
        EXPECT_EQ(reserved(rig), 0);
        EXPECT_OK(strata_validate(rig->s));
    }
}
