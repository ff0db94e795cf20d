#include "planning/planners/improve.h"

#include "planning/placement/fit.h"
#include "platform/arithmetic.h"
#include "platform/clock.h"
#include "platform/host/host_memory.h"

enum {
    OUT_MAX = 32, /* items removed per round */
    MET_MAX = 4096, /* overlapping items considered for removal */
    PATIENCE = 2000, /* rounds without a better plan before the search returns to the best one */
    TOLERANCE = 20, /* a plan may exceed the smallest excess by 1/20 of it */
    LOOK_EVERY = 1 << 14 /* items loaded between two checks of the clock */
};

typedef struct improving {
    const strata_problem_t *problem;
    strata_fit_t fit;
    uint32_t *high; /* the items that end above the bound */
    uint32_t high_count;
    uint32_t *met;
    uint32_t out[OUT_MAX];
    uint64_t before[OUT_MAX]; /* their offsets */
    uint32_t out_count;
    uint64_t random;
    uint64_t until; /* deadline, by strata_real_now() */
    uint64_t sum, record; /* sum of the excess of all items above the bound: now, and the minimum so far */
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
    for (uint32_t i = 0; i < m->out_count; i++) {
        uint64_t end = end_of(m, m->out[i]);
        if (end > bound) sum += end - bound;
    }
    return sum;
}

/* Visits every item to find the plan's peak, and the items that end above the bound. */
static uint64_t look(improving_t *m, uint64_t bound) {
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

static void take_out(improving_t *m, uint32_t item) {
    for (uint32_t i = 0; i < m->out_count; i++)
        if (m->out[i] == item) return;
    if (m->problem->items[item].fixed != STRATA_ANYWHERE) return;
    m->out[m->out_count++] = item;
}

/* Removes some of the overlapping items that are at one height. */
static void take_out_near(improving_t *m, uint32_t met, uint32_t wanted) {
    uint64_t from = m->fit.offsets[m->met[draw(m, met)]], reach = m->problem->items[m->met[draw(m, met)]].size;
    uint32_t begin = draw(m, met);
    for (uint32_t i = 0; i < met && m->out_count < wanted; i++) {
        uint32_t item = m->met[(begin + i) % met];
        if (m->fit.offsets[item] < from + reach && m->fit.offsets[item] + m->problem->items[item].size > from) take_out(m, item);
    }
}

/* Removes an item above the bound, and some of the items that overlap it. */
static void choose(improving_t *m) {
    uint32_t item = m->high[draw(m, m->high_count)];
    uint32_t met = strata_fit_met(&m->fit, item, m->met, MET_MAX), wanted = 1 + draw(m, OUT_MAX - 1);
    m->out_count = 0;
    take_out(m, item);
    if (met > 0 && draw(m, 2)) take_out_near(m, met, wanted);
    else
        for (uint32_t i = 0; i < wanted && met > 0; i++) take_out(m, m->met[draw(m, met)]);
    for (uint32_t i = 0; i < m->out_count; i++) m->before[i] = m->fit.offsets[m->out[i]];
}

static bool time_is_up(const improving_t *m) { return strata_real_now() >= m->until; }

/* Reinserts the removed items roughly by size; sometimes the item above the bound is first. Checks the
 * clock for each item, because one may take milliseconds if many are live at once. Returns false if time
 * ran out before all were placed. */
static bool put_back(improving_t *m) {
    uint32_t order[OUT_MAX], first = draw(m, 2);
    for (uint32_t i = 0; i < m->out_count; i++) {
        uint32_t at = i;
        uint64_t size = m->problem->items[m->out[i]].size;
        while (at > first && m->problem->items[m->out[order[at - 1]]].size < size && draw(m, 8) > 0) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
    strata_gap_t gap = draw(m, 2) ? STRATA_GAP_LOWEST : STRATA_GAP_SMALLEST;
    uint32_t placed = 0;
    while (placed < m->out_count && !time_is_up(m)) strata_fit_place(&m->fit, m->out[order[placed++]], gap);
    return placed == m->out_count;
}

static void restore(improving_t *m) {
    for (uint32_t i = 0; i < m->out_count; i++) strata_fit_remove(&m->fit, m->out[i]);
    for (uint32_t i = 0; i < m->out_count; i++) strata_fit_put(&m->fit, m->out[i], m->before[i]);
}

/* Keeps a plan if its excess is not much above the smallest one so far. */
static bool round_of(improving_t *m, uint64_t bound) {
    choose(m);
    uint64_t was = excess(m, bound);
    for (uint32_t i = 0; i < m->out_count; i++) strata_fit_remove(&m->fit, m->out[i]);
    bool complete = put_back(m);
    uint64_t is = complete ? excess(m, bound) : 0;
    if (complete && (is <= was || m->sum - was + is <= m->record + m->record / TOLERANCE)) return true;
    restore(m);
    return false;
}

/* Returns false if time ran out before all items were placed. */
static bool load(improving_t *m, const strata_found_t *found) {
    strata_fit_clear(&m->fit);
    for (uint32_t i = 0; i < m->problem->item_count; i++) {
        if (i % LOOK_EVERY == LOOK_EVERY - 1 && time_is_up(m)) return false;
        strata_fit_put(&m->fit, i, found->offsets[i]);
    }
    (void)look(m, found->bound);
    m->record = m->sum;
    return true;
}

static void search(improving_t *m, strata_found_t *found) {
    if (!load(m, found)) return;
    for (uint64_t idle = 0; m->high_count > 0 && !strata_found_is_best(found); idle++) {
        if (time_is_up(m)) return;
        if (idle > PATIENCE) {
            if (!load(m, found)) return;
            idle = 0;
        }
        if (!round_of(m, found->bound)) continue;
        uint64_t peak = look(m, found->bound);
        if (m->sum < m->record || peak < found->peak) idle = 0;
        m->record = strata_min(m->record, m->sum);
        if (peak < found->peak) strata_found_take(m->problem, found, m->fit.offsets);
    }
}

strata_status_t strata_improve(const strata_problem_t *p, strata_found_t *found, uint64_t until) {
    if (strata_found_is_best(found) || strata_real_now() >= until) return STRATA_OK;
    improving_t m = {.problem = p, .until = until, .random = UINT64_C(0x2545f4914f6cdd1d)};
    strata_status_t status = strata_fit_init(&m.fit, p);
    if (status != STRATA_OK) return status;
    m.high = strata_host_new((size_t)p->item_count + 1, sizeof *m.high);
    m.met = strata_host_new(MET_MAX, sizeof *m.met);
    if (m.high && m.met) search(&m, found);
    else status = STRATA_E_HOST_MEMORY;
    strata_host_delete(m.met);
    strata_host_delete(m.high);
    strata_fit_destroy(&m.fit);
    return status;
}
