/* The state of bfc: regions, the index of free blocks, streams, and frees with a count.
 *
 * A region is a chunk of the layer below, or several with adjacent addresses. Everything is guarded by the lock
 * of the shared stack. Comments mark the functions that may open it. */
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
    uint32_t live; /* number of blocks that are not free */
} bfc_region_t;

/* A free block that was freed at one of the program's counts. The stamps are in a queue, in the order of the
 * frees. */
typedef struct bfc_stamp {
    uint64_t count; /* never 0 */
    uint32_t slot;
    uint32_t next, prev;
    uint32_t unused;
} bfc_stamp_t;

/* Notes on a block beside its record, by slot. Kept only with memory_debug. */
typedef struct bfc_note {
    uint64_t id; /* number of the allocation: 1, 2, ... */
    uint64_t action; /* number of the allocation or free that last changed the block */
} bfc_note_t;

enum { STRATA_BFC_HISTORY = 4096 };

typedef struct bfc {
    union {
        strata_layer_t base;
        strata_chunks_t chunks; /* its nodes are bfc_region_t, in address order */
    };
    uint64_t limit; /* max bytes that may be reserved */
    uint64_t split_cap; /* max bytes that a block may have beyond its request without a split */
    uint64_t next_region; /* bytes of the next region */
    uint64_t used_bytes, peak_used;
    strata_tree_t idle;
    strata_last_users_t last; /* `user` of a live block is one of these, or 0 if it is unknown */
    strata_nodes_t stamps;
    uint32_t first_stamp, last_stamp, stamp_count;
    uint64_t frontier; /* work from this count on may still run */
    uint32_t cursor; /* next stamp of a walk of the queue, advanced if that stamp is removed */
    bool jumbled; /* the queue is not in the order of the counts */
    bool frontier_moved;
    uint32_t captures;
    uint64_t ids, actions; /* number of allocations, and of allocations and frees */
    uint64_t largest_allocation, collections, collected_bytes, forced_merges, backpedals; /* statistics */
    strata_growing_t notes; /* a bfc_note_t for each slot, as far as it reaches; unused without memory_debug */
    /* by stack number, the user of the stack's last request. It may be stale, so its users check it. */
    uint32_t hints[STRATA_STACKS];
    uint64_t *history; /* bytes in use after an action, by its number; NULL without memory_debug */
} bfc_t;

static inline const bfc_options_t *bfc_options_of(const bfc_t *self) { return self->base.options; }
static inline strata_slab_t *bfc_slab(const bfc_t *self) { return &self->base.stack->slab; }
static inline strata_record_t *bfc_block(const bfc_t *self, uint32_t slot) { return strata_slab_record(bfc_slab(self), slot); }
static inline bfc_region_t *bfc_region_at(const bfc_t *self, uint32_t node) { return strata_node(&self->chunks.nodes, node); }
static inline bfc_stamp_t *bfc_stamp_at(const bfc_t *self, uint32_t node) { return strata_node(&self->stamps, node); }
static inline uint64_t bfc_idle(const bfc_t *self) { return self->chunks.bytes - self->used_bytes; }
static inline bool bfc_is_free(const bfc_t *self, uint32_t slot) {
    return strata_slab_is_idle(bfc_slab(self), slot); /* always false for the sentinel */
}
/* Returns the peer's bin number for reports. Bin b has blocks of 256 << b bytes up to twice that, and the last
 * one all larger blocks. The order of the tree visits the bins one after the other. */
static inline uint32_t bfc_bin_of(uint64_t size) {
    uint32_t bin = 63u - (uint32_t)__builtin_clzll(size / STRATA_BFC_UNIT | 1);
    return bin < STRATA_BFC_BINS ? bin : STRATA_BFC_BINS - 1;
}
/* Returns the stamp of a free block, or 0 if it has none. */
static inline uint32_t bfc_stamp_of(const strata_record_t *block) { return (uint32_t)block->free_word; }
/* Returns the count at which a free block was freed, or 0 if any stream may use it. */
static inline uint64_t bfc_freed_at(const bfc_t *self, const strata_record_t *block) {
    return bfc_stamp_of(block) ? bfc_stamp_at(self, bfc_stamp_of(block))->count : 0;
}

/* Returns the name of the option that sets the limit. */
static inline const char *strata_bfc_bound(const bfc_t *self) {
    return self->limit == bfc_options_of(self)->memory_limit ? "memory_limit" : "memory_fraction";
}

/* ---- blocks and regions (bfc_regions.c) ---- */

extern const strata_chunk_policy_t strata_bfc_policy;

/* Marks the last block of a region, which is new and in no bin yet. If memory below is stream-ordered, its last
 * user is `user`, and other streams need a wait. Returns its slot. */
uint32_t strata_bfc_mark_region(bfc_t *self, uint32_t region, uint32_t user);
/* Frees a block. It is coalesced with its free neighbors and indexed, or stays separate with a stamp. */
void strata_bfc_free_block(bfc_t *self, strata_record_t *block);
/* Coalesces a free block with its free neighbors that have no stamp, or with `all` also with stamped ones.
 * Returns the slot of the result. */
uint32_t strata_bfc_coalesce(bfc_t *self, uint32_t slot, bool all);
static inline void strata_bfc_index(bfc_t *self, uint32_t slot) { strata_tree_quick_insert(&self->idle, bfc_slab(self), slot); }
static inline void strata_bfc_unindex(bfc_t *self, uint32_t slot) { strata_tree_quick_remove(&self->idle, bfc_slab(self), slot); }
/* Returns the bytes of the regions without a live block. */
uint64_t strata_bfc_releasable(const bfc_t *self);

/* Returns the user of a stack's own stream if the stack's last request was from that stream, or 0 if that is
 * unknown. */
static inline uint32_t strata_bfc_known_user(const bfc_t *self, const strata_stack_t *stack) {
    uint32_t hint = self->hints[stack->number];
    const strata_user_t *user = strata_user_at(&self->last.users, hint);
    bool own = user->state == STRATA_USER_NAMED && user->stream == stack->stream && user->thread == stack->thread;
    return hint && own ? hint : 0;
}

/* ---- frees with a count (bfc_stamps.c, bfc_frontier.c) ---- */

/* Stamps a block that is being freed with the next count. Returns false if no stamp is left; then the host must
 * wait. */
bool strata_bfc_stamp(bfc_t *self, strata_record_t *block);
/* Gives the rest of a split the stamp of its block. Returns false if no stamp is left. */
bool strata_bfc_stamp_rest(bfc_t *self, const strata_record_t *block, strata_record_t *rest);
/* Removes the block's stamp when it becomes usable by any stream, or is handed out. */
void strata_bfc_unstamp(bfc_t *self, strata_record_t *block);
/* Merges the stamp of `other`, which is absorbed, into that of `into`. The later count stays. */
void strata_bfc_merge_stamps(bfc_t *self, strata_record_t *into, strata_record_t *other);
/* Makes the blocks that the frontier has passed usable by any stream, and coalesces them. */
void strata_bfc_merge_safe(bfc_t *self);
/* Coalesces blocks regardless of their counts, in the order of their frees, until one has `size` bytes. Returns
 * false if none does. */
bool strata_bfc_merge_by_force(bfc_t *self, uint64_t size);
/* Coalesces the free blocks of a place regardless of their counts. Their marks keep their last users. */
void strata_bfc_merge_at(bfc_t *self, const strata_extent_t *place);
bool strata_bfc_set_frontier(bfc_t *self, uint64_t count);
uint32_t strata_bfc_unavailable(strata_layer_t *base, const strata_record_t *block, uint64_t size, strata_stream_t *stream);
strata_status_t strata_bfc_validate_stamps(const bfc_t *self);

/* ---- debugging (bfc_debug.c, bfc_print.c) ---- */

strata_status_t strata_bfc_debug_init(bfc_t *self);
void strata_bfc_debug_destroy(bfc_t *self);
/* Notes an allocation or a free. Called only with memory_debug. */
void strata_bfc_note(bfc_t *self, const strata_record_t *block, bool allocated);
/* Returns NULL if the slot has no note. */
static inline bfc_note_t *bfc_note_of(const bfc_t *self, uint32_t slot) {
    bool there = self->history && slot < strata_growing_usable(&self->notes) / sizeof(bfc_note_t);
    return there ? (bfc_note_t *)self->notes.memory + slot : NULL;
}
void strata_bfc_print(bfc_t *self, const strata_report_sink_t *sink);

/* ---- check (bfc_check.c) ---- */

strata_status_t strata_bfc_validate(strata_layer_t *base);

#endif
