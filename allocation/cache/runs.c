/* Adds, joins and removes the parts of runs. */
#include "allocation/cache/runs.h"

#include <string.h>

#include "platform/arithmetic.h"

static strata_slab_t *slab_of(const strata_runs_t *self) { return &self->chunks->base.stack->slab; }

static strata_chunk_t *chunk_at(const strata_runs_t *self, uint32_t number) { return strata_chunk_at(self->chunks, number); }

static strata_record_t *block_at(const strata_runs_t *self, uint32_t slot) { return strata_slab_record(slab_of(self), slot); }

void strata_runs_init(strata_runs_t *self, strata_chunks_t *chunks) {
    self->chunks = chunks;
    chunks->sorted = true;
    chunks->one_number = STRATA_RUNS_NUMBER;
    strata_order_init(&self->parts, &chunks->nodes, offsetof(strata_run_part_t, link));
}

/* ---- finding ---- */

uint32_t strata_runs_find_part(strata_runs_t *self, uint64_t address) {
    const strata_order_key_t key = {address, UINT64_MAX, 0};
    uint32_t part = strata_order_before(&self->parts, &key);
    return part && address - strata_run_part_at(self, part)->at < strata_run_part_at(self, part)->size ? part : 0;
}

/* ---- adding ---- */

static void link_blocks(strata_runs_t *self, uint32_t low, uint32_t high) {
    if (low) block_at(self, low)->next = high;
    if (high) block_at(self, high)->prev = low;
}

/* Makes the zero-byte record at an end of a run. Returns 0 if no slot is left. Its state is DEFERRED, so a
 * stale slot number is not taken for a free block. */
static uint32_t make_bound(strata_runs_t *self, uint64_t address) {
    uint32_t slot = strata_block_list_begin(slab_of(self), STRATA_RUNS_NUMBER, address, 0);
    if (slot) block_at(self, slot)->state = STRATA_RECORD_DEFERRED;
    return slot;
}

/* Makes both bounds of a run, or neither. */
static bool make_bounds(strata_runs_t *self, uint64_t low, uint64_t high, uint32_t bounds[2]) {
    bounds[0] = make_bound(self, low);
    bounds[1] = bounds[0] ? make_bound(self, high) : 0;
    if (bounds[0] && !bounds[1]) strata_slab_release(slab_of(self), bounds[0]);
    return bounds[1] != 0;
}

static void append_part(strata_runs_t *self, uint32_t run, uint32_t part, uint32_t last) {
    strata_chunk_t *chunk = chunk_at(self, run);
    chunk_at(self, chunk->last_part ? chunk->last_part : run)->part = part;
    chunk->last_part = last ? last : part;
}

/* Joins run `high` to run `low`, which ends where `high` begins. */
static void join_runs(strata_runs_t *self, uint32_t low, uint32_t high) {
    strata_chunk_t *into = chunk_at(self, low), *from = chunk_at(self, high);
    uint32_t end = into->last, begin = from->first;
    strata_chunks_unlist(self->chunks, high);
    link_blocks(self, block_at(self, end)->prev, block_at(self, begin)->next);
    strata_slab_release(slab_of(self), end);
    strata_slab_release(slab_of(self), begin);
    into->last = from->last;
    into->size += from->size;
    append_part(self, low, high, from->last_part);
}

uint32_t strata_runs_add(strata_runs_t *self, strata_record_t *below) {
    uint64_t size = strata_round_down(below->size, self->chunks->unit);
    uint32_t before = below->ptr ? strata_runs_find(self, below->ptr - 1) : 0, after = strata_runs_find(self, below->ptr + size);
    uint32_t part = strata_nodes_acquire(&self->chunks->nodes), slot = 0, bounds[2] = {0};
    if (part) slot = strata_block_list_begin(slab_of(self), STRATA_RUNS_NUMBER, below->ptr, size);
    if (slot == 0 || (!before && !make_bounds(self, below->ptr, below->ptr + size, bounds))) {
        if (slot) strata_slab_release(slab_of(self), slot);
        if (part) strata_nodes_release(&self->chunks->nodes, part);
        return 0;
    }
    strata_run_part_t *made = memset(strata_run_part_at(self, part), 0, self->chunks->nodes.node_size);
    made->at = below->ptr;
    made->size = size;
    made->chunk = (strata_chunk_t){.first = bounds[0], .last = bounds[1], .base = below->ptr, .size = size, .below = below};
    strata_order_add(&self->parts, part, &(strata_order_key_t){below->ptr, part, 0});
    strata_chunks_count_in(self->chunks, below, size);
    if (before) {
        strata_chunk_t *run = chunk_at(self, before);
        link_blocks(self, strata_runs_last_block(self, before), slot);
        link_blocks(self, slot, run->last);
        block_at(self, run->last)->ptr += size;
        append_part(self, before, part, 0);
        run->size += size;
    } else {
        link_blocks(self, bounds[0], slot);
        link_blocks(self, slot, bounds[1]);
        strata_chunks_list(self->chunks, part);
    }
    if (after) join_runs(self, before ? before : part, after);
    return slot;
}

/* ---- removing ---- */

/* Makes a run of the parts of `run` from `rest` on, between the bounds `first` and `last`. */
static void begin_run(strata_runs_t *self, uint32_t run, uint32_t rest, uint32_t first, uint32_t last) {
    const strata_chunk_t *old = chunk_at(self, run);
    strata_chunk_t *chunk = chunk_at(self, rest);
    uint32_t last_part = old->last_part == rest ? 0 : old->last_part;
    uint64_t end = old->base + old->size, base = strata_run_part_at(self, rest)->at;
    chunk->first = first;
    chunk->last = last;
    chunk->base = block_at(self, first)->ptr = base;
    chunk->size = end - base;
    chunk->last_part = last_part;
}

/* Ends the run before the part. The parts after it, if any, become a run of their own. Then `bounds` are the
 * records between the two runs. */
static void split_off(strata_runs_t *self, uint32_t run, uint32_t part, uint32_t block, const uint32_t bounds[2]) {
    strata_chunk_t *chunk = chunk_at(self, run);
    uint64_t at = strata_run_part_at(self, part)->at;
    const strata_order_key_t key = {at, 0, 0};
    uint32_t before = strata_order_before(&self->parts, &key), rest = chunk_at(self, part)->part;
    uint32_t left = block_at(self, block)->prev, right = block_at(self, block)->next;
    if (rest) {
        link_blocks(self, bounds[1], right);
        begin_run(self, run, rest, bounds[1], chunk->last);
        strata_chunks_list(self->chunks, rest);
        chunk->last = bounds[0];
    }
    link_blocks(self, left, chunk->last);
    block_at(self, chunk->last)->ptr = at;
    chunk_at(self, before)->part = 0;
    chunk->last_part = before == run ? 0 : before;
    chunk->size = at - chunk->base;
}

/* Removes the first part of a run. The run then begins with its next part, or ends if there is none. */
static void drop_first(strata_runs_t *self, uint32_t run, uint32_t block) {
    const strata_chunk_t *chunk = chunk_at(self, run);
    strata_chunks_unlist(self->chunks, run);
    if (chunk->part) {
        link_blocks(self, chunk->first, block_at(self, block)->next);
        begin_run(self, run, chunk->part, chunk->first, chunk->last);
        strata_chunks_list(self->chunks, chunk->part);
    } else {
        strata_slab_release(slab_of(self), chunk->first);
        strata_slab_release(slab_of(self), chunk->last);
    }
}

strata_record_t *strata_runs_remove(strata_runs_t *self, uint32_t part, uint32_t block, uint32_t near) {
    const strata_run_part_t *gone = strata_run_part_at(self, part);
    const strata_extent_t place = {.ptr = gone->at, .size = gone->size, .slot = near};
    strata_record_t *below = gone->chunk.below;
    uint32_t run = strata_runs_find(self, gone->at), bounds[2] = {0};
    uint32_t free = block ? 0 : strata_chunks_free_at(self->chunks, &place);
    bool cuts = run != part && gone->chunk.part;
    if (!block && !free) return NULL;
    if (cuts && !make_bounds(self, gone->at, gone->at + gone->size, bounds)) return NULL;
    if (free && (block = strata_chunks_carve(self->chunks, free, &place)) == 0) {
        for (int i = 0; cuts && i < 2; i++) strata_slab_release(slab_of(self), bounds[i]);
        return NULL;
    }
    if (run == part) drop_first(self, run, block);
    else split_off(self, run, part, block, bounds);
    strata_slab_release(slab_of(self), block);
    strata_order_remove(&self->parts, part);
    strata_chunks_count_out(self->chunks, below, gone->size);
    strata_nodes_release(&self->chunks->nodes, part);
    return below;
}

/* ---- check ---- */

static strata_status_t corrupt(const strata_runs_t *self, const char *what, uint64_t address) {
    return strata_fail(STRATA_E_CORRUPT, 0, "%s: %s (0x%llx)", self->chunks->base.type->name, what, (unsigned long long)address);
}

/* Checks that the parts of the runs are exactly those in the order, and adjacent within a run. Runs must not
 * touch. */
strata_status_t strata_runs_validate(const strata_runs_t *self) {
    uint32_t next = self->parts.first[0], count = 0;
    uint64_t end = 0;
    STRATA_EACH_CHUNK(self->chunks, run) {
        if (count && chunk_at(self, run)->base <= end) return corrupt(self, "two runs touch", end);
        for (uint32_t part = run; part; part = chunk_at(self, part)->part, count++) {
            const strata_run_part_t *p = strata_run_part_at(self, part);
            if (part != next) return corrupt(self, "a part does not follow the one before it", p->at);
            if (p->at != p->chunk.below->ptr || p->size != strata_round_down(p->chunk.below->size, self->chunks->unit))
                return corrupt(self, "a part is not at the address of its memory", p->at);
            end = p->at + p->size;
            next = strata_runs_next_part(self, part);
        }
    }
    if (next != 0 || count != self->parts.count) return corrupt(self, "the ordered parts do not match the runs", end);
    return strata_order_validate(&self->parts);
}
