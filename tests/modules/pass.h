/* A decorator that changes nothing: what the objects here begin from. */
#ifndef STRATA_TESTS_MODULES_PASS_H
#define STRATA_TESTS_MODULES_PASS_H

#include <strata/layer.h>

static inline strata_status_t pass_create(strata_layer_t *self) {
    (void)self;
    return STRATA_OK;
}

static inline void pass_destroy(strata_layer_t *self) { (void)self; }

static inline strata_status_t pass_allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    return strata_below_allocate(self, request, record);
}

static inline void pass_free(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    (void)self;
    strata_below_free(record, call);
}

#define PASS_TYPE(layer, ...) PASS_TYPE_ALLOCATING(layer, pass_allocate, __VA_ARGS__)
#define PASS_TYPE_ALLOCATING(layer, function, ...)                                                                                 \
    static const strata_layer_type_t layer##_type = {.struct_size = sizeof(strata_layer_type_t),                                   \
                                                     .name = #layer,                                                               \
                                                     .doc = "for tests",                                                           \
                                                     .role = STRATA_DECORATOR,                                                     \
                                                     .scope = STRATA_SCOPE_STREAM,                                                 \
                                                     .passes = ~0u,                                                                \
                                                     .guarded = true,                                                              \
                                                     .state_size = sizeof(strata_layer_t),                                         \
                                                     .create = pass_create,                                                        \
                                                     .destroy = pass_destroy,                                                      \
                                                     .allocate = function,                                                         \
                                                     __VA_ARGS__}

#endif
