/* A source of foreign pointers from the host's allocator, each with a deleter. In a place of a GPU it is faulty, because it serves memory of
 * the host. */
#include <stdlib.h>

#include "tests/modules/pass.h"

#define MOST_BYTES ((size_t)1 << 40) /* sanitizers abort the process at larger requests */

STRATA_API extern unsigned adopted_live;
unsigned adopted_live; /* bytes are of one thread's test */

static void give_to_host(uint64_t address, size_t size, void *context) {
    unsigned *live = context;
    (void)size;
    free((void *)(uintptr_t)address);
    --*live;
}

static strata_status_t adopting_allocate(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    size_t size = (request->size + request->alignment - 1) / request->alignment * request->alignment;
    bool refused = request->flags & STRATA_NO_GROW || size < request->size || size > MOST_BYTES;
    void *memory = refused ? NULL : aligned_alloc(request->alignment, size);
    if (!memory) return strata_fail(STRATA_E_NO_MEMORY, 0, "adopting: the host has none");
    strata_adopted_t adopted = {(uint64_t)(uintptr_t)memory, size, give_to_host, &adopted_live};
    strata_status_t status = strata_record_adopt(self, request, &adopted, record);
    if (status != STRATA_OK) free(memory);
    adopted_live += status == STRATA_OK;
    return status;
}

static const strata_layer_type_t adopting_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "adopting",
    .doc = "for tests",
    .role = STRATA_SOURCE,
    .scope = STRATA_SCOPE_DEVICE,
    .gives = STRATA_TRAIT_EXACT_SIZE,
    .guarded = true,
    .state_size = sizeof(strata_layer_t),
    .create = strata_layer_create_nothing,
    .destroy = strata_layer_destroy_adopted,
    .allocate = adopting_allocate,
    .free = strata_layer_free_adopted,
};

STRATA_LAYERS(&adopting_type);
