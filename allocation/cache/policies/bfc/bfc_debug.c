/* Debugging data of bfc in the peer's terms: numbers of allocations and actions, recent bytes in use, and
 * blocks by bin, row and drawing. */
#include <stdio.h>
#include <string.h>

#include "allocation/cache/policies/bfc/bfc_debug.h"
#include "allocation/options/option.h"
#include "platform/host/host_memory.h"

/* ---- notes ---- */

strata_status_t strata_bfc_debug_init(bfc_t *self) {
    if (!bfc_options_of(self)->memory_debug) return STRATA_OK;
    strata_status_t status = strata_growing_reserve(&self->notes, bfc_slab(self)->room * sizeof(bfc_note_t),
                                                    STRATA_SLAB_SLOTS * sizeof(bfc_note_t));
    if (status != STRATA_OK) return status;
    self->history = strata_host_new(STRATA_BFC_HISTORY, sizeof *self->history);
    return self->history ? STRATA_OK : STRATA_E_HOST_MEMORY;
}

void strata_bfc_debug_destroy(bfc_t *self) {
    strata_host_delete(self->history);
    strata_growing_release(&self->notes);
}

/* The notes initially have the length of the slab, and grow when it does. If the host has room only for the
 * slab, new blocks have no note. */
void strata_bfc_note(bfc_t *self, const strata_record_t *block, bool allocated) {
    uint32_t slot = strata_slab_slot(bfc_slab(self), block);
    bfc_note_t *note = bfc_note_of(self, slot);
    self->actions++;
    if (2 * (uint64_t)slot * sizeof *note >= strata_growing_usable(&self->notes)) strata_growing_mark(&self->notes, false);
    if (note) note->action = self->actions;
    if (note && allocated) note->id = self->ids;
    self->history[self->actions % STRATA_BFC_HISTORY] = self->used_bytes;
}

/* ---- the drawing: each character is a hundredth of the regions, one after the other ---- */

/* Draws the bytes [from, to) of `total` as the characters that they touch. */
static void draw(char *drawn, uint64_t from, uint64_t to, uint64_t total, char with) {
    if (from == to) return;
    double scale = (double)STRATA_BFC_DRAWN / (double)total;
    size_t first = (size_t)((double)from * scale), last = (size_t)((double)(to - 1) * scale);
    for (size_t at = first; at <= last && at < STRATA_BFC_DRAWN; at++) drawn[at] = with;
}

void strata_bfc_draw(const bfc_t *self, char drawn[STRATA_BFC_DRAWN + 1]) {
    memset(drawn, '_', STRATA_BFC_DRAWN);
    drawn[STRATA_BFC_DRAWN] = '\0';
    uint64_t after = 0;
    STRATA_EACH_CHUNK(&self->chunks, node) {
        const strata_chunk_t *region = strata_chunk_at(&self->chunks, node);
        for (uint32_t slot = region->first; slot; slot = bfc_block(self, slot)->next) {
            const strata_record_t *block = bfc_block(self, slot);
            if (block->state == STRATA_RECORD_FREE) continue;
            uint64_t at = after + (block->ptr - region->base), asked = at + strata_record_requested(block);
            draw(drawn, asked, at + block->size, self->chunks.bytes, 'x');
            draw(drawn, at, asked, self->chunks.bytes, '*');
        }
        after += region->size;
    }
    if (after == 0) snprintf(drawn, STRATA_BFC_DRAWN + 1, "<allocator contains no memory>");
}

/* ---- bins ---- */

void strata_bfc_sum_bins(const bfc_t *self, bfc_bin_t bins[STRATA_BFC_BINS]) {
    memset(bins, 0, STRATA_BFC_BINS * sizeof *bins);
    STRATA_EACH_CHUNK(&self->chunks, node) {
        STRATA_EACH_BLOCK(&self->chunks, node, slot) {
            const strata_record_t *block = bfc_block(self, slot);
            bfc_bin_t *bin = &bins[bfc_bin_of(block->size)];
            bool free_block = block->state == STRATA_RECORD_FREE;
            bin->chunks++;
            bin->bytes += block->size;
            bin->chunks_in_use += !free_block;
            bin->bytes_in_use += free_block ? 0 : block->size;
            bin->requested_in_use += free_block ? 0 : strata_record_requested(block);
        }
    }
}

double strata_bfc_fragmentation(const bfc_t *self) {
    uint64_t idle = bfc_idle(self), largest = strata_tree_largest(&self->idle, bfc_slab(self));
    return idle ? (double)(idle - largest) / (double)idle : 0;
}

void strata_bfc_read_row(const bfc_t *self, const strata_report_sink_t *sink, uint32_t slot, bfc_row_t *row) {
    const strata_record_t *block = bfc_block(self, slot);
    const bfc_note_t *note = bfc_note_of(self, slot);
    bool free_block = block->state == STRATA_RECORD_FREE;
    *row = (bfc_row_t){.address = block->ptr, .size = block->size, .in_use = !free_block, .operator_name = ""};
    if (note) row->action = note->action;
    if (free_block) {
        row->freed_at = bfc_freed_at(self, block);
        row->bin = (int)bfc_bin_of(block->size);
        return;
    }
    row->bin = -1;
    row->requested = strata_record_requested(block);
    if (note) row->id = note->id;
    if (block->state == STRATA_RECORD_LIVE) row->operator_name = sink->find_note(sink, block, &row->step);
}
