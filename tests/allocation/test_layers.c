#include "tests/allocation/test_layers.h"

test_log_t test_log;
_Atomic bool test_failing_armed;

static void note(const strata_layer_t *self, int sign) {
    uint32_t at = atomic_fetch_add(&test_log.count, 1);
    if (at < TEST_LOG) test_log.seen[at] = sign * (int)self->number;
}

static strata_status_t nothing_to_create(strata_layer_t *self) {
    (void)self;
    return STRATA_OK;
}

static void nothing_to_destroy(strata_layer_t *self) { (void)self; }

/* ---- decorators ---- */

static strata_status_t counter_allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_status_t status = strata_below_allocate(self, request, record);
    if (status == STRATA_OK) note(self, 1);
    return status;
}

static void counter_free(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    note(self, -1);
    strata_below_free(record, call);
}

const strata_layer_type_t test_counter_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "test_counter",
    .doc = "notes what passes",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_STREAM,
    .passes = ~0u,
    .guarded = true,
    .state_size = sizeof(strata_layer_t),
    .create = nothing_to_create,
    .destroy = nothing_to_destroy,
    .allocate = counter_allocate,
    .free = counter_free,
};

static strata_status_t failing_allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_status_t status = strata_below_allocate(self, request, record);
    if (status != STRATA_OK || !test_failing_armed) return status;
    strata_below_free(*record, request->call);
    return strata_fail(STRATA_E_NO_MEMORY, 0, "the test's middle layer fails");
}

static void failing_free(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    note(self, -1);
    strata_below_free(record, call);
}

const strata_layer_type_t test_failing_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "test_failing",
    .doc = "fails above the layers below",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_STREAM,
    .passes = ~0u,
    .guarded = true,
    .state_size = sizeof(strata_layer_t),
    .create = nothing_to_create,
    .destroy = nothing_to_destroy,
    .allocate = failing_allocate,
    .free = failing_free,
};

/* ---- the router ---- */

static strata_status_t router_allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_layer_t *branch = self->below[request->size / 256 % self->below_count];
    strata_status_t status = strata_layer_allocate(branch, request, record);
    if (status == STRATA_OK) note(self, 1);
    return status;
}

const strata_layer_type_t test_router_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "test_router",
    .doc = "another path for another size",
    .role = STRATA_ROUTER,
    .scope = STRATA_SCOPE_STREAM,
    .guarded = true,
    .state_size = sizeof(strata_layer_t),
    .create = nothing_to_create,
    .destroy = nothing_to_destroy,
    .allocate = router_allocate,
    .free = counter_free,
};
