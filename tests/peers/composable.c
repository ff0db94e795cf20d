/* Rows of RMM's conformance that concern one layer, or two that stand together. Those that every layer must hold are checks of
 * lab/conform/; docs/peers.md has all. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/allocation/bench.h"
#include "tests/decorators/decorators.h"
#include "tests/harness/files.h"
#include "tests/harness/owned.h"
#include "trace/trace.h"

static void open_stack(rig_t *rig, const char *stack) { decorated_open(rig, stack, NULL, &(strata_sim_options_t){0}); }

static strata_status_t try(rig_t *rig, size_t size, strata_block_t *block) {
    return strata_allocate(rig->s, rig->gpu, NULL, size, block);
}

/* ---- pools and their caps ---- */

/* Row 11: a cap below the initial size, and sizes that are no multiples of 256, are logic errors there; 1000192 serves 1000 B. Here
 * sizes are rounded up, and a cap below the first chunk is out of memory that names the limit. */
TEST(peers_composable, row_11_sizes_of_pools) {
    static const char *const rounded[] = {"[{auto_growth: {chunk_size: 1000031}}, {limit: {bytes: 1000192}}, system]",
                                          "[{auto_growth: {chunk_size: 1000192}}, {limit: {bytes: 1000192}}, system]"};
    rig_t rig;
    strata_block_t b = {.ref = 3};
    for (int i = 0; i < 2; i++) {
        open_stack(&rig, rounded[i]);
        EXPECT_OK(try(&rig, 1000, &b));
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, 1000192);
        EXPECT_OK(strata_free(rig.s, b.ref));
        rig_close(&rig);
    }
    b = (strata_block_t){.ref = 3};
    open_stack(&rig, "[{auto_growth: {chunk_size: 1024}}, {limit: {bytes: 256}}, system]");
    EXPECT_SAYS(STRATA_E_NO_MEMORY, try(&rig, 1000, &b), "limit");
    EXPECT_EQ(b.ref, 3);
    rig_close(&rig);
}

/* Row 12: a pool over a limiter of 6000: 1000, 4000 and 500 pass (it grows by 1024, 4096, and less and less until it fits), 2000
 * fails. Strata halves nothing: with `smaller_growth` it asks for the rounded request at once. */
TEST(peers_composable, row_12_pool_over_limiter) {
    strata_block_t a, b, c, none;
    RIG_BY(rig,
           open_stack(&rig, "[{retry: {timeout: 0}}, {auto_growth: {chunk_size: 1024, reclaim: ladder, smaller_growth: true}}, "
                            "{limit: {bytes: 6000}}, system]"));
    EXPECT_OK(try(&rig, 1000, &a));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 1024);
    EXPECT_OK(try(&rig, 4000, &b));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 1024 + 4096);
    EXPECT_OK(try(&rig, 500, &c));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 1024 + 4096 + 512);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, try(&rig, 2000, &none));
    RIG_FREE(&rig, a, b, c);
}

/* Row 13: the same where the pool grows by 4096: 1000 passes, 4000 fails, 500 and 2000 pass. */
TEST(peers_composable, row_13_capped_pool_over_limiter) {
    strata_block_t a, b, c, none;
    RIG_BY(rig, open_stack(&rig, "[{auto_growth: {chunk_size: 4096}}, {limit: {bytes: 6000}}, system]"));
    EXPECT_OK(try(&rig, 1000, &a));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, try(&rig, 4000, &none));
    EXPECT_OK(try(&rig, 500, &b));
    EXPECT_OK(try(&rig, 2000, &c));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 4096);
    RIG_FREE(&rig, a, b, c);
}

/* Row 14: a pool of 90 % of the device; two of a quarter from a pool of half; a pool over a pool. */
TEST(peers_composable, row_14_large_pools_and_pools_of_pools) {
    static const char *const stacks[] = {"[{auto_growth: {chunk_size: 900MiB}}, system]",
                                         "[{auto_growth: {chunk_size: 500MiB}}, system]",
                                         "[{auto_growth: {chunk_size: 250MiB}}, {auto_growth: {chunk_size: 500MiB}}, system]"};
    static const uint64_t reserved[] = {900 * MIB, 500 * MIB, 500 * MIB};
    for (int i = 0; i < 3; i++) {
        strata_block_t a, b;
        DECORATED(rig, stacks[i], 1000 * MIB);
        EXPECT_OK(try(&rig, 250 * MIB, &a));
        EXPECT_OK(try(&rig, 250 * MIB, &b));
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), 1);
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, reserved[i]);
        RIG_FREE(&rig, a, b);
    }
}

/* ---- failures ---- */

static uint64_t promise(strata_place_t place, size_t size, void *context) {
    (void)place;
    EXPECT_EQ(size, 5000);
    return ++*(uint32_t *)context == 1 ? size : 0;
}

static void hear(const strata_out_of_memory_t *event, void *context) {
    EXPECT_EQ(event->size, 5000);
    ++*(uint32_t *)context;
}

/* Row 17: the callback is called; where it says that memory was freed the request is tried again, and fails at last; a failure of
 * another kind asks nobody. It is called once for a request, not as long as it says so. */
TEST(peers_composable, row_17_failure_callback) {
    static const char *const says[] = {"no_memory", "device"};
    for (uint32_t i = 0; i < 2; i++) {
        strata_block_t none = {.ref = 3};
        char stack[128];
        uint32_t asked = 0, heard = 0;
        snprintf(stack, sizeof stack, "[{retry: {timeout: 0}}, {fault: {above: 4096, says: %s}}, system]", says[i]);
        RIG_BY(rig, open_stack(&rig, stack));
        EXPECT_OK(strata_add_free_memory_callback(rig.s, promise, &asked, NULL));
        EXPECT_OK(strata_add_out_of_memory_observer(rig.s, hear, &heard, NULL));
        EXPECT_STATUS(i == 0 ? STRATA_E_NO_MEMORY : STRATA_E_DEVICE, try(&rig, 5000, &none));
        EXPECT_EQ(asked, i == 0 ? 1 : 0);
        EXPECT_EQ(heard, i == 0 ? 1 : 0);
        if (i == 0) EXPECT_GT(decorated_figure(rig_stack(&rig, NULL), "fault", "failed"), 1);
        else EXPECT_EQ(decorated_figure(rig_stack(&rig, NULL), "fault", "failed"), 1);
        EXPECT_EQ(none.ref, 3);
    }
}

/* ---- row 22: an address that comes back before its free has returned ---- */

static strata_status_t nothing_to_create(strata_layer_t *self) {
    (void)self;
    return STRATA_OK;
}

static void nothing_to_destroy(strata_layer_t *self) { (void)self; }

static strata_status_t late_allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    return strata_below_allocate(self, request, record);
}

/* What it freed may be another's long before it returns. */
static void late_free(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    (void)self;
    strata_below_free(record, call);
    strata_unlocked_t opened = strata_call_unlock(call);
    (void)usleep(30 * 1000);
    strata_call_lock(call, opened);
}

static const strata_layer_type_t late_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "late",
    .doc = "returns late from a free",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_NONE,
    .passes = ~0u,
    .state_size = sizeof(strata_layer_t),
    .create = nothing_to_create,
    .destroy = nothing_to_destroy,
    .allocate = late_allocate,
    .free = late_free,
};

typedef struct user {
    pthread_t thread;
    rig_t *rig;
    void *ptr;
} user_t;

static void *allocate_and_free(void *context) {
    user_t *user = context;
    rig_t *rig = user->rig;
    strata_block_t b, nothing;
    EXPECT_OK(try(rig, 256, &b));
    user->ptr = b.ptr;
    EXPECT_OK(try(rig, 0, &nothing));
    EXPECT_OK(strata_free(rig->s, nothing.ref));
    EXPECT_OK(strata_free_pointer(rig->s, b.ptr));
    return NULL;
}

/* Frees by address while the one before is still under way below: nothing is outstanding at the end. */
TEST(peers_composable, row_22_an_address_that_is_back_early) {
    rig_t rig;
    user_t users[2] = {{.rig = &rig}, {.rig = &rig}};
    EXPECT_OK(strata_register_layer(&late_type));
    open_stack(&rig, "[late, auto_growth, system]");
    for (int round = 0; round < 3; round++) {
        ASSERT_EQ(pthread_create(&users[0].thread, NULL, allocate_and_free, &users[0]), 0);
        (void)usleep(10 * 1000);
        ASSERT_EQ(pthread_create(&users[1].thread, NULL, allocate_and_free, &users[1]), 0);
        for (int i = 0; i < 2; i++) ASSERT_EQ(pthread_join(users[i].thread, NULL), 0);
        EXPECT_EQ((uintptr_t)users[1].ptr, (uintptr_t)users[0].ptr);
        EXPECT_EQ(rig_figures(&rig).live_allocations, 0);
    }
    EXPECT_EQ(rig_figures(&rig).allocations, 12);
    EXPECT_EQ(rig_figures(&rig).requested_bytes, 0);
    rig_close(&rig);
}

/* ---- cuts and ways ---- */

/* Row 24: 4 MiB in one piece: four of 1 MiB, the fifth is refused; freed as the first, the third and the second they are one. The
 * peer's size classes are none of Strata's: every size is rounded to 256 alone. */
TEST(peers_composable, row_24_pieces_become_one) {
    strata_block_t pieces[4], none, whole;
    RIG_BY(rig, open_stack(&rig, "[{auto_growth: {chunk_size: 4MiB}}, {limit: {bytes: 4MiB}}, system]"));
    for (int i = 0; i < 4; i++) EXPECT_OK(try(&rig, MIB, &pieces[i]));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, try(&rig, MIB, &none));
    RIG_FREE(&rig, pieces[0], pieces[2]);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, try(&rig, 3 * MIB, &none));
    EXPECT_OK(strata_free(rig.s, pieces[1].ref));
    EXPECT_OK(try(&rig, 3 * MIB, &whole));
    RIG_FREE(&rig, whole, pieces[3]);
}

/* Row 27: a bin of up to 1024 takes 512 bytes; 0 bytes take none here. Out of memory writes who holds what. */
TEST(peers_composable, row_27_bins_and_the_dump) {
    strata_block_t small, nothing, none;
    char text[128];
    DECORATED(rig, "[{binning: {routes: [{up_to: 1024, stack: [auto_growth, system]}, {stack: [system]}]}}]", 64 * MIB);
    EXPECT_OK(try(&rig, 512, &small));
    EXPECT_OK(strata_allocation_route(rig.s, small.ref, text, sizeof text));
    EXPECT_CONTAINS(text, "auto_growth");
    EXPECT_OK(try(&rig, 0, &nothing));
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), 1);
    EXPECT_SAYS(STRATA_E_NO_MEMORY, try(&rig, 100 * MIB, &none), "requested 100MiB");
    EXPECT_CONTAINS(strata_last_error()->text, "allocated 512");
    RIG_FREE(&rig, nothing, small);
}

/* ---- row 28: what the log says ---- */

static strata_trace_t *read_log(const char *path) {
    strata_trace_t *trace = NULL;
    EXPECT_OK(strata_trace_load(path, &trace));
    return trace;
}

/* Row 28: the log is the sequence of calls, to two sinks at once. The peer's has a row for a request of 1 TiB that failed; a trace has
 * what happened to memory alone, and a failure is the observers'. */
TEST(peers_composable, row_28_two_logs_say_the_same) {
    char paths[2][300];
    static const size_t sizes[] = {1000, 256, 70000, 5};
    char stack[1024];
    rig_t rig;
    strata_block_t blocks[4], none;
    for (int i = 0; i < 2; i++) snprintf(paths[i], sizeof paths[i], "%s", temporary(i ? "b.csv" : "a.csv"));
    snprintf(stack, sizeof stack, "[{trace: {path: \"%s\"}}, {trace: {path: \"%s\"}}, {limit: {bytes: 1GiB}}, system]", paths[0],
             paths[1]);
    open_stack(&rig, stack);
    for (int i = 0; i < 4; i++) EXPECT_OK(try(&rig, sizes[i], &blocks[i]));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, try(&rig, 1024 * GIB, &none));
    for (int i = 0; i < 4; i++) EXPECT_OK(strata_free(rig.s, blocks[3 - i].ref));
    rig_close(&rig);
    for (int i = 0; i < 2; i++) {
        strata_trace_t *log CLOSED_BY(trace_cleanup) = read_log(paths[i]);
        ASSERT_TRUE(log);
        EXPECT_EQ(log->count, 8);
        for (size_t e = 0; e < log->count && e < 8; e++) {
            EXPECT_EQ(log->events[e].op, e < 4 ? STRATA_TRACE_alloc : STRATA_TRACE_free);
            if (e < 4) EXPECT_EQ(log->events[e].value, sizes[e]);
            else EXPECT_EQ(log->events[e].id, log->events[7 - e].id);
        }
    }
}

/* Row 29: the threshold's default and another one are read back (async_pool.the_default_pool_is_left_as_it_was_found); here: two pools
 * differ, and what one serves is none of the other's. */
TEST(peers_composable, row_29_two_pools_differ) {
    strata_block_t small, large;
    RIG_BY(rig, open_stack(&rig, "[{binning: {routes: [{up_to: 1MiB, stack: [{cuda_malloc_async: {pool: own}}]}, "
                                 "{stack: [{cuda_malloc_async: {pool: own}}]}]}}]"));
    EXPECT_OK(try(&rig, 1000, &small));
    EXPECT_OK(try(&rig, 2 * MIB, &large));
    EXPECT_EQ(rig_calls(&rig, STRATA_CALL_pool_create), 2);
    RIG_FREE(&rig, large, small);
}
