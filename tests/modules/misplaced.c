/* Layers that serve memory of another device, and layers that write to memory of the program. */
#include "tests/modules/pass.h"

/* The first instance of the process serves all requests, so other devices get its memory. */
static strata_layer_t *first;

static strata_status_t create_first(strata_layer_t *self) {
    if (!first) first = self;
    return STRATA_OK;
}

static void destroy_first(strata_layer_t *self) {
    if (first == self) first = NULL;
}

static strata_status_t allocate_from_first(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    return strata_layer_allocate(first ? first->below[0] : self->below[0], request, record);
}

static const strata_layer_type_t first_device_type = {.struct_size = sizeof(strata_layer_type_t),
                                                      .name = "first_device",
                                                      .doc = "for tests",
                                                      .role = STRATA_DECORATOR,
                                                      .scope = STRATA_SCOPE_STREAM,
                                                      .passes = ~0u,
                                                      .guarded = true,
                                                      .state_size = sizeof(strata_layer_t),
                                                      .create = create_first,
                                                      .destroy = destroy_first,
                                                      .allocate = allocate_from_first,
                                                      .free = pass_free};

/* Writes one byte after the end of each block. */
static strata_status_t mark_end(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_status_t status = strata_below_allocate(self, request, record);
    if (status != STRATA_OK) return status;
    strata_unlocked_t opened = strata_call_unlock(request->call);
    (void)strata_layer_fill(self, (*record)->ptr + (*record)->size, 0xee, 1, request->stream);
    strata_call_lock(request->call, opened);
    return STRATA_OK;
}

/* Remembers the addresses of freed blocks and writes there some requests later. */
static uint64_t freed_at[16];
static unsigned freed_count;

static strata_status_t write_freed(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_status_t status = strata_below_allocate(self, request, record);
    uint64_t address = freed_at[(freed_count + 1) % 16];
    if (status != STRATA_OK || address == 0) return status;
    strata_unlocked_t opened = strata_call_unlock(request->call);
    (void)strata_layer_fill(self, address, 0xee, 1, request->stream);
    strata_call_lock(request->call, opened);
    return STRATA_OK;
}

static void note_freed(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    (void)self;
    freed_at[freed_count++ % 16] = record->ptr;
    strata_below_free(record, call);
}

/* Serves the second half of each block with the size of the whole block. */
static strata_status_t serve_second_half(strata_layer_t *self, const strata_request_t *request, strata_record_t **record) {
    strata_record_t *inner;
    strata_status_t status = strata_below_allocate(self, request, &inner);
    if (status != STRATA_OK) return status;
    *record = strata_record_wrap(self, request, inner, inner->ptr + (inner->size / 2 & ~(uint64_t)255), inner->size);
    if (*record) return STRATA_OK;
    strata_below_free(inner, request->call);
    return STRATA_E_LIMIT;
}

static void free_wrapped(strata_layer_t *self, strata_record_t *record, strata_call_t *call) {
    strata_below_free(strata_record_unwrap(self, record), call);
}

PASS_TYPE_ALLOCATING(marks_past_the_end, mark_end, .free = pass_free);
PASS_TYPE_ALLOCATING(writes_freed, write_freed, .free = note_freed);
PASS_TYPE_ALLOCATING(beyond_the_end, serve_second_half, .free = free_wrapped);

STRATA_LAYERS(&first_device_type, &marks_past_the_end_type, &writes_freed_type, &beyond_the_end_type);
