/* What the files of planned share.
 *
 *     planned.c        the type
 *     planned_steps.c  where steps begin and end, and which plan is followed
 *     planned_serve.c  requests and frees
 *     planned_plan.c   a plan out of a step that was repeated
 *     planned_ahead.c  a plan that was made ahead
 *     planned_room.c   the memory that plans are laid out in
 *     planned_hold.c   a room that the cache below leaves to the plan as a whole
 *     planned_links.c  which requests must be over before a place is free again
 */
#ifndef STRATA_ALLOCATION_LAYER_PLANNED_STATE_H
#define STRATA_ALLOCATION_LAYER_PLANNED_STATE_H

#include "allocation/chunks/chunks.h"
#include "allocation/mechanism/past.h"
#include "allocation/stack/layer.h"
#include "allocation/stack/planning.h"
#include "planning/file/ahead.h"

enum { STRATA_PLANNED_PLANS = 64, STRATA_PLANNED_ALIGNMENT = 256 };

typedef struct planned_options {
    uint64_t plans;
    uint64_t least;
    bool learns;
} planned_options_t;

/* A request of a step. */
typedef struct planned_place {
    uint64_t key; /* what it asks for: strata_planned_key() */
    uint64_t mixed; /* strata_past_mixed() of that */
    uint64_t size; /* bytes that serve it */
    uint64_t offset; /* STRATA_NOWHERE: the plan says nothing */
    uint64_t hash; /* of the keys of the step up to and with this one */
    uint32_t back; /* the block below it is that of the request so many before; 0: of none of the plan, */
    uint32_t slot; /* but has this slot; 0: nothing is known */
    uint32_t links; /* where those of it begin: planned_plan_t */
    bool last; /* all of its bytes are its own when the step ends */
} planned_place_t;

#define STRATA_NOWHERE UINT64_MAX

/* The name of a request of a plan that was made ahead, and which one it is. */
typedef struct planned_name {
    uint64_t name;
    uint32_t place;
} planned_name_t;

typedef struct planned_plan {
    planned_place_t *places; /* behind the last one stands one that nobody asks for */
    planned_name_t *names; /* by name; NULL: it was not made ahead */
    uint32_t count;
    uint64_t peak;
    uint64_t used; /* when, for the choice of which one goes */
    uint32_t after; /* the plan of the step that followed it last, by its `serial`; 0: none did */
    uint32_t serial;
    bool adopted; /* what was made ahead knew no exact sizes: keys have become those of the program, hashes not yet */
    /* For a room that is held: */
    uint32_t *links; /* the places that have a place's bytes right before it, in the circle of steps; NULL: there are none */
    uint32_t *by_address; /* all places */
    uint32_t *slots; /* of the live block at a place; 0: none. That of `count` is never 0, and stands for "never free" */
} planned_plan_t;

typedef struct planned {
    strata_layer_t base;
    strata_past_t
        past; /* its numbers are `noted` in the records of blocks; requests that follow a plan are open, if steps are told */
    planned_plan_t *plans[STRATA_PLANNED_PLANS];
    uint32_t plan_count, last_serial;
    planned_plan_t *now; /* the plan that is followed; NULL: none */
    planned_plan_t *before; /* that of the last step; NULL: it was none of the plans */
    planned_place_t *next; /* the next request of it; one that nobody makes: there is none */
    uint32_t at; /* requests of the step so far, if a plan is followed */
    uint32_t missed; /* the request that found its place taken, and goes the long way perhaps */
    uint32_t begin; /* the first request of the step */
    uint32_t due; /* the step of so many requests that has ended: a plan is to be made, or room */
    bool told; /* the program says where its steps end */
    bool deaf; /* the host has no memory for more of the past: nothing is learnt any more */
    bool busy; /* a thread makes a plan or room, with the lock open */
    uint32_t wanted, wanted_end; /* another thread is to plan the step of so many requests before that one; 0: none */
    uint64_t making; /* the hash of the step that it plans now; 0: none */
    uint64_t clock; /* of `used` */
    /* The room: addresses of the cache below, free but for what is live. */
    uint64_t room, room_size; /* 0: there is none */
    /* While the room is held: planned_hold.c. */
    bool holds;
    uint32_t room_slot, room_chunk; /* of the cache's block, which is all of the room */
    uint32_t room_near; /* the slot of a block near the beginning of the room, as far as is known; also while it is not held */
    uint32_t live; /* blocks at places */
    uint32_t spare, spares; /* slots, by `next`, and how many: for the pieces between those blocks when the room goes back */
    uint32_t unheld; /* steps in a row whose room could not be held because of what lives there, */
    uint32_t estranged; /* and how often it was made anew for that */
    uint64_t beside_bytes; /* in this step: what found its place taken */
    uint32_t rest, rests; /* steps until room may be made again, and how many the last time */
    uint64_t hits, beside, left, steps, made, rooms, pinned; /* figures */
} planned_t;

static inline const planned_options_t *strata_planned_options(const planned_t *self) { return self->base.options; }

static inline uint64_t strata_planned_key(size_t size, size_t alignment) {
    uint64_t high = alignment > STRATA_PLANNED_ALIGNMENT ? (uint64_t)__builtin_ctzll(alignment) : 0;
    return size | high << 56;
}

/* The key of no request. */
#define STRATA_PLANNED_NOBODY UINT64_MAX
/* Places of a plan, and the one behind them. NULL: the host has no memory. */
planned_place_t *strata_planned_new_places(uint32_t count);

/* ---- all under the lock ---- */

/* What the open requests asked for. They are those of the plan that is followed, up to the next one of it, and go round perhaps: while
 * none is followed none is open. */
void strata_planned_tell(planned_t *self);
static inline void strata_planned_tell_all(planned_t *self) {
    if (__builtin_expect(self->past.open != self->past.next, 0)) strata_planned_tell(self);
}

/* The plan is followed from its request `at` on. NULL: none is. */
void strata_planned_go(planned_t *self, planned_plan_t *plan, uint32_t at);

/* A plan for the last `count` requests, which have been made twice. NULL: there is none to be had, or another thread makes it. The lock
 * is open meanwhile. */
planned_plan_t *strata_planned_make(planned_t *self, uint32_t count, strata_call_t *call);
/* That other thread: the plan that is wanted, if one is. */
void strata_planned_make_wanted(strata_layer_t *base, strata_call_t *call);
void strata_planned_delete(planned_plan_t *plan);
/* Returns the one that has to go for it, which no lock needs to guard any more; NULL: none has. */
planned_plan_t *strata_planned_keep(planned_t *self, planned_plan_t *plan);
/* The plan that says exactly this step; NULL: none. */
planned_plan_t *strata_planned_find(planned_t *self, uint32_t count, uint64_t hash);

/* Room for a plan comes together; the locks are open meanwhile. False: there is no memory for it now. */
bool strata_planned_make_room(planned_t *self, const planned_plan_t *plan, strata_call_t *call);
/* strata_planning_t.load */
strata_status_t strata_planned_load(strata_layer_t *base, const strata_ahead_t *ahead, strata_call_t *call);
/* Whether the next request, of that key, is the one that a plan made ahead has there, in the program's own bytes; then it is noted. */
bool strata_planned_adopt(planned_plan_t *plan, uint32_t at, uint64_t key);
/* Where in the plan a name stands; `at`: nowhere. */
uint32_t strata_planned_named(const planned_plan_t *plan, const char *name, uint32_t at);
/* The step has been followed to its end: hashes are those of the keys again. */
void strata_planned_settle(planned_plan_t *plan);

/* ---- steps (planned_steps.c) ---- */

enum { STRATA_PLANNED_SHORTEST = 4 }; /* step that is found where nobody tells it */

/* A step of `count` requests has ended. Its plan is made if it was repeated, and room for the plan of the next one; the lock is open
 * meanwhile. */
void strata_planned_end_step(planned_t *self, uint32_t count, strata_call_t *call);
/* Before a request of that key: whether a step has ended of which something is to be made, with the lock open. */
bool strata_planned_is_due(planned_t *self, uint64_t key);
/* Whether the next request, of that key, is one of a plan. */
bool strata_planned_is_expected(planned_t *self, uint64_t key);
/* Whether one of so many requests, after which as much lives as before, ends now. */
bool strata_planned_look_closely(planned_t *self, uint32_t count);
/* While no plan is followed: whether one ends now. */
static inline bool strata_planned_look_for_step(planned_t *self) {
    uint32_t count = strata_past_excursion(&self->past);
    return count >= STRATA_PLANNED_SHORTEST && strata_planned_look_closely(self, count);
}

/* ---- requests and frees (planned_serve.c) ---- */

/* The type's, and their shortest way. */
strata_record_t *strata_planned_hit(strata_layer_t *base, size_t size, const strata_stack_t *stack);
bool strata_planned_quick_free(strata_layer_t *base, strata_record_t *record);
extern const strata_direct_t strata_planned_direct;
/* The next request, at its place; NULL: it has none, or that is taken. */
strata_record_t *strata_planned_serve(planned_t *self, uint64_t key, size_t size, const strata_stack_t *stack);
/* A request was served by a record of this stack. A place that another block serves is not known to be free after this. */
void strata_planned_note(planned_t *self, uint64_t key, strata_record_t *record);
/* Notes the free of a record. True: it was held, and is free; else the cache below takes it. */
bool strata_planned_take_back(planned_t *self, strata_record_t *record);

/* ---- a room that is held ---- */

enum { STRATA_PLANNED_SPARES = 4 }; /* more than blocks live: a piece on either side, and two that a cut is about to make */

/* Writes what the plan needs for it. False: the host has no memory, and the plan does without. No lock is held. */
bool strata_planned_link(planned_plan_t *plan);
/* At the first request of the plan that is followed: holds the room, if nothing lives there but what the plan has put there. */
void strata_planned_hold(planned_t *self);
/* The room is the cache's again, and what lives in it are blocks of the cache. */
void strata_planned_let_go(planned_t *self);
/* More slots to spare. False: there are none. */
bool strata_planned_spare(planned_t *self);
strata_status_t strata_planned_validate_hold(const planned_t *self);

static inline bool strata_planned_is_held(const strata_record_t *record) { return record->pool == STRATA_CHUNKS_DIVIDED; }

/* Whether there is room for the plan, as far as is known. */
static inline bool strata_planned_has_room(const planned_t *self, const planned_plan_t *plan) {
    return self->room != 0 && self->room_size >= plan->peak;
}

#endif
