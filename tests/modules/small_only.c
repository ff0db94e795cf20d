/* A layer that by its nature serves small requests alone: what asks for more is skipped, not failed. */
#include "tests/modules/pass.h"

static strata_status_t small_allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    if (request->size <= 1 << 20) return strata_below_allocate(self, request, record);
    return strata_fail(STRATA_E_NO_MEMORY, 0, "small_only serves at most 1MiB");
}

PASS_TYPE_ALLOCATING(small_only, small_allocate, .free = pass_free);

STRATA_LAYERS(&small_only_type);
