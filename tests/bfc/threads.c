/* bfc under many threads: the lock of the shared stack is open at every growth, release and wait. */
#include <pthread.h>

#include "tests/bfc/bfc.h"
#include "tests/facade/turns.h"

enum { THREADS = 8, ROUNDS = 600, HELD = 12 };

typedef struct actor {
    rig_t *rig;
    pthread_t thread;
    strata_stream_t own, other;
    uint64_t random;
    uint32_t refused;
} actor_t;

static uint64_t next(actor_t *a, uint64_t bound) {
    a->random = a->random * 6364136223846793005ull + 1442695040888963407ull;
    return (a->random >> 33) % bound;
}

static void drop(actor_t *a, strata_block_t *b) {
    if (b->ref == 0) return;
    if (next(a, 4) == 0) (void)strata_record_stream(a->rig->s, b->ref, a->other);
    if (next(a, 9) == 0) EXPECT_OK(strata_free_on(a->rig->s, b->ref, a->other));
    else EXPECT_OK(strata_free(a->rig->s, b->ref));
    b->ref = 0;
}

/* Half of the frees so far count as passed, where frees carry counts at all. */
static void move_frontier(const actor_t *a) {
    uint64_t count;
    EXPECT_OK(strata_next_count(a->rig->s, a->rig->gpu, &count));
    rig_pass(a->rig, 200 * MILLISECOND);
    strata_status_t status = strata_set_safe_frontier(a->rig->s, a->rig->gpu, count / 2);
    EXPECT_TRUE(status == STRATA_OK || status == STRATA_E_UNSUPPORTED);
}

static void *act(void *context) {
    actor_t *a = context;
    strata_block_t held[HELD] = {{.ref = 0}};
    for (int i = 0; i < ROUNDS; i++) {
        strata_block_t *b = &held[next(a, HELD)];
        drop(a, b);
        size_t size = next(a, 3) ? 1 + next(a, 300 * KIB) : 1 + next(a, 14 * MIB);
        strata_status_t status = strata_allocate(a->rig->s, a->rig->gpu, a->own, size, b);
        EXPECT_TRUE(status == STRATA_OK || status == STRATA_E_NO_MEMORY);
        a->refused += status != STRATA_OK;
        if (status != STRATA_OK) b->ref = 0;
        if (next(a, 100) == 0) EXPECT_OK(strata_release(a->rig->s, a->rig->gpu, NULL));
        if (next(a, 20) == 0) move_frontier(a);
    }
    for (int i = 0; i < HELD; i++) drop(a, &held[i]);
    return NULL;
}

/* Two threads share each stream. */
static void run(const char *strategy, uint64_t capacity) {
    rig_t rig;
    actor_t actors[THREADS];
    strata_stream_t streams[THREADS / 2];
    rig_open(&rig, strategy, NULL, 0, capacity, 1);
    for (int i = 0; i < THREADS / 2; i++) streams[i] = rig_stream(&rig);
    for (int i = 0; i < THREADS; i++) {
        actors[i] = (actor_t){
            .rig = &rig, .own = streams[i / 2], .other = streams[(i / 2 + 1) % (THREADS / 2)], .random = 1 + (uint64_t)i};
        ASSERT_EQ(pthread_create(&actors[i].thread, NULL, act, &actors[i]), 0);
    }
    uint32_t refused = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(actors[i].thread, NULL);
        refused += actors[i].refused;
    }
    EXPECT_LT(refused, THREADS * ROUNDS / 2);
    EXPECT_OK(strata_validate(rig.s));
    EXPECT_EQ(rig_figures(&rig).quarantined_bytes, 0);
    rig_pass(&rig, 100 * MILLISECOND);
    EXPECT_OK(strata_release(rig.s, rig.gpu, NULL));
    EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
    rig_close(&rig);
}

TEST(bfc_threads, share_streams_and_memory) { run("tensorflow", 1 * GIB); }
TEST(bfc_threads, are_out_of_memory_together) { run("extends: tensorflow\nstack: [bfc: {reclaim: own}, system]\n", 160 * MIB); }

TEST(bfc_threads, carry_counts_together) {
    run("version: 1\nstack:\n  - bfc: {timestamps: true, memory_debug: true, memory_limit: 150MiB}\n  - system\n", 0);
}

TEST(bfc_threads, climb_the_ladder_together) {
    run("version: 1\nstack:\n  - retry: {timeout: 2ms}\n  - bfc: {reclaim: ladder}\n  - system\n", 160 * MIB);
}

TEST(bfc_threads, wait_for_one_another) {
    run("version: 1\nstack:\n  - retry: {timeout: 2ms, steps: wait}\n  - bfc\n  - system\n", 160 * MIB);
}

/* ---- threads that exit ---- */

/* Each has an entry of the table of users, which does not grow with the threads that there ever were. */
TEST(bfc_threads, that_exited_leave_no_entries_behind) {
    rig_t rig;
    bfc_open(&rig, "", 0);
    turns_t turns = {.rig = &rig, .size = MIB};
    turns_each(turns_use_the_same, &turns);
    EXPECT_LE(bfc_of(&rig)->users.nodes.used, 4);
    EXPECT_OK(strata_validate(rig.s));
    rig_close(&rig);
}
