/* A best-fit cache over mapped physical memory, which can join free memory of several handles without copying.
 *
 *     large range  |== H1 ==|.......|== H2 ==|== H3 ==|.....|    reserved addresses; dots are unmapped
 *     runs         |- run 1 |       |----- run 2 -----|          parts that touch
 *     blocks       |live|///|       |////////|////|live|         slashes are free memory
 *                        |              |        |
 *     view range   |....|== H1 ==|== H2 ==|== H3 ==|........|    the handles mapped again, by three aliases
 *                            |<-- one block -->|                 high end of H1, all of H2, low end of H3
 *
 *     handle  physical memory from the vmm source, 2 MiB or more
 *     part    a handle at its first address (cache/runs.h)
 *     run     parts that touch; a block may extend over several of them
 *     view    handles mapped a second time, next to each other, so that their free pieces are one block
 *     alias   the mapping of one handle in a view
 *     shadow  addresses that must not be used, because an alias or a departing handle is still mapped there
 *     room    unmapped addresses without a shadow; handles created there extend the free block beside them
 *     range   reserved addresses for one kind of memory: small blocks, large blocks or views
 *     piece   the free memory at the low or high end of a part, or all of it; a survey makes it a candidate
 *
 * A miss either joins pieces in a view or creates handles. The option `slack` decides which is tried first. A view serves
 * one block at a time, and stays mapped when that is freed.
 *
 *     auto_growth_vmm.c          the type: allocate, release, trim, create and destroy
 *     auto_growth_vmm_grow.c     decides what serves a miss, and creates handles
 *     auto_growth_vmm_survey.c   finds the free pieces of handles, and chooses those for a view
 *     auto_growth_vmm_views.c    builds, reuses and ends views
 *     auto_growth_vmm_moves.c    moves idle handles beside a free block
 *     auto_growth_vmm_room.c     ranges, and the room in them
 *     auto_growth_vmm_shadows.c  blocks addresses until the mapping there has ended */
#ifndef STRATA_ALLOCATION_LAYER_AUTO_GROWTH_VMM_STATE_H
#define STRATA_ALLOCATION_LAYER_AUTO_GROWTH_VMM_STATE_H

#include "allocation/cache/policies/auto_growth/auto_growth_state.h"
#include "allocation/cache/runs.h"
#include "allocation/layers/sources/vmm.h"

enum {
    STRATA_VMM_PARTS = 1 << 20,
    STRATA_VMM_RANGES = 64,
    STRATA_VMM_SHADOWS = 1 << 16,
    STRATA_VMM_VIEWS = 1 << 12,
    STRATA_VMM_PIECES = 128, /* of a view */
    STRATA_VMM_CANDIDATES = 2048,
    STRATA_VMM_REMEMBERED = 8,
    STRATA_VMM_ASKED = 64,
    STRATA_VMM_GROWING = 10, /* after this many growths the program's blocks are taken to grow */
    STRATA_VMM_VIEW_NUMBER = STRATA_RUNS_NUMBER + 1, /* chunk number of the blocks that views serve */
    /* `pool` of a block that belongs to a view, which serves it at another address */
    STRATA_VMM_IN_A_VIEW = STRATA_AUTO_GROWTH_POOLS
};

typedef struct auto_growth_vmm_options {
    auto_growth_options_t none; /* the options of auto_growth, all off */
    double slack;
    uint64_t slack_least;
    bool views, moves;
} auto_growth_vmm_options_t;

/* A part, with the free bytes at its ends as of the survey with that number. If all of it is free, both ends
 * have its size. */
typedef struct vmm_part {
    strata_run_part_t run;
    uint64_t survey;
    uint64_t head, tail; /* bytes */
    uint32_t head_block, tail_block; /* slots of the free blocks at the ends. They may be stale, so their users check them. */
    uint32_t views; /* number of views that use the part. It must stay while there are any. */
} vmm_part_t;

/* Addresses that must not be used, because something is mapped there. */
typedef struct vmm_shadow {
    uint32_t unused; /* free list link of an unused node */
    uint32_t next; /* next shadow of its view, or the next one to unmap, oldest first */
    strata_order_link_t link; /* by address */
    uint64_t at, size;
    uint32_t alias; /* vmm's number of the mapping, or 0 if vmm ends the mapping by itself */
    bool is_moved; /* the handle that was mapped here has moved, and this mapping is still to be ended */
    bool is_kept; /* vmm could not end the mapping. The addresses are free once it can. */
    uint32_t part; /* the part that is mapped here, while a view uses it */
    uint32_t own; /* slot of the block of the part that the view has taken, or 0 */
    uint8_t pool; /* pool of that block before the view took it */
    /* recorded after the work that may use this shadow and the earlier ones in the list. NULL if the event of a
     * later shadow covers it. */
    strata_handle_t event;
} vmm_shadow_t;

/* Handles that are mapped one after the other. */
typedef struct vmm_view {
    uint32_t unused;
    uint32_t older, newer; /* in order of use */
    strata_order_link_t link; /* by address */
    uint64_t at, size;
    uint32_t first; /* its first shadow */
    uint32_t slot; /* slot of the block that it serves, or 0 if it is idle */
} vmm_view_t;

/* The use of a range: the blocks of one pool, or views. Small blocks are separate, because they would keep
 * large handles from being idle. */
typedef enum vmm_kind { STRATA_VMM_SMALL, STRATA_VMM_LARGE, STRATA_VMM_OF_VIEWS } vmm_kind_t;
typedef struct vmm_range {
    uint64_t base, size;
    vmm_kind_t kind;
} vmm_range_t;

/* A free piece of a part: its high end, all of it, or its low end. */
typedef enum vmm_piece_kind { STRATA_VMM_HIGH_END, STRATA_VMM_WHOLE, STRATA_VMM_LOW_END } vmm_piece_kind_t;
typedef struct vmm_candidate {
    uint32_t part;
    vmm_piece_kind_t kind;
    uint64_t size;
} vmm_candidate_t;

typedef struct vmm_candidates {
    uint32_t count, chosen; /* the chosen ones are first */
    vmm_candidate_t items[STRATA_VMM_CANDIDATES];
} vmm_candidates_t;

typedef struct auto_growth_vmm {
    auto_growth_t growth;
    strata_runs_t runs;
    strata_layer_t *vmm;
    uint64_t granularity;
    uint64_t peak_used; /* max bytes in use at any miss, including its request */
    uint64_t small_bytes; /* bytes of the handles for small blocks */
    uint64_t created[STRATA_VMM_REMEMBERED]; /* ring of the sizes of the latest creations, in bytes */
    uint32_t created_next;
    uint64_t asked[STRATA_VMM_ASKED]; /* ring of the distinct sizes that pieces were to serve */
    uint64_t step; /* difference by which new sizes have grown from those that were new `buffers` sizes before; 0 if unknown */
    uint32_t buffers;
    uint32_t steps; /* number of new sizes in a row that have grown by it, without the two that showed it */
    uint32_t growths; /* number of large misses of a new size a little larger than one of them */
    uint32_t repeats; /* number of large misses of a known size since the last growth */
    uint32_t asked_next, unseen; /* count of recent sizes that were not among them, halved by each one that was */
    uint64_t row_size; /* size in a row of misses of one size, each at a new peak of used bytes */
    uint32_t row_count; /* number of blocks created in this row */
    uint64_t device_bytes; /* memory of the device in all; 0 until a large growth has asked */
    vmm_range_t ranges[STRATA_VMM_RANGES]; /* in order of creation */
    uint32_t range_count;
    /* set when a range is made or a shadow removed, and cleared when empty ranges are unreserved. A range
     * cannot become empty otherwise, because every unmapping leaves a shadow first. */
    bool ranges_changed;
    strata_nodes_t shadow_nodes;
    strata_order_t shadows;
    uint32_t unmappable_shadows; /* number of shadows that vmm keeps mapped */
    uint32_t first_shadow, last_shadow; /* shadows to unmap, oldest first; those being unmapped now are not in this list */
    strata_nodes_t view_nodes;
    strata_order_t views_by_address;
    uint32_t oldest, newest; /* views in order of use */
    uint64_t mapped; /* number of shadows that belong to views */
    uint64_t survey; /* number of the latest survey */
    uint64_t views, joins, creations, moves; /* statistics */
    uint64_t created_ns, joined_ns; /* time that the creation of handles has taken, and that of views and moves */
    vmm_candidates_t candidates; /* of the current miss */
} auto_growth_vmm_t;

static inline const auto_growth_vmm_options_t *strata_growth_vmm_options(const auto_growth_vmm_t *self) {
    return self->growth.base.options;
}
static inline strata_slab_t *strata_growth_vmm_slab(const auto_growth_vmm_t *self) { return &self->growth.base.stack->slab; }
static inline strata_bins_t *strata_growth_vmm_bins(auto_growth_vmm_t *self, vmm_kind_t pool) {
    return &self->growth.pools[pool].bins;
}
static inline vmm_part_t *strata_growth_vmm_part(const auto_growth_vmm_t *self, uint32_t part) {
    return strata_node(&self->growth.chunks.nodes, part);
}

/* Except in create and destroy, all functions run under the lock of the cache's stack. */

/* Returns true if the program replaces large blocks by slightly larger ones. */
static inline bool strata_growth_vmm_is_growing(const auto_growth_vmm_t *self) {
    return self->growths >= STRATA_VMM_GROWING && strata_growth_vmm_options(self)->moves;
}

/* ---- room ---- */

/* Unmapped addresses, with the free block beside them if there is one. */
typedef struct vmm_room {
    uint64_t at, width;
    uint64_t have; /* bytes of the free block that it extends */
    uint32_t beside; /* slot of that block, or 0 */
    bool below; /* the block follows the room, so new handles must end there */
    vmm_kind_t kind;
} vmm_room_t;

/* Finds the room where the fewest bytes are missing for a block of `size` bytes. For a view, it needs room for
 * all `size` bytes. May reserve a range, with the locks open. Returns E_NO_MEMORY if the device has no more
 * addresses. */
strata_status_t strata_growth_vmm_find_room(auto_growth_vmm_t *self, uint64_t size, vmm_kind_t kind, strata_call_t *call,
                                            vmm_room_t *room);
/* Returns the kind of the range that contains an address. */
vmm_kind_t strata_growth_vmm_kind_at(const auto_growth_vmm_t *self, uint64_t address);
/* Unreserves the empty ranges, with the locks open. */
void strata_growth_vmm_end_ranges(auto_growth_vmm_t *self, strata_call_t *call);

/* ---- a miss ---- */

/* Returns true if a request of `rounded` bytes may use a free block of the large pool that fits. A small block keeps a large
 * handle in use, so the first handles are for small blocks alone. */
bool strata_growth_vmm_may_mix(auto_growth_vmm_t *self, vmm_kind_t pool, uint64_t rounded);

/* The policy's `grow`. It makes a block of free pieces, or creates handles. Then it serves the low end of the
 * new room, so that the rest of the room stays in one piece. */
strata_status_t strata_growth_vmm_grow(strata_layer_t *base, strata_lookup_t *lookup, uint64_t rounded, strata_record_t **served);

/* ---- survey ---- */

/* Called for each part that is idle, and is in the free block `slot`. Returns false to stop. */
typedef bool (*vmm_idle_fn)(auto_growth_vmm_t *self, uint32_t part, uint32_t slot, void *context);
void strata_growth_vmm_each_idle(auto_growth_vmm_t *self, vmm_idle_fn idle, void *context);
/* Records the free memory of both pools, in the parts and as candidates. */
void strata_growth_vmm_survey(auto_growth_vmm_t *self);
/* Chooses few candidates with a total of `size` bytes, and sorts them in mapping order. Returns the bytes that
 * are missing. */
uint64_t strata_growth_vmm_choose(auto_growth_vmm_t *self, uint64_t size);

/* ---- views ---- */

strata_status_t strata_growth_vmm_init_views(auto_growth_vmm_t *self);
/* Serves a block of `rounded` bytes from free pieces, in an existing view or in a new one, which is mapped with
 * the locks open. If that is impossible, it returns OK with *served NULL. Then *missing is the number of free
 * bytes that are lacking, or 0 for other causes. */
strata_status_t strata_growth_vmm_view(auto_growth_vmm_t *self, uint64_t rounded, const strata_request_t *request,
                                       strata_record_t **served, uint64_t *missing);
/* Like strata_growth_vmm_view(), but it makes no new view. Returns NULL if no idle view has the free bytes. */
strata_record_t *strata_growth_vmm_reuse_view(auto_growth_vmm_t *self, uint64_t rounded, size_t size);
/* Frees a block that a view serves. */
void strata_growth_vmm_free_viewed(auto_growth_vmm_t *self, strata_record_t *block);
/* Ends every idle view. */
void strata_growth_vmm_drop_views(auto_growth_vmm_t *self, strata_call_t *call);
/* Returns the block that a view serves at an address, or NULL. */
const strata_record_t *strata_growth_vmm_viewed_at(auto_growth_vmm_t *self, uint64_t address);
/* Returns the first part of the block's view. */
uint32_t strata_growth_vmm_viewed_part(auto_growth_vmm_t *self, const strata_record_t *block);
strata_status_t strata_growth_vmm_validate_views(auto_growth_vmm_t *self);
static inline vmm_view_t *strata_growth_vmm_view_at(const auto_growth_vmm_t *self, uint32_t view) {
    return strata_node(&self->view_nodes, view);
}

/* ---- moves ---- */

/* Moves idle handles of up to `missing` bytes into a room. Ends the idle views. May open the locks. */
void strata_growth_vmm_gather(auto_growth_vmm_t *self, const vmm_room_t *room, uint64_t missing, strata_call_t *call);
/* Adds the block of a mapped handle, which is in no index, to the free blocks of a pool. */
void strata_growth_vmm_add_free(auto_growth_vmm_t *self, uint32_t slot, vmm_kind_t pool);

/* ---- shadows ---- */

strata_status_t strata_growth_vmm_init_shadows(auto_growth_vmm_t *self);
/* Ends all remaining mappings. No work of the stack's stream may use them, unless there is no other choice. No
 * lock is held. */
void strata_growth_vmm_end_shadows(auto_growth_vmm_t *self);
/* Blocks addresses with a new shadow. Returns its number, or 0 if there are no more. */
uint32_t strata_growth_vmm_block(auto_growth_vmm_t *self, uint64_t at, uint64_t size);
/* Unblocks the addresses, or marks them to be unblocked once vmm no longer keeps a mapping there. */
void strata_growth_vmm_unblock(auto_growth_vmm_t *self, uint32_t shadow);
/* Adds the shadow to those to unmap. */
void strata_growth_vmm_retire_shadow(auto_growth_vmm_t *self, uint32_t shadow);
/* Records the event for the shadows cast since the last call. It must follow all work that may use them. If it
 * is NULL, the next event covers them. */
void strata_growth_vmm_cover_shadows(auto_growth_vmm_t *self, strata_handle_t event);
/* Unmaps the shadows that no work uses any more, with the locks open. With `wait`, the host waits for the work
 * on all of them. */
void strata_growth_vmm_drop_shadows(auto_growth_vmm_t *self, bool wait, strata_call_t *call);
/* Returns the first shadow at an address or above it, or 0 if there is none. */
static inline uint32_t strata_growth_vmm_shadow_from(auto_growth_vmm_t *self, uint64_t address) {
    return strata_order_from(&self->shadows, &(strata_order_key_t){address, 0, 0});
}
static inline vmm_shadow_t *strata_growth_vmm_shadow(const auto_growth_vmm_t *self, uint32_t shadow) {
    return strata_node(&self->shadow_nodes, shadow);
}

/* Ensures that there is an event for strata_growth_vmm_mark_stream(), with the locks open. */
bool strata_growth_vmm_ensure_event(auto_growth_vmm_t *self, strata_call_t *call);
/* Returns an event after all work of the stack's stream. Returns NULL if the stream cannot be named or is being
 * captured, or if the device refuses. Then the end of that work cannot be observed. */
strata_handle_t strata_growth_vmm_mark_stream(auto_growth_vmm_t *self);

#endif
