/* A layer from outside that breaks its promise: what it gives does not begin where memory of the place begins. */
#include <stdio.h>

#include "allocation/layer.h"
#include "tests/facade/fixture.h"

static strata_status_t crooked_allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_request_t below = *request;
    strata_record_t *inner;
    below.size = request->size + 64;
    strata_status_t status = strata_below_allocate(self, &below, &inner);
    if (status != STRATA_OK) return status;
    *record = strata_record_wrap(self, request, inner, inner->ptr + 64, request->size);
    return *record ? STRATA_OK : STRATA_E_LIMIT;
}

static void crooked_free(strata_layer_t *self, strata_record_t *record, strata_path_t *path) {
    strata_below_free(strata_record_unwrap(self, record), path);
}

static const strata_layer_type_t crooked_type = {
    .struct_size = sizeof(strata_layer_type_t), .name = "test_crooked", .doc = "cuts 64 bytes off in front",
    .role = STRATA_DECORATOR, .scope = STRATA_SCOPE_DEVICE, .passes = ~0u, .guarded = true, .state_size = sizeof(strata_layer_t),
    .create = strata_layer_create_nothing, .destroy = strata_layer_destroy_nothing, .allocate = crooked_allocate,
    .free = crooked_free,
};

TEST(facade_crooked, a_cache_refuses_memory_that_begins_elsewhere_and_gives_it_back) {
    static const char *const caches[] = {"auto_growth", "caching", "bfc"};
    const strata_layer_type_t *types[] = {&crooked_type};
    ASSERT_OK(strata_layers_register(types, 1, true));
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
        rig_t rig;
        char text[100];
        strata_block_t block = {.ref = 7};
        snprintf(text, sizeof text, "strategy: crooked\nstack: [%s, test_crooked, system]\n", caches[i]);
        rig_open(&rig, text, NULL, 0, 0, 1);
        EXPECT_STATUS(STRATA_E_UNSUPPORTED, strata_allocate(rig.s, rig.gpu, NULL, 1000, &block));
        EXPECT_CONTAINS(strata_last_error()->text, "the layer below gives");
        EXPECT_EQ(block.ref, 7);
        EXPECT_EQ(rig_figures(&rig).reserved_bytes, 0);
        EXPECT_EQ(rig_calls(&rig, STRATA_CALL_malloc), rig_calls(&rig, STRATA_CALL_free));
        EXPECT_OK(strata_validate(rig.s));
        rig_close(&rig);
    }
}
