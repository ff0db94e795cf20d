/* Graphs: their launch, their memory and their destruction. */
#include "platform/sim/graphs/sim_graph.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "platform/sim/world/checker_hooks.h"

sim_graph_t *sim_graph_new(sim_device_t *device, uint64_t id) {
    sim_graph_t *graph = calloc(1, sizeof *graph);
    if (!graph) return NULL;
    graph->device = device;
    graph->id = id;
    return graph;
}

bool sim_room(void **array, size_t count, size_t size) {
    if (count & (count - 1)) return true;
    void *more = realloc(*array, (count ? 2 * count : 1) * size);
    if (more) *array = more;
    return more != NULL;
}

bool sim_graph_add_fill(sim_graph_t *graph, sim_fill_t fill) {
    void *fills = graph->fills;
    if (!sim_room(&fills, graph->fill_count, sizeof fill)) return false;
    graph->fills = fills;
    graph->fills[graph->fill_count++] = fill;
    return true;
}

bool sim_graph_add_block(sim_graph_t *graph, sim_block_t *block) {
    void *blocks = graph->blocks;
    if (!sim_room(&blocks, graph->block_count, sizeof *graph->blocks)) return false;
    graph->blocks = blocks;
    graph->blocks[graph->block_count++] = block;
    return true;
}

bool sim_graph_add_free(sim_graph_t *graph, strata_address_t address) {
    void *frees = graph->frees;
    if (!sim_room(&frees, graph->free_count, sizeof *graph->frees)) return false;
    graph->frees = frees;
    graph->frees[graph->free_count++] = address;
    return true;
}

/* ---- memory of graphs: fixed addresses from the capture until the graph is destroyed ---- */

strata_status_t sim_graph_malloc(sim_stream_t *stream, uint64_t size, strata_address_t *address) {
    sim_device_t *device = stream->device;
    if (!device->graph_pool && !(device->graph_pool = sim_pool_new(device, 0, false))) return sim_no_host_memory();
    strata_status_t status = sim_capture_step(stream, 0);
    if (status != STRATA_OK) return status;
    sim_block_t *block;
    status = sim_pool_allocate_block(device->graph_pool, size, NULL, &block);
    if (status != STRATA_OK) return status;
    if (!sim_graph_add_block(stream->capture->graph, block)) {
        sim_pool_free_block(block, NULL);
        return sim_no_host_memory();
    }
    block->graph = stream->capture->graph->id;
    check_on_graph_memory(stream->capture->graph, block->region.node.key, size);
    *address = block->region.node.key;
    return STRATA_OK;
}

static strata_status_t invalid(const char *what) {
    return strata_fail(STRATA_E_DEVICE, SIM_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE: %s", what);
}

/* Returns true for memory of a graph, also if its graph was destroyed. */
static bool is_of_graphs(const sim_region_t *region) {
    return region->kind == SIM_REGION_BLOCK && ((const sim_block_t *)region)->chunk->pool == region->device->graph_pool;
}

/* A graph may free its own memory once; after that no other call may free it. Memory that it leaves
 * allocated may be freed by another graph's launch. */
strata_status_t sim_graph_free_node(sim_stream_t *stream, sim_region_t *region) {
    sim_graph_t *graph = stream->capture->graph;
    if (!is_of_graphs(region)) return sim_capture_refuse_free(stream, region->node.key);
    sim_block_t *block = (sim_block_t *)region;
    if (block->freed_inside) return invalid("this memory of a graph is freed by the graph itself");
    bool own = block->graph == graph->id;
    sim_charge(region->device, &region->device->world->profile.free_async, region->size);
    strata_status_t status = sim_capture_step(stream, 0);
    if (status != STRATA_OK) return status;
    if (!own && !sim_graph_add_free(graph, region->node.key)) return sim_no_host_memory();
    block->freed_inside = own;
    return STRATA_OK;
}

bool sim_pool_may_free(const sim_region_t *region) {
    const sim_block_t *block = (const sim_block_t *)region;
    if (!block->graph || block->graph_live) return true;
    invalid("this memory of a graph is not live");
    return false;
}

strata_status_t sim_graph_free(sim_stream_t *stream, sim_block_t *block) {
    if (!sim_pool_may_free(&block->region)) return STRATA_E_DEVICE;
    block->graph_live = false;
    if (stream) stream->operations++;
    return STRATA_OK;
}

strata_status_t sim_pool_free(sim_region_t *region) {
    sim_block_t *block = (sim_block_t *)region;
    if (block->graph) return sim_graph_free(NULL, block);
    check_on_memory_freed(region->device, region->node.key, region->size, NULL);
    sim_pool_free_block(block, NULL);
    return STRATA_OK;
}

static void blocks_end(sim_graph_t *graph) {
    for (size_t i = 0; i < graph->block_count; i++) {
        sim_block_t *block = graph->blocks[i];
        if (!block->graph_live) {
            check_on_graph_memory_freed(graph->device, block->region.node.key, block->region.size);
            sim_pool_free_block(block, NULL);
            continue;
        }
        block->graph = 0; /* outlives the graph, and is then freed like any other block */
        block->graph_live = false;
    }
    if (graph->block_count) sim_pool_shrink(graph->device->graph_pool, 0);
}

/* ---- launch ---- */

/* Returns the live memory of graphs at an address that a graph had, or NULL. Such addresses are never
 * used for anything else. */
static sim_block_t *live_at(const sim_graph_t *graph, strata_address_t address) {
    sim_block_t *block = (sim_block_t *)sim_region_at(graph->device->world, address);
    bool live = block && block->region.node.key == address && (!block->graph || block->graph_live);
    return live ? block : NULL;
}

/* Memory that the last launch left allocated is freed first, as by the instances that the CUDA device
 * creates. */
static strata_status_t blocks_launch(const sim_graph_t *graph) {
    for (size_t i = 0; i < graph->free_count; i++)
        if (!live_at(graph, graph->frees[i])) return invalid("this graph frees memory of another, which is not live");
    for (size_t i = 0; i < graph->block_count; i++) graph->blocks[i]->graph_live = !graph->blocks[i]->freed_inside;
    return STRATA_OK;
}

/* Called after everything else that a launch does. */
static void frees_launch(const sim_graph_t *graph, sim_stream_t *stream) {
    for (size_t i = 0; i < graph->free_count; i++) {
        sim_block_t *block = live_at(graph, graph->frees[i]);
        if (block && block->graph) block->graph_live = false;
        else if (block) {
            check_on_memory_freed(graph->device, block->region.node.key, block->region.size, stream);
            sim_pool_free_block(block, stream);
        }
    }
}

static strata_status_t fills_launch(const sim_graph_t *graph, uint64_t end) {
    for (size_t i = 0; i < graph->fill_count; i++) {
        const sim_fill_t *fill = &graph->fills[i];
        if (!sim_touch(graph->device, fill->address, fill->size, end)) {
            sim_mark_lost(graph->device, SIM_CU_ILLEGAL_ADDRESS);
            return strata_fail(STRATA_E_DEVICE_LOST, SIM_CU_ILLEGAL_ADDRESS,
                               "CUDA_ERROR_ILLEGAL_ADDRESS: a graph fills 0x%llx, which it must not",
                               (unsigned long long)fill->address);
        }
        uint8_t *view = sim_view(graph->device->world, fill->address, fill->size);
        if (view) memset(view, fill->byte, fill->size);
    }
    return STRATA_OK;
}

static strata_status_t launch(sim_device_t *device, strata_handle_t graph_handle, strata_handle_t stream_handle) {
    sim_graph_t *graph = sim_handle_find(device, SIM_GRAPH, (uintptr_t)graph_handle, STRATA_E_DEVICE);
    if (!graph) return STRATA_E_DEVICE;
    sim_stream_t *stream = sim_stream_for_work(device, stream_handle);
    if (!stream) return strata_last_error()->status;
    if (stream->capture)
        return strata_fail(STRATA_E_UNSUPPORTED, SIM_CU_NOT_SUPPORTED,
                           "CUDA_ERROR_NOT_SUPPORTED: a graph inside a graph is not simulated");
    strata_status_t status = blocks_launch(graph);
    if (status != STRATA_OK) return status;
    sim_charge(device, &device->world->profile.launch, 0);
    sim_stream_extend(stream, graph->end);
    graph->end = sim_submit(stream, graph->duration);
    check_on_launch(graph, stream);
    status = fills_launch(graph, graph->end);
    frees_launch(graph, stream);
    return status;
}

strata_status_t sim_op_graph_launch(strata_device_t *base, strata_handle_t graph, strata_handle_t stream) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_graph_launch);
    if (status != STRATA_OK) return status;
    return sim_end(device, launch(device, graph, stream));
}

/* ---- destruction ---- */

void sim_graph_drop(sim_graph_t *graph) {
    blocks_end(graph);
    sim_callback_t **last = &graph->callbacks;
    while (*last) last = &(*last)->next;
    *last = graph->device->world->callbacks;
    graph->device->world->callbacks = graph->callbacks;
    check_graph_end(graph);
    free(graph->fills);
    free(graph->blocks);
    free(graph->frees);
    free(graph);
}

strata_status_t sim_op_graph_destroy(strata_device_t *base, strata_handle_t handle) {
    sim_device_t *device = sim_of(base);
    strata_status_t status = sim_begin(device, STRATA_CALL_graph_destroy);
    if (status != STRATA_OK) return status;
    sim_graph_t *graph = sim_handle_find(device, SIM_GRAPH, (uintptr_t)handle, STRATA_E_DEVICE);
    if (!graph) return sim_end(device, STRATA_E_DEVICE);
    sim_handle_drop(device, SIM_GRAPH, (uintptr_t)handle);
    sim_graph_drop(graph);
    return sim_end(device, STRATA_OK);
}

static void *run_list(void *argument) {
    for (sim_callback_t *at = argument, *next; at; at = next) {
        next = at->next;
        at->call(at->context);
        free(at);
    }
    return NULL;
}

void sim_callbacks_run(sim_callback_t *list) {
    pthread_t thread;
    if (!list) return;
    if (pthread_create(&thread, NULL, run_list, list) == 0) pthread_join(thread, NULL);
    else run_list(list);
}
