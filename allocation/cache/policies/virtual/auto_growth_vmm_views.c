/* Views: handles are mapped a second time, one after the other, so that their free pieces are one block. The
 * block consists of the high end of one handle, any number of whole ones, and the low end of another. The
 * handles keep their first addresses, and so do the live blocks in them.
 *
 * A view stays mapped when its block is freed. A program that repeats itself reuses it without a device call.
 * The view ends when handles are given back, or when many other views were used since. */
#include "allocation/cache/policies/virtual/auto_growth_vmm_state.h"

#include "platform/arithmetic.h"

/* MAPPED is the max number of mappings of all views. If there are more, MAPPED_THEN remain. */
enum { MAPPED = 4096, MAPPED_THEN = 2048 };

static strata_slab_t *slab(const auto_growth_vmm_t *self) { return strata_growth_vmm_slab(self); }

static vmm_view_t *view_at(const auto_growth_vmm_t *self, uint32_t view) { return strata_growth_vmm_view_at(self, view); }

static vmm_shadow_t *shadow_at(const auto_growth_vmm_t *self, uint32_t shadow) { return strata_growth_vmm_shadow(self, shadow); }

strata_status_t strata_growth_vmm_init_views(auto_growth_vmm_t *self) {
    strata_status_t status = strata_nodes_init(&self->view_nodes, sizeof(vmm_view_t), STRATA_VMM_VIEWS);
    if (status == STRATA_OK) strata_order_init(&self->views_by_address, &self->view_nodes, offsetof(vmm_view_t, link));
    return status;
}

/* ---- in order of use ---- */

static void list(auto_growth_vmm_t *self, uint32_t view) {
    view_at(self, view)->older = self->newest;
    view_at(self, view)->newer = 0;
    *(self->newest ? &view_at(self, self->newest)->newer : &self->oldest) = view;
    self->newest = view;
}

static void unlist(auto_growth_vmm_t *self, uint32_t view) {
    const vmm_view_t *v = view_at(self, view);
    *(v->older ? &view_at(self, v->older)->newer : &self->oldest) = v->newer;
    *(v->newer ? &view_at(self, v->newer)->older : &self->newest) = v->older;
}

/* ---- ending ---- */

/* Returns true if a view may end. One that serves a block may be in use by the thread that is mapping it, with
 * the locks open. */
static bool may_end(const auto_growth_vmm_t *self, const vmm_view_t *view) {
    if (view->slot) return false;
    for (uint32_t shadow = view->first; shadow; shadow = shadow_at(self, shadow)->next)
        if (!strata_vmm_may_end_alias(self->vmm, shadow_at(self, shadow)->alias)) return false;
    return true;
}

static void forget_handle(auto_growth_vmm_t *self, uint32_t shadow) {
    strata_growth_vmm_part(self, shadow_at(self, shadow)->part)->views--;
    self->mapped--;
}

/* Ends idle views, the oldest first, until at most `keep` mappings remain. Their addresses stay blocked until they
 * are unmapped. */
static void end_views(auto_growth_vmm_t *self, uint64_t keep, strata_call_t *call) {
    uint32_t ended = 0;
    if (self->mapped <= keep) return;
    (void)strata_growth_vmm_ensure_event(self, call);
    for (uint32_t view = self->oldest, newer; view && self->mapped > keep; view = newer) {
        newer = view_at(self, view)->newer;
        if (!may_end(self, view_at(self, view))) continue;
        for (uint32_t shadow = view_at(self, view)->first, next; shadow; shadow = next) {
            next = shadow_at(self, shadow)->next;
            forget_handle(self, shadow);
            strata_growth_vmm_retire_shadow(self, shadow);
        }
        unlist(self, view);
        strata_order_remove(&self->views_by_address, view);
        strata_nodes_release(&self->view_nodes, view);
        self->views--;
        ended++;
    }
    /* The event must follow the end of the views. Until then, the stream could still get work on their blocks. */
    if (ended > 0) strata_growth_vmm_cover_shadows(self, strata_growth_vmm_mark_stream(self));
}

void strata_growth_vmm_drop_views(auto_growth_vmm_t *self, strata_call_t *call) { end_views(self, 0, call); }

/* ---- blocks of the handles that a view uses ---- */

static void give_pieces(auto_growth_vmm_t *self, const vmm_view_t *view) {
    for (uint32_t shadow = view->first; shadow; shadow = shadow_at(self, shadow)->next) {
        uint32_t own = shadow_at(self, shadow)->own;
        if (own == 0) continue;
        strata_record_t *block = strata_slab_record(slab(self), own);
        shadow_at(self, shadow)->own = 0;
        block->state = STRATA_RECORD_DEFERRED;
        block->pool = shadow_at(self, shadow)->pool;
        (void)strata_auto_growth_free_block(&self->growth, block);
    }
}

/* Takes `size` bytes from `begin` on, which the latest survey found free. The survey's slots are used, because a walk
 * over all blocks in between would be slow. Returns false, with nothing changed, if no slot is left. */
static bool take_pieces(auto_growth_vmm_t *self, const vmm_view_t *view, uint64_t begin, uint64_t size) {
    uint64_t at = 0, end = begin + size;
    for (uint32_t shadow = view->first; shadow && at < end; shadow = shadow_at(self, shadow)->next) {
        vmm_shadow_t *s = shadow_at(self, shadow);
        const vmm_part_t *part = strata_growth_vmm_part(self, s->part);
        uint64_t low = strata_max(at, begin) - at, high = strata_min(at + s->size, end) - at;
        at += s->size;
        if (low >= high) continue;
        const strata_extent_t place = {
            .ptr = part->run.at + low, .size = high - low, .slot = low < part->head ? part->head_block : part->tail_block};
        s->own = strata_chunks_carve_at(&self->growth.chunks, &place);
        if (s->own == 0) {
            give_pieces(self, view);
            return false;
        }
        strata_record_t *block = strata_slab_record(slab(self), s->own);
        block->state = STRATA_RECORD_CHUNK;
        s->pool = block->pool;
        block->pool = STRATA_VMM_IN_A_VIEW;
        self->growth.used_bytes += place.size;
    }
    return true;
}

/* ---- serving ---- */

/* Returns this layer's attention bit, which makes a free take the slow path. Returns 0 if the layer has none;
 * then it has no views either. */
static uint16_t attention_of(const strata_layer_t *base) {
    return base->number <= STRATA_ATTENTION_LAYERS ? (uint16_t)(1u << (base->number - 1)) : 0;
}

static strata_record_t *serve(auto_growth_vmm_t *self, uint32_t view, uint64_t begin, uint64_t rounded, size_t size) {
    vmm_view_t *v = view_at(self, view);
    uint32_t slot = strata_block_list_begin(slab(self), STRATA_VMM_VIEW_NUMBER, v->at + begin, rounded);
    if (slot == 0) return NULL;
    if (!take_pieces(self, v, begin, rounded)) {
        strata_slab_release(slab(self), slot);
        return NULL;
    }
    strata_record_t *block = strata_slab_record(slab(self), slot);
    strata_block_hand_out(block, size);
    block->attention = attention_of(&self->growth.base);
    v->slot = slot;
    unlist(self, view);
    list(self, view);
    return block;
}

/* Returns the view that contains a block's address. */
static uint32_t view_of(auto_growth_vmm_t *self, uint64_t address) {
    const strata_order_key_t key = {address, UINT64_MAX, 0};
    return strata_order_before(&self->views_by_address, &key);
}

void strata_growth_vmm_free_viewed(auto_growth_vmm_t *self, strata_record_t *block) {
    uint32_t view = view_of(self, block->ptr);
    view_at(self, view)->slot = 0;
    give_pieces(self, view_at(self, view));
    strata_slab_release(slab(self), strata_slab_slot(slab(self), block));
}

const strata_record_t *strata_growth_vmm_viewed_at(auto_growth_vmm_t *self, uint64_t address) {
    uint32_t view = view_of(self, address);
    uint32_t slot = view ? view_at(self, view)->slot : 0;
    const strata_record_t *block = strata_slab_record(slab(self), slot);
    return slot && address - block->ptr < block->size ? block : NULL;
}

uint32_t strata_growth_vmm_viewed_part(auto_growth_vmm_t *self, const strata_record_t *block) {
    return shadow_at(self, view_at(self, view_of(self, block->ptr))->first)->part;
}

/* ---- an existing view ---- */

/* Finds `size` free bytes in a view. Returns false if there are none. */
static bool find_idle(const auto_growth_vmm_t *self, const vmm_view_t *view, uint64_t size, uint64_t *begin) {
    uint64_t at = 0, idle = 0;
    for (uint32_t shadow = view->first; shadow; shadow = shadow_at(self, shadow)->next) {
        const vmm_part_t *part = strata_growth_vmm_part(self, shadow_at(self, shadow)->part);
        bool known = part->survey == self->survey;
        uint64_t head = known ? part->head : 0, tail = known ? part->tail : 0;
        *begin = at - idle;
        if (idle + head >= size) return true;
        at += part->run.size;
        idle = head == part->run.size ? idle + head : tail;
    }
    *begin = at - idle;
    return idle >= size;
}

/* Returns the smallest of the idle views with `size` free bytes, the most recently used among equals, or 0. */
static uint32_t find_view(const auto_growth_vmm_t *self, uint64_t size, uint64_t *begin) {
    uint32_t best = 0;
    for (uint32_t view = self->newest; view; view = view_at(self, view)->older) {
        const vmm_view_t *v = view_at(self, view);
        uint64_t at;
        if (v->slot || v->size < size || (best && v->size >= view_at(self, best)->size) || !find_idle(self, v, size, &at)) continue;
        best = view;
        *begin = at;
    }
    return best;
}

/* ---- a new one ---- */

/* Makes a view at an address, with nothing mapped yet. Returns 0 if no node is left. *whole is true if there
 * were nodes for the handles of all chosen pieces. */
static uint32_t new_view(auto_growth_vmm_t *self, uint64_t at, bool *whole) {
    uint32_t view = strata_nodes_acquire(&self->view_nodes), i = 0;
    if (view == 0) return 0;
    vmm_view_t *v = view_at(self, view);
    *v = (vmm_view_t){.at = at};
    for (uint32_t *link = &v->first; i < self->candidates.chosen; i++, link = &shadow_at(self, *link)->next) {
        uint32_t part = self->candidates.items[i].part;
        uint64_t size = strata_run_part_at(&self->runs, part)->size;
        if ((*link = strata_growth_vmm_block(self, at + v->size, size)) == 0) break;
        shadow_at(self, *link)->part = part;
        strata_growth_vmm_part(self, part)->views++;
        self->mapped++;
        v->size += size;
    }
    strata_order_add(&self->views_by_address, view, &(strata_order_key_t){at, view, 0});
    list(self, view);
    self->views++;
    *whole = i == self->candidates.chosen;
    return view;
}

/* Undoes a view. No work has used it, so its mappings end immediately, with the locks open. */
static void undo_view(auto_growth_vmm_t *self, uint32_t view, strata_call_t *call) {
    uint32_t first = view_at(self, view)->first;
    view_at(self, view)->slot = 0;
    give_pieces(self, view_at(self, view));
    unlist(self, view);
    strata_order_remove(&self->views_by_address, view);
    strata_nodes_release(&self->view_nodes, view);
    self->views--;
    strata_unlocked_t opened = strata_call_unlock(call);
    for (uint32_t shadow = first; shadow; shadow = shadow_at(self, shadow)->next)
        if (shadow_at(self, shadow)->alias) (void)strata_vmm_end_alias(self->vmm, shadow_at(self, shadow)->alias);
    strata_call_lock(call, opened);
    for (uint32_t shadow = first, next; shadow; shadow = next) {
        next = shadow_at(self, shadow)->next;
        shadow_at(self, shadow)->alias = 0;
        forget_handle(self, shadow);
        strata_growth_vmm_unblock(self, shadow);
    }
}

static uint64_t bytes_of_chosen(const auto_growth_vmm_t *self) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < self->candidates.chosen; i++)
        bytes += strata_run_part_at(&self->runs, self->candidates.items[i].part)->size;
    return bytes;
}

/* Builds a view of the chosen pieces and serves the request from it. Returns OK with *served NULL if no node or
 * slot is left. */
static strata_status_t build(auto_growth_vmm_t *self, uint64_t rounded, const strata_request_t *request, uint64_t at,
                             strata_record_t **served) {
    bool whole;
    uint32_t view = new_view(self, at, &whole);
    strata_status_t status = STRATA_OK;
    if (view == 0) return status;
    const vmm_candidate_t *first = &self->candidates.items[0];
    uint64_t begin = first->kind == STRATA_VMM_HIGH_END ? strata_run_part_at(&self->runs, first->part)->size - first->size : 0;
    *served = whole ? serve(self, view, begin, rounded, request->size) : NULL;
    if (*served) {
        /* Other threads cannot use its pieces, because the view has taken them. */
        strata_unlocked_t opened = strata_call_unlock(request->call);
        for (uint32_t shadow = view_at(self, view)->first; shadow && status == STRATA_OK; shadow = shadow_at(self, shadow)->next) {
            vmm_shadow_t *s = shadow_at(self, shadow);
            status = strata_vmm_alias(self->vmm, strata_run_part_at(&self->runs, s->part)->chunk.below, s->at, &s->alias);
            if (status != STRATA_OK) s->alias = 0;
        }
        strata_call_lock(request->call, opened);
        if (status == STRATA_OK) return status;
        strata_slab_release(slab(self), strata_slab_slot(slab(self), *served));
        *served = NULL;
    }
    strata_error_t reason = *strata_last_error();
    undo_view(self, view, request->call);
    return status == STRATA_OK ? STRATA_OK : strata_fail_again(&reason);
}

/* ---- a miss ---- */

/* The locks may have been open while room was made, so this surveys and chooses again. */
static strata_status_t build_new(auto_growth_vmm_t *self, uint64_t rounded, const strata_request_t *request,
                                 strata_record_t **served) {
    vmm_room_t room;
    strata_stream_t stream;
    /* A graph that is being captured would use the view's address later. */
    const strata_layer_t *base = &self->growth.base;
    if (!strata_layer_owner(base, &stream) || strata_domain_refuse_captured(base->domain, stream) != STRATA_OK) return STRATA_OK;
    if (self->mapped > MAPPED) end_views(self, MAPPED_THEN, request->call);
    strata_growth_vmm_drop_shadows(self, false, request->call);
    strata_status_t status = strata_growth_vmm_find_room(self, bytes_of_chosen(self), STRATA_VMM_OF_VIEWS, request->call, &room);
    if (status != STRATA_OK) return status;
    strata_growth_vmm_survey(self);
    if (strata_growth_vmm_choose(self, rounded) > 0 || bytes_of_chosen(self) > room.width) return STRATA_OK;
    return build(self, rounded, request, room.at, served);
}

static bool may_view(const auto_growth_vmm_t *self) {
    return strata_growth_vmm_options(self)->views && attention_of(&self->growth.base) != 0 &&
           !strata_chunks_are_pinned(&self->growth.chunks);
}

strata_record_t *strata_growth_vmm_reuse_view(auto_growth_vmm_t *self, uint64_t rounded, size_t size) {
    uint64_t begin;
    if (!may_view(self)) return NULL;
    strata_growth_vmm_survey(self);
    uint32_t view = find_view(self, rounded, &begin);
    strata_record_t *served = view ? serve(self, view, begin, rounded, size) : NULL;
    self->joins += served != NULL;
    return served;
}

strata_status_t strata_growth_vmm_view(auto_growth_vmm_t *self, uint64_t rounded, const strata_request_t *request,
                                       strata_record_t **served, uint64_t *missing) {
    *missing = 0;
    *served = strata_growth_vmm_reuse_view(self, rounded, request->size);
    if (*served || !may_view(self)) return STRATA_OK;
    strata_status_t status = STRATA_OK;
    if ((*missing = strata_growth_vmm_choose(self, rounded)) == 0) status = build_new(self, rounded, request, served);
    self->joins += *served != NULL;
    return status;
}

/* ---- check ---- */

static strata_status_t corrupt(const char *what, uint32_t view) {
    return strata_fail(STRATA_E_CORRUPT, 0, "auto_growth_vmm: %s (view %u)", what, view);
}

static strata_status_t validate_view(const auto_growth_vmm_t *self, uint32_t view) {
    const vmm_view_t *v = view_at(self, view);
    uint64_t at = v->at, taken = 0;
    for (uint32_t shadow = v->first; shadow; shadow = shadow_at(self, shadow)->next) {
        const vmm_shadow_t *s = shadow_at(self, shadow);
        if (s->at != at || s->size != strata_run_part_at(&self->runs, s->part)->size)
            return corrupt("a mapping is at the wrong address", view);
        at += s->size;
        taken += s->own ? strata_slab_record(slab(self), s->own)->size : 0;
    }
    if (at != v->at + v->size) return corrupt("a view's size is not the sum of its handles", view);
    if (taken != (v->slot ? strata_slab_record(slab(self), v->slot)->size : 0))
        return corrupt("a block's size does not match its part of the handles", view);
    return STRATA_OK;
}

strata_status_t strata_growth_vmm_validate_views(auto_growth_vmm_t *self) {
    strata_status_t status = strata_order_validate(&self->views_by_address);
    uint64_t known = 0;
    for (uint32_t view = self->oldest; view && status == STRATA_OK; view = view_at(self, view)->newer)
        status = validate_view(self, view);
    if (status != STRATA_OK) return status;
    for (uint32_t part = strata_runs_part_from(&self->runs, 0); part; part = strata_runs_next_part(&self->runs, part))
        known += strata_growth_vmm_part(self, part)->views;
    return known == self->mapped ? STRATA_OK : corrupt("a handle is in unknown views", 0);
}
