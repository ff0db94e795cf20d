/* planned: requests of a program that repeats its steps are served where a plan says (docs/planning.md).
 *
 * It stands right above a cache, has no memory of its own, and gives the cache advice: it learns what a step asks for and how long
 * each block lives, lets a planner lay the step out, and from then on asks the cache for each request at its planned address. The
 * cache serves there if that is free. So nothing overlaps, whatever the program does; what finds its place taken is served anywhere.
 */
#include "allocation/chunks/apart.h"
#include "allocation/layer/planned_state.h"

#include "allocation/stack/direct.h"
#include "platform/arithmetic.h"

#define COLD __attribute__((noinline))

enum { SHORTEST = 4, RESTS_MOST = 64, BESIDE_PART = 16 };

static const strata_option_row_t options[] = {
    {"plans", STRATA_OPTION_COUNT, offsetof(planned_options_t, plans), "8", 1, STRATA_PLANNED_PLANS, NULL,
     "plans of different steps that are kept; the one that was not used for longest goes"},
    {"least", STRATA_OPTION_SIZE, offsetof(planned_options_t, least), "1MiB", 0, 1ull << 44, NULL,
     "steps that need less memory than this are not planned"},
    {"learns", STRATA_OPTION_BOOL, offsetof(planned_options_t, learns), "true", 0, 0, NULL,
     "steps that are repeated are planned; without it nothing is"},
    {0},
};

static const strata_stat_row_t stats[] = {
    {"planned_hits", "count", offsetof(planned_t, hits), "requests that were served at their planned address"},
    {"beside", "count", offsetof(planned_t, beside), "requests whose planned address was taken: served anywhere"},
    {"planned_steps", "count", offsetof(planned_t, steps), "steps that followed a plan to their end"},
    {"left", "count", offsetof(planned_t, left), "times that the program left a plan"},
    {"plans", "count", offsetof(planned_t, made), "plans that were made"},
    {"rooms", "count", offsetof(planned_t, rooms), "times that room for plans was made"},
    {"room_bytes", "bytes", offsetof(planned_t, room_size), "addresses that plans are laid out in"},
    {"pinned_bytes", "bytes", offsetof(planned_t, pinned),
     "memory outside the room that live blocks pin: of those that no plan placed, the chunks or handles they lie in"},
    {0},
};

static strata_layer_t *below(const planned_t *self) { return self->base.below[0]; }

/* Who serves at given places is a cache over chunks, and its state begins with them. */
static strata_chunks_t *chunks_of(const planned_t *self) { return (strata_chunks_t *)below(self); }

/* ---- steps ---- */

static planned_plan_t *by_serial(const planned_t *self, uint32_t serial) {
    for (uint32_t i = 0; i < self->plan_count; i++)
        if (self->plans[i]->serial == serial) return self->plans[i];
    return NULL;
}

static bool may_work(const planned_t *self) {
    const strata_stack_t *stack = self->base.stack;
    return !self->busy && !stack->orphan && !stack->group->graph && !atomic_load(&stack->group->pinned);
}

/* The plan that is followed from now on, if there is room for it. */
static void follow(planned_t *self, planned_plan_t *plan) {
    strata_planned_go(self, plan && strata_planned_has_room(self, plan) ? plan : NULL, 0);
    if (plan) plan->used = ++self->clock;
    if (!self->holds && may_work(self)) strata_planned_hold(self);
}

/* A step of `plan` (NULL: of none) has ended. What follows is what followed it the last time, at first the same. */
static planned_plan_t *turn(planned_t *self, planned_plan_t *plan) {
    if (self->before && plan) self->before->after = plan->serial;
    self->before = plan;
    self->steps += plan && plan == self->now && self->at == plan->count;
    planned_plan_t *next = plan ? by_serial(self, plan->after) : NULL;
    return next ? next : plan;
}

/* Whether too much of the step found its place taken; room is made anew, but seldom if that does not help. */
static bool is_crowded(planned_t *self, const planned_plan_t *plan) {
    bool crowded = self->beside_bytes > plan->peak / BESIDE_PART;
    self->beside_bytes = 0;
    if (!crowded) {
        self->rest = self->rests = 0;
        return false;
    }
    if (self->rest > 0) {
        self->rest--;
        return false;
    }
    self->rests = (uint32_t)strata_min(2 * self->rests + 1, RESTS_MOST);
    self->rest = self->rests;
    return true;
}

/* Whether room for the plan and what lives now are little more than what lived at the most: else much of the step is not free yet,
 * since other streams use it, and room would be got twice. */
static bool has_settled(const planned_t *self, const planned_plan_t *plan) {
    uint64_t most = strata_past_most(&self->past);
    return self->past.live + plan->peak <= most + most / BESIDE_PART;
}

/* Whether the step of so many requests followed the plan from its first one to its last. */
static bool is_followed(const planned_t *self, uint32_t count) {
    const planned_plan_t *plan = self->now;
    return plan && !plan->names && self->at == plan->count && count == plan->count;
}

/* The plan of the step of the last `count` requests. It is made if the step was repeated. */
static planned_plan_t *plan_of_step(planned_t *self, uint32_t count, strata_call_t *call) {
    if (is_followed(self, count)) return self->now;
    strata_planned_tell_all(self);
    if (self->now && self->at == self->now->count && self->now->adopted) strata_planned_settle(self->now);
    uint32_t now = self->past.next;
    if (count == 0 || now - self->past.first < count) return NULL;
    uint64_t hash = strata_past_hash(&self->past, now - count, count);
    planned_plan_t *plan = strata_planned_find(self, count, hash);
    bool wants = !plan && hash != self->making && strata_planned_options(self)->learns;
    if (!wants || !may_work(self) || !strata_past_repeats(&self->past, count)) return plan;
    self->busy = true;
    plan = strata_planned_make(self, count, call);
    self->busy = false;
    return plan;
}

/* A step of `count` requests has ended. Its plan is made if it was repeated, and room for the plan of the next one. */
static void end_step(planned_t *self, uint32_t count, strata_call_t *call) {
    uint32_t now = self->past.next;
    planned_plan_t *next = turn(self, plan_of_step(self, count, call));
    if (!next && self->plan_count > 0) next = self->plans[self->plan_count - 1];
    bool crowded = next && is_crowded(self, next);
    if (next && may_work(self) && has_settled(self, next) && (crowded || !strata_planned_has_room(self, next))) {
        uint32_t serial = next->serial;
        self->busy = true;
        (void)strata_planned_make_room(self, next, call);
        self->busy = false;
        next = by_serial(self, serial);
    }
    follow(self, now == self->past.next ? next : NULL);
    self->begin = self->past.next;
}

static void step(strata_layer_t *base, strata_call_t *call) {
    planned_t *self = (planned_t *)base;
    uint32_t count = self->past.next - self->begin;
    self->told = true;
    self->due = 0;
    if (count > 0) end_step(self, count, call);
}

/* ---- steps that nobody tells ---- */

/* Whether a step of so many requests ends here: one that is planned, or the second of two that are alike and need most of the memory
 * that was in use of late. */
static COLD bool ends_step(planned_t *self, uint32_t count) {
    const strata_past_t *past = &self->past;
    uint32_t from = past->next - count;
    uint64_t hash = strata_past_hash(past, from, count), most = strata_past_most(past);
    planned_plan_t *plan = strata_planned_find(self, count, hash);
    if (plan) return true;
    bool twice = strata_past_knows(past, from - count) && strata_past_at(past, from)->level == from - count &&
                 strata_past_hash(past, from - count, count) == hash;
    return twice && strata_past_peak(past, count) - past->live >= (most - past->live) / 2;
}

static COLD bool look_closely(planned_t *self, uint32_t count) {
    if (!may_work(self) || !ends_step(self, count)) return false;
    self->due = count;
    return true;
}

/* While no plan is followed. */
static inline bool look_for_step(planned_t *self) {
    uint32_t count = strata_past_excursion(&self->past);
    return count >= SHORTEST && look_closely(self, count);
}

/* The step has been followed to its end. */
static bool wrap(planned_t *self) {
    planned_plan_t *plan = self->now;
    if (plan->adopted) strata_planned_settle(plan);
    if (self->told) {
        strata_planned_go(self, NULL, 0);
        self->left++;
        return false;
    }
    if (self->beside_bytes > plan->peak / BESIDE_PART) {
        self->due = plan->count;
        return true;
    }
    follow(self, turn(self, plan));
    self->beside_bytes = 0;
    return false;
}

/* ---- requests ---- */

/* The plan that goes on with the key: this one, if it was made ahead, or another one that begins as this step did. */
static COLD planned_plan_t *other_plan(planned_t *self, uint64_t key) {
    planned_plan_t *left = self->now;
    strata_planned_tell_all(self);
    if (left->names && strata_planned_adopt(left, self->at, key)) return left;
    uint64_t hash = strata_past_mix(self->at ? left->places[self->at - 1].hash : 0, key);
    for (uint32_t i = 0; i < self->plan_count; i++) {
        planned_plan_t *plan = self->plans[i];
        if (plan != left && plan->count > self->at && plan->places[self->at].hash == hash && strata_planned_has_room(self, plan))
            return plan;
    }
    self->left++;
    return NULL;
}

/* Whether the next request is one of a plan. */
static bool is_expected(planned_t *self, uint64_t key) {
    if (self->next->key == key) return true;
    if (!self->now || self->at >= self->now->count) return false;
    strata_planned_go(self, other_plan(self, key), self->at);
    return self->now != NULL;
}

/* Before a request: whether a step has ended of which something is to be made, with the lock open. */
static bool is_due(planned_t *self, uint64_t key) {
    if (self->now && self->at >= self->now->count && wrap(self)) return true;
    return !is_expected(self, key) && !self->told && look_for_step(self);
}

/* The slot of the block below a place, as far as is known. */
static inline uint32_t hint(const planned_t *self, const planned_place_t *place) {
    return place->back ? strata_past_at(&self->past, self->past.next - place->back)->slot : place->slot;
}

static COLD void learn(planned_t *self, planned_place_t *place, uint32_t slot) {
    const strata_record_t *block = &self->base.records[slot];
    uint32_t back = block->state == STRATA_RECORD_LIVE && block->noted ? self->past.next - block->noted : 0;
    place->back = back <= self->now->count ? back : 0;
    place->slot = slot;
}

static inline void learn_hint(planned_t *self, planned_place_t *place, const strata_record_t *record, uint32_t known) {
    uint32_t slot = record->prev;
    if (self->base.records[slot].state == STRATA_RECORD_FREE) slot = self->base.records[slot].prev;
    if (__builtin_expect(slot != known, 0)) learn(self, place, slot);
}

static inline bool is_at(const planned_t *self, const planned_place_t *place, const strata_record_t *block) {
    return block->ptr == self->room + place->offset && block->size == place->size;
}

/* The block that was freed last, if the place is that of it. */
static inline strata_record_t *take_apart(planned_t *self, const planned_place_t *place, size_t size) {
    strata_chunks_t *chunks = chunks_of(self);
    strata_stack_t *stack = self->base.stack;
    strata_record_t *block = strata_chunks_apart(chunks, stack);
    if (!chunks->apart || !is_at(self, place, block)) return NULL;
    strata_chunks_serve_apart(chunks, stack, block, place->size - size);
    block->route = 0;
    self->hits++;
    return block;
}

/* ---- while the room is held ---- */

/* Whether nothing lives at the bytes of the next place. */
static inline STRATA_FORCED bool is_clear(const planned_t *self, const planned_place_t *place) {
    const planned_plan_t *plan = self->now;
    for (uint32_t link = place->links, end = place[1].links; link < end; link++)
        if (__builtin_expect(plan->slots[plan->links[link]] != 0, 0)) return false;
    return true;
}

/* The next place is served by the record of a slot that was taken, all but what strata_direct_mark() does. */
static inline STRATA_FORCED strata_record_t *serve_held(planned_t *self, const planned_place_t *place, size_t size, uint32_t slot,
                                                        strata_stack_t *stack) {
    strata_record_t *block = strata_slab_record(&stack->slab, slot);
    self->now->slots[self->at] = slot;
    self->live++;
    self->hits++;
    stack->figures.cache_hits++;
    block->ptr = self->room + place->offset;
    block->size = place->size;
    block->attention = 0;
    block->prev = self->at;
    block->next = 0;
    block->chunk = self->room_chunk;
    block->slack = (uint32_t)(place->size - size);
    block->pool = STRATA_CHUNKS_DIVIDED;
    block->borrows = 0;
    block->state = STRATA_RECORD_LIVE;
    return block;
}

static inline STRATA_FORCED bool has_spares(const planned_t *self) {
    return self->spares > self->live + STRATA_PLANNED_SPARES;
}

/* NULL: the place is taken, or there are no more slots. */
static COLD strata_record_t *take_held(planned_t *self, const planned_place_t *place, size_t size) {
    strata_stack_t *stack = self->base.stack;
    if (!is_clear(self, place) || !(has_spares(self) || strata_planned_spare(self))) return NULL;
    uint32_t slot = strata_slab_take(&stack->slab);
    if (slot == 0) return NULL;
    strata_record_t *block = serve_held(self, place, size, slot, stack);
    block->stack = stack->number;
    block->route = 0;
    return block;
}

static inline STRATA_FORCED void give_held(planned_t *self, const strata_record_t *block) {
    self->now->slots[block->prev] = 0;
    self->live--;
}

/* The next request, which is noted; NULL: it is for others. Nothing is called. */
static inline STRATA_FORCED strata_record_t *hit_held(planned_t *self, size_t size, strata_stack_t *stack) {
    const planned_place_t *place = self->next;
    uint32_t slot = stack->slab.free_head;
    bool plain = place->key == size && slot != 0 && self->past.ready > 0 && has_spares(self);
    if (__builtin_expect(!plain || !is_clear(self, place), 0)) return NULL;
    (void)strata_slab_take(&stack->slab);
    strata_record_t *block = serve_held(self, place, size, slot, stack);
    self->at++;
    self->next++;
    block->noted = strata_past_note_open(&self->past, slot, place->size);
    return block;
}

/* ---- at a place ---- */

/* NULL: the place is taken. */
static inline strata_record_t *take_place(planned_t *self, planned_place_t *place, size_t size, const strata_stack_t *stack) {
    const strata_layer_t *base = &self->base;
    if (self->holds) {
        strata_record_t *held = take_held(self, place, size);
        if (held) return held;
        strata_planned_let_go(self);
    }
    strata_record_t *apart = take_apart(self, place, size);
    if (apart) return apart;
    uint32_t slot = hint(self, place);
    const strata_block_t at = {.ptr = (void *)(uintptr_t)(self->room + place->offset),
                               .size = place->size,
                               .ref = strata_ref_make(base->stack->number, slot, 0)};
    strata_record_t *record = below(self)->type->take_at(below(self), &at, size, stack);
    if (__builtin_expect(!record, 0)) return NULL;
    self->hits++;
    learn_hint(self, place, record, slot);
    return record;
}

static COLD void note_taken(planned_t *self, const planned_place_t *place) {
    self->missed = self->past.next;
    self->beside++;
    self->beside_bytes += place->size;
}

static strata_record_t *planned_record(planned_t *self, uint64_t key, size_t size, const strata_stack_t *stack) {
    if (!is_expected(self, key)) return NULL;
    planned_place_t *place = self->next;
    if (place->offset == STRATA_NOWHERE || self->missed == self->past.next) return NULL;
    strata_record_t *record = take_place(self, place, size, stack);
    if (!record) note_taken(self, place);
    return record;
}

/* The next request of the plan has been served. If levels are not looked for, the plan says what it asked for. There is room. */
static inline void note_next(planned_t *self, strata_record_t *record) {
    const planned_place_t *place = self->next;
    const strata_past_key_t key = {place->key, place->mixed};
    uint32_t slot = strata_record_slot(&self->base, record);
    record->noted = __builtin_expect(self->told, 1) ? strata_past_note_open(&self->past, slot, record->size)
                                                    : strata_past_note(&self->past, &key, true, slot, record->size);
    self->at++;
    self->next++;
}

/* Records served from below are those of this stack. A place that another block serves is not known to be free after this. */
static void note(planned_t *self, uint64_t key, strata_record_t *record) {
    if (self->holds && self->next->offset != STRATA_NOWHERE && !strata_planned_is_held(record)) strata_planned_let_go(self);
    if (self->next->key == key && strata_past_has_room(&self->past)) {
        note_next(self, record);
        return;
    }
    strata_planned_tell_all(self);
    uint32_t number = strata_past_ask(&self->past, key, !self->told);
    record->noted = number;
    if (__builtin_expect(number == 0, 0)) {
        strata_planned_go(self, NULL, 0);
        self->deaf = true;
        return;
    }
    strata_past_serve(&self->past, number, strata_record_slot(&self->base, record), record->size);
    if (!self->now) return;
    /* Another thread may have ended the step while the request was on its way. */
    bool ended = self->at >= self->now->count;
    strata_planned_go(self, ended ? NULL : self->now, ended ? 0 : self->at + 1);
}

static COLD strata_record_t *hit_otherwise(planned_t *self, size_t size, const strata_stack_t *stack) {
    /* The past has no room for the request until a range has grown, on the long way. */
    if (!strata_past_has_room(&self->past) && !self->deaf) return NULL;
    if (is_due(self, size)) return NULL;
    strata_record_t *record = planned_record(self, size, size, stack);
    if (!record) record = below(self)->type->hit(below(self), size, stack);
    if (record) note(self, size, record);
    return record;
}

static __attribute__((noinline)) strata_record_t *hit_unplanned(planned_t *self, size_t size, const strata_stack_t *stack) {
    if (!self->told && look_for_step(self)) return NULL;
    strata_record_t *record = below(self)->type->hit(below(self), size, stack);
    if (!record) return NULL;
    const strata_past_key_t key = strata_past_key(size);
    uint32_t slot = strata_record_slot(&self->base, record);
    record->noted = strata_past_note(&self->past, &key, !self->told, slot, record->size);
    return record;
}

/* The place of the request is taken. */
static COLD strata_record_t *hit_beside(planned_t *self, const planned_place_t *place, size_t size, const strata_stack_t *stack) {
    note_taken(self, place);
    strata_record_t *record = below(self)->type->hit(below(self), size, stack);
    if (record) note(self, size, record);
    return record;
}

static __attribute__((noinline)) strata_record_t *hit_searched(planned_t *self, size_t size, const strata_stack_t *stack) {
    planned_place_t *place = self->next;
    bool plain = place->key == size && place->offset != STRATA_NOWHERE && self->past.ready > 0;
    if (__builtin_expect(!plain, 0)) return hit_otherwise(self, size, stack);
    strata_record_t *record = take_place(self, place, size, stack);
    if (__builtin_expect(!record, 0)) return hit_beside(self, place, size, stack);
    note_next(self, record);
    return record;
}

/* The block that was freed last, if it is at the place of the request, which is noted; NULL: it is not. Nothing is called. Addresses are
 * multiples of the alignment, so no block is at STRATA_NOWHERE. */
static inline STRATA_FORCED strata_record_t *hit_apart(planned_t *self, size_t size, strata_stack_t *stack) {
    const planned_place_t *place = self->next;
    strata_chunks_t *chunks = chunks_of(self);
    uint32_t slot = chunks->apart;
    strata_record_t *block = strata_chunks_apart(chunks, stack);
    bool plain = place->key == size && slot != 0 && is_at(self, place, block) && self->past.ready > 0;
    if (__builtin_expect(!plain, 0)) return NULL;
    strata_chunks_serve_apart(chunks, stack, block, place->size - size);
    self->hits++;
    self->at++;
    self->next++;
    block->noted = strata_past_note_open(&self->past, slot, place->size);
    return block;
}

/* Of a program that says where its steps end: levels are not looked for. */
static inline STRATA_FORCED strata_record_t *quick_hit(strata_layer_t *base, size_t size, strata_stack_t *stack) {
    planned_t *self = (planned_t *)base;
    if (__builtin_expect(self->holds && self->told, 1)) return hit_held(self, size, stack);
    return self->told ? hit_apart(self, size, stack) : NULL;
}

static strata_record_t *hit(strata_layer_t *base, size_t size, const strata_stack_t *stack) {
    planned_t *self = (planned_t *)base;
    bool goes_on = self->told && self->now && strata_past_has_room(&self->past);
    strata_record_t *block = !goes_on      ? NULL
                             : self->holds ? hit_held(self, size, base->stack)
                                           : hit_apart(self, size, base->stack);
    if (block) return block;
    return !self->now && self->past.ready > 0 ? hit_unplanned(self, size, stack) : hit_searched(self, size, stack);
}

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    planned_t *self = (planned_t *)base;
    uint64_t key = strata_planned_key(request->size, request->alignment);
    if (request->tag && self->now && self->now->names)
        strata_planned_go(self, self->now, strata_planned_named(self->now, request->tag, self->at));
    if (self->due || is_due(self, key)) {
        uint32_t count = self->due;
        self->due = 0;
        end_step(self, count, request->call);
    }
    strata_record_t *served = planned_record(self, key, request->size, request->call->stack);
    if (served) {
        served->stack = request->call->stack->number;
        strata_record_push(served, below(self));
        *record = served;
    } else {
        strata_status_t status = strata_below_allocate(base, request, record);
        if (status != STRATA_OK) return status;
    }
    note(self, key, *record);
    return STRATA_OK;
}

static inline void note_free(planned_t *self, strata_record_t *record) {
    strata_past_free(&self->past, record->noted, record->size);
}

static bool quick_free(strata_layer_t *base, strata_record_t *record) {
    planned_t *self = (planned_t *)base;
    note_free(self, record);
    if (strata_planned_is_held(record)) {
        give_held(self, record);
        strata_slab_give(&base->stack->slab, strata_record_slot(base, record));
        return true;
    }
    record->noted = 0; /* should the cache refuse, the long way finds nothing more to note */
    return below(self)->type->quick_free(below(self), record);
}

/* The cache need not be called. */
static inline STRATA_FORCED bool quick_free_apart(planned_t *self, strata_record_t *record, strata_stack_t *stack) {
    strata_chunks_t *chunks = chunks_of(self);
    if (__builtin_expect(chunks->apart || !strata_chunks_may_stand_apart(chunks, record), 0)) return false;
    note_free(self, record);
    strata_chunks_set_apart(chunks, record, strata_slab_slot(&stack->slab, record));
    return true;
}

static inline STRATA_FORCED bool quick_free_held(planned_t *self, strata_record_t *record, strata_stack_t *stack) {
    if (__builtin_expect(record->generation >= STRATA_GENERATION_LAST, 0)) return false;
    note_free(self, record);
    give_held(self, record);
    strata_slab_link(&stack->slab, strata_slab_slot(&stack->slab, record));
    return true;
}

static inline STRATA_FORCED bool free_quickly(strata_layer_t *base, strata_record_t *record, strata_stack_t *stack) {
    planned_t *self = (planned_t *)base;
    return strata_planned_is_held(record) ? quick_free_held(self, record, stack) : quick_free_apart(self, record, stack);
}

static void free_record(strata_layer_t *base, strata_record_t *record, strata_call_t *call) {
    planned_t *self = (planned_t *)base;
    note_free(self, record);
    if (strata_planned_is_held(record)) {
        give_held(self, record);
        strata_slab_give(&base->stack->slab, strata_record_slot(base, record));
    } else {
        strata_below_free(record, call);
    }
}

extern const strata_direct_t strata_planned_direct;
STRATA_DIRECT_WAY(strata_planned_direct, quick_hit, free_quickly, hit, quick_free);

/* ---- what the cache below does ---- */

static strata_record_t *take_at(strata_layer_t *base, const strata_block_t *at, size_t requested, const strata_stack_t *stack) {
    strata_layer_t *cache = base->below[0];
    strata_planned_let_go((planned_t *)base);
    strata_record_t *record = cache->type->take_at(cache, at, requested, stack);
    if (record) record->noted = 0;
    return record;
}

static const strata_record_t *find(strata_layer_t *base, uint64_t address) {
    strata_layer_t *cache = base->below[0];
    return cache->type->find ? cache->type->find(cache, address) : NULL;
}

/* Looks at every block. */
static void figures(strata_layer_t *base) {
    planned_t *self = (planned_t *)base;
    const strata_extent_t room = {.ptr = self->room, .size = self->room_size};
    strata_planned_let_go(self);
    self->pinned = strata_chunks_pinned(chunks_of(self), &room);
}

static void let_go(strata_layer_t *base) { strata_planned_let_go((planned_t *)base); }

static const strata_planning_t planning = {.load = strata_planned_load, .make = strata_planned_make_wanted, .let_go = let_go};

/* ---- life ---- */

static strata_status_t create(strata_layer_t *base) {
    planned_t *self = (planned_t *)base;
    self->begin = 1;
    strata_planned_go(self, NULL, 0);
    return strata_past_init(&self->past);
}

static void destroy(strata_layer_t *base) {
    planned_t *self = (planned_t *)base;
    for (uint32_t i = 0; i < self->plan_count; i++) strata_planned_delete(self->plans[i]);
    strata_past_destroy(&self->past);
}

/* What lives by the past has its number. */
static strata_status_t validate_noted(const planned_t *self) {
    const strata_past_t *past = &self->past;
    for (uint32_t n = past->first; n != past->next; n++) {
        const strata_past_request_t *request = strata_past_at(past, n);
        if (request->size && !request->until && self->base.records[request->slot].noted != n)
            return strata_fail(STRATA_E_CORRUPT, 0, "planned: a live block has the number of another request");
    }
    return STRATA_OK;
}

static strata_status_t validate(strata_layer_t *base) {
    planned_t *self = (planned_t *)base;
    if (self->now && (self->at > self->now->count || self->next != &self->now->places[self->at]))
        return strata_fail(STRATA_E_CORRUPT, 0, "planned: a plan is followed beyond its end");
    strata_planned_tell_all(self);
    for (uint32_t i = 0; self->now && i < self->now->count; i++)
        if (self->now->places[i].mixed != strata_past_mixed(self->now->places[i].key))
            return strata_fail(STRATA_E_CORRUPT, 0, "planned: a place has another key's share of the hash");
    strata_status_t status = strata_past_validate(&self->past);
    if (status == STRATA_OK) status = strata_planned_validate_hold(self);
    return status == STRATA_OK ? validate_noted(self) : status;
}

const strata_layer_type_t strata_planned_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "planned",
    .doc = "a program that repeats its steps is served at planned addresses by the cache below",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_STREAM,
    .needs = STRATA_TRAIT_SINGLE_STREAM | STRATA_TRAIT_PLACES,
    .passes = ~0u,
    .guarded = true,
    .state_size = sizeof(planned_t),
    .options_size = sizeof(planned_options_t),
    .options = options,
    .stats = stats,
    .create = create,
    .destroy = destroy,
    .allocate = allocate,
    .free = free_record,
    .hit = hit,
    .quick_free = quick_free,
    .direct = &strata_planned_direct,
    .step = step,
    .find = find,
    .take_at = take_at,
    .validate = validate,
    .figures = figures,
    .planning = &planning,
};
