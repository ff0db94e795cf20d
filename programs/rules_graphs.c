/* The rules for captures, graphs and their pools (docs/graphs.md). A capture has one device and at most one pool. The work of a
 * graph is done at its launches. Each launch is ordered with all work on the blocks that the graph uses, and with all launches
 * and uses of its pool. */
#include "platform/host/host_memory.h"
#include "programs/rules.h"

graph_state_t *law_capture(law_t *law, uint32_t stream) {
    uint8_t graph = stream < TORTURE_STREAMS ? law->captured[stream] : 0;
    return graph ? &law->graphs[graph - 1] : NULL;
}

bool law_may_wait(const law_t *law, uint32_t stream, torture_streams_t others) {
    uint8_t graph = stream < TORTURE_STREAMS ? law->captured[stream] : 0;
    if (!graph) return (others & law->captures) == 0;
    for (uint32_t s = 0; s < TORTURE_STREAMS; s++)
        if ((others & torture_bit(s)) && law->captured[s] != graph) return false;
    return true;
}

/* Returns the pool that is begun for a stream in this place, or in any if `place` is NULL. The number is from 1, or 0 if there
 * is none. */
static uint8_t begun_for(const law_t *law, uint32_t stream, const uint8_t *place) {
    for (uint8_t p = 0; p < STRATA_TORTURE_POOLS; p++) {
        const pool_state_t *pool = &law->pools[p];
        if (pool->open && pool->stream == stream && (!place || pool->place == *place)) return (uint8_t)(p + 1);
    }
    return 0;
}

bool law_route(const law_t *law, uint8_t place, uint8_t stream, uint8_t *pool) {
    const uint8_t captured = law->captured[stream];
    *pool = begun_for(law, stream, &place);
    if (*pool || !captured) return true;
    *pool = law->graphs[captured - 1].pool;
    return *pool && law->pools[*pool - 1].place == place;
}

bool law_is_named(const law_t *law, uint32_t stream) { return law->captured[stream] || begun_for(law, stream, NULL); }

bool law_own(law_t *law, block_state_t *block, uint32_t stream) {
    const graph_state_t *graph = law_capture(law, stream);
    if (!graph) return true;
    if (graph->pool && graph->pool != block->pool && block->size) block->owned |= UINT32_C(1) << (graph->pool - 1);
    return graph->pool != 0;
}

void law_use(law_t *law, uint32_t graph, uint32_t block, bool write) {
    if (law->use_count == law->use_room) {
        uint32_t room = law->use_room ? 2 * law->use_room : 64;
        graph_use_t *more = strata_host_resize(law->uses, room, sizeof *more);
        law->failed |= !more;
        if (!more) return;
        law->uses = more;
        law->use_room = room;
    }
    law->uses[law->use_count++] = (graph_use_t){.graph = (uint8_t)graph, .block = block, .write = write};
}

/* Returns true if the program may free the block without harm to the graph, because the graph's pool serves or owns it. */
static bool keeps(const graph_state_t *graph, const block_state_t *block) {
    return graph->pool && (block->pool == graph->pool || (block->owned >> (graph->pool - 1) & 1u));
}

void law_lose(law_t *law, uint32_t block) {
    for (uint32_t i = 0; i < law->use_count; i++) {
        graph_state_t *graph = &law->graphs[law->uses[i].graph];
        if (law->uses[i].block == block && !keeps(graph, &law->blocks[block])) graph->lost = true;
    }
}

/* ---- streams join captures and leave them ---- */

static bool knows(const block_state_t *block, torture_streams_t stream) {
    const access_state_t *out = &block->outside;
    torture_streams_t all = out->writers | out->readers | out->seen | out->uncovered | block->borrowed | block->told | block->born;
    return ((all | torture_bit(block->owner)) & stream) != 0;
}

/* Orders a change of the stream with all operations that use the stream, and with the frees of blocks that it used. */
static void turn(law_t *law, uint32_t stream) {
    law->duty.turns |= torture_bit(stream);
    for (uint32_t i = 0; i < law->program->blocks; i++)
        if ((law->blocks[i].live || law->blocks[i].kept) && knows(&law->blocks[i], torture_bit(stream))) law_touch(law, i);
}

static void enter(law_t *law, uint32_t stream, uint32_t graph) {
    turn(law, stream);
    law->captured[stream] = (uint8_t)(graph + 1);
    law->captures |= torture_bit(stream);
    law->graphs[graph].members |= torture_bit(stream);
}

static void leave_all(law_t *law, uint32_t graph) {
    for (uint32_t s = 0; s < TORTURE_STREAMS; s++) {
        if (law->captured[s] != graph + 1) continue;
        turn(law, s);
        law->captured[s] = 0;
        law->captures &= ~torture_bit(s);
    }
}

/* Returns true if a stream that is not captured may join the capture of another by waiting for it. */
static bool may_join(const law_t *law, uint32_t stream, uint32_t other) {
    return torture_is_capturable(stream) && torture_device_of(stream) == torture_device_of(other) && !begun_for(law, stream, NULL);
}

bool law_order(law_t *law, torture_op_t *op) {
    if (op->stream == op->other) return false;
    law->duty.waits = torture_bit(op->other);
    if (law_may_wait(law, op->stream, law->duty.waits)) return true;
    if (law->captured[op->stream] || !may_join(law, op->stream, op->other)) return false;
    enter(law, op->stream, law->captured[op->other] - 1u);
    return true;
}

/* ---- pools ---- */

/* Live blocks hold a pool too, but they do not count here, because their requests may have been refused. */
static bool is_alive(const pool_state_t *pool) { return pool->holds || pool->graphs; }

static bool is_served(const law_t *law, uint8_t place) {
    if (place >= STRATA_TORTURE_PINNED) return false;
    return (law->dialect & (place < STRATA_TORTURE_MANAGED ? TORTURE_GRAPHS_GPU : TORTURE_GRAPHS_MANAGED)) != 0;
}

/* Returns true if the stream began a capture that has no pool yet. The capture then gets this pool. */
static bool adopts(law_t *law, const torture_op_t *op) {
    const graph_state_t *graph = law_capture(law, op->stream);
    return graph && !graph->pool && graph->origin == op->stream;
}

bool law_pool_begin(law_t *law, torture_op_t *op) {
    pool_state_t *pool = &law->pools[op->pool];
    if (op->stream >= TORTURE_STREAMS || !torture_is_capturable(op->stream) || !is_served(law, op->place)) return false;
    op->place = (uint8_t)((op->place & ~1u) + torture_device_of(op->stream));
    if (begun_for(law, op->stream, NULL) || (law->captured[op->stream] && !adopts(law, op))) return false;
    if (pool->made && (pool->open || pool->place != op->place || !is_alive(pool))) return false;
    *pool = (pool_state_t){.made = true,
                           .open = true,
                           .place = op->place,
                           .stream = op->stream,
                           .holds = pool->holds + 1,
                           .graphs = pool->graphs,
                           .order = pool->order};
    law->duty.pool = (uint8_t)(op->pool + 1);
    if (law->captured[op->stream]) {
        law_capture(law, op->stream)->pool = (uint8_t)(op->pool + 1);
        pool->captured = true;
        pool->graphs++;
    }
    turn(law, op->stream);
    law_touch_pool(law, op->pool);
    return true;
}

/* If the pool has no holder any more, frees the blocks that it owned. */
static void settle(law_t *law, uint32_t number) {
    const pool_state_t *pool = &law->pools[number];
    if (pool->open || pool->holds || pool->graphs) return;
    law->duty.ends = (uint8_t)(number + 1);
    for (uint32_t i = 0; i < law->program->blocks; i++) {
        block_state_t *block = &law->blocks[i];
        if (!(block->owned >> number & 1u)) continue;
        law_touch(law, i);
        block->owned &= ~(UINT32_C(1) << number);
        block->kept = block->kept && block->owned;
    }
}

/* Returns true if an unfinished capture uses the pool. */
static bool is_capturing(const law_t *law, uint32_t number) {
    for (uint32_t g = 0; g < STRATA_TORTURE_GRAPHS; g++)
        if (law->graphs[g].life == GRAPH_CAPTURING && law->graphs[g].pool == number + 1) return true;
    return false;
}

bool law_pool_end(law_t *law, torture_op_t *op) {
    pool_state_t *pool = &law->pools[op->pool];
    if (!pool->open || is_capturing(law, op->pool)) return false;
    pool->open = false;
    turn(law, pool->stream);
    law_touch_pool(law, op->pool);
    settle(law, op->pool);
    return true;
}

bool law_pool_remove(law_t *law, torture_op_t *op) {
    pool_state_t *pool = &law->pools[op->pool];
    if (pool->holds <= (pool->open ? 1u : 0u)) return false;
    pool->holds--;
    law_touch_pool(law, op->pool);
    settle(law, op->pool);
    return true;
}

/* ---- graphs ---- */

/* A capture has no pool, or is the only one for the current begin of its pool. */
bool law_begin_capture(law_t *law, torture_op_t *op) {
    graph_state_t *graph = &law->graphs[op->graph];
    bool served = law->dialect & (TORTURE_GRAPHS_GPU | TORTURE_GRAPHS_MANAGED);
    if (!served || graph->life != GRAPH_NONE || op->stream >= TORTURE_STREAMS || !torture_is_capturable(op->stream)) return false;
    if (law->captured[op->stream]) return false;
    uint8_t pool = begun_for(law, op->stream, NULL);
    if (!pool && (!(law->dialect & TORTURE_CAPTURES_UNSAID) || law->program->threads > 1)) return false;
    if (pool && law->pools[pool - 1].captured) return false;
    law->duty.pool = pool;
    *graph = (graph_state_t){.life = GRAPH_CAPTURING, .origin = op->stream, .pool = pool};
    if (pool) law->pools[pool - 1].graphs++, law->pools[pool - 1].captured = true;
    enter(law, op->stream, op->graph);
    law_touch_graph(law, op->graph);
    if (pool) law_touch_pool(law, pool - 1u);
    return true;
}

bool law_end_capture(law_t *law, torture_op_t *op) {
    graph_state_t *graph = &law->graphs[op->graph];
    if (graph->life != GRAPH_CAPTURING) return false;
    op->stream = graph->origin;
    law->duty.waits = graph->members & ~torture_bit(graph->origin);
    law_touch_graph(law, op->graph);
    if (graph->pool) law_touch_pool(law, graph->pool - 1u);
    leave_all(law, op->graph);
    graph->life = GRAPH_READY;
    return true;
}

static bool is_there(const block_state_t *block) { return block->live || block->kept; }

/* Returns the streams that a launch must wait for: those with work on the pool or on the blocks that the graph uses. */
static torture_streams_t waits_of(law_t *law, const torture_op_t *op) {
    const graph_state_t *graph = &law->graphs[op->graph];
    torture_streams_t waits = graph->pool ? law_waits(&law->pools[graph->pool - 1].order, op->stream, true) : 0;
    for (uint32_t i = 0; i < law->use_count; i++) {
        const graph_use_t *use = &law->uses[i];
        const block_state_t *block = &law->blocks[use->block];
        if (use->graph == op->graph && is_there(block)) waits |= law_waits(&block->outside, op->stream, use->write);
    }
    return waits;
}

static void use_again(law_t *law, const torture_op_t *op) {
    for (uint32_t i = 0; i < law->use_count; i++) {
        const graph_use_t *use = &law->uses[i];
        block_state_t *block = &law->blocks[use->block];
        if (use->graph != op->graph || !is_there(block)) continue;
        law_touch(law, use->block);
        law_access(&block->outside, block->owner, op->stream, use->write);
        block->told &= ~torture_bit(op->stream);
    }
}

/* Counts the launch as a write of all blocks of the pool, because they may overlap the memory that the graph uses. */
static void use_whole_pool(law_t *law, uint8_t pool, uint32_t stream) {
    for (uint32_t i = 0; i < law->program->blocks && pool; i++) {
        block_state_t *block = &law->blocks[i];
        if (!block->live || block->pool != pool) continue;
        law_touch(law, i);
        law_access(&block->outside, block->owner, stream, true);
        block->told &= ~torture_bit(stream);
    }
    if (pool) law_access(&law->pools[pool - 1].order, STRATA_TORTURE_NO_STREAM, stream, true);
}

bool law_launch(law_t *law, torture_op_t *op) {
    graph_state_t *graph = &law->graphs[op->graph];
    if (graph->life != GRAPH_READY || graph->lost || op->stream >= TORTURE_STREAMS || law->captured[op->stream]) return false;
    if (torture_device_of(op->stream) != torture_device_of(graph->origin)) return false;
    law->duty.waits = waits_of(law, op);
    if (!law_may_wait(law, op->stream, law->duty.waits)) return false;
    law->duty.pool = graph->pool;
    law_touch_graph(law, op->graph);
    if (graph->pool) law_touch_pool(law, graph->pool - 1u);
    use_again(law, op);
    use_whole_pool(law, graph->pool, op->stream);
    graph->running |= torture_bit(op->stream);
    return true;
}

/* Waits for the graph's launches first. The driver reports the end of a graph after its launches, but a simulated device
 * reports it at once. */
bool law_destroy(law_t *law, torture_op_t *op) {
    graph_state_t *graph = &law->graphs[op->graph];
    if (graph->life != GRAPH_READY || (graph->running & law->captures)) return false;
    law->duty.syncs = graph->running;
    law_touch_graph(law, op->graph);
    graph->life = GRAPH_GONE;
    if (!graph->pool) return true;
    law_touch_pool(law, graph->pool - 1u);
    law->pools[graph->pool - 1].graphs--;
    settle(law, graph->pool - 1u);
    return true;
}
