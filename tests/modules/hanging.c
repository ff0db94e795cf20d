/* A layer that never comes back from a request, and says so: who runs it apart ends it. */
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <unistd.h>

#include "tests/modules/pass.h"

static strata_status_t hanging_allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    (void)self, (void)request, (void)record;
    fputs("hanging\n", stderr);
    while (pause() != 0) {}
    return STRATA_E_DEVICE;
}

PASS_TYPE_ALLOCATING(hanging, hanging_allocate, .free = pass_free);

STRATA_LAYERS(&hanging_type);
