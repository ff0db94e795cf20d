/* What is undone after a failure: a request that fails after it was served, a last use that nothing can note. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "allocation/domain/layer.h"
#include "platform/host/host_memory.h"
#include "tests/facade/support/interleaving.h"
#include "tests/harness/owned.h"

enum { LONG = 1000 * 1000 };

/* The fill is refused, and then the free of the chunk that the request made. */
TEST_RIG_WAYS(facade_undone, a_failing_zero_gives_its_growth_back_and_the_first_reason_stays, stuck, 2, 0,
              stuck ? "system" : "strata") {
    strata_block_t block = {.ref = 7};
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = MIB, .flags = STRATA_ZERO};
    ASSERT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_fill, 1, false, STRATA_E_DEVICE));
    if (stuck) ASSERT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_free, 1, false, STRATA_E_NO_MEMORY));
    EXPECT_SAYS(STRATA_E_DEVICE, strata_allocate_with(rig->s, rig->gpu, NULL, &options, &block), "fill failed by injection");
    EXPECT_EQ(strata_last_error()->status, STRATA_E_DEVICE);
    EXPECT_EQ(block.ref, 7);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, stuck ? MIB : 0);
    EXPECT_EQ(rig_figures(rig).quarantined_bytes, stuck ? MIB : 0);
}

/* There is no slot for the record, and the device does not take the memory back: nobody holds it. */
TEST_RIG(facade_undone, memory_that_nobody_holds_is_told_and_goes_back_with_a_release, 0, "system") {
    strata_slab_t *slab = &rig_domain(rig)->first_stack->slab;
    uint32_t capacity = slab->capacity;
    slab->capacity = slab->used;
    ASSERT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_free, 1, false, STRATA_E_DEVICE));
    EXPECT_STATUS(STRATA_E_LIMIT, rig_try(rig, NULL, 2 * MIB));
    EXPECT_EQ(strata_last_error()->status, STRATA_E_LIMIT);
    slab->capacity = capacity;
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 2 * MIB);
    EXPECT_EQ(rig_figures(rig).quarantined_bytes, 2 * MIB);
    EXPECT_EQ(rig_release(rig), 2 * MIB);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 0);
    EXPECT_EQ(rig_figures(rig).quarantined_bytes, 0);
}

typedef struct unheld {
    const char *name;
    strata_place_kind_t kind;
    strata_device_call_t call; /* that gives memory of the place back */
    strata_status_t then; /* of that call when the memory is offered once more */
    uint64_t stays;
} unheld_t;

static const unheld_t unheld[] = {
    {"gpu", STRATA_PLACE_GPU, STRATA_CALL_free, STRATA_OK, 0},
    {"managed", STRATA_PLACE_MANAGED, STRATA_CALL_free, STRATA_OK, 0},
    {"pinned", STRATA_PLACE_PINNED, STRATA_CALL_host_free, STRATA_OK, 0},
    {"host", STRATA_PLACE_HOST, STRATA_CALL_host_free, STRATA_OK, 0},
    {"refused_again", STRATA_PLACE_GPU, STRATA_CALL_free, STRATA_E_DEVICE, 2 * MIB},
    {"refused_again_host", STRATA_PLACE_HOST, STRATA_CALL_host_free, STRATA_E_DEVICE, 2 * MIB},
};

/* The same in each place. */
TEST_EACH(facade_undone_places, memory_without_an_owner_goes_back, unheld_t, unheld) {
    RIG(rig, "system", 0);
    strata_place_t place = strata_place(row->kind, 0);
    strata_domain_t *domain;
    strata_block_t block;
    strata_statistics_t figures = {.struct_size = sizeof figures};
    uint64_t released = 1;
    ASSERT_OK(strata_allocate(rig.s, place, NULL, MIB, &block));
    ASSERT_OK(strata_facade_domain(strata_facade_of(rig.s), place, &domain));
    strata_slab_t *slab = &strata_stack_home(domain->first_stack)->slab;
    uint32_t capacity = slab->capacity;
    slab->capacity = slab->used;
    ASSERT_OK(strata_sim_fail(rig.devices[0], row->call, 1, false, STRATA_E_DEVICE));
    EXPECT_STATUS(STRATA_E_LIMIT, strata_allocate(rig.s, place, NULL, 2 * MIB, &(strata_block_t){0}));
    slab->capacity = capacity;
    EXPECT_OK(strata_statistics_all(rig.s, place, &figures));
    EXPECT_EQ(figures.quarantined_bytes, 2 * MIB);
    EXPECT_EQ(figures.reserved_bytes, 3 * MIB);
    if (row->then != STRATA_OK) ASSERT_OK(strata_sim_fail(rig.devices[0], row->call, 1, false, row->then));
    EXPECT_OK(strata_release(rig.s, place, &released));
    EXPECT_EQ(released, 2 * MIB - row->stays);
    EXPECT_OK(strata_statistics_all(rig.s, place, &figures));
    EXPECT_EQ(figures.quarantined_bytes, row->stays);
    EXPECT_EQ(figures.reserved_bytes, MIB + row->stays);
    EXPECT_OK(strata_free(rig.s, block.ref));
}

static uint64_t used_of_device(rig_t *rig) {
    strata_sim_figures_t figures;
    strata_sim_figures(rig->devices[0], &figures);
    return figures.used_bytes;
}

/* Likewise of a driver's pool, where the slab is full or free by pointer cannot be told of the memory. What the pool takes back is
 * the device's when the pool is trimmed. */
TEST(facade_undone, memory_of_a_pool_that_nobody_holds_is_told_and_goes_back) {
    for (int way = 0; way < 4; way++) {
        bool unbookable = way % 2 != 0, closing = way > 1;
        RIG(rig, "cuda_malloc_async", 0);
        uint64_t released = 0;
        strata_slab_t *slab = &rig_domain(&rig)->first_stack->slab;
        strata_directory_t *directory = rig_domain(&rig)->directory;
        uint32_t *end = unbookable ? &directory->capacity : &slab->capacity, capacity = *end;
        *end = unbookable ? directory->used : slab->used;
        ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_free_async, 1, false, STRATA_E_DEVICE));
        EXPECT_STATUS(STRATA_E_LIMIT, rig_try(&rig, NULL, 2 * MIB));
        EXPECT_EQ(strata_last_error()->status, STRATA_E_LIMIT);
        *end = capacity;
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, 2 * MIB);
        EXPECT_EQ(rig_figures(&rig).quarantined_bytes, 2 * MIB);
        uint64_t used = used_of_device(&rig);
        if (!closing) EXPECT_OK(strata_release(rig.s, rig.gpu, &released));
        EXPECT_EQ(released, closing ? 0 : used);
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, closing ? 2 * MIB : 0);
        EXPECT_EQ(rig_figures(&rig).quarantined_bytes, closing ? 2 * MIB : 0);
        if (!closing) EXPECT_OK(strata_release(rig.s, rig.gpu, &released));
        EXPECT_EQ(released, 0);
    }
}

/* By force, with a block in use: nobody has the memory after the close. */
TEST(facade_undone, what_a_close_could_not_give_back_is_offered_once_more) {
    static const char *const presets[] = {"system", "cuda_malloc_async"};
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        OPENED(rig_t, rig, rig_end, rig_open(&rig, presets[i], NULL, 0, 0, 1));
        (void)rig_allocate(&rig, NULL, 2 * MIB);
        EXPECT_GE(used_of_device(&rig), 2 * MIB);
        ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_free, 1, false, STRATA_E_DEVICE));
        EXPECT_OK(strata_close(rig.s, STRATA_CLOSE_FORCE, NULL, NULL));
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_free), 2);
        EXPECT_EQ(used_of_device(&rig), 0);
    }
}

/* Layers that write into what they were served are no different. */
TEST(facade_undone, a_failing_layer_gives_its_growth_back_and_the_first_reason_stays) {
    static const char *const layers[] = {"fill: {byte: 7}", "scrub"};
    for (int i = 0; i < 2; i++) {
        char text[200];
        snprintf(text, sizeof text, "strategy: undone\nstack:\n  - %s\n  - auto_growth\n  - system\n", layers[i]);
        RIG(rig, text, 0);
        ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_fill, 1, false, STRATA_E_DEVICE));
        EXPECT_SAYS(STRATA_E_DEVICE, rig_try(&rig, NULL, MIB), "fill failed by injection");
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
    }
}

/* A layer from outside that fails after what it was served. */
static bool failing;

static strata_status_t failing_allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_status_t status = strata_below_allocate(self, request, record);
    if (status != STRATA_OK || !failing) return status;
    strata_below_free(*record, request->call);
    return strata_fail(STRATA_E_DEVICE, 0, "the layer fails");
}

static const strata_layer_type_t failing_type = DECORATOR("test_failing", STRATA_SCOPE_NONE, failing_allocate,
                                                          strata_layer_free_below);

static void count_live(const strata_record_t *record, void *context) {
    (void)record;
    ++*(uint32_t *)context;
}

/* As a close looks for leaks. */
static void expect_nothing_live(rig_t *rig) {
    uint32_t live = 0;
    STRATA_DOMAIN_EACH(rig_domain(rig), stack) strata_stack_walk_live(stack, count_live, &live);
    EXPECT_EQ(live, 0);
}

/* The cache finds the block in what a forgotten stream left: the stream borrows it, and it is deferred. */
TEST(facade_undone, what_a_failed_request_borrowed_is_deferred_and_not_live) {
    static const char *const stacks[] = {"fill, caching, system", "test_failing, caching, system"};
    register_layer(&failing_type);
    for (int i = 0; i < 2; i++) {
        RIG_STACK(rig, stacks[i], 0);
        strata_stream_t gone = rig_stream(&rig), busy = rig_stream(&rig);
        EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, gone, MIB).ref));
        EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, gone));
        rig_advance(&rig, LONG);
        rig_work(&rig, busy, LONG, 0);
        failing = i == 1;
        if (!failing) ASSERT_OK(strata_sim_fail(rig.devices[0], STRATA_CALL_fill, 1, false, STRATA_E_DEVICE));
        EXPECT_STATUS(STRATA_E_DEVICE, rig_try(&rig, busy, MIB));
        failing = false;
        EXPECT_EQ(rig_figures(&rig).deferred_frees, 1);
        expect_nothing_live(&rig);
    }
}

static void refuse_waits(rig_t *rig) {
    ASSERT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_stream_synchronise, 1, true, STRATA_E_DEVICE));
    ASSERT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_synchronise, 1, true, STRATA_E_DEVICE));
}

/* A request on a busy stream that a forgotten one's stack serves, which its layers fill and which fails then: by test_failing, or
 * for want of the table of borrows, which the core keeps where no layer does. Deaf: nothing tells when the fill is over. */
static void fail_after_a_fill(const char *stack, bool deaf) {
    const strata_allocate_options_t options = {.struct_size = sizeof options, .size = MIB, .flags = STRATA_NO_GROW};
    bool by_layer = strstr(stack, failing_type.name) != NULL;
    strata_block_t served = {.ref = 7};
    OPENED(rig_t, rig, rig_close_by_force, rig_open_with(&rig, stack, &(strata_sim_options_t){.contents = true}, 0));
    strata_stream_t gone = rig_stream(&rig), busy = rig_stream(&rig), next = rig_stream(&rig);
    EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, busy, MIB).ref));
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    strata_block_t left = rig_allocate(&rig, gone, MIB);
    EXPECT_OK(strata_free(rig.s, left.ref));
    EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, gone));
    rig_advance(&rig, LONG);
    rig_work(&rig, busy, LONG, 0);
    if (deaf) refuse_waits(&rig);
    failing = by_layer;
    if (!by_layer) strata_host_fail_at(1, 1);
    EXPECT_NE(STRATA_OK, strata_allocate_with(rig.s, rig.gpu, busy, &options, &served));
    strata_host_fail_at(0, 0);
    failing = false;
    EXPECT_EQ(served.ref, 7);
    strata_block_t other = rig_allocate(&rig, next, MIB);
    EXPECT_STATUS(deaf ? STRATA_E_NOT_READY : STRATA_OK, strata_device_stream_query(rig.devices[0], busy));
    if (deaf) EXPECT_NE(other.ptr, left.ptr);
    else EXPECT_EQ(other.ptr, left.ptr);
    strata_sim_clear_faults(rig.devices[0]);
}

/* Another stream's request, which has found that the forgotten one's work is over. */
typedef struct guests {
    rig_t rig;
    strata_stream_t gone, busy, next;
    strata_block_t left;
    bool filled;
} guests_t;

static void fail_deaf(void *context) {
    const strata_allocate_options_t options = {.struct_size = sizeof options, .size = MIB, .flags = STRATA_NO_GROW};
    guests_t *guests = context;
    strata_block_t none = {.ref = 7};
    uint64_t fills = rig_calls(&guests->rig, STRATA_CALL_fill);
    rig_work(&guests->rig, guests->busy, LONG, 0);
    refuse_waits(&guests->rig);
    failing = true;
    EXPECT_NE(STRATA_OK, strata_allocate_with(guests->rig.s, guests->rig.gpu, guests->busy, &options, &none));
    failing = false;
    guests->filled = rig_calls(&guests->rig, STRATA_CALL_fill) > fills;
}

/* Before each lock of the stack that it takes, a request on a busy stream fails there, and nothing tells when its fill is over. */
TEST(facade_undone, what_one_guest_may_still_fill_is_no_other_guests) {
    uint32_t between = 0;
    register_layer(&failing_type);
    for (uint32_t n = 1; n <= 8; n++) {
        guests_t g = {.filled = false};
        before_lock_t before;
        strata_strategy_t *strategy CLOSED_BY(strategy_cleanup) = rig_strategy("stack: [test_failing, fill, auto_growth, system]",
                                                                               NULL, 0);
        rig_open_on(&g.rig, strategy, &(strata_sim_options_t){.contents = true}, 0);
        g.gone = rig_stream(&g.rig), g.busy = rig_stream(&g.rig), g.next = rig_stream(&g.rig);
        g.left = rig_allocate(&g.rig, g.gone, MIB);
        strata_stack_t *stack = rig_stack(&g.rig, g.gone);
        EXPECT_OK(strata_free(g.rig.s, g.left.ref));
        EXPECT_OK(strata_stream_forget(g.rig.s, g.rig.gpu, g.gone));
        rig_advance(&g.rig, LONG);
        before_lock_begin(&before, &stack->lock, n, fail_deaf, &g);
        strata_block_t other = rig_allocate(&g.rig, g.next, MIB);
        (void)before_lock_end(&before);
        if (g.filled) EXPECT_NE(other.ptr, g.left.ptr);
        between += g.filled;
        strata_sim_clear_faults(g.rig.devices[0]);
        rig_close_by_force(&g.rig);
    }
    EXPECT_GE(between, 3);
    EXPECT_LT(between, 8);
}

/* The stream that the layers filled it on owns it no more than the stream does that is served next. */
TEST(facade_undone, what_a_failed_request_filled_is_nobodys_before_the_fill_is_over) {
    static const char *const stacks[] = {"stack: [scrub, auto_growth, system]", "stack: [test_failing, fill, auto_growth, system]",
                                         "stack: [test_failing, guard: {synchronise: false}, auto_growth, system]"};
    register_layer(&failing_type);
    for (int i = 0; i < 6; i++) fail_after_a_fill(stacks[i % 3], i >= 3);
}

typedef struct pinned_request {
    rig_t *rig;
    strata_stream_t stream;
    strata_status_t status;
} pinned_request_t;

/* By a thread that has not failed yet. */
static void *ask_for_pinned(void *context) {
    pinned_request_t *request = context;
    strata_block_t block;
    request->status = strata_allocate(request->rig->s, strata_pinned(), request->stream, 1000, &block);
    EXPECT_OK(strata_validate(request->rig->s));
    if (request->status == STRATA_OK) EXPECT_OK(strata_free(request->rig->s, block.ref));
    return NULL;
}

/* The first borrower cannot be noted, nor be waited for: it is being captured. */
TEST(facade_undone, a_pinned_request_that_fails_in_a_capture_leaves_the_place_to_later_ones) {
    uint64_t met = 0;
    for (uint64_t k = 1; k <= 4; k++) {
        strata_block_t block;
        strata_handle_t graph;
        RIG(rig, "system", 0);
        pinned_request_t request = {.rig = &rig, .stream = rig_stream(&rig)};
        EXPECT_OK(strata_device_capture_begin(rig.devices[0], request.stream, STRATA_CAPTURE_RELAXED));
        strata_host_fail_at(k, 0);
        strata_status_t status = strata_allocate(rig.s, strata_pinned(), request.stream, 1000, &block);
        strata_host_fail_at(0, 0);
        if (status == STRATA_OK) EXPECT_OK(strata_free(rig.s, block.ref));
        else met++;
        if (strata_device_capture_end(rig.devices[0], request.stream, &graph) == STRATA_OK)
            EXPECT_OK(strata_device_graph_destroy(rig.devices[0], graph));
        in_another_thread(ask_for_pinned, &request);
        EXPECT_EQ(request.status, STRATA_OK);
    }
    EXPECT_GE(met, 1);
}

TEST_RIG(facade_undone, what_guard_keeps_of_a_failed_request_is_not_live, 0,
         "strategy: kept\nstack: [fill, guard: {report: false}, auto_growth: {chunk_size: 20MiB}, system]\n") {
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, NULL, MIB).ref));
    ASSERT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_fill, 1, false, STRATA_E_DEVICE));
    EXPECT_STATUS(STRATA_E_DEVICE, rig_try(rig, NULL, MIB));
    expect_nothing_live(rig);
}

/* One of two owners frees on a stream of which nothing can be had, neither an event nor a wait. */
TEST_RIG_WAYS(facade_undone, a_shared_block_with_an_unknown_last_use_is_quarantined_by_its_last_owner, last, 2, 0, "paddle") {
    strata_stream_t owner = rig_stream(rig), other = rig_stream(rig);
    strata_block_t block = rig_allocate(rig, owner, 5000);
    EXPECT_OK(strata_retain(rig->s, block.ref));
    rig_work(rig, other, LONG, block.ref);
    ASSERT_OK(strata_sim_fail(rig->devices[0], STRATA_DEVICE_CALLS, 1, true, STRATA_E_DEVICE));
    EXPECT_OK(strata_free_on(rig->s, block.ref, other));
    strata_sim_clear_faults(rig->devices[0]);
    EXPECT_EQ(rig_figures(rig).live_allocations, 1);
    EXPECT_OK(last ? strata_free_on(rig->s, block.ref, other) : strata_free(rig->s, block.ref));
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig->s, block.ref));
    EXPECT_EQ(rig_figures(rig).live_allocations, 0);
    EXPECT_EQ(rig_figures(rig).allocated_bytes, 0);
    EXPECT_EQ(rig_figures(rig).quarantined_bytes, block.size);
    strata_block_t next = rig_allocate(rig, owner, 5000);
    EXPECT_NE(next.ptr, block.ptr);
}

typedef struct others {
    rig_t *rig;
    strata_stream_t holding, idle;
    strata_block_t held;
} others_t;

/* As another thread would do beside the failing request. */
static uint64_t grow_elsewhere(strata_place_t place, size_t size, void *context) {
    others_t *others = context;
    (void)place;
    (void)size;
    if (!others->held.ref) others->held = rig_allocate(others->rig, others->holding, MIB);
    EXPECT_OK(strata_free(others->rig->s, rig_allocate(others->rig, others->idle, MIB).ref));
    return 0;
}

/* More is reserved after it than before, but by others: what they keep idle is theirs. */
TEST_BY(facade_undone, a_failing_request_leaves_the_caches_of_others_alone,
        rig_open(rig, "strata-malloc", (const char *const[]){"retry.timeout=0"}, 1, GIB, 1)) {
    uint32_t id;
    others_t others = {.rig = rig, .holding = rig_stream(rig), .idle = rig_stream(rig)};
    EXPECT_OK(strata_add_free_memory_callback(rig->s, grow_elsewhere, &others, &id));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, rig_try(rig, NULL, 4 * GIB));
    EXPECT_NE(others.held.ref, 0);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 40 * MIB);
}
