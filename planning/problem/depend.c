/* Computes the bytes that a plan passes from one buffer to the next. Buffers are visited in program
 * order; owner_map.h stores the last owner of each byte. */
#include <stdlib.h>

#include "planning/problem/buffers.h"
#include "planning/problem/owner_map.h"
#include "planning/problem/sort.h"
#include "platform/arguments.h"
#include "platform/host/host_memory.h"

enum { PIECES_AT_FIRST = 256 };

/* Bytes with one previous owner. */
typedef struct piece {
    uint32_t owner;
    uint64_t bytes;
} piece_t;

typedef struct depending {
    const strata_plan_buffer_t *buffers;
    const uint64_t *offsets;
    strata_owner_map_t map;
    piece_t *pieces; /* of the current buffer */
    size_t piece_count, piece_capacity;
    void (*found)(void *context, size_t earlier, size_t later, uint64_t bytes);
    void *context;
    strata_plan_dependencies_t *sums;
} depending_t;

static bool add_piece(void *context, uint32_t owner, uint64_t bytes) {
    depending_t *d = context;
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

static void report_reuse(depending_t *d, uint32_t earlier, uint32_t later, uint64_t bytes) {
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

/* Reports the pieces of a buffer, one owner after the other. */
static void report_pieces(depending_t *d, uint32_t later) {
    if (d->piece_count > 1) qsort(d->pieces, d->piece_count, sizeof *d->pieces, by_owner);
    for (size_t i = 0, end; i < d->piece_count; i = end) {
        uint64_t bytes = 0;
        for (end = i; end < d->piece_count && d->pieces[end].owner == d->pieces[i].owner; end++) bytes += d->pieces[end].bytes;
        report_reuse(d, d->pieces[i].owner, later, bytes);
    }
}

static uint64_t *new_edges(const depending_t *d, size_t count, size_t *edge_count) {
    uint64_t *edges = strata_host_new(2 * count, sizeof *edges);
    for (size_t i = 0; edges && i < count; i++) {
        if (!strata_buffer_counts(&d->buffers[i])) continue;
        edges[(*edge_count)++] = d->offsets[i];
        edges[(*edge_count)++] = d->offsets[i] + d->buffers[i].size;
    }
    return edges;
}

static bool visit_buffers(depending_t *d, const strata_keyed_t *order, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t buffer = order[i].value;
        uint64_t begin = d->offsets[buffer], end = begin + d->buffers[buffer].size;
        d->piece_count = 0;
        if (!strata_owner_map_assign(&d->map, begin, end, buffer, add_piece, d)) return false;
        report_pieces(d, buffer);
    }
    return true;
}

static strata_status_t depend(depending_t *d, size_t count) {
    strata_status_t status = STRATA_E_HOST_MEMORY;
    size_t counted = 0, edge_count = 0;
    strata_keyed_t *order = strata_host_new(2 * count, sizeof *order);
    uint64_t *edges = order ? new_edges(d, count, &edge_count) : NULL;
    if (!edges || strata_owner_map_init(&d->map, edges, edge_count) != STRATA_OK) goto out;
    for (size_t i = 0; i < count; i++)
        if (strata_buffer_counts(&d->buffers[i])) order[counted++] = (strata_keyed_t){d->buffers[i].lower, (uint32_t)i};
    strata_sort_keyed(order, order + counted, counted);
    if (visit_buffers(d, order, counted)) status = STRATA_OK;
out:
    strata_host_delete(d->pieces);
    strata_owner_map_destroy(&d->map);
    strata_host_delete(order);
    return status;
}

strata_status_t strata_plan_depend(const strata_plan_buffer_t *buffers, size_t count, const uint64_t *offsets,
                                   void (*found)(void *context, size_t earlier, size_t later, uint64_t bytes), void *context,
                                   strata_plan_dependencies_t *dependencies) {
    STRATA_REFUSE_NULL_ARRAY(buffers, count);
    STRATA_REFUSE_NULL_ARRAY(offsets, count);
    STRATA_REFUSE_NULL(dependencies);
    STRATA_REFUSE_RESULT(dependencies);
    strata_status_t status = strata_buffers_check(buffers, count);
    if (status != STRATA_OK) return status;
    strata_plan_dependencies_t sums = {0};
    for (size_t i = 0; i < count; i++)
        if (strata_buffer_counts(&buffers[i]) && offsets[i] > UINT64_MAX - buffers[i].size)
            return strata_fail(STRATA_E_INVALID, 0, "buffer %zu has no offset", i);
    depending_t d = {.buffers = buffers, .offsets = offsets, .found = found, .context = context, .sums = &sums};
    if (count) status = depend(&d, count);
    if (status == STRATA_OK) strata_fill_result(dependencies, &sums, sizeof sums);
    return status;
}
