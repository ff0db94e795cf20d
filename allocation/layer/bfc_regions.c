/* The regions of bfc: how they come, how blocks go back into them, and how they are given back. */
#include "allocation/layer/bfc.h"
#include "platform/arithmetic.h"

/* ---- blocks ---- */

/* `low` takes the block behind it; both are in no bin. */
static void join(bfc_t *self, uint32_t low) {
    strata_record_t *block = bfc_block(self, low), *high = bfc_block(self, block->next);
    strata_mark_merge(block, high, self->waited);
    strata_bfc_merge_stamps(self, block, high);
    strata_pieces_join(bfc_slab(self), low);
}

/* A count vouches for a whole block, and nothing else does: what bears none and still has users stays apart from it. */
static bool is_vouched_for(const bfc_t *self, const strata_record_t *block) {
    return bfc_stamp_of(block) != 0 || strata_mark_count(block) <= self->waited;
}

static bool may_join(const bfc_t *self, const strata_record_t *block, uint32_t neighbour, bool all) {
    if (!bfc_is_free(self, neighbour)) return false;
    const strata_record_t *other = bfc_block(self, neighbour);
    if (bfc_stamp_of(block) == 0 && bfc_stamp_of(other) == 0) return true;
    return all && is_vouched_for(self, block) && is_vouched_for(self, other);
}

uint32_t strata_bfc_coalesce(bfc_t *self, uint32_t slot, bool all) {
    const strata_record_t *block = bfc_block(self, slot);
    if (may_join(self, block, block->next, all)) {
        strata_bfc_unindex(self, block->next);
        join(self, slot);
    }
    if (may_join(self, block, block->prev, all)) {
        uint32_t low = block->prev;
        strata_bfc_unindex(self, low);
        join(self, low);
        return low;
    }
    return slot;
}

/* A slot whose generations are used up; 0: no other is left. */
static uint32_t leave_slot(bfc_t *self, uint32_t slot) {
    bfc_region_t *region = bfc_region_at(self, bfc_block(self, slot)->chunk);
    uint32_t fresh = strata_pieces_move(bfc_slab(self), slot);
    if (fresh && region->first == slot) region->first = fresh;
    return fresh;
}

void strata_bfc_put_back(bfc_t *self, strata_record_t *block) {
    uint32_t slot = strata_slab_slot(bfc_slab(self), block);
    if (block->generation >= STRATA_GENERATION_LAST) {
        slot = leave_slot(self, slot);
        if (slot == 0) {
            /* Out of use until its region goes, which it never does before the end. */
            block->state = STRATA_RECORD_DEFERRED;
            self->lost_blocks++;
            return;
        }
        block = bfc_block(self, slot);
    }
    self->used_bytes -= block->size;
    bfc_region_at(self, block->chunk)->live--;
    uint32_t user = strata_bfc_end_use(self, block);
    strata_mark(block, self->ownerless ? 0 : ++self->frees, user);
    block->route = 0;
    block->state = STRATA_RECORD_FREE;
    if (self->history) strata_bfc_note(self, block, false);
    if (bfc_options_of(self)->timestamps && strata_bfc_stamp(self, block)) strata_bfc_index(self, slot);
    else strata_bfc_index(self, strata_bfc_coalesce(self, slot, false));
}

/* ---- regions by address ---- */

uint32_t strata_bfc_region_of(const bfc_t *self, uint64_t address) {
    uint32_t node = self->first_region;
    while (node && address - bfc_region_at(self, node)->base >= bfc_region_at(self, node)->size)
        node = bfc_region_at(self, node)->next;
    return node;
}

static void list(bfc_t *self, uint32_t node) {
    bfc_region_t *region = bfc_region_at(self, node);
    uint32_t before = 0, behind = self->first_region;
    while (behind && bfc_region_at(self, behind)->base < region->base) {
        before = behind;
        behind = bfc_region_at(self, behind)->next;
    }
    region->prev = before;
    region->next = behind;
    if (before) bfc_region_at(self, before)->next = node;
    else self->first_region = node;
    if (behind) bfc_region_at(self, behind)->prev = node;
}

static void unlist(bfc_t *self, uint32_t node) {
    const bfc_region_t *region = bfc_region_at(self, node);
    if (region->prev) bfc_region_at(self, region->prev)->next = region->next;
    else self->first_region = region->next;
    if (region->next) bfc_region_at(self, region->next)->prev = region->prev;
}

/* The region that ends where a chunk begins; 0: none. */
static uint32_t region_before(const bfc_t *self, uint64_t base) {
    if (!self->coalesces) return 0;
    uint32_t node = self->first_region;
    while (node && bfc_region_at(self, node)->base + bfc_region_at(self, node)->size != base)
        node = bfc_region_at(self, node)->next;
    return node;
}

/* ---- a chunk comes ---- */

static void append_block(bfc_t *self, uint32_t node, uint32_t slot) {
    uint32_t last = bfc_region_at(self, node)->first;
    while (bfc_block(self, last)->next) last = bfc_block(self, last)->next;
    bfc_block(self, last)->next = slot;
    bfc_block(self, slot)->prev = last;
}

static void append_part(bfc_t *self, uint32_t node, uint32_t part) {
    uint32_t *link = &bfc_region_at(self, node)->parts;
    while (*link) link = &bfc_part_at(self, *link)->next;
    *link = part;
    bfc_region_at(self, node)->part_count++;
}

/* The nodes and the slot that a chunk needs; false: one of them is not to be had, and none is taken. */
static bool take_nodes(bfc_t *self, uint32_t *node, uint32_t *part, uint32_t *slot, const strata_record_t *below) {
    bool extends = *node != 0;
    *part = strata_nodes_take(&self->parts);
    if (*part && !extends) *node = strata_nodes_take(&self->regions);
    *slot = *part && *node ? strata_pieces_begin(bfc_slab(self), *node, below->ptr, below->size) : 0;
    if (*slot) return true;
    if (*part) strata_nodes_give(&self->parts, *part);
    if (*node && !extends) strata_nodes_give(&self->regions, *node);
    strata_fail(STRATA_E_LIMIT, 0, "bfc holds %u regions or %u blocks, its most", self->regions.capacity, bfc_slab(self)->capacity);
    return false;
}

static void count_in(bfc_t *self, const strata_record_t *below) {
    strata_statistics_t *f = &self->base.stack->figures;
    f->growths++;
    f->chunks++;
    f->reserved_bytes += strata_record_reserved(below);
    if (f->reserved_bytes > f->peak_reserved_bytes) f->peak_reserved_bytes = f->reserved_bytes;
    self->reserved += below->size;
}

bool strata_bfc_publish(bfc_t *self, strata_record_t *below, uint32_t user) {
    uint32_t node = region_before(self, below->ptr), part, slot;
    bool extends = node != 0;
    if (!take_nodes(self, &node, &part, &slot, below)) return false;
    bfc_region_t *region = bfc_region_at(self, node);
    *bfc_part_at(self, part) = (bfc_part_t){.below = below};
    if (extends) {
        append_block(self, node, slot);
        region->size += below->size;
    } else {
        *region = (bfc_region_t){.base = below->ptr, .size = below->size, .first = slot};
        list(self, node);
        self->region_count++;
    }
    append_part(self, node, part);
    count_in(self, below);
    /* Memory that came in the order of a stream is another stream's after a wait alone. */
    bool marked = self->ordered_below && !self->ownerless;
    strata_mark(bfc_block(self, slot), marked ? ++self->frees : 0, user);
    strata_bfc_index(self, strata_bfc_coalesce(self, slot, false));
    return true;
}

/* ---- regions go ---- */

static bool has_users(const bfc_t *self, const bfc_region_t *region) {
    for (uint32_t slot = region->first; slot; slot = bfc_block(self, slot)->next)
        if (strata_mark_count(bfc_block(self, slot)) > self->waited) return true;
    return false;
}

/* Every block of a region is free: they leave the bins. */
static void take_apart(bfc_t *self, const bfc_region_t *region) {
    for (uint32_t slot = region->first, next; slot; slot = next) {
        strata_record_t *block = bfc_block(self, slot);
        next = block->next;
        strata_bfc_unindex(self, slot);
        strata_bfc_unstamp(self, block);
        strata_slab_give(bfc_slab(self), slot);
    }
}

/* The first chunk of what was a region's; NULL: the last has gone. The lock is held. */
static strata_record_t *next_part(bfc_t *self, uint32_t *part) {
    if (*part == 0) return NULL;
    strata_record_t *below = bfc_part_at(self, *part)->below;
    uint32_t next = bfc_part_at(self, *part)->next;
    strata_statistics_t *f = &self->base.stack->figures;
    f->chunks--;
    f->reserved_bytes -= strata_record_reserved(below);
    self->reserved -= below->size;
    strata_nodes_give(&self->parts, *part);
    *part = next;
    return below;
}

/* The lock is open for the calls below; the bytes. */
static uint64_t give_back(bfc_t *self, uint32_t node, strata_call_t *call) {
    const bfc_region_t *region = bfc_region_at(self, node);
    uint64_t size = region->size;
    uint32_t part = region->parts;
    take_apart(self, region);
    unlist(self, node);
    strata_nodes_give(&self->regions, node);
    self->region_count--;
    for (strata_record_t *below; (below = next_part(self, &part)) != NULL;) {
        strata_opened_t opened = strata_call_unlock(call);
        strata_chunk_free(below);
        strata_call_lock(call, opened);
    }
    return size;
}

/* Where the layer below frees in the order of one stream, the uses by others are waited for. */
static bool wait_if_need_be(bfc_t *self, strata_call_t *call) {
    if (!self->ordered_below) return true;
    for (uint32_t node = self->first_region; node; node = bfc_region_at(self, node)->next)
        if (bfc_region_at(self, node)->live == 0 && has_users(self, bfc_region_at(self, node)))
            return strata_bfc_wait_for_users(self, call);
    return true;
}

static bool may_go(const bfc_t *self, const bfc_region_t *region) {
    return region->live == 0 && (!self->ordered_below || !has_users(self, region));
}

/* The lowest region from an address on that may go; 0: none. */
static uint32_t next_idle(const bfc_t *self, uint64_t from) {
    for (uint32_t node = self->first_region; node; node = bfc_region_at(self, node)->next)
        if (bfc_region_at(self, node)->base >= from && may_go(self, bfc_region_at(self, node))) return node;
    return 0;
}

uint64_t strata_bfc_release_all(bfc_t *self, strata_call_t *call) {
    uint64_t released = 0, from = 0;
    if (!wait_if_need_be(self, call)) return 0;
    for (uint32_t node; (node = next_idle(self, from)) != 0;) {
        from = bfc_region_at(self, node)->base + 1;
        released += give_back(self, node, call);
    }
    return released;
}

uint64_t strata_bfc_releasable(const bfc_t *self) {
    uint64_t bytes = 0;
    for (uint32_t node = self->first_region; node; node = bfc_region_at(self, node)->next)
        if (bfc_region_at(self, node)->live == 0) bytes += bfc_region_at(self, node)->size;
    return bytes;
}

static uint32_t largest_idle(const bfc_t *self) {
    uint32_t largest = 0;
    uint64_t most = 0;
    for (uint32_t node = self->first_region; node; node = bfc_region_at(self, node)->next) {
        const bfc_region_t *region = bfc_region_at(self, node);
        if (region->size <= most || !may_go(self, region)) continue;
        largest = node;
        most = region->size;
    }
    return largest;
}

uint64_t strata_bfc_trim(strata_layer_t *base, uint64_t keep, strata_call_t *call) {
    bfc_t *self = (bfc_t *)base;
    uint64_t released = 0;
    if (self->captures > 0 || bfc_idle(self) <= keep || !wait_if_need_be(self, call)) return 0;
    for (uint32_t node; bfc_idle(self) > keep && (node = largest_idle(self)) != 0;) released += give_back(self, node, call);
    return released;
}

void strata_bfc_give_all_back(bfc_t *self) {
    for (uint32_t node = self->first_region; node; node = bfc_region_at(self, node)->next)
        for (uint32_t part = bfc_region_at(self, node)->parts; part; part = bfc_part_at(self, part)->next)
            strata_chunk_free(bfc_part_at(self, part)->below);
}
