/* Functions that strata.h declares but this version does not implement. Each returns an error and changes nothing. */
#include "facade/registry/facade.h"
#include "platform/arguments.h"

static strata_status_t fail_unsupported(strata_t handle, const char *what) {
    if (!strata_facade_of(handle)) return strata_last_error()->status;
    return strata_fail(STRATA_E_UNSUPPORTED, 0, "%s is not supported by this version", what);
}

#define UNSUPPORTED(name, ...) strata_status_t name(strata_t facade, __VA_ARGS__)

UNSUPPORTED(strata_shadow_start, const strata_open_options_t *strategy) {
    STRATA_REFUSE_NULL(strategy);
    return fail_unsupported(facade, "the shadow comparison");
}

UNSUPPORTED(strata_shadow_stop, char *report, size_t capacity) {
    STRATA_REFUSE_NULL_ARRAY(report, capacity);
    return fail_unsupported(facade, "the shadow comparison");
}
