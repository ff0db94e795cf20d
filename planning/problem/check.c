/* The validator. From the lowest offset upwards, each buffer must be above all lower buffers that it
 * overlaps in time. A tree over times stores the height to which each moment is covered. Planners use
 * neither this tree nor this order. */
#include <stdlib.h>

#include "planning/problem/buffers.h"
#include "platform/arguments.h"
#include "platform/host/host_memory.h"
#include "strata/plan.h"

enum { NO_OWNER = -1 };

/* The cover of a range of times: the highest end, and the buffer that ends there. */
typedef struct cover {
    uint64_t end;
    int64_t owner;
} cover_t;

/* The highest two ends of a fork that belong to different branches. */
typedef struct fork_cover {
    cover_t highest, other;
    uint32_t fork, branch;
} fork_cover_t;

typedef struct checking {
    const strata_plan_buffer_t *buffers;
    const uint64_t *offsets;
    size_t count;
    uint64_t *times;
    size_t time_count;
    size_t leaves; /* a power of two */
    cover_t *whole; /* covers all of a node's times */
    cover_t *part; /* covers some of them */
    fork_cover_t *forks; /* by fork */
    size_t fork_count;
} checking_t;

/* ---- order ---- */

typedef struct low {
    uint64_t offset;
    size_t index;
} low_t;

static int by_offset(const void *a, const void *b) {
    const low_t *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static int by_number(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static int by_fork(const void *a, const void *b) {
    const fork_cover_t *x = a, *y = b;
    return x->fork < y->fork ? -1 : x->fork > y->fork;
}

static size_t time_index(const checking_t *c, uint64_t time) {
    const uint64_t *found = bsearch(&time, c->times, c->time_count, sizeof *c->times, by_number);
    return (size_t)(found - c->times);
}

/* ---- the tree ---- */

static void raise_cover(cover_t *cover, cover_t by) {
    if (by.end > cover->end) *cover = by;
}

static cover_t highest_of(const checking_t *c, size_t from, size_t to) {
    cover_t found = {0, NO_OWNER};
    for (size_t l = from + c->leaves, r = to + c->leaves; l < r; l /= 2, r /= 2) {
        if (l % 2) raise_cover(&found, c->part[l++]);
        if (r % 2) raise_cover(&found, c->part[--r]);
    }
    /* Covers of larger ranges are in the nodes above. */
    for (size_t node = (from + c->leaves) / 2; node > 0; node /= 2) raise_cover(&found, c->whole[node]);
    for (size_t node = (to - 1 + c->leaves) / 2; node > 0; node /= 2) raise_cover(&found, c->whole[node]);
    return found;
}

static void cover_node(const checking_t *c, size_t node, cover_t by) {
    raise_cover(&c->whole[node], by);
    for (; node > 0; node /= 2) raise_cover(&c->part[node], by);
}

static void cover_times(const checking_t *c, size_t from, size_t to, cover_t by) {
    for (size_t l = from + c->leaves, r = to + c->leaves; l < r; l /= 2, r /= 2) {
        if (l % 2) cover_node(c, l++, by);
        if (r % 2) cover_node(c, --r, by);
    }
}

/* ---- rules ---- */

static strata_status_t fail_overlap(const checking_t *c, cover_t below, size_t index) {
    return strata_fail(STRATA_E_CORRUPT, 0, "buffers %zu and %zu share bytes: one ends at %llu, the other begins at %llu",
                       (size_t)below.owner, index, (unsigned long long)below.end, (unsigned long long)c->offsets[index]);
}

static strata_status_t check_fork(checking_t *c, size_t index, cover_t own) {
    const strata_plan_buffer_t *b = &c->buffers[index];
    if (b->fork == 0) return STRATA_OK;
    fork_cover_t *fork = bsearch(&(fork_cover_t){.fork = b->fork}, c->forks, c->fork_count, sizeof *fork, by_fork);
    bool same = fork->highest.end == 0 || fork->branch == b->branch;
    cover_t conflict = same ? fork->other : fork->highest;
    if (conflict.end > c->offsets[index]) return fail_overlap(c, conflict, index);
    if (same) {
        raise_cover(&fork->highest, own);
        fork->branch = b->branch;
    } else if (own.end > fork->highest.end) {
        fork->other = fork->highest;
        fork->highest = own;
        fork->branch = b->branch;
    } else {
        raise_cover(&fork->other, own);
    }
    return STRATA_OK;
}

static strata_status_t check_one(checking_t *c, size_t index) {
    const strata_plan_buffer_t *b = &c->buffers[index];
    unsigned long long offset = c->offsets[index], alignment = b->alignment, wanted = b->offset;
    if (alignment > 1 && offset % alignment)
        return strata_fail(STRATA_E_CORRUPT, 0, "buffer %zu is at %llu, which is not a multiple of %llu", index, offset, alignment);
    if ((b->flags & STRATA_PLAN_FIXED) && offset != wanted)
        return strata_fail(STRATA_E_CORRUPT, 0, "buffer %zu is at %llu, but is fixed at %llu", index, offset, wanted);
    size_t from = time_index(c, b->lower), to = time_index(c, b->upper);
    cover_t below = highest_of(c, from, to), own = {offset + b->size, (int64_t)index};
    if (below.end > offset) return fail_overlap(c, below, index);
    strata_status_t status = check_fork(c, index, own);
    if (status == STRATA_OK) cover_times(c, from, to, own);
    return status;
}

static size_t collect_times(checking_t *c) {
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < c->count; i++) {
        c->times[count++] = c->buffers[i].lower;
        c->times[count++] = c->buffers[i].upper;
    }
    qsort(c->times, count, sizeof *c->times, by_number);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || c->times[i] != c->times[kept - 1]) c->times[kept++] = c->times[i];
    return kept;
}

static void collect_forks(checking_t *c) {
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < c->count; i++)
        if (c->buffers[i].fork) c->forks[count++] = (fork_cover_t){.fork = c->buffers[i].fork};
    qsort(c->forks, count, sizeof *c->forks, by_fork);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || c->forks[i].fork != c->forks[kept - 1].fork) c->forks[kept++] = c->forks[i];
    c->fork_count = kept;
}

static strata_status_t check_all(checking_t *c, low_t *lows) {
    size_t count = 0;
    strata_status_t status = STRATA_OK;
    for (size_t i = 0; i < c->count; i++)
        if (strata_buffer_counts(&c->buffers[i])) lows[count++] = (low_t){c->offsets[i], i};
    qsort(lows, count, sizeof *lows, by_offset);
    for (size_t i = 0; i < count && status == STRATA_OK; i++) status = check_one(c, lows[i].index);
    return status;
}

static strata_status_t check_overlaps(checking_t *c) {
    strata_status_t status = STRATA_E_HOST_MEMORY;
    low_t *lows = strata_host_new(c->count, sizeof *lows);
    c->times = strata_host_new(2 * c->count, sizeof *c->times);
    c->forks = strata_host_new(c->count, sizeof *c->forks);
    if (!lows || !c->times || !c->forks) goto out;
    c->time_count = collect_times(c);
    collect_forks(c);
    for (c->leaves = 1; c->leaves < c->time_count;) c->leaves *= 2;
    c->whole = strata_host_new(2 * c->leaves, sizeof *c->whole);
    c->part = strata_host_new(2 * c->leaves, sizeof *c->part);
    if (c->whole && c->part) status = check_all(c, lows);
out:
    strata_host_delete(c->part);
    strata_host_delete(c->whole);
    strata_host_delete(c->forks);
    strata_host_delete(c->times);
    strata_host_delete(lows);
    return status;
}

strata_status_t strata_plan_check(const strata_plan_buffer_t *buffers, size_t count, const uint64_t *offsets, uint64_t *peak) {
    STRATA_REFUSE_NULL_ARRAY(buffers, count);
    STRATA_REFUSE_NULL_ARRAY(offsets, count);
    strata_status_t status = strata_buffers_check(buffers, count);
    if (status != STRATA_OK) return status;
    uint64_t highest = 0;
    for (size_t i = 0; i < count; i++) {
        if (!strata_buffer_counts(&buffers[i])) continue;
        if (offsets[i] > UINT64_MAX - buffers[i].size) return strata_fail(STRATA_E_CORRUPT, 0, "buffer %zu has no offset", i);
        if (offsets[i] + buffers[i].size > highest) highest = offsets[i] + buffers[i].size;
    }
    if (peak) *peak = highest;
    if (count == 0) return STRATA_OK;
    return check_overlaps(&(checking_t){.buffers = buffers, .offsets = offsets, .count = count});
}
