/* Free-memory callbacks that ask for memory themselves: nothing is under way in their thread that such a request waits for. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/facade/support/fixture.h"

enum { PATIENCE = 60 }; /* seconds until a thread that waits for itself ends the program */

/* What a callback does the first time, and what came of it. */
typedef struct asking {
    rig_t *rig;
    strata_stream_t stream;
    strata_block_t hoard;
    size_t size;
    uint32_t calls;
    strata_status_t status;
} asking_t;

/* Asks for memory, and gives up what it holds. */
static uint64_t ask_and_give(strata_place_t place, size_t size, void *context) {
    asking_t *a = context;
    strata_block_t block;
    (void)size;
    if (a->calls++ > 0) return 0;
    a->status = strata_allocate(a->rig->s, place, a->stream, a->size, &block);
    if (a->status == STRATA_OK) EXPECT_OK(strata_free(a->rig->s, block.ref));
    if (a->hoard.ref == 0) return 0;
    EXPECT_OK(strata_free(a->rig->s, a->hoard.ref));
    return a->hoard.size;
}

/* A request of the default stream, in whose course the callback may be asked. */
static void request(rig_t *rig, asking_t *a, uint64_t pool, size_t size) {
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = size, .pool = pool};
    strata_block_t block = {.ref = 0};
    EXPECT_OK(strata_add_free_memory_callback(rig->s, ask_and_give, a, NULL));
    (void)alarm(PATIENCE);
    EXPECT_OK(strata_allocate_with(rig->s, rig->gpu, NULL, &options, &block));
    (void)alarm(0);
    EXPECT_OK(strata_free(rig->s, block.ref));
}

static const char *const uppers[] = {
    "auto_growth", "thread_local: {initial: 4MiB}", "naive_best_fit: {initial: 4MiB}", "bfc", "caching",
    "buffered",    "stream_safe, auto_growth"};

/* The upper cache grows, and lets every other request wait for that. */
TEST(facade_callbacks, a_cache_below_another_asks_nobody_for_a_chunk) {
    for (size_t i = 0; i < sizeof uppers / sizeof *uppers; i++) {
        char layers[100];
        snprintf(layers, sizeof layers, "%s, caching, system", uppers[i]);
        RIG_STACK(rig, layers, 0);
        asking_t a = {.rig = &rig, .size = MIB};
        request(&rig, &a, 0, 3 * MIB);
        /* Only the upper one, which asks before it grows. */
        EXPECT_EQ(a.calls, strcmp(uppers[i], "caching") == 0);
    }
}

/* Memory is short: then the core asks, after the growth. */
TEST(facade_callbacks, what_a_chunk_could_not_ask_is_asked_by_the_core) {
    for (size_t i = 0; i < sizeof uppers / sizeof *uppers; i++) {
        char layers[100];
        snprintf(layers, sizeof layers, "%s, caching, system", uppers[i]);
        RIG_STACK(rig, layers, 80 * MIB);
        asking_t a = {.rig = &rig, .hoard = rig_allocate(&rig, NULL, 40 * MIB), .size = MIB};
        request(&rig, &a, 0, 50 * MIB);
        EXPECT_EQ(a.calls, 1);
        EXPECT_OK(a.status);
    }
}

/* The first request of a pool makes its stack, which grows at once: who wants another stack made waits. */
TEST_RIG(facade_callbacks, a_stack_that_is_being_made_asks_nobody, 0,
         "strategy: asking\nstack: [system]\npools:\n  kept: [auto_growth: {preallocate: 8MiB}, caching, system]\n") {
    uint64_t pool = 0;
    EXPECT_OK(strata_pool(rig->s, "kept", &pool));
    asking_t a = {.rig = rig, .stream = rig_stream(rig), .size = MIB};
    request(rig, &a, pool, MIB);
    EXPECT_EQ(a.calls, 0);
}

/* A stack that climbs below a limit: what it climbs for is claimed there. */
#define CLIMBS               "fallback: {stacks: [[retry, system]]}"
#define CLIMBS_ABOVE_ANOTHER "fallback: {stacks: [[retry, limit, system]]}"

/* The claim of the request outside is under way, and would leave room for the callback's if it failed. */
TEST_STACK(facade_callbacks, a_request_of_a_callback_does_not_wait_for_its_own_threads_claim, 48 * MIB,
           "limit: {bytes: 64MiB}, " CLIMBS, "limit: {bytes: 64MiB}, " CLIMBS_ABOVE_ANOTHER,
           "retry, limit: {bytes: 64MiB}, " CLIMBS) {
    asking_t a = {.rig = rig, .hoard = rig_allocate(rig, NULL, 30 * MIB), .size = 8 * MIB};
    request(rig, &a, 0, 30 * MIB);
    EXPECT_EQ(a.calls, 1);
    EXPECT_STATUS(STRATA_E_NO_MEMORY, a.status);
}

/* Another thread's request, for which the callback waits: it drops what that thread keeps, say. */
static void *ask_elsewhere(void *context) {
    asking_t *a = context;
    strata_block_t block;
    a->status = strata_allocate(a->rig->s, a->rig->gpu, a->stream, a->size, &block);
    if (a->status == STRATA_OK) EXPECT_OK(strata_free(a->rig->s, block.ref));
    return NULL;
}

static uint64_t wait_for_another(strata_place_t place, size_t size, void *context) {
    asking_t *a = context;
    pthread_t thread;
    (void)place;
    (void)size;
    if (a->calls++ > 0) return 0;
    EXPECT_EQ(pthread_create(&thread, NULL, ask_elsewhere, a), 0);
    pthread_join(thread, NULL);
    EXPECT_OK(strata_free(a->rig->s, a->hoard.ref));
    return a->hoard.size;
}

TEST_STACK(facade_callbacks, a_request_that_a_callback_waits_for_does_not_wait_for_the_claim_outside, 48 * MIB,
           "limit: {bytes: 64MiB}, " CLIMBS, "limit: {bytes: 64MiB}, " CLIMBS_ABOVE_ANOTHER) {
    asking_t a = {.rig = rig, .hoard = rig_allocate(rig, NULL, 30 * MIB), .size = 8 * MIB};
    a.stream = rig_stream(rig);
    EXPECT_OK(strata_add_free_memory_callback(rig->s, wait_for_another, &a, NULL));
    (void)alarm(PATIENCE);
    (void)rig_allocate(rig, NULL, 30 * MIB);
    (void)alarm(0);
    EXPECT_EQ(a.calls, 2); /* the other thread's request asks, too, when it is refused */
    EXPECT_STATUS(STRATA_E_NO_MEMORY, a.status);
}
