#include "planning/problem/problem.h"

#include "planning/problem/buffers.h"
#include "platform/arithmetic.h"
#include "platform/clock.h"
#include "platform/host/host_memory.h"

/* ---- items ---- */

static uint64_t least_alignment(const strata_plan_buffer_t *buffers, size_t count) {
    uint64_t least = 0;
    for (size_t i = 0; i < count; i++) {
        if (!strata_buffer_counts(&buffers[i])) continue;
        uint64_t alignment = strata_max(buffers[i].alignment, 1);
        least = least ? strata_min(least, alignment) : alignment;
    }
    return least ? least : 1;
}

static void fill_item(strata_problem_t *p, strata_item_t *item, uint32_t buffer) {
    const strata_plan_buffer_t *b = &p->buffers[buffer];
    uint64_t size = strata_align_up(b->size, p->unit), slack = size - b->size;
    *item = (strata_item_t){.size = size,
                            .alignment = strata_max(b->alignment, 1),
                            .fixed = b->flags & STRATA_PLAN_FIXED ? b->offset : STRATA_ANYWHERE,
                            .buffer = buffer,
                            .fork = b->fork,
                            .branch = b->branch,
                            .slack = slack};
    p->slack = strata_max(p->slack, slack);
    if (b->flags & STRATA_PLAN_FIXED) p->fixed = true;
}

/* Sorts the items by their begins. */
static void order_items(strata_problem_t *p, strata_keyed_t *keyed) {
    uint32_t count = 0;
    for (size_t i = 0; i < p->count; i++)
        if (strata_buffer_counts(&p->buffers[i])) keyed[count++] = (strata_keyed_t){p->buffers[i].lower, (uint32_t)i};
    p->item_count = count;
    strata_sort_keyed(keyed, keyed + count, count);
    for (uint32_t i = 0; i < count; i++) fill_item(p, &p->items[i], keyed[i].value);
}

/* Replaces times by their ranks among all times. */
static void number_times(strata_problem_t *p, strata_keyed_t *keyed) {
    uint32_t count = 2 * p->item_count, rank = 0;
    for (uint32_t i = 0; i < p->item_count; i++) {
        const strata_plan_buffer_t *b = &p->buffers[p->items[i].buffer];
        keyed[2 * i] = (strata_keyed_t){b->lower, 2 * i};
        keyed[2 * i + 1] = (strata_keyed_t){b->upper, 2 * i + 1};
    }
    strata_sort_keyed(keyed, keyed + count, count);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 && keyed[i].key != keyed[i - 1].key) rank++;
        strata_item_t *item = &p->items[keyed[i].value / 2];
        if (keyed[i].value % 2) item->upper = rank;
        else item->lower = rank;
    }
    p->moments = count ? rank + 1 : 0;
}

/* ---- forks ---- */

/* Numbers forks from 1, including forks with a single branch. */
static strata_status_t number_forks(strata_problem_t *p, strata_keyed_t *keyed) {
    uint32_t count = 0, forks = 0;
    for (uint32_t i = 0; i < p->item_count; i++)
        if (p->items[i].fork) keyed[count++] = (strata_keyed_t){p->items[i].fork, i};
    if (count == 0) return STRATA_OK;
    strata_sort_keyed(keyed, keyed + p->item_count, count);
    for (uint32_t i = 0; i < count; i++) forks += i == 0 || keyed[i].key != keyed[i - 1].key;
    p->forks = strata_host_new(forks, sizeof *p->forks);
    if (!p->forks) return STRATA_E_HOST_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        strata_item_t *item = &p->items[keyed[i].value];
        if (i == 0 || keyed[i].key != keyed[i - 1].key) p->forks[p->fork_count++] = (strata_fork_t){item->lower, item->upper};
        strata_fork_t *fork = &p->forks[p->fork_count - 1];
        if (item->lower < fork->lower) fork->lower = item->lower;
        if (item->upper > fork->upper) fork->upper = item->upper;
        item->fork = p->fork_count;
    }
    return STRATA_OK;
}

/* ---- making ---- */

static strata_status_t make(strata_problem_t *p) {
    size_t room = p->count ? p->count : 1;
    p->items = strata_host_new(room, sizeof *p->items);
    strata_keyed_t *keyed = p->items ? strata_host_new(4 * room, sizeof *keyed) : NULL;
    if (!keyed) return STRATA_E_HOST_MEMORY;
    p->unit = least_alignment(p->buffers, p->count);
    order_items(p, keyed);
    number_times(p, keyed);
    strata_status_t status = number_forks(p, keyed);
    strata_host_delete(keyed);
    return status == STRATA_OK ? strata_problem_bound(p, &p->bound) : status;
}

strata_status_t strata_problem_make(strata_problem_t *p, const strata_plan_buffer_t *buffers, size_t count, uint64_t budget) {
    strata_status_t status = strata_buffers_check(buffers, count);
    if (status != STRATA_OK) return status;
    uint64_t now = strata_real_now();
    *p = (strata_problem_t){.buffers = buffers, .count = count};
    if (!strata_add(now, budget, &p->deadline)) p->deadline = UINT64_MAX;
    status = make(p);
    if (status != STRATA_OK) strata_problem_delete(p);
    return status;
}

void strata_problem_delete(strata_problem_t *p) {
    strata_host_delete(p->items);
    strata_host_delete(p->forks);
    p->items = NULL;
    p->forks = NULL;
}

bool strata_problem_time_is_up(const strata_problem_t *p) { return strata_real_now() >= p->deadline; }

uint64_t strata_problem_peak(const strata_problem_t *p, const uint64_t *offsets) {
    uint64_t peak = 0;
    for (uint32_t i = 0; i < p->item_count; i++) peak = strata_max(peak, offsets[i] + p->buffers[p->items[i].buffer].size);
    return peak;
}
