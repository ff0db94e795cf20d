/* What the parts of bfc share: regions, the free blocks in their bins, streams, frees that carry a count.
 *
 * A region is a chunk of the layer below, or several whose addresses follow one another. Everything is guarded by the lock of
 * the shared stack, unless it is said that it may be opened. */
#ifndef STRATA_ALLOCATION_LAYER_BFC_STATE_H
#define STRATA_ALLOCATION_LAYER_BFC_STATE_H

#include "allocation/cache/serve.h"
#include "allocation/mechanism/marks.h"
#include "allocation/mechanism/tree.h"
#include "allocation/uses/last_users.h"

enum { STRATA_BFC_RECLAIM_OWN, STRATA_BFC_RECLAIM_LADDER };
enum { STRATA_BFC_UNIT = 256, STRATA_BFC_REGIONS = 1 << 20, STRATA_BFC_BINS = 21 };

typedef struct bfc_options {
    uint64_t memory_limit, initial_region, max_region;
    double memory_fraction, fragmentation_fraction;
    uint32_t reclaim;
    bool allow_growth, garbage_collection, coalesce_regions, timestamps, memory_debug, smaller_growth, stable_addresses;
    char memory_dump[STRATA_OPTION_TEXT_BYTES];
} bfc_options_t;

typedef struct bfc_region {
    strata_chunk_t chunk;
    uint32_t live; /* blocks that are not free */
} bfc_region_t;

/* A free block that was freed at a count of the program's; they stand in the order in which they were freed. */
typedef struct bfc_stamp {
    uint64_t count; /* never 0 */
    uint32_t slot;
    uint32_t next, prev;
    uint32_t unused;
} bfc_stamp_t;

/* What is kept of a block beside its record, by slot, where memory is to be debugged. */
typedef struct bfc_note {
    uint64_t id; /* of the allocation: 1, 2, ... */
    uint64_t action; /* number of the allocation or free that made the block what it is */
} bfc_note_t;

enum { STRATA_BFC_HISTORY = 4096 };

typedef struct bfc {
    union {
        strata_layer_t base;
        strata_chunks_t chunks; /* bfc_region_t, in order of address */
    };
    uint64_t limit; /* the most that may be reserved */
    uint64_t split_cap; /* what a block may have above its request */
    uint64_t next_region; /* bytes asked for next */
    uint64_t used_bytes, peak_used;
    strata_tree_t idle;
    strata_last_users_t last; /* in `user` of a live block; 0: nobody knows */
    strata_nodes_t stamps;
    uint32_t first_stamp, last_stamp, stamp_count;
    uint64_t frontier; /* count from which on work may be under way */
    uint32_t cursor; /* where a walk of the queue goes on, whoever leaves it */
    bool jumbled; /* the queue is not in the order of the counts */
    bool frontier_moved;
    uint32_t captures;
    uint64_t ids, actions; /* allocations; allocations and frees */
    uint64_t largest_allocation, collections, collected_bytes, forced_merges, backpedals; /* figures */
    strata_growing_t notes; /* a bfc_note_t a slot, as far as it reaches; not there without memory_debug */
    uint32_t hints[STRATA_STACKS]; /* by number of a stack the user that its last request was of; to be checked */
    uint64_t *history; /* bytes in use after an action, by its number; NULL without memory_debug */
} bfc_t;

static inline const bfc_options_t *bfc_options_of(const bfc_t *self) { return self->base.options; }
static inline strata_slab_t *bfc_slab(const bfc_t *self) { return &self->base.stack->slab; }
static inline strata_record_t *bfc_block(const bfc_t *self, uint32_t slot) { return strata_slab_record(bfc_slab(self), slot); }
static inline bfc_region_t *bfc_region_at(const bfc_t *self, uint32_t node) { return strata_node(&self->chunks.nodes, node); }
static inline bfc_stamp_t *bfc_stamp_at(const bfc_t *self, uint32_t node) { return strata_node(&self->stamps, node); }
static inline uint64_t bfc_idle(const bfc_t *self) { return self->chunks.bytes - self->used_bytes; }
static inline bool bfc_is_free(const bfc_t *self, uint32_t slot) {
    return strata_slab_is_idle(bfc_slab(self), slot); /* the sentinel never is */
}
/* The peer's bins, which reports name: bin b has 256 << b bytes up to twice that, the last one all larger blocks. Bin after bin in
 * order is the order of the tree. */
static inline uint32_t bfc_bin_of(uint64_t size) {
    uint32_t bin = 63u - (uint32_t)__builtin_clzll(size / STRATA_BFC_UNIT | 1);
    return bin < STRATA_BFC_BINS ? bin : STRATA_BFC_BINS - 1;
}
/* The stamp of a free block; 0: it has none. */
static inline uint32_t bfc_stamp_of(const strata_record_t *block) { return (uint32_t)block->free_word; }
/* The count at which a free block was freed; 0: it is anybody's. */
static inline uint64_t bfc_freed_at(const bfc_t *self, const strata_record_t *block) {
    return bfc_stamp_of(block) ? bfc_stamp_at(self, bfc_stamp_of(block))->count : 0;
}

/* The option that its limit is of. */
static inline const char *strata_bfc_bound(const bfc_t *self) {
    return self->limit == bfc_options_of(self)->memory_limit ? "memory_limit" : "memory_fraction";
}

/* ---- blocks and regions (bfc_regions.c) ---- */

extern const strata_chunk_policy_t strata_bfc_policy;

/* The last block of a region, which came from below for a user and is in no bin yet: it is anybody's whom it may serve. */
uint32_t strata_bfc_mark_region(bfc_t *self, uint32_t region, uint32_t user);
/* A block comes back: it merges with its free neighbours and goes into its bin, or keeps to itself with the count of its
 * free. */
void strata_bfc_put_back(bfc_t *self, strata_record_t *block);
/* Free blocks side by side become one, of those that are anybody's, with `all` of any. The slot of what comes of it. */
uint32_t strata_bfc_coalesce(bfc_t *self, uint32_t slot, bool all);
static inline void strata_bfc_index(bfc_t *self, uint32_t slot) { strata_tree_add(&self->idle, bfc_slab(self), slot); }
static inline void strata_bfc_unindex(bfc_t *self, uint32_t slot) { strata_tree_take(&self->idle, bfc_slab(self), slot); }
/* The bytes of regions without a live block. */
uint64_t strata_bfc_releasable(const bfc_t *self);

/* The user that a stack's own stream is, if the stack's last request was that one's; 0: nobody knows. */
static inline uint32_t strata_bfc_known_user(const bfc_t *self, const strata_stack_t *stack) {
    uint32_t hint = self->hints[stack->number];
    const strata_user_t *user = strata_user_at(&self->last.users, hint);
    bool own = user->state == STRATA_USER_NAMED && user->stream == stack->stream && user->thread == stack->thread;
    return hint && own ? hint : 0;
}

/* ---- frees that carry a count (bfc_stamps.c, bfc_frontier.c) ---- */

/* A block that is being freed gets the next count; false: no stamp is left, it is for the host to wait. */
bool strata_bfc_stamp(bfc_t *self, strata_record_t *block);
/* What was cut off after a block inherits its stamp; false: none is left. */
bool strata_bfc_stamp_rest(bfc_t *self, const strata_record_t *block, strata_record_t *rest);
/* The block is nobody's any more, or somebody's. */
void strata_bfc_unstamp(bfc_t *self, strata_record_t *block);
/* `into` takes `other` in: the later count stays. */
void strata_bfc_merge_stamps(bfc_t *self, strata_record_t *into, strata_record_t *other);
/* What the frontier has passed becomes anybody's. */
void strata_bfc_merge_safe(bfc_t *self);
/* Blocks merge whatever their counts, in the order of their frees, until one has `size` bytes; false: none came. */
bool strata_bfc_merge_by_force(bfc_t *self, uint64_t size);
/* The free blocks of a place become one, whatever their counts: their marks still say who used them last. */
void strata_bfc_merge_at(bfc_t *self, const strata_extent_t *place);
bool strata_bfc_set_frontier(bfc_t *self, uint64_t count);
uint32_t strata_bfc_reach(strata_layer_t *base, const strata_record_t *block, uint64_t size, strata_stream_t *stream);
strata_status_t strata_bfc_validate_stamps(const bfc_t *self);

/* ---- what a person wants to know (bfc_debug.c, bfc_tell.c) ---- */

strata_status_t strata_bfc_debug_init(bfc_t *self);
void strata_bfc_debug_destroy(bfc_t *self);
/* An allocation or a free is noted where memory is to be debugged. */
void strata_bfc_note(bfc_t *self, const strata_record_t *block, bool allocated);
/* NULL: there is none. */
static inline bfc_note_t *bfc_note_of(const bfc_t *self, uint32_t slot) {
    bool there = self->history && slot < strata_growing_usable(&self->notes) / sizeof(bfc_note_t);
    return there ? (bfc_note_t *)self->notes.memory + slot : NULL;
}
void strata_bfc_tell(bfc_t *self, const strata_telling_t *telling);

/* ---- check (bfc_check.c) ---- */

strata_status_t strata_bfc_validate(strata_layer_t *base);

#endif
