/* States of a pool, taken and set back: against a model, under every cache that can stand in a pool of graphs. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "platform/host/host_memory.h"
#include "tests/graphs/graphs.h"

enum { LIVE = 64, STATES = 4, ROUNDS = 60 };

typedef struct set_back {
    const char *name, *strategy;
    bool one_stream; /* the cache would wait on the host for another one, which no capture allows */
} set_back_t;

static const set_back_t caches[] = {
    {.name = "strata", .strategy = "strata"},
    {.name = "pytorch", .strategy = "pytorch"},
    {.name = "tensorflow", .strategy = "tensorflow"},
    {.name = "paddle", .strategy = "paddle"},
    {.name = "auto_growth", .strategy = "stack: [auto_growth, system]"},
    {.name = "auto_growth_split", .strategy = "stack: [auto_growth: {chunk_size: 1MiB, split_pools: true, order: any}, system]"},
    {.name = "auto_growth_padded", .strategy = "stack: [auto_growth: {padding: 300, small_pool_size: 64KiB}, system]"},
    {.name = "caching_ignoring_streams",
     .strategy = "stack: [caching: {streams: ignored, max_split_size: 20MiB}, system]",
     .one_stream = true},
    {.name = "bfc_with_counts", .strategy = "stack: [bfc: {timestamps: true, fragmentation_fraction: 0.01}, system]"},
    {.name = "buffered", .strategy = "stack: [stream_safe, buffered, system]"},
    {.name = "naive_best_fit", .strategy = "stack: [naive_best_fit: {fraction: 0.1}, system]"},
    {.name = "naive_best_fit_shared",
     .strategy = "stack: [naive_best_fit: {fraction: 0.1, streams: ignored}, system]",
     .one_stream = true},
    {.name = "naive_best_fit_huge", .strategy = "stack: [naive_best_fit: {initial: 64KiB, reallocate: 64KiB}, system]"},
    {.name = "thread_local", .strategy = "stack: [thread_local: {fraction: 0.1}, system]"},
    {.name = "cache_over_cache", .strategy = "stack: [auto_growth, caching, system]"},
    {.name = "stable", .strategy = "stack: [auto_growth: {chunk_size: 1MiB, stable_addresses: true}, system]"},
};

/* ---- the model ---- */

typedef struct state {
    strata_block_t live[LIVE];
    uint32_t count;
} state_t;

typedef struct modelled {
    captured_t c;
    bool one_stream;
    uint64_t seed;
    state_t now;
    state_t then[STATES];
    strata_checkpoint_t taken[STATES];
    uint32_t graph_count;
    strata_graph_t graphs[ROUNDS];
    uint32_t freed, made; /* as the last restore told */
} modelled_t;

static uint32_t draw(modelled_t *m, uint32_t below) {
    m->seed = m->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(m->seed >> 33) % below;
}

static uint32_t find(const state_t *state, const strata_block_t *block) {
    uint32_t i = 0;
    while (i < state->count && (state->live[i].ptr != block->ptr || state->live[i].size != block->size)) i++;
    return i;
}

static void drop(modelled_t *m, uint32_t at) { m->now.live[at] = m->now.live[--m->now.count]; }

static void give(modelled_t *m, uint32_t at) {
    EXPECT_OK(strata_free(m->c.rig.s, m->now.live[at].ref));
    drop(m, at);
}

static void allocate(modelled_t *m) {
    uint32_t shift = 4 + draw(m, 14);
    size_t size = (size_t)(1 + draw(m, 64)) << shift;
    strata_stream_t stream = draw(m, 3) || m->one_stream ? m->c.stream : m->c.other;
    m->now.live[m->now.count++] = rig_allocate(&m->c.rig, stream, size);
}

static int by_address(const void *a, const void *b) {
    const strata_block_t *one = a, *other = b;
    return ((uintptr_t)one->ptr > (uintptr_t)other->ptr) - ((uintptr_t)one->ptr < (uintptr_t)other->ptr);
}

/* Another graph is captured into the pool; the other stream joins it. What it frees depends on the seed and on what is live. */
static void capture(modelled_t *m) {
    qsort(m->now.live, m->now.count, sizeof *m->now.live, by_address);
    captured_begin(&m->c);
    EXPECT_OK(strata_stream_wait(m->c.rig.s, m->c.rig.gpu, m->c.other, m->c.stream));
    for (int i = 0; i < 24; i++) {
        bool more = m->now.count < LIVE && (m->now.count == 0 || draw(m, 100) < 60);
        if (more) allocate(m);
        else give(m, draw(m, m->now.count));
    }
    EXPECT_OK(strata_stream_wait(m->c.rig.s, m->c.rig.gpu, m->c.stream, m->c.other));
    captured_end(&m->c);
    m->graphs[m->graph_count++] = m->c.graph;
}

static void told(const strata_block_t *block, bool live, void *context) {
    modelled_t *m = context;
    uint64_t pool;
    if (live) {
        EXPECT_EQ(find(&m->now, block), m->now.count);
        EXPECT_OK(strata_pool_of(m->c.rig.s, block->ref, &pool));
        EXPECT_EQ(pool, m->c.pool);
        m->now.live[m->now.count++] = *block;
        m->made++;
        return;
    }
    uint32_t at = find(&m->now, block);
    EXPECT_LT(at, m->now.count);
    EXPECT_EQ(m->now.live[at].ref, block->ref);
    EXPECT_STATUS(STRATA_E_STALE, strata_free(m->c.rig.s, block->ref));
    EXPECT_EQ(m->made, 0);
    m->freed++;
    drop(m, at);
}

static void expect_as_modelled(modelled_t *m) {
    strata_graph_pool_info_t info = captured_pool(&m->c);
    uint64_t bytes = 0;
    strata_block_t found;
    for (uint32_t i = 0; i < m->now.count; i++) {
        bytes += m->now.live[i].size;
        EXPECT_OK(strata_block_of(m->c.rig.s, m->now.live[i].ptr, &found));
        EXPECT_EQ(found.ref, m->now.live[i].ref);
        EXPECT_EQ(found.size, m->now.live[i].size);
    }
    EXPECT_EQ(info.live_allocations, m->now.count);
    EXPECT_EQ(info.allocated_bytes, bytes);
    EXPECT_OK(strata_validate(m->c.rig.s));
}

static void set_back(modelled_t *m, uint32_t at) {
    const state_t *then = &m->then[at];
    m->freed = m->made = 0;
    ASSERT_OK(strata_graph_pool_restore(m->c.rig.s, m->c.rig.gpu, m->taken[at], told, m));
    EXPECT_EQ(m->now.count, then->count);
    for (uint32_t i = 0; i < then->count; i++) EXPECT_LT(find(&m->now, &then->live[i]), m->now.count);
    expect_as_modelled(m);
}

static void take(modelled_t *m, uint32_t at) {
    strata_graph_checkpoint_drop(m->taken[at]);
    ASSERT_OK(strata_graph_pool_checkpoint(m->c.rig.s, m->c.rig.gpu, m->c.pool, &m->taken[at]));
    m->then[at] = m->now;
}

static void begin_with(modelled_t *m, const set_back_t *row, uint64_t seed) {
    memset(m, 0, sizeof *m);
    m->seed = seed;
    m->one_stream = row->one_stream;
    captured_open(&m->c, row->strategy);
    capture(m);
    for (uint32_t i = 0; i < STATES; i++) take(m, i);
}

static void begin(modelled_t *m, const char *strategy, uint64_t seed) { begin_with(m, &(set_back_t){.strategy = strategy}, seed); }

static void end(modelled_t *m) {
    while (m->now.count > 0) give(m, m->now.count - 1);
    for (uint32_t i = 0; i < STATES; i++) strata_graph_checkpoint_drop(m->taken[i]);
    for (uint32_t i = 0; i < m->graph_count; i++) EXPECT_OK(strata_graph_destroy(m->c.rig.s, m->c.rig.gpu, m->graphs[i]));
    captured_close(&m->c);
}

TEST_EACH(graph_checkpoint, random_programs_find_what_they_left, set_back_t, caches) {
    static modelled_t m;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        begin_with(&m, row, seed);
        for (int i = 0; i < 40; i++) {
            uint32_t what = draw(&m, 10), at = draw(&m, STATES);
            if (what < 3) capture(&m);
            else if (what < 5 && m.now.count > 0) give(&m, draw(&m, m.now.count));
            else if (what < 7) take(&m, at);
            else set_back(&m, at);
        }
        end(&m);
    }
}

/* What is free then is free again: the same requests get the same addresses, if the pool did not grow meanwhile. */
TEST(graph_checkpoint, free_memory_is_as_it_was) {
    static modelled_t m;
    state_t first;
    begin(&m, "pytorch", 5);
    uint64_t seed = m.seed;
    capture(&m);
    for (uint32_t i = 0; i < STATES; i++) take(&m, i);
    m.seed = seed + 1;
    uint64_t reserved = captured_pool(&m.c).reserved_bytes;
    capture(&m);
    first = m.now;
    if (captured_pool(&m.c).reserved_bytes == reserved) {
        set_back(&m, 0);
        m.seed = seed + 1;
        capture(&m);
        EXPECT_EQ(m.now.count, first.count);
        for (uint32_t i = 0; i < first.count; i++) EXPECT_LT(find(&m.now, &first.live[i]), m.now.count);
    }
    end(&m);
}

/* ---- what is refused, and changes nothing ---- */

static void expect_refused(modelled_t *m, uint32_t at, strata_status_t status) {
    EXPECT_STATUS(status, strata_graph_pool_restore(m->c.rig.s, m->c.rig.gpu, m->taken[at], told, m));
    expect_as_modelled(m);
}

TEST(graph_checkpoint, a_begun_pool_is_refused) {
    static modelled_t m;
    strata_checkpoint_t none = NULL;
    begin(&m, "strata", 1);
    captured_begin(&m.c);
    expect_refused(&m, 0, STRATA_E_BUSY);
    EXPECT_STATUS(STRATA_E_BUSY, strata_graph_pool_checkpoint(m.c.rig.s, m.c.rig.gpu, m.c.pool, &none));
    EXPECT_TRUE(none == NULL);
    captured_end(&m.c);
    m.graphs[m.graph_count++] = m.c.graph;
    set_back(&m, 0);
    end(&m);
}

TEST(graph_checkpoint, a_block_that_others_hold_is_not_freed) {
    static modelled_t m;
    begin(&m, "strata", 2);
    while (m.now.count > 1) give(&m, 0);
    take(&m, 0);
    capture(&m);
    uint32_t at = 0;
    while (find(&m.then[0], &m.now.live[at]) < m.then[0].count) at++;
    strata_ref_t ref = m.now.live[at].ref;
    EXPECT_OK(strata_retain(m.c.rig.s, ref));
    expect_refused(&m, 0, STRATA_E_BUSY);
    EXPECT_OK(strata_free(m.c.rig.s, ref));
    EXPECT_OK(strata_record_stream(m.c.rig.s, ref, rig_stream(&m.c.rig)));
    expect_refused(&m, 0, STRATA_E_BUSY);
    give(&m, at);
    EXPECT_OK(strata_device_synchronise(m.c.rig.devices[0]));
    set_back(&m, 0);
    end(&m);
}

/* Memory whose free waits for another stream cannot be live again yet. */
TEST(graph_checkpoint, memory_that_waits_is_not_taken) {
    static modelled_t m;
    begin(&m, "strata", 3);
    strata_stream_t borrower = rig_stream(&m.c.rig);
    EXPECT_OK(strata_record_stream(m.c.rig.s, m.now.live[0].ref, borrower));
    rig_work(&m.c.rig, borrower, 1000 * 1000, m.now.live[0].ref);
    give(&m, 0);
    EXPECT_STATUS(STRATA_E_BUSY, strata_graph_pool_restore(m.c.rig.s, m.c.rig.gpu, m.taken[0], told, &m));
    EXPECT_OK(strata_stream_synchronize(m.c.rig.s, m.c.rig.gpu, borrower));
    set_back(&m, 0);
    EXPECT_EQ(m.made, 1);
    end(&m);
}

TEST(graph_checkpoint, a_pool_that_nothing_keeps_is_refused_and_so_is_memory_that_went_back) {
    static modelled_t m;
    begin(&m, "stack: [auto_growth, system]", 4);
    while (m.now.count > 1) give(&m, 0);
    for (uint32_t i = 0; i < m.graph_count; i++) EXPECT_OK(strata_graph_destroy(m.c.rig.s, m.c.rig.gpu, m.graphs[i]));
    m.graph_count = 0;
    expect_refused(&m, 0, STRATA_E_INVALID);
    captured_begin(&m.c);
    captured_end(&m.c);
    m.graphs[m.graph_count++] = m.c.graph;
    expect_refused(&m, 0, STRATA_E_STALE);
    give(&m, 0);
    EXPECT_OK(strata_graph_destroy(m.c.rig.s, m.c.rig.gpu, m.graphs[--m.graph_count]));
    EXPECT_STATUS(STRATA_E_STALE, strata_graph_pool_restore(m.c.rig.s, m.c.rig.gpu, m.taken[0], told, &m));
    end(&m);
}

/* The stream's stack has served its last, and ended with the stream. */
TEST(graph_checkpoint, the_part_of_a_stream_that_has_ended_is_refused) {
    captured_t c;
    strata_checkpoint_t then = NULL;
    captured_open(&c, "stack: [auto_growth, system]");
    captured_begin(&c);
    strata_block_t kept = rig_allocate(&c.rig, c.stream, MIB);
    EXPECT_OK(strata_stream_wait(c.rig.s, c.rig.gpu, c.other, c.stream));
    strata_block_t gone = rig_allocate(&c.rig, c.other, MIB);
    EXPECT_OK(strata_stream_wait(c.rig.s, c.rig.gpu, c.stream, c.other));
    captured_end(&c);
    ASSERT_OK(strata_graph_pool_checkpoint(c.rig.s, c.rig.gpu, c.pool, &then));
    EXPECT_OK(strata_free(c.rig.s, gone.ref));
    captured_destroy(&c);
    EXPECT_OK(strata_stream_forget(c.rig.s, c.rig.gpu, c.other));
    EXPECT_OK(strata_release(c.rig.s, c.rig.gpu, NULL));
    captured_begin(&c);
    captured_end(&c);
    EXPECT_SAYS(STRATA_E_STALE, strata_graph_pool_restore(c.rig.s, c.rig.gpu, then, NULL, NULL),
                "stream's stack in the pool was closed");
    EXPECT_OK(strata_free(c.rig.s, kept.ref));
    strata_graph_checkpoint_drop(then);
    captured_destroy(&c);
    captured_close(&c);
}

/* Its memory went back to the cache below, which gave the pool it in two pieces. */
TEST(graph_checkpoint, memory_that_came_back_in_pieces_is_refused) {
    captured_t c;
    strata_checkpoint_t then = NULL;
    captured_open(&c, "stack: [auto_growth: {chunk_size: 1MiB}, auto_growth: {chunk_size: 64MiB}, system]");
    captured_begin(&c);
    strata_block_t kept = rig_allocate(&c.rig, c.stream, 4096), longer = rig_allocate(&c.rig, c.stream, 8 * MIB);
    captured_end(&c);
    ASSERT_OK(strata_graph_pool_checkpoint(c.rig.s, c.rig.gpu, c.pool, &then));
    EXPECT_OK(strata_free(c.rig.s, longer.ref));
    captured_destroy(&c);
    EXPECT_OK(strata_release(c.rig.s, c.rig.gpu, NULL));
    captured_begin(&c);
    strata_block_t halves[] = {rig_allocate(&c.rig, c.stream, 4 * MIB), rig_allocate(&c.rig, c.stream, 4 * MIB)};
    captured_end(&c);
    EXPECT_SAYS(STRATA_E_STALE, strata_graph_pool_restore(c.rig.s, c.rig.gpu, then, NULL, NULL), "no longer contiguous");
    EXPECT_EQ(captured_pool(&c).live_allocations, 3);
    EXPECT_OK(strata_free(c.rig.s, kept.ref));
    for (int i = 0; i < 2; i++) EXPECT_OK(strata_free(c.rig.s, halves[i].ref));
    strata_graph_checkpoint_drop(then);
    captured_destroy(&c);
    captured_close(&c);
}

static strata_record_t *refuse_at(strata_layer_t *self, const strata_block_t *block, size_t requested,
                                  const strata_stack_t *stack) {
    (void)self;
    (void)block;
    (void)requested;
    (void)stack;
    return NULL;
}

/* A cache from outside finds memory free and does not serve it. */
TEST(graph_checkpoint, a_cache_that_does_not_serve_what_it_shows_is_told_of) {
    static strata_layer_type_t refusing;
    captured_t c;
    strata_checkpoint_t then = NULL;
    refusing = *strata_layer_find("auto_growth");
    refusing.name = "refusing";
    refusing.hit_at = refuse_at;
    ASSERT_OK(strata_register_layer(&refusing));
    captured_open(&c, "stack: [refusing, system]");
    captured_begin(&c);
    strata_block_t block = rig_allocate(&c.rig, c.stream, MIB);
    captured_end(&c);
    ASSERT_OK(strata_graph_pool_checkpoint(c.rig.s, c.rig.gpu, c.pool, &then));
    EXPECT_OK(strata_free(c.rig.s, block.ref));
    EXPECT_SAYS(STRATA_E_CORRUPT, strata_graph_pool_restore(c.rig.s, c.rig.gpu, then, NULL, NULL), "could not be restored");
    EXPECT_EQ(captured_pool(&c).live_allocations, 0);
    strata_graph_checkpoint_drop(then);
    captured_destroy(&c);
    captured_close(&c);
}

/* It has no address to be set back at. */
TEST(graph_checkpoint, a_block_of_no_bytes_is_left_alone) {
    static modelled_t m;
    begin(&m, "strata", 11);
    captured_begin(&m.c);
    strata_block_t nothing = rig_allocate(&m.c.rig, m.c.stream, 0);
    captured_end(&m.c);
    m.graphs[m.graph_count++] = m.c.graph;
    ASSERT_OK(strata_graph_pool_restore(m.c.rig.s, m.c.rig.gpu, m.taken[0], told, &m));
    EXPECT_EQ(m.freed + m.made, 0);
    EXPECT_OK(strata_free(m.c.rig.s, nothing.ref));
    set_back(&m, 0);
    end(&m);
}

TEST(graph_checkpoint, it_is_of_one_pool_in_one_place) {
    static modelled_t m;
    strata_checkpoint_t none = NULL;
    begin(&m, "pytorch", 6);
    EXPECT_STATUS(STRATA_E_INVALID, strata_graph_pool_restore(m.c.rig.s, strata_managed(0), m.taken[0], told, &m));
    EXPECT_STATUS(STRATA_E_INVALID, strata_graph_pool_restore(m.c.rig.s, m.c.rig.gpu, NULL, told, &m));
    EXPECT_STATUS(STRATA_E_INVALID, strata_graph_pool_checkpoint(m.c.rig.s, m.c.rig.gpu, m.c.pool, NULL));
    EXPECT_STATUS(STRATA_E_INVALID, strata_graph_pool_checkpoint(m.c.rig.s, m.c.rig.gpu, 12345, &none));
    strata_graph_checkpoint_drop(NULL);
    EXPECT_OK(strata_graph_pool_restore(m.c.rig.s, m.c.rig.gpu, m.taken[0], NULL, NULL));
    end(&m);
}

TEST(graph_checkpoint, layers_that_take_part_in_every_request_cannot_be_set_back) {
    captured_t c;
    strata_checkpoint_t none = NULL;
    captured_open(&c, "stack: [binning: {routes: [{up_to: 1MiB, stack: [auto_growth, system]}, {stack: [caching, system]}]}]");
    captured_begin(&c);
    strata_block_t block = rig_allocate(&c.rig, c.stream, 4096);
    captured_end(&c);
    EXPECT_STATUS(STRATA_E_UNSUPPORTED, strata_graph_pool_checkpoint(c.rig.s, c.rig.gpu, c.pool, &none));
    EXPECT_OK(strata_free(c.rig.s, block.ref));
    captured_destroy(&c);
    captured_close(&c);
}

/* The stream of the blocks was destroyed after the capture, as that of a capture often is. */
TEST_EACH(graph_checkpoint, what_a_forgotten_stream_left_is_set_back, set_back_t, caches) {
    static modelled_t m;
    begin_with(&m, row, 7);
    while (m.now.count > 2) give(&m, 0);
    EXPECT_OK(strata_stream_forget(m.c.rig.s, m.c.rig.gpu, m.c.stream));
    EXPECT_OK(strata_stream_destroy(m.c.rig.s, m.c.rig.gpu, m.c.stream));
    m.c.stream = rig_stream(&m.c.rig);
    set_back(&m, 0);
    end(&m);
}

TEST(graph_checkpoint, it_outlives_the_facade) {
    static modelled_t m;
    begin(&m, "strata", 8);
    strata_checkpoint_t kept = m.taken[0];
    m.taken[0] = NULL;
    end(&m);
    strata_graph_checkpoint_drop(kept);
}

/* ---- threads ---- */

typedef struct freeing {
    strata_t s;
    const state_t *blocks;
} freeing_t;

/* Each is freed once: by this thread, or by the restore before it. */
static void *free_all(void *context) {
    const freeing_t *freeing = context;
    for (uint32_t i = 0; i < freeing->blocks->count; i++) {
        strata_status_t status = strata_free(freeing->s, freeing->blocks->live[i].ref);
        EXPECT_TRUE(status == STRATA_OK || status == STRATA_E_STALE);
    }
    return NULL;
}

static void free_live(const strata_block_t *block, bool live, void *context) {
    if (live) EXPECT_OK(strata_free(((modelled_t *)context)->c.rig.s, block->ref));
}

/* What was not live then is freed by another thread meanwhile: nothing is freed twice, and what was live then is live. */
TEST_EACH(graph_checkpoint, other_threads_may_free_meanwhile, set_back_t, caches) {
    static modelled_t m;
    static state_t later;
    begin_with(&m, row, 10);
    for (int round = 0; round < 10; round++) {
        while (m.now.count > 0) give(&m, m.now.count - 1);
        take(&m, 0);
        capture(&m);
        later = m.now;
        m.now.count = 0;
        pthread_t thread;
        freeing_t freeing = {m.c.rig.s, &later};
        ASSERT_EQ(pthread_create(&thread, NULL, free_all, &freeing), 0);
        EXPECT_OK(strata_graph_pool_restore(m.c.rig.s, m.c.rig.gpu, m.taken[0], free_live, &m));
        pthread_join(thread, NULL);
        expect_as_modelled(&m);
    }
    end(&m);
}

/* ---- failures ---- */

TEST_EACH(graph_checkpoint, every_host_allocation_fails_in_turn, set_back_t, caches) {
    static modelled_t m;
    strata_checkpoint_t taken = NULL;
    begin_with(&m, row, 9);
    capture(&m);
    uint64_t k = 0;
    strata_status_t status;
    do {
        strata_host_fail_at(++k, 0);
        status = strata_graph_pool_checkpoint(m.c.rig.s, m.c.rig.gpu, m.c.pool, &taken);
        strata_host_fail_at(0, 0);
        EXPECT_TRUE(status == STRATA_OK || status == STRATA_E_HOST_MEMORY);
    } while (status != STRATA_OK);
    EXPECT_GT(k, 1);
    strata_graph_checkpoint_drop(taken);
    for (k = 1; k < 100; k++) {
        m.freed = m.made = 0;
        strata_host_fail_at(k, 0);
        status = strata_graph_pool_restore(m.c.rig.s, m.c.rig.gpu, m.taken[0], told, &m);
        strata_host_fail_at(0, 0);
        if (status == STRATA_OK) break;
        EXPECT_EQ(status, STRATA_E_HOST_MEMORY);
        EXPECT_EQ(m.freed + m.made, 0);
        expect_as_modelled(&m);
    }
    EXPECT_GT(k, 1);
    set_back(&m, 0);
    end(&m);
}
