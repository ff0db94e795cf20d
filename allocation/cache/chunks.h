/* The chunks of a cache: memory of the layer below, which the cache cuts into blocks. How a chunk comes, who may ask for one, where
 * an address lies, how a chunk goes back and what must hold of all of them is one mechanism for every cache. The cache says the
 * rest: how much to ask for, where its free blocks are kept, which chunks may go and in which order.
 *
 * The state of a cache begins with strata_chunks_t, which begins with the layer's own head. So strata_chunks_walk(), _find(),
 * _chunk_of(), _release() and _trim() stand in a cache's type as they are.
 *
 *     chunks.c     the list of chunks: who is in it, and where an address lies
 *     growth.c     how a chunk comes: one thread asks, the others that miss wait for it
 *     give_back.c  how chunks go: those that may, in order, to the layer below
 *     at.c         memory at a given address
 *     apart.h      the block that was freed last
 *     runs.c       chunks that come and go part by part, wherever there is room: of physical handles
 *     check.c      what holds of all chunks
 *
 * Guarded by the lock of the layer's stack. What takes a call opens the locks of that call while the layer below is asked: a cache
 * holds no half-made state across it and reads its own again. Nothing here takes longer than in proportion to the chunks, times
 * their logarithm where they are sorted. */
#ifndef STRATA_ALLOCATION_CACHE_CHUNKS_H
#define STRATA_ALLOCATION_CACHE_CHUNKS_H

#include "allocation/domain/layer.h"
#include "allocation/mechanism/pieces.h"
#include "allocation/mechanism/repeats.h"
#include "allocation/tables/order.h"

/* A chunk, by number. What a cache keeps of one follows in a struct that begins with this; it is zero at first. */
typedef struct strata_chunk {
    uint32_t unused; /* a node that nobody has begins with the number of the next */
    uint32_t first, last; /* slots of its first and last block; `last` only where chunks are joined: strata_chunks_note_last() */
    uint32_t next, prev; /* in the list; 0: none */
    uint32_t part, last_part; /* the chunk that was joined after this one, and the last one; 0: none */
    uint32_t chain; /* of chunks on their way back */
    uint64_t base, size; /* bytes, with everything that was joined to it */
    strata_record_t *below; /* the record of the layer below */
    strata_order_link_t by_address;
} strata_chunk_t;

/* What a cache says about its chunks; under the lock. */
typedef struct strata_chunk_policy {
    /* Whether a chunk may go back: nothing in it is in use, and nobody keeps it. NULL: strata_chunk_is_idle(). */
    bool (*may_go)(const strata_layer_t *self, const strata_chunk_t *chunk);
    /* Takes the free blocks of a departing chunk out of the cache's index. Their slots are given back after that. */
    void (*leave)(strata_layer_t *self, const strata_chunk_t *chunk);
    /* For a cache that serves several streams: whether one of them may still use what is free in a chunk. NULL: never. It is asked
     * if memory comes from below, and goes back, in the order of one stream. */
    bool (*is_in_use)(const strata_layer_t *self, const strata_chunk_t *chunk);
    /* The host waits for such uses, with the locks open. If the wait fails, what is in use stays. */
    void (*wait)(strata_layer_t *self, strata_call_t *call);
    /* For a cache that serves at a given address: a free block leaves its index, and its rests come into it where
     * blocks are cut. */
    void (*take_out)(strata_layer_t *self, uint32_t slot);
    void (*put_in)(strata_layer_t *self, uint32_t slot);
    /* `rest` was cut off after `block`: what the cache notes of a free block holds of both. False: it has no room to note it. NULL:
     * its blocks are not cut. */
    bool (*cut)(strata_layer_t *self, const strata_record_t *block, strata_record_t *rest);
    /* The block before it takes such a rest again. NULL: nothing is to be done. */
    void (*join)(strata_layer_t *self, strata_record_t *rest);
} strata_chunk_policy_t;

/* The head of a cache's state. */
typedef struct strata_chunks {
    strata_layer_t base;
    const strata_chunk_policy_t *policy;
    strata_nodes_t nodes;
    strata_order_t by_address;
    uint32_t first, last, count; /* of the list */
    uint32_t waiting; /* threads that wait for another's growth */
    uint32_t known; /* the slot of the block that was carved, or put in, last; to be checked */
    strata_condition_t grown;
    uint64_t bytes; /* of the chunks */
    uint64_t held; /* of the chunks, and of what is being asked for below */
    uint64_t unit; /* the size of a chunk is rounded down to a multiple of this power of two; 1 at first */
    bool ordered; /* memory comes from below, and goes back, in the order of a stream, and the cache has several */
    bool sorted; /* the list is in address order; else in order of making */
    bool joins; /* a chunk that begins where another ends becomes part of that one */
    bool growing; /* a thread is growing the cache: strata_chunks_begin_growth() */
    uint32_t one_number; /* that all blocks have for their chunk, where chunks come and go in parts (runs.h); 0: each has its own */
    uint32_t apart; /* slot of the block that was freed last and is not merged (apart.h); 0: none */
    uint32_t apart_until; /* a slot of this generation or a later one does not stand apart; 0: none does */
    bool sole; /* no other cache of the strategy has its blocks in this slab */
    strata_repeats_t repeats; /* `stable_addresses`; off for a cache that lacks the option */
} strata_chunks_t;

/* ---- life (chunks.c) ---- */

/* For the cache's create, before anything else. `node_size` is that of the cache's struct of a chunk; `capacity` is one more than
 * the chunks that it may have. The cache sets `sorted`, `joins` and `unit` next. E_HOST_MEMORY. */
strata_status_t strata_chunks_init(strata_layer_t *base, const strata_chunk_policy_t *policy, size_t node_size, uint32_t capacity);
/* Whether memory of a layer comes, and goes back, in the order of a stream: if any layer below gives it so, or is a decorator,
 * which may fill it on the stream of the request. */
bool strata_chunks_come_in_order(const strata_layer_t *below);
/* For its destroy: every chunk goes back, whatever is still live in it. No lock is held. */
void strata_chunks_destroy(strata_layer_t *base);
/* For its create: chunks that touch become one from now on, if all of them come from one source whose chunks may be used so
 * (STRATA_TRAIT_CONTIGUOUS); vmm then lays its handles side by side. Else nothing changes. E_HOST_MEMORY. */
strata_status_t strata_chunks_join(strata_chunks_t *self);

static inline strata_chunk_t *strata_chunk_at(const strata_chunks_t *self, uint32_t number) {
    return strata_node(&self->nodes, number);
}
/* Returns the number of the chunk in which an address lies, or 0 if there is none. */
static inline uint32_t strata_chunks_number_at(strata_chunks_t *self, uint64_t address) {
    const strata_order_key_t key = {address, UINT64_MAX, 0};
    uint32_t number = strata_order_before(&self->by_address, &key);
    const strata_chunk_t *chunk = strata_chunk_at(self, number);
    return number && address - chunk->base < chunk->size ? number : 0;
}

/* Memory from below becomes a chunk of one free block, or a part of the chunk that it is joined to, whose last block it is; it is
 * in no index yet. Returns the chunk's number; 0: the limit of chunks or blocks is reached, and nothing has changed. */
uint32_t strata_chunks_publish(strata_chunks_t *self, strata_record_t *below);

/* For runs.c: a chunk, with its parts, comes into the list at its place, or leaves it; a part of `size` bytes is counted, or no
 * longer. */
void strata_chunks_list(strata_chunks_t *self, uint32_t number);
void strata_chunks_unlist(strata_chunks_t *self, uint32_t number);
void strata_chunks_count_in(strata_chunks_t *self, const strata_record_t *below, uint64_t size);
void strata_chunks_count_out(strata_chunks_t *self, const strata_record_t *below, uint64_t size);

/* Every chunk, by number, in the order of the list; every block of one, by slot, in address order. */
#define STRATA_EACH_CHUNK(chunks, number)                                                                                          \
    for (uint32_t number = (chunks)->first; number; number = strata_chunk_at((chunks), number)->next)
#define STRATA_EACH_BLOCK(chunks, number, slot)                                                                                    \
    for (uint32_t slot = strata_chunk_at((chunks), number)->first; slot;                                                           \
         slot = strata_slab_record(&(chunks)->base.stack->slab, slot)->next)

/* Whether a chunk is one free block: O(1). */
bool strata_chunk_is_idle(const strata_layer_t *self, const strata_chunk_t *chunk);

/* Moves a block to another slot, because the generations of its own are used up; returns the slot; 0: none is left, and nothing has
 * changed. */
uint32_t strata_chunks_move_block(strata_chunks_t *self, uint32_t slot);

/* Where chunks are joined: after a block was cut off, or has taken the one after it, the block may be the last of its chunk. */
static inline void strata_chunks_note_last(strata_chunks_t *self, uint32_t slot) {
    const strata_record_t *block = strata_slab_record(&self->base.stack->slab, slot);
    if (block->next == 0) strata_chunk_at(self, block->chunk)->last = slot;
}

/* If chunks are joined: the block of `low` is about to absorb that of `high`, which may be the last of its chunk. */
static inline void strata_chunks_pass_last(strata_chunks_t *self, uint32_t low, uint32_t high) {
    const strata_record_t *block = strata_slab_record(&self->base.stack->slab, high);
    if (block->next == 0) strata_chunk_at(self, block->chunk)->last = low;
}

/* ---- operations of the cache's type ---- */

/* Every block, chunk by chunk in the order of the list, in address order within a chunk. */
void strata_chunks_walk(strata_layer_t *base, strata_walk_fn block, void *context);
const strata_record_t *strata_chunks_find(strata_layer_t *base, uint64_t address);
/* The first of several joined chunks stands for all of them, as does the first part of a run. */
const strata_record_t *strata_chunks_chunk_of(strata_layer_t *base, const strata_record_t *block);
/* Gives back what may go, in the order of the list; returns the bytes. */
uint64_t strata_chunks_release(strata_layer_t *base, strata_call_t *call);
/* The same, the largest first (of equals the first in the list), until the type's idle_bytes() are at most `keep`. */
uint64_t strata_chunks_trim(strata_layer_t *base, uint64_t keep, strata_call_t *call);

/* ---- growth (growth.c) ---- */

/* One thread grows; others that miss wait for it and look again. *growing says that one does (&chunks->growing, or one of the
 * cache's own if parts of it grow separately). True: the caller is the one, until strata_chunks_end_growth(). False: the lock was
 * open, and what the caller needs may be there now. */
bool strata_chunks_begin_growth(strata_chunks_t *self, bool *growing, strata_call_t *call);
void strata_chunks_end_growth(strata_chunks_t *self, bool *growing);
/* Sleeps until another thread's growth ends, or until something else is broadcast on `grown`. May wake without a reason. */
void strata_chunks_wait_for_others(strata_chunks_t *self, strata_call_t *call);

/* Asks below for `size` bytes, with the locks open. `at` is the address at which a source of handles maps them, or 0. */
strata_status_t strata_chunks_ask(strata_chunks_t *self, uint64_t at, uint64_t size, uint64_t alignment,
                                  const strata_request_t *request, strata_record_t **below);
/* Returns E_LIMIT: the cache has no number for another chunk, or its stack no slot for another block. The memory goes back, with the
 * locks open. */
strata_status_t strata_chunks_refuse_more(strata_chunks_t *self, strata_record_t *below, strata_call_t *call);

/* Asks below for a chunk of `size` bytes at a multiple of `alignment`, or of the request's if that is larger, with the locks open.
 * *number is that of the chunk, or of the one that it was joined to; its last block is the new one: free, and in no index yet.
 * E_UNSUPPORTED: it came at no multiple of `alignment`, and was given back. E_LIMIT: the limit of chunks or blocks is reached; it
 * was given back. Else the status of the layer below. */
strata_status_t strata_chunks_grow(strata_chunks_t *self, uint64_t size, uint64_t alignment, const strata_request_t *request,
                                   uint32_t *number);

/* ---- giving back (give_back.c) ---- */

/* Chunks that have left the cache and are not given back yet, in that order. */
typedef struct strata_leaving {
    uint32_t first, last;
    uint64_t bytes;
} strata_leaving_t;

/* Takes a chunk without a live block out of the cache. */
void strata_chunks_detach(strata_chunks_t *self, uint32_t number, strata_leaving_t *leaving);
/* Gives them to the layer below, in their order, with the locks open; returns the bytes. */
uint64_t strata_chunks_give_back(strata_chunks_t *self, const strata_leaving_t *leaving, strata_call_t *call);
/* The host waits if a chunk that may go is in use by a stream. */
void strata_chunks_wait_for_users(strata_chunks_t *self, strata_call_t *call);
/* Whether a captured graph may use what lies free: no chunk goes back meanwhile, whoever needs memory. */
static inline bool strata_chunks_are_pinned(const strata_chunks_t *self) {
    return atomic_load_explicit(&self->base.stack->group->pinned, memory_order_relaxed);
}
/* Whether a chunk may go now. */
bool strata_chunks_goes(const strata_chunks_t *self, const strata_chunk_t *chunk);

/* ---- memory at a given address (at.c) ---- */

/* The slot of the free block that has all of a place; 0: something there is in use, or is no memory of the cache. As long as a walk
 * of the chunk's blocks from the nearest one known: the first one, what was carved or put in last, or that of place->slot. */
uint32_t strata_chunks_free_at(strata_chunks_t *self, const strata_extent_t *place);
/* Makes that part of the free block a block of its own, which is in no index; the rests, on either side, are in it. Returns its
 * slot; 0: no slot is left, or blocks are not cut, and nothing has changed. */
uint32_t strata_chunks_carve(strata_chunks_t *self, uint32_t slot, const strata_extent_t *place);
static inline strata_extent_t strata_extent_of(const strata_block_t *block) {
    return (strata_extent_t){.ptr = (uint64_t)(uintptr_t)block->ptr, .size = block->size};
}
/* Both. */
static inline uint32_t strata_chunks_take_at(strata_chunks_t *self, const strata_extent_t *place) {
    uint32_t slot = strata_chunks_free_at(self, place);
    return slot ? strata_chunks_carve(self, slot, place) : 0;
}

/* What the option `stable_addresses` of a cache does: strata_repeats_t. */
#define STRATA_STABLE_ADDRESSES                                                                                                    \
    "a program that repeats its steps (strata_step) gets the same addresses from the third one on, as far as what was there is "   \
    "freed in time: as long as a stream asks for the same sizes in the same order as in the step before, each request asks first " \
    "for the place of the one then"

/* ---- check (check.c) ---- */

/* The list, the address order, sums and figures; the blocks of each chunk fill it. Free blocks are added to *pieces. E_CORRUPT. */
strata_status_t strata_chunks_validate(const strata_chunks_t *self, strata_pieces_tally_t *pieces);

#endif
