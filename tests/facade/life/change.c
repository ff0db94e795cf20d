/* strata_change_strategy(): the same handle, devices and streams under another strategy. */
#include <pthread.h>

#include "platform/host/host_memory.h"
#include "tests/facade/support/program.h"

static strata_status_t change_with(rig_t *rig, const char *preset, uint32_t flags) {
    strata_open_options_t options = {
        .struct_size = sizeof options, .preset = preset, .flags = STRATA_OPEN_IGNORE_ENVIRONMENT | flags};
    return strata_change_strategy(rig->s, &options);
}

static strata_status_t change_to(rig_t *rig, const char *preset) { return change_with(rig, preset, 0); }

static strata_status_t change_to_text(rig_t *rig, const char *text) {
    strata_open_options_t options = {.struct_size = sizeof options, .text = text, .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    return strata_change_strategy(rig->s, &options);
}

static bool path_is(rig_t *rig, strata_ref_t ref, const char *wanted) {
    char text[128];
    EXPECT_OK(strata_allocation_route(rig->s, ref, text, sizeof text));
    return strcmp(text, wanted) == 0;
}

TEST_RIG(facade_change, the_handle_and_the_streams_stay_and_refs_end, GIB, "strata-malloc") {
    strata_t handle = rig->s;
    strata_stream_t stream = rig_stream(rig);
    strata_block_t old = rig_allocate(rig, NULL, MIB), other = rig_allocate(rig, stream, MIB);
    expect_route(rig, other, "retry > stream_safe > auto_growth | system");
    RIG_FREE(rig, old, other);
    EXPECT_OK(change_to(rig, "system"));
    EXPECT_EQ(rig->s, handle);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 0);
    EXPECT_EQ(rig_figures(rig).allocations, 0);
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig->s, old.ref));
    EXPECT_STATUS(STRATA_E_STALE, strata_free(rig->s, other.ref));
    EXPECT_STATUS(STRATA_E_UNKNOWN_POINTER, strata_free_pointer(rig->s, old.ptr));
    strata_block_t now = rig_allocate(rig, NULL, MIB), later = rig_allocate(rig, stream, MIB);
    expect_route(rig, now, "system");
    expect_route(rig, later, "system");
    rig_work(rig, stream, 1000, later.ref);
    EXPECT_OK(strata_free_pointer(rig->s, now.ptr));
    EXPECT_OK(strata_free(rig->s, later.ref));
    char text[4096];
    EXPECT_OK(strata_explain(rig->s, text, sizeof text, NULL));
    EXPECT_CONTAINS(text, "system");
    EXPECT_LACKS(text, "auto_growth");
}

TEST_RIG(facade_change, what_is_live_keeps_the_strategy, GIB, "strata-malloc") {
    strata_block_t a = rig_allocate(rig, NULL, MIB), b = rig_allocate(rig, NULL, 0), c;
    EXPECT_OK(strata_allocate(rig->s, strata_pinned(), NULL, 100, &c));
    EXPECT_SAYS(STRATA_E_BUSY, change_to(rig, "system"), "3 allocations are live");
    expect_route(rig, a, "retry > stream_safe > auto_growth | system");
    RIG_FREE(rig, b, c);
    EXPECT_SAYS(STRATA_E_BUSY, change_to(rig, "system"), "1 allocations are live");
    /* A free that waits for another stream is waited for. */
    strata_stream_t stream = rig_stream(rig);
    rig_borrow(rig, a.ref, stream, 1000 * 1000);
    EXPECT_OK(strata_free(rig->s, a.ref));
    EXPECT_EQ(rig_figures(rig).deferred_frees, 1);
    EXPECT_OK(change_to(rig, "system"));
}

TEST_RIG(facade_change, a_wrong_strategy_leaves_the_old_one, GIB, "strata-malloc") {
    EXPECT_STATUS(STRATA_E_STRATEGY, change_to(rig, "no such preset"));
    strata_open_options_t options = {.struct_size = sizeof options,
                                     .text = "strategy: x\nstack: [{cuda_malloc_async: {pool: best}}]\n",
                                     .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    EXPECT_STATUS(STRATA_E_STRATEGY, strata_change_strategy(rig->s, &options));
    options = (strata_open_options_t){.struct_size = sizeof options, .devices = "sim:a100x2"};
    EXPECT_SAYS(STRATA_E_UNSUPPORTED, strata_change_strategy(rig->s, &options), "a facade cannot change its devices");
    options.struct_size = 3;
    EXPECT_STATUS(STRATA_E_INVALID, strata_change_strategy(rig->s, &options));
    strata_block_t a = rig_allocate(rig, NULL, MIB);
    expect_route(rig, a, "retry > stream_safe > auto_growth | system");
}

TEST_BY(facade_change, what_the_program_said_of_places_stays, rig_open(rig, "strata", NULL, 0, GIB, 2)) {
    strata_block_t none;
    strata_stream_t stream = rig_stream(rig);
    EXPECT_OK(strata_set_limit(rig->s, strata_gpu(1), 4 * MIB));
    EXPECT_OK(strata_set_default_stream(rig->s, rig->gpu, stream));
    strata_block_t a = rig_allocate(rig, NULL, MIB);
    EXPECT_OK(strata_free_pointer(rig->s, a.ptr));
    EXPECT_OK(change_to(rig, "paddle"));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig->s, strata_gpu(1), NULL, 5 * MIB, &none));
    a = rig_allocate(rig, NULL, MIB);
    expect_owner(rig, a, stream);
    /* Pointers were noted before, and are still. */
    EXPECT_OK(strata_free_pointer(rig->s, a.ptr));
}

/* ---- what a place keeps ---- */

static uint64_t next_count(rig_t *rig, strata_place_t place) {
    uint64_t count = 0;
    EXPECT_OK(strata_next_count(rig->s, place, &count));
    return count;
}

#define STAMPED "strategy: stamped\nstack: [bfc: {timestamps: true, memory_limit: 16MiB, allow_growth: false}, system]\n"

/* A frontier that is true of work from before the change says nothing of what was freed after it. */
TEST_RIG(facade_change, counts_of_frees_go_on_where_they_were, GIB, STAMPED) {
    uint64_t old = 0;
    for (int i = 0; i < 1000; i++) old = next_count(rig, rig->gpu);
    EXPECT_OK(change_to_text(rig, STAMPED));
    strata_block_t a = rig_allocate(rig, NULL, MIB), b = rig_allocate(rig, NULL, MIB);
    (void)rig_allocate(rig, NULL, MIB);
    RIG_FREE(rig, a, b);
    EXPECT_OK(strata_set_safe_frontier(rig->s, rig->gpu, old));
    strata_block_t both = rig_allocate(rig, NULL, 2 * MIB);
    EXPECT_NE(both.ptr, a.ptr);
    EXPECT_OK(strata_free(rig->s, both.ref));
    uint64_t mine = next_count(rig, rig->gpu);
    EXPECT_GT(mine, old);
    EXPECT_OK(strata_set_safe_frontier(rig->s, rig->gpu, mine));
    both = rig_allocate(rig, NULL, 2 * MIB);
    EXPECT_EQ(both.ptr, a.ptr);
}

#define AHEAD "strategy: ahead\nstack: [stream_safe, auto_growth: {preallocate: 512MiB}, system]\n"

TEST_RIG(facade_change, what_is_got_ahead_keeps_to_the_limit, GIB, "strata-malloc") {
    EXPECT_OK(strata_set_limit(rig->s, rig->gpu, 64 * MIB));
    EXPECT_SAYS(STRATA_E_NO_MEMORY, change_to_text(rig, AHEAD), "auto_growth.preallocate: 512MiB: strata_set_limit: ");
    EXPECT_EQ(rig_calls(rig, STRATA_CALL_malloc), 0);
    strata_block_t block = rig_allocate(rig, NULL, MIB);
    expect_route(rig, block, "retry > stream_safe > auto_growth | system");
    EXPECT_OK(strata_free(rig->s, block.ref));
    EXPECT_OK(strata_set_limit(rig->s, rig->gpu, 512 * MIB));
    EXPECT_OK(change_to_text(rig, AHEAD));
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 512 * MIB);
}

/* What was got before the refusal goes back, whatever the device says to that. */
TEST_BY(facade_change, that_fails_tells_why_and_not_what_was_undone, rig_open(rig, "strata", NULL, 0, GIB, 2)) {
    EXPECT_OK(strata_set_limit(rig->s, strata_gpu(1), 64 * MIB));
    ASSERT_OK(strata_sim_fail(rig->devices[0], STRATA_CALL_free, 1, false, STRATA_E_DEVICE));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, change_to_text(rig, AHEAD));
    EXPECT_EQ(strata_last_error()->status, STRATA_E_NO_MEMORY);
    EXPECT_CONTAINS(strata_last_error()->text, "auto_growth.preallocate: 512MiB: strata_set_limit: ");
}

TEST_RIG(facade_change, what_is_got_ahead_is_the_default_streams, GIB, "strata") {
    strata_stream_t stream = rig_stream(rig);
    EXPECT_OK(strata_set_default_stream(rig->s, rig->gpu, stream));
    EXPECT_OK(change_to_text(rig, AHEAD));
    EXPECT_EQ(strata_stack_idle_bytes(rig_stack(rig, stream)), 512 * MIB);
    (void)rig_allocate(rig, NULL, MIB);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 512 * MIB);
}

/* As at open a place that the device cannot serve is told to who asks for it. */
TEST_RIG(facade_change, what_was_said_of_a_place_outlives_a_strategy_that_does_not_serve_it, GIB, "strata") {
    strata_block_t block;
    uint64_t count = next_count(rig, strata_pinned());
    EXPECT_OK(strata_set_limit(rig->s, strata_pinned(), 4 * MIB));
    rig->devices[0]->capabilities.host_nodes = 0;
    EXPECT_OK(change_to_text(rig, "strategy: far\nstack: [system]\nplaces: {pinned: [system: {node: 1}]}\n"));
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, strata_allocate(rig->s, strata_pinned(), NULL, 1000, &block));
    EXPECT_OK(change_to(rig, "system"));
    EXPECT_STATUS(STRATA_E_NO_MEMORY, strata_allocate(rig->s, strata_pinned(), NULL, 5 * MIB, &block));
    EXPECT_EQ(next_count(rig, strata_pinned()), count + 1);
}

/* As after open: the first requests of the default streams build nothing. */
TEST_BY(facade_change, the_stacks_of_the_default_streams_are_there_when_it_returns, rig_open(rig, "strata", NULL, 0, GIB, 2)) {
    EXPECT_OK(change_to(rig, "paddle"));
    for (uint32_t device = 0; device < 2; device++) {
        strata_block_t block;
        strata_domain_t *domain;
        ASSERT_OK(strata_facade_domain(strata_facade_of(rig->s), strata_gpu(device), &domain));
        uint32_t stacks = domain->stack_count;
        ASSERT_OK(strata_allocate(rig->s, strata_gpu(device), NULL, MIB, &block));
        EXPECT_EQ(domain->stack_count, stacks);
        EXPECT_OK(strata_free(rig->s, block.ref));
    }
}

/* From every preset to every other, with a program of two streams in between. */
TEST_RIG(facade_change, from_every_preset_to_every_other, GIB, "strata") {
    static program_t program;
    const char *from, *to;
    program_begin(&program, rig);
    for (size_t i = 0; (from = strata_strategy_name(i)) != NULL; i++)
        for (size_t k = 0; (to = strata_strategy_name(k)) != NULL; k++)
            for (int both = 0; both < 2; both++) {
                EXPECT_OK(change_to(rig, both ? to : from));
                program_run(&program, 60);
                program_check(&program);
                program_finish(&program);
            }
    EXPECT_EQ(program.failures, 0);
}

/* A thread that found its stack before the change finds the new one after it. */
typedef struct second {
    rig_t *rig;
    pthread_barrier_t *gate;
    bool other;
} second_t;

static void *serve_twice(void *context) {
    second_t *second = context;
    for (int i = 0; i < 2; i++) {
        strata_block_t b = rig_allocate(second->rig, NULL, 1000);
        second->other = path_is(second->rig, b.ref, "system");
        EXPECT_OK(strata_free(second->rig->s, b.ref));
        (void)pthread_barrier_wait(second->gate);
        (void)pthread_barrier_wait(second->gate);
    }
    return NULL;
}

TEST_RIG(facade_change, ends_what_other_threads_have_looked_up, GIB, "strata") {
    pthread_t thread;
    pthread_barrier_t gate;
    ASSERT_EQ(pthread_barrier_init(&gate, NULL, 2), 0);
    second_t second = {.rig = rig, .gate = &gate};
    ASSERT_EQ(pthread_create(&thread, NULL, serve_twice, &second), 0);
    (void)pthread_barrier_wait(&gate);
    EXPECT_FALSE(second.other);
    EXPECT_OK(change_to(rig, "system"));
    (void)pthread_barrier_wait(&gate);
    (void)pthread_barrier_wait(&gate);
    EXPECT_TRUE(second.other);
    (void)pthread_barrier_wait(&gate);
    ASSERT_EQ(pthread_join(thread, NULL), 0);
    ASSERT_EQ(pthread_barrier_destroy(&gate), 0);
}

/* Each host allocation of a change fails in turn: the old strategy serves on. */
TEST_BY(facade_change, all_or_nothing_when_the_host_has_no_memory, rig_open(rig, "paddle", NULL, 0, GIB, 2)) {
    strata_status_t status = STRATA_E_HOST_MEMORY;
    uint64_t k = 1;
    for (; status != STRATA_OK && k < 100000 && !strata_test_has_failed(); k += k < 40 ? 1 : STRIDE * 5) {
        strata_host_fail_at(k, 0);
        status = change_to(rig, "strata-malloc");
        strata_host_fail_at(0, 0);
        EXPECT_TRUE(status == STRATA_OK || status == STRATA_E_HOST_MEMORY);
        strata_block_t b = rig_allocate(rig, NULL, MIB);
        EXPECT_EQ(rig_figures(rig).reserved_bytes, status == STRATA_OK ? 20 * MIB : MIB);
        EXPECT_OK(strata_free(rig->s, b.ref));
    }
    EXPECT_OK(status);
    EXPECT_GT(k, 40);
}

/* ---- the flags ---- */

static strata_status_t use(rig_t *rig, strata_stream_t stream) {
    strata_block_t block;
    strata_status_t status = strata_allocate(rig->s, rig->gpu, stream, 1000, &block);
    if (status == STRATA_OK) EXPECT_OK(strata_free(rig->s, block.ref));
    return status;
}

/* The same handle for another stream. */
static void recycle(rig_t *rig, strata_stream_t stream) {
    strata_stream_t again = NULL;
    EXPECT_OK(strata_stream_destroy(rig->s, rig->gpu, stream));
    EXPECT_OK(strata_stream_create(rig->s, rig->gpu, 0, &again));
    EXPECT_EQ(again, stream);
}

/* The streams stay, and what places know of them as long as the flag does. */
TEST_RIG(facade_change, handles_are_checked_from_it_on_or_no_more, GIB, "strata") {
    strata_stream_t stream = rig_stream(rig);
    EXPECT_OK(use(rig, stream));
    EXPECT_OK(change_with(rig, "paddle", STRATA_OPEN_CHECK_STREAM_IDS));
    EXPECT_OK(use(rig, stream));
    recycle(rig, stream);
    EXPECT_STATUS(STRATA_E_UNKNOWN_STREAM, use(rig, stream));
    EXPECT_OK(change_with(rig, "strata", STRATA_OPEN_CHECK_STREAM_IDS));
    EXPECT_STATUS(STRATA_E_UNKNOWN_STREAM, use(rig, stream));
    EXPECT_STATUS(STRATA_E_STRATEGY, change_to(rig, "no such preset"));
    EXPECT_STATUS(STRATA_E_UNKNOWN_STREAM, use(rig, stream));
    EXPECT_OK(change_to(rig, "strata"));
    EXPECT_OK(use(rig, stream));
    recycle(rig, stream);
    EXPECT_OK(use(rig, stream));
}

/* The table of handles is one of the host's allocations: its failure, and that of any other, leaves the old flags too. */
TEST_RIG(facade_change, that_fails_leaves_handles_unchecked, GIB, "strata") {
    strata_stream_t stream = rig_stream(rig);
    for (uint64_t k = 1; k <= 40; k++) {
        strata_host_fail_at(k, 0);
        strata_status_t status = change_with(rig, "strata", STRATA_OPEN_CHECK_STREAM_IDS);
        strata_host_fail_at(0, 0);
        EXPECT_EQ(status, STRATA_E_HOST_MEMORY);
        EXPECT_OK(use(rig, stream));
        recycle(rig, stream);
        EXPECT_OK(use(rig, stream));
    }
    EXPECT_STATUS(STRATA_E_STRATEGY, change_with(rig, "no such preset", STRATA_OPEN_CHECK_STREAM_IDS));
    recycle(rig, stream);
    EXPECT_OK(use(rig, stream));
}
