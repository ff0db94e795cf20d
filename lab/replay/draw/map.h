/* The contents of the chunks of a run's devices at one moment. A map outlives its run, so that it can be drawn later. */
#ifndef STRATA_REPLAY_MAP_H
#define STRATA_REPLAY_MAP_H

#include "facade/figures/chunks.h"
#include "lab/replay/run/run.h"
#include "lab/replay/stats/stats.h"

/* A live, free or deferred block, as in a row of a snapshot. */
typedef struct strata_map_span {
    uint64_t size;
    uint64_t requested; /* 0 unless the block is live */
    uint32_t state;
    uint32_t lifetime; /* of the trace if the block is live, else STRATA_TRACE_NONE */
} strata_map_span_t;

typedef struct strata_map_chunk {
    char place[STRATA_STATS_NAME], stream[STRATA_STATS_NAME];
    uint64_t size, largest_free;
    uint64_t bytes[STRATA_CHUNK_STATES];
    size_t blocks[STRATA_CHUNK_STATES];
    size_t first, count; /* range in the map's spans */
} strata_map_chunk_t;

typedef struct strata_map {
    size_t rows; /* rows of the trace carried out so far; 0 if the run never reserved anything */
    strata_map_chunk_t *chunks;
    size_t chunk_count, chunk_room;
    strata_map_span_t *spans;
    size_t span_count, span_room;
    strata_status_t status; /* E_HOST_MEMORY if the map is incomplete */
} strata_map_t;

/* A strata_run_inspect_fn. The context is a zeroed strata_map_t. */
void strata_map_fill(void *map, const strata_run_moment_t *moment);
void strata_map_delete(strata_map_t *map);

#endif
