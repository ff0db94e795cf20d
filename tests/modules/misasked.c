/* Layers that change a request before they pass it down, which a check must find. */
#include "tests/modules/pass.h"

/* A layer that passes each request down after `change`. */
#define CHANGES(layer, change)                                                                                                     \
    static strata_status_t layer##_allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {     \
        strata_request_t changed = *request;                                                                                       \
        change;                                                                                                                    \
        return strata_below_allocate(self, &changed, record);                                                                      \
    }                                                                                                                              \
    PASS_TYPE_ALLOCATING(layer, layer##_allocate, .free = pass_free)

static strata_stream_t last; /* of the previous request, from any caller */

CHANGES(on_default_stream, changed.stream = NULL);
CHANGES(on_last_stream, changed.stream = last; last = request->stream);
CHANGES(without_alignment, changed.alignment = 1);
/* Only requests above the place's alignment expose this fault, because no request has a smaller one. */
CHANGES(at_place_alignment, changed.alignment = 256);
CHANGES(without_flags, changed.flags = 0);
CHANGES(without_tag, changed.tag = NULL);
CHANGES(halves, changed.size = request->size > 1 ? request->size / 2 : 1);

STRATA_LAYERS(&on_default_stream_type, &on_last_stream_type, &without_alignment_type, &at_place_alignment_type, &without_flags_type,
              &without_tag_type, &halves_type);
