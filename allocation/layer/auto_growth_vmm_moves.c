/* Moves: handles that are idle as a whole come to a room of addresses, for a block whose pieces will be asked for at their addresses
 * (STRATA_DIVISIBLE): a view would not do. Where they were they stay mapped until the work is done that may use them there. */
#include "allocation/layer/auto_growth_vmm_state.h"

enum { BATCH = 256 };

typedef struct move {
    uint32_t part, slot;
    strata_record_t *below; /* NULL: it is back in the cache */
    uint64_t from;
    uint32_t shadow;
} move_t;

typedef struct batch {
    const vmm_room_t *room;
    uint64_t missing, bytes; /* at most so many, and so many were chosen; then, taken */
    uint32_t count;
    move_t items[BATCH];
} batch_t;

static vmm_shadow_t *shadow_at(const auto_growth_vmm_t *self, uint32_t shadow) { return strata_growth_vmm_shadow(self, shadow); }

static bool note_move(auto_growth_vmm_t *self, uint32_t part, uint32_t slot, void *context) {
    batch_t *batch = context;
    const vmm_part_t *p = strata_growth_vmm_part(self, part);
    bool may = slot != batch->room->beside && p->run.size <= batch->missing - batch->bytes && p->views == 0;
    if (!may || !strata_vmm_may_move(self->vmm, p->run.chunk.below)) return true;
    batch->items[batch->count++] = (move_t){.part = part, .slot = slot};
    batch->bytes += p->run.size;
    return batch->count < BATCH;
}

/* Takes what was chosen out of the cache; its addresses are nobody's. */
static void take(auto_growth_vmm_t *self, batch_t *batch) {
    uint32_t taken = 0;
    batch->bytes = 0;
    for (; taken < batch->count; taken++) {
        move_t *move = &batch->items[taken];
        const strata_run_part_t *part = strata_run_part_at(&self->runs, move->part);
        move->shadow = strata_growth_vmm_block(self, part->at, part->size);
        if (move->shadow == 0) break;
        move->below = strata_growth_vmm_take(self, move->part, move->slot);
        if (!move->below) {
            strata_growth_vmm_unblock(self, move->shadow);
            break;
        }
        move->from = move->below->ptr;
        batch->bytes += move->below->size;
    }
    batch->count = taken;
}

/* The locks are open. Those that the device does not move stay where they are. */
static strata_status_t map(auto_growth_vmm_t *self, const batch_t *batch, uint64_t to) {
    strata_status_t status = STRATA_OK;
    for (uint32_t i = 0; i < batch->count && status == STRATA_OK; i++) {
        status = strata_vmm_move(self->vmm, batch->items[i].below, to);
        to += batch->items[i].below->size;
    }
    return status;
}

/* Whether all have moved. What finds no slot goes back to the device. */
static bool put(auto_growth_vmm_t *self, batch_t *batch, strata_handle_t event, strata_call_t *call) {
    uint32_t moved = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        move_t *move = &batch->items[i];
        if (move->below->ptr == move->from) {
            strata_growth_vmm_unblock(self, move->shadow);
        } else {
            shadow_at(self, move->shadow)->is_left = true;
            strata_growth_vmm_cast(self, move->shadow);
            moved++;
        }
        if (strata_growth_vmm_put(self, move->below, STRATA_VMM_LARGE)) move->below = NULL;
    }
    if (moved) strata_growth_vmm_cover(self, event);
    else if (event) strata_events_give(&self->growth.base.domain->events, event);
    strata_opened_t opened = strata_call_unlock(call);
    for (uint32_t i = 0; i < batch->count; i++)
        if (batch->items[i].below) strata_chunk_free(batch->items[i].below);
    strata_call_lock(call, opened);
    return moved == batch->count;
}

strata_status_t strata_growth_vmm_move(auto_growth_vmm_t *self, const vmm_room_t *room, uint64_t missing, strata_call_t *call,
                                       uint64_t *moved) {
    batch_t batch = {.room = room, .missing = missing};
    strata_status_t status = STRATA_OK;
    *moved = 0;
    if (strata_chunks_are_pinned(&self->growth.chunks) || !strata_growth_vmm_ensure_event(self, call)) return status;
    strata_growth_vmm_each_idle(self, note_move, &batch);
    take(self, &batch);
    /* After the take, since until then work could be given to what lies there. */
    strata_handle_t event = strata_growth_vmm_mark_stream(self);
    if (event && batch.count > 0) {
        strata_opened_t opened = strata_call_unlock(call);
        status = map(self, &batch, room->below ? room->at + room->width - batch.bytes : room->at);
        strata_call_lock(call, opened);
    }
    if (put(self, &batch, event, call)) *moved = batch.bytes;
    return status;
}
