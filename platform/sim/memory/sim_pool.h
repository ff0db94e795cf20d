/* Pools of stream-ordered memory. They are a model, because NVIDIA documents the rules of reuse but not
 * growth and packing.
 *
 * A pool grows by chunks of at least pool_chunk_bytes of the profile, or by the rounded request alone
 * if such a chunk does not fit. Growth costs the profile's pool_grow. Requests are cut from free blocks
 * by best fit, in units of 512 bytes. A free block records the stream of its free, that stream's count
 * of operations, and the time at which the stream reaches the free. A request may reuse it:
 *   - on the same stream, at once;
 *   - on any stream, once a host wait has shown that the free is done;
 *   - FOLLOW_EVENTS: on a stream that waited for an event recorded on the freeing stream after the free;
 *   - OPPORTUNISTIC: on any stream, once the free is done by the calling thread's clock;
 *   - INTERNAL: on any stream, which is made to wait for the free, if the pool cannot grow.
 * A host wait releases whole chunks with completed frees, at the price of pool_shrink, while more than
 * the release threshold is reserved. Shareable pools keep everything, as the driver's do. */
#ifndef STRATA_PLATFORM_SIM_POOL_H
#define STRATA_PLATFORM_SIM_POOL_H

#include "platform/sim/world/sim_internal.h"

typedef struct sim_block sim_block_t;
typedef struct sim_chunk sim_chunk_t;

struct sim_block {
    sim_region_t region; /* first; among the world's regions while live */
    sim_node_t by_size; /* in pool->idle while free: key size, tie address */
    sim_chunk_t *chunk;
    sim_block_t *before, *after; /* neighbors in the chunk */
    uint64_t size;
    bool live;
    uint64_t stream_id; /* if free: the stream on which it was freed; 0 if any stream may use it */
    uint64_t operations, ready;
    uint64_t graph; /* id of the capture that allocated it; 0 if none */
    bool graph_live; /* launched and not freed since */
    bool freed_inside; /* freed by its own graph, at each launch */
};

struct sim_chunk {
    sim_pool_t *pool;
    sim_chunk_t *next;
    sim_block_t *first;
    uint64_t size;
    uint8_t *host;
};

struct sim_pool {
    sim_device_t *device;
    sim_pool_t *next;
    sim_chunk_t *chunks;
    sim_tree_t idle;
    uint64_t owned; /* idle blocks that still belong to a stream */
    uint64_t handle; /* 0 if it is hidden, or destroyed and waiting for its last block */
    uint64_t max_size, threshold;
    uint64_t reserved, reserved_high, used, used_high, live;
    bool shareable, destroyed, follow, opportunistic, internal;
    uint32_t access; /* bit per device besides its own */
};

sim_pool_t *sim_pool_new(sim_device_t *device, uint64_t max_size, bool shareable);
/* Frees all idle memory and the pool itself. No block may be live. */
void sim_pool_drop(sim_pool_t *pool);
/* Allocates a block for `stream`. */
strata_status_t sim_pool_allocate_block(sim_pool_t *pool, uint64_t size, sim_stream_t *stream, sim_block_t **block);
/* Frees the block in the order of `stream`. If that is NULL, the host has waited and any stream may use
 * it at once. */
void sim_pool_free_block(sim_block_t *block, sim_stream_t *stream);
/* Releases whole chunks that are free by the calling thread's clock while more than `keep` is reserved. */
void sim_pool_shrink(sim_pool_t *pool, uint64_t keep);
/* Makes blocks with completed frees usable by any stream. */
void sim_pool_observe(sim_pool_t *pool);

/* Returns the end of a chunk of the device's pools that overlaps [begin, end), or 0 if there is none. */
uint64_t sim_pools_taken_until(const sim_device_t *device, uint64_t begin, uint64_t end);

/* Memory of graphs (sim_graph.c). The first two add nodes to the stream's capture. A NULL stream of the
 * third means that the host has waited for the device. */
strata_status_t sim_graph_malloc(sim_stream_t *stream, uint64_t size, strata_address_t *address);
strata_status_t sim_graph_free_node(sim_stream_t *stream, sim_region_t *region);
strata_status_t sim_graph_free(sim_stream_t *stream, sim_block_t *block);

#endif
