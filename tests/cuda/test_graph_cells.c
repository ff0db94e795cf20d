/* The cells of captured graphs over the CUDA device, with a driver that has CUDA's semantics. */
#include "platform/cuda/cuda.h"
#include "tests/cuda/fake/fake_driver.h"
#include "tests/graphs/cells.h"

static void over_the_driver(void (*cell)(const graph_road_t *, bool, strata_device_t *), const graph_road_t *road, bool borrowed) {
    strata_device_t *device;
    fake_reset();
    fake_options.memory = UINT64_C(16) << 30;
    fake_options.address_space = UINT64_C(1) << 44;
    ASSERT_OK(strata_cuda_open(0, &device));
    cell(road, borrowed, device);
    strata_device_close(device);
    fake_reset();
}

#define CELL(cell)                                                                                                                 \
    TEST_EACH(cuda_graph_cells, cell, graph_road_t, graph_roads) { over_the_driver(graph_cell_##cell, row, false); }               \
    TEST_EACH(cuda_graph_cells, cell##_with_a_borrow, graph_road_t, graph_roads) { over_the_driver(graph_cell_##cell, row, true); }

GRAPH_CELLS(CELL)
