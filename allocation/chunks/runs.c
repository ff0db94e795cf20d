/* Runs: how parts come, join and go. */
#include "allocation/chunks/runs.h"

#include <string.h>

#include "platform/arithmetic.h"

static strata_slab_t *slab_of(const strata_runs_t *self) { return &self->chunks->base.stack->slab; }

static strata_chunk_t *chunk_at(const strata_runs_t *self, uint32_t number) { return strata_chunk_at(self->chunks, number); }

static strata_record_t *block_at(const strata_runs_t *self, uint32_t slot) { return strata_slab_record(slab_of(self), slot); }

static uint64_t end_of(const strata_runs_t *self, uint32_t run) { return chunk_at(self, run)->base + chunk_at(self, run)->size; }

void strata_runs_init(strata_runs_t *self, strata_chunks_t *chunks) {
    self->chunks = chunks;
    chunks->sorted = true;
    chunks->one_number = STRATA_RUNS_NUMBER;
    strata_order_init(&self->parts, &chunks->nodes, offsetof(strata_run_part_t, link));
}

/* ---- finding ---- */

uint32_t strata_runs_find(strata_runs_t *self, uint64_t address) {
    const strata_order_key_t key = {address, UINT64_MAX, 0};
    uint32_t run = strata_order_before(&self->chunks->by_address, &key);
    return run && address < end_of(self, run) ? run : 0;
}

uint32_t strata_runs_find_part(strata_runs_t *self, uint64_t address) {
    const strata_order_key_t key = {address, UINT64_MAX, 0};
    uint32_t part = strata_order_before(&self->parts, &key);
    return part && address - strata_run_part_at(self, part)->at < strata_run_part_at(self, part)->size ? part : 0;
}

uint32_t strata_runs_part_from(strata_runs_t *self, uint64_t address) {
    const strata_order_key_t key = {address, 0, 0};
    return strata_order_from(&self->parts, &key);
}

/* ---- coming ---- */

static void link_blocks(strata_runs_t *self, uint32_t low, uint32_t high) {
    if (low) block_at(self, low)->next = high;
    if (high) block_at(self, high)->prev = low;
}

/* The record of no bytes that ends a run at an address; 0: no slot is left. */
static uint32_t make_end(strata_runs_t *self, uint64_t address) {
    return strata_pieces_begin(slab_of(self), STRATA_RUNS_NUMBER, address, 0);
}

static void append_part(strata_runs_t *self, uint32_t run, uint32_t part, uint32_t last) {
    strata_chunk_t *chunk = chunk_at(self, run);
    chunk_at(self, chunk->last_part ? chunk->last_part : run)->part = part;
    chunk->last_part = last ? last : part;
}

/* The part, of one block, follows the run. */
static void extend(strata_runs_t *self, uint32_t run, uint32_t part, uint32_t slot, uint64_t size) {
    strata_chunk_t *chunk = chunk_at(self, run);
    link_blocks(self, strata_runs_last_block(self, run), slot);
    link_blocks(self, slot, chunk->last);
    block_at(self, chunk->last)->ptr += size;
    append_part(self, run, part, 0);
    chunk->size += size;
}

/* `high` begins where `low` ends, and is part of it from now on. */
static void join(strata_runs_t *self, uint32_t low, uint32_t high) {
    strata_chunk_t *into = chunk_at(self, low), *from = chunk_at(self, high);
    uint32_t end = into->last;
    strata_chunks_unlist(self->chunks, high);
    link_blocks(self, strata_runs_last_block(self, low), from->first);
    strata_slab_give(slab_of(self), end);
    into->last = from->last;
    into->size += from->size;
    append_part(self, low, high, from->last_part);
}

uint32_t strata_runs_publish(strata_runs_t *self, strata_record_t *below) {
    uint64_t size = strata_round_down(below->size, self->chunks->unit);
    uint32_t before = below->ptr ? strata_runs_find(self, below->ptr - 1) : 0, after = strata_runs_find(self, below->ptr + size);
    uint32_t part = strata_nodes_take(&self->chunks->nodes), slot = 0, end = 0;
    if (part) slot = strata_pieces_begin(slab_of(self), STRATA_RUNS_NUMBER, below->ptr, size);
    if (slot && !before) end = make_end(self, below->ptr + size);
    if (slot == 0 || (!before && end == 0)) {
        if (slot) strata_slab_give(slab_of(self), slot);
        if (part) strata_nodes_give(&self->chunks->nodes, part);
        return 0;
    }
    strata_run_part_t *made = memset(strata_run_part_at(self, part), 0, self->chunks->nodes.node_size);
    made->at = below->ptr;
    made->size = size;
    made->chunk = (strata_chunk_t){.first = slot, .last = end, .base = below->ptr, .size = size, .below = below};
    strata_order_add(&self->parts, part, &(strata_order_key_t){below->ptr, part, 0});
    strata_chunks_count_in(self->chunks, below, size);
    if (before) {
        extend(self, before, part, slot, size);
    } else {
        link_blocks(self, slot, end);
        strata_chunks_list(self->chunks, part);
    }
    if (after) join(self, before ? before : part, after);
    return slot;
}

/* ---- going ---- */

/* The run begins with its next part. */
static uint32_t drop_first(strata_runs_t *self, uint32_t run, uint32_t block) {
    const strata_chunk_t *old = chunk_at(self, run);
    uint32_t rest = old->part;
    strata_chunk_t *chunk = chunk_at(self, rest);
    chunk->first = block_at(self, block)->next;
    chunk->last = old->last;
    chunk->base = strata_run_part_at(self, rest)->at;
    chunk->size = old->base + old->size - chunk->base;
    chunk->last_part = old->last_part == rest ? 0 : old->last_part;
    block_at(self, chunk->first)->prev = 0;
    return rest;
}

/* The run ends before the part; what follows that is a run of its own, if there is anything. `end` closes the first where both
 * stay. */
static void cut_off(strata_runs_t *self, uint32_t run, uint32_t part, uint32_t block, uint32_t end) {
    strata_chunk_t *chunk = chunk_at(self, run);
    uint64_t at = strata_run_part_at(self, part)->at;
    const strata_order_key_t key = {at, 0, 0};
    uint32_t before = strata_order_before(&self->parts, &key), rest = chunk_at(self, part)->part;
    uint32_t left = block_at(self, block)->prev, right = block_at(self, block)->next;
    if (rest) {
        strata_chunk_t *other = chunk_at(self, rest);
        other->first = right;
        other->last = chunk->last;
        other->base = strata_run_part_at(self, rest)->at;
        other->size = chunk->base + chunk->size - other->base;
        other->last_part = chunk->last_part == rest ? 0 : chunk->last_part;
        block_at(self, right)->prev = 0;
        chunk->last = end;
        strata_chunks_list(self->chunks, rest);
    }
    link_blocks(self, left, chunk->last);
    block_at(self, chunk->last)->ptr = at;
    chunk_at(self, before)->part = 0;
    chunk->last_part = before == run ? 0 : before;
    chunk->size = at - chunk->base;
}

bool strata_runs_take(strata_runs_t *self, uint32_t part, uint32_t block) {
    strata_run_part_t *gone = strata_run_part_at(self, part);
    uint32_t run = strata_runs_find(self, gone->at), end = 0;
    bool cuts = run != part && gone->chunk.part;
    if (cuts && (end = make_end(self, gone->at)) == 0) return false;
    if (run != part) {
        cut_off(self, run, part, block, end);
    } else if (gone->chunk.part) {
        strata_chunks_unlist(self->chunks, run);
        strata_chunks_list(self->chunks, drop_first(self, run, block));
    } else {
        strata_slab_give(slab_of(self), gone->chunk.last);
        strata_chunks_unlist(self->chunks, run);
    }
    strata_slab_give(slab_of(self), block);
    strata_order_remove(&self->parts, part);
    strata_chunks_count_out(self->chunks, gone->chunk.below, gone->size);
    strata_nodes_give(&self->chunks->nodes, part);
    return true;
}

/* ---- check ---- */

static strata_status_t corrupt(const strata_runs_t *self, const char *what, uint64_t address) {
    return strata_fail(STRATA_E_CORRUPT, 0, "%s: %s (0x%llx)", self->chunks->base.type->name, what, (unsigned long long)address);
}

/* Every part of a run stands in the order of all, one after the other; runs do not touch. */
strata_status_t strata_runs_validate(const strata_runs_t *self) {
    uint32_t next = self->parts.first[0], count = 0;
    uint64_t end = 0;
    STRATA_EACH_CHUNK(self->chunks, run) {
        if (count && chunk_at(self, run)->base <= end) return corrupt(self, "two runs touch", end);
        for (uint32_t part = run; part; part = chunk_at(self, part)->part, count++) {
            const strata_run_part_t *p = strata_run_part_at(self, part);
            if (part != next) return corrupt(self, "a part does not follow the one before it", p->at);
            if (p->at != p->chunk.below->ptr || p->size != strata_round_down(p->chunk.below->size, self->chunks->unit))
                return corrupt(self, "a part is not where its memory is", p->at);
            end = p->at + p->size;
            next = strata_runs_next_part(self, part);
        }
    }
    if (next != 0 || count != self->parts.count) return corrupt(self, "the order has other parts than the runs", end);
    return strata_order_validate(&self->parts);
}
