/* Finds gaps between the runs, and maps handles there. */
#include "allocation/cache/runs.h"
#include "allocation/layers/sources/vmm.h"
#include "platform/arithmetic.h"

enum { ALIGNMENT = 256 };

/* Runs never touch, so there is a gap after each. */
bool strata_runs_next_gap(strata_runs_t *self, uint64_t limit, strata_gap_t *gap) {
    const strata_order_key_t from = {gap->end, 0, 0};
    uint32_t run = gap->next ? gap->next : strata_runs_find(self, gap->end);
    const strata_chunk_t *chunk = strata_chunk_at(self->chunks, run);
    uint64_t begin = run ? chunk->base + chunk->size : gap->end;
    uint32_t next = run ? chunk->next : strata_order_from(&self->chunks->by_address, &from);
    uint64_t end = next ? strata_chunk_at(self->chunks, next)->base : limit;
    *gap = (strata_gap_t){.begin = begin, .end = strata_min(end, limit), .run = run, .next = end < limit ? next : 0};
    return begin < limit;
}

strata_status_t strata_runs_map(strata_runs_t *self, uint64_t at, uint64_t size, const strata_request_t *request, uint32_t *slot) {
    strata_record_t *below;
    strata_status_t status = strata_chunks_request_below(self->chunks, at, size, ALIGNMENT, request, &below);
    if (status != STRATA_OK) return status;
    *slot = strata_runs_add(self, below);
    if (*slot) return STRATA_OK;
    /* No work has used the handle. Without this note its free would wait for the stream, which is impossible in a capture. The
     * mapping would then be in the way of the next try. */
    strata_layer_t *vmm;
    if (strata_vmm_find(&self->chunks->base, &vmm) == STRATA_OK) strata_vmm_note_done(vmm, below);
    return strata_chunks_return_excess(self->chunks, below, request->call);
}

void strata_runs_wait_for_gaps(strata_runs_t *self, const uint32_t *unmapping, strata_call_t *call) {
    while (*unmapping > 0) strata_chunks_wait_for_growth(self->chunks, call);
}

void strata_runs_end_unmapping(strata_runs_t *self, uint32_t *unmapping) {
    if (--*unmapping == 0 && self->chunks->waiting) strata_condition_broadcast(&self->chunks->grown);
}
