/* The cells of captured graphs on a real GPU. */
#include "tests/gpu/gpu.h"
#include "tests/graphs/cells.h"

#define CELL(cell)                                                                                                                 \
    TEST_EACH(gpu_graph_cells, cell, graph_road_t, graph_roads) {                                                                  \
        GPU_OR_SKIP(device);                                                                                                       \
        GPU_NEEDS(device, capture);                                                                                                \
        GPU_NEEDS(device, work);                                                                                                   \
        for (int borrowed = 0; borrowed < 2; borrowed++) graph_cell_##cell(row, borrowed, device);                                 \
        strata_device_close(device);                                                                                               \
    }

GRAPH_CELLS(CELL)
