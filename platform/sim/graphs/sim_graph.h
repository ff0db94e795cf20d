/* Captures and the graphs that result from them. docs/profiles.md lists the properties of a graph that
 * are modeled. */
#ifndef STRATA_PLATFORM_SIM_GRAPH_H
#define STRATA_PLATFORM_SIM_GRAPH_H

#include "platform/sim/memory/sim_pool.h"

typedef struct sim_callback sim_callback_t;
struct sim_callback {
    sim_callback_t *next;
    void (*call)(void *);
    void *context;
};

typedef struct sim_fill {
    strata_address_t address;
    uint64_t size;
    uint8_t byte;
} sim_fill_t;

/* The effects of a launch: it takes `duration`, makes `fills`, allocates `blocks`, and frees memory of
 * other graphs. */
typedef struct sim_graph {
    sim_device_t *device;
    uint64_t id; /* of the capture */
    uint64_t duration;
    uint64_t end; /* end of the last launch, since launches of one graph do not overlap */
    sim_fill_t *fills;
    size_t fill_count;
    sim_block_t **blocks;
    size_t block_count;
    strata_address_t *frees;
    size_t free_count;
    sim_callback_t *callbacks;
    struct sim_checked_graph *checked; /* owned by the checker */
} sim_graph_t;

struct sim_capture {
    sim_capture_t *next;
    sim_graph_t *graph;
    strata_capture_mode_t mode;
    uint64_t thread;
    bool invalid;
    size_t count; /* streams that ever joined; the first began it */
    sim_stream_t *streams[SIM_CAPTURE_STREAMS]; /* NULL if the stream was destroyed */
    uint64_t time[SIM_CAPTURE_STREAMS]; /* total duration of the work that each stream has captured */
    /* For each stream: the number of operations of every other stream that precede its next one, by
     * event waits. */
    uint64_t seen[SIM_CAPTURE_STREAMS][SIM_CAPTURE_STREAMS];
};

sim_graph_t *sim_graph_new(sim_device_t *device, uint64_t id);
/* Destroys the graph and frees its memory. Its callbacks run once the lock is released. */
void sim_graph_drop(sim_graph_t *graph);
bool sim_graph_add_fill(sim_graph_t *graph, sim_fill_t fill);
bool sim_graph_add_block(sim_graph_t *graph, sim_block_t *block);
bool sim_graph_add_free(sim_graph_t *graph, strata_address_t address);
/* Makes room for one more element after `count`, in an array that grows by powers of two. Returns false
 * if there is no host memory. */
bool sim_room(void **array, size_t count, size_t size);
/* Records an operation of a captured stream. Fails with E_CAPTURE if the capture is invalid. */
strata_status_t sim_capture_step(sim_stream_t *stream, uint64_t duration);
/* Refuses a free of memory that no graph allocated, which invalidates the capture. */
strata_status_t sim_capture_refuse_free(sim_stream_t *stream, strata_address_t address);
/* Runs the callbacks of destroyed graphs, on a separate thread as the driver does. Called without the lock. */
void sim_callbacks_run(sim_callback_t *list);

#endif
