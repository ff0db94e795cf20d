/* The slab and each index together as a cache uses them: one chunk of offsets, cut and merged, beside a naive map that says
 * of every unit who holds it. */
#include <stdlib.h>

#include "allocation/mechanism/bins.h"
#include "allocation/mechanism/tree.h"
#include "platform/status.h"
#include "tests/mechanism/mechanism.h"

enum { UNIT_SHIFT = 8, UNITS = 20000, MOST_LIVE = 2000 };

typedef struct arena {
    strata_slab_t slab;
    strata_bins_t bins;
    strata_tree_t tree;
    bool exact; /* the tree is used, not the bins */
    uint32_t owner[UNITS]; /* the naive map: the live slot of each unit; 0: free */
    uint32_t live[MOST_LIVE], live_count;
    uint32_t runs; /* of free units, when they were last counted */
} arena_t;

static void index_insert(arena_t *arena, uint32_t slot) {
    arena->slab.records[slot].state = STRATA_RECORD_FREE;
    if (arena->exact) {
        strata_tree_insert(&arena->tree, &arena->slab, slot);
    } else {
        strata_bins_insert(&arena->bins, &arena->slab, slot);
    }
}

static void index_remove(arena_t *arena, uint32_t slot) {
    if (arena->exact) {
        strata_tree_remove(&arena->tree, &arena->slab, slot);
    } else {
        strata_bins_remove(&arena->bins, &arena->slab, slot);
    }
}

/* Where the smallest run of free units that fits begins, the first among equals; UNITS: none. */
static uint32_t naive_best_fit(const arena_t *arena, uint32_t units) {
    uint32_t best = UNITS, best_length = UINT32_MAX;
    for (uint32_t at = 0; at < UNITS;) {
        uint32_t end = at;
        while (end < UNITS && arena->owner[end] == 0) end++;
        if (end - at >= units && end - at < best_length) {
            best = at;
            best_length = end - at;
        }
        at = end + 1;
    }
    return best;
}

static void cut(arena_t *arena, uint32_t slot, uint64_t size) {
    strata_record_t *record = &arena->slab.records[slot];
    if (record->size == size) return;
    uint32_t rest = make_free(&arena->slab, record->ptr + size, record->size - size);
    ASSERT_NE(rest, 0);
    arena->slab.records[rest].prev = slot;
    arena->slab.records[rest].next = record->next;
    if (record->next) arena->slab.records[record->next].prev = rest;
    record->next = rest;
    record->size = size;
    index_insert(arena, rest);
}

static void take(arena_t *arena, uint32_t units) {
    uint64_t size = (uint64_t)units << UNIT_SHIFT;
    uint32_t slot = arena->exact ? strata_tree_find(&arena->tree, &arena->slab, size)
                                 : strata_bins_find_any(&arena->bins, &arena->slab, size);
    uint32_t expected = naive_best_fit(arena, units);
    EXPECT_EQ(slot == 0, expected == UNITS);
    if (slot == 0) return;
    strata_record_t *record = &arena->slab.records[slot];
    uint32_t at = (uint32_t)(record->ptr >> UNIT_SHIFT);
    if (arena->exact) EXPECT_EQ(at, expected);
    index_remove(arena, slot);
    record->state = STRATA_RECORD_LIVE;
    cut(arena, slot, size);
    for (uint32_t i = at; i < at + units; i++) {
        EXPECT_EQ(arena->owner[i], 0);
        arena->owner[i] = slot;
    }
    arena->live[arena->live_count++] = slot;
}

/* `high` goes up in `low`. */
static void join(arena_t *arena, uint32_t low, uint32_t high) {
    strata_record_t *record = &arena->slab.records[low], *gone = &arena->slab.records[high];
    record->size += gone->size;
    record->next = gone->next;
    if (gone->next) arena->slab.records[gone->next].prev = low;
    strata_slab_release(&arena->slab, high);
}

static void drop(arena_t *arena, uint32_t i) {
    uint32_t slot = arena->live[i];
    strata_record_t *record = &arena->slab.records[slot];
    arena->live[i] = arena->live[--arena->live_count];
    for (uint64_t at = record->ptr >> UNIT_SHIFT; at < (record->ptr + record->size) >> UNIT_SHIFT; at++) {
        EXPECT_EQ(arena->owner[at], slot);
        arena->owner[at] = 0;
    }
    record->generation++;
    uint32_t next = record->next, previous = record->prev;
    /* The sentinel is never free: no test for missing neighbours. */
    if (arena->slab.records[next].state == STRATA_RECORD_FREE) {
        index_remove(arena, next);
        join(arena, slot, next);
    }
    if (arena->slab.records[previous].state == STRATA_RECORD_FREE) {
        index_remove(arena, previous);
        join(arena, previous, slot);
        slot = previous;
    }
    index_insert(arena, slot);
}

/* The free runs of the map are the blocks of the index. */
static void check(arena_t *arena) {
    uint32_t runs = 0;
    uint64_t free_units = 0;
    for (uint32_t at = 0; at < UNITS; at++) {
        if (arena->owner[at]) continue;
        free_units++;
        runs += at == 0 || arena->owner[at - 1] != 0;
    }
    arena->runs = runs;
    EXPECT_OK(strata_slab_validate(&arena->slab));
    if (!arena->exact) {
        EXPECT_OK(strata_bins_validate(&arena->bins, &arena->slab, runs, free_units << UNIT_SHIFT));
        return;
    }
    EXPECT_EQ(arena->tree.count, runs);
    EXPECT_EQ(arena->tree.bytes, free_units << UNIT_SHIFT);
    EXPECT_OK(strata_tree_validate(&arena->tree, &arena->slab));
}

static uint32_t random_units(uint64_t *seed) {
    return (uint32_t)(random_below(seed, 10) == 0 ? 1 + random_below(seed, 1000) : 1 + random_below(seed, 30));
}

static void random_program(bool exact, uint64_t seed) {
    arena_t *arena = calloc(1, sizeof *arena);
    ASSERT_NE(arena, NULL);
    ASSERT_OK(strata_slab_init(&arena->slab, 1, 0, 1 << 16));
    strata_bins_init(&arena->bins, UNIT_SHIFT);
    arena->exact = exact;
    uint32_t whole = make_free(&arena->slab, 0, (uint64_t)UNITS << UNIT_SHIFT);
    arena->slab.records[whole].prev = arena->slab.records[whole].next = 0;
    index_insert(arena, whole);
    for (int step = 0; step < 4000; step++) {
        if (arena->live_count < MOST_LIVE && random_below(&seed, 100) < 55) {
            take(arena, random_units(&seed));
        } else if (arena->live_count) {
            drop(arena, (uint32_t)random_below(&seed, arena->live_count));
        }
        if (step % 64 == 0) check(arena);
        if (strata_test_has_failed()) break;
    }
    while (arena->live_count && !strata_test_has_failed()) drop(arena, arena->live_count - 1);
    check(arena);
    EXPECT_EQ(arena->runs, 1);
    strata_slab_destroy(&arena->slab);
    free(arena);
}

TEST(arena, cut_and_merged_through_the_tree) { random_program(true, 11); }
TEST(arena, cut_and_merged_through_the_bins) { random_program(false, 12); }
