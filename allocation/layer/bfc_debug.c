/* What a person wants to know of bfc: numbers of allocations and actions, the bytes in use lately, and what is said in the report of
 * a request that failed. */
#include "allocation/layer/bfc.h"
#include "platform/host_memory.h"

/* ---- notes ---- */

strata_status_t strata_bfc_debug_init(bfc_t *self) {
    if (!bfc_options_of(self)->memory_debug) return STRATA_OK;
    strata_status_t status = strata_nodes_init(&self->notes, sizeof(bfc_note_t), STRATA_SLAB_SLOTS);
    if (status != STRATA_OK) return status;
    self->history = strata_host_new(STRATA_BFC_HISTORY, sizeof *self->history);
    return self->history ? STRATA_OK : STRATA_E_HOST_MEMORY;
}

void strata_bfc_debug_destroy(bfc_t *self) {
    strata_host_delete(self->history);
    strata_nodes_destroy(&self->notes);
}

void strata_bfc_note(bfc_t *self, const strata_record_t *block, bool allocated) {
    bfc_note_t *note = strata_node(&self->notes, strata_slab_slot(bfc_slab(self), block));
    note->action = ++self->actions;
    if (allocated) note->id = self->ids;
    self->history[self->actions % STRATA_BFC_HISTORY] = self->used_bytes;
}

void strata_bfc_tell(strata_layer_t *base, const strata_telling_t *telling) {
    (void)base;
    (void)telling;
}
