#include "planning/placement/fit.h"

#include <string.h>

#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

strata_status_t strata_fit_init(strata_fit_t *fit, const strata_problem_t *problem) {
    *fit = (strata_fit_t){.problem = problem};
    uint32_t count = problem->item_count ? problem->item_count : 1;
    for (fit->leaves = 1; fit->leaves < count;) fit->leaves *= 2;
    fit->offsets = strata_host_new(count, sizeof *fit->offsets);
    fit->reach = strata_host_new(2 * (size_t)fit->leaves, sizeof *fit->reach);
    fit->begins_before = strata_host_new((size_t)problem->moments + 1, sizeof *fit->begins_before);
    fit->spans = strata_host_new(count, sizeof *fit->spans);
    if (!fit->offsets || !fit->reach || !fit->begins_before || !fit->spans) {
        strata_fit_destroy(fit);
        return STRATA_E_HOST_MEMORY;
    }
    for (uint32_t i = 0; i < problem->item_count; i++) fit->begins_before[problem->items[i].lower + 1]++;
    for (uint32_t t = 1; t <= problem->moments; t++) fit->begins_before[t] += fit->begins_before[t - 1];
    strata_fit_clear(fit);
    return STRATA_OK;
}

void strata_fit_destroy(strata_fit_t *fit) {
    strata_host_delete(fit->offsets);
    strata_host_delete(fit->reach);
    strata_host_delete(fit->begins_before);
    strata_host_delete(fit->spans);
}

void strata_fit_clear(strata_fit_t *fit) {
    memset(fit->reach, 0, 2 * (size_t)fit->leaves * sizeof *fit->reach);
    for (uint32_t i = 0; i < fit->problem->item_count; i++) fit->offsets[i] = STRATA_ANYWHERE;
    fit->peak = 0;
}

uint64_t strata_fit_pairs(const strata_fit_t *fit) {
    const strata_problem_t *p = fit->problem;
    uint64_t pairs = 0;
    /* If two items overlap in time, the later one begins while the earlier one lives. */
    for (uint32_t i = 0; i < p->item_count; i++) pairs += fit->begins_before[p->items[i].upper] - i - 1;
    return pairs;
}

/* ---- items that overlap in time ---- */

/* A walk over the tree without a stack: down to the left, then to the next node on the right. */
typedef struct walk {
    uint32_t node, first, width; /* the current node, and the range of items below it */
    uint32_t lower, end; /* the walk visits items that end after `lower` and have a number below `end` */
} walk_t;

static walk_t begin_walk(const strata_fit_t *fit, const strata_item_t *item) {
    const strata_problem_t *p = fit->problem;
    uint32_t lower = item->fork ? p->forks[item->fork - 1].lower : item->lower;
    uint32_t upper = item->fork ? p->forks[item->fork - 1].upper : item->upper;
    return (walk_t){.node = 1, .width = fit->leaves, .lower = lower, .end = fit->begins_before[upper]};
}

/* Returns the next placed item that overlaps in time, or STRATA_NO_ITEM after the last. */
static inline uint32_t next_overlap(const strata_fit_t *fit, walk_t *w) {
    while (w->node != 0 && w->first < w->end) {
        bool reaches = fit->reach[w->node] > w->lower;
        uint32_t found = w->first;
        if (reaches && w->node < fit->leaves) {
            w->node *= 2;
            w->width /= 2;
            continue;
        }
        w->first += w->width;
        for (w->node++; w->node % 2 == 0; w->width *= 2) w->node /= 2;
        if (w->node == 1) w->node = 0;
        if (reaches) return found;
    }
    return STRATA_NO_ITEM;
}

static uint32_t collect_overlaps(strata_fit_t *fit, const strata_item_t *item) {
    walk_t walk = begin_walk(fit, item);
    uint32_t count = 0;
    for (uint32_t other; (other = next_overlap(fit, &walk)) != STRATA_NO_ITEM;) {
        const strata_item_t *overlapping = &fit->problem->items[other];
        if (item->fork && !strata_items_overlap(item, overlapping)) continue;
        fit->spans[count++] = (strata_span_t){fit->offsets[other], fit->offsets[other] + overlapping->size};
    }
    return count;
}

uint32_t strata_fit_overlaps(const strata_fit_t *fit, uint32_t item, uint32_t *overlapping, uint32_t room) {
    walk_t walk = begin_walk(fit, &fit->problem->items[item]);
    uint32_t count = 0;
    for (uint32_t other; (other = next_overlap(fit, &walk)) != STRATA_NO_ITEM && count < room;) overlapping[count++] = other;
    return count;
}

static void sort_few(strata_span_t *spans, uint32_t count) {
    for (uint32_t i = 1; i < count; i++) {
        strata_span_t moved = spans[i];
        uint32_t at = i;
        for (; at > 0 && spans[at - 1].from > moved.from; at--) spans[at] = spans[at - 1];
        spans[at] = moved;
    }
}

static uint64_t middle_of(uint64_t a, uint64_t b, uint64_t c) {
    return strata_max(strata_min(a, b), strata_min(strata_max(a, b), c));
}

/* Sorts by offset. Recurses into the smaller part, which bounds the depth. */
static void sort_spans(strata_span_t *spans, uint32_t count) {
    while (count > 24) {
        uint64_t pivot = middle_of(spans[0].from, spans[count / 2].from, spans[count - 1].from);
        uint32_t low = 0, high = count - 1;
        for (;;) {
            while (spans[low].from < pivot) low++;
            while (spans[high].from > pivot) high--;
            if (low >= high) break;
            strata_span_t kept = spans[low];
            spans[low++] = spans[high];
            spans[high--] = kept;
        }
        uint32_t left = low, right = count - low;
        sort_spans(left < right ? spans : spans + low, left < right ? left : right);
        if (left < right) spans += low, count = right;
        else count = left;
    }
    sort_few(spans, count);
}

/* ---- a gap between them ---- */

static uint64_t find_gap(const strata_span_t *spans, uint32_t count, const strata_item_t *item, strata_gap_t gap) {
    uint64_t at = 0, best = STRATA_ANYWHERE, best_room = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        if (spans[i].from > at && spans[i].from - at >= item->size) {
            if (gap == STRATA_GAP_LOWEST) return at;
            if (spans[i].from - at < best_room) {
                best = at;
                best_room = spans[i].from - at;
            }
        }
        if (spans[i].to > at) at = strata_align_up(spans[i].to, item->alignment);
    }
    return best != STRATA_ANYWHERE ? best : at;
}

static void set_reach(strata_fit_t *fit, uint32_t item, uint32_t upper) {
    uint32_t node = fit->leaves + item;
    fit->reach[node] = upper;
    for (node /= 2; node > 0; node /= 2) {
        uint32_t left = fit->reach[2 * node], right = fit->reach[2 * node + 1], reach = left > right ? left : right;
        if (fit->reach[node] == reach) break;
        fit->reach[node] = reach;
    }
}

void strata_fit_place(strata_fit_t *fit, uint32_t index, strata_gap_t gap) {
    const strata_item_t *item = &fit->problem->items[index];
    uint64_t offset = item->fixed;
    fit->pairs++;
    if (offset == STRATA_ANYWHERE) {
        uint32_t count = collect_overlaps(fit, item);
        fit->pairs += count;
        sort_spans(fit->spans, count);
        offset = find_gap(fit->spans, count, item, gap);
    }
    fit->offsets[index] = offset;
    fit->peak = strata_max(fit->peak, offset + item->size);
    set_reach(fit, index, item->upper);
}

void strata_fit_place_at(strata_fit_t *fit, uint32_t item, uint64_t offset) {
    fit->offsets[item] = offset;
    set_reach(fit, item, fit->problem->items[item].upper);
}

void strata_fit_remove(strata_fit_t *fit, uint32_t item) {
    fit->offsets[item] = STRATA_ANYWHERE;
    set_reach(fit, item, 0);
}
