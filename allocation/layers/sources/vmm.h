/* vmm, the source of physical handles that are mapped at chosen addresses, as seen by the cache above it.
 *
 * A cache that requests memory at an address (`at` of the request) has address ranges of its own, and moves
 * its handles. Any other layer uses vmm like any source. */
#ifndef STRATA_ALLOCATION_LAYER_VMM_H
#define STRATA_ALLOCATION_LAYER_VMM_H

#include "allocation/domain/layer.h"

extern const strata_layer_type_t strata_vmm_type;

/* Finds the vmm that serves the chunks of a cache with blocks across handles, through any decorators in
 * between. E_STRATEGY if there is none, or if it requires each block to be in one handle. */
strata_status_t strata_vmm_find(const strata_layer_t *cache, strata_layer_t **vmm);
/* `may_move` returns whether a chunk can be moved: it must be a handle of vmm, unchanged by decorators, and
 * not exported or registered. `may_free` returns whether it can be freed: it must not be registered. Any
 * lock may be held. */
bool strata_vmm_may_move(const strata_layer_t *vmm, const strata_record_t *chunk);
bool strata_vmm_may_free(const strata_layer_t *vmm, const strata_record_t *chunk);
/* Returns the unit of sizes and addresses in bytes. */
uint64_t strata_vmm_granularity(const strata_layer_t *vmm);

/* ---- no lock is held; the caller owns the chunk exclusively ---- */

/* Reserves a range of addresses, or releases it once nothing is mapped there. E_NO_MEMORY if the device has
 * no more addresses. */
strata_status_t strata_vmm_reserve(strata_layer_t *vmm, uint64_t size, uint64_t *base);
void strata_vmm_unreserve(strata_layer_t *vmm, uint64_t base, uint64_t size);

/* Maps the chunk's handle at `to`, which becomes the chunk's address. Work submitted earlier may still use
 * the old address, which stays mapped until strata_vmm_unmap(). A failure changes nothing. */
strata_status_t strata_vmm_move(strata_layer_t *vmm, strata_record_t *chunk, uint64_t to);
/* Ends a mapping that a move left and that no work uses. Returns false if the device refuses, and the
 * mapping still exists. */
bool strata_vmm_unmap(strata_layer_t *vmm, uint64_t address, uint64_t size);
/* Hands such a mapping to vmm, which ends it later. */
void strata_vmm_defer_unmap(strata_layer_t *vmm, uint64_t address, uint64_t size);

/* Maps the chunk's handle at `to` as well; *alias identifies that mapping. A failure changes nothing. The
 * owner of the chunk ends its aliases before it frees the chunk. */
strata_status_t strata_vmm_alias(strata_layer_t *vmm, const strata_record_t *chunk, uint64_t to, uint32_t *alias);
/* Returns whether an alias may end: no block in it is registered. Any lock may be held. */
bool strata_vmm_may_end_alias(strata_layer_t *vmm, uint32_t alias);
/* Ends an alias that no work uses. The caller no longer owns it. Returns false if the device refuses; vmm
 * then keeps the mapping and offers it again. */
bool strata_vmm_end_alias(strata_layer_t *vmm, uint32_t alias);

/* Returns whether vmm still has a mapping at an address, because the device refused to end it. */
bool strata_vmm_still_maps(strata_layer_t *vmm, uint64_t address);

/* Frees chunks, in this order. `done` is true if all work that may use them is done, so that no free has to
 * wait. */
void strata_vmm_free_chunks(strata_layer_t *vmm, strata_record_t *const *chunks, uint32_t count, bool done);
/* Notes that all work that may use a chunk is done, so that its free does not wait. */
void strata_vmm_note_done(const strata_layer_t *vmm, strata_record_t *chunk);

#endif
