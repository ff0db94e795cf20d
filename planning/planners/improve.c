#include "planning/planners/improve.h"

#include "planning/placement/fit.h"
#include "platform/arithmetic.h"
#include "platform/clock.h"
#include "platform/host/host_memory.h"

enum {
    REMOVED_MAX = 32, /* items removed per round */
    OVERLAPS_MAX = 4096, /* overlapping items considered for removal */
    PATIENCE = 2000, /* rounds without a better plan before the search returns to the best one */
    TOLERANCE = 20, /* a plan may exceed the smallest excess by 1/20 of it */
    CHECK_EVERY = 1 << 14 /* items loaded between two checks of the clock */
};

typedef struct improving {
    const strata_problem_t *problem;
    strata_fit_t fit;
    uint32_t *high; /* the items that end above the bound */
    uint32_t high_count;
    uint32_t *overlaps;
    uint32_t removed[REMOVED_MAX];
    uint64_t old_offsets[REMOVED_MAX]; /* their offsets */
    uint32_t removed_count;
    uint64_t random;
    uint64_t until; /* deadline, by strata_real_now() */
    uint64_t sum, best_sum; /* sum of the excess of all items above the bound: now, and the minimum so far */
} improving_t;

static uint32_t draw(improving_t *m, uint32_t below) {
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return (uint32_t)((m->random >> 32) * below >> 32);
}

static uint64_t end_of(const improving_t *m, uint32_t item) {
    const strata_item_t *it = &m->problem->items[item];
    return m->fit.offsets[item] + it->size - it->slack;
}

static uint64_t excess(const improving_t *m, uint64_t bound) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < m->removed_count; i++) {
        uint64_t end = end_of(m, m->removed[i]);
        if (end > bound) sum += end - bound;
    }
    return sum;
}

/* Visits every item to find the plan's peak, and the items that end above the bound. */
static uint64_t measure(improving_t *m, uint64_t bound) {
    uint64_t peak = 0;
    m->high_count = 0;
    m->sum = 0;
    for (uint32_t i = 0; i < m->problem->item_count; i++) {
        uint64_t end = end_of(m, i);
        peak = strata_max(peak, end);
        if (end <= bound || m->problem->items[i].fixed != STRATA_ANYWHERE) continue;
        m->high[m->high_count++] = i;
        m->sum += end - bound;
    }
    return peak;
}

static void remove_item(improving_t *m, uint32_t item) {
    for (uint32_t i = 0; i < m->removed_count; i++)
        if (m->removed[i] == item) return;
    if (m->problem->items[item].fixed != STRATA_ANYWHERE) return;
    m->removed[m->removed_count++] = item;
}

/* Removes some of the overlapping items that are at one height. */
static void remove_near(improving_t *m, uint32_t overlaps, uint32_t wanted) {
    uint64_t from = m->fit.offsets[m->overlaps[draw(m, overlaps)]], reach = m->problem->items[m->overlaps[draw(m, overlaps)]].size;
    uint32_t begin = draw(m, overlaps);
    for (uint32_t i = 0; i < overlaps && m->removed_count < wanted; i++) {
        uint32_t item = m->overlaps[(begin + i) % overlaps];
        if (m->fit.offsets[item] < from + reach && m->fit.offsets[item] + m->problem->items[item].size > from) remove_item(m, item);
    }
}

/* Removes an item above the bound, and some of the items that overlap it. */
static void remove_some(improving_t *m) {
    uint32_t item = m->high[draw(m, m->high_count)];
    uint32_t overlaps = strata_fit_overlaps(&m->fit, item, m->overlaps, OVERLAPS_MAX), wanted = 1 + draw(m, REMOVED_MAX - 1);
    m->removed_count = 0;
    remove_item(m, item);
    if (overlaps > 0 && draw(m, 2)) remove_near(m, overlaps, wanted);
    else
        for (uint32_t i = 0; i < wanted && overlaps > 0; i++) remove_item(m, m->overlaps[draw(m, overlaps)]);
    for (uint32_t i = 0; i < m->removed_count; i++) m->old_offsets[i] = m->fit.offsets[m->removed[i]];
}

static bool time_is_up(const improving_t *m) { return strata_real_now() >= m->until; }

/* Reinserts the removed items roughly by size; sometimes the item above the bound is first. Checks the
 * clock for each item, because one may take milliseconds if many are live at once. Returns false if time
 * ran out before all were placed. */
static bool reinsert(improving_t *m) {
    uint32_t order[REMOVED_MAX], first = draw(m, 2);
    for (uint32_t i = 0; i < m->removed_count; i++) {
        uint32_t at = i;
        uint64_t size = m->problem->items[m->removed[i]].size;
        while (at > first && m->problem->items[m->removed[order[at - 1]]].size < size && draw(m, 8) > 0) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
    strata_gap_t gap = draw(m, 2) ? STRATA_GAP_LOWEST : STRATA_GAP_SMALLEST;
    uint32_t placed = 0;
    while (placed < m->removed_count && !time_is_up(m)) strata_fit_place(&m->fit, m->removed[order[placed++]], gap);
    return placed == m->removed_count;
}

static void restore(improving_t *m) {
    for (uint32_t i = 0; i < m->removed_count; i++) strata_fit_remove(&m->fit, m->removed[i]);
    for (uint32_t i = 0; i < m->removed_count; i++) strata_fit_place_at(&m->fit, m->removed[i], m->old_offsets[i]);
}

/* Keeps a plan if its excess is not much above the smallest one so far. */
static bool try_round(improving_t *m, uint64_t bound) {
    remove_some(m);
    uint64_t was = excess(m, bound);
    for (uint32_t i = 0; i < m->removed_count; i++) strata_fit_remove(&m->fit, m->removed[i]);
    bool complete = reinsert(m);
    uint64_t is = complete ? excess(m, bound) : 0;
    if (complete && (is <= was || m->sum - was + is <= m->best_sum + m->best_sum / TOLERANCE)) return true;
    restore(m);
    return false;
}

/* Returns false if time ran out before all items were placed. */
static bool load(improving_t *m, const strata_found_t *found) {
    strata_fit_clear(&m->fit);
    for (uint32_t i = 0; i < m->problem->item_count; i++) {
        if (i % CHECK_EVERY == CHECK_EVERY - 1 && time_is_up(m)) return false;
        strata_fit_place_at(&m->fit, i, found->offsets[i]);
    }
    (void)measure(m, found->bound);
    m->best_sum = m->sum;
    return true;
}

static void search(improving_t *m, strata_found_t *found) {
    if (!load(m, found)) return;
    for (uint64_t idle = 0; m->high_count > 0 && !strata_found_is_optimal(found); idle++) {
        if (time_is_up(m)) return;
        if (idle > PATIENCE) {
            if (!load(m, found)) return;
            idle = 0;
        }
        if (!try_round(m, found->bound)) continue;
        uint64_t peak = measure(m, found->bound);
        if (m->sum < m->best_sum || peak < found->peak) idle = 0;
        m->best_sum = strata_min(m->best_sum, m->sum);
        if (peak < found->peak) strata_found_update(m->problem, found, m->fit.offsets);
    }
}

strata_status_t strata_improve(const strata_problem_t *p, strata_found_t *found, uint64_t until) {
    if (strata_found_is_optimal(found) || strata_real_now() >= until) return STRATA_OK;
    improving_t m = {.problem = p, .until = until, .random = UINT64_C(0x2545f4914f6cdd1d)};
    strata_status_t status = strata_fit_init(&m.fit, p);
    if (status != STRATA_OK) return status;
    m.high = strata_host_new((size_t)p->item_count + 1, sizeof *m.high);
    m.overlaps = strata_host_new(OVERLAPS_MAX, sizeof *m.overlaps);
    if (m.high && m.overlaps) search(&m, found);
    else status = STRATA_E_HOST_MEMORY;
    strata_host_delete(m.overlaps);
    strata_host_delete(m.high);
    strata_fit_destroy(&m.fit);
    return status;
}
