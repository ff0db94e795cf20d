/* An address is served again as soon as the device has it back: the record of before must not stand in front of the new one. */
#include <pthread.h>

#include "tests/facade/support/interleaving.h"

typedef struct next {
    rig_t *rig;
    strata_place_t place;
    strata_block_t block, found;
    uint32_t covering; /* rows that hold its address */
    strata_status_t status;
} next_t;

static void count_covering(const strata_snapshot_row_t *row, void *context) {
    next_t *next = context;
    uintptr_t at = (uintptr_t)next->block.ptr, from = (uintptr_t)row->block.ptr;
    next->covering += at >= from && at - from < row->block.size;
}

static void take_it_and_look(void *context) {
    next_t *next = context;
    next->block = rig_allocate_in(next->rig, next->place, NULL, MIB);
    next->status = strata_base_pointer(next->rig->s, (const char *)next->block.ptr + 100, &next->found);
    EXPECT_OK(strata_snapshot(next->rig->s, next->place, count_covering, next));
}

/* Another thread is given the address between the device's free and the end of the record. Answers whether it was. */
static bool is_found_at_once(const char *text, strata_place_t place, strata_device_call_t call) {
    strata_block_t before;
    between_t between;
    RIG(rig, text, 0);
    next_t next = {.rig = &rig, .place = place, .status = STRATA_E_INVALID};
    EXPECT_OK(strata_allocate(rig.s, place, NULL, MIB, &before));
    between_begin(&between, &rig, call, take_it_and_look, &next);
    EXPECT_OK(strata_free(rig.s, before.ref));
    EXPECT_TRUE(between_end(&between));
    EXPECT_OK(next.status);
    EXPECT_EQ(next.found.ref, next.block.ref);
    EXPECT_EQ(next.covering, 1);
    return next.block.ptr == before.ptr;
}

TEST(facade_same_address, a_block_is_found_while_the_free_of_the_one_before_it_ends) {
    EXPECT_TRUE(is_found_at_once("strategy: a\nstack: [cuda_malloc_async]\n", strata_gpu(0), STRATA_CALL_free_async));
    (void)is_found_at_once("strategy: a\nstack: [system]\nplaces: {pinned: [system: {memory: pinned}]}\n", strata_pinned(),
                           STRATA_CALL_host_free);
}

/* ---- threads ---- */

enum { THREADS = 4, ROUNDS = 2000 };

typedef struct asker {
    rig_t *rig;
    uint32_t missed;
} asker_t;

static void *ask(void *argument) {
    asker_t *asker = argument;
    for (int i = 0; i < ROUNDS; i++) {
        strata_block_t block, found = {.ref = 0};
        EXPECT_OK(strata_allocate(asker->rig->s, asker->rig->gpu, NULL, 4096 + 512 * (size_t)(i % 7), &block));
        strata_status_t status = strata_base_pointer(asker->rig->s, (const char *)block.ptr + 10, &found);
        asker->missed += status != STRATA_OK || found.ref != block.ref;
        EXPECT_OK(strata_free(asker->rig->s, block.ref));
    }
    return NULL;
}

static void nobody_is_missed(const char *text) {
    asker_t askers[THREADS];
    RIG(rig, text, 0);
    for (int i = 0; i < THREADS; i++) askers[i] = (asker_t){.rig = &rig};
    in_threads(ask, askers, sizeof *askers, THREADS);
    for (int i = 0; i < THREADS; i++) EXPECT_EQ(askers[i].missed, 0);
}

TEST(facade_same_address, four_threads_find_what_they_hold) {
    nobody_is_missed("strategy: a\nstack: [cuda_malloc_async]\n");
    nobody_is_missed("strategy: a\nstack: [stream_safe, auto_growth, system]\n");
    nobody_is_missed("strategy: a\nstack: [caching, system]\n");
}
