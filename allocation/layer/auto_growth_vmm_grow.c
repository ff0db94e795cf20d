/* A miss of auto_growth_vmm. Memory for a block comes together at one place: beside free memory, handles that lie idle elsewhere are
 * moved there, and what is still missing is created.
 *
 * Creating is preferred as long as the cache holds little more than what was needed at most (`slack`): a handle that is moved is
 * missed where it was. After that idle handles are moved first. Handles grow with the cache, because the device charges each call by
 * the handle; small ones waste less where blocks of different lives meet. */
#include <stdlib.h>
#include <string.h>

#include "allocation/layer/auto_growth_vmm_state.h"
#include "allocation/reclaim/refusal.h"

#include "platform/arithmetic.h"

enum { BATCH = 128 };

/* Found by replaying the traces of docs/comparison.md under a few hundred choices each. Of the most that was in use: */
enum {
    PARTS_LARGEST = 64, /* a handle is made for no more than one part, */
    PARTS_SPARE = 128, /* and creation asks for no less than another one, within the slack */
    ASKS_FIRST = 8, /* a growth of so many handles asks the device whether it has them */
    USUAL = 2, /* sizes of creations that came so often among the latest STRATA_VMM_REMEMBERED are not divided */
    SPARE_OF_LITTLE = 16, /* the most that SPARE_LEAST may be, */
    SLACK_OF_LITTLE = 28 /* and `slack_least` */
};
#define LARGEST_LEAST (56ull << 20) /* a handle may be made for so much, however little was needed so far */
#define SPARE_LEAST   (16ull << 20)

static strata_slab_t *slab(const auto_growth_vmm_t *self) { return strata_growth_vmm_slab(self); }

/* ---- idle parts ---- */

static bool each_in_block(auto_growth_vmm_t *self, uint32_t slot, vmm_idle_fn idle, void *context) {
    const strata_record_t *block = strata_slab_record(slab(self), slot);
    uint64_t end = block->ptr + block->size;
    for (uint32_t part = strata_runs_part_from(&self->runs, block->ptr); part; part = strata_runs_next_part(&self->runs, part)) {
        const strata_run_part_t *p = strata_run_part_at(&self->runs, part);
        if (p->at >= end || p->size > end - p->at) return true;
        if (!idle(self, part, slot, context)) return false;
    }
    return true;
}

void strata_growth_vmm_each_idle(auto_growth_vmm_t *self, vmm_idle_fn idle, void *context) {
    strata_bins_t *bins = &self->growth.pools[0].bins;
    strata_auto_growth_join_apart(&self->growth);
    strata_bins_settle(bins, slab(self));
    uint32_t bin = strata_bins_next(bins, strata_bins_of(bins, self->granularity));
    for (; bin < STRATA_BINS; bin = strata_bins_next(bins, bin + 1))
        for (uint32_t slot = bins->heads[bin]; slot; slot = strata_slab_record(slab(self), slot)->bin_next)
            if (!each_in_block(self, slot, idle, context)) return;
}

strata_record_t *strata_growth_vmm_take(auto_growth_vmm_t *self, uint32_t part, uint32_t slot) {
    const strata_run_part_t *p = strata_run_part_at(&self->runs, part);
    const strata_extent_t place = {.ptr = p->at, .size = p->size, .slot = slot};
    strata_record_t *below = p->chunk.below;
    uint32_t own = strata_chunks_take_at(&self->growth.chunks, &place);
    if (own == 0) return NULL;
    if (strata_runs_take(&self->runs, part, own)) return below;
    strata_auto_growth_put_in(&self->growth, own);
    return NULL;
}

bool strata_growth_vmm_put(auto_growth_vmm_t *self, strata_record_t *below) {
    uint32_t slot = strata_runs_publish(&self->runs, below);
    if (slot) strata_auto_growth_put_in(&self->growth, slot);
    return slot != 0;
}

/* ---- which parts are moved ---- */

static bool note_candidate(auto_growth_vmm_t *self, uint32_t part, uint32_t slot, void *context) {
    vmm_candidates_t *all = context;
    const strata_run_part_t *p = strata_run_part_at(&self->runs, part);
    if (slot == all->beside || !strata_vmm_may_move(self->vmm, p->chunk.below)) return true;
    all->items[all->count++] = (vmm_candidate_t){part, slot, p->size};
    return all->count < STRATA_VMM_CANDIDATES;
}

static int larger_first(const void *a, const void *b) {
    const vmm_candidate_t *x = a, *y = b;
    return x->size != y->size ? (x->size < y->size) - (x->size > y->size) : (x->part > y->part) - (x->part < y->part);
}

/* Brings an item to the end of those that are chosen. */
static void take_item(vmm_candidates_t *all, uint32_t *chosen, uint32_t item, uint64_t *bytes) {
    vmm_candidate_t taken = all->items[item];
    all->items[item] = all->items[*chosen];
    all->items[(*chosen)++] = taken;
    *bytes += taken.size;
}

/* What is chosen comes to the front: the largest that are not too large; then the smallest that fills the rest, as far as there is
 * room. Returns how many. */
static uint32_t choose(vmm_candidates_t *all, const vmm_room_t *room, uint64_t missing) {
    uint32_t chosen = 0, filler = 0;
    uint64_t bytes = 0;
    qsort(all->items, all->count, sizeof *all->items, larger_first);
    for (uint32_t i = 0; i < all->count && chosen < BATCH && bytes < missing; i++)
        if (all->items[i].size <= missing - bytes) take_item(all, &chosen, i, &bytes);
    if (bytes >= missing || chosen == BATCH) return chosen;
    for (uint32_t i = chosen; i < all->count; i++)
        if (all->items[i].size >= missing - bytes && (!filler || all->items[i].size < all->items[filler].size)) filler = i;
    if (filler == 0 && (chosen == all->count || all->items[0].size < missing)) return chosen;
    if (all->items[filler].size <= room->width - bytes) take_item(all, &chosen, filler, &bytes);
    return chosen;
}

/* ---- moving ---- */

typedef struct move {
    strata_record_t *below; /* NULL: it is back in the cache */
    uint64_t from;
    uint32_t shadow;
} move_t;

typedef struct batch {
    uint32_t count;
    uint64_t bytes;
    move_t items[BATCH];
} batch_t;

/* Takes the parts out of the cache. */
static void take_batch(auto_growth_vmm_t *self, const vmm_candidates_t *all, uint32_t chosen, batch_t *batch) {
    for (uint32_t i = 0; i < chosen; i++) {
        uint32_t shadow = strata_growth_vmm_new_shadow(self);
        strata_record_t *below = shadow ? strata_growth_vmm_take(self, all->items[i].part, all->items[i].slot) : NULL;
        if (!below) {
            if (shadow) strata_nodes_give(&self->shadow_nodes, shadow);
            return;
        }
        batch->items[batch->count++] = (move_t){.below = below, .from = below->ptr, .shadow = shadow};
        batch->bytes += below->size;
    }
}

/* The locks are open. Those that the device does not move stay where they are. */
static strata_status_t map_batch(auto_growth_vmm_t *self, const batch_t *batch, uint64_t to) {
    strata_status_t status = STRATA_OK;
    for (uint32_t i = 0; i < batch->count && status == STRATA_OK; i++) {
        status = strata_vmm_move(self->vmm, batch->items[i].below, to);
        to += batch->items[i].below->size;
    }
    return status;
}

/* Returns whether all are in the cache again: the slots that they had may be others' by now. */
static bool put_batch(auto_growth_vmm_t *self, batch_t *batch, strata_handle_t event) {
    bool all = true;
    uint32_t cast = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        move_t *move = &batch->items[i];
        bool moved = move->below->ptr != move->from;
        if (moved) strata_growth_vmm_cast(self, move->shadow, move->from, move->below->size);
        else strata_nodes_give(&self->shadow_nodes, move->shadow);
        cast += moved;
        if (strata_growth_vmm_put(self, move->below)) move->below = NULL;
        else all = false;
    }
    self->moves += cast;
    if (cast) strata_growth_vmm_cover(self, event);
    else if (event) strata_events_give(&self->growth.base.domain->events, event);
    return all;
}

static void free_homeless(const batch_t *batch, strata_call_t *call) {
    strata_opened_t opened = strata_call_unlock(call);
    for (uint32_t i = 0; i < batch->count; i++)
        if (batch->items[i].below) strata_chunk_free(batch->items[i].below);
    strata_call_lock(call, opened);
}

/* From the candidates; *moved: bytes that came to the room. Without an event nothing is moved. */
static strata_status_t move_chosen(auto_growth_vmm_t *self, const vmm_candidates_t *all, uint32_t chosen, const vmm_room_t *room,
                                   strata_call_t *call, uint64_t *moved) {
    batch_t batch = {0};
    strata_status_t status = STRATA_OK;
    take_batch(self, all, chosen, &batch);
    /* After the take, since until then work could be given to what lies there. */
    strata_handle_t event = strata_growth_vmm_mark_stream(self);
    if (event && batch.count > 0) {
        strata_opened_t opened = strata_call_unlock(call);
        status = map_batch(self, &batch, room->below ? room->at + room->width - batch.bytes : room->at);
        strata_call_lock(call, opened);
    }
    uint64_t before = self->moves;
    *moved = event ? batch.bytes : 0;
    if (!put_batch(self, &batch, event)) free_homeless(&batch, call);
    if (self->moves - before < batch.count) *moved = 0;
    return status;
}

static strata_status_t move_idle(auto_growth_vmm_t *self, const vmm_room_t *room, uint64_t missing, strata_call_t *call,
                                 uint64_t *moved) {
    *moved = 0;
    if (!strata_growth_vmm_options(self)->moves || strata_chunks_are_pinned(&self->growth.chunks)) return STRATA_OK;
    if (!strata_growth_vmm_ensure_event(self, call)) return STRATA_OK;
    vmm_candidates_t *all = &self->candidates;
    *all = (vmm_candidates_t){.beside = room->beside};
    strata_growth_vmm_each_idle(self, note_candidate, all);
    uint32_t chosen = choose(all, room, missing);
    return chosen ? move_chosen(self, all, chosen, room, call, moved) : STRATA_OK;
}

/* ---- creating ---- */

/* A handle of `size` bytes comes at an address; the locks are open meanwhile. */
static strata_status_t create_one(auto_growth_vmm_t *self, uint64_t at, uint64_t size, const strata_request_t *request) {
    strata_chunks_t *chunks = &self->growth.chunks;
    strata_request_t wanted = *request;
    strata_record_t *below;
    wanted.at = at;
    wanted.alignment = strata_max(request->alignment, chunks->unit);
    chunks->held += size;
    strata_opened_t opened = strata_call_unlock(request->call);
    strata_status_t status = strata_chunk_allocate(&self->growth.base, size, &wanted, &below);
    strata_call_lock(request->call, opened);
    chunks->held -= size;
    if (status != STRATA_OK) {
        uint32_t shadow = at && strata_vmm_keeps(self->vmm, at) ? strata_growth_vmm_new_shadow(self) : 0;
        if (shadow) strata_growth_vmm_block(self, shadow, at, size);
        return status;
    }
    self->creations++;
    if (strata_growth_vmm_put(self, below)) return STRATA_OK;
    opened = strata_call_unlock(request->call);
    strata_chunk_free(below);
    strata_call_lock(request->call, opened);
    return strata_fail(STRATA_E_LIMIT, 0, "auto_growth_vmm holds %u handles or %u blocks, its most", chunks->nodes.capacity,
                       slab(self)->capacity);
}

static uint64_t in_handles(const auto_growth_vmm_t *self, uint64_t bytes) {
    return strata_round_down(bytes + self->granularity - 1, self->granularity);
}

static uint64_t handle_at_most(const auto_growth_vmm_t *self) {
    return in_handles(self, strata_max(self->peak_used / PARTS_LARGEST, LARGEST_LEAST));
}

/* What is created again and again in one size is freed and asked for in that size: one handle will do, however large. */
static bool is_usual(auto_growth_vmm_t *self, uint64_t bytes) {
    uint32_t times = 0;
    for (uint32_t i = 0; i < STRATA_VMM_REMEMBERED; i++) times += self->created[i] == bytes;
    self->created[self->created_next++ % STRATA_VMM_REMEMBERED] = bytes;
    return times >= USUAL;
}

/* Handles of `bytes` bytes together, of about `most` each, come after the *done bytes that are in the room already. */
static strata_status_t create(auto_growth_vmm_t *self, const vmm_room_t *room, uint64_t bytes, uint64_t most,
                              const strata_request_t *request, uint64_t *done) {
    if (is_usual(self, bytes)) most = bytes;
    uint64_t count = (bytes + most - 1) / most, units = bytes / self->granularity;
    strata_status_t status = STRATA_OK;
    for (uint64_t i = 0; i < count && status == STRATA_OK; i++) {
        uint64_t size = (units / count + (i < units % count)) * self->granularity;
        status = create_one(self, room->below ? room->at + room->width - *done - size : room->at + *done, size, request);
        if (status == STRATA_OK) *done += size;
    }
    return status;
}

/* Bytes that may be created before handles are moved instead. */
static uint64_t allowance(const auto_growth_vmm_t *self) {
    const auto_growth_vmm_options_t *o = strata_growth_vmm_options(self);
    uint64_t share = (uint64_t)((double)self->peak_used * o->slack);
    uint64_t slack = strata_max(share, strata_min(o->slack_least, self->peak_used / SLACK_OF_LITTLE));
    uint64_t most = self->peak_used + slack, held = self->growth.chunks.held;
    return held < most ? strata_round_down(most - held, self->granularity) : 0;
}

/* More than is missing, so that the next misses find some. */
static uint64_t spare(const auto_growth_vmm_t *self, uint64_t room) {
    uint64_t least = strata_max(self->peak_used / PARTS_SPARE, strata_min(SPARE_LEAST, self->peak_used / SPARE_OF_LITTLE));
    return strata_min(strata_round_down(least, self->granularity), strata_min(allowance(self), room));
}

/* Whether the device says that it has not so much. A growth of many handles asks, for a sixth of what making one costs. Managed memory
 * goes to the host where it must, so the device may serve all the same: as one handle, or with one refusal. */
static bool is_doubtful(auto_growth_vmm_t *self, uint64_t missing, strata_call_t *call) {
    uint64_t available, total;
    if (missing < ASKS_FIRST * handle_at_most(self)) return false;
    strata_opened_t opened = strata_call_unlock(call);
    strata_status_t status = strata_device_mem_info(self->growth.base.domain->device, &available, &total);
    strata_call_lock(call, opened);
    return status == STRATA_OK && available < missing;
}

/* What is missing in the room is created, and more if the device has it. */
static strata_status_t fill(auto_growth_vmm_t *self, const vmm_room_t *room, uint64_t missing, uint64_t done,
                            const strata_request_t *request) {
    uint64_t more = request->flags & STRATA_SMALL_GROWTH ? 0 : spare(self, room->width - done);
    uint64_t whole = missing - done, moved = done;
    if (is_doubtful(self, whole, request->call)) return create(self, room, whole, whole, request, &done);
    uint64_t most = handle_at_most(self);
    strata_status_t status = create(self, room, strata_max(whole, more), most, request, &done);
    if (status == STRATA_E_NO_MEMORY && more > whole)
        status = done < missing ? create(self, room, missing - done, most, request, &done) : STRATA_OK;
    if (status == STRATA_E_NO_MEMORY) strata_refusal_of_piece(whole, done - moved);
    return status;
}

/* A free block is large enough: another thread freed it while the lock was open, or there was no slot for what is left of it. */
static strata_status_t make_room_for_slots(auto_growth_vmm_t *self, strata_call_t *call) {
    uint64_t slots = strata_slab_slots_for(slab(self), 1);
    strata_opened_t opened = strata_call_unlock(call);
    strata_status_t status = strata_slab_reserve(slab(self), slots);
    strata_call_lock(call, opened);
    return status;
}

static strata_status_t bring_together(auto_growth_vmm_t *self, uint64_t size, const strata_request_t *request, uint64_t *place) {
    vmm_room_t room;
    uint64_t moved = 0;
    strata_status_t status = strata_growth_vmm_find_room(self, size, request->call, &room);
    /* Others may have freed what serves it, while the lock was open. */
    if (status != STRATA_OK || room.have >= size) return status;
    *place = room.below ? 0 : room.beside ? strata_slab_record(slab(self), room.beside)->ptr : room.at;
    uint64_t missing = in_handles(self, size - room.have);
    if (missing > allowance(self)) status = move_idle(self, &room, missing, request->call, &moved);
    return status == STRATA_OK && moved < missing ? fill(self, &room, missing, moved, request) : status;
}

/* One thread grows at a time, so nobody else changes what was in use at most. What was refused was not in use. */
strata_status_t strata_growth_vmm_grow(auto_growth_vmm_t *self, uint64_t size, const strata_request_t *request, uint64_t *place) {
    *place = 0;
    if (strata_bins_find_any(&self->growth.pools[0].bins, slab(self), size) != 0) return make_room_for_slots(self, request->call);
    strata_growth_vmm_drop_shadows(self, false, request->call);
    const uint64_t before = self->peak_used;
    self->peak_used = strata_max(before, self->growth.used_bytes + size);
    strata_status_t status = bring_together(self, size, request, place);
    if (status != STRATA_OK) self->peak_used = before;
    return status;
}
