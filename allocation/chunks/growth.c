/* How a chunk comes: one thread asks the layer below for it, the others that miss wait. */
#include "allocation/chunks/chunks.h"
#include "platform/arithmetic.h"

bool strata_chunks_begin_growth(strata_chunks_t *self, bool *growing, strata_call_t *call) {
    if (!*growing) return *growing = true;
    self->waiting++;
    strata_call_wait(call, self->base.stack, &self->grown, UINT64_MAX);
    self->waiting--;
    return false;
}

void strata_chunks_end_growth(strata_chunks_t *self, bool *growing) {
    *growing = false;
    if (self->waiting) strata_condition_broadcast(&self->grown);
}

/* No lock is held. */
static strata_status_t ask_below(strata_layer_t *self, uint64_t size, uint64_t alignment, const strata_request_t *request,
                                 strata_record_t **below) {
    strata_request_t chunk = *request;
    chunk.alignment = strata_max(alignment, request->alignment);
    strata_status_t status = strata_chunk_allocate(self, size, &chunk, below);
    if (status != STRATA_OK || ((*below)->ptr & (alignment - 1)) == 0) return status;
    strata_chunk_free(*below);
    return strata_fail(STRATA_E_UNSUPPORTED, 0, "%s: the layer below gives chunks at smaller multiples than %llu bytes",
                       self->type->name, (unsigned long long)alignment);
}

strata_status_t strata_chunks_grow(strata_chunks_t *self, uint64_t size, uint64_t alignment, const strata_request_t *request,
                                   uint32_t *number) {
    strata_record_t *below;
    self->held += size;
    strata_opened_t opened = strata_call_unlock(request->call);
    strata_status_t status = ask_below(&self->base, size, alignment, request, &below);
    strata_call_lock(request->call, opened);
    self->held -= size;
    if (status != STRATA_OK) return status;
    *number = strata_chunks_publish(self, below);
    if (*number) return STRATA_OK;
    opened = strata_call_unlock(request->call);
    strata_chunk_free(below);
    strata_call_lock(request->call, opened);
    return strata_fail(STRATA_E_LIMIT, 0, "%s holds %u chunks or %u blocks, its most", self->base.type->name, self->nodes.capacity,
                       self->base.stack->slab.capacity);
}
