/* Moves: a program whose sizes grow never requests one size twice, so a view of idle handles would serve once.
 * For such a program idle handles move beside a free block instead, and extend it for good. Each move maps the
 * handle at its new address. Work in flight may still use the old address, which stays blocked until it is done. */
#include "allocation/cache/policies/virtual/auto_growth_vmm_state.h"

#include "platform/arithmetic.h"

/* A search for the idle handle whose move is worth most: the smallest that is enough, or else the largest. So few
 * handles move. */
typedef struct search {
    uint64_t missing, width; /* bytes that the room still lacks, and its unmapped addresses */
    uint64_t begin, end; /* the free block beside the room, and the handles that have moved there, all of which stay */
    uint32_t part; /* the best handle, or 0 */
    uint64_t size;
} search_t;

static bool consider(auto_growth_vmm_t *self, uint32_t part, uint32_t slot, void *context) {
    search_t *search = context;
    const vmm_part_t *p = strata_growth_vmm_part(self, part);
    uint64_t size = p->run.size;
    bool large = strata_slab_record(strata_growth_vmm_slab(self), slot)->pool == STRATA_VMM_LARGE;
    bool beside = p->run.at >= search->begin && p->run.at < search->end;
    bool better = search->size < search->missing ? size > search->size : size >= search->missing && size < search->size;
    if (!large || beside || !better || size > search->width || p->views > 0) return true;
    if (!strata_vmm_may_move(self->vmm, p->run.chunk.below)) return true;
    search->part = part;
    search->size = size;
    return true;
}

/* Moves a handle to an address, with the locks open. Returns false if it stays, or if no slot is left. In the
 * second case the device gets it back. */
static bool move(auto_growth_vmm_t *self, uint32_t part, uint64_t to, strata_call_t *call) {
    const strata_run_part_t *p = strata_run_part_at(&self->runs, part);
    uint32_t shadow = strata_growth_vmm_block(self, p->at, p->size);
    strata_record_t *below = shadow ? strata_runs_remove(&self->runs, part, 0, 0) : NULL;
    if (!below) {
        if (shadow) strata_growth_vmm_unblock(self, shadow);
        return false;
    }
    strata_unlocked_t opened = strata_call_unlock(call);
    bool moved = strata_vmm_move(self->vmm, below, to) == STRATA_OK;
    strata_call_lock(call, opened);
    strata_growth_vmm_shadow(self, shadow)->is_moved = moved;
    if (moved) strata_growth_vmm_retire_shadow(self, shadow);
    else strata_growth_vmm_unblock(self, shadow);
    uint32_t slot = strata_runs_add(&self->runs, below);
    if (slot) {
        strata_growth_vmm_add_free(self, slot, STRATA_VMM_LARGE);
        self->moves += moved;
        return moved;
    }
    opened = strata_call_unlock(call);
    strata_vmm_free_chunks(self->vmm, &below, 1, false);
    strata_call_lock(call, opened);
    return false;
}

void strata_growth_vmm_gather(auto_growth_vmm_t *self, const vmm_room_t *room, uint64_t missing, strata_call_t *call) {
    strata_stream_t stream;
    const strata_layer_t *base = &self->growth.base;
    if (!strata_growth_vmm_options(self)->views || strata_chunks_are_pinned(&self->growth.chunks) ||
        !strata_layer_owner(base, &stream) || strata_domain_refuse_captured(base->domain, stream) != STRATA_OK)
        return;
    strata_growth_vmm_drop_views(self, call);
    (void)strata_growth_vmm_ensure_event(self, call);
    search_t search = {.missing = missing, .width = room->width};
    const uint64_t low = room->at, high = room->at + room->width;
    uint64_t done = 0;
    uint32_t moved = 0;
    for (; done < missing; done += search.size, moved++) {
        /* Each move opens the locks, so other threads may have given handles back since. */
        search.part = 0;
        search.size = 0;
        search.begin = room->below ? high - done : low - room->have;
        search.end = room->below ? high + room->have : low + done;
        strata_growth_vmm_each_idle(self, consider, &search);
        uint64_t to = room->below ? high - done - search.size : low + done;
        if (search.part == 0 || !move(self, search.part, to, call)) break;
        search.missing -= strata_min(search.missing, search.size);
        search.width -= search.size;
    }
    /* The event must follow the moves. Until then, the stream could still get work on the old addresses. */
    if (moved > 0) strata_growth_vmm_cover_shadows(self, strata_growth_vmm_mark_stream(self));
}
