/* Computes the lower bound, the max bytes that are live at one moment.
 *
 * Offsets are multiples of alignments, so rounding leaves gaps between buffers. For each alignment, the
 * bound counts the live buffers with at least that alignment, rounded up to it. Only the topmost one may
 * end before its rounded end. Buffers with smaller alignments may fit into the gaps, so they are left
 * out. The bound is the largest sum over all alignments.
 *
 * A fork needs the sum of its branches, since any moment of one branch may coincide with any moment of another. */
#include <string.h>

#include "planning/problem/problem.h"
#include "platform/arguments.h"
#include "platform/arithmetic.h"
#include "platform/host/host_memory.h"

typedef struct bounding {
    const strata_problem_t *problem;
    uint64_t alignment; /* skips items with a smaller alignment; sizes are rounded up to it */
    uint64_t *bytes, *slack; /* by moment: rounded live bytes; the largest rounding of one live item */
    uint32_t *next; /* by moment: the next one with unknown slack, or itself */
    strata_keyed_t *keyed;
    uint64_t bound;
} bounding_t;

static uint64_t size_of(const bounding_t *b, const strata_item_t *item) { return b->problem->buffers[item->buffer].size; }

static uint64_t rounded_size(const bounding_t *b, const strata_item_t *item) {
    return strata_align_up(size_of(b, item), b->alignment);
}

static uint64_t slack_of(const bounding_t *b, const strata_item_t *item) { return rounded_size(b, item) - size_of(b, item); }

/* ---- moments ---- */

static void add_live(const bounding_t *b) {
    const strata_problem_t *p = b->problem;
    memset(b->bytes, 0, p->moments * sizeof *b->bytes);
    for (uint32_t i = 0; i < p->item_count; i++) {
        const strata_item_t *item = &p->items[i];
        if (item->alignment < b->alignment) continue;
        b->bytes[item->lower] += rounded_size(b, item);
        b->bytes[item->upper] -= rounded_size(b, item); /* may wrap below zero; the prefix sum below undoes that */
    }
    for (uint32_t t = 1; t < p->moments; t++) b->bytes[t] += b->bytes[t - 1];
}

static uint32_t next_unknown(const bounding_t *b, uint32_t moment) {
    while (b->next[moment] != moment) {
        b->next[moment] = b->next[b->next[moment]];
        moment = b->next[moment];
    }
    return moment;
}

/* Visits items by descending slack, so the first item at a moment has the largest slack there. */
static void find_slack(const bounding_t *b) {
    const strata_problem_t *p = b->problem;
    uint32_t count = 0;
    memset(b->slack, 0, p->moments * sizeof *b->slack);
    for (uint32_t t = 0; t < p->moments; t++) b->next[t] = t;
    for (uint32_t i = 0; i < p->item_count; i++) {
        uint64_t slack = p->items[i].alignment < b->alignment ? 0 : slack_of(b, &p->items[i]);
        if (slack > 0) b->keyed[count++] = (strata_keyed_t){~slack, i};
    }
    strata_sort_keyed(b->keyed, b->keyed + count, count);
    for (uint32_t i = 0; i < count; i++) {
        const strata_item_t *item = &p->items[b->keyed[i].value];
        /* The last moment has no items, so a next one always exists. */
        for (uint32_t t = next_unknown(b, item->lower); t < item->upper; t = next_unknown(b, t)) {
            b->slack[t] = slack_of(b, item);
            b->next[t] = t + 1;
        }
    }
}

/* ---- forks ---- */

/* Returns the max bytes that the items keyed[0 .. count), all of one branch, need at one moment. */
static uint64_t peak_of_branch(const bounding_t *b, const strata_keyed_t *keyed, uint32_t count, strata_keyed_t *events) {
    uint64_t live = 0, need = 0;
    for (uint32_t i = 0; i < count; i++) {
        const strata_item_t *item = &b->problem->items[keyed[i].value];
        events[2 * i] = (strata_keyed_t){2 * (uint64_t)item->lower + 1, keyed[i].value};
        events[2 * i + 1] = (strata_keyed_t){2 * (uint64_t)item->upper, keyed[i].value};
    }
    strata_sort_keyed(events, events + 2 * count, 2 * (size_t)count);
    for (uint32_t i = 0; i < 2 * count; i++) {
        uint64_t size = rounded_size(b, &b->problem->items[events[i].value]);
        live = events[i].key % 2 ? live + size : live - size;
        need = strata_max(need, live);
    }
    return need;
}

static void bound_forks(bounding_t *b) {
    const strata_problem_t *p = b->problem;
    uint32_t count = 0, end;
    uint64_t sum = 0, slack = 0;
    for (uint32_t i = 0; i < p->item_count; i++)
        if (p->items[i].fork && p->items[i].alignment >= b->alignment)
            b->keyed[count++] = (strata_keyed_t){(uint64_t)p->items[i].fork << 32 | p->items[i].branch, i};
    strata_sort_keyed(b->keyed, b->keyed + count, count);
    for (uint32_t begin = 0; begin < count; begin = end) {
        if (begin == 0 || b->keyed[begin].key >> 32 != b->keyed[begin - 1].key >> 32) sum = slack = 0;
        for (end = begin; end < count && b->keyed[end].key == b->keyed[begin].key; end++)
            slack = strata_max(slack, slack_of(b, &p->items[b->keyed[end].value]));
        sum += peak_of_branch(b, b->keyed + begin, end - begin, b->keyed + 2 * (size_t)p->item_count);
        b->bound = strata_max(b->bound, sum - slack);
    }
}

/* ---- each alignment ---- */

static void bound_alignment(bounding_t *b) {
    const strata_problem_t *p = b->problem;
    add_live(b);
    find_slack(b);
    for (uint32_t t = 0; t < p->moments; t++) b->bound = strata_max(b->bound, b->bytes[t] - b->slack[t]);
    if (p->fork_count) bound_forks(b);
}

strata_status_t strata_problem_bound(const strata_problem_t *p, uint64_t *bound) {
    uint64_t alignments = 0; /* powers of two, so their union is a set of bits */
    *bound = 0;
    if (p->item_count == 0) return STRATA_OK;
    bounding_t b = {.problem = p,
                    .bytes = strata_host_new(p->moments, sizeof *b.bytes),
                    .slack = strata_host_new(p->moments, sizeof *b.slack),
                    .next = strata_host_new(p->moments, sizeof *b.next),
                    .keyed = strata_host_new((p->fork_count ? 6 : 2) * (size_t)p->item_count, sizeof *b.keyed)};
    bool made = b.bytes && b.slack && b.next && b.keyed;
    for (uint32_t i = 0; i < p->item_count; i++) {
        const strata_item_t *item = &p->items[i];
        alignments |= item->alignment;
        if (item->fixed != STRATA_ANYWHERE) b.bound = strata_max(b.bound, item->fixed + size_of(&b, item));
    }
    for (; made && alignments; alignments &= alignments - 1) {
        b.alignment = alignments & (0 - alignments);
        bound_alignment(&b);
    }
    *bound = b.bound;
    strata_host_delete(b.keyed);
    strata_host_delete(b.next);
    strata_host_delete(b.slack);
    strata_host_delete(b.bytes);
    return made ? STRATA_OK : STRATA_E_HOST_MEMORY;
}

strata_status_t strata_plan_lower_bound(const strata_plan_buffer_t *buffers, size_t count, uint64_t *bound) {
    STRATA_REFUSE_NULL_ARRAY(buffers, count);
    STRATA_REFUSE_NULL(bound);
    strata_problem_t problem;
    strata_status_t status = strata_problem_make(&problem, buffers, count, 0);
    if (status != STRATA_OK) return status;
    *bound = problem.bound;
    strata_problem_delete(&problem);
    return STRATA_OK;
}
