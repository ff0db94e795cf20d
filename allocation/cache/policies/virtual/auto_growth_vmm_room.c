/* Ranges, and the room in them: the addresses between parts and shadows. */
#include "allocation/cache/policies/virtual/auto_growth_vmm_state.h"

#include "platform/arithmetic.h"

enum { GROWTH = 4, WIDE = 64 }; /* a range is WIDE times as large as the first of blocks that grow */

#define FIRST_RANGE (1ull << 30)
#define LIMIT       (1ull << 46) /* max bytes of addresses that a request may need */

/* A search for room. With `to_grow`, a block that extends no free block gets room to become GROWTH times as large. */
typedef struct search {
    uint64_t size;
    bool to_grow;
    vmm_room_t *best;
} search_t;

/* Returns the bytes of a free block that the request may extend. The free rest of a live block that may grow
 * itself is none of these. */
static uint64_t free_bytes_of(const auto_growth_vmm_t *self, const search_t *search, uint32_t slot) {
    const strata_slab_t *slab = strata_growth_vmm_slab(self);
    uint64_t bytes = slot && strata_slab_is_idle(slab, slot) ? strata_slab_record(slab, slot)->size : 0;
    return search->to_grow && bytes < search->size / 2 ? 0 : bytes;
}

/* Keeps the room where fewer bytes are missing. Among equals it keeps the narrower room, so that later blocks
 * touch, or the wider one for a block that will grow. */
static void consider(const auto_growth_vmm_t *self, const search_t *search, const vmm_room_t *room) {
    vmm_room_t *best = search->best;
    uint64_t missing = search->size - strata_min(search->size, room->have);
    bool apart = search->to_grow && room->have == 0;
    if (!strata_round_up(missing, self->granularity, &missing) || room->width / (apart ? GROWTH : 1) < missing) return;
    bool fits_better = apart ? room->width > best->width : room->width < best->width;
    if (best->width && (room->have < best->have || (room->have == best->have && !fits_better))) return;
    *best = *room;
}

static void consider_gap(auto_growth_vmm_t *self, const search_t *search, const strata_gap_t *gap) {
    const vmm_room_t whole = {.at = gap->begin, .width = gap->end - gap->begin, .kind = search->best->kind};
    if (whole.width == 0) return;
    vmm_room_t room = whole;
    if (gap->run) room.beside = strata_runs_last_block(&self->runs, gap->run);
    room.have = free_bytes_of(self, search, room.beside);
    if (room.have == 0) room.beside = 0;
    if (room.have == 0 && gap->run && search->to_grow) {
        /* The block before the gap may grow as well. */
        room.at += strata_round_down(whole.width / 2, self->granularity);
        room.width = gap->end - room.at;
    }
    consider(self, search, &room);
    if (gap->next == 0) return;
    room = whole;
    room.beside = strata_runs_first_block(&self->runs, gap->next);
    room.have = free_bytes_of(self, search, room.beside);
    room.below = true;
    if (room.have > 0) consider(self, search, &room);
}

/* Considers the gaps of a range in order of addresses, without the addresses that shadows block. The last
 * addresses stay free, so that runs of two ranges never touch. */
static void search_range(auto_growth_vmm_t *self, const vmm_range_t *range, const search_t *search) {
    uint64_t end = range->base + range->size - self->granularity;
    uint32_t shadow = strata_growth_vmm_shadow_from(self, range->base);
    for (strata_gap_t gap = {.end = range->base}; strata_runs_next_gap(&self->runs, end, &gap);) {
        strata_gap_t left = gap;
        for (; shadow; shadow = strata_order_next(&self->shadows, shadow)) {
            const vmm_shadow_t *s = strata_growth_vmm_shadow(self, shadow);
            if (s->at >= gap.end) break;
            consider_gap(self, search, &(strata_gap_t){.begin = left.begin, .end = s->at, .run = left.run});
            left.begin = s->at + s->size;
            left.run = 0;
        }
        consider_gap(self, search, &left);
    }
}

/* Reserves a range with the locks open. It is twice as large as the largest one if the device permits, so there
 * are few. */
static strata_status_t add_range(auto_growth_vmm_t *self, uint64_t size, vmm_kind_t kind, strata_call_t *call) {
    vmm_range_t range = {.size = FIRST_RANGE, .kind = kind};
    uint64_t least;
    for (uint32_t i = 0; i < self->range_count; i++) range.size = strata_max(range.size, 2 * self->ranges[i].size);
    if (self->range_count == STRATA_VMM_RANGES || !strata_round_up(size, self->granularity, &least))
        return strata_fail(STRATA_E_LIMIT, 0, "auto_growth_vmm has %u ranges of addresses, the maximum", self->range_count);
    if (least > LIMIT)
        return strata_fail(STRATA_E_NO_MEMORY, 0, "no device has %llu bytes of address space", (unsigned long long)least);
    least += self->granularity;
    range.size = strata_max(range.size, (strata_growth_vmm_is_growing(self) ? WIDE : 4) * least);
    strata_unlocked_t opened = strata_call_unlock(call);
    strata_status_t status = strata_vmm_reserve(self->vmm, range.size, &range.base);
    if (status != STRATA_OK) status = strata_vmm_reserve(self->vmm, range.size = least, &range.base);
    strata_call_lock(call, opened);
    if (status == STRATA_OK) self->ranges[self->range_count++] = range;
    self->ranges_changed = true;
    return status;
}

static void search_ranges(auto_growth_vmm_t *self, const search_t *search) {
    for (uint32_t i = 0; i < self->range_count; i++)
        if (self->ranges[i].kind == search->best->kind) search_range(self, &self->ranges[i], search);
}

strata_status_t strata_growth_vmm_find_room(auto_growth_vmm_t *self, uint64_t size, vmm_kind_t kind, strata_call_t *call,
                                            vmm_room_t *room) {
    search_t search = {.size = size, .to_grow = kind == STRATA_VMM_LARGE && strata_growth_vmm_is_growing(self), .best = room};
    *room = (vmm_room_t){.kind = kind};
    search_ranges(self, &search);
    if (room->width) return STRATA_OK;
    strata_status_t status = add_range(self, size, kind, call);
    search_ranges(self, &search);
    search.to_grow = false; /* the device may have given a range of the request's size alone, or none */
    if (room->width == 0) search_ranges(self, &search);
    return room->width ? STRATA_OK : status;
}

vmm_kind_t strata_growth_vmm_kind_at(const auto_growth_vmm_t *self, uint64_t address) {
    uint32_t i = 0;
    while (i + 1 < self->range_count && address - self->ranges[i].base >= self->ranges[i].size) i++;
    return self->ranges[i].kind;
}

/* ---- unreserving ---- */

static bool is_empty(auto_growth_vmm_t *self, const vmm_range_t *range) {
    uint32_t part = strata_runs_part_from(&self->runs, range->base), shadow = strata_growth_vmm_shadow_from(self, range->base);
    if (part && strata_run_part_at(&self->runs, part)->at - range->base < range->size) return false;
    return !shadow || strata_growth_vmm_shadow(self, shadow)->at - range->base >= range->size;
}

void strata_growth_vmm_end_ranges(auto_growth_vmm_t *self, strata_call_t *call) {
    if (!self->ranges_changed || self->growth.chunks.growing) return; /* a handle that is being created is in no range yet */
    self->ranges_changed = false;
    vmm_range_t empty[STRATA_VMM_RANGES];
    uint32_t count = 0, left = 0;
    for (uint32_t i = 0; i < self->range_count; i++)
        if (is_empty(self, &self->ranges[i])) empty[count++] = self->ranges[i];
        else self->ranges[left++] = self->ranges[i];
    self->range_count = left;
    if (count == 0) return;
    strata_unlocked_t opened = strata_call_unlock(call);
    for (uint32_t i = 0; i < count; i++) strata_vmm_unreserve(self->vmm, empty[i].base, empty[i].size);
    strata_call_lock(call, opened);
}
