/* Layers with faulty frees, and layers that report wrong values. */
#include "tests/modules/pass.h"

static void free_nothing(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    (void)self, (void)record, (void)call;
}

static void free_now_and_then_twice(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    static unsigned count;
    (void)self;
    strata_below_free(record, call);
    if (++count % 100 == 0) strata_below_free(record, call);
}

/* Each free passes down the record of the previous free, so the last record is never freed. */
static void free_the_one_before(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    static strata_record_t *before;
    (void)self;
    if (before) strata_below_free(before, call);
    before = record;
}

/* Serves a record that it already freed below. */
static strata_record_t *gave_back;

static strata_status_t serve_freed(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_record_t *kept = gave_back;
    gave_back = NULL;
    if (!kept || kept->size < request->size) return strata_below_allocate(self, request, record);
    *record = kept;
    return STRATA_OK;
}

static void keep_pointer(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    (void)self;
    gave_back = record;
    strata_below_free(record, call);
}

/* Caches one block and serves it to the next request on any stream. */
static strata_record_t *kept;

static strata_status_t serve_kept(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_record_t *serves = kept && kept->size >= request->size && kept->size - request->size < UINT32_MAX ? kept : NULL;
    if (!serves) return strata_below_allocate(self, request, record);
    kept = NULL;
    serves->state = STRATA_RECORD_LIVE;
    serves->slack = (uint32_t)(serves->size - request->size);
    *record = serves;
    return STRATA_OK;
}

static void keep(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    (void)self;
    if (kept) strata_below_free(kept, call);
    kept = record;
}

/* Reports no slack, so the requested size is lost. */
static strata_status_t lose_size(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_status_t status = strata_below_allocate(self, request, record);
    if (status == STRATA_OK) (*record)->slack = 0;
    return status;
}

static strata_status_t succeed_without(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    (void)self, (void)request, (void)record;
    return STRATA_OK;
}

static strata_status_t succeed_with_null(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    (void)self, (void)request;
    *record = NULL;
    return STRATA_OK;
}

static strata_status_t fail_now_and_then(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    static unsigned count;
    if (++count % 50 == 0) return strata_fail(STRATA_E_DEVICE, 0, "no");
    return strata_below_allocate(self, request, record);
}

PASS_TYPE(frees_nothing, .free = free_nothing);
PASS_TYPE(frees_twice, .free = free_now_and_then_twice);
PASS_TYPE(frees_the_one_before, .free = free_the_one_before);
PASS_TYPE_ALLOCATING(serves_freed, serve_freed, .free = keep_pointer);
PASS_TYPE_ALLOCATING(keeps_for_all_streams, serve_kept, .free = keep);
PASS_TYPE_ALLOCATING(loses_size, lose_size, .free = pass_free);
PASS_TYPE_ALLOCATING(without_record, succeed_without, .free = pass_free);
PASS_TYPE_ALLOCATING(with_null, succeed_with_null, .free = pass_free);
PASS_TYPE_ALLOCATING(fails_now_and_then, fail_now_and_then, .free = pass_free);

STRATA_LAYERS(&frees_nothing_type, &frees_twice_type, &frees_the_one_before_type, &serves_freed_type, &keeps_for_all_streams_type,
              &loses_size_type, &without_record_type, &with_null_type, &fails_now_and_then_type);
