#include "tests/planning/plans.h"
#include "tests/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "platform/status.h"

strata_plan_table_t plans_instance(const char *name) {
    char path[512];
    strata_plan_table_t table = {0};
    snprintf(path, sizeof path, STRATA_SOURCE_DIR "/traces/planning/%s.csv.gz", name);
    EXPECT_OK(strata_plan_table_read(path, &table));
    return table;
}

void plans_cleanup(strata_plan_table_t *table) { strata_plan_table_delete(table); }

strata_plan_result_t plans_make_with(const strata_plan_options_t *options, const strata_plan_buffer_t *buffers, size_t count,
                                     uint64_t *offsets) {
    strata_plan_result_t result = {.struct_size = sizeof result};
    uint64_t peak = 0, bound = 0;
    EXPECT_OK(strata_plan_make(options, buffers, count, offsets, &result));
    EXPECT_OK(strata_plan_check(buffers, count, offsets, &peak));
    EXPECT_OK(strata_plan_lower_bound(buffers, count, &bound));
    EXPECT_EQ(peak, result.peak);
    EXPECT_GE(result.peak, result.lower_bound);
    EXPECT_GE(result.lower_bound, bound);
    EXPECT_EQ(result.proved, result.peak == result.lower_bound);
    return result;
}

/* ---- brute force ---- */

/* Some optimal plan is compact. A compact plan results from the order of its offsets: each buffer goes to the lowest place above the earlier
 * buffers that it overlaps, or, if it is fixed, to its own offset. */
typedef struct brute {
    const strata_plan_buffer_t *b;
    size_t count;
    uint64_t o[PLANS_BRUTE], best;
    bool placed[PLANS_BRUTE];
} brute_t;

static bool meet(const strata_plan_buffer_t *a, const strata_plan_buffer_t *b) {
    if (a->size == 0 || b->size == 0) return false;
    if (a->fork && a->fork == b->fork && a->branch != b->branch) return true;
    return a->lower < b->upper && b->lower < a->upper;
}

static bool above_all(const brute_t *x, size_t i, uint64_t *offset) {
    uint64_t alignment = x->b[i].alignment ? x->b[i].alignment : 1;
    *offset = 0;
    for (size_t k = 0; k < x->count; k++)
        if (x->placed[k] && meet(&x->b[i], &x->b[k]) && x->o[k] + x->b[k].size > *offset) *offset = x->o[k] + x->b[k].size;
    *offset = (*offset + alignment - 1) / alignment * alignment;
    if (!(x->b[i].flags & STRATA_PLAN_FIXED)) return true;
    bool free = *offset <= x->b[i].offset;
    *offset = x->b[i].offset;
    return free;
}

static void try_all(brute_t *x, size_t placed, uint64_t peak) {
    if (peak >= x->best) return;
    if (placed == x->count) {
        x->best = peak;
        return;
    }
    for (size_t i = 0; i < x->count; i++) {
        uint64_t offset;
        if (x->placed[i] || !above_all(x, i, &offset)) continue;
        x->placed[i] = true;
        x->o[i] = offset;
        uint64_t end = x->b[i].size ? offset + x->b[i].size : 0;
        try_all(x, placed + 1, end > peak ? end : peak);
        x->placed[i] = false;
    }
}

uint64_t plans_least_peak(const strata_plan_buffer_t *b, size_t count) {
    brute_t x = {.b = b, .count = count, .best = UINT64_MAX};
    try_all(&x, 0, 0);
    return x.best;
}

uint64_t plans_processor_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

strata_plan_result_t plans_make(const char *planner, const strata_plan_buffer_t *buffers, size_t count, uint64_t *offsets) {
    return plans_make_with(&(strata_plan_options_t){.struct_size = sizeof(strata_plan_options_t), .planner = planner}, buffers,
                           count, offsets);
}

uint64_t plans_draw(plans_random_t *random, uint64_t below) {
    random->state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t x = (random->state ^ random->state >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (x ^ x >> 31) % below;
}

static bool chance(plans_random_t *random, unsigned in_a_hundred) { return plans_draw(random, 100) < in_a_hundred; }

void plans_random_buffers(plans_random_t *random, const plans_shape_t *shape, strata_plan_buffer_t *buffers, size_t count) {
    uint64_t fixed_end = 0;
    for (size_t i = 0; i < count; i++) {
        strata_plan_buffer_t *b = &buffers[i];
        *b = (strata_plan_buffer_t){.lower = plans_draw(random, shape->times), .size = 1 + plans_draw(random, shape->sizes)};
        b->upper = b->lower + 1 + plans_draw(random, shape->times);
        if (chance(random, shape->alignments)) b->alignment = UINT64_C(1) << plans_draw(random, 5);
        if (chance(random, shape->forks)) {
            b->fork = 1 + (uint32_t)plans_draw(random, 2);
            b->branch = (uint32_t)plans_draw(random, 3);
        }
        if (!chance(random, shape->fixed)) continue;
        /* One above the other, so that they are a plan by themselves. */
        b->flags = STRATA_PLAN_FIXED;
        b->offset = (fixed_end + plans_draw(random, shape->sizes) + 15) / 16 * 16;
        fixed_end = b->offset + b->size;
    }
}

void plans_training(plans_random_t *random, strata_plan_buffer_t *buffers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint64_t lower = plans_draw(random, 2 * count), kind = plans_draw(random, 100);
        uint64_t length = kind < 60 ? 1 + plans_draw(random, 20) : 1 + plans_draw(random, kind < 97 ? 2000 : count / 4 + 1);
        buffers[i] = (strata_plan_buffer_t){.lower = lower, .upper = lower + length, .size = 512 * (1 + plans_draw(random, 4096))};
    }
}
