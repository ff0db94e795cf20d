/* Calls that meet a pause in the middle: one thread is held in a device call while another pauses, or the other way round. */
#include <unistd.h>

#include "tests/facade/support/interleaving.h"
#include "tests/pause/pause.h"

/* The first device stops in front of a call of one kind until it is let go. */
typedef struct gate {
    strata_device_operations_t table;
    const strata_device_operations_t *real;
    strata_device_t *device;
    _Atomic bool entered, open;
} gate_t;

static gate_t gate;

static void pass(void) {
    bool outside = false;
    if (!atomic_compare_exchange_strong(&gate.entered, &outside, true)) return;
    while (!atomic_load(&gate.open)) usleep(200);
}

static strata_status_t create(strata_device_t *device, uint64_t size, bool shareable, strata_physical_t *handle) {
    pass();
    return gate.real->create(device, size, shareable, handle);
}

static strata_status_t unmap(strata_device_t *device, strata_address_t address, uint64_t size) {
    pass();
    return gate.real->unmap(device, address, size);
}

static strata_status_t copy(strata_device_t *device, strata_address_t address, void *host, uint64_t size, bool to_host,
                            strata_handle_t stream) {
    pass();
    return gate.real->copy(device, address, host, size, to_host, stream);
}

static void close_gate(rig_t *rig, strata_device_call_t call) {
    gate.device = rig->devices[0];
    gate.real = gate.device->operations;
    gate.table = *gate.real;
    if (call == STRATA_CALL_create) gate.table.create = create;
    else if (call == STRATA_CALL_unmap) gate.table.unmap = unmap;
    else gate.table.copy = copy;
    atomic_store(&gate.entered, false);
    atomic_store(&gate.open, false);
    gate.device->operations = &gate.table;
}

static void wait_until_entered(void) {
    while (!atomic_load(&gate.entered)) usleep(200);
}

typedef struct doing {
    rig_t *rig;
    strata_allocator_t allocator;
    strata_block_t block;
    strata_status_t status;
    _Atomic bool done;
} doing_t;

static void *allocate_it(void *context) {
    doing_t *doing = context;
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = 3 * MIB, .flags = STRATA_ZERO};
    doing->status = strata_allocate_with(doing->rig->s, doing->rig->gpu, NULL, &options, &doing->block);
    atomic_store(&doing->done, true);
    return NULL;
}

static void *free_it(void *context) {
    doing_t *doing = context;
    doing->status = strata_free(doing->rig->s, doing->block.ref);
    atomic_store(&doing->done, true);
    return NULL;
}

static void *pause_as(doing_t *doing, uint32_t contents) {
    doing->status = pause_try(doing->rig, STRATA_POOL_ORDINARY, NULL, contents, NULL);
    atomic_store(&doing->done, true);
    return NULL;
}

static void *pause_it(void *context) { return pause_as(context, STRATA_PAUSE_PINNED); }

static void *pause_without_contents(void *context) { return pause_as(context, STRATA_PAUSE_DROP); }

/* The second is started when the first is held; it must not end before the first does. */
static void meet(void *(*first)(void *), doing_t *one, void *(*second)(void *), doing_t *two) {
    pthread_t threads[2];
    ASSERT_EQ(pthread_create(&threads[0], NULL, first, one), 0);
    wait_until_entered();
    ASSERT_EQ(pthread_create(&threads[1], NULL, second, two), 0);
    usleep(30000);
    EXPECT_FALSE(atomic_load(&two->done));
    atomic_store(&gate.open, true);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    gate.device->operations = gate.real;
    EXPECT_OK(one->status);
    EXPECT_OK(two->status);
}

static void *free_and_release(void *context) {
    doing_t *doing = context;
    doing->status = strata_free(doing->rig->s, doing->block.ref);
    if (doing->status == STRATA_OK) doing->status = strata_allocator_release(doing->allocator, NULL);
    atomic_store(&doing->done, true);
    return NULL;
}

static void *free_and_release_all(void *context) {
    doing_t *doing = context;
    doing->status = strata_free(doing->rig->s, doing->block.ref);
    if (doing->status == STRATA_OK) doing->status = strata_release(doing->rig->s, doing->rig->gpu, NULL);
    atomic_store(&doing->done, true);
    return NULL;
}

/* No mapping of a view ends while what lies there is being copied. */
TEST(pause_between, a_view_that_is_released_while_it_is_copied_waits) {
    PAUSED_RIG(rig, "stack: [auto_growth_vmm: {slack: 0, slack_least: 0}, vmm]");
    doing_t pause = {.rig = &rig}, end = {.rig = &rig};
    pthread_t threads[2];
    strata_block_t low = rig_allocate(&rig, NULL, 2 * MIB), middle = rig_allocate(&rig, NULL, 120 * MIB),
                   high = rig_allocate(&rig, NULL, 2 * MIB);
    RIG_FREE(&rig, low, high);
    end.block = rig_allocate(&rig, NULL, 4 * MIB);
    ASSERT_OK(strata_allocator_get(rig.s, rig.gpu, NULL, 0, &end.allocator));
    close_gate(&rig, STRATA_CALL_copy);
    ASSERT_EQ(pthread_create(&threads[0], NULL, pause_it, &pause), 0);
    wait_until_entered();
    uint64_t unmaps = rig_calls(&rig, STRATA_CALL_unmap);
    ASSERT_EQ(pthread_create(&threads[1], NULL, free_and_release, &end), 0);
    usleep(30000);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_unmap), unmaps);
    EXPECT_FALSE(atomic_load(&end.done));
    atomic_store(&gate.open, true);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    gate.device->operations = gate.real;
    EXPECT_OK(pause.status);
    EXPECT_OK(end.status);
    (void)resume_do(&rig, STRATA_POOL_ORDINARY);
    EXPECT_OK(strata_validate(rig.s));
    RIG_FREE(&rig, middle);
}

/* While the view's mappings are ending, the device would keep the memory of the handles. */
TEST(pause_between, a_view_that_has_begun_to_end_ends_first) {
    PAUSED_RIG(rig, "stack: [auto_growth_vmm: {slack: 0, slack_least: 0}, vmm]");
    doing_t pause = {.rig = &rig}, end = {.rig = &rig};
    strata_block_t low = rig_allocate(&rig, NULL, 2 * MIB), middle = rig_allocate(&rig, NULL, 120 * MIB),
                   high = rig_allocate(&rig, NULL, 2 * MIB);
    RIG_FREE(&rig, low, high);
    end.block = rig_allocate(&rig, NULL, 4 * MIB);
    close_gate(&rig, STRATA_CALL_unmap);
    meet(free_and_release_all, &end, pause_without_contents, &pause);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
    (void)resume_do(&rig, STRATA_POOL_ORDINARY);
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 120 * MIB);
    RIG_FREE(&rig, middle);
    rig_expect_empty(&rig);
}

static void pause_twice(void *context) {
    for (int i = 0; i < 2; i++) (void)pause_do(context, STRATA_POOL_EVERY, STRATA_PAUSE_DROP);
}

/* A release waits for the work of a view. Meanwhile one pause frees the handles of that view and releases their memory, and
 * another one tries to end them. They stay as long as the view has mappings of them. */
TEST(pause_between, handles_whose_view_waits_for_its_work_stay) {
    PAUSED_RIG(rig, "stack: [auto_growth_vmm: {slack: 0, slack_least: 0}, vmm]");
    between_t between;
    strata_block_t low = rig_allocate(&rig, NULL, 2 * MIB), middle = rig_allocate(&rig, NULL, 120 * MIB),
                   high = rig_allocate(&rig, NULL, 2 * MIB);
    RIG_FREE(&rig, low, high);
    RIG_FREE(&rig, rig_allocate(&rig, NULL, 4 * MIB));
    between_begin(&between, &rig, STRATA_CALL_event_synchronise, pause_twice, &rig);
    (void)rig_release(&rig);
    EXPECT_TRUE(between_end(&between));
    (void)resume_do(&rig, STRATA_POOL_EVERY);
    (void)rig_release(&rig);
    EXPECT_EQ(rig_figures(&rig).quarantined_bytes, 0);
    EXPECT_EQ(rig_figures(&rig).paused_bytes, 0);
    strata_block_t next[4];
    for (size_t i = 0; i < COUNT(next); i++) next[i] = rig_allocate(&rig, NULL, 30 * MIB);
    EXPECT_OK(strata_validate(rig.s));
    RIG_FREE(&rig, next[0], next[1], next[2], next[3], middle);
    rig_expect_empty(&rig);
}

/* What a request gets that has begun before the pause is zeroed before its memory goes. */
TEST(pause_between, a_request_that_has_begun_ends_first) {
    PAUSED_RIG(rig, PAUSE_MOVING);
    doing_t request = {.rig = &rig}, pause = {.rig = &rig};
    close_gate(&rig, STRATA_CALL_create);
    meet(allocate_it, &request, pause_it, &pause);
    EXPECT_TRUE(pause_bytes(&rig, &request.block) == NULL);
    resume_do(&rig, STRATA_POOL_ORDINARY);
    EXPECT_EQ(pause_bytes(&rig, &request.block)[3 * MIB - 1], 0);
    rig_register(&rig, request.block.ref);
}

/* Its memory is being copied: the free waits, and then what was kept of it goes too. */
TEST(pause_between, a_block_that_is_freed_while_it_is_copied_waits) {
    PAUSED_RIG(rig, "stack: [vmm]\n");
    doing_t pause = {.rig = &rig}, end = {.rig = &rig};
    strata_block_t other = rig_allocate(&rig, NULL, 2 * MIB);
    pause_write(&rig, &other, 6);
    end.block = rig_allocate(&rig, NULL, 5 * MIB);
    close_gate(&rig, STRATA_CALL_copy);
    meet(pause_it, &pause, free_it, &end);
    EXPECT_EQ(rig_figures(&rig).paused_bytes, 2 * MIB);
    EXPECT_EQ(resume_do(&rig, STRATA_POOL_ORDINARY).bytes, 2 * MIB);
    EXPECT_TRUE(pause_holds(&rig, &other, 6));
    EXPECT_EQ(rig_figures_in(&rig, strata_pinned()).allocated_bytes, 0);
}

/* Of two pauses the second finds nothing more to do. */
TEST(pause_between, pauses_wait_for_one_another) {
    PAUSED_RIG(rig, PAUSE_MOVING);
    doing_t one = {.rig = &rig}, two = {.rig = &rig};
    strata_block_t block = rig_allocate(&rig, NULL, 5 * MIB);
    pause_write(&rig, &block, 6);
    close_gate(&rig, STRATA_CALL_copy);
    meet(pause_it, &one, pause_it, &two);
    resume_do(&rig, STRATA_POOL_ORDINARY);
    EXPECT_TRUE(pause_holds(&rig, &block, 6));
}

/* A release that cannot wait for the work of a view leaves its mappings; the handles below, which a pause has emptied, stay with them. */
TEST(pause, what_was_paused_stays_as_long_as_a_view_of_it) {
    PAUSED_RIG(rig, "stack: [auto_growth_vmm: {slack: 0, slack_least: 0}, vmm]");
    strata_block_t low = rig_allocate(&rig, NULL, 2 * MIB), middle = rig_allocate(&rig, NULL, 120 * MIB),
                   high = rig_allocate(&rig, NULL, 2 * MIB);
    RIG_FREE(&rig, low, high);
    RIG_FREE(&rig, rig_allocate(&rig, NULL, 4 * MIB));
    (void)pause_do(&rig, STRATA_POOL_EVERY, STRATA_PAUSE_DROP);
    EXPECT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_event_synchronise, 1, true, STRATA_E_DEVICE));
    EXPECT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_synchronise, 1, true, STRATA_E_DEVICE));
    for (int i = 0; i < 3; i++) (void)strata_release(rig.s, rig.gpu, NULL);
    strata_sim_clear_faults(rig.devices[0]);
    (void)resume_do(&rig, STRATA_POOL_EVERY);
    strata_block_t next = rig_allocate(&rig, NULL, 30 * MIB);
    EXPECT_OK(strata_validate(rig.s));
    (void)rig_release(&rig);
    RIG_FREE(&rig, next, middle);
}
