/* What the driver's pool serves through cuda_malloc_async. The tests of the peer's async allocator are written anew from their
 * descriptions; each names the peer's. */
#include "allocation/domain/layer.h"
#include "facade/open/life.h"
#include "tests/async/async.h"
#include "tests/harness/owned.h"

void async_open(rig_t *rig, const char *const *set, size_t count, uint64_t capacity, bool contents) {
    strata_sim_options_t options = {.capacity = capacity, .contents = contents};
    rig_open_on(rig, rig_strategy("cuda_malloc_async", set, count), &options, 0);
    rig->borrowed_strategy = false;
}

uint64_t async_used(rig_t *rig) {
    strata_sim_figures_t figures;
    strata_sim_figures(rig->devices[0], &figures);
    return figures.used_bytes;
}

uint64_t async_peak_used(rig_t *rig) {
    strata_sim_figures_t figures;
    strata_sim_figures(rig->devices[0], &figures);
    return figures.peak_used_bytes;
}

/* The peer's AllocInterface: 256 B, freed, and 256 B again naming the default stream. */
TEST(async_pool, alloc_interface) {
    RIG_BY(rig, async_open(&rig, NULL, 0, 0, false));
    strata_block_t a = rig_allocate(&rig, NULL, 256);
    EXPECT_OK(strata_free(rig.s, a.ref));
    strata_block_t b = rig_allocate(&rig, STRATA_STREAM_LEGACY, 256);
    EXPECT_EQ((uintptr_t)a.ptr, (uintptr_t)b.ptr);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 256);
    EXPECT_OK(strata_free(rig.s, b.ref));
    EXPECT_GT(async_used(&rig), 0);
    uint64_t released = 0;
    EXPECT_OK(strata_release(rig.s, rig.gpu, &released));
    EXPECT_GT(released, 0);
    EXPECT_EQ(async_used(&rig), 0);
}

/* The peer's ZeroSize: nothing is served, and borrowing it works. */
TEST(async_pool, zero_size) {
    RIG_BY(rig, async_open(&rig, NULL, 0, 0, false));
    strata_stream_t other = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, NULL, 0);
    EXPECT_EQ(a.ptr, NULL);
    EXPECT_OK(strata_record_stream(rig.s, a.ref, other));
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc_async), 0);
}

/* The peer's GetStream: the owner is the stream that asked, the default one or another; its own use is no borrow. */
TEST(async_pool, get_stream) {
    RIG_BY(rig, async_open(&rig, NULL, 0, 0, false));
    strata_stream_t other = rig_stream(&rig), streams[2] = {NULL, other};
    for (int i = 0; i < 2; i++) {
        strata_block_t a = rig_allocate(&rig, streams[i], 1000);
        EXPECT_OK(strata_record_stream(rig.s, a.ref, streams[i]));
        EXPECT_EQ(rig_figures(&rig).borrows, i);
        EXPECT_OK(strata_record_stream(rig.s, a.ref, streams[1 - i]));
        EXPECT_OK(strata_record_stream(rig.s, a.ref, streams[1 - i]));
        EXPECT_EQ(rig_figures(&rig).borrows, i + 1);
        EXPECT_OK(strata_erase_stream(rig.s, a.ref, streams[1 - i]));
        EXPECT_OK(strata_free(rig.s, a.ref));
    }
    EXPECT_EQ(rig_figures(&rig).deferred_frees, 0);
}

/* The peer's RetryTest: three quarters of the device on one stream, freed but kept by the pool; the same on another stream. It
 * succeeds whether the pool may hand memory on or the ladder has to take it back first. */
TEST(async_pool, retry) {
    static const char *const none[] = {"cuda_malloc_async.reuse_follow_events=false", "cuda_malloc_async.reuse_opportunistic=false",
                                       "cuda_malloc_async.reuse_internal=false"};
    for (size_t off = 0; off <= 3; off += 3) {
        RIG_BY(rig, async_open(&rig, none, off, 64 * MIB, false));
        strata_stream_t first = rig_stream(&rig), second = rig_stream(&rig);
        strata_block_t a = rig_allocate(&rig, first, 48 * MIB);
        rig_work(&rig, first, 1000 * 1000, a.ref);
        EXPECT_OK(strata_free(rig.s, a.ref));
        strata_block_t b = rig_allocate(&rig, second, 48 * MIB);
        EXPECT_EQ(rig_figures(&rig).recoveries, off ? 1 : 0);
        EXPECT_OK(strata_free(rig.s, b.ref));
    }
}

/* A borrowed block in use counts as pending: the ladder waits for it instead of giving up. */
TEST(async_pool, out_of_memory_waits_for_borrowers) {
    static const char *const none[] = {"cuda_malloc_async.reuse_internal=false"};
    RIG_BY(rig, async_open(&rig, none, 1, 64 * MIB, false));
    strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, owner, 48 * MIB), b = {.ref = 7};
    rig_borrow(&rig, a.ref, borrower, 5 * 1000 * 1000);
    uint64_t done = strata_sim_stream_end(rig.devices[0], borrower);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_EQ(rig_figures(&rig).deferred_bytes, 48 * MIB);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 48 * MIB);
    b = rig_allocate(&rig, owner, 48 * MIB);
    EXPECT_GE(strata_sim_now(rig.world), done);
    EXPECT_EQ(rig_figures(&rig).deferred_bytes, 0);
    strata_block_t c = {.ref = 7};
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, owner, 48 * MIB, &c));
    EXPECT_EQ(c.ref, 7);
    EXPECT_OK(strata_free(rig.s, b.ref));
}

/* ---- lazily, and what is left behind ---- */

TEST(async_pool, no_device_call_before_it_is_needed) {
    RIG_BY(rig, async_open(&rig, NULL, 0, 0, false));
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_pool_set) + rig_calls(&rig, STRATA_CALL_stream_create), 0);
    strata_stream_t other = rig_stream(&rig);
    uint64_t made = rig_calls(&rig, STRATA_CALL_stream_create);
    strata_block_t a = rig_allocate(&rig, NULL, 1000);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_pool_set), 4);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_stream_create), made);
    for (int i = 0; i < 2; i++) {
        a = rig_allocate(&rig, NULL, 1000);
        EXPECT_OK(strata_record_stream(rig.s, a.ref, other));
        EXPECT_OK(strata_free(rig.s, a.ref));
    }
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_pool_set), 4);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_stream_create), made + 1);
}

static uint64_t default_pool_has(rig_t *rig, strata_pool_attribute_t attribute) {
    uint64_t value = 7;
    EXPECT_OK(strata_device_pool_get(rig->devices[0], NULL, attribute, &value));
    return value;
}

/* The default pool belongs to the whole process: it is left as it was found. */
TEST(async_pool, the_default_pool_is_left_as_it_was_found) {
    static const char *const set[] = {"cuda_malloc_async.reuse_opportunistic=false", "cuda_malloc_async.release_threshold=3MiB"};
    OPENED(rig_t, rig, rig_end, async_open(&rig, set, 2, 0, false));
    strata_block_t a = rig_allocate(&rig, NULL, 1000);
    EXPECT_EQ(default_pool_has(&rig, STRATA_POOL_REUSE_FOLLOW_EVENTS), 1);
    EXPECT_EQ(default_pool_has(&rig, STRATA_POOL_REUSE_OPPORTUNISTIC), 0);
    EXPECT_EQ(default_pool_has(&rig, STRATA_POOL_RELEASE_THRESHOLD), 3 * MIB);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_OK(strata_close(rig.s, STRATA_CLOSE_WAIT, NULL, NULL));
    EXPECT_EQ(default_pool_has(&rig, STRATA_POOL_REUSE_OPPORTUNISTIC), 1);
    EXPECT_EQ(default_pool_has(&rig, STRATA_POOL_RELEASE_THRESHOLD), 0);
    EXPECT_EQ(default_pool_has(&rig, STRATA_POOL_RESERVED_CURRENT), 0);
}

/* Whoever leaves it last puts back what the first one found, not what another facade had set. */
static void two_facades_leave_it(bool first_one_first) {
    static const char *const set[] = {"cuda_malloc_async.release_threshold=3MiB"};
    OPENED(rig_t, rig, rig_end, async_open(&rig, set, 1, 0, false));
    strata_t second, order[2];
    strata_block_t a = rig_allocate(&rig, NULL, 1000), b;
    ASSERT_OK(strata_facade_open_on(rig.strategy, rig.devices, rig.count, 0, &second));
    ASSERT_OK(strata_allocate(second, rig.gpu, NULL, 1000, &b));
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_OK(strata_free(second, b.ref));
    order[0] = first_one_first ? rig.s : second;
    order[1] = first_one_first ? second : rig.s;
    EXPECT_OK(strata_close(order[0], STRATA_CLOSE_WAIT, NULL, NULL));
    EXPECT_EQ(default_pool_has(&rig, STRATA_POOL_RELEASE_THRESHOLD), 3 * MIB);
    EXPECT_OK(strata_close(order[1], STRATA_CLOSE_WAIT, NULL, NULL));
    EXPECT_EQ(default_pool_has(&rig, STRATA_POOL_RELEASE_THRESHOLD), 0);
}

TEST(async_pool, the_default_pool_is_left_as_it_was_found_by_the_last_of_two_facades) {
    two_facades_leave_it(true);
    two_facades_leave_it(false);
}

/* What was changed before the refusal is put back. */
TEST(async_pool, the_default_pool_that_refuses_a_setting_is_as_it_was) {
    static const char *const set[] = {"cuda_malloc_async.reuse_opportunistic=false", "cuda_malloc_async.release_threshold=3MiB"};
    strata_block_t a;
    OPENED(rig_t, rig, rig_end, async_open(&rig, set, 2, 0, false));
    ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_pool_set, 4, false, STRATA_E_DEVICE));
    EXPECT_STATUS(STRATA_E_DEVICE, strata_allocate(rig.s, rig.gpu, NULL, 1000, &a));
    EXPECT_EQ(default_pool_has(&rig, STRATA_POOL_REUSE_OPPORTUNISTIC), 1);
    a = rig_allocate(&rig, NULL, 1000);
    EXPECT_EQ(default_pool_has(&rig, STRATA_POOL_RELEASE_THRESHOLD), 3 * MIB);
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_OK(strata_close(rig.s, STRATA_CLOSE_WAIT, NULL, NULL));
    EXPECT_EQ(default_pool_has(&rig, STRATA_POOL_REUSE_OPPORTUNISTIC), 1);
    EXPECT_EQ(default_pool_has(&rig, STRATA_POOL_RELEASE_THRESHOLD), 0);
}

/* With a threshold of 0 the pool gives everything back at the next wait of the host, with the default nothing. */
TEST(async_pool, release_threshold) {
    static const char *const thresholds[] = {"cuda_malloc_async.release_threshold=unlimited",
                                             "cuda_malloc_async.release_threshold=0"};
    for (int i = 0; i < 2; i++) {
        RIG_BY(rig, async_open(&rig, &thresholds[i], 1, 0, false));
        strata_block_t a = rig_allocate(&rig, NULL, 10 * MIB);
        EXPECT_OK(strata_free(rig.s, a.ref));
        uint64_t kept = async_used(&rig);
        EXPECT_GE(kept, 10 * MIB);
        EXPECT_OK(strata_device_synchronise(rig.devices[0]));
        EXPECT_EQ(async_used(&rig), i == 0 ? kept : 0);
    }
}

static strata_layer_t *async_layer(rig_t *rig) {
    const strata_stack_t *stack = rig_stack(rig, NULL);
    for (uint32_t i = 1; i <= stack->group->plan->count; i++)
        if (stack->layers[i]->type == strata_layer_find("cuda_malloc_async")) return stack->layers[i];
    return NULL;
}

static uint64_t borrowed_frees(rig_t *rig) {
    const strata_layer_t *layer = async_layer(rig);
    const strata_stat_row_t *row = layer->type->stats;
    uint64_t value = UINT64_MAX;
    while (row->name && strcmp(row->name, "borrowed_frees") != 0) row++;
    if (row->name) memcpy(&value, (const char *)layer + row->offset, sizeof value);
    return value;
}

/* What a trim of the layer is to keep is kept beside what is live. */
TEST(async_pool, a_trim_keeps_what_it_is_told_to) {
    RIG_BY(rig, async_open(&rig, NULL, 0, 0, false));
    strata_block_t live = rig_allocate(&rig, NULL, 64 * MIB), freed[8];
    for (int i = 0; i < 8; i++) freed[i] = rig_allocate(&rig, NULL, 32 * MIB);
    for (int i = 0; i < 8; i++) EXPECT_OK(strata_free(rig.s, freed[i].ref));
    strata_layer_t *layer = async_layer(&rig);
    ASSERT_TRUE(layer);
    strata_call_t call = {.stack = layer->stack};
    bool entered = strata_call_enter(&call, layer);
    EXPECT_EQ(layer->type->trim(layer, 96 * MIB, &call), 160 * MIB);
    EXPECT_EQ(async_used(&rig), (64 + 96) * MIB);
    EXPECT_EQ(layer->type->trim(layer, 0, &call), 96 * MIB);
    EXPECT_EQ(async_used(&rig), 64 * MIB);
    strata_call_exit(&call, layer, entered);
    EXPECT_OK(strata_free(rig.s, live.ref));
}

TEST(async_pool, own_pool) {
    static const char *const own[] = {"cuda_malloc_async.pool=own", "cuda_malloc_async.max_size=64MiB"};
    OPENED(rig_t, rig, rig_end, async_open(&rig, own, 2, 0, false));
    strata_block_t a = rig_allocate(&rig, NULL, 40 * MIB), b = {.ref = 7};
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_pool_create), 1);
    EXPECT_EQ(default_pool_has(&rig, STRATA_POOL_RESERVED_CURRENT), 0);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig.s, rig.gpu, NULL, 40 * MIB, &b));
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_OK(strata_close(rig.s, STRATA_CLOSE_WAIT, NULL, NULL));
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_pool_destroy), 1);
}

/* A pool of its own that cannot be set up goes back at once; the device's default pool is never destroyed. */
TEST(async_pool, a_pool_that_cannot_be_set_up_is_dropped) {
    static const char *const pools[] = {"cuda_malloc_async.pool=default", "cuda_malloc_async.pool=own"};
    for (uint64_t own = 0; own < 2; own++) {
        strata_block_t a = {.ref = 7};
        RIG_BY(rig, async_open(&rig, &pools[own], 1, 0, false));
        ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_pool_set, 1, true, STRATA_E_DEVICE));
        EXPECT_STATUS(STRATA_E_DEVICE, strata_allocate(rig.s, rig.gpu, NULL, 1000, &a));
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_pool_create), own);
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_pool_destroy), own);
        strata_sim_clear_faults(rig.devices[0]);
        a = rig_allocate(&rig, NULL, 1000);
        EXPECT_OK(strata_free(rig.s, a.ref));
    }
}

/* Nor can it be destroyed: the next request sets it up, or the end destroys it. */
TEST(async_pool, a_pool_that_can_neither_be_set_up_nor_destroyed_is_not_lost) {
    static const char *const own = "cuda_malloc_async.pool=own";
    for (int again = 0; again < 2; again++) {
        strata_block_t a = {.ref = 7};
        RIG_BY(rig, async_open(&rig, &own, 1, 0, false));
        ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_pool_set, 1, true, STRATA_E_DEVICE));
        ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_pool_destroy, 1, true, STRATA_E_DEVICE));
        for (int i = 0; i < 3; i++) EXPECT_STATUS(STRATA_E_DEVICE, strata_allocate(rig.s, rig.gpu, NULL, 1000, &a));
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_pool_create), 1);
        strata_sim_clear_faults(rig.devices[0]);
        if (again) EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, NULL, 1000).ref));
    }
}

/* The free stream cannot be marked after the free: the host waits for it. */
TEST(async_pool, a_free_after_others_that_cannot_be_marked_is_waited_for) {
    RIG_BY(rig, async_open(&rig, NULL, 0, 0, false));
    strata_stream_t borrower = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, NULL, 10 * MIB), b = rig_allocate(&rig, NULL, 10 * MIB);
    EXPECT_OK(strata_record_stream(rig.s, a.ref, borrower));
    EXPECT_OK(strata_record_stream(rig.s, b.ref, borrower));
    uint64_t before = rig_calls(&rig, STRATA_CALL_event_record);
    EXPECT_OK(strata_free(rig.s, a.ref));
    uint64_t records = rig_calls(&rig, STRATA_CALL_event_record) - before;
    EXPECT_EQ(borrowed_frees(&rig), 1);
    rig_work(&rig, borrower, 5 * 1000 * 1000, b.ref);
    uint64_t done = strata_sim_stream_end(rig.devices[0], borrower);
    ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_event_record, records, false, STRATA_E_DEVICE));
    EXPECT_OK(strata_free(rig.s, b.ref));
    EXPECT_GE(strata_sim_now(rig.world), done);
    EXPECT_EQ(rig_figures(&rig).deferred_frees, 1);
    EXPECT_EQ(borrowed_frees(&rig), 2);
    strata_sim_clear_faults(rig.devices[0]);
    EXPECT_OK(strata_validate(rig.s));
}

/* What the device does not take back is told in figures and never served again. */
TEST(async_pool, a_refused_free_is_quarantined) {
    RIG_BY(rig, async_open(&rig, NULL, 0, 0, false));
    strata_block_t a = rig_allocate(&rig, NULL, 40 * MIB);
    ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_free_async, 1, true, STRATA_E_DEVICE));
    EXPECT_OK(strata_free(rig.s, a.ref));
    strata_sim_clear_faults(rig.devices[0]);
    EXPECT_EQ(rig_figures(&rig).quarantined_bytes, 40 * MIB);
    strata_block_t b = rig_allocate(&rig, NULL, 40 * MIB);
    EXPECT_NE(b.ptr, a.ptr);
    EXPECT_OK(strata_free(rig.s, b.ref));
    EXPECT_OK(strata_validate(rig.s));
}

static void expect_refused(const char *text, const char *why) {
    strata_config_request_t request = {.text = text, .devices = "sim"};
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = NULL;
    strata_t s;
    strata_status_t status = strata_config_load(&request, &strategy);
    strata_open_options_t options = {
        .struct_size = sizeof options, .text = text, .devices = "sim", .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    if (status == STRATA_OK) status = strata_open(&options, &s);
    EXPECT_EQ(status, STRATA_E_STRATEGY);
    EXPECT_CONTAINS(strata_last_error()->text, why);
}

TEST(async_pool, options_that_do_not_fit_are_refused) {
    expect_refused("version: 1\nstack:\n  - cuda_malloc_async: {max_size: 1GiB}\n", "write pool: own beside it");
    expect_refused("version: 1\nstack:\n  - system\nplaces:\n  pinned:\n    - cuda_malloc_async\n", "serve only the place gpu");
}

/* ---- streams that end ---- */

/* A block outlives its stream: it is freed after the work that its stream had been given. */
/* Free by pointer covers what lives: a program that runs for ever covers no more at its end. */
TEST(async_pool, freed_memory_is_no_longer_covered) {
    RIG_BY(rig, async_open(&rig, NULL, 0, 0, false));
    strata_block_t a = rig_allocate(&rig, NULL, 1000);
    EXPECT_OK(strata_free_pointer(rig.s, a.ptr));
    const strata_directory_t *directory = rig_domain(&rig)->directory;
    ASSERT_NE(directory, NULL);
    uint32_t before = directory->used - directory->free_count;
    for (uint64_t i = 1; i < 5; i++) {
        a = rig_allocate(&rig, NULL, 16 * i * MIB);
        EXPECT_GT(directory->used - directory->free_count, before);
        EXPECT_OK(i % 2 ? strata_free(rig.s, a.ref) : strata_free_pointer(rig.s, a.ptr));
        EXPECT_EQ(directory->used - directory->free_count, before);
    }
}

TEST(async_pool, a_device_without_pools_is_told) {
    strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = rig_strategy("cuda_malloc_async", NULL, 0);
    RIG_BY(rig, rig_open_devices(&rig, strategy, &(strata_sim_options_t){.devices = 1}));
    rig.devices[0]->capabilities.pools = false;
    ASSERT_OK(strata_facade_open_on(strategy, rig.devices, 1, 0, &rig.s));
    strata_block_t block;
    EXPECT_SAYS(STRATA_E_UNSUPPORTED, strata_allocate(rig.s, rig.gpu, NULL, 1000, &block), "has no memory pools");
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc_async), 0);
}

TEST(async_pool, a_block_outlives_its_stream) {
    RIG_BY(rig, async_open(&rig, NULL, 0, 0, false));
    strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig), third = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, owner, MIB), b = rig_allocate(&rig, third, MIB);
    EXPECT_OK(strata_record_stream(rig.s, b.ref, borrower));
    rig_work(&rig, owner, 300 * 1000 * 1000, a.ref);
    rig_work(&rig, borrower, 200 * 1000 * 1000, b.ref);
    uint64_t done = strata_sim_stream_end(rig.devices[0], owner);
    strata_stream_t ending[2] = {owner, borrower};
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, ending[i]));
        EXPECT_OK(strata_stream_destroy(rig.s, rig.gpu, ending[i]));
    }
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_LT(strata_sim_now(rig.world), done);
    RIG_FREE(&rig, a, b);
    EXPECT_EQ(rig_figures(&rig).deferred_bytes, 2 * MIB);
    strata_block_t c = rig_allocate(&rig, third, MIB);
    EXPECT_NE((uintptr_t)c.ptr, (uintptr_t)a.ptr);
    EXPECT_NE((uintptr_t)c.ptr, (uintptr_t)b.ptr);
    EXPECT_OK(strata_free(rig.s, c.ref));
    rig_advance(&rig, 400 * 1000 * 1000);
    strata_pending_t pending;
    EXPECT_GE(strata_domain_poll(rig_domain(&rig), &pending), 2 * MIB);
    EXPECT_EQ(rig_figures(&rig).deferred_bytes, 0);
}

/* The stream that frees go after is made at the first of them: without one the host waits for all users, and the block is freed as
 * any is. */
TEST(async_pool, without_a_stream_to_free_on_the_host_waits) {
    RIG_BY(rig, async_open(&rig, NULL, 0, 0, false));
    strata_stream_t owner = rig_stream(&rig), borrower = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, owner, MIB), b = rig_allocate(&rig, owner, MIB);
    EXPECT_OK(strata_record_stream(rig.s, a.ref, borrower));
    rig_work(&rig, owner, 100 * 1000 * 1000, a.ref);
    rig_work(&rig, borrower, 200 * 1000 * 1000, a.ref);
    uint64_t done = strata_sim_stream_end(rig.devices[0], borrower);
    ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_stream_create, 1, false, STRATA_E_DEVICE));
    EXPECT_OK(strata_free(rig.s, a.ref));
    EXPECT_GE(strata_sim_now(rig.world), done);
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_free), 1);
    EXPECT_EQ(rig_figures(&rig).deferred_bytes, 0);
    EXPECT_EQ(rig_figures(&rig).quarantined_bytes, 0);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, MIB);
    EXPECT_OK(strata_validate(rig.s));
    /* The next one has a stream again. */
    rig_borrow(&rig, b.ref, borrower, 100 * 1000 * 1000);
    EXPECT_OK(strata_free(rig.s, b.ref));
    EXPECT_EQ(rig_figures(&rig).deferred_bytes, MIB);
    EXPECT_LT(strata_sim_now(rig.world), strata_sim_stream_end(rig.devices[0], borrower));
}
