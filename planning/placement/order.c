#include "planning/placement/order.h"

#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

static uint64_t length_of(const strata_item_t *item) { return item->upper - item->lower; }

static uint64_t area_of(const strata_item_t *item) {
    uint64_t area;
    return strata_multiply(item->size, length_of(item), &area) ? area : UINT64_MAX;
}

/* The two sort keys of an order. Stable sorting by the second key, then the first, keeps the second one's
 * order among equals. */
typedef struct keys {
    uint64_t first, second;
} keys_t;

static keys_t keys_of(const strata_item_t *item, strata_order_t by, const uint64_t *max_live, uint32_t index) {
    switch (by) {
    case STRATA_ORDER_SIZE: return (keys_t){~item->size, ~length_of(item)};
    case STRATA_ORDER_LENGTH: return (keys_t){~length_of(item), ~item->size};
    case STRATA_ORDER_AREA: return (keys_t){~area_of(item), ~item->size};
    case STRATA_ORDER_CONFLICT: return (keys_t){~max_live[index], ~item->size};
    case STRATA_ORDER_END: return (keys_t){~(uint64_t)item->upper, ~item->size};
    default: return (keys_t){item->lower, ~item->size};
    }
}

/* Computes the max bytes that live at any moment of each item, by a tree of maxima over the moments. */
static void fill_max_live(const strata_problem_t *p, uint64_t *bytes, uint64_t *tree, uint32_t leaves, uint64_t *max_live) {
    for (uint32_t i = 0; i < p->item_count; i++) {
        bytes[p->items[i].lower] += p->items[i].size;
        bytes[p->items[i].upper] -= p->items[i].size;
    }
    for (uint32_t t = 0; t < p->moments; t++) {
        if (t > 0) bytes[t] += bytes[t - 1];
        tree[leaves + t] = bytes[t];
    }
    for (uint32_t node = leaves - 1; node > 0; node--) tree[node] = strata_max(tree[2 * node], tree[2 * node + 1]);
    for (uint32_t i = 0; i < p->item_count; i++) {
        for (uint32_t l = p->items[i].lower + leaves, r = p->items[i].upper + leaves; l < r; l /= 2, r /= 2) {
            if (l % 2) max_live[i] = strata_max(max_live[i], tree[l++]);
            if (r % 2) max_live[i] = strata_max(max_live[i], tree[--r]);
        }
    }
}

static strata_status_t make_max_live(const strata_problem_t *p, uint64_t *max_live) {
    uint32_t leaves = 1;
    while (leaves < p->moments) leaves *= 2;
    uint64_t *bytes = strata_host_new((size_t)p->moments + 1, sizeof *bytes);
    uint64_t *tree = strata_host_new(2 * (size_t)leaves, sizeof *tree);
    if (bytes && tree) fill_max_live(p, bytes, tree, leaves, max_live);
    strata_status_t status = bytes && tree ? STRATA_OK : STRATA_E_HOST_MEMORY;
    strata_host_delete(tree);
    strata_host_delete(bytes);
    return status;
}

static void sort_items(const strata_problem_t *p, strata_order_t by, const uint64_t *max_live, strata_keyed_t *keyed,
                       uint32_t *order) {
    uint32_t count = p->item_count, placed = 0;
    for (uint32_t i = 0; i < count; i++) keyed[i] = (strata_keyed_t){keys_of(&p->items[i], by, max_live, i).second, i};
    strata_sort_keyed(keyed, keyed + count, count);
    for (uint32_t i = 0; i < count; i++) keyed[i].key = keys_of(&p->items[keyed[i].value], by, max_live, keyed[i].value).first;
    strata_sort_keyed(keyed, keyed + count, count);
    for (uint32_t i = 0; i < count; i++)
        if (p->items[keyed[i].value].fixed != STRATA_ANYWHERE) order[placed++] = keyed[i].value;
    for (uint32_t i = 0; i < count; i++)
        if (p->items[keyed[i].value].fixed == STRATA_ANYWHERE) order[placed++] = keyed[i].value;
}

strata_status_t strata_order_make(const strata_problem_t *p, strata_order_t by, uint32_t *order) {
    strata_keyed_t *keyed = strata_host_new(2 * (size_t)p->item_count + 1, sizeof *keyed);
    uint64_t *max_live = by == STRATA_ORDER_CONFLICT ? strata_host_new((size_t)p->item_count + 1, sizeof *max_live) : NULL;
    strata_status_t status = keyed && (max_live || by != STRATA_ORDER_CONFLICT) ? STRATA_OK : STRATA_E_HOST_MEMORY;
    if (status == STRATA_OK && max_live) status = make_max_live(p, max_live);
    if (status == STRATA_OK) sort_items(p, by, max_live, keyed, order);
    strata_host_delete(max_live);
    strata_host_delete(keyed);
    return status;
}
