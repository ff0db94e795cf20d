/* A place with many streams: neither a request nor a figure may look at all stacks once for each. */
#include "allocation/cache/policies/bfc/bfc_state.h"
#include "allocation/cache/policies/caching/caching_state.h"
#include "allocation/cache/policies/naive/naive_best_fit_state.h"
#include "allocation/layers/sources/cuda_malloc_async_state.h"
#include "allocation/stack/threads.h"
#include "tests/facade/support/fixture.h"

enum { STREAMS = 400, PER_STREAM = 12 };

typedef struct many {
    rig_t rig;
    strata_stream_t streams[STREAMS];
    strata_block_t blocks[STREAMS];
} many_t;

static uint64_t looked(many_t *many) { return rig_domain(&many->rig)->examined; }

static void open_many(many_t *many, const char *strategy) {
    rig_open(&many->rig, strategy, NULL, 0, 0, 1);
    for (int i = 0; i < STREAMS; i++) {
        many->streams[i] = rig_stream(&many->rig);
        many->blocks[i] = rig_allocate(&many->rig, many->streams[i], 1000);
    }
}

static void close_many(many_t *many) {
    for (int i = 0; i < STREAMS; i++) EXPECT_OK(strata_free(many->rig.s, many->blocks[i].ref));
    rig_close(&many->rig);
}

/* 400 stacks: a look at all of them at each new one would be 80,000 looks. */
TEST(many_streams, a_request_looks_at_few_stacks) {
    static const char *const strategies[] = {"strata", "pytorch", "thread_local", "cuda_malloc_async"};
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
        OPENED(many_t, many, close_many, open_many(&many, strategies[i]));
        EXPECT_LE(looked(&many), PER_STREAM * STREAMS);
        uint64_t before = looked(&many);
        for (int k = 0; k < STREAMS; k++) /* the look-up cache of a thread is far too small for them */
            EXPECT_OK(strata_free(many.rig.s, rig_allocate(&many.rig, many.streams[k], 1000).ref));
        EXPECT_LE(looked(&many) - before, PER_STREAM * STREAMS);
    }
}

TEST_WITH(many_streams, a_figure_looks_at_each_stack_once, many_t, many, close_many, open_many(many, "strata")) {
    uint64_t before = looked(many);
    EXPECT_EQ(rig_figures(&many->rig).live_allocations, STREAMS);
    EXPECT_LE(looked(many) - before, STREAMS + 3); /* a shared stack, the stack of the default stream, the end */
    before = looked(many);
    EXPECT_OK(strata_release(many->rig.s, many->rig.gpu, NULL));
    EXPECT_LE(looked(many) - before, 8 * (STREAMS + 3)); /* a poll, and one walk for each kind of stack */
}

/* Counts the lookups while `count` streams are forgotten in creation order, in reverse, or in random order. */
static uint64_t looks_to_forget(int count, int order, const char *strategy) {
    OPENED(rig_t, rig, rig_close, rig_open(&rig, strategy, NULL, 0, 0, 1));
    static strata_stream_t streams[4 * STREAMS];
    for (int i = 0; i < count; i++) {
        streams[i] = rig_stream(&rig);
        strata_block_t block = rig_allocate(&rig, streams[i], 1000);
        if (i % 2) EXPECT_OK(strata_record_stream(rig.s, block.ref, NULL));
        if (i % 4 == 0 && i > 0) EXPECT_OK(strata_record_stream(rig.s, block.ref, streams[i - 1]));
        EXPECT_OK(strata_free(rig.s, block.ref));
    }
    uint64_t before = rig_domain(&rig)->examined;
    for (int i = 0; i < count; i++) {
        int at = order == 0 ? i : order == 1 ? count - 1 - i : i * 7 % count;
        EXPECT_OK(strata_stream_forget(rig.s, rig.gpu, streams[at]));
        EXPECT_OK(strata_stream_destroy(rig.s, rig.gpu, streams[at]));
    }
    uint64_t looks = rig_domain(&rig)->examined - before;
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(rig_domain(&rig)->orphans, 0);
    for (int i = 0; i < STRATA_BORROWER_CHAINS; i++) EXPECT_EQ(rig_domain(&rig)->borrowers[i], NULL);
    return looks;
}

TEST(many_streams, to_forget_them_costs_as_much_for_each) {
    static const char *const strategies[] = {"strata", "pytorch", "paddle", "stack: [guard, stream_safe, auto_growth, system]"};
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
        for (int order = 0; order < 2; order++) {
            uint64_t few = looks_to_forget(STREAMS, order, strategies[i]),
                     many = looks_to_forget(4 * STREAMS, order, strategies[i]);
            EXPECT_LE(few, 40 * STREAMS);
            EXPECT_LE(many, 40 * 4 * STREAMS);
        }
        (void)looks_to_forget(STREAMS, 2, strategies[i]);
    }
}

/* Every third is forgotten: who stays is found where it was, who comes after the last. */
TEST_WITH(many_streams, a_walk_keeps_the_order_of_making_when_stacks_end, many_t, many, close_many, open_many(many, "strata")) {
    strata_domain_t *domain = rig_domain(&many->rig);
    for (int i = 0; i < STREAMS; i += 3) {
        EXPECT_OK(strata_free(many->rig.s, many->blocks[i].ref));
        EXPECT_OK(strata_stream_forget(many->rig.s, many->rig.gpu, many->streams[i]));
    }
    EXPECT_OK(strata_release(many->rig.s, many->rig.gpu, NULL));
    int at = 0;
    STRATA_DOMAIN_EACH(domain, stack) {
        EXPECT_FALSE(stack->forgotten.orphan);
        if (stack->is_shared || stack->stream == NULL) continue;
        while (at < STREAMS && at % 3 == 0) at++;
        EXPECT_EQ((uintptr_t)stack->stream, (uintptr_t)many->streams[at++]);
    }
    EXPECT_EQ(at, STREAMS - 1);
    for (int i = 0; i < STREAMS; i++) {
        strata_stack_t *found = strata_domain_find(domain, 0, many->streams[i], 0);
        EXPECT_EQ(found != NULL, i % 3 != 0);
        if (found) EXPECT_EQ((uintptr_t)found->stream, (uintptr_t)many->streams[i]);
        if (i % 3 == 0) many->blocks[i] = rig_allocate(&many->rig, many->streams[i], 1000);
    }
    EXPECT_EQ(strata_domain_find(domain, 7, many->streams[1], 0), NULL);
    EXPECT_EQ(strata_domain_find(domain, 0, many->streams[1], strata_threads_self()), NULL);
}

/* ---- what a layer of device scope looks at ---- */

static strata_layer_t *layer_of(many_t *many, const char *type) {
    strata_layer_t **shared = rig_domain(&many->rig)->ordinary.shared;
    for (int i = 0; i <= STRATA_PLAN_ALL; i++)
        if (shared[i] && strcmp(shared[i]->type->name, type) == 0) return shared[i];
    return NULL;
}

/* At entries of streams, and in caching at banks too. */
static uint64_t looked_in(many_t *many, const char *type) {
    void *layer = layer_of(many, type);
    if (!layer) return UINT64_MAX;
    if (strcmp(type, "bfc") == 0) return ((bfc_t *)layer)->last.users.index.examined;
    if (strcmp(type, "cuda_malloc_async") == 0) return ((async_layer_t *)layer)->uses.users.index.examined;
    if (strcmp(type, "naive_best_fit") == 0) return ((naive_t *)layer)->last.users.index.examined;
    caching_t *caching = layer;
    return caching->uses.users.index.examined + caching->last.users.index.examined + caching->bank_order.examined;
}

static const struct {
    const char *strategy, *layer;
} shared_layers[] = {{"pytorch", "caching"},
                     {"pytorch-1.13", "caching"},
                     {"tinytorch", "caching"},
                     {"tensorflow", "bfc"},
                     {"cuda_malloc_async", "cuda_malloc_async"},
                     {"stack: [{naive_best_fit: {streams: ignored}}, system]", "naive_best_fit"}};
enum { SHARED_LAYERS = sizeof shared_layers / sizeof *shared_layers };

/* 400 streams: a look at all of them at each new one would be 80,000 looks. */
TEST(many_streams, a_request_looks_at_few_streams_of_a_shared_layer) {
    enum { LOOKS = 40 };
    for (int i = 0; i < SHARED_LAYERS; i++) {
        const char *layer = shared_layers[i].layer;
        OPENED(many_t, many, close_many, open_many(&many, shared_layers[i].strategy));
        EXPECT_LE(looked_in(&many, layer), LOOKS * STREAMS);
        uint64_t before = looked_in(&many, layer);
        for (int k = 0; k < STREAMS; k++) EXPECT_OK(strata_free(many.rig.s, rig_allocate(&many.rig, many.streams[k], 1000).ref));
        EXPECT_LE(looked_in(&many, layer) - before, LOOKS * STREAMS);
        EXPECT_OK(strata_validate(many.rig.s));
    }
}

/* Every third is forgotten with what it owns, its handle is used again, and each has what it had. */
TEST(many_streams, a_forgotten_stream_is_another_to_a_shared_layer) {
    for (int i = 0; i < SHARED_LAYERS; i++) {
        const char *layer = shared_layers[i].layer;
        OPENED(many_t, many, close_many, open_many(&many, shared_layers[i].strategy));
        strata_block_t more[STREAMS];
        for (int k = 0; k < STREAMS; k += 3) EXPECT_OK(strata_stream_forget(many.rig.s, many.rig.gpu, many.streams[k]));
        EXPECT_OK(strata_validate(many.rig.s));
        uint64_t before = looked_in(&many, layer);
        for (int k = 0; k < STREAMS; k++) more[k] = rig_allocate(&many.rig, many.streams[k], 1000);
        EXPECT_LE(looked_in(&many, layer) - before, 40 * STREAMS);
        EXPECT_OK(strata_validate(many.rig.s));
        for (int k = 0; k < STREAMS; k++) EXPECT_OK(strata_free(many.rig.s, more[k].ref));
    }
}
