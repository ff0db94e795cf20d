/* What a pause refuses, by name; and that nothing has changed after it. */
#include "platform/place.h"
#include "tests/pause/pause.h"

static void expect_untouched(rig_t *rig, const strata_block_t *block, uint32_t seed) {
    EXPECT_TRUE(pause_holds(rig, block, seed));
    EXPECT_EQ(rig_figures(rig).paused_bytes, 0);
    EXPECT_EQ(rig_figures_in(rig, strata_pinned()).allocated_bytes, 0);
    EXPECT_OK(rig_try(rig, NULL, 3 * MIB));
    EXPECT_OK(strata_validate(rig->s));
}

typedef struct refused {
    const char *name, *strategy, *says;
} refused_t;

static const refused_t refusals[] = {
    {"system", "strata-malloc", "system"},
    {"cuda_malloc_async", "cuda_malloc_async", "cuda_malloc_async"},
    {"one_of_two", "stack: [fallback: {stacks: [[auto_growth, vmm], [auto_growth, system]]}]", "system"},
    {"guard", "stack: [guard, auto_growth, vmm]", "guard"},
};

TEST_EACH(pause_refused, what_is_not_in_handles, refused_t, refusals) {
    PAUSED_RIG(rig, row->strategy);
    strata_block_t a = rig_allocate(&rig, NULL, 5 * MIB);
    (void)a;
    EXPECT_SAYS(STRATA_E_UNSUPPORTED, pause_try(&rig, STRATA_POOL_ORDINARY, NULL, STRATA_PAUSE_PINNED, NULL), row->says);
    EXPECT_OK(rig_try(&rig, NULL, 3 * MIB));
    EXPECT_OK(strata_resume(rig.s, rig.gpu, STRATA_POOL_ORDINARY, NULL, NULL));
}

TEST(pause_refused, every_pool_where_none_is_in_handles) {
    PAUSED_RIG(rig, "strata-malloc");
    EXPECT_SAYS(STRATA_E_UNSUPPORTED, pause_try(&rig, STRATA_POOL_EVERY, NULL, STRATA_PAUSE_PINNED, NULL), "system");
}

TEST(pause_refused, other_places) {
    PAUSED_RIG(rig, "strata");
    strata_pause_options_t options = {.struct_size = sizeof options, .pool = STRATA_POOL_ORDINARY};
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, strata_pause(rig.s, strata_pinned(), &options, NULL));
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, strata_pause(rig.s, strata_host(), &options, NULL));
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, strata_pause(rig.s, strata_managed(0), &options, NULL));
}

TEST(pause_refused, wrong_options) {
    PAUSED_RIG(rig, PAUSE_MOVING);
    strata_paused_t report = {0};
    strata_pause_options_t options = {.struct_size = 3};
    EXPECT_STATUS(STRATA_E_INVALID, strata_pause(rig.s, rig.gpu, NULL, NULL));
    EXPECT_STATUS(STRATA_E_INVALID, strata_pause(rig.s, rig.gpu, &options, NULL));
    options.struct_size = sizeof options;
    EXPECT_STATUS(STRATA_E_INVALID, strata_pause(rig.s, rig.gpu, &options, &report));
    EXPECT_STATUS(STRATA_E_INVALID, strata_resume(rig.s, rig.gpu, 0, NULL, &report));
    options.contents = 3;
    EXPECT_STATUS(STRATA_E_INVALID, strata_pause(rig.s, rig.gpu, &options, NULL));
    options.contents = STRATA_PAUSE_FILE;
    EXPECT_STATUS(STRATA_E_INVALID, strata_pause(rig.s, rig.gpu, &options, NULL));
    options = (strata_pause_options_t){.struct_size = sizeof options, .pool = 12345678};
    EXPECT_STATUS(STRATA_E_INVALID, strata_pause(rig.s, rig.gpu, &options, NULL));
    EXPECT_STATUS(STRATA_E_INVALID, strata_resume(rig.s, rig.gpu, 12345678, NULL, NULL));
    EXPECT_OK(rig_try(&rig, NULL, 100));
}

/* ---- memory that others rely on ---- */

TEST(pause_refused, memory_that_was_exported) {
    PAUSED_RIG(rig, PAUSE_MOVING);
    strata_block_t a = rig_allocate(&rig, NULL, 5 * MIB);
    strata_shared_t shared;
    pause_write(&rig, &a, 1);
    EXPECT_OK(strata_export(rig.s, a.ref, &shared));
    EXPECT_SAYS(STRATA_E_BUSY, pause_try(&rig, STRATA_POOL_ORDINARY, NULL, STRATA_PAUSE_PINNED, NULL), "exported");
    expect_untouched(&rig, &a, 1);
    strata_shared_close(&shared);
}

TEST(pause_refused, memory_that_is_registered_until_it_is_not) {
    PAUSED_RIG(rig, PAUSE_MOVING);
    strata_block_t a = rig_allocate(&rig, NULL, 5 * MIB);
    strata_registration_t registration;
    pause_write(&rig, &a, 1);
    EXPECT_OK(strata_register(rig.s, a.ref, &registration));
    EXPECT_SAYS(STRATA_E_BUSY, pause_try(&rig, STRATA_POOL_ORDINARY, NULL, STRATA_PAUSE_PINNED, NULL), "registered");
    expect_untouched(&rig, &a, 1);
    EXPECT_OK(strata_unregister(rig.s, &registration));
    EXPECT_GT(pause_do(&rig, STRATA_POOL_ORDINARY, STRATA_PAUSE_PINNED).bytes, 0);
    resume_do(&rig, STRATA_POOL_ORDINARY);
}

TEST(pause_refused, export_and_registration_of_what_is_paused) {
    PAUSED_RIG(rig, PAUSE_MOVING);
    strata_block_t a = rig_allocate(&rig, NULL, 5 * MIB);
    strata_shared_t shared;
    strata_registration_t registration;
    pause_do(&rig, STRATA_POOL_ORDINARY, STRATA_PAUSE_PINNED);
    EXPECT_STATUS(STRATA_E_BUSY, strata_export(rig.s, a.ref, &shared));
    EXPECT_SAYS(STRATA_E_BUSY, strata_register(rig.s, a.ref, &registration), "paused");
    resume_do(&rig, STRATA_POOL_ORDINARY);
    EXPECT_OK(strata_export(rig.s, a.ref, &shared));
    strata_shared_close(&shared);
}

/* ---- room for the bytes ---- */

TEST(pause_refused, pinned_memory_has_no_room) {
    PAUSED_RIG(rig, PAUSE_MOVING);
    strata_block_t a = rig_allocate(&rig, NULL, 50 * MIB), b = rig_allocate(&rig, NULL, 50 * MIB);
    pause_write(&rig, &a, 1);
    pause_write(&rig, &b, 2);
    EXPECT_OK(strata_set_limit(rig.s, strata_pinned(), 70 * MIB));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, pause_try(&rig, STRATA_POOL_ORDINARY, NULL, STRATA_PAUSE_PINNED, NULL));
    expect_untouched(&rig, &a, 1);
    EXPECT_TRUE(pause_holds(&rig, &b, 2));
    EXPECT_OK(pause_try(&rig, STRATA_POOL_ORDINARY, NULL, STRATA_PAUSE_FILE, NULL));
    resume_do(&rig, STRATA_POOL_ORDINARY);
    expect_untouched(&rig, &a, 1);
}

TEST(pause_refused, no_file_can_be_made) {
    PAUSED_RIG(rig, PAUSE_MOVING);
    strata_block_t a = rig_allocate(&rig, NULL, 5 * MIB);
    pause_write(&rig, &a, 1);
    strata_pause_options_t options = {
        .struct_size = sizeof options, .pool = STRATA_POOL_ORDINARY, .contents = STRATA_PAUSE_FILE, .directory = "/no/such/folder"};
    EXPECT_STATUS(STRATA_E_IO, strata_pause(rig.s, rig.gpu, &options, NULL));
    expect_untouched(&rig, &a, 1);
    char name[5000];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = 0;
    options.directory = name;
    EXPECT_STATUS(STRATA_E_INVALID, strata_pause(rig.s, rig.gpu, &options, NULL));
    expect_untouched(&rig, &a, 1);
}

/* Others have taken the memory. Everything stays paused, and comes later. */
TEST(pause_refused, a_resume_without_memory_can_be_made_again) {
    PAUSED_RIG(rig, PAUSE_POOLS);
    uint64_t weights = pause_pool(&rig, "weights"), cache = pause_pool(&rig, "cache");
    strata_block_t x = pause_allocate_in(&rig, weights, NULL, 5 * MIB, NULL);
    strata_block_t w = pause_allocate_in(&rig, weights, NULL, 256 * MIB, NULL);
    pause_write(&rig, &w, 1);
    pause_write(&rig, &x, 2);
    uint64_t bytes = pause_do(&rig, weights, STRATA_PAUSE_PINNED).bytes, used = pause_used(&rig);
    strata_block_t k = pause_allocate_in(&rig, cache, NULL, 4000 * MIB, NULL);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_resume(rig.s, rig.gpu, weights, NULL, NULL));
    EXPECT_EQ(rig_figures(&rig).paused_bytes, bytes);
    EXPECT_TRUE(pause_bytes(&rig, &w) == NULL);
    EXPECT_OK(strata_set_limit(rig.s, rig.gpu, 4010 * MIB));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_resume(rig.s, rig.gpu, weights, NULL, NULL));
    /* What lies idle in another pool makes room. */
    EXPECT_OK(strata_free(rig.s, k.ref));
    EXPECT_EQ(resume_do(&rig, weights).bytes, bytes);
    EXPECT_EQ(pause_used(&rig), used + bytes);
    EXPECT_TRUE(pause_holds(&rig, &w, 1) && pause_holds(&rig, &x, 2));
}

/* ---- the facade ---- */

static uint64_t pause_in_callback(strata_place_t place, size_t size, void *context) {
    rig_t *rig = context;
    (void)place, (void)size;
    EXPECT_STATUS(STRATA_E_BUSY, pause_try(rig, STRATA_POOL_ORDINARY, NULL, STRATA_PAUSE_DROP, NULL));
    EXPECT_STATUS(STRATA_E_BUSY, strata_resume(rig->s, rig->gpu, STRATA_POOL_ORDINARY, NULL, NULL));
    return 0;
}

TEST(pause_refused, inside_a_callback) {
    PAUSED_RIG(rig, PAUSE_MOVING);
    uint32_t id;
    EXPECT_OK(strata_add_free_memory_callback(rig.s, pause_in_callback, &rig, &id));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(&rig, NULL, 100 * GIB));
}

TEST(pause_refused, a_facade_with_paused_blocks_closes_by_force_alone) {
    for (uint32_t contents = STRATA_PAUSE_DROP; contents <= STRATA_PAUSE_FILE; contents++) {
        rig_t rig;
        pause_open(&rig, PAUSE_MOVING);
        strata_block_t a = rig_allocate(&rig, NULL, 5 * MIB);
        pause_do(&rig, STRATA_POOL_ORDINARY, contents);
        EXPECT_STATUS(STRATA_E_BUSY, strata_close(rig.s, STRATA_CLOSE_BUSY, NULL, NULL));
        EXPECT_STATUS(STRATA_E_BUSY,
                      strata_change_strategy(
                          rig.s, &(strata_open_options_t){.struct_size = sizeof(strata_open_options_t), .preset = "strata"}));
        resume_do(&rig, STRATA_POOL_ORDINARY);
        pause_do(&rig, STRATA_POOL_ORDINARY, contents);
        (void)a;
        rig_close_by_force(&rig);
    }
}

/* With nothing live it closes, and changes its strategy, whatever was paused. */
TEST(pause_refused, a_facade_whose_paused_blocks_are_freed_closes) {
    rig_t rig;
    pause_open(&rig, PAUSE_MOVING);
    strata_block_t a = rig_allocate(&rig, NULL, 5 * MIB);
    pause_do(&rig, STRATA_POOL_ORDINARY, STRATA_PAUSE_PINNED);
    EXPECT_OK(strata_free(rig.s, a.ref));
    strata_open_options_t options = {.struct_size = sizeof options, .preset = "strata", .devices = rig.strategy->devices};
    EXPECT_OK(strata_change_strategy(rig.s, &options));
    a = rig_allocate(&rig, NULL, 5 * MIB);
    pause_do(&rig, STRATA_POOL_ORDINARY, STRATA_PAUSE_PINNED);
    EXPECT_OK(strata_free(rig.s, a.ref));
    rig_close(&rig);
}

/* ---- views ---- */

/* A view that the device does not unmap keeps its handles. A pause ends the mappings, but not the views, so the handles are
 * still known afterwards. */
TEST(pause_refused, handles_of_a_view_that_stayed_mapped_are_kept_until_it_ends) {
    RIG(rig, "stack: [stream_safe, auto_growth_vmm, vmm]", 0);
    strata_block_t blocks[4], large;
    for (int i = 0; i < 4; i++) blocks[i] = rig_allocate(&rig, NULL, 16 * MIB);
    RIG_FREE(&rig, blocks[0], blocks[2]);
    large = rig_allocate(&rig, NULL, 32 * MIB);
    EXPECT_LT(rig_figures(&rig).reserved_bytes, 80 * MIB);
    RIG_FREE(&rig, large, blocks[1], blocks[3]);
    ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_unmap, 1, true, STRATA_E_DEVICE));
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    strata_sim_clear_faults(rig.devices[0]);
    EXPECT_GT(rig_figures(&rig).quarantined_bytes, 0);
    (void)pause_do(&rig, STRATA_POOL_EVERY, STRATA_PAUSE_PINNED);
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_OK(strata_validate(rig.s));
    (void)resume_do(&rig, STRATA_POOL_EVERY);
    EXPECT_OK(strata_validate(rig.s));
    strata_block_t again = rig_allocate(&rig, NULL, 64 * MIB);
    RIG_FREE(&rig, again);
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
    EXPECT_EQ(rig_figures(&rig).quarantined_bytes, 0);
}

/* ---- second mappings that the device keeps ---- */

static struct {
    strata_device_operations_t table;
    const strata_device_operations_t *real;
    uint64_t begin, end; /* the addresses whose mappings stay */
} keeping;

static strata_status_t unmap_elsewhere(strata_device_t *device, strata_address_t address, uint64_t size) {
    if (address >= keeping.begin && address < keeping.end)
        return strata_fail(STRATA_E_DEVICE, 0, "the test keeps the mapping at %#llx", (unsigned long long)address);
    return keeping.real->unmap(device, address, size);
}

static void keep_mappings(rig_t *rig, const strata_block_t *block) {
    keeping.real = rig->devices[0]->operations;
    keeping.table = *keeping.real;
    keeping.table.unmap = unmap_elsewhere;
    keeping.begin = (uintptr_t)block->ptr;
    keeping.end = keeping.begin + block->size;
    rig->devices[0]->operations = &keeping.table;
}

/* A release could not end the second mappings of two handles, and neither can the pause. The device keeps the memory of a handle
 * that is mapped anywhere, so these two are not reported as released. They go once the device ends the mappings. */
TEST(pause_refused, handles_whose_second_mappings_stay_count) {
    PAUSED_RIG(rig, "stack: [auto_growth_vmm: {slack: 0, slack_least: 0}, vmm]");
    uint64_t unused = pause_used(&rig);
    strata_block_t low = rig_allocate(&rig, NULL, 2 * MIB), middle = rig_allocate(&rig, NULL, 120 * MIB),
                   high = rig_allocate(&rig, NULL, 2 * MIB);
    RIG_FREE(&rig, low, high);
    strata_block_t both = rig_allocate(&rig, NULL, 4 * MIB);
    RIG_FREE(&rig, both);
    keep_mappings(&rig, &both);
    EXPECT_EQ(rig_release(&rig), 0);
    EXPECT_EQ(rig_figures(&rig).quarantined_bytes, 4 * MIB);
    strata_paused_t report = pause_do(&rig, 0, STRATA_PAUSE_DROP);
    EXPECT_EQ(report.bytes, 120 * MIB);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 4 * MIB);
    EXPECT_EQ(pause_used(&rig), unused + 4 * MIB);
    rig.devices[0]->operations = keeping.real;
    for (int again = 0; again < 2; again++) (void)rig_release(&rig);
    EXPECT_EQ(rig_figures(&rig).quarantined_bytes, 0);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
    EXPECT_EQ(pause_used(&rig), unused);
    (void)resume_do(&rig, 0);
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 120 * MIB);
    strata_block_t after[4];
    for (int i = 0; i < 4; i++) after[i] = rig_allocate(&rig, NULL, 30 * MIB);
    EXPECT_OK(strata_validate(rig.s));
    RIG_FREE(&rig, after[0], after[1], after[2], after[3], middle);
    rig_expect_empty(&rig);
}
