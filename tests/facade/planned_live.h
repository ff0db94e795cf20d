/* Small programs for tests of the layer `planned`: some blocks, each of which overlaps no other. */
#ifndef STRATA_TESTS_FACADE_PLANNED_LIVE_H
#define STRATA_TESTS_FACADE_PLANNED_LIVE_H

#include "tests/facade/planned.h"

enum { BLOCKS = 64, STEP = 200 };

typedef struct live {
    rig_t *rig;
    strata_stream_t stream;
    strata_block_t blocks[BLOCKS];
    bool held[BLOCKS];
} live_t;

static inline void expect_apart(const live_t *live, uint32_t added) {
    for (uint32_t i = 0; i < BLOCKS; i++)
        if (i != added && live->held[i] && rig_overlap(&live->blocks[i], &live->blocks[added]))
            FAIL_TEST("%u overlaps %u", i, added);
}

static inline void take(live_t *live, uint32_t i, size_t size) {
    EXPECT_OK(strata_allocate(live->rig->s, live->rig->gpu, live->stream, size, &live->blocks[i]));
    live->held[i] = true;
    expect_apart(live, i);
}

static inline void drop(live_t *live, uint32_t i) {
    if (live->held[i]) EXPECT_OK(strata_free(live->rig->s, live->blocks[i].ref));
    live->held[i] = false;
}

static inline uint64_t mixed(uint64_t x) {
    x = (x ^ x >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    return x ^ x >> 29;
}

/* A step of `shape`: sizes and the order of frees follow from it. `late`: what a step with this number would have freed stays a while
 * longer (0: nothing does). */
static inline void small_step(live_t *live, uint64_t shape, uint64_t late) {
    for (uint32_t i = 0; i < STEP && !strata_test_has_failed(); i++) {
        uint64_t drawn = mixed(shape * 1000 + i);
        uint32_t at = (uint32_t)(drawn % BLOCKS);
        if (late && mixed(late * 1000 + i) % 16 == 0) continue;
        if (live->held[at]) drop(live, at);
        else take(live, at, (drawn >> 8) % (4 * MIB) + 1);
    }
    for (uint32_t i = 0; i < BLOCKS; i++)
        if (!late || mixed(late + i) % 8) drop(live, i);
}

static inline void drop_all(live_t *live) {
    for (uint32_t i = 0; i < BLOCKS; i++) drop(live, i);
}

#endif
