/* The lower bound: the most bytes that live at one moment, rounded up to the unit since all offsets are multiples of it, but for
 * what lies on top. A fork needs the sum of what its branches need, since any moment of one may meet any of another. */
#include "planning/problem.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

enum { LOOKED_AT = 16 };

/* The live bytes of every moment: `bytes` has a place for each. */
static void add_live(const strata_problem_t *p, uint64_t *bytes) {
    for (uint32_t i = 0; i < p->item_count; i++) {
        const strata_item_t *item = &p->items[i];
        bytes[item->lower] += item->size;
        bytes[item->upper] -= item->size; /* wraps below zero until it is summed up */
    }
    for (uint32_t t = 1; t < p->moments; t++) bytes[t] += bytes[t - 1];
}

static uint64_t most(const uint64_t *bytes, uint32_t count) {
    uint64_t found = 0;
    for (uint32_t t = 0; t < count; t++) found = strata_max(found, bytes[t]);
    return found;
}

static uint64_t largest_slack_at(const strata_problem_t *p, uint32_t moment) {
    uint64_t slack = 0;
    for (uint32_t i = 0; i < p->item_count && p->items[i].lower <= moment; i++)
        if (p->items[i].upper > moment) slack = strata_max(slack, p->items[i].slack);
    return slack;
}

/* What lies on top may end before its rounded end: the less of that there can be, the better the bound. */
static uint64_t without_slack(const strata_problem_t *p, const uint64_t *bytes) {
    uint64_t peak = most(bytes, p->moments);
    uint64_t slack = p->slack;
    for (uint32_t t = 0, looked = 0; t < p->moments && looked < LOOKED_AT && slack > 0; t++) {
        if (bytes[t] != peak) continue;
        slack = strata_min(slack, largest_slack_at(p, t));
        looked++;
    }
    return peak - slack;
}

/* ---- forks ---- */

/* The most that the items keyed[0 .. count), which are of one branch, need at one moment. */
static uint64_t need_of_branch(const strata_problem_t *p, const strata_keyed_t *keyed, uint32_t count, strata_keyed_t *events) {
    uint64_t live = 0, need = 0;
    for (uint32_t i = 0; i < count; i++) {
        const strata_item_t *item = &p->items[keyed[i].value];
        events[2 * i] = (strata_keyed_t){2 * (uint64_t)item->lower + 1, keyed[i].value};
        events[2 * i + 1] = (strata_keyed_t){2 * (uint64_t)item->upper, keyed[i].value};
    }
    strata_sort_keyed(events, events + 2 * count, 2 * (size_t)count);
    for (uint32_t i = 0; i < 2 * count; i++) {
        uint64_t size = p->items[events[i].value].size;
        live = events[i].key % 2 ? live + size : live - size;
        need = strata_max(need, live);
    }
    return need;
}

static strata_status_t bound_of_forks(const strata_problem_t *p, uint64_t *bound) {
    strata_keyed_t *keyed = strata_host_new(6 * (size_t)p->item_count, sizeof *keyed);
    if (!keyed) return STRATA_E_HOST_MEMORY;
    uint32_t count = 0, end;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < p->item_count; i++)
        if (p->items[i].fork) keyed[count++] = (strata_keyed_t){(uint64_t)p->items[i].fork << 32 | p->items[i].branch, i};
    strata_sort_keyed(keyed, keyed + count, count);
    for (uint32_t begin = 0; begin < count; begin = end) {
        for (end = begin; end < count && keyed[end].key == keyed[begin].key; end++) continue;
        if (begin == 0 || keyed[begin].key >> 32 != keyed[begin - 1].key >> 32) sum = 0;
        sum += need_of_branch(p, keyed + begin, end - begin, keyed + 2 * (size_t)p->item_count);
        *bound = strata_max(*bound, sum - p->slack);
    }
    strata_host_delete(keyed);
    return STRATA_OK;
}

strata_status_t strata_problem_bound(const strata_problem_t *p, uint64_t *bound) {
    *bound = 0;
    if (p->item_count == 0) return STRATA_OK;
    uint64_t *bytes = strata_host_new(p->moments, sizeof *bytes);
    if (!bytes) return STRATA_E_HOST_MEMORY;
    add_live(p, bytes);
    *bound = without_slack(p, bytes);
    strata_host_delete(bytes);
    for (uint32_t i = 0; i < p->item_count; i++)
        if (p->items[i].fixed != STRATA_ANYWHERE)
            *bound = strata_max(*bound, p->items[i].fixed + p->items[i].size - p->items[i].slack);
    return p->fork_count ? bound_of_forks(p, bound) : STRATA_OK;
}

strata_status_t strata_plan_lower_bound(const strata_plan_buffer_t *buffers, size_t count, uint64_t *bound) {
    strata_problem_t problem;
    strata_status_t status = strata_problem_make(&problem, buffers, count, 0);
    if (status != STRATA_OK) return status;
    *bound = problem.bound;
    strata_problem_delete(&problem);
    return STRATA_OK;
}
