/* A place with many streams: neither a request nor a figure may look at all stacks once for each. */
#include "allocation/threads.h"
#include "tests/facade/fixture.h"

enum { STREAMS = 400, PER_STREAM = 12 };

typedef struct many {
    rig_t rig;
    strata_stream_t streams[STREAMS];
    strata_block_t blocks[STREAMS];
} many_t;

static uint64_t looked(many_t *many) {
    return rig_domain(&many->rig)->looked;
}

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
        many_t many;
        open_many(&many, strategies[i]);
        EXPECT_LE(looked(&many), PER_STREAM * STREAMS);
        uint64_t before = looked(&many);
        for (int k = 0; k < STREAMS; k++) /* the look-up cache of a thread is far too small for them */
            EXPECT_OK(strata_free(many.rig.s, rig_allocate(&many.rig, many.streams[k], 1000).ref));
        EXPECT_LE(looked(&many) - before, PER_STREAM * STREAMS);
        close_many(&many);
    }
}

TEST(many_streams, a_figure_looks_at_each_stack_once) {
    many_t many;
    open_many(&many, "strata");
    uint64_t before = looked(&many);
    EXPECT_EQ(rig_figures(&many.rig).live_allocations, STREAMS);
    EXPECT_LE(looked(&many) - before, STREAMS + 3); /* a trunk, the stack of the default stream, the end */
    before = looked(&many);
    EXPECT_OK(strata_release(many.rig.s, many.rig.gpu, NULL));
    EXPECT_LE(looked(&many) - before, 8 * (STREAMS + 3)); /* a poll, and one walk for each kind of stack */
    close_many(&many);
}

/* Every third is forgotten: who stays is found where it was, who comes behind the last. */
TEST(many_streams, a_walk_keeps_the_order_of_making_when_stacks_end) {
    many_t many;
    open_many(&many, "strata");
    strata_domain_t *domain = rig_domain(&many.rig);
    for (int i = 0; i < STREAMS; i += 3) {
        EXPECT_OK(strata_free(many.rig.s, many.blocks[i].ref));
        EXPECT_OK(strata_stream_forget(many.rig.s, many.rig.gpu, many.streams[i]));
    }
    EXPECT_OK(strata_release(many.rig.s, many.rig.gpu, NULL));
    int at = 0;
    STRATA_DOMAIN_EACH(domain, stack) {
        EXPECT_FALSE(stack->orphan);
        if (stack->trunk || stack->stream == NULL) continue;
        while (at < STREAMS && at % 3 == 0) at++;
        EXPECT_EQ((uintptr_t)stack->stream, (uintptr_t)many.streams[at++]);
    }
    EXPECT_EQ(at, STREAMS - 1);
    for (int i = 0; i < STREAMS; i++) {
        strata_stack_t *found = strata_domain_find(domain, 0, many.streams[i], 0);
        EXPECT_EQ(found != NULL, i % 3 != 0);
        if (found) EXPECT_EQ((uintptr_t)found->stream, (uintptr_t)many.streams[i]);
        if (i % 3 == 0) many.blocks[i] = rig_allocate(&many.rig, many.streams[i], 1000);
    }
    EXPECT_TRUE(strata_domain_find(domain, 7, many.streams[1], 0) == NULL);
    EXPECT_TRUE(strata_domain_find(domain, 0, many.streams[1], strata_threads_self()) == NULL);
    close_many(&many);
}
