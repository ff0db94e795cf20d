/* Requests and frees of planned: at the places of a plan, by the cache below, and which is noted of either. */
#include "allocation/chunks/apart.h"
#include "allocation/layer/planned_state.h"
#include "allocation/stack/direct.h"

#define COLD __attribute__((noinline))

static strata_layer_t *below(const planned_t *self) { return self->base.below[0]; }

/* Who serves at given places is a cache over chunks, and its state begins with them. */
static strata_chunks_t *chunks_of(const planned_t *self) { return (strata_chunks_t *)below(self); }

/* ---- where blocks lie ---- */

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

static inline STRATA_FORCED bool has_spares(const planned_t *self) { return self->spares > self->live + STRATA_PLANNED_SPARES; }

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

/* The next request, which is noted; NULL: it is for others. Nothing is called. `told`: levels are not looked for, and what the request asked
 * for is told later. */
static inline STRATA_FORCED strata_record_t *hit_held(planned_t *self, size_t size, strata_stack_t *stack, bool told) {
    const planned_place_t *place = self->next;
    uint32_t slot = stack->slab.free_head;
    bool plain = place->key == size && slot != 0 && self->past.ready > 0 && has_spares(self);
    if (__builtin_expect(!plain || !is_clear(self, place), 0)) return NULL;
    (void)strata_slab_take(&stack->slab);
    strata_record_t *block = serve_held(self, place, size, slot, stack);
    self->at++;
    self->next++;
    const strata_past_key_t key = {place->key, place->mixed};
    block->noted = told ? strata_past_note_open(&self->past, slot, place->size)
                        : strata_past_note(&self->past, &key, true, slot, place->size);
    return block;
}

/* ---- at a place ---- */

/* NULL: the place is taken. */
static inline strata_record_t *take_place(planned_t *self, planned_place_t *place, size_t size, const strata_stack_t *stack) {
    const strata_layer_t *base = &self->base;
    if (self->holds) return take_held(self, place, size);
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

strata_record_t *strata_planned_serve(planned_t *self, uint64_t key, size_t size, const strata_stack_t *stack) {
    if (!strata_planned_is_expected(self, key)) return NULL;
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

void strata_planned_note(planned_t *self, uint64_t key, strata_record_t *record) {
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
    if (strata_planned_is_due(self, size)) return NULL;
    strata_record_t *record = strata_planned_serve(self, size, size, stack);
    if (!record) record = below(self)->type->hit(below(self), size, stack);
    if (record) strata_planned_note(self, size, record);
    return record;
}

static __attribute__((noinline)) strata_record_t *hit_unplanned(planned_t *self, size_t size, const strata_stack_t *stack) {
    if (!self->told && strata_planned_look_for_step(self)) return NULL;
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
    if (record) strata_planned_note(self, size, record);
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

/* Levels are looked for where nobody says where steps end: not on the shortest way, but for a room that is held. */
static inline STRATA_FORCED strata_record_t *quick_hit(strata_layer_t *base, size_t size, strata_stack_t *stack) {
    planned_t *self = (planned_t *)base;
    if (__builtin_expect(self->told, 1)) return self->holds ? hit_held(self, size, stack, true) : hit_apart(self, size, stack);
    return self->holds ? hit_held(self, size, stack, false) : NULL;
}

strata_record_t *strata_planned_hit(strata_layer_t *base, size_t size, const strata_stack_t *stack) {
    planned_t *self = (planned_t *)base;
    bool goes_on = self->now && strata_past_has_room(&self->past);
    strata_record_t *block = goes_on ? quick_hit(base, size, base->stack) : NULL;
    if (block) return block;
    return !self->now && self->past.ready > 0 ? hit_unplanned(self, size, stack) : hit_searched(self, size, stack);
}

/* ---- frees ---- */

static inline void note_free(planned_t *self, strata_record_t *record) {
    strata_past_free(&self->past, record->noted, record->size);
}

bool strata_planned_take_back(planned_t *self, strata_record_t *record) {
    note_free(self, record);
    if (!strata_planned_is_held(record)) return false;
    give_held(self, record);
    strata_slab_give(&self->base.stack->slab, strata_record_slot(&self->base, record));
    return true;
}

bool strata_planned_quick_free(strata_layer_t *base, strata_record_t *record) {
    planned_t *self = (planned_t *)base;
    if (strata_planned_take_back(self, record)) return true;
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

STRATA_DIRECT_WAY(strata_planned_direct, quick_hit, free_quickly, strata_planned_hit, strata_planned_quick_free);
