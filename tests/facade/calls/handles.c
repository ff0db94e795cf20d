/* What a thread remembers of a stack is its handle: a miss keeps the stack, and a handle names no other stack than its own. */
#include <pthread.h>

#include "allocation/stack/threads.h"
#include "facade/registry/lookup.h"
#include "tests/facade/support/fixture.h"

enum { STREAMS = 40, SIZE = 3 * MIB };

static uint64_t looked(rig_t *rig) { return rig_domain(rig)->examined; }

/* A growth is asked for by the stack that missed: nobody looks for it again. */
TEST_RIG(facade_handles, a_miss_looks_for_no_stack, 0, "strategy: one\nstack: [stream_safe, auto_growth, system]\n", "pytorch") {
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, NULL, SIZE).ref));
    uint64_t before = looked(rig), growths = rig_figures(rig).growths;
    before += looked(rig) - before; /* what the figures looked at */
    for (int k = 0; k < STREAMS; k++) (void)rig_allocate(rig, NULL, SIZE);
    EXPECT_EQ(looked(rig) - before, 0);
    EXPECT_GT(rig_figures(rig).growths, growths);
}

/* As long as something of a forgotten stream is there a request looks at that, and at no other stream's stack. */
TEST_RIG(facade_handles, a_request_looks_at_what_was_forgotten_and_at_no_other_stack, 0, "strata") {
    strata_stream_t streams[STREAMS];
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = rig_stream(rig);
        (void)rig_allocate(rig, streams[i], SIZE);
    }
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, streams[0]));
    EXPECT_EQ(rig_domain(rig)->orphans, 1);
    (void)rig_allocate(rig, streams[1], 100 * SIZE);
    uint64_t before = looked(rig);
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, streams[1], SIZE).ref));
    EXPECT_LE(looked(rig) - before, 8);
}

/* All end in one release, and those that stay keep their order. */
TEST_RIG(facade_handles, orphans_end_in_one_walk, 0, "strata") {
    strata_stream_t streams[STREAMS];
    strata_block_t blocks[STREAMS];
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = rig_stream(rig);
        blocks[i] = rig_allocate(rig, streams[i], SIZE);
    }
    for (int i = STREAMS; i-- > 0;) EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, streams[i]));
    strata_domain_t *domain = rig_domain(rig);
    EXPECT_EQ(domain->orphans, STREAMS);
    int at = 0;
    for (strata_stack_t *orphan = NULL; (orphan = strata_domain_next_orphan(domain, orphan)) != NULL;)
        EXPECT_EQ((uintptr_t)orphan->stream, (uintptr_t)streams[at++]);
    EXPECT_EQ(at, STREAMS);
    for (int i = 0; i < STREAMS; i++) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    EXPECT_EQ(domain->orphans, 0);
    uint64_t before = domain->examined;
    strata_domain_sweep_orphans(domain);
    EXPECT_EQ(domain->examined - before, 1);
}

/* What streams share is served from by their stacks alone, and what has ended by nobody: neither has a handle. */
TEST_RIG(facade_handles, what_is_shared_or_has_ended_has_none, 0, "strata", "pytorch") {
    strata_stream_t stream = rig_stream(rig);
    strata_block_t block = rig_allocate(rig, stream, SIZE);
    strata_stack_t *ended = rig_stack(rig, stream);
    strata_domain_t *domain = rig_domain(rig);
    uint32_t shared = 0;
    for (strata_stack_t *stack = domain->first_stack; stack; stack = stack->links.next) {
        shared += stack->is_shared;
        EXPECT_EQ(strata_stack_handle_of(stack) == 0, stack->is_shared);
    }
    EXPECT_GT(shared, 0);
    EXPECT_OK(strata_free(rig->s, block.ref));
    rig_forget(rig, stream);
    EXPECT_OK(strata_release(rig->s, rig->gpu, NULL));
    EXPECT_FALSE(ended->open);
    EXPECT_EQ(strata_stack_handle_of(ended), 0);
}

static strata_stack_handle_t handle_of(rig_t *rig, strata_stream_t stream) {
    return strata_domain_find_handle(rig_domain(rig), 0, stream, 0);
}

TEST_RIG(facade_handles, a_handle_names_its_stack_until_that_is_forgotten, 0, "strata") {
    strata_stream_t stream = rig_stream(rig);
    strata_stack_t *stack = rig_stack(rig, stream);
    strata_stack_handle_t handle = handle_of(rig, stream);
    EXPECT_EQ(strata_stack_handle_number(handle), stack->number);
    EXPECT_EQ(strata_stack_enter(handle), stack);
    EXPECT_EQ(stack->holds.calls, 1);
    EXPECT_OK(strata_stream_forget(rig->s, rig->gpu, stream));
    EXPECT_TRUE(stack->open); /* a call is inside */
    EXPECT_EQ(strata_stack_enter(handle), NULL);
    strata_stack_exit(stack);
    strata_domain_sweep_orphans(rig_domain(rig));
    EXPECT_FALSE(stack->open);
    strata_stack_t *next = rig_stack(rig, stream);
    EXPECT_EQ(next, stack); /* the same number, another life */
    EXPECT_NE(handle_of(rig, stream), handle);
    EXPECT_EQ(strata_stack_enter(handle), NULL);
    EXPECT_EQ(strata_stack_enter(0), NULL);
}

/* What NULL means changes once: who has remembered the stack of before finds the other one. */
TEST_RIG(facade_handles, the_default_stream_that_is_set_is_found_by_threads_that_remember_another, 0, "strata") {
    strata_stream_t stream = rig_stream(rig);
    (void)rig_allocate(rig, NULL, SIZE);
    EXPECT_OK(strata_free(rig->s, rig_allocate(rig, NULL, SIZE).ref));
    EXPECT_OK(strata_set_default_stream(rig->s, rig->gpu, stream));
    strata_block_t block = rig_allocate(rig, NULL, SIZE);
    expect_owner(rig, block, stream);
}

typedef struct forgetting {
    rig_t *rig;
    strata_stream_t stream;
    _Atomic bool stop;
} forgetting_t;

static void *forget_again_and_again(void *context) {
    forgetting_t *f = context;
    while (!f->stop) EXPECT_OK(strata_stream_forget(f->rig->s, f->rig->gpu, f->stream));
    return NULL;
}

/* A stream that one thread forgets while another asks for memory of it: every request is served, by a stack that is there. */
TEST_RIG(facade_handles, a_stream_may_be_forgotten_at_any_moment_of_a_request, 0, "strata") {
    forgetting_t f = {.rig = rig, .stream = rig_stream(rig)};
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, NULL, forget_again_and_again, &f), 0);
    for (int i = 0; i < 2000; i++) {
        strata_block_t block = rig_allocate(rig, f.stream, i % 3 ? 1000 : SIZE);
        EXPECT_OK(strata_free(rig->s, block.ref));
    }
    f.stop = true;
    ASSERT_EQ(pthread_join(thread, NULL), 0);
}
