/* Growth: one thread requests a chunk from the layer below, and the other threads that miss wait for it. */
#include "allocation/cache/chunks.h"
#include "platform/arithmetic.h"

void strata_chunks_wait_for_growth(strata_chunks_t *self, strata_call_t *call) {
    self->waiting++;
    strata_call_wait(call, self->base.stack, &self->grown, UINT64_MAX);
    self->waiting--;
}

strata_status_t strata_chunks_request_below(strata_chunks_t *self, uint64_t at, uint64_t size, uint64_t alignment,
                                            const strata_request_t *request, strata_record_t **below) {
    strata_request_t chunk = *request;
    chunk.at = at;
    chunk.alignment = strata_max(alignment, request->alignment);
    self->held += size;
    strata_unlocked_t opened = strata_call_unlock(request->call);
    strata_status_t status = strata_chunk_allocate(&self->base, size, &chunk, below);
    strata_call_lock(request->call, opened);
    self->held -= size;
    return status;
}

static void give_again(strata_record_t *below, strata_call_t *call) {
    strata_unlocked_t opened = strata_call_unlock(call);
    strata_chunk_free(below);
    strata_call_lock(call, opened);
}

strata_status_t strata_chunks_return_excess(strata_chunks_t *self, strata_record_t *below, strata_call_t *call) {
    give_again(below, call);
    return strata_fail(STRATA_E_LIMIT, 0, "%s has %u chunks or %u blocks, the maximum; free some, or use more streams or pools",
                       self->base.type->name, self->nodes.capacity, self->base.stack->slab.capacity);
}

strata_status_t strata_chunks_grow(strata_chunks_t *self, uint64_t size, uint64_t alignment, const strata_request_t *request,
                                   uint32_t *number) {
    strata_record_t *below;
    strata_status_t status = strata_chunks_request_below(self, request->at, size, alignment, request, &below);
    if (status != STRATA_OK) return status;
    if ((below->ptr & (alignment - 1)) != 0) {
        give_again(below, request->call);
        return strata_fail(STRATA_E_UNSUPPORTED, 0, "%s: the layer below aligns chunks to less than %llu bytes",
                           self->base.type->name, (unsigned long long)alignment);
    }
    *number = strata_chunks_add(self, below);
    return *number ? STRATA_OK : strata_chunks_return_excess(self, below, request->call);
}
