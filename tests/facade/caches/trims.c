/* Trim's promise where more than one layer, stack or thread holds idle bytes: no more stays idle than was asked. */
#include <pthread.h>
#include <stdio.h>

#include "allocation/domain/layer.h"
#include "tests/facade/support/fixture.h"

/* Blocks of three sizes, freed again: what a layer above keeps of them, and what one below has beside. */
static void leave_idle(rig_t *rig, strata_stream_t stream) {
    static const size_t sizes[] = {MIB, 3 * MIB, 300 * 1024, 2 * MIB};
    strata_block_t blocks[4];
    for (int i = 0; i < 4; i++) blocks[i] = rig_allocate(rig, stream, sizes[i]);
    for (int i = 0; i < 4; i++) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
}

typedef struct caller {
    rig_t *rig;
    pthread_barrier_t *idle, *trimmed;
} caller_t;

static void *leave_idle_in_a_thread(void *argument) {
    const caller_t *caller = argument;
    leave_idle(caller->rig, NULL);
    pthread_barrier_wait(caller->idle);
    pthread_barrier_wait(caller->trimmed);
    return NULL;
}

/* The thread lives until the trim is over: what it holds is a living thread's. */
static void trim_to(rig_t *rig, uint64_t keep) {
    pthread_barrier_t barriers[2];
    pthread_t thread;
    caller_t caller = {rig, &barriers[0], &barriers[1]};
    for (int i = 0; i < 2; i++) pthread_barrier_init(&barriers[i], NULL, 2);
    ASSERT_EQ(pthread_create(&thread, NULL, leave_idle_in_a_thread, &caller), 0);
    pthread_barrier_wait(&barriers[0]);
    uint64_t before = rig_cached(rig), released = 0, reserved = rig_figures(rig).reserved_bytes;
    EXPECT_GT(before, keep);
    EXPECT_OK(strata_trim(rig->s, rig->gpu, keep, &released));
    EXPECT_LE(rig_cached(rig), keep);
    EXPECT_EQ(reserved - rig_figures(rig).reserved_bytes, released);
    EXPECT_EQ(rig_trim(rig, keep), 0);
    EXPECT_OK(strata_validate(rig->s));
    pthread_barrier_wait(&barriers[1]);
    pthread_join(thread, NULL);
    for (int i = 0; i < 2; i++) pthread_barrier_destroy(&barriers[i]);
}

/* Every chunk is idle as a whole: the bound can be held. */
TEST(facade_trims, no_more_stays_idle_in_all_layers_than_is_kept) {
    static const char *const stacks[] = {
        "buffered, auto_growth: {chunk_size: 1MiB}, system",
        "buffered, buffered, system",
        "buffered, caching, system",
        "stream_safe, buffered, bfc: {allow_growth: true}, system",
        "auto_growth: {chunk_size: 4MiB}, buffered, system",
        ("binning: {routes: [{up_to: 1MiB, stack: [buffered, auto_growth: {chunk_size: 1MiB}, system]}, "
         "{stack: [buffered, auto_growth: {chunk_size: 2MiB}, system]}]}"),
        "fallback: {stacks: [[buffered, auto_growth: {chunk_size: 1MiB}, system], [system]]}",
        "thread_local: {initial: 4MiB, reallocate: 4MiB}, buffered, system",
        "buffered, thread_local: {initial: 4MiB, reallocate: 4MiB}, system",
    };
    static const uint64_t kept[] = {0, 1, MIB, 2 * MIB, 3 * MIB, 7 * MIB};
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++)
        for (size_t k = 0; k < sizeof kept / sizeof *kept && !strata_test_has_failed(); k++) {
            RIG_STACK(rig, stacks[i], 0);
            strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
            leave_idle(&rig, one);
            leave_idle(&rig, two);
            trim_to(&rig, kept[k]);
            if (strata_test_has_failed()) FAIL_TEST("%s, keep %llu", stacks[i], (unsigned long long)kept[k]);
        }
}

/* ---- others fill what a trim empties ---- */

enum { ENOUGH = 1000 };
static uint32_t trimmed;

/* As busy threads leave it: each trim gives something back, and as much lies idle after it. */
static uint64_t always_idle(strata_layer_t *self) {
    (void)self;
    return trimmed < ENOUGH ? MIB : 0;
}

static uint64_t always_gives(strata_layer_t *self, uint64_t keep, strata_call_t *call) {
    (void)self, (void)keep, (void)call;
    trimmed++;
    return 4096;
}

static const strata_layer_type_t refilled_type = DECORATOR("test_refilled", STRATA_SCOPE_STREAM, strata_below_allocate,
                                                           strata_layer_free_below, .guarded = true, .trim = always_gives,
                                                           .idle_bytes = always_idle);

static void open_refilled(rig_t *rig) {
    register_layer(&refilled_type);
    rig_open_stack(rig, "test_refilled, system", 0);
}

TEST_BY(facade_trims, a_trim_ends_though_others_fill_what_it_empties, open_refilled(rig)) {
    trimmed = 0;
    EXPECT_OK(strata_trim(rig->s, rig->gpu, 4096, NULL));
    EXPECT_GT(trimmed, 1);
    EXPECT_LT(trimmed, 100);
    trimmed = ENOUGH;
}
