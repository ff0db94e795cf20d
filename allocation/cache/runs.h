/* Chunks that grow and shrink one physical handle at a time. Each handle is a part, mapped at some address. Parts that
 * touch form one chunk, a run. A block may extend over several parts of a run.
 *
 *     addresses  |..|== part ==|= part =|== part ==|.......|== part ==|..     dots are gaps without a mapping
 *     runs          |----------- run 1 ------------|       |-- run 2 --|
 *     blocks        o| live |   free    |  live    |o     o|   free   |o      o is a record of no bytes
 *
 * A part is added at either end of a run or between two runs, which become one. An idle part may be removed from the
 * middle of a run, which becomes two.
 *
 * A block does not refer to its run, since all blocks have the same chunk number. So no block changes when runs do. The
 * blocks of a run are between two records of no bytes, which are never idle. They give access to the first and the last
 * block of a run, and they stop the coalescing of a freed block.
 *
 * The first part of a run is its chunk in the list (strata_chunk_t), and the others follow in its chain of parts. All
 * parts are also in one order by address. Guarded by the lock of the cache's stack.
 *
 *     runs.c      adds, joins and removes parts
 *     handles.c   finds a gap for a handle, and maps it there */
#ifndef STRATA_ALLOCATION_CACHE_RUNS_H
#define STRATA_ALLOCATION_CACHE_RUNS_H

#include "allocation/cache/chunks.h"

enum { STRATA_RUNS_NUMBER = 1 }; /* the chunk number of all blocks */

typedef struct strata_run_part {
    strata_chunk_t chunk; /* if the part begins no run, only `part` and `below` are used */
    strata_order_link_t link; /* by address */
    uint64_t at, size;
} strata_run_part_t;

typedef struct strata_runs {
    strata_chunks_t *chunks;
    strata_order_t parts;
} strata_runs_t;

/* Initializes the runs, after strata_chunks_init(). The nodes of `chunks` must begin with strata_run_part_t. */
void strata_runs_init(strata_runs_t *self, strata_chunks_t *chunks);

static inline strata_run_part_t *strata_run_part_at(const strata_runs_t *self, uint32_t part) {
    return strata_node(&self->chunks->nodes, part);
}
/* The first returns the run that contains an address, the second the part. Both return 0 if there is none. */
static inline uint32_t strata_runs_find(strata_runs_t *self, uint64_t address) {
    return strata_chunks_number_at(self->chunks, address);
}
uint32_t strata_runs_find_part(strata_runs_t *self, uint64_t address);
/* Returns the first part that begins at an address or above it, or 0 if there is none. */
static inline uint32_t strata_runs_part_from(strata_runs_t *self, uint64_t address) {
    return strata_order_from(&self->parts, &(strata_order_key_t){address, 0, 0});
}
static inline uint32_t strata_runs_next_part(const strata_runs_t *self, uint32_t part) {
    return strata_order_next(&self->parts, part);
}
/* Return the slots of the first and of the last block of a run. */
static inline uint32_t strata_runs_first_block(const strata_runs_t *self, uint32_t run) {
    return strata_slab_record(&self->chunks->base.stack->slab, strata_chunk_at(self->chunks, run)->first)->next;
}
static inline uint32_t strata_runs_last_block(const strata_runs_t *self, uint32_t run) {
    return strata_slab_record(&self->chunks->base.stack->slab, strata_chunk_at(self->chunks, run)->last)->prev;
}

/* Adds memory from below as a part. Its block is free, in no index, and not coalesced. Returns the block's
 * slot, or 0, with nothing changed, if the limit of parts or blocks is reached. */
uint32_t strata_runs_add(strata_runs_t *self, strata_record_t *below);
/* Removes a part and returns the memory below it. `block` is a block that covers exactly the part and is in no
 * index. If `block` is 0, the part must be idle, and its block is carved out of the free block at or near
 * `near`. Returns NULL, with nothing changed, if the part is not idle or no slot is left. */
strata_record_t *strata_runs_remove(strata_runs_t *self, uint32_t part, uint32_t block, uint32_t near);

/* ---- handles (handles.c) ---- */

/* Unmapped addresses before, between or after runs. */
typedef struct strata_gap {
    uint64_t begin, end;
    uint32_t run, next; /* the run that ends where the gap begins, and the one that begins where it ends, or 0 */
} strata_gap_t;
/* Finds the next gap of a range that ends at `limit`, in address order. For the first call, gap->end is the
 * start of the range, and the rest is 0. Returns false if there is none. */
bool strata_runs_next_gap(strata_runs_t *self, uint64_t limit, strata_gap_t *gap);
/* Maps a handle of `size` bytes at an address, with the locks open. *slot is set to that of its block, which is
 * free, in no index, and not yet coalesced. Returns E_LIMIT if the limit of parts or blocks is reached, after
 * it gave the handle back. Other errors are those of the layer below. */
strata_status_t strata_runs_map(strata_runs_t *self, uint64_t at, uint64_t size, const strata_request_t *request, uint32_t *slot);
/* Returns true if only the source took part in serving a handle. Any other layer may have left work on it, as
 * `fill` does. Then even a handle that no block has used must not be unmapped before that work is done. */
static inline bool strata_runs_is_untouched(const strata_record_t *below) { return below->route >> STRATA_ROUTE_BITS == 0; }
/* Addresses from which threads are unmapping handles, with the locks open, look like a gap. *unmapping counts
 * these threads. A thread that is about to map waits until it is 0. */
void strata_runs_wait_for_gaps(strata_runs_t *self, const uint32_t *unmapping, strata_call_t *call);
void strata_runs_end_unmapping(strata_runs_t *self, uint32_t *unmapping);

/* Checks the parts and runs; strata_chunks_validate() checks the rest. Fails with E_CORRUPT. */
strata_status_t strata_runs_validate(const strata_runs_t *self);

#endif
