/* Layers that ask below for something else than they were asked for: the bottom of the stack must see it. */
#include "tests/modules/pass.h"

static strata_status_t ask_on_default_stream(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_request_t changed = *request;
    changed.stream = NULL;
    return strata_below_allocate(self, &changed, record);
}

/* The stream of the request before, whoever made it. */
static strata_status_t ask_on_last_stream(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    static strata_stream_t last;
    strata_request_t changed = *request;
    changed.stream = last;
    last = request->stream;
    return strata_below_allocate(self, &changed, record);
}

static strata_status_t ask_without_alignment(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_request_t changed = *request;
    changed.alignment = 1;
    return strata_below_allocate(self, &changed, record);
}

/* No request asks for less than the place's alignment, so only a larger one shows it. */
static strata_status_t ask_at_place_alignment(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_request_t changed = *request;
    changed.alignment = 256;
    return strata_below_allocate(self, &changed, record);
}

static strata_status_t ask_without_flags(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_request_t changed = *request;
    changed.flags = 0;
    return strata_below_allocate(self, &changed, record);
}

static strata_status_t ask_without_tag(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_request_t changed = *request;
    changed.tag = NULL;
    return strata_below_allocate(self, &changed, record);
}

PASS_TYPE_ALLOCATING(on_default_stream, ask_on_default_stream, .free = pass_free);
PASS_TYPE_ALLOCATING(on_last_stream, ask_on_last_stream, .free = pass_free);
PASS_TYPE_ALLOCATING(without_alignment, ask_without_alignment, .free = pass_free);
PASS_TYPE_ALLOCATING(at_place_alignment, ask_at_place_alignment, .free = pass_free);
PASS_TYPE_ALLOCATING(without_flags, ask_without_flags, .free = pass_free);
PASS_TYPE_ALLOCATING(without_tag, ask_without_tag, .free = pass_free);

STRATA_LAYERS(&on_default_stream_type, &on_last_stream_type, &without_alignment_type, &at_place_alignment_type, &without_flags_type,
              &without_tag_type);
