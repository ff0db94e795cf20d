/* Layers that break the contract: the suite must say so. */
#include <stdlib.h>

#include "tests/modules/pass.h"

/* Every fifth record does not go back. */
static void forgetful_free(strata_layer_t *self, strata_record_t *record, strata_path_t *path) {
    static unsigned count;
    (void)self;
    if (++count % 5) strata_below_free(record, path);
}

static void crashing_free(strata_layer_t *self, strata_record_t *record, strata_path_t *path) {
    (void)self, (void)record, (void)path;
    abort();
}

PASS_TYPE(forgetful, .free = forgetful_free);
PASS_TYPE(crashing, .free = crashing_free);

STRATA_LAYERS(&forgetful_type, &crashing_type);
