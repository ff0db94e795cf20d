#include "planning/problem/owner_map.h"

#include <stdlib.h>

#include "platform/host/host_memory.h"

#define NOBODY  UINT32_MAX
#define SEVERAL (UINT32_MAX - 1)

static int by_number(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static void note_edges(strata_painted_t *painted, size_t count) {
    if (count > 0) qsort(painted->edges, count, sizeof *painted->edges, by_number);
    for (size_t i = 0; i < count; i++)
        if (painted->edge_count == 0 || painted->edges[i] != painted->edges[painted->edge_count - 1])
            painted->edges[painted->edge_count++] = painted->edges[i];
    for (painted->leaves = 1; painted->leaves < painted->edge_count;) painted->leaves *= 2;
}

strata_status_t strata_painted_init(strata_painted_t *painted, uint64_t *edges, size_t count) {
    *painted = (strata_painted_t){.edges = edges};
    note_edges(painted, count);
    painted->owner = strata_host_new(2 * painted->leaves, sizeof *painted->owner);
    if (!painted->owner) {
        strata_painted_destroy(painted);
        return STRATA_E_HOST_MEMORY;
    }
    for (size_t i = 0; i < 2 * painted->leaves; i++) painted->owner[i] = NOBODY;
    return STRATA_OK;
}

void strata_painted_destroy(strata_painted_t *painted) {
    strata_host_delete(painted->owner);
    strata_host_delete(painted->edges);
    *painted = (strata_painted_t){0};
}

/* ---- painting ---- */

typedef struct brush {
    strata_painted_t *painted;
    size_t begin, end; /* leaves */
    uint32_t owner;
    strata_piece_fn piece;
    void *context;
    bool ended;
} brush_t;

static uint64_t edge_at(const strata_painted_t *painted, size_t leaf) {
    return painted->edges[leaf < painted->edge_count ? leaf : painted->edge_count - 1];
}

static size_t leaf_of(const strata_painted_t *painted, uint64_t edge) {
    size_t low = 0, high = painted->edge_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (painted->edges[middle] < edge) low = middle + 1;
        else high = middle;
    }
    return low;
}

static void tell(brush_t *brush, uint32_t owner, size_t from, size_t to) {
    uint64_t bytes = edge_at(brush->painted, to) - edge_at(brush->painted, from);
    if (owner != NOBODY && bytes > 0) brush->ended = !brush->piece(brush->context, owner, bytes);
}

static void paint(brush_t *brush, size_t node, size_t from, size_t to) {
    uint32_t *owner = brush->painted->owner;
    if (brush->begin >= to || brush->end <= from || brush->ended) return;
    bool whole = brush->begin <= from && to <= brush->end;
    if (owner[node] != SEVERAL && whole) {
        tell(brush, owner[node], from, to);
    } else {
        size_t middle = (from + to) / 2;
        if (owner[node] != SEVERAL) owner[2 * node] = owner[2 * node + 1] = owner[node];
        paint(brush, 2 * node, from, middle);
        paint(brush, 2 * node + 1, middle, to);
        owner[node] = SEVERAL;
    }
    if (whole) owner[node] = brush->owner;
}

bool strata_painted_over(strata_painted_t *painted, uint64_t begin, uint64_t end, uint32_t owner, strata_piece_fn piece,
                         void *context) {
    brush_t brush = {.painted = painted,
                     .begin = leaf_of(painted, begin),
                     .end = leaf_of(painted, end),
                     .owner = owner,
                     .piece = piece,
                     .context = context};
    paint(&brush, 1, 0, painted->leaves);
    return !brush.ended;
}
