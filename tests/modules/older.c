/* Built with a header in which a layer's last operation was `validate`: what stands after its struct is not its own. */
#include <stddef.h>
#include <stdlib.h>

#include "tests/modules/pass.h"

static strata_status_t never(const void *options, strata_place_kind_t place, const char **option) {
    (void)options, (void)place, (void)option;
    abort();
}

static const strata_layer_type_t older_type = {
    .struct_size = offsetof(strata_layer_type_t, check),
    .name = "older",
    .doc = "of an older header",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_STREAM,
    .passes = ~0u,
    .guarded = true,
    .state_size = sizeof(strata_layer_t),
    .create = pass_create,
    .destroy = pass_destroy,
    .allocate = pass_allocate,
    .free = pass_free,
    .check = never,
};

STRATA_LAYERS(&older_type);
