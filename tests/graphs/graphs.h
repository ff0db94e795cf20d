/* A program that captures graphs on a simulated device, with the happens-before checker on. */
#ifndef STRATA_TESTS_GRAPHS_H
#define STRATA_TESTS_GRAPHS_H

#include "lab/conform/rig/rig.h"
#include "platform/sim/checker/checker.h"
#include "tests/harness/test.h"

typedef struct captured {
    rig_t rig;
    strata_checker_t *checker;
    strata_stream_t stream, other; /* the one that is captured; another one */
    uint64_t pool;
    strata_graph_t graph;
} captured_t;

/* A facade by preset or by text over one checked device, and two streams. */
void captured_open(captured_t *c, const char *preset_or_text);
/* The same with so many bytes on the device. */
void captured_open_in(captured_t *c, const char *preset_or_text, uint64_t capacity);
/* The same over a device that the caller closes, without the checker; NULL: a simulated one. */
void captured_open_on(captured_t *c, const char *preset_or_text, strata_device_t *device);
/* Nothing is live, no graph exists: all of the device's memory goes back. No hazard was seen. */
void captured_close(captured_t *c);

/* begin of a pool (c->pool: 0, or one that there is) and of the capture of c->stream. */
void captured_begin(captured_t *c);
/* End of the capture, whose graph is c->graph, and of the pool; the graph alone keeps it then. */
void captured_end(captured_t *c);
/* Destroys c->graph. */
void captured_destroy(captured_t *c);
/* A kernel that writes the block. */
void captured_work(captured_t *c, strata_stream_t stream, const strata_block_t *block);
/* Launches c->graph and waits for it. */
void captured_launch(captured_t *c);
/* Whether requests outside captures, of every size up to that of the block and of both streams, get none of its bytes. */
bool captured_is_spared(captured_t *c, const strata_block_t *block);
strata_graph_pool_info_t captured_pool(captured_t *c);

#endif
