/* What must be over before a place of a plan is free again.
 *
 * Requests that follow a plan go round: the first one of a step comes after the last one of the step before. In that circle each byte of a
 * place had, right before it, one other place at most (or the place itself, in the step before): the places that have a place's bytes so
 * are its links. While every request is served at its place, one that finds nothing live at its links overlaps nothing: whatever lives
 * there was the last one at each of its bytes, since anything later would have been refused. */
#include <stdlib.h>

#include "allocation/layer/planned_state.h"
#include "planning/painted.h"
#include "platform/host/host_memory.h"

enum { LINKS_AT_FIRST = 1024 };

typedef struct linking {
    planned_plan_t *plan;
    strata_painted_t painted;
    uint64_t *left; /* bytes of each place that nobody else has had since */
    uint32_t *links;
    uint32_t count, capacity;
    uint32_t first; /* link of the place that is painted now */
} linking_t;

static bool is_placed(const planned_place_t *place) { return place->offset != STRATA_NOWHERE; }

static bool add_link(linking_t *linking, uint32_t link) {
    if (linking->count == linking->capacity) {
        uint32_t capacity = linking->capacity ? 2 * linking->capacity : LINKS_AT_FIRST;
        uint32_t *links = capacity ? strata_host_resize(linking->links, capacity, sizeof *links) : NULL;
        if (!links) return false;
        linking->links = links;
        linking->capacity = capacity;
    }
    linking->links[linking->count++] = link;
    return true;
}

static bool take_away(void *context, uint32_t owner, uint64_t bytes) {
    linking_t *linking = context;
    linking->left[owner] -= bytes;
    return true;
}

static bool link_to(void *context, uint32_t owner, uint64_t bytes) {
    linking_t *linking = context;
    (void)bytes;
    bool again = linking->count > linking->first && linking->links[linking->count - 1] == owner;
    return again || add_link(linking, owner);
}

static bool paint(linking_t *linking, uint32_t i, strata_piece_fn piece) {
    const planned_place_t *place = &linking->plan->places[i];
    return strata_painted_over(&linking->painted, place->offset, place->offset + place->size, i, piece, linking);
}

/* The first step: who has what when it ends. */
static void go_once(linking_t *linking) {
    planned_plan_t *plan = linking->plan;
    for (uint32_t i = 0; i < plan->count; i++) {
        if (!is_placed(&plan->places[i])) continue;
        (void)paint(linking, i, take_away);
        linking->left[i] = plan->places[i].size;
    }
    for (uint32_t i = 0; i < plan->count; i++) plan->places[i].last = linking->left[i] == plan->places[i].size;
}

/* What has no place is never served at one. */
static bool go_on(linking_t *linking) {
    planned_plan_t *plan = linking->plan;
    for (uint32_t i = 0; i < plan->count; i++) {
        plan->places[i].links = linking->first = linking->count;
        if (is_placed(&plan->places[i]) ? !paint(linking, i, link_to) : !add_link(linking, plan->count)) return false;
    }
    plan->places[plan->count].links = linking->count;
    return true;
}

static uint64_t *new_edges(const planned_plan_t *plan, size_t *count) {
    uint64_t *edges = strata_host_new(2 * (size_t)plan->count, sizeof *edges);
    for (uint32_t i = 0; edges && i < plan->count; i++) {
        if (!is_placed(&plan->places[i])) continue;
        edges[(*count)++] = plan->places[i].offset;
        edges[(*count)++] = plan->places[i].offset + plan->places[i].size;
    }
    return edges;
}

/* ---- by address ---- */

typedef struct at {
    uint64_t offset;
    uint32_t place;
} at_t;

static int by_offset(const void *a, const void *b) {
    const at_t *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static bool sort(planned_plan_t *plan) {
    at_t *order = strata_host_new(plan->count, sizeof *order);
    if (!order) return false;
    for (uint32_t i = 0; i < plan->count; i++) order[i] = (at_t){plan->places[i].offset, i};
    qsort(order, plan->count, sizeof *order, by_offset);
    for (uint32_t i = 0; i < plan->count; i++) plan->by_address[i] = order[i].place;
    strata_host_delete(order);
    return true;
}

static bool link_all(linking_t *linking) {
    planned_plan_t *plan = linking->plan;
    size_t edge_count = 0;
    uint64_t *edges = new_edges(plan, &edge_count);
    if (!edges || strata_painted_init(&linking->painted, edges, edge_count) != STRATA_OK) return false;
    plan->by_address = strata_host_new(plan->count, sizeof *plan->by_address);
    plan->slots = strata_host_new((size_t)plan->count + 1, sizeof *plan->slots);
    linking->left = strata_host_new(plan->count, sizeof *linking->left);
    if (!plan->by_address || !plan->slots || !linking->left || !sort(plan)) return false;
    plan->slots[plan->count] = UINT32_MAX;
    go_once(linking);
    return go_on(linking);
}

bool strata_planned_link(planned_plan_t *plan) {
    const strata_error_t reason = *strata_last_error();
    linking_t linking = {.plan = plan};
    bool linked = link_all(&linking);
    if (linked) plan->links = linking.links;
    else strata_host_delete(linking.links);
    strata_painted_destroy(&linking.painted);
    strata_host_delete(linking.left);
    (void)strata_fail_again(&reason);
    return linked;
}
