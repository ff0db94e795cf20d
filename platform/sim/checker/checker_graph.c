/* Graphs (rules 5, 9 and 10). The work of captured streams takes place at each launch. It is ordered
 * only by the launch stream, and inside the graph by the captured edges. Each captured stream is a
 * branch with an actor of its own. A node keeps the owner of the memory on which it was captured, and
 * its lease. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/sim/checker/checker_internal.h"

/* One access to the memory of one owner. */
typedef struct node {
    uint32_t branch;
    uint64_t address, size;
    bool write;
    /* for each branch, how many of its operations precede this one; for its own branch, its number */
    uint64_t seen[SIM_CAPTURE_STREAMS];
    /* The owner and the lease at the capture; NULL if unknown. */
    check_life_t *life;
    check_lease_t *lease;
    uint64_t lives, note;
} node_t;

struct sim_checked_graph {
    node_t *nodes;
    size_t count;
    uint32_t branches[SIM_CAPTURE_STREAMS], streams[SIM_CAPTURE_STREAMS]; /* actors; 0 if none */
    uint64_t passed[SIM_CAPTURE_STREAMS]; /* operations of all earlier launches */
    uint64_t length[SIM_CAPTURE_STREAMS];
};

static uint32_t branch_new(strata_checker_t *checker, uint64_t graph) {
    char label[CHECK_LABEL];
    snprintf(label, sizeof label, "graph %llu", (unsigned long long)graph);
    return check_actor_new(checker, -1, label);
}

static struct sim_checked_graph *graph_of(strata_checker_t *checker, sim_stream_t *stream) {
    sim_graph_t *graph = stream->capture->graph;
    uint32_t branch = stream->capture_index;
    if (!graph->checked && !(graph->checked = calloc(1, sizeof *graph->checked))) {
        checker->incomplete = true;
        return NULL;
    }
    struct sim_checked_graph *checked = graph->checked;
    if (!checked->branches[branch]) checked->branches[branch] = branch_new(checker, graph->id);
    checked->streams[branch] = check_stream(checker, stream);
    return checked;
}

static node_t *node_new(strata_checker_t *checker, sim_stream_t *stream) {
    struct sim_checked_graph *checked = graph_of(checker, stream);
    void *nodes = checked ? checked->nodes : NULL;
    if (!checked || !sim_room(&nodes, checked->count, sizeof *checked->nodes)) {
        checker->incomplete = true;
        return NULL;
    }
    uint32_t branch = stream->capture_index;
    checked->nodes = nodes;
    node_t *node = &checked->nodes[checked->count++];
    *node = (node_t){.branch = branch, .lives = checker->lives};
    memcpy(node->seen, stream->capture->seen[branch], sizeof node->seen);
    checked->length[branch] = node->seen[branch];
    return node;
}

static void add_part(strata_checker_t *checker, sim_stream_t *stream, const strata_access_t *part, check_segment_t *segment,
                     check_lease_t *lease) {
    node_t *node = node_new(checker, stream);
    if (!node) return;
    node->address = part->address;
    node->size = part->size;
    node->write = part->write;
    node->lease = lease;
    if (lease) lease->refs++;
    if (!segment) return;
    node->life = segment->life;
    node->life->refs++;
    node->note = check_note(checker, CHECK_NOTE_CAPTURED, check_stream(checker, stream), node->life->number,
                            stream->capture->graph->id);
}

/* Returns the end of the part of [at, end) with one owner or none: the next begin or end of a range
 * that touches it. */
static uint64_t up_to(uint64_t at, uint64_t end, uint64_t begin, uint64_t size) {
    return strata_min(end, begin > at ? begin : begin + size);
}

static void add(strata_checker_t *checker, sim_stream_t *stream, const strata_access_t *access) {
    uint64_t at = access->address, end;
    if (!strata_add(access->address, access->size, &end)) return;
    for (uint64_t stop = end; at < end; at = stop, stop = end) {
        check_segment_t *segment = check_segment_first(checker, at, end - at);
        check_lease_t *lease = check_lease_first(checker, at, end - at);
        if (segment) stop = up_to(at, stop, segment->node.key, segment->size);
        if (lease) stop = up_to(at, stop, lease->node.key, lease->size);
        bool owned = segment && segment->node.key <= at, lent = lease && lease->node.key <= at;
        add_part(checker, stream, &(strata_access_t){at, stop - at, access->write}, owned ? segment : NULL, lent ? lease : NULL);
    }
}

void check_on_captured(sim_stream_t *stream, const strata_access_t *accesses, size_t count) {
    strata_checker_t *checker = stream->device->world->checker;
    for (size_t i = 0; checker && i < count; i++) add(checker, stream, &accesses[i]);
}

void check_on_graph_memory(const sim_graph_t *graph, strata_address_t address, uint64_t size) {
    strata_checker_t *checker = graph->device->world->checker;
    if (!checker) return;
    check_on_memory(graph->device, address, size, NULL);
    check_lease_t *lease = check_lease_first(checker, address, size);
    if (lease) lease->graph = graph->id;
}

/* ---- launch ---- */

/* Rule 9. If something is at the address now, it is not the memory that was captured. */
static bool is_given_back(strata_checker_t *checker, const node_t *node, const check_touch_t *touch) {
    const check_lease_t *lease = node->lease;
    if (!lease || !lease->over || !node->life || !check_rule(checker, 9)) return false;
    const check_note_t *note = check_note_at(checker, lease->note);
    check_use_t end = {.actor = lease->actor, .note = lease->note, .life = note ? note->life : 0};
    uint64_t here = check_note(checker, CHECK_NOTE_GRAPH, touch->reported, node->life->number, touch->captured->graph);
    check_report_history(checker, &(check_fault_t){.kind = STRATA_HAZARD_GIVEN_BACK,
                                                   .rule = 9,
                                                   .life = node->life,
                                                   .actor = touch->reported,
                                                   .note = here,
                                                   .old = &end,
                                                   .launch = touch});
    return true;
}

static check_captured_t captured_of(strata_checker_t *checker, const sim_graph_t *graph, const node_t *node) {
    const uint64_t *pool = check_map_at(&checker->pools, graph->id, false);
    return (check_captured_t){.graph = graph->id,
                              .pool = pool ? *pool : 0,
                              .lives = node->lives,
                              .life = node->life ? node->life->number : 0,
                              .note = node->note,
                              .actor = graph->checked->streams[node->branch],
                              .own = node->lease && node->lease->graph == graph->id};
}

static void run(strata_checker_t *checker, const sim_graph_t *graph, const node_t *node, uint32_t stream) {
    const struct sim_checked_graph *checked = graph->checked;
    check_clock_t clock = {0};
    check_clock_copy(checker, &clock, &check_actor(checker, stream)->clock);
    for (uint32_t i = 0; i < SIM_CAPTURE_STREAMS; i++)
        if (checked->branches[i]) check_clock_raise(checker, &clock, checked->branches[i], checked->passed[i] + node->seen[i]);
    check_captured_t captured = captured_of(checker, graph, node);
    check_touch_t touch = {.actor = checked->branches[node->branch],
                           .reported = stream,
                           .clock = &clock,
                           .how = CHECK_GRAPH,
                           .address = node->address,
                           .size = node->size,
                           .write = node->write,
                           .epoch = checked->passed[node->branch] + node->seen[node->branch],
                           .captured = &captured};
    if (!is_given_back(checker, node, &touch)) check_touch(checker, &touch);
    check_clock_end(&clock);
}

void check_on_launch(const sim_graph_t *graph, sim_stream_t *stream) {
    strata_checker_t *checker = stream->device->world->checker;
    struct sim_checked_graph *checked = graph->checked;
    if (!checker || !checked) return;
    uint32_t actor = check_begin_operation(checker, stream);
    check_tick(checker, actor);
    for (size_t i = 0; i < checked->count; i++) run(checker, graph, &checked->nodes[i], actor);
    for (uint32_t i = 0; i < SIM_CAPTURE_STREAMS; i++) {
        if (!checked->branches[i]) continue;
        checked->passed[i] += checked->length[i];
        check_clock_raise(checker, &check_actor(checker, actor)->clock, checked->branches[i], checked->passed[i]);
    }
    check_tick(checker, actor);
    for (uint32_t i = 0; i < SIM_CAPTURE_STREAMS && !check_rule(checker, 5); i++)
        if (checked->streams[i]) check_actor_join(checker, checked->streams[i], &check_actor(checker, actor)->clock);
}

void check_graph_end(sim_graph_t *graph) {
    struct sim_checked_graph *checked = graph->checked;
    strata_checker_t *checker = graph->device->world->checker;
    for (size_t i = 0; checked && i < checked->count; i++) {
        if (checked->nodes[i].life) check_life_drop(checked->nodes[i].life);
        if (checked->nodes[i].lease) check_lease_drop(checked->nodes[i].lease);
    }
    if (checked) free(checked->nodes);
    free(checked);
    graph->checked = NULL;
    if (checker) check_map_remove(&checker->pools, graph->id);
}
