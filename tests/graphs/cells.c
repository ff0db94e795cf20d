/* The cells on a simulated device. */
#include "tests/graphs/cells.h"

#define CELL(cell)                                                                                                                 \
    TEST_EACH(graph_cells, cell, graph_road_t, graph_roads) { graph_cell_##cell(row, false, NULL); }                               \
    TEST_EACH(graph_cells, cell##_with_a_borrow, graph_road_t, graph_roads) { graph_cell_##cell(row, true, NULL); }

GRAPH_CELLS(CELL)
