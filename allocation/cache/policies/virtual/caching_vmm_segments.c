/* Expandable segments: ranges of addresses in which physical handles are mapped where memory is needed.
 *
 * A bank has its own ranges for small and for large blocks, usually one of each. A range has handles of one
 * size. Handles that touch are a run (allocation/cache/runs.h), and a gap has the width of whole handles. A
 * request that finds no free block takes the lowest place that is wide enough, counting gaps and free blocks
 * together. The gaps in it are then mapped. Only handles that are free as a whole are unmapped.
 *
 * The lock is open while handles are mapped. The memory gathered so far is a held block, which is in no tree
 * and in state DEFERRED, so other threads cannot use it. Another thread may take the free block that follows,
 * and then the search starts over. Addresses that a thread is still unmapping look like a gap, so a thread that
 * is about to map waits for it. */
#include "allocation/cache/policies/caching/caching_state.h"
#include "allocation/layers/sources/vmm.h"
#include "allocation/report/outcome.h"
#include "platform/arithmetic.h"

enum { BATCH_HANDLES = 1024 }; /* handles that are unmapped at a time */

static uint64_t end_of(const strata_record_t *block) { return block->ptr + block->size; }

static uint64_t end_of_range(const caching_range_t *range) { return range->base + range->size; }

/* ---- gaps ---- */

/* Returns the end of the gap that begins at an address: the next run, or the end of the range. */
static uint64_t end_of_gap(const caching_t *self, const caching_range_t *range, uint64_t at) {
    const strata_order_key_t key = {at, 0, 0};
    uint32_t run = strata_order_from((strata_order_t *)&self->chunks.by_address, &key);
    return run ? strata_min(caching_segment_at(self, run)->chunk.base, end_of_range(range)) : end_of_range(range);
}

static uint32_t range_of(const caching_t *self, uint32_t bank, uint32_t kind, uint64_t address) {
    uint32_t number = caching_bank_at(self, bank)->ranges[kind];
    while (address - caching_range_at(self, number)->base >= caching_range_at(self, number)->size)
        number = caching_range_at(self, number)->next;
    return number;
}

/* Returns the slot of the block that begins at an address. Returns 0 if it is neither the first nor the last
 * block of the run. */
static uint32_t end_block(const caching_t *self, uint32_t run, uint64_t at) {
    uint32_t first = strata_runs_first_block(&self->runs, run), last = strata_runs_last_block(&self->runs, run);
    return caching_block(self, first)->ptr == at ? first : caching_block(self, last)->ptr == at ? last : 0;
}

/* Returns true if `size` bytes from `begin` on are gaps and free blocks. `begin` is a gap, or the free block
 * before it. A block that follows a free block is never free, since they would have been coalesced. */
static bool is_wide(const caching_t *self, const caching_range_t *range, uint64_t begin, uint64_t size) {
    uint64_t at = begin;
    while (at - begin < size && at < end_of_range(range)) {
        uint32_t run = strata_runs_find(caching_runs(self), at), slot = run ? end_block(self, run, at) : 0;
        if (run && !strata_slab_is_idle(caching_slab(self), slot)) return false;
        at = run ? end_of(caching_block(self, slot)) : end_of_gap(self, range, at);
    }
    return at - begin >= size;
}

/* Returns the lowest place for `size` bytes in the ranges of a bank, or 0 if there is none. */
static uint64_t find_place(const caching_t *self, uint32_t bank, uint32_t kind, uint64_t size) {
    for (uint32_t n = caching_bank_at(self, bank)->ranges[kind]; n; n = caching_range_at(self, n)->next) {
        const caching_range_t *range = caching_range_at(self, n);
        strata_gap_t gap = {.end = range->base};
        while (strata_runs_next_gap(caching_runs(self), end_of_range(range), &gap)) {
            /* The place begins at the free block before the gap, if there is one. */
            uint32_t slot = gap.run ? strata_runs_last_block(&self->runs, gap.run) : 0;
            uint64_t begin = strata_slab_is_idle(caching_slab(self), slot) ? caching_block(self, slot)->ptr : gap.begin;
            if (is_wide(self, range, begin, size)) return begin;
        }
    }
    return 0;
}

/* ---- best fit ---- */

/* Returns the bytes of a block and of the gap after it. Only the last block of a run has a gap after it. */
static uint64_t room_of(const caching_t *self, uint32_t slot) {
    const strata_record_t *block = caching_block(self, slot);
    if (caching_block(self, block->next)->size != 0) return block->size;
    uint32_t range = range_of(self, caching_bank_of(self, block), caching_kind_of(self, block), block->ptr);
    return end_of_gap(self, caching_range_at(self, range), end_of(block)) - block->ptr;
}

uint32_t strata_caching_least_room(const caching_t *self, const strata_tree_t *idle, uint32_t slot) {
    if (idle->count < 2) return slot;
    for (uint64_t room = room_of(self, slot);;) {
        const strata_record_t *block = caching_block(self, slot);
        uint32_t next = strata_tree_after(idle, caching_slab(self), block->size, block->ptr);
        uint64_t of_next = next ? room_of(self, next) : UINT64_MAX;
        if (of_next >= room) return slot;
        slot = next;
        room = of_next;
    }
}

/* ---- ranges ---- */

/* Reserves a range, with the lock open. */
static strata_status_t make_range(caching_t *self, uint32_t bank, uint32_t kind, strata_call_t *call) {
    uint64_t size = strata_round_up_any(self->range_bytes, self->handle[kind]), base = 0;
    strata_unlocked_t opened = strata_call_unlock(call);
    strata_status_t status = strata_vmm_reserve(self->vmm, size + self->handle[kind], &base);
    strata_call_lock(call, opened);
    if (status != STRATA_OK) return status;
    uint32_t number = strata_nodes_acquire(&self->ranges);
    if (number) {
        caching_range_t *range = caching_range_at(self, number);
        *range = (caching_range_t){.bank = bank, .kind = kind, .base = base, .size = size};
        uint32_t *link = &caching_bank_at(self, bank)->ranges[kind];
        while (*link && caching_range_at(self, *link)->base < base) link = &caching_range_at(self, *link)->next;
        range->next = *link;
        *link = number;
        caching_bank_at(self, bank)->segments++;
        return STRATA_OK;
    }
    opened = strata_call_unlock(call);
    strata_vmm_unreserve(self->vmm, base, size + self->handle[kind]);
    strata_call_lock(call, opened);
    return strata_fail(STRATA_E_LIMIT, 0, "caching_vmm has %u ranges, the maximum", self->ranges.capacity - 1);
}

/* Ends a range in which nothing is mapped. Opens the lock. */
static void end_range(caching_t *self, uint32_t number, strata_call_t *call) {
    const caching_range_t range = *caching_range_at(self, number);
    uint32_t *link = &caching_bank_at(self, range.bank)->ranges[range.kind];
    while (*link != number) link = &caching_range_at(self, *link)->next;
    *link = range.next;
    caching_range_at(self, number)->bank = 0;
    caching_bank_at(self, range.bank)->segments--;
    strata_nodes_release(&self->ranges, number);
    strata_unlocked_t opened = strata_call_unlock(call);
    strata_vmm_unreserve(self->vmm, range.base, range.size + self->handle[range.kind]);
    strata_call_lock(call, opened);
}

/* ---- growth ---- */

/* One miss, and the memory gathered for it so far. */
typedef struct miss {
    const strata_request_t *request;
    uint32_t bank, kind, range;
    uint32_t held; /* slot of the held block, or 0 */
    uint64_t mapped; /* bytes of the handles that were mapped for it */
    uint64_t lacks; /* bytes of handles for the part that is not held yet, counting no free block after the next gap */
} miss_t;

/* Adds a free block that is in no tree to the held block, which ends where it begins. */
static void hold(caching_t *self, miss_t *miss, uint32_t slot) {
    self->used_bytes += caching_block(self, slot)->size;
    if (miss->held) strata_block_list_absorb(caching_slab(self), miss->held);
    else miss->held = slot;
    caching_block(self, miss->held)->state = STRATA_RECORD_DEFERRED;
}

/* Adds the block `slot` if it is free. It begins where the held block ends, if there is one. */
static void hold_free(caching_t *self, miss_t *miss, uint32_t slot) {
    if (!strata_slab_is_idle(caching_slab(self), slot)) return;
    strata_tree_quick_remove(caching_tree(self, miss->bank, miss->kind), caching_slab(self), slot);
    hold(self, miss, slot);
}

/* Maps one handle after the held block. */
static strata_status_t map_one(caching_t *self, miss_t *miss, uint64_t at) {
    uint32_t slot;
    strata_status_t status = strata_runs_map(&self->runs, at, self->handle[miss->kind], miss->request, &slot);
    if (status != STRATA_OK) return status;
    caching_segment_t *part = caching_segment_at(self, strata_runs_find_part(&self->runs, at));
    part->bank = miss->bank;
    part->kind = miss->kind;
    caching_block(self, slot)->pool = caching_code(miss->bank, miss->kind);
    strata_mark(caching_block(self, slot), 0, 0);
    caching_bank_at(self, miss->bank)->segments++;
    caching_range_at(self, miss->range)->parts++;
    self->mapped++;
    hold(self, miss, slot);
    return STRATA_OK;
}

/* Removes a handle from the cache, as strata_runs_remove() does. */
static strata_record_t *take_part(caching_t *self, uint32_t range, uint64_t at, uint32_t block, uint32_t near) {
    strata_record_t *below = strata_runs_remove(&self->runs, strata_runs_find_part(&self->runs, at), block, near);
    if (!below) return NULL;
    caching_bank_at(self, caching_range_at(self, range)->bank)->segments--;
    caching_range_at(self, range)->parts--;
    self->unmapped++;
    return below;
}

/* Unmaps the last `count` handles of the held block, which no block has used. Stops if there is no slot to
 * split one off. */
static void unmap_last(caching_t *self, miss_t *miss, uint64_t count) {
    for (uint64_t size = self->handle[miss->kind]; count > 0; count--) {
        const strata_record_t *held = caching_block(self, miss->held);
        uint64_t at = end_of(held) - size;
        bool all = held->size == size;
        uint32_t own = all ? miss->held : strata_block_list_split(caching_slab(self), miss->held, held->size - size);
        strata_record_t *below = own ? take_part(self, miss->range, at, own, 0) : NULL;
        if (!below && own && !all) strata_block_list_absorb(caching_slab(self), miss->held);
        if (!below) return;
        self->used_bytes -= size;
        if (all) miss->held = 0;
        strata_unlocked_t opened = strata_call_unlock(miss->request->call);
        strata_vmm_free_chunks(self->vmm, &below, 1, strata_runs_is_untouched(below));
        strata_call_lock(miss->request->call, opened);
    }
}

/* Maps `bytes` bytes of the gap after the held block, all or nothing. The free block after the gap, if any, is
 * then held too. */
static strata_status_t map_gap(caching_t *self, miss_t *miss, uint64_t at, uint64_t bytes) {
    uint64_t size = self->handle[miss->kind], count = (bytes + size - 1) / size;
    for (uint64_t i = 0; i < count; i++) {
        strata_status_t status = map_one(self, miss, at + i * size);
        if (status == STRATA_OK) continue;
        if (status == STRATA_E_NO_MEMORY) strata_refused_piece(miss->request, miss->mapped + miss->lacks, miss->mapped + i * size);
        strata_error_t reason = *strata_last_error();
        unmap_last(self, miss, i);
        return strata_fail_again(&reason);
    }
    miss->mapped += count * size;
    hold_free(self, miss, caching_block(self, miss->held)->next);
    return STRATA_OK;
}

/* Waits while other threads unmap handles of the bank. Opens the lock. */
static void wait_for_gaps(caching_t *self, const miss_t *miss) {
    strata_runs_wait_for_gaps(&self->runs, &caching_bank_at(self, miss->bank)->unmapping[miss->kind], miss->request->call);
}

/* Gathers `size` bytes from a place on. Returns E_NOT_READY if another thread has taken a block there. */
static strata_status_t gather(caching_t *self, miss_t *miss, uint64_t place, uint64_t size) {
    strata_status_t status = STRATA_OK;
    uint32_t run = strata_runs_find(&self->runs, place);
    miss->held = 0;
    miss->mapped = 0;
    miss->range = range_of(self, miss->bank, miss->kind, place);
    if (run) hold_free(self, miss, end_block(self, run, place));
    while (status == STRATA_OK) {
        uint64_t have = miss->held ? caching_block(self, miss->held)->size : 0, at = place + have;
        if (have >= size) return STRATA_OK;
        miss->lacks = strata_round_up_any(size - have, self->handle[miss->kind]);
        const caching_range_t *range = caching_range_at(self, miss->range);
        if (at >= end_of_range(range) || strata_runs_find(&self->runs, at)) status = STRATA_E_NOT_READY;
        else status = map_gap(self, miss, at, strata_min(size - have, end_of_gap(self, range, at) - at));
        if (status == STRATA_OK) wait_for_gaps(self, miss);
    }
    if (miss->held) strata_caching_free_block(self, caching_block(self, miss->held));
    miss->held = 0;
    return status;
}

strata_status_t strata_caching_expand(caching_t *self, uint32_t bank, uint32_t kind, uint64_t size, const strata_request_t *request,
                                      uint32_t *slot) {
    miss_t miss = {.request = request, .bank = bank, .kind = kind};
    strata_status_t status = STRATA_E_NOT_READY;
    if (size > self->range_bytes) {
        strata_refused_by_device(request, size);
        return strata_fail(STRATA_E_NO_MEMORY, 0, "no device has %llu bytes", (unsigned long long)size);
    }
    while (status == STRATA_E_NOT_READY) {
        wait_for_gaps(self, &miss);
        uint64_t place = find_place(self, bank, kind, size);
        if (place) status = gather(self, &miss, place, size);
        else if ((status = make_range(self, bank, kind, request->call)) == STRATA_OK) status = STRATA_E_NOT_READY;
    }
    if (status != STRATA_OK) return status;
    *slot = miss.held;
    self->used_bytes -= caching_block(self, miss.held)->size;
    caching_block(self, miss.held)->state = STRATA_RECORD_FREE;
    return STRATA_OK;
}

/* ---- unmapping ---- */

typedef struct batch {
    uint32_t bank, kind, range, count;
    uint64_t bytes;
    strata_record_t *below[BATCH_HANDLES];
} batch_t;

/* Returns the whole handles in a free block, up to `most` bytes rounded up to a handle. */
static strata_extent_t whole_handles(const caching_t *self, const strata_record_t *block, uint64_t most) {
    uint64_t size = self->handle[caching_kind_of(self, block)];
    uint32_t part = strata_runs_part_from(caching_runs(self), block->ptr);
    uint64_t begin = part ? strata_run_part_at(&self->runs, part)->at : end_of(block);
    if (begin >= end_of(block)) return (strata_extent_t){0};
    uint64_t wanted = most < UINT64_MAX - size ? (most + size - 1) / size : UINT64_MAX;
    uint64_t count = strata_min(strata_min((end_of(block) - begin) / size, wanted), BATCH_HANDLES);
    return (strata_extent_t){.ptr = begin, .size = count * size};
}

bool strata_caching_has_idle_handle(caching_t *self, const strata_record_t *block) {
    return whole_handles(self, block, UINT64_MAX).size > 0;
}

/* Frees the handles after the host has waited for the stream. Opens the lock. */
static void free_handles(caching_t *self, const batch_t *batch, strata_call_t *call) {
    caching_bank_t *bank = caching_bank_at(self, batch->bank);
    bank->unmapping[batch->kind]++;
    bool done = strata_uses_wait_for_user(&self->uses, bank->stream, call);
    strata_unlocked_t opened = strata_call_unlock(call);
    strata_vmm_free_chunks(self->vmm, batch->below, batch->count, done);
    strata_call_lock(call, opened);
    strata_runs_end_unmapping(&self->runs, &caching_bank_at(self, batch->bank)->unmapping[batch->kind]);
}

/* The bank and kind that the caller grows. */
typedef struct own {
    uint32_t bank, kind;
} own_t;

/* Returns true if nothing is mapped in a range and no other thread is about to map there. */
static bool may_end(const caching_t *self, const caching_range_t *range, const own_t *own) {
    const caching_bank_t *bank = caching_bank_at(self, range->bank);
    bool mine = own->bank == range->bank && own->kind == range->kind;
    return range->parts == 0 && bank->unmapping[range->kind] == 0 && (mine || !bank->growing[range->kind]);
}

/* Unmaps the whole handles in a free block. Returns the bytes. Opens the lock. */
static uint64_t unmap_block(caching_t *self, uint32_t slot, uint64_t most, const own_t *own, strata_call_t *call) {
    const strata_record_t *block = caching_block(self, slot);
    batch_t batch = {.bank = caching_bank_of(self, block), .kind = caching_kind_of(self, block)};
    const strata_extent_t extent = whole_handles(self, block, most);
    batch.range = range_of(self, batch.bank, batch.kind, block->ptr);
    /* A handle stays if no slot is left to split it off. */
    for (uint64_t size = self->handle[batch.kind]; batch.bytes < extent.size; batch.bytes += size) {
        strata_record_t *below = take_part(self, batch.range, extent.ptr + batch.bytes, 0, slot);
        if (!below) break;
        batch.below[batch.count++] = below;
    }
    if (batch.count == 0) return 0;
    caching_bank_at(self, batch.bank)->busy++;
    free_handles(self, &batch, call);
    /* Another thread may have ended the range, and its node may belong to another range now. */
    bool there = caching_range_at(self, batch.range)->bank == batch.bank;
    if (there && may_end(self, caching_range_at(self, batch.range), own)) end_range(self, batch.range, call);
    caching_bank_at(self, batch.bank)->busy--;
    strata_caching_bank_end_if_empty(self, batch.bank);
    return batch.bytes;
}

static uint64_t unmap_kind(caching_t *self, uint32_t kind, uint64_t most, const own_t *own, strata_call_t *call) {
    strata_caching_walk_t walk = {.kind = kind};
    uint64_t given = 0;
    for (uint32_t slot; given < most && (slot = strata_caching_next_idle(self, &walk, strata_caching_has_idle_handle)) != 0;)
        given += unmap_block(self, slot, most - given, own, call);
    return given;
}

/* Returns a range in which nothing is mapped, of a bank that no thread grows, or 0 if there is none. */
static uint32_t unused_range(const caching_t *self) {
    const own_t nothing = {0};
    for (uint32_t number = 1; number < self->ranges.used; number++) {
        const caching_range_t *range = caching_range_at(self, number);
        if (range->bank && may_end(self, range, &nothing)) return number;
    }
    return 0;
}

static void end_unused_ranges(caching_t *self, strata_call_t *call) {
    for (uint32_t number; (number = unused_range(self)) != 0;) {
        uint32_t bank = caching_range_at(self, number)->bank;
        caching_bank_at(self, bank)->busy++;
        end_range(self, number, call);
        caching_bank_at(self, bank)->busy--;
        strata_caching_bank_end_if_empty(self, bank);
    }
}

uint64_t strata_caching_unmap_idle(caching_t *self, uint32_t bank, uint32_t kind, uint64_t most, strata_call_t *call) {
    const own_t own = {.bank = bank, .kind = kind};
    uint64_t given = 0, now;
    if (self->uses.captures > 0 || strata_chunks_are_pinned(&self->chunks)) return 0;
    do {
        now = unmap_kind(self, STRATA_CACHING_LARGE, most - given, &own, call);
        now += unmap_kind(self, STRATA_CACHING_SMALL, most - strata_min(most, given + now), &own, call);
        given += now;
    } while (now > 0 && given < most);
    end_unused_ranges(self, call);
    return given;
}

/* ---- check ---- */

static strata_status_t corrupt(const char *what, uint64_t address) {
    return strata_fail(STRATA_E_CORRUPT, 0, "caching_vmm: %s (0x%llx)", what, (unsigned long long)address);
}

/* Checks that each handle of a range has the range's bank and kind. */
static strata_status_t validate_range(const caching_t *self, const caching_range_t *range) {
    uint32_t count = 0;
    for (uint32_t n = strata_runs_part_from(caching_runs(self), range->base); n; n = strata_runs_next_part(&self->runs, n)) {
        const caching_segment_t *part = caching_segment_at(self, n);
        if (part->part.at >= end_of_range(range)) break;
        if (part->bank != range->bank || part->kind != range->kind)
            return corrupt("a handle belongs to another bank", part->part.at);
        if (part->part.size != self->handle[range->kind] || (part->part.at - range->base) % part->part.size != 0)
            return corrupt("a handle is not a whole handle of its range", part->part.at);
        count++;
    }
    return count == range->parts ? STRATA_OK : corrupt("a range's count of handles is wrong", range->base);
}

strata_status_t strata_caching_validate_ranges(const caching_t *self) {
    uint64_t parts = 0;
    strata_status_t status = strata_runs_validate(&self->runs);
    for (uint32_t number = 1; number < self->ranges.used && status == STRATA_OK; number++) {
        const caching_range_t *range = caching_range_at(self, number);
        if (range->bank == 0) continue;
        parts += range->parts;
        status = validate_range(self, range);
    }
    if (status != STRATA_OK) return status;
    return parts == self->runs.parts.count ? STRATA_OK : corrupt("handles are outside all ranges", 0);
}
