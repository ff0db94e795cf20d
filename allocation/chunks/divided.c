/* A block that the layer right above divides itself. */
#include "allocation/chunks/chunks.h"
#include "allocation/stack/planning.h"

bool strata_chunks_undivide(strata_chunks_t *self) {
    strata_layer_t *divider = self->divider;
    if (divider) divider->type->planning->let_go(divider);
    return divider != NULL;
}

void strata_chunks_replace(strata_chunks_t *self, uint32_t slot, uint32_t by) {
    strata_slab_t *slab = &self->base.stack->slab;
    const strata_record_t *old = strata_slab_record(slab, slot);
    strata_record_t *fresh = strata_slab_record(slab, by);
    fresh->ptr = old->ptr;
    fresh->size = old->size;
    fresh->prev = old->prev;
    fresh->next = old->next;
    fresh->chunk = old->chunk;
    fresh->pool = old->pool;
    /* Of the sentinel they are never read. */
    strata_slab_record(slab, old->prev)->next = by;
    strata_slab_record(slab, old->next)->prev = by;
    if (self->one_number) return;
    strata_chunk_t *chunk = strata_chunk_at(self, old->chunk);
    if (chunk->first == slot) chunk->first = by;
    if (chunk->last == slot) chunk->last = by;
}
