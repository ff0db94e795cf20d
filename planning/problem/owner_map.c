#include "planning/problem/owner_map.h"

#include <stdlib.h>

#include "platform/host/host_memory.h"

#define NO_OWNER    UINT32_MAX
#define MANY_OWNERS (UINT32_MAX - 1)

static int by_number(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static void note_edges(strata_owner_map_t *map, size_t count) {
    if (count > 0) qsort(map->edges, count, sizeof *map->edges, by_number);
    for (size_t i = 0; i < count; i++)
        if (map->edge_count == 0 || map->edges[i] != map->edges[map->edge_count - 1]) map->edges[map->edge_count++] = map->edges[i];
    for (map->leaves = 1; map->leaves < map->edge_count;) map->leaves *= 2;
}

strata_status_t strata_owner_map_init(strata_owner_map_t *map, uint64_t *edges, size_t count) {
    *map = (strata_owner_map_t){.edges = edges};
    note_edges(map, count);
    map->owner = strata_host_new(2 * map->leaves, sizeof *map->owner);
    if (!map->owner) {
        strata_owner_map_destroy(map);
        return STRATA_E_HOST_MEMORY;
    }
    for (size_t i = 0; i < 2 * map->leaves; i++) map->owner[i] = NO_OWNER;
    return STRATA_OK;
}

void strata_owner_map_destroy(strata_owner_map_t *map) {
    strata_host_delete(map->owner);
    strata_host_delete(map->edges);
    *map = (strata_owner_map_t){0};
}

/* ---- painting ---- */

typedef struct assignment {
    strata_owner_map_t *map;
    size_t begin, end; /* leaves */
    uint32_t owner;
    strata_piece_fn piece;
    void *context;
    bool ended;
} assignment_t;

static uint64_t edge_at(const strata_owner_map_t *map, size_t leaf) {
    return map->edges[leaf < map->edge_count ? leaf : map->edge_count - 1];
}

static size_t leaf_of(const strata_owner_map_t *map, uint64_t edge) {
    size_t low = 0, high = map->edge_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (map->edges[middle] < edge) low = middle + 1;
        else high = middle;
    }
    return low;
}

static void report_piece(assignment_t *assignment, uint32_t owner, size_t from, size_t to) {
    uint64_t bytes = edge_at(assignment->map, to) - edge_at(assignment->map, from);
    if (owner != NO_OWNER && bytes > 0) assignment->ended = !assignment->piece(assignment->context, owner, bytes);
}

static void assign_node(assignment_t *assignment, size_t node, size_t from, size_t to) {
    uint32_t *owner = assignment->map->owner;
    if (assignment->begin >= to || assignment->end <= from || assignment->ended) return;
    bool whole = assignment->begin <= from && to <= assignment->end;
    if (owner[node] != MANY_OWNERS && whole) {
        report_piece(assignment, owner[node], from, to);
    } else {
        size_t middle = (from + to) / 2;
        if (owner[node] != MANY_OWNERS) owner[2 * node] = owner[2 * node + 1] = owner[node];
        assign_node(assignment, 2 * node, from, middle);
        assign_node(assignment, 2 * node + 1, middle, to);
        owner[node] = MANY_OWNERS;
    }
    if (whole) owner[node] = assignment->owner;
}

bool strata_owner_map_assign(strata_owner_map_t *map, uint64_t begin, uint64_t end, uint32_t owner, strata_piece_fn piece,
                             void *context) {
    assignment_t assignment = {
        .map = map, .begin = leaf_of(map, begin), .end = leaf_of(map, end), .owner = owner, .piece = piece, .context = context};
    assign_node(&assignment, 1, 0, map->leaves);
    return !assignment.ended;
}
