/* Aliases: secondary mappings of a handle that stays at its address. */
#include "allocation/layers/sources/vmm_state.h"

/* Returns a node that is in no order, or 0 on E_LIMIT. */
static uint32_t new_piece(vmm_layer_t *self, const vmm_piece_t *piece) {
    strata_vmm_lock(self);
    uint32_t number = strata_nodes_acquire(&self->pieces);
    if (number) *strata_vmm_piece(self, number) = *piece;
    strata_vmm_unlock(self);
    if (number == 0) strata_fail(STRATA_E_LIMIT, 0, "vmm holds %u handles and aliases, the maximum", self->pieces.capacity - 1);
    return number;
}

strata_status_t strata_vmm_alias(strata_layer_t *base, const strata_record_t *chunk, uint64_t to, uint32_t *alias) {
    vmm_layer_t *self = (vmm_layer_t *)base;
    strata_domain_t *domain = base->domain;
    vmm_piece_t *original = strata_vmm_piece(self, chunk->user);
    *alias = new_piece(
        self, &(vmm_piece_t){.address = to, .size = original->size, .number = original->number, .done = true, .of = chunk->user});
    if (*alias == 0) return STRATA_E_LIMIT;
    atomic_fetch_add(&original->aliases, 1);
    vmm_piece_t *piece = strata_vmm_piece(self, *alias);
    strata_status_t status = domain->directory ? strata_directory_cover(domain->directory, to, piece->size) : STRATA_OK;
    if (status == STRATA_OK) status = strata_device_map(strata_vmm_device(self), to, piece->size, original->physical);
    if (status == STRATA_OK) {
        /* Peers get access too. An alias is in the order, so peers that are added later get access to it like to any
         * piece (vmm_share.c). */
        piece->mapped = true;
        status = strata_vmm_give_access(self, to, piece->size, &piece->peers);
    }
    if (status == STRATA_OK) status = strata_vmm_lock_complete(self, to, piece->size, &piece->peers);
    if (status == STRATA_OK) {
        strata_vmm_list(self, *alias);
        strata_vmm_unlock(self);
        atomic_fetch_add(&self->aliases, 1);
        return STRATA_OK;
    }
    strata_error_t reason = *strata_last_error();
    atomic_fetch_add(&self->aliases, 1);
    (void)strata_vmm_end_alias(base, *alias);
    return strata_fail_again(&reason);
}

bool strata_vmm_may_end_alias(strata_layer_t *base, uint32_t alias) {
    return atomic_load(&strata_vmm_piece((vmm_layer_t *)base, alias)->registered) == 0;
}

bool strata_vmm_end_alias(strata_layer_t *base, uint32_t alias) {
    vmm_layer_t *self = (vmm_layer_t *)base;
    vmm_piece_t *piece = strata_vmm_piece(self, alias);
    bool gone = strata_vmm_give_back(self, alias);
    strata_vmm_lock(self);
    if (gone) {
        strata_nodes_release(&self->pieces, alias);
    } else {
        piece->next = self->first_refused;
        self->first_refused = alias;
    }
    strata_vmm_unlock(self);
    atomic_fetch_sub(&self->aliases, 1);
    return gone;
}
