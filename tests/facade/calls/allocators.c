/* Allocator objects: what they name, how long, and who may use them. */
#include <pthread.h>
#include <string.h>

#include "allocation/cache/policies/auto_growth/auto_growth_state.h"
#include "allocation/stack/threads.h"
#include "platform/host/host_memory.h"
#include "tests/facade/support/ends.h"
#include "tests/facade/support/fixture.h"
#include "tests/harness/owned.h"

enum { SIZE = 64 << 10 };

static strata_allocator_t allocator_of(rig_t *rig, strata_place_t place, strata_stream_t stream, uint64_t pool) {
    strata_allocator_t allocator = {.stack = 0};
    EXPECT_OK(strata_allocator_get(rig->s, place, stream, pool, &allocator));
    return allocator;
}

static strata_block_t allocate(strata_allocator_t allocator, size_t size) {
    strata_block_t block = {.ref = 0};
    EXPECT_OK(strata_allocator_allocate(allocator, size, &block));
    return block;
}

static strata_allocator_info_t info_of(strata_allocator_t allocator) {
    strata_allocator_info_t info = {.struct_size = sizeof info};
    EXPECT_OK(strata_allocator_describe(allocator, &info));
    return info;
}

static void expect_stale(strata_allocator_t allocator) {
    strata_block_t block = {.ref = 7};
    strata_statistics_t figures = {.struct_size = sizeof figures};
    strata_allocator_info_t info = {.struct_size = sizeof info};
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = SIZE};
    uint64_t released = 7;
    EXPECT_SAYS(STRATA_E_STALE, strata_allocator_allocate(allocator, SIZE, &block), "strata_allocator_get");
    EXPECT_STATUS(STRATA_E_STALE, strata_allocator_allocate_with(allocator, &options, &block));
    EXPECT_STATUS(STRATA_E_STALE, strata_allocator_release(allocator, &released));
    EXPECT_STATUS(STRATA_E_STALE, strata_allocator_statistics(allocator, &figures));
    EXPECT_STATUS(STRATA_E_STALE, strata_allocator_describe(allocator, &info));
    EXPECT_EQ(block.ref, 7);
    EXPECT_EQ(released, 7);
}

#define PRESETS "strata", "paddle", "pytorch", "tensorflow", "naive_best_fit", "system", "thread_local"

/* What is asked through it belongs to the stream, in every preset, and is freed through it or by its name. */
TEST_RIG(facade_allocators, one_serves_the_stream_that_it_names, 0, PRESETS) {
    strata_stream_t stream = rig_stream(rig);
    strata_allocator_t allocator = allocator_of(rig, rig->gpu, stream, 0);
    for (int k = 0; k < 4; k++) {
        strata_block_t first = allocate(allocator, SIZE), second = allocate(allocator, 3 * MIB);
        EXPECT_GE(first.size, SIZE);
        expect_owner(rig, first, stream);
        EXPECT_OK(strata_allocator_free(allocator, first.ref));
        EXPECT_STATUS(STRATA_E_STALE, strata_allocator_free(allocator, first.ref));
        EXPECT_OK(strata_free(rig->s, second.ref));
        strata_block_t named = rig_allocate(rig, NULL, SIZE);
        EXPECT_OK(strata_allocator_free(allocator, named.ref));
    }
    strata_allocator_info_t info = info_of(allocator);
    EXPECT_EQ(info.facade, rig->s);
    EXPECT_EQ(info.place, rig->gpu);
    EXPECT_EQ((uintptr_t)info.stream, (uintptr_t)stream);
    EXPECT_EQ(info.pool, STRATA_POOL_ORDINARY);
}

TEST_RIG(facade_allocators, options_sizes_and_pointers_are_as_everywhere, 0, "strata") {
    strata_allocator_t allocator = allocator_of(rig, rig->gpu, NULL, 0), none = {.stack = 0};
    strata_block_t block = allocate(allocator, 0);
    EXPECT_EQ((uintptr_t)block.ptr, 0);
    EXPECT_OK(strata_allocator_free(allocator, block.ref));
    EXPECT_STATUS(STRATA_E_INVALID, strata_allocator_allocate(allocator, SIZE, NULL));
    EXPECT_STATUS(STRATA_E_INVALID, strata_allocator_allocate(allocator, (size_t)1 << 50, &block));
    EXPECT_STATUS(STRATA_E_INVALID, strata_allocator_get(rig->s, rig->gpu, NULL, 0, NULL));
    EXPECT_STATUS(STRATA_E_INVALID, strata_allocator_get(rig->s, rig->gpu, NULL, 77, &none));
    EXPECT_STATUS(STRATA_E_INVALID, strata_allocator_get(rig->s, strata_gpu(9), NULL, 0, &none));
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = SIZE, .tag = "weights"};
    EXPECT_OK(strata_allocator_allocate_with(allocator, &options, &block));
    EXPECT_OK(strata_allocator_free(allocator, block.ref));
    options.pool = STRATA_POOL_ORDINARY;
    EXPECT_STATUS(STRATA_E_INVALID, strata_allocator_allocate_with(allocator, &options, &block));
    expect_stale(none);
    EXPECT_STATUS(STRATA_E_STALE, strata_allocator_free(none, 12345));
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, NULL, SIZE).ref));
}

TEST_RIG(facade_allocators, no_bytes_and_more_than_any_place_has_are_told_apart_by_every_cache, 0, PRESETS) {
    strata_allocator_t allocator = allocator_of(rig, rig->gpu, rig_stream(rig), 0);
    strata_block_t block = allocate(allocator, 0);
    EXPECT_EQ((uintptr_t)block.ptr, 0);
    EXPECT_OK(strata_allocator_free(allocator, block.ref));
    block.ref = 7;
    EXPECT_STATUS(STRATA_E_INVALID, strata_allocator_allocate(allocator, (size_t)1 << 50, &block));
    EXPECT_EQ(block.ref, 7);
}

/* A hit neither looks for a stack nor goes down one. */
TEST_RIG(facade_allocators, a_request_looks_nothing_up, 0, PRESETS) {
    strata_allocator_t allocator = allocator_of(rig, rig->gpu, rig_stream(rig), 0);
    EXPECT_OK(strata_allocator_free(allocator, allocate(allocator, SIZE).ref));
    uint64_t before = rig_domain(rig)->examined;
    for (int k = 0; k < 10; k++) EXPECT_OK(strata_allocator_free(allocator, allocate(allocator, SIZE).ref));
    EXPECT_EQ(rig_domain(rig)->examined - before, 0);
}

/* ---- life ---- */

/* Another stream with the same handle is not its stream. */
TEST_RIG(facade_allocators, one_ends_with_its_stream_and_frees_what_it_served, 0, PRESETS) {
    strata_stream_t stream = NULL;
    EXPECT_OK(strata_stream_create(rig->s, rig->gpu, 0, &stream));
    strata_allocator_t allocator = allocator_of(rig, rig->gpu, stream, 0);
    strata_block_t live = allocate(allocator, SIZE), other = allocate(allocator, SIZE);
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, stream));
    expect_stale(allocator);
    (void)rig_stack(rig, stream);
    expect_stale(allocator);
    EXPECT_OK(strata_allocator_free(allocator, live.ref));
    EXPECT_STATUS(STRATA_E_STALE, strata_allocator_free(allocator, live.ref));
    EXPECT_OK(strata_allocator_free(allocator_of(rig, rig->gpu, stream, 0), other.ref));
    rig_end_stream(rig, stream);
}

TEST(facade_allocators, one_ends_with_the_strategy_and_with_the_facade) {
    strata_t s;
    strata_allocator_t allocator, later;
    strata_block_t block;
    strata_open_options_t options = {
        .struct_size = sizeof options, .preset = "strata", .devices = "sim", .flags = STRATA_OPEN_IGNORE_ENVIRONMENT};
    ASSERT_EQ(strata_open(&options, &s), STRATA_OK);
    EXPECT_OK(strata_allocator_get(s, strata_gpu(0), NULL, 0, &allocator));
    EXPECT_OK(strata_allocator_allocate(allocator, SIZE, &block));
    EXPECT_OK(strata_allocator_free(allocator, block.ref));
    options.preset = "pytorch";
    options.devices = NULL;
    EXPECT_OK(strata_change_strategy(s, &options));
    expect_stale(allocator);
    EXPECT_OK(strata_allocator_get(s, strata_gpu(0), NULL, 0, &later));
    EXPECT_OK(strata_allocator_allocate(later, SIZE, &block));
    EXPECT_OK(strata_close(s, STRATA_CLOSE_FORCE, NULL, NULL));
    expect_stale(later);
    EXPECT_STATUS(STRATA_E_STALE, strata_allocator_free(later, block.ref));
    options.devices = "sim";
    ASSERT_EQ(strata_open(&options, &s), STRATA_OK); /* the numbers live again */
    expect_stale(later);
    expect_stale(allocator);
    EXPECT_STATUS(STRATA_E_STALE, strata_allocator_free(later, block.ref));
    EXPECT_OK(strata_close(s, STRATA_CLOSE_BUSY, NULL, NULL));
}

TEST_RIG(facade_allocators, one_for_null_ends_when_null_means_another_stream, 0, "strata") {
    strata_stream_t stream = rig_stream(rig);
    strata_allocator_t before = allocator_of(rig, rig->gpu, NULL, 0), named = allocator_of(rig, rig->gpu, rig_stream(rig), 0);
    EXPECT_OK(strata_set_default_stream(rig->s, rig->gpu, stream));
    expect_stale(before);
    EXPECT_OK(strata_allocator_free(named, allocate(named, SIZE).ref));
    strata_allocator_t legacy = allocator_of(rig, rig->gpu, STRATA_STREAM_LEGACY, 0), now = allocator_of(rig, rig->gpu, NULL, 0);
    EXPECT_EQ((uintptr_t)info_of(legacy).stream, (uintptr_t)STRATA_STREAM_LEGACY);
    EXPECT_EQ((uintptr_t)info_of(now).stream, (uintptr_t)stream);
    strata_block_t block = allocate(legacy, SIZE);
    expect_owner(rig, block, STRATA_STREAM_LEGACY);
    EXPECT_OK(strata_allocator_free(legacy, block.ref));
}

/* ---- what else a request may be ---- */

TEST_RIG(facade_allocators, the_pool_is_the_one_of_the_moment_when_it_is_got, 0,
         "strategy: pooled\npools: {weights: [stream_safe, auto_growth, system]}\n") {
    uint64_t weights, of;
    EXPECT_OK(strata_pool(rig->s, "weights", &weights));
    strata_allocator_t named = allocator_of(rig, rig->gpu, NULL, weights), ordinary = allocator_of(rig, rig->gpu, NULL, 0);
    EXPECT_OK(strata_pool_begin(rig->s, rig->gpu, weights));
    strata_allocator_t begun = allocator_of(rig, rig->gpu, NULL, 0);
    strata_block_t blocks[] = {allocate(named, SIZE), allocate(ordinary, SIZE), allocate(begun, SIZE)};
    EXPECT_OK(strata_pool_end(rig->s, rig->gpu));
    const uint64_t wanted[] = {weights, STRATA_POOL_ORDINARY, weights};
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(strata_pool_of(rig->s, blocks[i].ref, &of));
        EXPECT_EQ(of, wanted[i]);
        EXPECT_OK(strata_allocator_free(named, blocks[i].ref));
    }
    EXPECT_EQ(begun.stack, named.stack);
    EXPECT_EQ(info_of(named).pool, weights);
}

/* There the stream is the first borrower: a free waits for its work. */
TEST_RIG(facade_allocators, in_pinned_memory_the_stream_borrows, 0, "strata") {
    strata_stream_t stream = rig_stream(rig);
    strata_allocator_t allocator = allocator_of(rig, strata_pinned(), stream, 0);
    strata_statistics_t figures = {.struct_size = sizeof figures};
    strata_block_t block = allocate(allocator, SIZE);
    rig_work(rig, stream, 1000 * 1000, block.ref);
    EXPECT_OK(strata_allocator_free(allocator, block.ref));
    EXPECT_OK(strata_allocator_statistics(allocator, &figures));
    EXPECT_GT(figures.deferred_bytes, 0);
    EXPECT_EQ((uintptr_t)info_of(allocator).stream, (uintptr_t)stream);
    strata_allocator_t nobodys = allocator_of(rig, strata_host(), NULL, 0);
    EXPECT_OK(strata_allocator_free(nobodys, allocate(nobodys, SIZE).ref));
}

static void keep_operator(const strata_leak_t *leak, void *context) { strncpy(context, leak->operator_name, 31); }

/* A thread inside an operator is no thread of hits. */
TEST_RIG(facade_allocators, an_operator_is_noted, 0, "strata") {
    char name[32] = "";
    strata_allocator_t allocator = allocator_of(rig, rig->gpu, NULL, 0);
    EXPECT_OK(strata_allocator_free(allocator, allocate(allocator, SIZE).ref));
    EXPECT_OK(strata_annotate(rig->s, "conv1"));
    strata_block_t block = allocate(allocator, SIZE);
    EXPECT_OK(strata_annotate(rig->s, NULL));
    EXPECT_STATUS(STRATA_E_BUSY, strata_close(rig->s, STRATA_CLOSE_BUSY, keep_operator, name));
    EXPECT_STREQ(name, "conv1");
    EXPECT_OK(strata_allocator_free(allocator, block.ref));
    EXPECT_EQ(strata_threads_plain, strata_threads_self());
}

TEST_BY(facade_allocators, a_recycled_handle_is_told_where_streams_are_checked,
        rig_open_with(rig, "strata", &(strata_sim_options_t){.devices = 1}, STRATA_OPEN_CHECK_STREAM_IDS)) {
    strata_stream_t stream = NULL, again = NULL;
    strata_block_t block;
    EXPECT_OK(strata_stream_create(rig->s, rig->gpu, 0, &stream));
    strata_allocator_t allocator = allocator_of(rig, rig->gpu, stream, 0);
    EXPECT_OK(strata_allocator_free(allocator, allocate(allocator, SIZE).ref));
    EXPECT_OK(strata_stream_destroy(rig->s, rig->gpu, stream));
    EXPECT_OK(strata_stream_create(rig->s, rig->gpu, 0, &again));
    EXPECT_EQ((uintptr_t)again, (uintptr_t)stream);
    EXPECT_STATUS(STRATA_E_UNKNOWN_STREAM, strata_allocator_allocate(allocator, SIZE, &block));
}

static int expect_forked(const ends_t *ends) {
    strata_allocator_t allocator = {.stack = ends->block.ref, .stream = ends->stream};
    strata_block_t block;
    uint64_t bytes;
    if (strata_allocator_allocate(allocator, SIZE, &block) != STRATA_E_FORKED) return 1;
    if (strata_allocator_release(allocator, &bytes) != STRATA_E_FORKED) return 2;
    return strata_allocator_free(allocator, 12345) == STRATA_E_FORKED ? 0 : 3;
}

TEST_RIG(facade_allocators, a_child_of_fork_is_told_so, 0, "strata") {
    strata_allocator_t allocator = allocator_of(rig, rig->gpu, NULL, 0);
    EXPECT_OK(strata_allocator_free(allocator, allocate(allocator, SIZE).ref));
    ends_t ends = {.s = rig->s, .block.ref = allocator.stack};
    EXPECT_EQ(ends_in_child(expect_forked, &ends), 0);
}

/* ---- what it keeps ---- */

TEST_RIG(facade_allocators, a_release_gives_back_its_own_chunks_alone, 0,
         "strategy: two\nstack: [stream_safe, auto_growth: {chunk_size: 1MiB, order: any}, system]\n") {
    strata_allocator_t own = allocator_of(rig, rig->gpu, rig_stream(rig), 0), others = allocator_of(rig, rig->gpu, NULL, 0);
    strata_statistics_t figures = {.struct_size = sizeof figures};
    uint64_t released = 7;
    EXPECT_OK(strata_allocator_free(own, allocate(own, SIZE).ref));
    EXPECT_OK(strata_allocator_free(others, allocate(others, SIZE).ref));
    uint64_t reserved = rig_figures(rig).reserved_bytes;
    EXPECT_OK(strata_allocator_release(own, &released));
    EXPECT_EQ(released, MIB);
    EXPECT_EQ(rig_figures(rig).reserved_bytes, reserved - MIB);
    EXPECT_OK(strata_allocator_statistics(own, &figures));
    EXPECT_EQ(figures.reserved_bytes, 0);
    EXPECT_EQ(figures.allocations, 1);
    EXPECT_OK(strata_allocator_statistics(others, &figures));
    EXPECT_EQ(figures.reserved_bytes, MIB);
    EXPECT_OK(strata_allocator_release(others, NULL));
    EXPECT_EQ(rig_figures(rig).reserved_bytes, reserved - 2 * MIB);
}

/* What was freed by handle is not merged at once: whoever needs all that is free in one piece finds it so. */
TEST_RIG(facade_allocators, a_block_that_stays_apart_is_free_to_everybody, 0,
         "strategy: one\nstack: [auto_growth: {chunk_size: 1MiB, order: any}, system]\n") {
    strata_allocator_t allocator = allocator_of(rig, rig->gpu, NULL, 0);
    auto_growth_t *cache = (auto_growth_t *)rig_stack(rig, NULL)->cache;
    strata_block_t high = allocate(allocator, SIZE), low = allocate(allocator, SIZE);
    strata_neighbours_t beside = {.struct_size = sizeof beside};
    EXPECT_OK(strata_allocator_free(allocator, low.ref));
    EXPECT_NE(cache->chunks.last_freed, 0);
    EXPECT_OK(strata_neighbours(rig->s, high.ref, &beside));
    EXPECT_EQ(beside.free_before, MIB - SIZE);
    EXPECT_EQ(beside.run, MIB);
    EXPECT_TRUE(allocate(allocator, SIZE).ptr == low.ptr);
    EXPECT_EQ(cache->chunks.last_freed, 0);
    low.ref += 1; /* the same slot, one generation later */
    EXPECT_OK(strata_allocator_free(allocator, low.ref));
    strata_block_t large = allocate(allocator, MIB - SIZE); /* all that is free, in one piece */
    EXPECT_EQ(rig_figures(rig).reserved_bytes, MIB);
    EXPECT_OK(strata_allocator_free(allocator, large.ref));
    EXPECT_OK(strata_allocator_free(allocator, high.ref));
    EXPECT_OK(strata_validate(rig->s));
    rig_expect_empty(rig);
}

/* Served by its name meanwhile, taken in by a neighbour meanwhile. */
TEST_RIG(facade_allocators, a_block_that_stays_apart_may_be_gone, 0,
         "strategy: one\nstack: [auto_growth: {chunk_size: 1MiB, order: any}, system]\n") {
    strata_allocator_t allocator = allocator_of(rig, rig->gpu, NULL, 0);
    strata_block_t first = allocate(allocator, SIZE), second = allocate(allocator, 2 * SIZE), third = allocate(allocator, SIZE);
    EXPECT_OK(strata_allocator_free(allocator, first.ref));
    strata_block_t named = rig_allocate(rig, NULL, SIZE);
    EXPECT_TRUE(named.ptr == first.ptr);
    strata_block_t more = allocate(allocator, SIZE);
    EXPECT_TRUE(more.ptr != first.ptr);
    EXPECT_OK(strata_free(rig->s, named.ref));
    EXPECT_OK(strata_allocator_free(allocator, second.ref));
    EXPECT_OK(strata_allocator_free(allocator, third.ref));
    EXPECT_OK(strata_free(rig->s, more.ref));
    EXPECT_OK(strata_validate(rig->s));
    EXPECT_OK(strata_trim(rig->s, rig->gpu, 0, NULL));
    EXPECT_EQ(rig_figures(rig).reserved_bytes, 0);
}

/* ---- where a block lies ---- */

TEST_RIG(facade_allocators, a_block_tells_its_place_and_the_memory_that_it_lies_in, 0,
         "strategy: one\nstack: [guard: {report: false}, auto_growth: {chunk_size: 1MiB}, system]\n") {
    strata_place_t places[] = {rig->gpu, strata_managed(0), strata_pinned(), strata_host()}, place;
    void *base;
    size_t size;
    for (size_t i = 0; i < 4; i++) {
        strata_allocator_t allocator = allocator_of(rig, places[i], NULL, 0);
        strata_block_t block = allocate(allocator, SIZE);
        EXPECT_OK(strata_place_of(rig->s, block.ref, &place));
        EXPECT_EQ(place, places[i]);
        EXPECT_EQ(info_of(allocator).place, places[i]);
        EXPECT_OK(strata_base_of(rig->s, block.ref, &base, &size));
        EXPECT_LE((uintptr_t)base, (uintptr_t)block.ptr);
        EXPECT_GE((uintptr_t)base + size, (uintptr_t)block.ptr + block.size);
        if (i == 0) EXPECT_EQ(size, MIB);
        EXPECT_OK(strata_allocator_free(allocator, block.ref));
        EXPECT_STATUS(STRATA_E_STALE, strata_place_of(rig->s, block.ref, &place));
    }
    strata_block_t nothing = rig_allocate(rig, NULL, 0);
    EXPECT_OK(strata_base_of(rig->s, nothing.ref, &base, &size));
    EXPECT_EQ((uintptr_t)base + size, 0);
}

TEST_RIG(facade_allocators, what_no_cache_cut_is_its_own_memory, 0, "system") {
    void *base;
    size_t size;
    strata_block_t block = rig_allocate(rig, NULL, SIZE);
    EXPECT_OK(strata_base_of(rig->s, block.ref, &base, &size));
    EXPECT_TRUE(base == block.ptr);
    EXPECT_EQ(size, block.size);
}

/* ---- threads ---- */

typedef struct worker {
    rig_t *rig;
    strata_allocator_t allocator;
    strata_stream_t stream;
    _Atomic bool stop;
    int served;
    bool stale;
} worker_t;

static void *turn_over(void *context) {
    worker_t *w = context;
    strata_ref_t kept = 0;
    for (int i = 0; i < 1500; i++) {
        strata_block_t block;
        strata_status_t status = strata_allocator_allocate(w->allocator, i % 7 ? SIZE : 3 * MIB, &block);
        if (status == STRATA_E_STALE) w->stale = true;
        else EXPECT_EQ(status, STRATA_OK);
        if (status != STRATA_OK) break;
        w->served++;
        if (kept) EXPECT_OK(strata_allocator_free(w->allocator, kept));
        kept = block.ref;
    }
    if (kept) EXPECT_OK(strata_allocator_free(w->allocator, kept));
    return NULL;
}

TEST_RIG(facade_allocators, many_threads_share_one, 0, PRESETS) {
    worker_t workers[3];
    strata_allocator_t allocator = allocator_of(rig, rig->gpu, rig_stream(rig), 0);
    for (int k = 0; k < 3; k++) workers[k] = (worker_t){.rig = rig, .allocator = allocator};
    in_threads(turn_over, workers, sizeof *workers, 3);
    for (int k = 0; k < 3; k++) EXPECT_EQ(workers[k].served, 1500);
}

static void *forget_and_begin_anew(void *context) {
    worker_t *w = context;
    for (int i = 0; i < 200 && !w->stop; i++) {
        EXPECT_OK(strata_free(w->rig->s, rig_allocate(w->rig, NULL, SIZE).ref));
        EXPECT_OK(strata_stream_forget(w->rig->s, w->rig->gpu, w->stream));
    }
    return NULL;
}

/* Its number soon lives again, for another stream maybe: a call finds its own stack, or none. */
TEST_RIG(facade_allocators, a_stream_may_be_forgotten_at_any_moment_of_a_call, 0, "strata", "pytorch", "tensorflow") {
    strata_stream_t stream = rig_stream(rig);
    worker_t forgetting = {.rig = rig, .stream = stream};
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, NULL, forget_and_begin_anew, &forgetting), 0);
    for (int round = 0; round < 40; round++) {
        worker_t worker = {.rig = rig, .allocator = allocator_of(rig, rig->gpu, stream, 0)};
        (void)turn_over(&worker);
    }
    forgetting.stop = true;
    ASSERT_EQ(pthread_join(thread, NULL), 0);
    EXPECT_OK(strata_validate(rig->s));
    EXPECT_EQ(rig_figures(rig).live_allocations, 0);
}

typedef struct visit {
    rig_t *rig;
    strata_allocator_t allocator, own;
    strata_block_t block;
} visit_t;

static void *use_in_another_thread(void *context) {
    visit_t *visit = context;
    visit->block = allocate(visit->allocator, SIZE);
    EXPECT_OK(strata_allocator_free(visit->allocator, allocate(visit->allocator, SIZE).ref));
    visit->own = allocator_of(visit->rig, visit->rig->gpu, info_of(visit->allocator).stream, 0);
    return NULL;
}

/* Where every thread has memory of its own. */
TEST_RIG_WAYS(facade_allocators, another_thread_gets_memory_of_its_own, of_stream, 2, 0, of_stream ? "strata" : "thread_local") {
    visit_t visit = {.rig = rig, .allocator = allocator_of(rig, rig->gpu, of_stream ? STRATA_STREAM_PER_THREAD : NULL, 0)};
    strata_statistics_t figures = {.struct_size = sizeof figures};
    strata_block_t own = allocate(visit.allocator, SIZE);
    in_another_thread(use_in_another_thread, &visit);
    EXPECT_NE(visit.own.stack, visit.allocator.stack);
    EXPECT_OK(strata_allocator_statistics(visit.allocator, &figures));
    EXPECT_EQ(figures.allocations, 1);
    EXPECT_OK(strata_allocator_free(visit.allocator, visit.block.ref));
    EXPECT_OK(strata_allocator_free(visit.allocator, own.ref));
}

/* ---- bare functions ---- */

typedef struct messages {
    int count;
    char last[256];
} messages_t;

static void note_message(strata_log_level_t level, const char *text, void *context) {
    messages_t *messages = context;
    EXPECT_EQ(level, STRATA_LOG_WARNING);
    messages->count++;
    snprintf(messages->last, sizeof messages->last, "%s", text);
}

static strata_functions_t functions_of(strata_allocator_t allocator) {
    strata_functions_t functions = {NULL, NULL};
    EXPECT_OK(strata_allocator_functions(allocator, &functions));
    return functions;
}

TEST_RIG(facade_allocators, have_functions_without_a_context, 0, "strata") {
    strata_stream_t stream = rig_stream(rig);
    strata_allocator_t one = allocator_of(rig, rig->gpu, NULL, 0), two = allocator_of(rig, rig->gpu, stream, 0);
    strata_functions_t of_one = functions_of(one), of_two = functions_of(two), again = functions_of(one);
    strata_statistics_t figures = {.struct_size = sizeof figures};
    EXPECT_TRUE(of_one.allocate == again.allocate && of_one.free == again.free);
    EXPECT_TRUE(of_one.allocate != of_two.allocate);
    void *first = of_one.allocate(SIZE), *second = of_two.allocate(SIZE);
    EXPECT_TRUE(first && second && first != second);
    EXPECT_TRUE(of_one.allocate(0) == NULL);
    EXPECT_OK(strata_allocator_statistics(two, &figures));
    EXPECT_EQ(figures.live_allocations, 1);
    of_one.free(first);
    of_two.free(second);
    of_two.free(NULL);
    EXPECT_EQ(rig_figures(rig).live_allocations, 0);
    EXPECT_STATUS(STRATA_E_INVALID, strata_allocator_functions(one, NULL));
}

/* In the order of their stream, as frees of their allocator. */
TEST_RIG(facade_allocators, functions_free_in_the_order_of_the_stream, 0, "strata") {
    strata_stream_t stream = rig_stream(rig);
    strata_functions_t functions = functions_of(allocator_of(rig, rig->gpu, stream, 0));
    void *served = functions.allocate(SIZE);
    strata_block_t block;
    ASSERT_OK(strata_block_of(rig->s, served, &block));
    rig_work(rig, stream, 1000 * 1000, block.ref);
    functions.free(served);
    EXPECT_EQ(rig_figures(rig).deferred_bytes, 0);
    EXPECT_TRUE(functions.allocate(SIZE) == served);
    functions.free(served);
}

TEST_RIG(facade_allocators, functions_tell_the_log_why_they_fail, 256 * MIB, "strata") {
    messages_t messages = {.count = 0};
    strata_stream_t stream = rig_stream(rig);
    strata_functions_t functions = functions_of(allocator_of(rig, rig->gpu, stream, 0));
    void *served = functions.allocate(SIZE);
    EXPECT_OK(strata_set_log(note_message, &messages, STRATA_LOG_WARNING));
    EXPECT_TRUE(functions.allocate(1024 * MIB) == NULL);
    EXPECT_CONTAINS(messages.last, "out of memory in gpu:0");
    int before = messages.count;
    functions.free((char *)served + 1);
    EXPECT_EQ(messages.count, before + 1);
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, stream));
    EXPECT_TRUE(functions.allocate(SIZE) == NULL);
    EXPECT_CONTAINS(messages.last, "the allocator is stale");
    functions.free(served);
    EXPECT_EQ(messages.count, before + 2);
    EXPECT_OK(strata_set_log(NULL, NULL, STRATA_LOG_WARNING));
    EXPECT_EQ(rig_figures(rig).live_allocations, 0);
}

/* What has functions keeps them, however many come after it. */
TEST_RIG(facade_allocators, functions_are_bounded, 0, "strata") {
    strata_functions_t first = functions_of(allocator_of(rig, rig->gpu, NULL, 0)), functions;
    strata_status_t status = STRATA_OK;
    int count = 0;
    while (status == STRATA_OK && count <= STRATA_FUNCTIONS_MAX) {
        status = strata_allocator_functions(allocator_of(rig, rig->gpu, rig_stream(rig), 0), &functions);
        if (status == STRATA_OK) functions.free(functions.allocate(SIZE));
        count += status == STRATA_OK;
    }
    EXPECT_EQ(status, STRATA_E_LIMIT);
    EXPECT_LT(count, STRATA_FUNCTIONS_MAX);
    EXPECT_TRUE(functions_of(allocator_of(rig, rig->gpu, NULL, 0)).allocate == first.allocate);
    first.free(first.allocate(SIZE));
    EXPECT_EQ(rig_figures(rig).live_allocations, 0);
}

/* ---- failures ---- */

/* Each host allocation fails in turn while the stack of a new stream is made. */
TEST_RIG(facade_allocators, getting_one_may_fail_and_be_tried_again, 0, "strata") {
    uint64_t failed = 0;
    strata_stream_t stream = rig_stream(rig);
    for (uint64_t k = 1; k < 100; k++) {
        strata_allocator_t allocator = {.stack = 7};
        strata_host_fail_at(k, 0);
        strata_status_t status = strata_allocator_get(rig->s, rig->gpu, stream, 0, &allocator);
        strata_host_fail_at(0, 0);
        if (status == STRATA_OK) {
            EXPECT_OK(strata_allocator_free(allocator, allocate(allocator, SIZE).ref));
            break;
        }
        EXPECT_EQ(status, STRATA_E_HOST_MEMORY);
        EXPECT_EQ(allocator.stack, 7);
        failed++;
    }
    EXPECT_GT(failed, 3);
}
