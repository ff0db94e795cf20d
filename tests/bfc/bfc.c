#include "tests/bfc/bfc.h"

#include <stdio.h>
#include <string.h>

/* ---- the source of adjacent chunks ---- */

#define ROOM (4 * GIB)

typedef struct adjacent {
    strata_layer_t base;
    uint64_t address, used;
} adjacent_t;

static strata_status_t create(strata_layer_t *base) {
    const strata_request_t none = {.size = 0};
    return strata_layer_allocate_memory(base, &none, ROOM, 256, &((adjacent_t *)base)->address);
}

static void destroy(strata_layer_t *base) { EXPECT_OK(strata_layer_free_memory(base, ((adjacent_t *)base)->address, ROOM)); }

static strata_status_t allocate(strata_layer_t *base, const strata_request_t *request, strata_record_t **record) {
    adjacent_t *self = (adjacent_t *)base;
    if (request->size > ROOM - self->used) return strata_fail(STRATA_E_NO_MEMORY, 0, "the piece is used up");
    *record = strata_record_new(base, request, self->address + self->used, request->size);
    if (!*record) return STRATA_E_LIMIT;
    self->used += request->size;
    return STRATA_OK;
}

static void give_back(strata_layer_t *base, strata_record_t *record, strata_call_t *call) {
    (void)call;
    strata_record_delete(base, record);
}

static const strata_layer_type_t adjacent_type = {
    .struct_size = sizeof(strata_layer_type_t),
    .name = "adjacent",
    .doc = "cuts one piece of memory",
    .role = STRATA_SOURCE,
    .scope = STRATA_SCOPE_DEVICE,
    .gives = STRATA_TRAIT_EXACT_SIZE | STRATA_TRAIT_CONTIGUOUS,
    .guarded = true,
    .state_size = sizeof(adjacent_t),
    .create = create,
    .destroy = destroy,
    .allocate = allocate,
    .free = give_back,
};

/* ---- rigs ---- */

void bfc_open_over(rig_t *rig, const char *options, const char *below, uint64_t capacity) {
    char text[512];
    snprintf(text, sizeof text, "version: 1\nstack:\n  - bfc: {%s}\n  - %s\n", options, below);
    rig_open(rig, text, NULL, 0, capacity, 1);
}

void bfc_open(rig_t *rig, const char *options, uint64_t capacity) { bfc_open_over(rig, options, "system", capacity); }

void bfc_register_adjacent(void) { (void)strata_register_layer(&adjacent_type); /* once in a process */ }

void bfc_open_adjacent(rig_t *rig, const char *options) {
    bfc_register_adjacent();
    bfc_open_over(rig, options, "adjacent", 0);
}

bfc_t *bfc_of(rig_t *rig) { return bfc_of_group(&rig_domain(rig)->ordinary); }

bfc_t *bfc_of_group(const strata_group_t *group) {
    for (uint32_t n = 1; n <= group->plan->count; n++)
        if (strcmp(group->plan->nodes[n].type->name, "bfc") == 0) return (bfc_t *)group->shared[n];
    return NULL;
}

strata_block_t bfc_serve(rig_t *rig, strata_stream_t stream, size_t size, size_t alignment) {
    strata_stack_t *stack = rig_stack(rig, stream);
    strata_request_t serve = {.size = size, .alignment = alignment, .stream = stack->stream};
    strata_record_t *record = NULL;
    if (strata_stack_serve(stack, &serve, &record) != STRATA_OK) return (strata_block_t){.ref = 0};
    return (strata_block_t){(void *)(uintptr_t)record->ptr, record->size, strata_ref_of(record)};
}

strata_block_t bfc_before(rig_t *rig, strata_stream_t stream, size_t size, uint64_t count) {
    strata_allocate_options_t options = {.struct_size = sizeof options, .size = size, .freed_before = count};
    strata_block_t block = {.ref = 0};
    EXPECT_OK(strata_allocate_with(rig->s, rig->gpu, stream, &options, &block));
    return block;
}

uint64_t bfc_next(uint64_t *random, uint64_t bound) {
    *random = *random * 6364136223846793005ull + 1442695040888963407ull;
    return (*random >> 33) % bound;
}

void bfc_free_all(rig_t *rig, strata_block_t *blocks, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (blocks[i].ref) EXPECT_OK(strata_free(rig->s, blocks[i].ref));
}
