#include "planning/placement/stack.h"

#include "planning/placement/order.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

/* The height at each moment, as a tree over the moments: `all` for whole nodes, `some` for parts of them. */
typedef struct heights {
    uint64_t *all, *some;
    uint32_t leaves;
} heights_t;

static uint64_t highest(const heights_t *h, uint32_t lower, uint32_t upper) {
    uint64_t found = 0;
    uint32_t first = lower + h->leaves, last = upper - 1 + h->leaves;
    for (uint32_t l = first, r = last + 1; l < r; l /= 2, r /= 2) {
        if (l % 2) found = strata_max(found, h->some[l++]);
        if (r % 2) found = strata_max(found, h->some[--r]);
    }
    for (; first > 0; first /= 2, last /= 2) found = strata_max(found, strata_max(h->all[first], h->all[last]));
    return found;
}

static void raise_node(const heights_t *h, uint32_t node, uint64_t top) {
    h->all[node] = strata_max(h->all[node], top);
    for (; node > 0; node /= 2) h->some[node] = strata_max(h->some[node], top);
}

static void raise_to(const heights_t *h, uint32_t lower, uint32_t upper, uint64_t top) {
    for (uint32_t l = lower + h->leaves, r = upper + h->leaves; l < r; l /= 2, r /= 2) {
        if (l % 2) raise_node(h, l++, top);
        if (r % 2) raise_node(h, --r, top);
    }
}

/* Items of a fork take the fork's whole time. */
static void stack_one(const strata_problem_t *p, const heights_t *h, const strata_item_t *item, uint64_t *offset) {
    uint32_t lower = item->fork ? p->forks[item->fork - 1].lower : item->lower;
    uint32_t upper = item->fork ? p->forks[item->fork - 1].upper : item->upper;
    *offset = item->fixed;
    if (*offset == STRATA_ANYWHERE) *offset = strata_align_up(highest(h, lower, upper), item->alignment);
    raise_to(h, lower, upper, *offset + item->size);
}

strata_status_t strata_stack_place(const strata_problem_t *p, uint64_t *offsets) {
    heights_t h = {.leaves = 1};
    while (h.leaves < p->moments) h.leaves *= 2;
    h.all = strata_host_new(2 * (size_t)h.leaves, sizeof *h.all);
    h.some = strata_host_new(2 * (size_t)h.leaves, sizeof *h.some);
    uint32_t *order = strata_host_new((size_t)p->item_count + 1, sizeof *order);
    strata_status_t status = h.all && h.some && order ? strata_order_make(p, STRATA_ORDER_SIZE, order) : STRATA_E_HOST_MEMORY;
    for (uint32_t i = 0; status == STRATA_OK && i < p->item_count; i++) stack_one(p, &h, &p->items[order[i]], &offsets[order[i]]);
    strata_host_delete(order);
    strata_host_delete(h.some);
    strata_host_delete(h.all);
    return status;
}
