/* Chunks that come and go part by part. A part is a physical handle, mapped somewhere; parts whose addresses touch are one chunk, a
 * run. A part may come at either end of a run or between two, which then are one; and an idle part may go from the middle of a run,
 * which then is two. So a block may lie across any parts that touch.
 *
 * Blocks do not say in which run they lie: all have the same number, and nothing of a block changes while runs change. The blocks of
 * a run stand between two records of no bytes, which are never idle: so its first and last block are known, whichever they are by
 * now, and a free looks no further than them.
 *
 * The first part of a run is its chunk in the list (strata_chunk_t), the others follow in its chain of parts. All parts stand in one
 * order by address. Guarded by the lock of the cache's stack.
 *
 *     runs.c      how parts come, join and go
 *     handles.c   where there is room for a handle, and how it is mapped there */
#ifndef STRATA_ALLOCATION_CACHE_RUNS_H
#define STRATA_ALLOCATION_CACHE_RUNS_H

#include "allocation/cache/chunks.h"

enum { STRATA_RUNS_NUMBER = 1 }; /* of all blocks */

typedef struct strata_run_part {
    strata_chunk_t chunk; /* of a part that begins no run: `part` and `below` alone */
    strata_order_link_t link; /* by address */
    uint64_t at, size;
} strata_run_part_t;

typedef struct strata_runs {
    strata_chunks_t *chunks;
    strata_order_t parts;
} strata_runs_t;

/* After strata_chunks_init(), whose nodes begin with strata_run_part_t. */
void strata_runs_init(strata_runs_t *self, strata_chunks_t *chunks);

static inline strata_run_part_t *strata_run_part_at(const strata_runs_t *self, uint32_t part) {
    return strata_node(&self->chunks->nodes, part);
}
/* The run, or the part, in which an address lies; 0: none. */
static inline uint32_t strata_runs_find(strata_runs_t *self, uint64_t address) {
    return strata_chunks_number_at(self->chunks, address);
}
uint32_t strata_runs_find_part(strata_runs_t *self, uint64_t address);
/* The first part that begins at an address or above it; 0: none. */
uint32_t strata_runs_part_from(strata_runs_t *self, uint64_t address);
static inline uint32_t strata_runs_next_part(const strata_runs_t *self, uint32_t part) {
    return strata_order_next(&self->parts, part);
}
/* The slots of the first and of the last block of a run. */
static inline uint32_t strata_runs_first_block(const strata_runs_t *self, uint32_t run) {
    return strata_slab_record(&self->chunks->base.stack->slab, strata_chunk_at(self->chunks, run)->first)->next;
}
static inline uint32_t strata_runs_last_block(const strata_runs_t *self, uint32_t run) {
    return strata_slab_record(&self->chunks->base.stack->slab, strata_chunk_at(self->chunks, run)->last)->prev;
}

/* Memory from below becomes a part, with a block of its own: free, in no index, and merged with nobody. Its slot; 0: the limit of
 * parts or blocks is reached, and nothing has changed. */
uint32_t strata_runs_publish(strata_runs_t *self, strata_record_t *below);
/* Takes a part out. `block` is its block, which is just as large and in no index. With 0 the part is idle, and its block is carved out
 * of the free one, which is `near` or not far from it. Returns the memory that the part was made of. NULL: the part is not idle, or no
 * slot is left, and nothing has changed. */
strata_record_t *strata_runs_take(strata_runs_t *self, uint32_t part, uint32_t block, uint32_t near);

/* ---- handles (handles.c) ---- */

/* Unmapped addresses before, between or after runs. */
typedef struct strata_gap {
    uint64_t begin, end;
    uint32_t run, next; /* the run that ends where the gap begins, and the one that begins where it ends; 0: none */
} strata_gap_t;
/* Finds the next gap of a range that ends at `limit`, in order of addresses. At first gap->end is where the range begins, and the rest
 * is 0. Returns false if there is none. */
bool strata_runs_next_gap(strata_runs_t *self, uint64_t limit, strata_gap_t *gap);
/* Maps a handle of `size` bytes at an address, with the locks open. *slot is that of its block: free, in no index, and not yet
 * coalesced. E_LIMIT: the limit of parts or blocks is reached; the handle was given back. Else the status of the layer below. */
strata_status_t strata_runs_map(strata_runs_t *self, uint64_t at, uint64_t size, const strata_request_t *request, uint32_t *slot);
/* Returns true if the source alone took part in serving a handle. Any other layer may have left work on it, as `fill` does: then a handle
 * that no block has used must not be unmapped before that work is done either. */
static inline bool strata_runs_is_untouched(const strata_record_t *below) { return below->route >> 8 == 0; }
/* Addresses from which threads are unmapping handles, with the locks open, look like a gap. *unmapping counts these threads. A
 * thread that is about to map waits until it is 0. */
void strata_runs_wait_for_gaps(strata_runs_t *self, const uint32_t *unmapping, strata_call_t *call);
void strata_runs_end_unmapping(strata_runs_t *self, uint32_t *unmapping);

/* What strata_chunks_validate() does not know. E_CORRUPT. */
strata_status_t strata_runs_validate(const strata_runs_t *self);

#endif
