/* The engine of every cache: memory of the layer below, in chunks that are split into blocks.
 *
 *     chunk 1  |====== 2 MiB ======|       chunk 2  |========== 4 MiB ==========|       memory of the layer below
 *     blocks   | live | free |live |       blocks   |  live  |      free        |       one list per chunk, by address
 *                        |                                           |
 *     index of free blocks, which the cache keeps: a tree, bins or a list of its own
 *
 * This part is the same for every cache: getting chunks, giving them back, finding the chunk of an address, and checking
 * them. The policy of a cache decides how much to request, how free blocks are indexed, and which chunks may go back.
 *
 *     serve.c      the loop for a request that the fast path does not serve
 *     chunks.c     the list of chunks, and the chunk of an address
 *     growth.c     requests memory from below while the other threads that miss wait
 *     give_back.c  returns chunks to the layer below
 *     at.c         finds and splits the free block at a given address
 *     last_freed.h  the last-freed block
 *     runs.c       chunks of physical handles, which are mapped and unmapped one by one
 *     check.c      validates all chunks
 *
 * The state of a cache begins with strata_chunks_t, which begins with the layer's own head. So a cache's type uses
 * strata_chunks_walk(), _find(), _chunk_of(), _release() and _trim() directly.
 *
 * Guarded by the lock of the layer's stack. A function with a strata_call_t parameter opens the locks of that call while
 * it calls the layer below. A cache must leave its state consistent before such a call, and read it again afterwards.
 * Each function takes at most time proportional to the number of chunks, with a logarithmic factor where they are sorted. */
#ifndef STRATA_ALLOCATION_CACHE_CHUNKS_H
#define STRATA_ALLOCATION_CACHE_CHUNKS_H

#include "allocation/domain/layer.h"
#include "allocation/mechanism/block_list.h"
#include "allocation/mechanism/repeats.h"
#include "allocation/tables/order.h"

/* A chunk, identified by its number. A cache that keeps more begins a struct of its own with this. A new chunk
 * is zeroed. */
typedef struct strata_chunk {
    uint32_t unused; /* free list link of an unused node */
    /* slots of its first and last block. Only caches that join chunks maintain `last`:
     * strata_chunks_note_last() */
    uint32_t first, last;
    uint32_t next, prev; /* neighbors in the list, or 0 */
    uint32_t part, last_part; /* the chunk that was joined after this one, and the last one so joined; or 0 */
    uint32_t chain; /* next in a list of chunks that are being given back */
    uint64_t base, size; /* bytes, including all chunks joined to it */
    strata_record_t *below; /* the record of the layer below */
    strata_order_link_t by_address;
} strata_chunk_t;

/* The hooks of a cache for its chunks. They run under the lock. */
typedef struct strata_chunk_policy {
    /* Returns true if a chunk may go back: nothing in it is in use, and the cache does not keep it. If the hook
     * is NULL, strata_chunk_is_idle() decides. */
    bool (*may_release)(const strata_layer_t *self, const strata_chunk_t *chunk);
    /* Removes the free blocks of a departing chunk from the cache's index. The caller then frees their slots. */
    void (*unindex_chunk)(strata_layer_t *self, const strata_chunk_t *chunk);
    /* For a cache that serves several streams. Returns true if a stream may still use a free block of the
     * chunk. The hook may be NULL if that never happens. It is called only if the memory below is allocated and
     * freed in stream order. */
    bool (*is_in_use)(const strata_layer_t *self, const strata_chunk_t *chunk);
    /* Makes the host wait for such uses, with the locks open. If the wait fails, chunks in use stay. */
    void (*wait)(strata_layer_t *self, strata_call_t *call);
    /* For a cache that serves at a given address. `index_remove` removes a free block from the index. `index_insert`
     * inserts a block or the remainder of a split. */
    void (*index_remove)(strata_layer_t *self, uint32_t slot);
    void (*index_insert)(strata_layer_t *self, uint32_t slot);
    /* Copies the cache's notes on a free block to `rest`, which was split off after `block`. Returns false if
     * there is no room for them. It is NULL if the cache does not split blocks. */
    bool (*on_split)(strata_layer_t *self, const strata_record_t *block, strata_record_t *rest);
    /* Drops the notes on such a rest, which the block before it is about to absorb. May be NULL. */
    void (*on_absorb)(strata_layer_t *self, strata_record_t *rest);
} strata_chunk_policy_t;

/* The head of a cache's state. */
typedef struct strata_chunks {
    strata_layer_t base;
    const strata_chunk_policy_t *policy;
    strata_nodes_t nodes;
    strata_order_t by_address;
    uint32_t first, last, count; /* the list of chunks */
    uint32_t waiting; /* threads that wait for another thread's growth */
    uint32_t known; /* slot of the block that was carved or inserted last. It may be stale, so its user checks it. */
    strata_condition_t grown;
    uint64_t bytes; /* sum of the chunks' sizes */
    uint64_t held; /* `bytes`, and the sizes of pending requests to the layer below */
    uint64_t unit; /* a chunk's size is rounded down to a multiple of this power of two; initially 1 */
    bool ordered; /* memory below is allocated and freed in stream order, and this cache has several streams */
    bool sorted; /* the list is in address order; otherwise in order of creation */
    bool joins; /* a chunk that begins where another ends is joined to that one */
    bool growing; /* a thread is growing the cache: strata_cache_serve() */
    /* the chunk number of all blocks, if chunks grow and shrink in parts (runs.h); 0 if each block has its
     * chunk's own */
    uint32_t one_number;
    uint32_t last_freed; /* slot of the last-freed block (last_freed.h), or 0 */
    uint32_t last_freed_until; /* a slot of this generation or a later one never becomes the last-freed block; 0 turns it off */
    bool sole; /* no other cache of the strategy has blocks in this slab */
    strata_repeats_t repeats; /* for `stable_addresses`; off if the cache lacks the option */
} strata_chunks_t;

/* ---- life (chunks.c) ---- */

/* Initializes the chunks. A cache's create calls it first. `node_size` is the size of the cache's chunk struct,
 * and `capacity` is one more than the max number of chunks. The cache sets `sorted`, `joins` and `unit` after
 * this. Fails with E_HOST_MEMORY. */
strata_status_t strata_chunks_init(strata_layer_t *base, const strata_chunk_policy_t *policy, size_t node_size, uint32_t capacity);
/* Returns true if memory of a layer is allocated and freed in stream order. That holds if any layer below does
 * so, or is a decorator, which may fill memory on the stream of the request. */
bool strata_chunks_are_stream_ordered(const strata_layer_t *below);
/* Gives every chunk back, even if blocks in it are live. A cache's destroy calls it, without a lock. */
void strata_chunks_destroy(strata_layer_t *base);
/* Joins chunks that touch from now on. Does nothing unless all chunks have the same source, which permits that
 * (STRATA_TRAIT_CONTIGUOUS). The vmm source then maps its handles side by side. A cache's create calls it.
 * Fails with E_HOST_MEMORY. */
strata_status_t strata_chunks_enable_joining(strata_chunks_t *self);

static inline strata_chunk_t *strata_chunk_at(const strata_chunks_t *self, uint32_t number) {
    return strata_node(&self->nodes, number);
}
/* Returns the number of the chunk that contains an address, or 0 if there is none. */
static inline uint32_t strata_chunks_number_at(strata_chunks_t *self, uint64_t address) {
    const strata_order_key_t key = {address, UINT64_MAX, 0};
    uint32_t number = strata_order_before(&self->by_address, &key);
    const strata_chunk_t *chunk = strata_chunk_at(self, number);
    return number && address - chunk->base < chunk->size ? number : 0;
}

/* Makes a chunk of memory from below, as one free block that is in no index yet. If the chunk is joined to
 * another one, its block is the last block of that one. Returns the chunk's number, or 0, with nothing changed,
 * if the limit of chunks or blocks is reached. */
uint32_t strata_chunks_add(strata_chunks_t *self, strata_record_t *below);

/* For runs.c. The first two insert or remove a chunk with its parts. The others update the counts for a part of
 * `size` bytes. */
void strata_chunks_list(strata_chunks_t *self, uint32_t number);
void strata_chunks_unlist(strata_chunks_t *self, uint32_t number);
void strata_chunks_count_in(strata_chunks_t *self, const strata_record_t *below, uint64_t size);
void strata_chunks_count_out(strata_chunks_t *self, const strata_record_t *below, uint64_t size);

/* Loops over the numbers of all chunks in list order, or over the slots of a chunk's blocks in address order. */
#define STRATA_EACH_CHUNK(chunks, number)                                                                                          \
    for (uint32_t number = (chunks)->first; number; number = strata_chunk_at((chunks), number)->next)
#define STRATA_EACH_BLOCK(chunks, number, slot)                                                                                    \
    for (uint32_t slot = strata_chunk_at((chunks), number)->first; slot;                                                           \
         slot = strata_slab_record(&(chunks)->base.stack->slab, slot)->next)

/* Returns true if a chunk is one free block. O(1). */
bool strata_chunk_is_idle(const strata_layer_t *self, const strata_chunk_t *chunk);

/* Moves a block to another slot, because the generations of its own are exhausted. Returns the new slot, or 0,
 * with nothing changed, if none is left. */
uint32_t strata_chunks_move_block(strata_chunks_t *self, uint32_t slot);

/* If chunks are joined: updates `last` after the block of `slot` was split off or has absorbed the block after
 * it. */
static inline void strata_chunks_note_last(strata_chunks_t *self, uint32_t slot) {
    const strata_record_t *block = strata_slab_record(&self->base.stack->slab, slot);
    if (block->next == 0) strata_chunk_at(self, block->chunk)->last = slot;
}

/* If chunks are joined: updates `last` before the block of `low` absorbs that of `high`. */
static inline void strata_chunks_pass_last(strata_chunks_t *self, uint32_t low, uint32_t high) {
    const strata_record_t *block = strata_slab_record(&self->base.stack->slab, high);
    if (block->next == 0) strata_chunk_at(self, block->chunk)->last = low;
}

/* ---- operations of the cache's type ---- */

/* Visits every block, chunk by chunk in list order, in address order within a chunk. */
void strata_chunks_walk(strata_layer_t *base, strata_walk_fn block, void *context);
const strata_record_t *strata_chunks_find(strata_layer_t *base, uint64_t address);
/* Returns the record below of the chunk. For joined chunks and for runs it is that of the first part. */
const strata_record_t *strata_chunks_chunk_of(strata_layer_t *base, const strata_record_t *block);
/* Gives back all chunks that may go, in list order. Returns their bytes. */
uint64_t strata_chunks_release(strata_layer_t *base, strata_call_t *call);
/* Gives chunks back, the largest first, until the type's idle_bytes() are at most `keep`. Equal chunks go in
 * list order. Returns their bytes. */
uint64_t strata_chunks_trim(strata_layer_t *base, uint64_t keep, strata_call_t *call);

/* ---- growth (growth.c) ---- */

/* Sleeps until another thread's growth ends, or until `grown` is broadcast for another reason. May also wake up
 * without one. */
void strata_chunks_wait_for_growth(strata_chunks_t *self, strata_call_t *call);

/* Requests `size` bytes from below, with the locks open. `at` is the address at which a source of handles maps
 * them, or 0. */
strata_status_t strata_chunks_request_below(strata_chunks_t *self, uint64_t at, uint64_t size, uint64_t alignment,
                                            const strata_request_t *request, strata_record_t **below);
/* Gives the memory back, with the locks open, and returns E_LIMIT. Used if the cache has no number for another
 * chunk, or its stack no slot for another block. */
strata_status_t strata_chunks_return_excess(strata_chunks_t *self, strata_record_t *below, strata_call_t *call);

/* Requests a chunk of `size` bytes from below, with the locks open. *number is set to that of the chunk, or of
 * the one it was joined to. The chunk is aligned to `alignment`, or to the request's alignment if that is
 * larger. Its last block is the new one, which is free and in no index yet.
 *
 * Returns E_UNSUPPORTED if the layer below returned memory with a smaller alignment, or E_LIMIT if the limit of
 * chunks or blocks is reached. In both cases the memory was given back. Other errors are those of the layer
 * below. */
strata_status_t strata_chunks_grow(strata_chunks_t *self, uint64_t size, uint64_t alignment, const strata_request_t *request,
                                   uint32_t *number);

/* ---- giving back (give_back.c) ---- */

/* Chunks that were removed from the cache but are not given back yet, in order of removal. */
typedef struct strata_detached {
    uint32_t first, last;
    uint64_t bytes;
} strata_detached_t;

/* Removes a chunk without a live block from the cache. */
void strata_chunks_detach(strata_chunks_t *self, uint32_t number, strata_detached_t *detached);
/* Gives the chunks to the layer below, in order, with the locks open. Returns their bytes. */
uint64_t strata_chunks_give_back(strata_chunks_t *self, const strata_detached_t *detached, strata_call_t *call);
/* Makes the host wait if a stream still uses a chunk that may go otherwise. */
void strata_chunks_wait_for_users(strata_chunks_t *self, strata_call_t *call);
/* Returns true if a captured graph may use free memory. No chunk may go back then, even when memory is short. */
static inline bool strata_chunks_are_pinned(const strata_chunks_t *self) {
    return atomic_load_explicit(&self->base.stack->group->pinned, memory_order_relaxed);
}
/* Returns true if a chunk may go now. */
bool strata_chunks_may_release(const strata_chunks_t *self, const strata_chunk_t *chunk);

/* ---- memory at a given address (at.c) ---- */

/* Returns the slot of the free block that contains a place, or 0 if the place is in use or outside the cache.
 * It walks the chunk's blocks from the nearest known one: the first, the one that was carved or inserted last,
 * or that of place->slot. */
uint32_t strata_chunks_free_at(strata_chunks_t *self, const strata_extent_t *place);
/* Splits the place off the free block. The result is in no index, and the remainders on either side are in the
 * index. Returns its slot. Returns 0, with nothing changed, if no slot is left or the cache does not split
 * blocks. */
uint32_t strata_chunks_carve(strata_chunks_t *self, uint32_t slot, const strata_extent_t *place);
static inline strata_extent_t strata_extent_of(const strata_block_t *block) {
    return (strata_extent_t){.ptr = (uint64_t)(uintptr_t)block->ptr, .size = block->size};
}
/* Finds and carves a place. Returns the slot of its block, or 0. */
static inline uint32_t strata_chunks_carve_at(strata_chunks_t *self, const strata_extent_t *place) {
    uint32_t slot = strata_chunks_free_at(self, place);
    return slot ? strata_chunks_carve(self, slot, place) : 0;
}

/* The help text of a cache's option `stable_addresses`, which turns on strata_repeats_t. */
#define STRATA_STABLE_ADDRESSES                                                                                                    \
    "from the third step (strata_step) on, while a stream repeats the previous step's sizes in order, requests first try "         \
    "that step's addresses"

/* ---- check (check.c) ---- */

/* Checks the list, the address order, the sums and statistics, and that the blocks of each chunk fill it. Adds
 * the free blocks to *pieces. Fails with E_CORRUPT. */
strata_status_t strata_chunks_validate(const strata_chunks_t *self, strata_block_list_tally_t *pieces);

#endif
