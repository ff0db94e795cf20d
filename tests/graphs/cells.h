/* The cells of docs/graphs.md on both roads, each as a program that a device runs: a simulated one with the checker, CUDA's driver, or
 * what stands in for that. */
#ifndef STRATA_TESTS_GRAPHS_CELLS_H
#define STRATA_TESTS_GRAPHS_CELLS_H

#include "tests/graphs/graphs.h"

typedef struct graph_road {
    const char *name, *strategy;
} graph_road_t;

/* Every kind of cache and the driver's pool, with and without stream_safe. */
static const graph_road_t graph_roads[] = {
    {"strata", "strata"},
    {"auto_growth", "stack: [auto_growth, system]"},
    {"stream_safe", "stack: [stream_safe, auto_growth, system]"},
    {"pytorch", "pytorch"},
    {"pytorch_ignoring_streams", "stack: [caching: {streams: ignored}, system]"},
    {"tensorflow", "tensorflow"},
    {"paddle", "paddle"},
    {"buffered", "stack: [buffered, system]"},
    {"naive_best_fit", "stack: [naive_best_fit, system]"},
    {"thread_local", "stack: [thread_local, system]"},
    {"idle_chunks_go", "stack: [auto_growth: {free_idle_chunk: true}, system]"},
    {"huge_blocks", "stack: [naive_best_fit: {initial: 512KiB, reallocate: 512KiB}, system]"},
    {"cache_over_cache", "stack: [auto_growth, auto_growth: {chunk_size: 32MiB}, system]"},
    {"cuda_malloc_async", "cuda_malloc_async"},
    {"cuda_malloc_async_own_pool", "stack: [cuda_malloc_async: {pool: own}]"},
    {"stream_safe_cuda_malloc_async", "stack: [stream_safe, cuda_malloc_async]"},
    {"cache_over_cuda_malloc_async", "stack: [stream_safe, auto_growth, cuda_malloc_async]"},
    {"graph_cuda_malloc_async", "stack: [stream_safe, auto_growth, system]\ngraph: {stack: [cuda_malloc_async]}"},
    {"handles", "stack: [stream_safe, auto_growth_vmm, vmm]\ngraph: {stack: [stream_safe, auto_growth_vmm, vmm]}"},
    {"chunks_of_handles", "stack: [stream_safe, auto_growth, vmm]\ngraph: {stack: [auto_growth: {chunk_size: 8MiB}, vmm]}"},
    {"stack_of_its_own", "stack: [stream_safe, auto_growth, system]\ngraph: {stack: [auto_growth: {chunk_size: 8MiB}, system]}"},
};

/* Where a block was allocated and freed, inside a capture or outside. */
#define GRAPH_CELLS(X)                                                                                                             \
    X(allocated_and_freed_inside)                                                                                                  \
    X(allocated_inside_live_at_the_end)                                                                                            \
    X(allocated_inside_freed_outside)                                                                                              \
    X(allocated_outside_freed_inside)                                                                                              \
    X(allocated_and_freed_outside)

/* `borrowed`: another stream used the block, inside the capture. `device`: NULL, a simulated one of its own. */
#define GRAPH_CELL(cell) void graph_cell_##cell(const graph_road_t *road, bool borrowed, strata_device_t *device);
GRAPH_CELLS(GRAPH_CELL)
#undef GRAPH_CELL

#endif
