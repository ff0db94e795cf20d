/* Pools of threads: whose block is whose, what an exited thread leaves, and all of it at once. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "allocation/stack/threads.h"
#include "tests/naive/naive.h"

#define EACH_4MIB                                                                                                                  \
    "version: 1\nstack:\n  - retry: {timeout: 2ms}\n  - thread_local: {streams: ignored, initial: 4MiB, reallocate: 4MiB}\n  - "   \
    "system\n"

typedef struct visit {
    rig_t *rig;
    strata_stream_t stream;
    strata_block_t block, kept;
    uint64_t number;
} visit_t;

static void join(void *(*body)(void *), void *context) {
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, NULL, body, context), 0);
    pthread_join(thread, NULL);
}

static void *take_one(void *context) {
    visit_t *v = context;
    v->block = rig_allocate(v->rig, v->stream, MIB);
    v->number = strata_threads_self();
    return NULL;
}

static uint64_t mallocs(rig_t *rig) { return rig_calls(rig, STRATA_CALL_malloc); }

TEST(naive_threads, each_has_a_pool_and_its_streams_share_it) {
    RIG(rig, EACH_4MIB, 0);
    strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
    strata_block_t a = rig_allocate(&rig, one, MIB), b = rig_allocate(&rig, two, MIB);
    EXPECT_EQ(naive_of(&rig, one), naive_of(&rig, two));
    EXPECT_EQ(mallocs(&rig), 1);
    visit_t v = {.rig = &rig, .stream = one};
    join(take_one, &v);
    EXPECT_EQ(mallocs(&rig), 2);
    EXPECT_NE(strata_ref_home(v.block.ref), strata_ref_home(a.ref));
    EXPECT_EQ(strata_ref_home(b.ref), strata_ref_home(a.ref));
    RIG_FREE(&rig, a, b, v.block);
}

static void *free_it(void *context) {
    visit_t *v = context;
    EXPECT_OK(strata_free(v->rig->s, v->block.ref));
    v->kept = rig_allocate(v->rig, v->stream, MIB);
    return NULL;
}

TEST(naive_threads, what_another_frees_goes_home) {
    RIG(rig, EACH_4MIB, 0);
    visit_t v = {.rig = &rig, .block = rig_allocate(&rig, NULL, MIB)};
    strata_block_t kept = rig_allocate(&rig, NULL, MIB);
    join(free_it, &v);
    EXPECT_NE(v.kept.ptr, v.block.ptr);
    strata_block_t again = rig_allocate(&rig, NULL, MIB);
    EXPECT_EQ(again.ptr, v.block.ptr);
    RIG_FREE(&rig, kept, again, v.kept);
}

TEST(naive_threads, an_exited_threads_pool_lives_until_its_last_block) {
    static const char *const streams[] = {"ignored", "own"};
    for (int i = 0; i < 2; i++) {
        char options[64];
        snprintf(options, sizeof options, "streams: %s, initial: 4MiB", streams[i]);
        RIG_BY(rig, naive_open(&rig, "thread_local", options, 0));
        visit_t first = {.rig = &rig}, second = {.rig = &rig};
        join(take_one, &first);
        join(take_one, &second);
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, 8 * MIB);
        /* A block with an owner that is gone is a block as any other. */
        strata_stream_t stream;
        EXPECT_OK(strata_stream_of(rig.s, first.block.ref, &stream));
        EXPECT_OK(strata_validate(rig.s));
        EXPECT_OK(strata_free(rig.s, first.block.ref));
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, 4 * MIB);
        EXPECT_OK(strata_free(rig.s, second.block.ref));
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
    }
}

static void *take_a_huge_one(void *context) {
    visit_t *v = context;
    v->block = rig_allocate(v->rig, v->stream, 6 * MIB);
    EXPECT_OK(strata_free(v->rig->s, rig_allocate(v->rig, v->stream, MIB).ref));
    return NULL;
}

/* Which may be larger than the pool serves, and no part of it. */
TEST(naive_threads, an_exited_threads_pool_lives_until_its_last_huge_block) {
    RIG(rig, EACH_4MIB, 0);
    visit_t v = {.rig = &rig};
    join(take_a_huge_one, &v);
    EXPECT_GT(rig_figures(&rig).reserved_bytes, 10 * MIB);
    EXPECT_OK(strata_free(rig.s, v.block.ref));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
}

/* ---- threads that stay ---- */

/* Takes two blocks and frees one of them; at its next turn it asks on another stream, if it has one, and goes. */
typedef struct guest {
    visit_t visit;
    strata_stream_t other;
    strata_block_t later;
    pthread_t thread;
    pthread_barrier_t turn;
} guest_t;

static void *stay(void *context) {
    guest_t *g = context;
    strata_block_t idle = rig_allocate(g->visit.rig, g->visit.stream, MIB);
    take_one(&g->visit);
    EXPECT_OK(strata_free(g->visit.rig->s, idle.ref));
    pthread_barrier_wait(&g->turn);
    pthread_barrier_wait(&g->turn);
    if (g->other) g->later = rig_allocate(g->visit.rig, g->other, MIB);
    return NULL;
}

static void guest_comes(guest_t *g, rig_t *rig, strata_stream_t stream, strata_stream_t other) {
    *g = (guest_t){.visit = {.rig = rig, .stream = stream}, .other = other};
    ASSERT_EQ(pthread_barrier_init(&g->turn, NULL, 2), 0);
    ASSERT_EQ(pthread_create(&g->thread, NULL, stay, g), 0);
    pthread_barrier_wait(&g->turn);
}

static void guest_goes(guest_t *g) {
    pthread_barrier_wait(&g->turn);
    pthread_join(g->thread, NULL);
    pthread_barrier_destroy(&g->turn);
}

TEST(naive_threads, a_living_ones_pool_stays_when_another_frees_its_last_block) {
    static const char *const streams[] = {"ignored", "own"};
    for (int i = 0; i < 2; i++) {
        guest_t g;
        char options[64];
        snprintf(options, sizeof options, "streams: %s, initial: 4MiB", streams[i]);
        RIG_BY(rig, naive_open(&rig, "thread_local", options, 0));
        guest_comes(&g, &rig, NULL, NULL);
        EXPECT_OK(strata_free(rig.s, g.visit.block.ref));
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, 4 * MIB);
        guest_goes(&g);
    }
}

/* It serves the thread's other streams, and no other thread. */
TEST(naive_threads, what_a_forgotten_stream_left_is_its_threads) {
    guest_t g;
    RIG_BY(rig, naive_open(&rig, "thread_local", "streams: own, initial: 4MiB", 0));
    strata_stream_t stream = rig_stream(&rig), other = rig_stream(&rig);
    guest_comes(&g, &rig, stream, other);
    EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, stream));
    EXPECT_OK(strata_stream_destroy(rig.s, rig.gpu, stream));
    strata_block_t own = rig_allocate(&rig, other, MIB);
    EXPECT_NE(strata_ref_home(own.ref), strata_ref_home(g.visit.block.ref));
    guest_goes(&g);
    EXPECT_EQ(strata_ref_home(g.later.ref), strata_ref_home(g.visit.block.ref));
    EXPECT_EQ(mallocs(&rig), 2);
    RIG_FREE(&rig, own, g.visit.block, g.later);
}

static void *come_and_go(void *context) {
    visit_t *v = context;
    for (int i = 0; i < 3; i++) EXPECT_OK(strata_free(v->rig->s, rig_allocate(v->rig, v->stream, MIB).ref));
    return NULL;
}

TEST(naive_threads, exited_ones_leave_neither_memory_nor_stacks) {
    static const char *const streams[] = {"ignored", "own"};
    for (int i = 0; i < 2; i++) {
        char options[64];
        snprintf(options, sizeof options, "streams: %s, initial: 4MiB", streams[i]);
        RIG_BY(rig, naive_open(&rig, "thread_local", options, 0));
        strata_stream_t stream = rig_stream(&rig);
        strata_block_t own = rig_allocate(&rig, stream, MIB);
        visit_t v = {.rig = &rig, .stream = stream};
        for (int n = 0; n < 40; n++) join(come_and_go, &v);
        EXPECT_LE(rig_domain(&rig)->stack_count, 8);
        EXPECT_LE(rig_figures(&rig).reserved_bytes, 8 * MIB);
        EXPECT_EQ(rig_figures(&rig).allocations, 121);
        EXPECT_OK(strata_free(rig.s, own.ref));
    }
}

static uint32_t stacks_of(strata_domain_t *domain, uint64_t thread, strata_stack_t **stack) {
    uint32_t count = 0;
    for (strata_stack_t *each = domain->first_stack; each; each = each->links.next) {
        if (each->of_thread != thread) continue;
        if (!each->is_shared) *stack = each;
        count++;
    }
    return count;
}

/* What a thread's stacks share outlasts them, also one that somebody is looking into. */
TEST(naive_threads, what_an_exited_ones_stacks_stand_on_ends_after_them) {
    strata_stack_t *stack = NULL;
    RIG(rig, EACH_4MIB, 0);
    visit_t v = {.rig = &rig, .stream = rig_stream(&rig)};
    join(take_one, &v);
    EXPECT_OK(strata_free(rig.s, v.block.ref));
    ASSERT_EQ(stacks_of(rig_domain(&rig), v.number, &stack), 2);
    ASSERT_TRUE(stack);
    stack->links.visitors++;
    strata_domain_orphan_exited_threads(rig_domain(&rig));
    EXPECT_EQ(stacks_of(rig_domain(&rig), v.number, &stack), 2);
    stack->links.visitors--;
    strata_domain_orphan_exited_threads(rig_domain(&rig));
    EXPECT_EQ(stacks_of(rig_domain(&rig), v.number, &stack), 0);
}

/* What an exited thread keeps is not handed to another one: it goes back where memory is short. */
TEST(naive_threads, what_an_exited_one_left_goes_back_where_memory_is_short) {
    RIG(rig, EACH_4MIB, 16 * MIB);
    visit_t v = {.rig = &rig};
    join(come_and_go, &v);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 4 * MIB);
    strata_block_t all = rig_allocate(&rig, NULL, 15 * MIB);
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 15 * MIB + 256);
    EXPECT_OK(strata_free(rig.s, all.ref));
}

TEST(naive_threads, a_stream_is_forgotten_in_every_threads_stacks) {
    static const char *const streams[] = {"ignored", "own"};
    for (int i = 0; i < 2; i++) {
        char options[64];
        snprintf(options, sizeof options, "streams: %s, initial: 4MiB", streams[i]);
        RIG_BY(rig, naive_open(&rig, "thread_local", options, 0));
        visit_t v = {.rig = &rig, .stream = rig_stream(&rig)};
        join(take_one, &v);
        strata_block_t own = rig_allocate(&rig, v.stream, MIB);
        rig_work(&rig, v.stream, MILLISECOND, own.ref);
        EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, v.stream));
        EXPECT_OK(strata_stream_destroy(rig.s, rig.gpu, v.stream));
        RIG_FREE(&rig, own, v.block);
        rig_advance(&rig, 2 * MILLISECOND);
        EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
        EXPECT_OK(strata_validate(rig.s));
    }
}

/* What a thread's pool gives back to the driver's pool goes back to the device at the same release. */
TEST(naive_threads, a_release_goes_through_the_drivers_pool) {
    RIG(rig, "version: 1\nstack:\n  - thread_local: {streams: ignored, initial: 8MiB}\n  - cuda_malloc_async: {pool: own}\n", 0);
    EXPECT_OK(strata_free(rig.s, rig_allocate(&rig, NULL, MIB).ref));
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    strata_sim_figures_t figures = {0};
    strata_sim_figures(rig.devices[0], &figures);
    EXPECT_EQ(figures.used_bytes, 0);
}

/* ---- threads that come and go while others free what they took ---- */

enum { WORKERS = 4, LIVES = 6, ROUNDS = 150, SHELF = 64 };

typedef struct shop {
    rig_t rig;
    strata_stream_t streams[WORKERS];
    _Atomic strata_ref_t shelf[SHELF]; /* blocks that anybody may free; 0: none */
    _Atomic uint32_t refused;
} shop_t;

typedef struct worker {
    shop_t *shop;
    uint64_t random;
} worker_t;

static uint64_t next(worker_t *w, uint64_t bound) {
    w->random = w->random * 6364136223846793005ull + 1442695040888963407ull;
    return (w->random >> 33) % bound;
}

static void *live_once(void *context) {
    worker_t *w = context;
    shop_t *shop = w->shop;
    for (int i = 0; i < ROUNDS; i++) {
        strata_block_t b = {.ref = 0};
        size_t size = next(w, 8) ? 1 + next(w, 200 * KIB) : 1 + next(w, 5 * MIB);
        strata_status_t status = strata_allocate(shop->rig.s, shop->rig.gpu, shop->streams[next(w, WORKERS)], size, &b);
        EXPECT_TRUE(status == STRATA_OK || status == STRATA_E_NO_MEMORY);
        if (status != STRATA_OK) atomic_fetch_add(&shop->refused, 1);
        strata_ref_t before = atomic_exchange(&shop->shelf[next(w, SHELF)], status == STRATA_OK ? b.ref : 0);
        if (before) EXPECT_OK(strata_free(shop->rig.s, before));
        if (next(w, 60) == 0) EXPECT_OK(strata_release(shop->rig.s, shop->rig.gpu, NULL));
    }
    return NULL;
}

static void *live_often(void *context) {
    worker_t *w = context;
    for (int i = 0; i < LIVES; i++) {
        worker_t child = {.shop = w->shop, .random = next(w, 1 << 30)};
        join(live_once, &child);
    }
    return live_once(context);
}

static void run(const char *strategy, uint64_t capacity) {
    static shop_t shop;
    pthread_t threads[WORKERS];
    worker_t workers[WORKERS];
    shop = (shop_t){.refused = 0};
    rig_open(&shop.rig, strategy, NULL, 0, capacity, 1);
    for (int i = 0; i < WORKERS; i++) shop.streams[i] = rig_stream(&shop.rig);
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (worker_t){.shop = &shop, .random = 5 + (uint64_t)i};
        ASSERT_EQ(pthread_create(&threads[i], NULL, live_often, &workers[i]), 0);
    }
    for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
    EXPECT_LT(atomic_load(&shop.refused), WORKERS * (LIVES + 1) * ROUNDS / 2);
    EXPECT_OK(strata_validate(shop.rig.s));
    for (int i = 0; i < SHELF; i++)
        if (shop.shelf[i]) EXPECT_OK(strata_free(shop.rig.s, shop.shelf[i]));
    strata_statistics_t f = rig_figures(&shop.rig);
    EXPECT_EQ(f.allocations, f.frees);
    EXPECT_EQ(f.quarantined_bytes, 0);
    EXPECT_OK(strata_validate(shop.rig.s));
    EXPECT_OK(strata_release(shop.rig.s, shop.rig.gpu, NULL));
    EXPECT_EQ(rig_figures(&shop.rig).reserved_bytes, 0);
    rig_close(&shop.rig);
}

TEST(naive_threads, die_while_others_free) { run(EACH_4MIB, 0); }
TEST(naive_threads, die_while_memory_is_short) { run(EACH_4MIB, 96 * MIB); }
TEST(naive_threads, die_with_pools_of_streams) {
    run("version: 1\nstack:\n  - stream_safe\n  - thread_local: {initial: 2MiB, reallocate: 2MiB}\n  - system\n", 0);
}
TEST(naive_threads, share_one_pool) {
    run("version: 1\nstack:\n  - retry: {timeout: 2ms}\n  - naive_best_fit: {streams: ignored, initial: 8MiB, reallocate: 4MiB}\n"
        "  - system\n",
        256 * MIB);
}

/* ---- one growth for all that wait ---- */

TEST(naive_threads, one_growth_serves_all_that_wait_for_it) {
    RIG_BY(rig, naive_open(&rig, "naive_best_fit", "streams: ignored, initial: 64MiB", 0));
    pthread_t threads[WORKERS];
    visit_t visits[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        visits[i] = (visit_t){.rig = &rig};
        ASSERT_EQ(pthread_create(&threads[i], NULL, take_one, &visits[i]), 0);
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
        EXPECT_OK(strata_free(rig.s, visits[i].block.ref));
    }
    EXPECT_EQ(mallocs(&rig), 1);
}
