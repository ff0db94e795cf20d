/* What the files of auto_growth_vmm share.
 *
 *     auto_growth_vmm.c          the type: allocate, release, trim, its life
 *     auto_growth_vmm_grow.c     a miss: what serves it, and which handles are created
 *     auto_growth_vmm_survey.c   what lies idle in which handle, and which of it makes a block together
 *     auto_growth_vmm_views.c    views: further mappings of handles, in which idle pieces of them are one block
 *     auto_growth_vmm_room.c     ranges of addresses, and where in them there is room
 *     auto_growth_vmm_shadows.c  addresses that are nobody's as long as something is mapped there
 */
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
    STRATA_VMM_VIEW_NUMBER = STRATA_RUNS_NUMBER + 1, /* of the blocks that views serve */
    STRATA_VMM_IN_A_VIEW = STRATA_AUTO_GROWTH_POOLS /* `pool` of a block that a view has: another address of it is served */
};

typedef struct auto_growth_vmm_options {
    auto_growth_options_t none; /* those of auto_growth, all off */
    double slack;
    uint64_t slack_least;
    bool views;
} auto_growth_vmm_options_t;

/* A part, and what is idle at its low and high end: as of the survey of that number. Both ends of one that is idle as a whole. */
typedef struct vmm_part {
    strata_run_part_t run;
    uint64_t survey;
    uint64_t head, tail; /* bytes */
    uint32_t head_block, tail_block; /* the slots of the free blocks that they were of; to be checked */
    uint32_t views; /* that have it: it stays as long as there are some */
} vmm_part_t;

/* Addresses that are nobody's, because something is mapped there. */
typedef struct vmm_shadow {
    uint32_t unused; /* a node that nobody has begins with the number of the next */
    uint32_t next; /* of those that a view has; of those that are to end, in order of making */
    strata_order_link_t link; /* by address */
    uint64_t at, size;
    uint32_t alias; /* of vmm's, the mapping; 0: vmm ends it by itself */
    bool is_kept; /* vmm could not end what is mapped there: the addresses are free once it can */
    uint32_t part; /* whose mapping it is, as long as a view has it */
    uint32_t own; /* the slot of the block of the part that the view has taken; 0: none */
    strata_handle_t event; /* after the work that may use it and those before it in that order; NULL: a later one's stands for it */
} vmm_shadow_t;

/* Handles, mapped one after the other. */
typedef struct vmm_view {
    uint32_t unused;
    uint32_t older, newer; /* in order of use */
    strata_order_link_t link; /* by address */
    uint64_t at, size;
    uint32_t first; /* shadow */
    uint32_t slot; /* of the block that it serves; 0: it is idle */
} vmm_view_t;

/* What a range of addresses is for: of each pool the blocks, or views. Little blocks would keep large handles from being idle. */
typedef enum vmm_kind { STRATA_VMM_SMALL, STRATA_VMM_LARGE, STRATA_VMM_OF_VIEWS } vmm_kind_t;
typedef struct vmm_range {
    uint64_t base, size;
    vmm_kind_t kind;
} vmm_range_t;

/* An idle piece of a part: its low end, its high end, or all of it. */
typedef enum vmm_piece_kind { STRATA_VMM_HIGH_END, STRATA_VMM_WHOLE, STRATA_VMM_LOW_END } vmm_piece_kind_t;
typedef struct vmm_candidate {
    uint32_t part;
    vmm_piece_kind_t kind;
    uint64_t size;
} vmm_candidate_t;

typedef struct vmm_candidates {
    uint32_t count, chosen; /* those that are chosen come first */
    vmm_candidate_t items[STRATA_VMM_CANDIDATES];
} vmm_candidates_t;

typedef struct auto_growth_vmm {
    auto_growth_t growth;
    strata_runs_t runs;
    strata_layer_t *vmm;
    uint64_t granularity;
    uint64_t peak_used; /* the most bytes that were in use at a miss, its request included */
    uint64_t created[STRATA_VMM_REMEMBERED]; /* bytes of the latest creations, in a ring */
    uint32_t created_next;
    uint64_t asked[STRATA_VMM_ASKED]; /* sizes that idle pieces were to serve, in a ring: each once */
    uint32_t asked_next, unseen; /* sizes of late that were not among them */
    uint64_t row_size; /* that the latest misses asked for, each of which came when more was in use than ever, */
    uint32_t row_count; /* and how many blocks came for them */
    uint64_t small_bytes; /* of the handles of the small pool */
    vmm_range_t ranges[STRATA_VMM_RANGES]; /* in order of making */
    uint32_t range_count;
    bool ranges_changed; /* since those that were empty ended one was made, or a shadow went: whatever leaves its addresses leaves one */
    strata_nodes_t shadow_nodes;
    strata_order_t shadows;
    uint32_t kept_shadows; /* how many vmm keeps mapped */
    uint32_t first_shadow, last_shadow; /* in order of making, those that are to end and are not being ended */
    strata_nodes_t view_nodes;
    strata_order_t views_by_address;
    uint32_t oldest, newest; /* view, by use */
    uint64_t mapped; /* shadows that views have */
    uint64_t survey; /* number of the latest */
    uint64_t views, joins, creations; /* figures */
    vmm_candidates_t candidates; /* of the miss that is under way */
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

/* Everything under the lock of the cache's stack. */

/* ---- room ---- */

/* Unmapped addresses beside memory that is free already. */
typedef struct vmm_room {
    uint64_t at, width;
    uint64_t have; /* bytes of the free block that it extends */
    uint32_t beside; /* the slot of that block; 0: none */
    bool below; /* the block lies after the room, and what comes must end there */
    vmm_kind_t kind;
} vmm_room_t;

/* Where the least is missing for a block of `size` bytes; for a view, where `size` bytes of addresses are nobody's. E_NO_MEMORY: the
 * device has no more addresses. A range may be reserved, with the locks open. */
strata_status_t strata_growth_vmm_find_room(auto_growth_vmm_t *self, uint64_t size, vmm_kind_t kind, strata_call_t *call,
                                            vmm_room_t *room);
/* Ranges in which nothing is end. The locks are open meanwhile. */
void strata_growth_vmm_end_ranges(auto_growth_vmm_t *self, strata_call_t *call);

/* ---- a miss ---- */

/* The policy's `grow`. It makes a block of idle pieces, or creates handles. Then it serves the low end of the new room, so that the rest
 * of the room stays in one piece. */
strata_status_t strata_growth_vmm_grow(strata_layer_t *base, strata_lookup_t *lookup, uint64_t rounded, strata_record_t **served);

/* ---- survey ---- */

/* What is done for each part that is free as a whole: it lies in the free block `slot`. False: stop. */
typedef bool (*vmm_idle_fn)(auto_growth_vmm_t *self, uint32_t part, uint32_t slot, void *context);
void strata_growth_vmm_each_idle(auto_growth_vmm_t *self, vmm_idle_fn idle, void *context);
/* An idle part, in the free block `slot` or near it, leaves the cache; what it was made from. NULL: no slot is left, and nothing
 * has changed. */
strata_record_t *strata_growth_vmm_take(auto_growth_vmm_t *self, uint32_t part, uint32_t slot);
/* Looks at all that is idle in the large pool: into the parts, and into the candidates. */
void strata_growth_vmm_survey(auto_growth_vmm_t *self);
/* Chooses few candidates that are `size` bytes together, in the order in which they must be mapped. Returns what is missing. */
uint64_t strata_growth_vmm_choose(auto_growth_vmm_t *self, uint64_t size);

/* ---- views ---- */

strata_status_t strata_growth_vmm_init_views(auto_growth_vmm_t *self);
/* A block of `rounded` bytes from idle pieces of handles, in a view that is there or in a new one, which is mapped with the locks open.
 * *served NULL with OK: too little is idle, by *missing bytes; 0: for another reason. */
strata_status_t strata_growth_vmm_view(auto_growth_vmm_t *self, uint64_t rounded, const strata_request_t *request,
                                       strata_record_t **served, uint64_t *missing);
/* The free of such a block. */
void strata_growth_vmm_free_viewed(auto_growth_vmm_t *self, strata_record_t *block);
/* Every idle view is to end. */
void strata_growth_vmm_drop_views(auto_growth_vmm_t *self, strata_call_t *call);
/* The block that a view serves at an address; NULL: none. */
const strata_record_t *strata_growth_vmm_viewed_at(auto_growth_vmm_t *self, uint64_t address);
/* The first part of its view. */
uint32_t strata_growth_vmm_viewed_part(auto_growth_vmm_t *self, const strata_record_t *block);
strata_status_t strata_growth_vmm_validate_views(auto_growth_vmm_t *self);
static inline vmm_view_t *strata_growth_vmm_view_at(const auto_growth_vmm_t *self, uint32_t view) {
    return strata_node(&self->view_nodes, view);
}

/* ---- shadows ---- */

strata_status_t strata_growth_vmm_init_shadows(auto_growth_vmm_t *self);
/* All that are left end: no work of the stack's stream is under way, or no other way is left. No lock is held. */
void strata_growth_vmm_end_shadows(auto_growth_vmm_t *self);
/* Addresses are nobody's from now on; its number, 0: there are no more of them. */
uint32_t strata_growth_vmm_block(auto_growth_vmm_t *self, uint64_t at, uint64_t size);
/* They are free again, or once vmm no longer keeps something mapped there. */
void strata_growth_vmm_unblock(auto_growth_vmm_t *self, uint32_t shadow);
/* The mapping is to end. */
void strata_growth_vmm_cast(auto_growth_vmm_t *self, uint32_t shadow);
/* The event after the work that may use those cast since the last one that was covered. NULL: the next one stands for it. */
void strata_growth_vmm_cover(auto_growth_vmm_t *self, strata_handle_t event);
/* Those whose work is done are unmapped, with the locks open. `wait`: the host waits for it. */
void strata_growth_vmm_drop_shadows(auto_growth_vmm_t *self, bool wait, strata_call_t *call);
/* The first shadow at an address or above; 0: none. */
uint32_t strata_growth_vmm_shadow_from(auto_growth_vmm_t *self, uint64_t address);
static inline vmm_shadow_t *strata_growth_vmm_shadow(const auto_growth_vmm_t *self, uint32_t shadow) {
    return strata_node(&self->shadow_nodes, shadow);
}

/* Makes sure that there is an event for strata_growth_vmm_mark_stream(); the locks are opened. */
bool strata_growth_vmm_ensure_event(auto_growth_vmm_t *self, strata_call_t *call);
/* An event after all work that the stack's stream was given. NULL: the stream cannot be named, or is being captured, or the device
 * refuses: nothing shows when that work is done. */
strata_handle_t strata_growth_vmm_mark_stream(auto_growth_vmm_t *self);

#endif
