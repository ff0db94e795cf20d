/* Plans that were made ahead. */
#include "allocation/report/log.h"
#include "allocation/stack/planning.h"
#include "facade/serve/long_way.h"
#include "planning/file/ahead.h"
#include "platform/arguments.h"

static strata_status_t load(strata_facade_t *facade, strata_place_t place, strata_stream_t stream, uint64_t pool,
                            const strata_ahead_t *ahead) {
    strata_stack_t *stack;
    strata_status_t status = strata_request_enter(facade, place, stream, pool, &stack);
    if (status != STRATA_OK) return status;
    status = strata_stack_load_plan(stack, ahead);
    strata_stack_leave(stack);
    return status;
}

strata_status_t strata_plan_load(strata_t handle, strata_place_t place, strata_stream_t stream, const char *path,
                                 const strata_plan_load_options_t *options) {
    static const strata_plan_load_options_t nothing = {.struct_size = sizeof nothing};
    STRATA_REFUSE_NULL(path);
    if (!options) options = &nothing;
    STRATA_REFUSE_OPTIONS(options, sizeof *options);
    strata_facade_t *facade = strata_facade_of(handle);
    if (!facade) return strata_last_error()->status;
    strata_domain_t *domain;
    strata_status_t status = strata_facade_domain(facade, place, &domain);
    if (status != STRATA_OK) return status;
    strata_ahead_t ahead;
    strata_ahead_reading_t how = {.branch = options->one_branch ? &options->branch : NULL};
    status = strata_ahead_read(path, &how, &ahead);
    if (status != STRATA_OK) return status;
    status = load(facade, place, stream, options->pool, &ahead);
    if (status != STRATA_OK) status = strata_fail_context("%s", path);
    strata_ahead_delete(&ahead);
    strata_log_flush();
    return status;
}
