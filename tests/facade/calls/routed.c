/* Routers and stacks of one device, seen from outside. */
#include <pthread.h>

#include "tests/facade/support/fixture.h"

static const char with_pinned[] = "stack:\n"
                                  "  - stream_safe\n"
                                  "  - fallback:\n"
                                  "      stacks:\n"
                                  "        - [auto_growth: {chunk_size: 8MiB}, system]\n"
                                  "        - [system: {memory: pinned}]\n";

TEST_RIG(facade_routed, what_the_device_has_no_room_for_comes_from_pinned_memory, 32 * MIB, with_pinned) {
    strata_block_t blocks[4], over, again;
    for (int i = 0; i < 4; i++) {
        blocks[i] = rig_allocate(rig, NULL, 8 * MIB);
        expect_route(rig, blocks[i], "stream_safe > fallback > auto_growth | system");
    }
    over = rig_allocate(rig, NULL, 8 * MIB);
    expect_route(rig, over, "stream_safe > fallback > system");
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_host_alloc), 1);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 40 * MIB);
    EXPECT_OK(strata_free(rig->s, blocks[0].ref));
    again = rig_allocate(rig, NULL, 8 * MIB);
    expect_route(rig, again, "stream_safe > fallback > auto_growth | system");
    EXPECT_OK(strata_free_pointer(rig->s, over.ptr));
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_host_free), 1);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 32 * MIB);
}

/* The driver's free of host memory does not wait for the work that uses it, so the source does. */
TEST_RIG(facade_routed, pinned_memory_goes_back_when_its_owners_work_is_done, 0,
         "stack: [fallback: {stacks: [[system: {memory: pinned}], [system]]}]\n") {
    strata_stream_t stream = rig_stream(rig);
    strata_block_t block = rig_allocate(rig, stream, MIB);
    rig_work(rig, stream, 1000 * 1000, block.ref);
    uint64_t done = strata_sim_stream_end(rig->devices[0], stream);
    EXPECT_LT(strata_sim_now(rig->world), done);
    EXPECT_OK(strata_free(rig->s, block.ref));
    EXPECT_GE(strata_sim_now(rig->world), done);
}

/* And if it cannot wait, the memory is nobody's until the end. */
TEST_RIG(facade_routed, pinned_memory_whose_owners_work_cannot_be_waited_for_is_quarantined, 0,
         "stack: [fallback: {stacks: [[system: {memory: pinned}], [system]]}]\n") {
    strata_stream_t stream = rig_stream(rig);
    strata_block_t block = rig_allocate(rig, stream, MIB);
    rig_work(rig, stream, 1000 * 1000, block.ref);
    ASSERT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_synchronise, 1, false, STRATA_E_DEVICE));
    EXPECT_OK(strata_free(rig->s, block.ref));
    EXPECT_EQ(rig_figures(rig).quarantined_bytes, MIB);
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_host_free), 0);
}

TEST(facade_routed, two_sources_give_back_what_each_made) {
    OPENED(rig_t, rig, rig_close_by_force, rig_open(&rig, with_pinned, NULL, 0, 16 * MIB, 1));
    for (int i = 0; i < 4; i++) (void)rig_allocate(&rig, NULL, 8 * MIB);
}

TEST_RIG(facade_routed, managed_memory_may_follow_the_devices, 16 * MIB,
         "stack: [retry: {timeout: 0}, fallback: {stacks: [[system], [system: {memory: managed}]]}]\n") {
    (void)rig_allocate(rig, NULL, 16 * MIB);
    strata_block_t second = rig_allocate(rig, NULL, 16 * MIB);
    expect_route(rig, second, "retry > fallback > system");
    EXPECT_EQ(rig_figures(rig).recoveries, 0);
}

/* A retry in the first stack climbs before the second is asked. */
TEST_RIG(facade_routed, a_stack_that_retries_does_so_before_the_next_is_asked, 16 * MIB,
         "stack: [fallback: {stacks: [[retry: {timeout: 0}, system], [system: {memory: pinned}]]}]\n") {
    strata_block_t first = rig_allocate(rig, NULL, 16 * MIB), second = rig_allocate(rig, NULL, 16 * MIB);
    EXPECT_EQ(rig_figures(rig).recoveries, 1);
    expect_route(rig, first, "fallback > retry > system");
    expect_route(rig, second, "fallback > system");
}

static const char two_sizes[] = "stack:\n"
                                "  - binning:\n"
                                "      routes:\n"
                                "        - {up_to: 64KiB, stack: [stream_safe, auto_growth: {chunk_size: 1MiB}, system]}\n"
                                "        - {stack: [stream_safe, auto_growth: {chunk_size: 8MiB}, system]}\n";

/* Borrows, polls, releases and figures reach every branch. */
TEST_RIG(facade_routed, every_branch_is_asked, 0, two_sizes) {
    strata_stream_t owner = rig_stream(rig), other = rig_stream(rig);
    strata_block_t small = rig_allocate(rig, owner, 4096), large = rig_allocate(rig, owner, MIB);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 9 * MIB);
    EXPECT_EQ(rig_figures(rig).chunks, 2);
    EXPECT_OK(strata_record_stream(rig->s, small.ref, other));
    EXPECT_OK(strata_record_stream(rig->s, large.ref, other));
    rig_work(rig, other, 1000 * 1000, small.ref);
    RIG_FREE(rig, small, large);
    EXPECT_EQ(rig_figures(rig).deferred_bytes, 4096 + MIB);
    EXPECT_EQ(rig_release(rig), 0);
    rig_advance(rig, 2000 * 1000);
    strata_pending_t pending;
    EXPECT_EQ(strata_domain_poll(rig_domain(rig), &pending), 4096 + MIB);
    EXPECT_EQ(rig_cached(rig), 9 * MIB);
    EXPECT_EQ(rig_release(rig), 9 * MIB);
}

TEST_RIG(facade_routed, a_forgotten_stream_leaves_nothing_in_any_branch, 0, two_sizes) {
    strata_stream_t stream = rig_stream(rig);
    strata_block_t small = rig_allocate(rig, stream, 4096), large = rig_allocate(rig, stream, MIB);
    EXPECT_OK(strata_free(rig->s, small.ref));
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, stream));
    EXPECT_OK(strata_free(rig->s, large.ref));
    /* Anybody's now. */
    strata_block_t taken = rig_allocate(rig, NULL, MIB);
    EXPECT_EQ(taken.ptr, large.ptr);
    EXPECT_OK(strata_free(rig->s, taken.ref));
    rig_expect_empty(rig);
}

/* Under a router nobody takes a short way: what a cache serves again got its path anew. */
TEST_RIG(facade_routed, a_block_served_again_has_its_own_path_and_no_other, 0,
         "stack:\n  - binning:\n      routes:\n"
         "        - {up_to: 64KiB, stack: [buffered, auto_growth, system]}\n"
         "        - {up_to: 1MiB, stack: [auto_growth: {order: any}, system]}\n"
         "        - {stack: [auto_growth, system]}\n") {
    static const struct {
        size_t size;
        const char *path;
    } routes[] = {{1000, "binning > buffered | auto_growth"},
                  {MIB, "binning > auto_growth | system"},
                  {3 * MIB, "binning > auto_growth | system"}};
    for (int turn = 0; turn < 3; turn++)
        for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
            strata_block_t block = rig_allocate(rig, NULL, routes[i].size);
            expect_route(rig, block, routes[i].path);
            EXPECT_OK(strata_free(rig->s, block.ref));
        }
}

/* What the short way freed, the long way serves with nothing left over, and the other way round. */
TEST(facade_routed, the_short_and_the_long_way_leave_each_other_nothing) {
    static const char *const presets[] = {"strata-malloc", "paddle", "stack: [retry, stream_safe, buffered, system]\n"};
    static const char *const paths[] = {"retry > stream_safe > auto_growth | system", "retry > stream_safe > auto_growth | system",
                                        "retry > stream_safe > buffered | system"};
    for (int i = 0; i < 3; i++) {
        RIG(rig, presets[i], 0);
        for (int turn = 0; turn < 4; turn++) {
            strata_block_t block = turn % 2 ? rig_allocate_tagged(&rig, NULL, 1000, "a") : rig_allocate(&rig, NULL, 1000);
            expect_route(&rig, block, paths[i]);
            EXPECT_OK(strata_free(rig.s, block.ref));
        }
        expect_route(&rig, rig_allocate(&rig, NULL, 0), "");
    }
}

/* A layer that climbs in one branch climbs for that branch alone: whoever goes the other way has the core do it. */
TEST_RIG(facade_routed, the_ladder_is_climbed_whichever_branch_waits, 32 * MIB,
         "stack: [binning: {routes: [{up_to: 16KiB, stack: [retry, auto_growth, system]}, {stack: [auto_growth, system]}]}]\n",
         "stack: [binning: {routes: [{up_to: 16KiB, stack: [auto_growth, system]}, {stack: [retry, auto_growth, system]}]}]\n") {
    strata_stream_t one = rig_stream(rig), two = rig_stream(rig);
    strata_block_t a = rig_allocate(rig, one, 24 * MIB);
    EXPECT_OK(strata_free(rig->s, a.ref));
    a = rig_allocate(rig, two, 24 * MIB);
    EXPECT_EQ(rig_figures(rig).recoveries, 1);
}

/* A `retry` that may neither give back nor wait still decides: the core does not act in its place. */
TEST_RIG(facade_routed, a_retry_that_may_do_nothing_is_final, 32 * MIB,
         "stack: [retry: {steps: wait, timeout: 0}, auto_growth: {chunk_size: 24MiB}, system]\n",
         "stack: [binning: {routes: [{up_to: 32MiB, stack: [retry: {steps: wait, timeout: 0}, auto_growth: {chunk_size: 24MiB}, "
         "system]}, {stack: [system]}]}]\n") {
    strata_stream_t one = rig_stream(rig), two = rig_stream(rig);
    strata_block_t a = rig_allocate(rig, one, 24 * MIB);
    EXPECT_OK(strata_free(rig->s, a.ref));
    EXPECT_EQ(rig_try(rig, two, 24 * MIB), STRATA_E_NO_MEMORY);
    EXPECT_EQ(rig_figures(rig).recoveries, 0);
}

/* A cache that gave its own has not spoken for another of its type: what lies idle on the other route goes back too. */
TEST_RIG(facade_routed, what_a_cache_of_the_same_type_keeps_on_the_other_route_goes_back, 64 * MIB,
         "stack: [binning: {routes: [{up_to: 1MiB, stack: [caching, system]}, {stack: [caching, system]}]}]\n",
         "stack: [binning: {routes: [{up_to: 1MiB, stack: [bfc, system]}, {stack: [bfc: {initial_region: 1MiB}, system]}]}]\n") {
    strata_block_t small[40];
    for (int n = 0; n < 40; n++) small[n] = rig_allocate(rig, NULL, MIB);
    for (int n = 0; n < 40; n++) EXPECT_OK(strata_free(rig->s, small[n].ref));
    EXPECT_GE(rig_figures(rig).reserved_bytes, 40 * MIB);
    (void)rig_allocate(rig, NULL, 40 * MIB);
    EXPECT_EQ(rig_figures(rig).recoveries, 1);
}

/* A decorator's own record above a way that leads past the caches lies in no cache's chunk. */
TEST_RIG(facade_routed, an_address_is_found_on_every_way, 0,
         "stack: [aligned, binning: {routes: [{up_to: 4KiB, stack: [auto_growth, system]}, {stack: [system]}]}]") {
    for (size_t size = 1000; size <= 1000 * 1000; size *= 10) {
        strata_block_t b = rig_allocate(rig, NULL, size), found = {0};
        EXPECT_OK(strata_base_pointer(rig->s, (char *)b.ptr + size - 1, &found));
        EXPECT_EQ(found.ref, b.ref);
        EXPECT_OK(strata_free(rig->s, b.ref));
        EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_base_pointer(rig->s, (char *)b.ptr + size - 1, &found));
    }
}

TEST_BY(facade_routed, a_device_has_stacks_of_its_own,
        rig_open(rig, "devices:\n  gpu:1: {stack: [buffered, system], places: {managed: [buffered, system]}}\nstack: [system]\n",
                 NULL, 0, 0, 2)) {
    static const strata_place_kind_t kinds[] = {STRATA_PLACE_GPU, STRATA_PLACE_MANAGED};
    for (uint32_t device = 0; device < 2; device++)
        for (int i = 0; i < 2; i++) {
            strata_block_t block;
            EXPECT_OK(strata_allocate(rig->s, strata_place(kinds[i], device), NULL, MIB, &block));
            if (device == 1 || i == 0) expect_route(rig, block, device == 1 ? "buffered | system" : "system");
            EXPECT_OK(strata_free(rig->s, block.ref));
        }
}

/* ---- many threads on the one stack of a place without owners ---- */

enum { THREADS = 4, TURNS = 400 };

typedef struct turns {
    rig_t *rig;
    uint64_t random;
} turns_t;

static void *take_turns(void *context) {
    turns_t *turns = context;
    strata_block_t kept[4] = {{0}};
    for (int i = 0; i < TURNS; i++) {
        turns->random = turns->random * 6364136223846793005ull + 1442695040888963407ull;
        strata_block_t *block = &kept[turns->random >> 62];
        if (block->ref) EXPECT_OK(strata_free(turns->rig->s, block->ref));
        *block = (strata_block_t){0};
        size_t size = 1 + (size_t)(turns->random >> 33) % (turns->random >> 40 & 7 ? 40000 : 2 * MIB);
        EXPECT_OK(strata_allocate(turns->rig->s, strata_pinned(), NULL, size, block));
        *(volatile unsigned char *)block->ptr = 1;
        if (i % 100 == 0) EXPECT_OK(strata_release(turns->rig->s, strata_pinned(), NULL));
    }
    for (int i = 0; i < 4; i++)
        if (kept[i].ref) EXPECT_OK(strata_free(turns->rig->s, kept[i].ref));
    return NULL;
}

TEST_RIG(facade_routed, threads_share_the_branches_of_pinned_memory, 0,
         "stack: [system]\nplaces:\n  pinned:\n    - stream_safe\n    - binning:\n        routes:\n"
         "          - {up_to: 8KiB, stack: [auto_growth: {chunk_size: 256KiB}, system]}\n"
         "          - {up_to: 64KiB, stack: [buffered, auto_growth: {chunk_size: 1MiB}, system]}\n"
         "          - {stack: [buffered, system]}\n") {
    turns_t turns[THREADS];
    for (uint64_t i = 0; i < THREADS; i++) turns[i] = (turns_t){.rig = rig, .random = i + 1};
    in_threads(take_turns, turns, sizeof *turns, THREADS);
    EXPECT_OK(strata_release(rig->s, strata_pinned(), NULL));
    strata_statistics_t figures = rig_figures_in(rig, strata_pinned());
    EXPECT_EQ(figures.reserved_bytes, 0);
    EXPECT_EQ(figures.allocations, THREADS * TURNS);
}
