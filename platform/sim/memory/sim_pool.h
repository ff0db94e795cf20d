/* Pools of stream-ordered memory: a model, since NVIDIA documents the rules of reuse but not growth and packing.
 *
 * A pool grows by chunks of at least pool_chunk_bytes of the profile (by the rounded request alone where that does not fit),
 * at cudaMalloc's price, and cuts them best fit in units of 512 bytes. A free block remembers the stream that it was freed
 * on, that stream's count of operations and when the stream gets there. Who may have it:
 *   the same stream, at once;
 *   any stream, once a host wait has seen the free done;
 *   FOLLOW_EVENTS: a stream that waited for an event recorded on the freeing stream after the free;
 *   OPPORTUNISTIC: any stream, once the free is done by the calling thread's clock;
 *   INTERNAL: any stream, made to wait for the free, when the pool cannot grow.
 * At a host wait whole chunks whose frees are done go back while more than the release threshold is reserved, at cudaFree's
 * price. Shareable pools keep everything, as the driver's do.
 */
#ifndef STRATA_PLATFORM_SIM_POOL_H
#define STRATA_PLATFORM_SIM_POOL_H

#include "platform/sim/world/sim_internal.h"

typedef struct sim_block sim_block_t;
typedef struct sim_chunk sim_chunk_t;

struct sim_block {
    sim_region_t region; /* first; among the world's regions while live */
    sim_node_t by_size; /* in pool->idle while free: key size, tie address */
    sim_chunk_t *chunk;
    sim_block_t *before, *after; /* neighbours in the chunk */
    uint64_t size;
    bool live;
    uint64_t stream_id; /* free: the stream that it was freed on; 0: belongs to nobody any more */
    uint64_t operations, ready;
    uint64_t graph; /* number of the capture whose memory it is; 0: none */
    bool graph_live; /* launched and not freed since */
    bool freed_inside; /* by its own graph, at each launch */
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
    uint64_t handle; /* 0: hidden, or destroyed and waiting for its last block */
    uint64_t max_size, threshold;
    uint64_t reserved, reserved_high, used, used_high, live;
    bool shareable, destroyed, follow, opportunistic, internal;
    uint32_t access; /* bit per device besides its own */
};

sim_pool_t *sim_pool_new(sim_device_t *device, uint64_t max_size, bool shareable);
/* Gives back everything idle and the pool itself; no block is live. */
void sim_pool_drop(sim_pool_t *pool);
/* A live block for `stream`. */
strata_status_t sim_pool_take(sim_pool_t *pool, uint64_t size, sim_stream_t *stream, sim_block_t **block);
/* The block is free as of now on `stream`; NULL: for anybody, since the host waited. */
void sim_pool_give(sim_block_t *block, sim_stream_t *stream);
/* Whole chunks that are free by the calling thread's clock go back while more than `keep` is reserved. */
void sim_pool_shrink(sim_pool_t *pool, uint64_t keep);
/* Blocks whose frees are done belong to nobody any more. */
void sim_pool_observe(sim_pool_t *pool);

/* Returns the end of a chunk of the device's pools that overlaps [begin, end), or 0 if there is none. */
uint64_t sim_pools_taken_until(const sim_device_t *device, uint64_t begin, uint64_t end);

/* Memory of graphs (sim_graph.c). The first two are nodes of the stream's capture; no stream: after a wait for the device. */
strata_status_t sim_graph_malloc(sim_stream_t *stream, uint64_t size, strata_address_t *address);
strata_status_t sim_graph_free_node(sim_stream_t *stream, sim_region_t *region);
strata_status_t sim_graph_free(sim_stream_t *stream, sim_block_t *block);

#endif
