/* What the files of auto_growth_vmm share.
 *
 *     auto_growth_vmm.c          the type: allocate, release, trim, its life
 *     auto_growth_vmm_grow.c     a miss: which handles are moved, which are created
 *     auto_growth_vmm_room.c     ranges of addresses, and where in them there is room
 *     auto_growth_vmm_shadows.c  mappings that moves have left, until no work uses them
 */
#ifndef STRATA_ALLOCATION_LAYER_AUTO_GROWTH_VMM_STATE_H
#define STRATA_ALLOCATION_LAYER_AUTO_GROWTH_VMM_STATE_H

#include "allocation/chunks/runs.h"
#include "allocation/layer/auto_growth_state.h"
#include "allocation/layer/vmm.h"

enum {
    STRATA_VMM_PARTS = 1 << 20,
    STRATA_VMM_RANGES = 64,
    STRATA_VMM_SHADOWS = 1 << 16,
    STRATA_VMM_CANDIDATES = 1024,
    STRATA_VMM_REMEMBERED = 8
};

typedef struct auto_growth_vmm_options {
    auto_growth_options_t none; /* those of auto_growth, all off */
    double slack;
    uint64_t slack_least;
    bool moves;
} auto_growth_vmm_options_t;

/* A mapping that a move has left: its addresses are nobody's until the work that may use it is done. */
typedef struct vmm_shadow {
    uint32_t unused; /* a node that nobody has begins with the number of the next */
    uint32_t next; /* in order of making */
    strata_order_link_t link; /* by address */
    uint64_t at, size;
    bool below; /* vmm has the mapping, and ends it */
    strata_handle_t event; /* after that work, and that of all shadows made before; NULL: a later one's stands for it */
} vmm_shadow_t;

typedef struct vmm_range {
    uint64_t base, size;
} vmm_range_t;

/* Parts that may be moved. */
typedef struct vmm_candidate {
    uint32_t part, slot;
    uint64_t size;
} vmm_candidate_t;

typedef struct vmm_candidates {
    uint32_t count;
    uint32_t beside; /* the slot of the block that they are to extend, which stays */
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
    vmm_range_t ranges[STRATA_VMM_RANGES]; /* in order of making */
    uint32_t range_count;
    strata_nodes_t shadow_nodes;
    strata_order_t shadows;
    uint32_t first_shadow, last_shadow; /* in order of making, those that are still mapped and not being unmapped */
    uint64_t shadow_bytes, moves, creations; /* figures */
    vmm_candidates_t candidates; /* of the miss that is under way */
} auto_growth_vmm_t;

static inline const auto_growth_vmm_options_t *strata_growth_vmm_options(const auto_growth_vmm_t *self) {
    return self->growth.base.options;
}
static inline strata_slab_t *strata_growth_vmm_slab(const auto_growth_vmm_t *self) { return &self->growth.base.stack->slab; }

/* Everything under the lock of the cache's stack. */

/* ---- room ---- */

/* Unmapped addresses beside memory that is free already. */
typedef struct vmm_room {
    uint64_t at, width;
    uint64_t have; /* bytes of the free block that it extends */
    uint32_t beside; /* the slot of that block; 0: none */
    bool below; /* the block lies after the room, and what comes must end there */
} vmm_room_t;

/* Where the least is missing for a block of `size` bytes. E_NO_MEMORY: the device has no more addresses. A range may be reserved,
 * with the locks open. */
strata_status_t strata_growth_vmm_find_room(auto_growth_vmm_t *self, uint64_t size, strata_call_t *call, vmm_room_t *room);
/* Ranges in which nothing is end. The locks are open meanwhile. */
void strata_growth_vmm_end_ranges(auto_growth_vmm_t *self, strata_call_t *call);

/* ---- a miss ---- */

/* Memory comes together for a block of `size` bytes: handles are moved, and created. The locks are open meanwhile. The block is best
 * served at *place, so that what is left of the memory touches the room that is left; 0: at the high end of it. */
strata_status_t strata_growth_vmm_grow(auto_growth_vmm_t *self, uint64_t size, const strata_request_t *request, uint64_t *place);
/* What is done for each part that is free as a whole: it lies in the free block `slot`. False: stop. */
typedef bool (*vmm_idle_fn)(auto_growth_vmm_t *self, uint32_t part, uint32_t slot, void *context);
void strata_growth_vmm_each_idle(auto_growth_vmm_t *self, vmm_idle_fn idle, void *context);
/* An idle part, in the free block `slot` or near it, leaves the cache; what it was made from. NULL: no slot is left, and nothing
 * has changed. */
strata_record_t *strata_growth_vmm_take(auto_growth_vmm_t *self, uint32_t part, uint32_t slot);
/* It comes, where it is mapped now, and merges. False: no slot is left. */
bool strata_growth_vmm_put(auto_growth_vmm_t *self, strata_record_t *below);

/* ---- shadows ---- */

strata_status_t strata_growth_vmm_init_shadows(auto_growth_vmm_t *self);
/* All that are left are unmapped: no work of the stack's stream is under way, or no other way is left. No lock is held. */
void strata_growth_vmm_end_shadows(auto_growth_vmm_t *self);
/* A node for a shadow; 0: there is none, and nothing may be moved. */
uint32_t strata_growth_vmm_new_shadow(auto_growth_vmm_t *self);
void strata_growth_vmm_cast(auto_growth_vmm_t *self, uint32_t shadow, uint64_t at, uint64_t size);
/* Addresses are nobody's while vmm ends the mapping there: no list has the shadow. */
void strata_growth_vmm_block(auto_growth_vmm_t *self, uint32_t shadow, uint64_t at, uint64_t size);
/* The end of that; `keeps`: vmm still has the mapping, and they stay nobody's. */
void strata_growth_vmm_unblock(auto_growth_vmm_t *self, uint32_t shadow, bool keeps);
/* The event after the work that may use those cast since the last one that was covered. */
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
 * refuses: nothing may be moved, and nothing shows when that work is done. */
strata_handle_t strata_growth_vmm_mark_stream(auto_growth_vmm_t *self);

#endif
