/* A layer that keeps what it knows of its blocks in the blocks: it is found by the marks that programs leave. */
#include <string.h>

#include "allocation/domain/layer.h"
#include "tests/harness/test.h"
#include "tests/torture/opened.h"

enum { LINK_AT = 8 };

/* The last block served, whose link names the one before; read and written by the host, while its user has it. */
static unsigned char *last;

static strata_status_t scribble_allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_status_t status = strata_below_allocate(self, request, record);
    if (status != STRATA_OK || request->size < 2 * LINK_AT) return status;
    uint64_t address = (*record)->ptr;
    unsigned char *bytes = strata_layer_host_view(self, address, request->size);
    if (last && bytes) memcpy(last + LINK_AT, &address, sizeof address);
    last = bytes;
    return status;
}

static void scribble_free(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    last = NULL;
    strata_layer_free_below(self, record, call);
}

static const strata_layer_type_t scribble = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "test_scribble",
    .doc = "links the blocks that it serves",
    .role = STRATA_DECORATOR,
    .scope = STRATA_SCOPE_NONE,
    .passes = ~0u,
    .state_size = sizeof(strata_layer_t),
    .create = strata_layer_create_nothing,
    .destroy = strata_layer_destroy_nothing,
    .allocate = scribble_allocate,
    .free = scribble_free,
};

TEST(torture_scribbled, a_link_within_a_live_block_is_found) {
    static const size_t sizes[] = {16, 300, 4096, 1 << 20};
    const strata_layer_type_t *type = &scribble;
    EXPECT_OK(strata_layers_register(&type, 1, true));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        opened_t o;
        last = NULL;
        opened_begin(&o, "stack: [test_scribble, auto_growth, system]\n", 1, 0);
        torture_allocate(&o.world, 0, STRATA_TORTURE_GPU, 1, &(torture_request_t){.size = sizes[i]});
        torture_work(&o.world, 1, 50, (const uint32_t[]){0}, 1, 1);
        torture_allocate(&o.world, 1, STRATA_TORTURE_GPU, 1, &(torture_request_t){.size = sizes[i]});
        torture_free(&o.world, 0, STRATA_TORTURE_NO_STREAM, true, false);
        const torture_verdict_t *verdict = opened_verdict(&o);
        EXPECT_EQ(verdict->fault, TORTURE_FAULT_CONTENTS);
        EXPECT_CONTAINS(verdict->text, "byte 8 of a block of");
    }
}
