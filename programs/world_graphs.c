/* The calls of programs for captures, graphs and their pools. They report to the checker which pool serves a capture, and when
 * the blocks that a pool owned are freed. */
#include "platform/host/host_memory.h"
#include "programs/world.h"

static strata_place_t gpu_of(uint32_t stream) { return strata_gpu(torture_device_of(stream)); }

static bool has_failed(const torture_world_t *w) { return atomic_load(&w->failed); }

void torture_stream_wait(torture_world_t *w, uint32_t stream, uint32_t other) {
    if (torture_device_of(stream) != torture_device_of(other)) torture_order(w, stream, other);
    else if (!has_failed(w))
        (void)torture_expect_ok(w, strata_stream_wait(w->s, gpu_of(stream), w->streams[stream], w->streams[other]), "stream_wait");
    if (w->captured[other]) w->captured[stream] = w->captured[other];
}

/* ---- pools ---- */

static void report_pool(torture_world_t *w, uint32_t graph, uint32_t pool) {
    strata_checker_capture_pool(w->checker, w->graphs[graph].capture, pool + 1);
}

static void end_unopened(torture_world_t *w) {
    pthread_mutex_lock(&w->lock);
    w->verdict.unopened = true;
    pthread_mutex_unlock(&w->lock);
    atomic_store(&w->failed, true);
}

/* A layer that gets memory at the begin may find too little of it. The run then ends without a fault. */
void torture_pool_begin(torture_world_t *w, uint32_t pool, uint32_t place, uint32_t stream) {
    torture_pool_t *p = &w->pools[pool];
    if (has_failed(w)) return;
    strata_status_t status = strata_graph_pool_begin(w->s, torture_place_of(place), w->streams[stream], &p->number);
    if (status == STRATA_E_NO_MEMORY && (w->small || w->may_refuse)) {
        end_unopened(w);
        return;
    }
    if (!torture_expect_ok(w, status, "graph_pool_begin")) return;
    p->place = (uint8_t)place;
    atomic_store(&w->has_pools, true);
    if (w->captured[stream]) report_pool(w, w->captured[stream] - 1u, pool);
}

void torture_pool_end(torture_world_t *w, uint32_t pool) {
    const torture_pool_t *p = &w->pools[pool];
    if (has_failed(w)) return;
    (void)torture_expect_ok(w, strata_graph_pool_end(w->s, torture_place_of(p->place), p->number), "graph_pool_end");
    torture_check_hazards(w);
}

void torture_pool_remove(torture_world_t *w, uint32_t pool) {
    const torture_pool_t *p = &w->pools[pool];
    if (has_failed(w)) return;
    (void)torture_expect_ok(w, strata_graph_pool_remove(w->s, torture_place_of(p->place), p->number), "graph_pool_remove");
    torture_check_hazards(w);
}

void torture_set_owners(torture_world_t *w, uint32_t block, uint32_t owned) { w->blocks[block].owned = owned; }

/* Returns the block, or NULL for a graph or a pool. */
static torture_block_t *block_of(torture_world_t *w, uint32_t touched) {
    return touched >= TORTURE_FIRST_BLOCK ? &w->blocks[touched - TORTURE_FIRST_BLOCK] : NULL;
}

void torture_report_pool_freed(torture_world_t *w, uint32_t pool, const uint32_t *touched, uint32_t count) {
    uint32_t owner = UINT32_C(1) << pool;
    for (uint32_t i = 0; i < count && !has_failed(w); i++) {
        torture_block_t *b = block_of(w, touched[i]);
        if (!b || !b->freed || !(b->owned & owner)) continue;
        b->owned &= ~owner;
        if (!b->owned) strata_checker_freed(w->checker, b->block.ref);
    }
    torture_check_hazards(w);
}

/* ---- captures ---- */

void torture_capture(torture_world_t *w, uint32_t graph, uint32_t stream, uint8_t pool) {
    torture_graph_t *g = &w->graphs[graph];
    strata_capture_status_t capture;
    if (has_failed(w)) return;
    g->device = torture_device_of(stream);
    strata_status_t status = strata_capture_begin(w->s, gpu_of(stream), w->streams[stream]);
    if (status == STRATA_OK)
        status = strata_device_capture_status(w->devices[g->device], w->streams[stream], &capture, &g->capture);
    if (!torture_expect_ok(w, status, "capture_begin")) return;
    w->captured[stream] = (uint8_t)(graph + 1);
    if (pool) report_pool(w, graph, pool - 1u);
}

void torture_end_capture(torture_world_t *w, uint32_t graph, uint32_t stream) {
    torture_graph_t *g = &w->graphs[graph];
    if (has_failed(w)) return;
    for (uint32_t s = 0; s < TORTURE_STREAMS; s++)
        if (w->captured[s] == graph + 1) w->captured[s] = 0;
    if (torture_expect_ok(w, strata_capture_end(w->s, gpu_of(stream), w->streams[stream], &g->handle), "capture_end"))
        atomic_fetch_add(&w->captures, 1);
}

bool torture_note_written(torture_world_t *w, uint32_t stream, const torture_written_t *written) {
    uint8_t graph = stream < TORTURE_STREAMS ? w->captured[stream] : 0;
    if (!graph) return false;
    torture_graph_t *g = &w->graphs[graph - 1];
    if (g->count == g->room) {
        uint32_t room = g->room ? 2 * g->room : 16;
        torture_written_t *more = strata_host_resize(g->written, room, sizeof *more);
        if (!more) torture_fail(w, TORTURE_FAULT_HOST, 0, "out of host memory for the writes of a graph");
        if (!more) return true;
        g->written = more;
        g->room = room;
    }
    g->written[g->count++] = *written;
    return true;
}

/* ---- launches ---- */

/* Applies the last write of the graph to each block. The simulated device has done the fills already, so only the bytes of kernels
 * are written here. */
static void apply_writes(torture_world_t *w, const torture_graph_t *g, uint32_t launch) {
    for (uint32_t i = g->count; i > 0; i--) {
        const torture_written_t *written = &g->written[i - 1];
        torture_block_t *b = &w->blocks[written->block];
        if (!b->live || b->launched == launch) continue;
        b->launched = launch;
        b->known = true;
        b->mark = written->filled ? written->byte : b->mark;
        if (!written->filled) torture_write_marks(w, b);
    }
}

/* Marks the contents of the pool's blocks unknown, because they may overlap the memory that the graph uses. */
static void forget_contents(torture_world_t *w, uint8_t pool, const uint32_t *touched, uint32_t count) {
    for (uint32_t i = 0; i < count && pool; i++) {
        torture_block_t *b = block_of(w, touched[i]);
        if (b && b->pool == pool) b->known = false;
    }
}

void torture_launch(torture_world_t *w, uint32_t graph, uint32_t stream, uint8_t pool, const uint32_t *touched, uint32_t count) {
    const torture_graph_t *g = &w->graphs[graph];
    if (has_failed(w)) return;
    uint32_t launch = atomic_fetch_add(&w->launches, 1) + 1;
    forget_contents(w, pool, touched, count);
    if (!torture_expect_ok(w, strata_graph_launch(w->s, strata_gpu(g->device), g->handle, w->streams[stream]), "graph_launch"))
        return;
    torture_check_hazards(w);
    if (!has_failed(w)) apply_writes(w, g, launch);
}

void torture_destroy(torture_world_t *w, uint32_t graph) {
    const torture_graph_t *g = &w->graphs[graph];
    if (has_failed(w)) return;
    (void)torture_expect_ok(w, strata_graph_destroy(w->s, strata_gpu(g->device), g->handle), "graph_destroy");
    torture_check_hazards(w);
}
