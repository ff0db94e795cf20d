/* nvtx: makes a range for each request and each free, for tools that record NVTX
 * (platform/ranges/ranges.h). Work below is inside the range: a chunk allocation, a wait, a release. With
 * this layer in the stack, hits and frees take the slow path. */
#include "allocation/domain/layer.h"
#include "platform/ranges/ranges.h"

/* The tool may wait, so the locks of the call are released around it. */
static void begin(strata_call_t *call, strata_range_t range, uint64_t bytes) {
    strata_unlocked_t opened = strata_call_unlock(call);
    strata_range_begin(range, bytes);
    strata_call_lock(call, opened);
}

static void end(strata_call_t *call) {
    strata_unlocked_t opened = strata_call_unlock(call);
    strata_range_end();
    strata_call_lock(call, opened);
}

static strata_status_t allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    begin(request->call, STRATA_RANGE_allocate, request->size);
    strata_status_t status = strata_below_allocate(self, request, record);
    end(request->call);
    return status;
}

static void free_record(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    begin(call, STRATA_RANGE_free, record->size);
    strata_below_free(record, call);
    end(call);
    (void)self;
}

const strata_layer_type_t strata_nvtx_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "nvtx",
    .doc = "marks each request and free as an NVTX range, for tools such as Nsight Systems; without a tool it only costs time",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_NONE,
    .passes = ~0u,
    .state_size = sizeof(strata_layer_t),
    .create = strata_layer_create_nothing,
    .destroy = strata_layer_destroy_nothing,
    .allocate = allocate,
    .free = free_record,
};
