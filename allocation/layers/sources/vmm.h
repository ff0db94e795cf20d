/* vmm, the source of physical handles that are mapped at addresses of one's choice, as the cache above it knows it.
 *
 * A cache that asks for memory at an address (`at` of the request) keeps ranges of addresses of its own, and moves what it holds.
 * Everything else asks vmm as it asks any source. */
#ifndef STRATA_ALLOCATION_LAYER_VMM_H
#define STRATA_ALLOCATION_LAYER_VMM_H

#include "allocation/domain/layer.h"

extern const strata_layer_type_t strata_vmm_type;

/* The vmm that serves the chunks of a cache whose blocks lie across handles, whatever decorators stand between them. E_STRATEGY:
 * there is none, or it wants each block in one handle. */
strata_status_t strata_vmm_find(const strata_layer_t *cache, strata_layer_t **vmm);
/* Whether a chunk can be moved: it is a handle of vmm's, no decorator has changed it, and nobody outside relies on it; and whether
 * it can go back, since it is not registered. Any lock may be held. */
bool strata_vmm_may_move(const strata_layer_t *vmm, const strata_record_t *chunk);
bool strata_vmm_may_leave(const strata_layer_t *vmm, const strata_record_t *chunk);
/* What sizes and addresses are multiples of. */
uint64_t strata_vmm_granularity(const strata_layer_t *vmm);

/* ---- no lock is held; the chunk is the caller's alone ---- */

/* A range of addresses, and its end once nothing is mapped there. E_NO_MEMORY: the device has no more addresses. */
strata_status_t strata_vmm_reserve(strata_layer_t *vmm, uint64_t size, uint64_t *base);
void strata_vmm_unreserve(strata_layer_t *vmm, uint64_t base, uint64_t size);

/* The chunk's handle is mapped at `to`, which is the chunk's address from now on. Work that was given to the device before may still
 * use the old address: it stays mapped, until strata_vmm_unmap(). A failure changes nothing. */
strata_status_t strata_vmm_move(strata_layer_t *vmm, strata_record_t *chunk, uint64_t to);
/* Ends a mapping that a move left. No work uses it. False: the device refuses, and it is still there. */
bool strata_vmm_unmap(strata_layer_t *vmm, uint64_t address, uint64_t size);
/* Such a mapping that nobody looks after any more: vmm ends it. */
void strata_vmm_leave(strata_layer_t *vmm, uint64_t address, uint64_t size);

/* The chunk's handle is mapped at `to` as well; *alias names that mapping. A failure changes nothing. Whoever has the chunk ends its
 * aliases before it goes back. */
strata_status_t strata_vmm_alias(strata_layer_t *vmm, const strata_record_t *chunk, uint64_t to, uint32_t *alias);
/* Whether an alias may end: nobody has registered what lies there. Any lock may be held. */
bool strata_vmm_may_end_alias(strata_layer_t *vmm, uint32_t alias);
/* No work uses it. Nobody has the alias any more. False: the device refuses; vmm offers it again, and keeps it until then. */
bool strata_vmm_end_alias(strata_layer_t *vmm, uint32_t alias);

/* Whether vmm still has a mapping at an address, because the device refused to end it. */
bool strata_vmm_keeps(strata_layer_t *vmm, uint64_t address);

/* Gives chunks back, in this order. `done` says that all work that may use them is done, so that no free need wait. */
void strata_vmm_give_back(strata_layer_t *vmm, strata_record_t *const *chunks, uint32_t count, bool done);

#endif
