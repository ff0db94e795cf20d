/* The rules for captures, graphs and their pools (docs/graphs.md). A capture has one device and at most one pool. The work of a
 * graph is done at its launches. Each launch is ordered with all work on the blocks that the graph uses, and with all launches
 * and uses of its pool. */
#include "platform/host/host_memory.h"
#include "programs/rules.h"

graph_state_t *rules_capture(rules_t *rules, uint32_t stream) {
    uint8_t graph = stream < TORTURE_STREAMS ? rules->captured[stream] : 0;
    return graph ? &rules->graphs[graph - 1] : NULL;
}

bool rules_may_wait(const rules_t *rules, uint32_t stream, torture_streams_t others) {
    uint8_t graph = stream < TORTURE_STREAMS ? rules->captured[stream] : 0;
    if (!graph) return (others & rules->captures) == 0;
    for (uint32_t s = 0; s < TORTURE_STREAMS; s++)
        if ((others & torture_bit(s)) && rules->captured[s] != graph) return false;
    return true;
}

/* Returns the pool that is begun for a stream in this place, or in any if `place` is NULL. The number is from 1, or 0 if there
 * is none. */
static uint8_t open_pool_of(const rules_t *rules, uint32_t stream, const uint8_t *place) {
    for (uint8_t p = 0; p < STRATA_TORTURE_POOLS; p++) {
        const pool_state_t *pool = &rules->pools[p];
        if (pool->open && pool->stream == stream && (!place || pool->place == *place)) return (uint8_t)(p + 1);
    }
    return 0;
}

bool rules_route(const rules_t *rules, uint8_t place, uint8_t stream, uint8_t *pool) {
    const uint8_t captured = rules->captured[stream];
    *pool = open_pool_of(rules, stream, &place);
    if (*pool || !captured) return true;
    *pool = rules->graphs[captured - 1].pool;
    return *pool && rules->pools[*pool - 1].place == place;
}

bool rules_is_named(const rules_t *rules, uint32_t stream) { return rules->captured[stream] || open_pool_of(rules, stream, NULL); }

bool rules_own(rules_t *rules, block_state_t *block, uint32_t stream) {
    const graph_state_t *graph = rules_capture(rules, stream);
    if (!graph) return true;
    if (graph->pool && graph->pool != block->pool && block->size) block->owned |= UINT32_C(1) << (graph->pool - 1);
    return graph->pool != 0;
}

void rules_use(rules_t *rules, uint32_t graph, uint32_t block, bool write) {
    if (rules->use_count == rules->use_room) {
        uint32_t room = rules->use_room ? 2 * rules->use_room : 64;
        graph_use_t *more = strata_host_resize(rules->uses, room, sizeof *more);
        rules->failed |= !more;
        if (!more) return;
        rules->uses = more;
        rules->use_room = room;
    }
    rules->uses[rules->use_count++] = (graph_use_t){.graph = (uint8_t)graph, .block = block, .write = write};
}

/* Returns true if the program may free the block without harm to the graph, because the graph's pool serves or owns it. */
static bool retains(const graph_state_t *graph, const block_state_t *block) {
    return graph->pool && (block->pool == graph->pool || (block->owned >> (graph->pool - 1) & 1u));
}

void rules_freed(rules_t *rules, uint32_t block) {
    for (uint32_t i = 0; i < rules->use_count; i++) {
        graph_state_t *graph = &rules->graphs[rules->uses[i].graph];
        if (rules->uses[i].block == block && !retains(graph, &rules->blocks[block])) graph->invalid = true;
    }
}

/* ---- streams join captures and leave them ---- */

static bool has_used(const block_state_t *block, torture_streams_t stream) {
    const access_state_t *out = &block->outside;
    torture_streams_t all = out->writers | out->readers | out->seen | out->uncovered | block->borrowed | block->freed_on |
                            block->alloc_stream;
    return ((all | torture_bit(block->owner)) & stream) != 0;
}

/* Orders a change of the stream with all operations that use the stream, and with the frees of blocks that it used. */
static void touch_stream(rules_t *rules, uint32_t stream) {
    rules->needs.stream_changes |= torture_bit(stream);
    for (uint32_t i = 0; i < rules->program->blocks; i++)
        if ((rules->blocks[i].live || rules->blocks[i].retained) && has_used(&rules->blocks[i], torture_bit(stream)))
            rules_touch(rules, i);
}

static void join_capture(rules_t *rules, uint32_t stream, uint32_t graph) {
    touch_stream(rules, stream);
    rules->captured[stream] = (uint8_t)(graph + 1);
    rules->captures |= torture_bit(stream);
    rules->graphs[graph].members |= torture_bit(stream);
}

static void end_captures(rules_t *rules, uint32_t graph) {
    for (uint32_t s = 0; s < TORTURE_STREAMS; s++) {
        if (rules->captured[s] != graph + 1) continue;
        touch_stream(rules, s);
        rules->captured[s] = 0;
        rules->captures &= ~torture_bit(s);
    }
}

/* Returns true if a stream that is not captured may join the capture of another by waiting for it. */
static bool may_join(const rules_t *rules, uint32_t stream, uint32_t other) {
    return torture_is_capturable(stream) && torture_device_of(stream) == torture_device_of(other) &&
           !open_pool_of(rules, stream, NULL);
}

bool rules_order(rules_t *rules, torture_op_t *op) {
    if (op->stream == op->other) return false;
    rules->needs.waits = torture_bit(op->other);
    if (rules_may_wait(rules, op->stream, rules->needs.waits)) return true;
    if (rules->captured[op->stream] || !may_join(rules, op->stream, op->other)) return false;
    join_capture(rules, op->stream, rules->captured[op->other] - 1u);
    return true;
}

/* ---- pools ---- */

/* Live blocks hold a pool too, but they do not count here, because their requests may have been refused. */
static bool is_alive(const pool_state_t *pool) { return pool->holds || pool->graphs; }

static bool is_served(const rules_t *rules, uint8_t place) {
    if (place >= STRATA_TORTURE_PINNED) return false;
    return (rules->dialect & (place < STRATA_TORTURE_MANAGED ? TORTURE_GRAPHS_GPU : TORTURE_GRAPHS_MANAGED)) != 0;
}

/* Returns true if the stream began a capture that has no pool yet. The capture then gets this pool. */
static bool may_adopt(rules_t *rules, const torture_op_t *op) {
    const graph_state_t *graph = rules_capture(rules, op->stream);
    return graph && !graph->pool && graph->origin == op->stream;
}

bool rules_pool_begin(rules_t *rules, torture_op_t *op) {
    pool_state_t *pool = &rules->pools[op->pool];
    if (op->stream >= TORTURE_STREAMS || !torture_is_capturable(op->stream) || !is_served(rules, op->place)) return false;
    op->place = (uint8_t)((op->place & ~1u) + torture_device_of(op->stream));
    if (open_pool_of(rules, op->stream, NULL) || (rules->captured[op->stream] && !may_adopt(rules, op))) return false;
    if (pool->made && (pool->open || pool->place != op->place || !is_alive(pool))) return false;
    *pool = (pool_state_t){.made = true,
                           .open = true,
                           .place = op->place,
                           .stream = op->stream,
                           .holds = pool->holds + 1,
                           .graphs = pool->graphs,
                           .order = pool->order};
    rules->needs.pool = (uint8_t)(op->pool + 1);
    if (rules->captured[op->stream]) {
        rules_capture(rules, op->stream)->pool = (uint8_t)(op->pool + 1);
        pool->captured = true;
        pool->graphs++;
    }
    touch_stream(rules, op->stream);
    rules_touch_pool(rules, op->pool);
    return true;
}

/* If the pool has no holder any more, frees the blocks that it owned. */
static void release_owned(rules_t *rules, uint32_t number) {
    const pool_state_t *pool = &rules->pools[number];
    if (pool->open || pool->holds || pool->graphs) return;
    rules->needs.ended_pool = (uint8_t)(number + 1);
    for (uint32_t i = 0; i < rules->program->blocks; i++) {
        block_state_t *block = &rules->blocks[i];
        if (!(block->owned >> number & 1u)) continue;
        rules_touch(rules, i);
        block->owned &= ~(UINT32_C(1) << number);
        block->retained = block->retained && block->owned;
    }
}

/* Returns true if an unfinished capture uses the pool. */
static bool is_capturing(const rules_t *rules, uint32_t number) {
    for (uint32_t g = 0; g < STRATA_TORTURE_GRAPHS; g++)
        if (rules->graphs[g].life == GRAPH_CAPTURING && rules->graphs[g].pool == number + 1) return true;
    return false;
}

bool rules_pool_end(rules_t *rules, torture_op_t *op) {
    pool_state_t *pool = &rules->pools[op->pool];
    if (!pool->open || is_capturing(rules, op->pool)) return false;
    pool->open = false;
    touch_stream(rules, pool->stream);
    rules_touch_pool(rules, op->pool);
    release_owned(rules, op->pool);
    return true;
}

bool rules_pool_remove(rules_t *rules, torture_op_t *op) {
    pool_state_t *pool = &rules->pools[op->pool];
    if (pool->holds <= (pool->open ? 1u : 0u)) return false;
    pool->holds--;
    rules_touch_pool(rules, op->pool);
    release_owned(rules, op->pool);
    return true;
}

/* ---- graphs ---- */

/* A capture has no pool, or is the only one for the current begin of its pool. */
bool rules_begin_capture(rules_t *rules, torture_op_t *op) {
    graph_state_t *graph = &rules->graphs[op->graph];
    bool served = rules->dialect & (TORTURE_GRAPHS_GPU | TORTURE_GRAPHS_MANAGED);
    if (!served || graph->life != GRAPH_NONE || op->stream >= TORTURE_STREAMS || !torture_is_capturable(op->stream)) return false;
    if (rules->captured[op->stream]) return false;
    uint8_t pool = open_pool_of(rules, op->stream, NULL);
    if (!pool && (!(rules->dialect & TORTURE_CAPTURES_UNANNOUNCED) || rules->program->threads > 1)) return false;
    if (pool && rules->pools[pool - 1].captured) return false;
    rules->needs.pool = pool;
    *graph = (graph_state_t){.life = GRAPH_CAPTURING, .origin = op->stream, .pool = pool};
    if (pool) rules->pools[pool - 1].graphs++, rules->pools[pool - 1].captured = true;
    join_capture(rules, op->stream, op->graph);
    rules_touch_graph(rules, op->graph);
    if (pool) rules_touch_pool(rules, pool - 1u);
    return true;
}

bool rules_end_capture(rules_t *rules, torture_op_t *op) {
    graph_state_t *graph = &rules->graphs[op->graph];
    if (graph->life != GRAPH_CAPTURING) return false;
    op->stream = graph->origin;
    rules->needs.waits = graph->members & ~torture_bit(graph->origin);
    rules_touch_graph(rules, op->graph);
    if (graph->pool) rules_touch_pool(rules, graph->pool - 1u);
    end_captures(rules, op->graph);
    graph->life = GRAPH_READY;
    return true;
}

static bool is_allocated(const block_state_t *block) { return block->live || block->retained; }

/* Returns the streams that a launch must wait for: those with work on the pool or on the blocks that the graph uses. */
static torture_streams_t waits_of(rules_t *rules, const torture_op_t *op) {
    const graph_state_t *graph = &rules->graphs[op->graph];
    torture_streams_t waits = graph->pool ? rules_waits(&rules->pools[graph->pool - 1].order, op->stream, true) : 0;
    for (uint32_t i = 0; i < rules->use_count; i++) {
        const graph_use_t *use = &rules->uses[i];
        const block_state_t *block = &rules->blocks[use->block];
        if (use->graph == op->graph && is_allocated(block)) waits |= rules_waits(&block->outside, op->stream, use->write);
    }
    return waits;
}

static void replay_uses(rules_t *rules, const torture_op_t *op) {
    for (uint32_t i = 0; i < rules->use_count; i++) {
        const graph_use_t *use = &rules->uses[i];
        block_state_t *block = &rules->blocks[use->block];
        if (use->graph != op->graph || !is_allocated(block)) continue;
        rules_touch(rules, use->block);
        rules_access(&block->outside, block->owner, op->stream, use->write);
        block->freed_on &= ~torture_bit(op->stream);
    }
}

/* Counts the launch as a write of all blocks of the pool, because they may overlap the memory that the graph uses. */
static void use_whole_pool(rules_t *rules, uint8_t pool, uint32_t stream) {
    for (uint32_t i = 0; i < rules->program->blocks && pool; i++) {
        block_state_t *block = &rules->blocks[i];
        if (!block->live || block->pool != pool) continue;
        rules_touch(rules, i);
        rules_access(&block->outside, block->owner, stream, true);
        block->freed_on &= ~torture_bit(stream);
    }
    if (pool) rules_access(&rules->pools[pool - 1].order, STRATA_TORTURE_NO_STREAM, stream, true);
}

bool rules_launch(rules_t *rules, torture_op_t *op) {
    graph_state_t *graph = &rules->graphs[op->graph];
    if (graph->life != GRAPH_READY || graph->invalid || op->stream >= TORTURE_STREAMS || rules->captured[op->stream]) return false;
    if (torture_device_of(op->stream) != torture_device_of(graph->origin)) return false;
    rules->needs.waits = waits_of(rules, op);
    if (!rules_may_wait(rules, op->stream, rules->needs.waits)) return false;
    rules->needs.pool = graph->pool;
    rules_touch_graph(rules, op->graph);
    if (graph->pool) rules_touch_pool(rules, graph->pool - 1u);
    replay_uses(rules, op);
    use_whole_pool(rules, graph->pool, op->stream);
    graph->running |= torture_bit(op->stream);
    return true;
}

/* Waits for the graph's launches first. The driver reports the end of a graph after its launches, but a simulated device
 * reports it at once. */
bool rules_destroy(rules_t *rules, torture_op_t *op) {
    graph_state_t *graph = &rules->graphs[op->graph];
    if (graph->life != GRAPH_READY || (graph->running & rules->captures)) return false;
    rules->needs.syncs = graph->running;
    rules_touch_graph(rules, op->graph);
    graph->life = GRAPH_DESTROYED;
    if (!graph->pool) return true;
    rules_touch_pool(rules, graph->pool - 1u);
    rules->pools[graph->pool - 1].graphs--;
    release_owned(rules, graph->pool - 1u);
    return true;
}
