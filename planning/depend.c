/* Which bytes a plan passes from one buffer to the next. Buffers come in program order; a tree over the edges of the plan, painted
 * in the colours of owners, knows who had each byte last. */
#include <stdlib.h>

#include "planning/buffers.h"
#include "planning/sort.h"
#include "platform/host/host_memory.h"

enum { PIECES_AT_FIRST = 256 };
#define NOBODY UINT32_MAX
#define MIXED  (UINT32_MAX - 1)

/* Bytes that were one owner's. */
typedef struct piece {
    uint32_t owner;
    uint64_t bytes;
} piece_t;

typedef struct depending {
    const strata_plan_buffer_t *buffers;
    const uint64_t *offsets;
    uint64_t *edges;
    size_t edge_count, leaves;
    uint32_t *owner; /* of a node's addresses: one buffer, NOBODY or MIXED */
    piece_t *pieces; /* of the buffer that begins now */
    size_t piece_count, piece_capacity;
    void (*found)(void *context, size_t earlier, size_t later, uint64_t bytes);
    void *context;
    strata_plan_dependencies_t *sums;
    bool failed;
} depending_t;

static bool add_piece(depending_t *d, uint32_t owner, uint64_t bytes) {
    if (owner == NOBODY || bytes == 0) return true;
    if (d->piece_count == d->piece_capacity) {
        size_t capacity = d->piece_capacity ? 2 * d->piece_capacity : PIECES_AT_FIRST;
        piece_t *pieces = strata_host_resize(d->pieces, capacity, sizeof *pieces);
        if (!pieces) return false;
        d->pieces = pieces;
        d->piece_capacity = capacity;
    }
    d->pieces[d->piece_count++] = (piece_t){.owner = owner, .bytes = bytes};
    return true;
}

static uint64_t edge_at(const depending_t *d, size_t leaf) { return d->edges[leaf < d->edge_count ? leaf : d->edge_count - 1]; }

/* Takes note of the owners of [begin, end), and paints it. */
static void paint(depending_t *d, size_t node, size_t from, size_t to, size_t begin, size_t end, uint32_t owner) {
    if (begin >= to || end <= from || d->failed) return;
    bool whole = begin <= from && to <= end;
    if (d->owner[node] != MIXED && whole) {
        d->failed = !add_piece(d, d->owner[node], edge_at(d, to) - edge_at(d, from));
    } else {
        size_t middle = (from + to) / 2;
        if (d->owner[node] != MIXED) d->owner[2 * node] = d->owner[2 * node + 1] = d->owner[node];
        paint(d, 2 * node, from, middle, begin, end, owner);
        paint(d, 2 * node + 1, middle, to, begin, end, owner);
        d->owner[node] = MIXED;
    }
    if (whole) d->owner[node] = owner;
}

static void tell(depending_t *d, uint32_t earlier, uint32_t later, uint64_t bytes) {
    const strata_plan_buffer_t *a = &d->buffers[earlier], *b = &d->buffers[later];
    d->sums->reuses++;
    d->sums->bytes += bytes;
    if (a->fork == 0 || a->fork != b->fork || a->branch == b->branch) return;
    d->sums->implicit++;
    d->sums->implicit_bytes += bytes;
    if (d->found) d->found(d->context, earlier, later, bytes);
}

static int by_owner(const void *a, const void *b) {
    const piece_t *x = a, *y = b;
    return x->owner < y->owner ? -1 : x->owner > y->owner;
}

static int by_number(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static size_t place_of(const depending_t *d, uint64_t edge) {
    size_t low = 0, high = d->edge_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (d->edges[middle] < edge) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* The pieces of a buffer, one owner after the other. */
static void tell_pieces(depending_t *d, uint32_t later) {
    if (d->piece_count > 1) qsort(d->pieces, d->piece_count, sizeof *d->pieces, by_owner);
    for (size_t i = 0, end; i < d->piece_count; i = end) {
        uint64_t bytes = 0;
        for (end = i; end < d->piece_count && d->pieces[end].owner == d->pieces[i].owner; end++) bytes += d->pieces[end].bytes;
        tell(d, d->pieces[i].owner, later, bytes);
    }
}

static void note_edges(depending_t *d, size_t count) {
    size_t edges = 0;
    for (size_t i = 0; i < count; i++) {
        if (!strata_buffer_counts(&d->buffers[i])) continue;
        d->edges[edges++] = d->offsets[i];
        d->edges[edges++] = d->offsets[i] + d->buffers[i].size;
    }
    qsort(d->edges, edges, sizeof *d->edges, by_number);
    for (size_t i = 0; i < edges; i++)
        if (d->edge_count == 0 || d->edges[i] != d->edges[d->edge_count - 1]) d->edges[d->edge_count++] = d->edges[i];
    for (d->leaves = 1; d->leaves < d->edge_count;) d->leaves *= 2;
}

static void go_through(depending_t *d, const strata_keyed_t *order, size_t count) {
    for (size_t i = 0; i < 2 * d->leaves; i++) d->owner[i] = NOBODY;
    for (size_t i = 0; i < count && !d->failed; i++) {
        uint32_t buffer = order[i].value;
        uint64_t offset = d->offsets[buffer];
        d->piece_count = 0;
        paint(d, 1, 0, d->leaves, place_of(d, offset), place_of(d, offset + d->buffers[buffer].size), buffer);
        if (!d->failed) tell_pieces(d, buffer);
    }
}

static strata_status_t depend(depending_t *d, size_t count) {
    strata_status_t status = STRATA_E_HOST_MEMORY;
    size_t counted = 0;
    strata_keyed_t *order = strata_host_new(2 * count, sizeof *order);
    d->edges = strata_host_new(2 * count, sizeof *d->edges);
    if (!order || !d->edges) goto out;
    for (size_t i = 0; i < count; i++)
        if (strata_buffer_counts(&d->buffers[i])) order[counted++] = (strata_keyed_t){d->buffers[i].lower, (uint32_t)i};
    strata_sort_keyed(order, order + counted, counted);
    note_edges(d, count);
    d->owner = strata_host_new(2 * d->leaves, sizeof *d->owner);
    if (!d->owner) goto out;
    go_through(d, order, counted);
    if (!d->failed) status = STRATA_OK;
out:
    strata_host_delete(d->pieces);
    strata_host_delete(d->owner);
    strata_host_delete(d->edges);
    strata_host_delete(order);
    return status;
}

strata_status_t strata_plan_depend(const strata_plan_buffer_t *buffers, size_t count, const uint64_t *offsets,
                                   void (*found)(void *context, size_t earlier, size_t later, uint64_t bytes), void *context,
                                   strata_plan_dependencies_t *sums) {
    strata_status_t status = strata_buffers_check(buffers, count);
    if (status != STRATA_OK) return status;
    if (sums->struct_size < sizeof *sums)
        return strata_fail(STRATA_E_INVALID, 0, "struct_size of the dependencies is not set; write sizeof the struct");
    *sums = (strata_plan_dependencies_t){.struct_size = sums->struct_size};
    for (size_t i = 0; i < count; i++)
        if (strata_buffer_counts(&buffers[i]) && offsets[i] > UINT64_MAX - buffers[i].size)
            return strata_fail(STRATA_E_INVALID, 0, "buffer %zu has no offset", i);
    depending_t d = {.buffers = buffers, .offsets = offsets, .found = found, .context = context, .sums = sums};
    return count ? depend(&d, count) : STRATA_OK;
}
