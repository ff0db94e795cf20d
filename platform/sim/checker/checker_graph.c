/* Graphs (rule 5): what captured streams do happens at each launch, in the launch stream's order alone; inside the graph the
 * captured edges order it. Each captured stream is a branch with an actor of its own. */
#include <stdlib.h>
#include <string.h>

#include "platform/sim/checker/checker_internal.h"

typedef struct node {
    uint32_t branch;
    check_how_t how;
    strata_access_t access;
    uint64_t seen[SIM_CAPTURE_STREAMS]; /* of every branch, how many operations come before it; for itself, its own */
} node_t;

struct sim_checked_graph {
    node_t *nodes;
    size_t count;
    uint32_t branches[SIM_CAPTURE_STREAMS], streams[SIM_CAPTURE_STREAMS]; /* actors; 0: none */
    uint64_t passed[SIM_CAPTURE_STREAMS]; /* operations of earlier launches */
    uint64_t length[SIM_CAPTURE_STREAMS];
};

static struct sim_checked_graph *graph_of(strata_checker_t *checker, sim_stream_t *stream) {
    sim_graph_t *graph = stream->capture->graph;
    uint32_t branch = stream->capture_index;
    if (!graph->checked && !(graph->checked = calloc(1, sizeof *graph->checked))) {
        checker->lost = true;
        return NULL;
    }
    struct sim_checked_graph *checked = graph->checked;
    if (!checked->branches[branch]) checked->branches[branch] = check_actor_new(checker, -1, "a graph");
    checked->streams[branch] = check_stream(checker, stream);
    return checked;
}

static void add(strata_checker_t *checker, sim_stream_t *stream, check_how_t how, const strata_access_t *access) {
    struct sim_checked_graph *checked = graph_of(checker, stream);
    void *nodes = checked ? checked->nodes : NULL;
    if (!checked || !sim_room(&nodes, checked->count, sizeof *checked->nodes)) {
        checker->lost = true;
        return;
    }
    uint32_t branch = stream->capture_index;
    checked->nodes = nodes;
    node_t *node = &checked->nodes[checked->count++];
    *node = (node_t){.branch = branch, .how = how, .access = *access};
    memcpy(node->seen, stream->capture->seen[branch], sizeof node->seen);
    checked->length[branch] = node->seen[branch];
}

void check_on_captured(sim_stream_t *stream, const strata_access_t *accesses, size_t count) {
    strata_checker_t *checker = stream->device->world->checker;
    for (size_t i = 0; checker && i < count; i++) add(checker, stream, CHECK_GRAPH, &accesses[i]);
}

static void run(strata_checker_t *checker, const struct sim_checked_graph *graph, const node_t *node, uint32_t stream) {
    check_clock_t clock = {0};
    check_clock_copy(checker, &clock, &check_actor(checker, stream)->clock);
    for (uint32_t i = 0; i < SIM_CAPTURE_STREAMS; i++)
        if (graph->branches[i]) check_clock_raise(checker, &clock, graph->branches[i], graph->passed[i] + node->seen[i]);
    check_touch_t touch = {.actor = graph->branches[node->branch],
                           .reported = stream,
                           .clock = &clock,
                           .how = node->how,
                           .address = node->access.address,
                           .size = node->access.size,
                           .write = node->access.write,
                           .epoch = graph->passed[node->branch] + node->seen[node->branch]};
    check_touch(checker, &touch);
    check_clock_end(&clock);
}

void check_on_launch(const sim_graph_t *graph, sim_stream_t *stream) {
    strata_checker_t *checker = stream->device->world->checker;
    struct sim_checked_graph *checked = graph->checked;
    if (!checker || !checked) return;
    uint32_t actor = check_arrive(checker, stream);
    check_tick(checker, actor);
    for (size_t i = 0; i < checked->count; i++) run(checker, checked, &checked->nodes[i], actor);
    for (uint32_t i = 0; i < SIM_CAPTURE_STREAMS; i++) {
        if (!checked->branches[i]) continue;
        checked->passed[i] += checked->length[i];
        check_clock_raise(checker, &check_actor(checker, actor)->clock, checked->branches[i], checked->passed[i]);
    }
    check_tick(checker, actor);
    for (uint32_t i = 0; i < SIM_CAPTURE_STREAMS && !check_rule(checker, 5); i++)
        if (checked->streams[i]) check_learn(checker, checked->streams[i], &check_actor(checker, actor)->clock);
}

void check_graph_end(sim_graph_t *graph) {
    if (graph->checked) free(graph->checked->nodes);
    free(graph->checked);
    graph->checked = NULL;
}
