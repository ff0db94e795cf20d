/* Compares every planner with the true minimum peak of small irregular problems: no peak is below it, no bound is above it, and "proved" is
 * claimed only for the minimum. */
#include <string.h>

#include "platform/status.h"
#include "tests/planning/plans.h"

enum { MOST = 8, DRAWN = 6 };

/* The shapes of problems. Few distinct values give equal sizes, equal gaps and equal moments. */
typedef struct brute_row {
    const char *name;
    uint64_t times, sizes,
        grain; /* sizes are 1 to `sizes` times the grain; times 0: derived from a problem whose minimum peak is above its
                                     bound, which is rare among random ones */
    uint64_t alignments[4]; /* one of these; 0 means 1 */
    unsigned odd, forks, fixed, nothing; /* percentages: odd: sizes that are not multiples of the grain; nothing: 0 bytes */
} brute_row_t;
static const brute_row_t rows[] = {
    {"plain", 6, 9, 1, {1, 1, 1, 1}, 0, 0, 0, 5},
    {"ragged", 9, 1000, 1, {0, 1, 0, 1}, 0, 0, 0, 5},
    {"equal_sizes", 7, 2, 64, {1, 1, 1, 1}, 10, 0, 0, 0},
    {"by_64", 6, 5, 64, {64, 64, 64, 64}, 60, 0, 0, 5},
    {"by_256", 6, 4, 256, {256, 256, 256, 256}, 60, 0, 0, 5},
    {"by_1_and_64", 6, 4, 64, {1, 64, 64, 64}, 60, 0, 0, 5},
    {"by_64_and_256", 6, 6, 64, {64, 256, 64, 256}, 50, 0, 0, 0},
    {"by_anything", 6, 6, 64, {1, 64, 256, 256}, 50, 0, 0, 5},
    {"few_moments", 2, 6, 64, {1, 64, 256, 64}, 50, 0, 0, 0},
    {"forks", 8, 6, 64, {1, 1, 1, 1}, 30, 60, 0, 5},
    {"aligned_forks", 8, 6, 64, {64, 256, 64, 1}, 50, 60, 0, 0},
    {"fixed", 6, 6, 64, {1, 64, 64, 256}, 30, 0, 30, 5},
    {"gapped", 0, 0, 1, {1, 1, 1, 1}, 0, 0, 0, 0},
    {"gapped_by_64", 0, 0, 64, {64, 64, 64, 64}, 30, 0, 0, 0},
    {"gapped_by_64_and_256", 0, 0, 64, {64, 64, 64, 256}, 10, 0, 0, 0},
};

static bool chance(plans_random_t *random, unsigned in_a_hundred) { return plans_draw(random, 100) < in_a_hundred; }

static uint64_t alignment_of(const strata_plan_buffer_t *b) { return b->alignment ? b->alignment : 1; }

/* At most 5 grains are live at one moment, but every plan needs 6. The buffers are in random order, forward or reversed in time, and some
 * sizes vary a little. */
static size_t draw_gapped(plans_random_t *random, const brute_row_t *row, strata_plan_buffer_t *b) {
    static const uint8_t whole[MOST][3] = {{6, 8, 3}, {0, 3, 2}, {2, 5, 1}, {0, 1, 3}, {4, 6, 1}, {5, 7, 2}, {1, 6, 2}, {3, 4, 1}};
    uint64_t scale = row->grain * (1 + plans_draw(random, 3)), turn = plans_draw(random, MOST);
    bool backwards = chance(random, 50);
    for (size_t i = 0; i < MOST; i++) {
        const uint8_t *of = whole[(i * 3 + turn) % MOST];
        b[i] = (strata_plan_buffer_t){.lower = backwards ? 8u - of[1] : of[0],
                                      .upper = backwards ? 8u - of[0] : of[1],
                                      .size = of[2] * scale,
                                      .alignment = row->alignments[plans_draw(random, 4)]};
        if (chance(random, row->odd)) b[i].size -= plans_draw(random, row->grain);
        else if (chance(random, 5)) b[i].size += row->grain;
    }
    return MOST;
}

static size_t draw_problem(plans_random_t *random, const brute_row_t *row, strata_plan_buffer_t *b) {
    if (row->times == 0) return draw_gapped(random, row, b);
    size_t count = 3 + plans_draw(random, DRAWN - 2);
    uint64_t end = 0;
    for (size_t i = 0; i < count; i++) {
        b[i] = (strata_plan_buffer_t){.lower = plans_draw(random, row->times),
                                      .size = row->grain * (1 + plans_draw(random, row->sizes)),
                                      .alignment = row->alignments[plans_draw(random, 4)]};
        b[i].upper = b[i].lower + 1 + plans_draw(random, row->times);
        if (chance(random, row->odd)) b[i].size -= plans_draw(random, row->grain);
        if (chance(random, row->nothing)) b[i].size = 0;
        if (chance(random, row->forks)) {
            b[i].fork = 1 + (uint32_t)plans_draw(random, 2);
            b[i].branch = (uint32_t)plans_draw(random, 3);
        }
        if (!chance(random, row->fixed)) continue;
        /* Fixed buffers are stacked, sometimes with a gap, so that they form a valid plan. */
        b[i].flags = STRATA_PLAN_FIXED;
        b[i].offset = (end + plans_draw(random, 2) * 64 + alignment_of(&b[i]) - 1) / alignment_of(&b[i]) * alignment_of(&b[i]);
        end = b[i].offset + b[i].size;
    }
    return count;
}

/* ---- the bound, by its definition ---- */

static bool meet(const strata_plan_buffer_t *a, const strata_plan_buffer_t *b) {
    return (a->lower < b->upper && b->lower < a->upper) || (a->fork && a->fork == b->fork && a->branch != b->branch);
}

/* Returns the minimum end of a set of pairwise overlapping buffers with at least one alignment, so every offset is a multiple of it. */
static uint64_t need_of(const strata_plan_buffer_t *b, size_t count, unsigned set, uint64_t alignment) {
    uint64_t sum = 0, slack = 0;
    for (size_t i = 0; i < count; i++) {
        if (!(set >> i & 1) || b[i].size == 0) continue;
        for (size_t k = 0; k < i; k++)
            if ((set >> k & 1) && b[k].size > 0 && !meet(&b[i], &b[k])) return 0;
        if (alignment_of(&b[i]) < alignment) return 0;
        uint64_t rounded = (b[i].size + alignment - 1) / alignment * alignment;
        sum += rounded;
        if (rounded - b[i].size > slack) slack = rounded - b[i].size;
    }
    return sum - slack;
}

/* Tries every set at every alignment. With forks the planners' bound may be lower, because it sums whole branches. */
static uint64_t defined_bound(const strata_plan_buffer_t *b, size_t count) {
    uint64_t bound = 0;
    for (uint64_t alignment = 1; alignment <= 256; alignment *= 2)
        for (unsigned set = 1; set < 1u << count; set++) {
            uint64_t need = need_of(b, count, set, alignment);
            if (need > bound) bound = need;
        }
    for (size_t i = 0; i < count; i++)
        if ((b[i].flags & STRATA_PLAN_FIXED) && b[i].size > 0 && b[i].offset + b[i].size > bound) bound = b[i].offset + b[i].size;
    return bound;
}

/* ---- every planner ---- */

static const char *const planners[] = {
#define PLANNER_NAME(name, what) #name,
    STRATA_PLANNER_MAP(PLANNER_NAME)
#undef PLANNER_NAME
};

static bool ends_by_itself(const char *planner, const brute_row_t *row) { return strcmp(planner, "exact") == 0 && row->forks == 0; }

static void expect_true(const brute_row_t *row, const char *planner, const strata_plan_buffer_t *b, size_t count, uint64_t least) {
    uint64_t o[MOST];
    strata_plan_options_t options = {.struct_size = sizeof options, .planner = planner, .time_ns = 100000};
    if (ends_by_itself(planner, row)) options.time_ns = UINT64_C(100000000000);
    bool peer = strcmp(planner, "reuse") == 0 || strcmp(planner, "tree") == 0;
    for (int close_gaps = 0; close_gaps <= peer; close_gaps++) {
        options.close_gaps = close_gaps;
        strata_plan_result_t result = plans_make_with(&options, b, count, o);
        bool right = result.peak >= least && result.lower_bound <= least && (!result.proved || result.peak == least);
        if (!right)
            FAIL_TEST("%s: peak %llu, bound %llu%s, and the minimum is %llu", planner, (unsigned long long)result.peak,
                      (unsigned long long)result.lower_bound, result.proved ? ", proved" : "", (unsigned long long)least);
        if (ends_by_itself(planner, row)) EXPECT_TRUE(result.proved);
    }
}

TEST_EACH(plan_brute, planners_make_no_false_claims, brute_row_t, rows) {
    const int rounds = *STRATA_SANITIZERS ? 20 : row->times ? 300 : 120;
    plans_random_t random = {(uint64_t)(row - rows) + 101};
    strata_plan_buffer_t b[MOST];
    size_t above = 0;
    for (int round = 0; round < rounds; round++) {
        size_t count = draw_problem(&random, row, b);
        uint64_t least = plans_least_peak(b, count), bound = 0;
        EXPECT_OK(strata_plan_lower_bound(b, count, &bound));
        EXPECT_LE(bound, least);
        above += least > bound;
        if (row->forks) EXPECT_LE(bound, defined_bound(b, count));
        else EXPECT_EQ(bound, defined_bound(b, count));
        for (size_t i = 0; i < sizeof planners / sizeof *planners; i++) {
            bool peer = strcmp(planners[i], "reuse") == 0 || strcmp(planners[i], "tree") == 0;
            if (!row->fixed || !peer) expect_true(row, planners[i], b, count, least);
        }
        if (strata_test_has_failed()) return;
    }
    if (row->times == 0) EXPECT_GT(above, (size_t)rounds / 3);
}
