#include "planning/placement/branches.h"

#include "planning/placement/online.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

/* Places the items keyed[0 .. count), all of one branch, from *base on. Sets *base to their end. */
static strata_status_t place_branch(const strata_problem_t *p, const strata_keyed_t *keyed, uint32_t count,
                                    strata_plan_buffer_t *buffers, uint64_t *by_item, uint64_t *base, uint64_t *offsets) {
    strata_problem_t branch;
    uint64_t best = UINT64_MAX, begin = *base, most = 1;
    for (uint32_t i = 0; i < count; i++) {
        buffers[i] = p->buffers[p->items[keyed[i].value].buffer];
        buffers[i].fork = 0;
        most = strata_max(most, p->items[keyed[i].value].alignment);
    }
    begin = strata_align_up(begin, most);
    strata_status_t status = strata_problem_make(&branch, buffers, count, 0);
    if (status != STRATA_OK) return status;
    for (int backwards = 0; backwards < 2 && status == STRATA_OK; backwards++) {
        uint64_t peak;
        status = strata_online_place(&branch, backwards, by_item, &peak);
        if (status != STRATA_OK || peak >= best) continue;
        best = peak;
        for (uint32_t i = 0; i < count; i++) offsets[keyed[branch.items[i].buffer].value] = begin + by_item[i];
    }
    *base = begin + best;
    strata_problem_delete(&branch);
    return status;
}

/* Sorts the items by branch. */
static void order_by_branch(const strata_problem_t *p, strata_keyed_t *keyed) {
    for (uint32_t i = 0; i < p->item_count; i++) {
        const strata_item_t *item = &p->items[i];
        keyed[i] = (strata_keyed_t){(uint64_t)item->fork << 32 | (item->fork ? item->branch : 0), i};
    }
    strata_sort_keyed(keyed, keyed + p->item_count, p->item_count);
}

strata_status_t strata_branches_place(const strata_problem_t *p, uint64_t *offsets) {
    uint64_t base = 0;
    strata_keyed_t *keyed = strata_host_new(2 * (size_t)p->item_count + 1, sizeof *keyed);
    strata_plan_buffer_t *buffers = strata_host_new((size_t)p->item_count + 1, sizeof *buffers);
    uint64_t *by_item = strata_host_new((size_t)p->item_count + 1, sizeof *by_item);
    strata_status_t status = keyed && buffers && by_item ? STRATA_OK : STRATA_E_HOST_MEMORY;
    if (status == STRATA_OK) order_by_branch(p, keyed);
    for (uint32_t begin = 0, end; status == STRATA_OK && begin < p->item_count; begin = end) {
        for (end = begin; end < p->item_count && keyed[end].key == keyed[begin].key; end++) continue;
        status = place_branch(p, keyed + begin, end - begin, buffers, by_item, &base, offsets);
    }
    strata_host_delete(by_item);
    strata_host_delete(buffers);
    strata_host_delete(keyed);
    return status;
}
