/* A room that the cache below leaves to the plan as a whole.
 *
 * To the cache the room is one block, which `planned` has. Each request is served at its place from a record of its own, which is in no chain
 * and no index: nothing is cut, merged or searched. That a place is free its links say (planned_links.c). It goes well as long as every
 * request of the plan, from the first one of a step on, is served at its place. With the first one that is not, and whenever somebody needs
 * to know what is free (a figure, a miss, a release, a snapshot), the room goes back: what lives in it becomes blocks of the cache again, in
 * the records that they have. The plan is followed all the same, block by block, and the next step may hold the room again. */
#include "allocation/layer/planned_state.h"

static strata_slab_t *slab_of(const planned_t *self) { return &self->base.stack->slab; }

static strata_layer_t *below(const planned_t *self) { return self->base.below[0]; }

static strata_chunks_t *chunks_of(const planned_t *self) { return (strata_chunks_t *)below(self); }

/* ---- slots to spare ---- */

enum { SPARED_AT_ONCE = 64 };

static bool spare_one(planned_t *self) {
    uint32_t slot = strata_slab_take(slab_of(self));
    if (slot == 0) return false;
    strata_record_t *record = strata_slab_record(slab_of(self), slot);
    record->state = STRATA_RECORD_CHUNK;
    record->chunk = 0;
    record->size = 0;
    record->next = self->spare;
    self->spare = slot;
    self->spares++;
    return true;
}

static bool spare(planned_t *self, uint32_t count) {
    while (count > 0 && spare_one(self)) count--;
    return count == 0;
}

static void give_spares(planned_t *self, uint32_t count) {
    for (; count > 0 && self->spares > 0; count--, self->spares--) {
        uint32_t slot = self->spare;
        self->spare = strata_slab_record(slab_of(self), slot)->next;
        strata_slab_give(slab_of(self), slot);
    }
}

bool strata_planned_spare(planned_t *self) { return spare(self, SPARED_AT_ONCE); }

/* ---- letting go ---- */

/* The cache counts what is served at a place as a hit; these are none. */
static strata_record_t *take_at(planned_t *self, uint64_t ptr, uint64_t size, uint32_t near) {
    strata_statistics_t *figures = &self->base.stack->figures;
    uint64_t hits = figures->cache_hits;
    const strata_block_t at = {
        .ptr = (void *)(uintptr_t)ptr, .size = size, .ref = strata_ref_make(self->base.stack->number, near, 0)};
    strata_record_t *record = below(self)->type->take_at(below(self), &at, size, self->base.stack);
    figures->cache_hits = hits;
    return record;
}

/* The slots that it takes were to spare, and its place is free, so it cannot fail. */
static uint32_t make_block(planned_t *self, uint32_t slot, uint32_t near) {
    const strata_record_t *held = strata_slab_record(slab_of(self), slot);
    const strata_record_t *made = take_at(self, held->ptr, held->size, near);
    uint32_t gone = strata_slab_slot(slab_of(self), made);
    strata_chunks_replace(chunks_of(self), gone, slot);
    strata_slab_give(slab_of(self), gone);
    return slot;
}

static void make_blocks(planned_t *self, uint32_t near) {
    planned_plan_t *plan = self->now;
    for (uint32_t i = 0; i < plan->count && self->live > 0; i++) {
        uint32_t at = plan->by_address[i];
        if (plan->slots[at] == 0) continue;
        near = make_block(self, plan->slots[at], near);
        plan->slots[at] = 0;
        self->live--;
    }
}

void strata_planned_let_go(planned_t *self) {
    if (!self->holds) return;
    strata_record_t *room = strata_slab_record(slab_of(self), self->room_slot);
    self->holds = false;
    chunks_of(self)->divider = NULL;
    give_spares(self, self->spares);
    room->state = STRATA_RECORD_LIVE;
    (void)below(self)->type->quick_free(below(self), room);
    make_blocks(self, self->room_near);
}

/* ---- holding ---- */

/* The first block that reaches into the room; 0: there is none. It, or the one before it, is near the next time. */
static uint32_t first_in_room(planned_t *self) {
    const strata_extent_t begin = {.ptr = self->room, .slot = self->room_near};
    uint32_t slot = strata_chunks_block_at(chunks_of(self), &begin);
    uint32_t before = slot ? strata_slab_record(slab_of(self), slot)->prev : 0;
    self->room_near = before ? before : slot;
    return slot;
}

/* Whether the block is that of a request which lives by the past. Of other blocks `noted` says nothing. */
static bool is_noted(const planned_t *self, const strata_record_t *block) {
    if (!strata_past_knows(&self->past, block->noted)) return false;
    const strata_past_request_t *request = strata_past_at(&self->past, block->noted);
    return request->slot == strata_slab_slot(slab_of(self), block) && request->size == block->size && request->until == 0;
}

/* The place at which the plan has put a block in the last step, where it outlives the step; `count`: it has not. */
static uint32_t place_of(const planned_t *self, const strata_record_t *block) {
    const planned_plan_t *plan = self->now;
    uint32_t at = is_noted(self, block) ? block->noted - (self->past.next - plan->count) : plan->count;
    if (at >= plan->count) return plan->count;
    const planned_place_t *place = &plan->places[at];
    return place->last && block->ptr == self->room + place->offset && block->size == place->size ? at : plan->count;
}

typedef struct dwellers {
    uint32_t live; /* blocks that the plan has put there */
    uint32_t last; /* the slot of the last block, live or free, that reaches into the room */
    bool stranger; /* the program has one that the plan did not put there */
} dwellers_t;

/* Whether nothing else lives in the room. What other streams still use of a step before goes by itself. */
static bool is_ours(planned_t *self, dwellers_t *dwellers) {
    uint64_t at = self->room, end = self->room + self->room_size;
    *dwellers = (dwellers_t){0};
    for (uint32_t slot = first_in_room(self), next; slot && at < end; slot = next) {
        const strata_record_t *block = strata_slab_record(slab_of(self), slot);
        if (block->ptr > at || at - block->ptr >= block->size) return false;
        at = block->ptr + block->size;
        dwellers->last = slot;
        next = block->next;
        if (block->state == STRATA_RECORD_FREE) continue;
        if (place_of(self, block) == self->now->count) {
            dwellers->stranger = block->state == STRATA_RECORD_LIVE;
            return false;
        }
        dwellers->live++;
    }
    return at >= end;
}

/* It leaves its chain, where a block that is freed at once takes its place. */
static void take_out(planned_t *self, uint32_t slot, uint32_t at) {
    strata_slab_t *slab = slab_of(self);
    strata_record_t *block = strata_slab_record(slab, slot), *instead = strata_slab_record(slab, strata_slab_take(slab));
    instead->state = STRATA_RECORD_LIVE;
    strata_chunks_replace(chunks_of(self), slot, strata_slab_slot(slab, instead));
    (void)below(self)->type->quick_free(below(self), instead);
    block->pool = STRATA_CHUNKS_DIVIDED;
    block->prev = at;
    block->next = 0;
    self->now->slots[at] = slot;
    self->live++;
}

/* From the last block to the first: what is freed may take up the one after it, and never the one before. */
static void take_out_all(planned_t *self, uint32_t last) {
    for (uint32_t slot = last, before; slot; slot = before) {
        const strata_record_t *block = strata_slab_record(slab_of(self), slot);
        if (block->ptr + block->size <= self->room) return;
        before = block->prev;
        if (block->state != STRATA_RECORD_FREE) take_out(self, slot, place_of(self, block));
    }
}

/* The room in one block. */
static void take_room(planned_t *self) {
    strata_record_t *room = take_at(self, self->room, self->room_size, first_in_room(self));
    room->state = STRATA_RECORD_CHUNK;
    room->noted = 0;
    self->room_slot = strata_slab_slot(slab_of(self), room);
    self->room_chunk = room->chunk;
    chunks_of(self)->divider = &self->base;
    self->holds = true;
}

static bool may_hold(const planned_t *self) {
    const strata_chunks_t *chunks = chunks_of(self);
    const planned_plan_t *plan = self->now;
    bool plain = chunks->sole && chunks->divisible && !chunks->divider;
    return plain && plan && plan->links && !self->holds && self->at == 0 && strata_planned_has_room(self, plan);
}

void strata_planned_hold(planned_t *self) {
    dwellers_t dwellers;
    if (!may_hold(self)) return;
    (void)below(self)->type->idle_bytes(below(self)); /* nothing stands apart after that */
    bool ours = is_ours(self, &dwellers);
    self->unheld = ours ? 0 : self->unheld + dwellers.stranger;
    if (!ours) return;
    if (spare(self, 2 * (dwellers.live + STRATA_PLANNED_SPARES) + SPARED_AT_ONCE)) {
        give_spares(self, dwellers.live + STRATA_PLANNED_SPARES);
        take_out_all(self, dwellers.last);
        take_room(self);
    } else {
        give_spares(self, self->spares);
    }
}

/* ---- check ---- */

static strata_status_t corrupt(const char *what, uint32_t slot) {
    return strata_fail(STRATA_E_CORRUPT, 0, "planned: %s (slot %u)", what, slot);
}

static strata_status_t validate_block(const planned_t *self, uint32_t at, uint64_t *end) {
    const planned_place_t *place = &self->now->places[at];
    uint32_t slot = self->now->slots[at];
    const strata_record_t *block = strata_slab_record(slab_of(self), slot);
    if (slot >= slab_of(self)->used || !strata_planned_is_held(block)) return corrupt("what lives at a place is not held", slot);
    if (block->prev != at || block->ptr != self->room + place->offset || block->size != place->size)
        return corrupt("a block is not at its place", slot);
    if (block->state == STRATA_RECORD_UNUSED || block->state == STRATA_RECORD_FREE)
        return corrupt("what lives at a place is free", slot);
    if (block->ptr < *end) return corrupt("two blocks of a plan overlap", slot);
    *end = block->ptr + block->size;
    return *end <= self->room + self->room_size ? STRATA_OK : corrupt("a block reaches out of the room", slot);
}

strata_status_t strata_planned_validate_hold(const planned_t *self) {
    const planned_plan_t *plan = self->now;
    uint64_t end = self->room;
    uint32_t live = 0;
    if (!self->holds) return self->live || self->spares ? corrupt("what is not held has blocks", 0) : STRATA_OK;
    if (!plan || !plan->links) return corrupt("a room is held for no plan", self->room_slot);
    if (self->spares < self->live + STRATA_PLANNED_SPARES) return corrupt("there are too few slots to spare", self->spare);
    for (uint32_t i = 0; i < plan->count; i++) {
        uint32_t at = plan->by_address[i];
        if (plan->slots[at] == 0) continue;
        strata_status_t status = validate_block(self, at, &end);
        if (status != STRATA_OK) return status;
        live++;
    }
    return live == self->live ? STRATA_OK : corrupt("the count of live blocks is wrong", self->room_slot);
}
