/* A layer that ends its program as if all were well: who runs it apart must not take that for a run. */
#include <unistd.h>

#include "tests/modules/pass.h"

static void quitting_free(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    (void)self, (void)record, (void)call;
    _exit(0);
}

PASS_TYPE(quitting, .free = quitting_free);

STRATA_LAYERS(&quitting_type);
